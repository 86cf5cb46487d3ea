"""`ActuatorMap`: from commands to what actuators really give at the port, and back.

Every command c_i passes a map that grows all the way, its output lags behind, and outputs mix:

    T_i da_i/dt = phi_i(c_i) - a_i,      port w = C a,      C_ii = 1

    phi(c) = g_0 c + (g_+ - g_0) max(c - d_+, 0) - (g_- - g_0) max(-c - d_-, 0)

with gains g_+ and g_- forwards and backwards and a dead zone from -d_- to d_+. A dead zone that is
flat has no inverse; here it has the slope g_0, a thousandth of the gains, so that phi grows and its
inverse is exact:

    phi^-1(a) = min(max(a, -g_0 d_-), g_0 d_+) / g_0 + max(a - g_0 d_+, 0) / g_+
                - max(-a - g_0 d_-, 0) / g_-

Commands have limits: what a port cannot be given is known, and said (`command`).
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import casadi as ca
import numpy as np

from framefree.learn.errors import LearnError
from framefree.machine.part import set_field

SLOPE = 1e-3
"""Slope within a dead zone, of the mean gain."""
WORST = 1e8
"""Condition of a coupling beyond which it cannot be undone."""
UNIT = ("forwards", "backwards", "dead_forwards", "dead_backwards", "time_constants")

Matrix = Any


@dataclass(frozen=True, eq=False)
class ActuatorMap:
    """What actuators make of commands; see the top of this file.

    Parameters
    ----------
    forwards, backwards : (n,)
        Gains ``g_+`` and ``g_-``, port per command; positive.
    dead_forwards, dead_backwards : (n,)
        Ends ``d_+`` and ``d_-`` of the dead zones, as sizes of the command.
    coupling : (n, n), optional
        C, with ones on its diagonal; default none.
    time_constants : (n,)
        T, s; 0 where an actuator follows at once.
    lower, upper : (n,)
        Limits of the commands.
    deviations : mapping of str to array, optional
        Standard deviations of the numbers, by name.
    """

    forwards: Any
    backwards: Any = None
    dead_forwards: Any = 0.0
    dead_backwards: Any = None
    coupling: Any = None
    time_constants: Any = 0.0
    lower: Any = -np.inf
    upper: Any = np.inf
    deviations: Any = None

    def __post_init__(self) -> None:
        n = np.atleast_1d(np.asarray(self.forwards, float)).shape[0]
        if self.backwards is None:
            set_field(self, "backwards", self.forwards)
        if self.dead_backwards is None:
            set_field(self, "dead_backwards", self.dead_forwards)
        for name in (*UNIT, "lower", "upper"):
            values = np.array(np.broadcast_to(np.asarray(getattr(self, name), float), (n,)))
            if np.isnan(values).any() or (name in UNIT and not np.isfinite(values).all()):
                raise LearnError(f"`{name}` of actuators must be finite numbers, got {values}")
            if name in UNIT[:2] and not (values > 0).all():
                raise LearnError(
                    f"`{name}` of actuators must be positive, or they have no inverse: got {values}"
                )
            if name in UNIT[2:] and not (values >= 0).all():
                raise LearnError(f"`{name}` of actuators must not be negative, got {values}")
            set_field(self, name, values)
        if not (self.lower < self.upper).all():
            raise LearnError("`lower` limits of commands must lie below `upper` ones")
        C = np.eye(n) if self.coupling is None else np.array(self.coupling, float)
        if C.shape != (n, n) or not np.isfinite(C).all() or not np.allclose(np.diag(C), 1.0):
            raise LearnError(f"`coupling` of actuators must be {(n, n)} with ones on its diagonal")
        if np.linalg.cond(C) > WORST:
            raise LearnError("`coupling` of actuators cannot be undone: it is singular")
        set_field(self, "coupling", C)

    @property
    def size(self) -> int:
        """How many actuators there are."""
        return len(self.forwards)

    @property
    def _flat(self) -> np.ndarray:
        """Slopes g_0 (n,) within the dead zones, below both gains."""
        mean = (self.forwards + self.backwards) / 2
        return np.minimum(SLOPE * mean, np.minimum(self.forwards, self.backwards))

    # ------------------------------------------------------------------ expressions

    def outputs(self, c: Matrix) -> Matrix:
        """Return phi(c) (n): what commands give in the end, before they mix."""
        flat = self._flat
        more = ca.DM(self.forwards - flat) * ca.fmax(c - ca.DM(self.dead_forwards), 0)
        less = ca.DM(self.backwards - flat) * ca.fmax(-c - ca.DM(self.dead_backwards), 0)
        return ca.DM(flat) * c + more - less

    def commands(self, a: Matrix) -> Matrix:
        """Return phi^-1(a) (n), whatever the limits."""
        flat = self._flat
        top, bottom = ca.DM(flat * self.dead_forwards), ca.DM(-flat * self.dead_backwards)
        within = ca.fmin(ca.fmax(a, bottom), top) / ca.DM(flat)
        more = ca.fmax(a - top, 0) / ca.DM(self.forwards)
        less = ca.fmax(bottom - a, 0) / ca.DM(self.backwards)
        return within + more - less

    def limited(self, c: Matrix) -> Matrix:
        """Return commands (n) within their limits."""
        return ca.fmin(ca.fmax(c, ca.DM(self.lower)), ca.DM(self.upper))

    def port(self, c: Matrix) -> Matrix:
        """Return the port (n) that commands within their limits give in the end."""
        return ca.DM(self.coupling) @ self.outputs(self.limited(c))

    def command(self, w: Matrix) -> tuple[Matrix, Matrix]:
        """Return commands (n) for a port (n), and what they miss of it (n) in the end.

        Where a limit is met, every actuator gives what is nearest to its own share.
        """
        a = ca.DM(np.linalg.inv(self.coupling)) @ w
        c = self.limited(self.commands(a))
        return c, ca.DM(self.coupling) @ (a - self.outputs(c))

    # ------------------------------------------------------------------ words and files

    def formula(self) -> str:
        """Return the map as text, a line for every actuator, with deviations where known."""

        def told(name: str, *place: int) -> str:
            value = getattr(self, name)[place]
            spread = 0.0 if self.deviations is None else float(self.deviations[name][place])
            return f"{value:.4g}" + (f" ± {spread:.2g}" if spread else "")

        lines = []
        for i in range(self.size):
            gains = f"({told('forwards', i)}) forwards, ({told('backwards', i)}) backwards"
            dead = f"dead from -({told('dead_backwards', i)}) to {told('dead_forwards', i)}"
            lag = f"lag {told('time_constants', i)} s"
            mixed = [
                f"({told('coupling', i, j)}) of {j + 1}"
                for j in range(self.size)
                if j != i and self.coupling[i, j]
            ]
            with_others = f"; port also has {', '.join(mixed)}" if mixed else ""
            lines.append(f"{i + 1}: gain {gains}; {dead}; {lag}{with_others}")
        return "\n".join(lines)

    def parts(self) -> dict[str, Any]:
        """Return what makes it again."""
        arrays = {name: getattr(self, name) for name in (*UNIT, "coupling", "lower", "upper")}
        return {"kind": "ActuatorMap", **arrays, "deviations": self.deviations}

    @classmethod
    def of_parts(cls, parts: Mapping[str, Any]) -> "ActuatorMap":
        """Return the map that `parts` describes."""
        return cls(**{key: value for key, value in parts.items() if key != "kind"})
