"""Wind: gusts of a spectrum, and the drag of a body in them.

*Gusts* are a mean wind with turbulence along the axes of frame a, by the spectra of Dryden
[MIL1797] at a mean speed V and lengths l,

    along x:        S(w) = sigma^2 2 l / (pi V) / (1 + (l w / V)^2)
    along y and z:  S(w) = sigma^2 l / (pi V) (1 + 3 (l w / V)^2) / (1 + (l w / V)^2)^2

as sums of sines with a seed; the deviation of each is sigma exactly.

*Drag* on frame b follows from the velocity of the air relative to it, c = R^T wind - v,

    f = linear c + quadratic |c| c        at the origin of frame b, in its axes,

with |c| smooth where it vanishes.
"""

from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import casadi
import numpy as np

from framefree.machine.pair_force import PairForce
from framefree.machine.part import Part, checked_name, set_field
from framefree.machine.problems import MachineError
from framefree.machine.spectrum import SineSum, sine_sum
from framefree.machine.values import numbers

LOWEST, HIGHEST = 1e-3, 30.0
"""Frequencies of gusts that are looked at, over V / l."""
CALM = 1e-3
"""Relative speed (m/s) below which |c| is smooth."""


@dataclass(frozen=True, eq=False)
class Gusts(Part):
    """A mean wind with turbulence.

    Parameters
    ----------
    mean : (3,)
        Mean wind in the axes of frame a, m/s.
    deviation : (3,)
        Of the turbulence along each axis, m/s.
    length : (3,)
        Lengths l, m.
    speed : float
        V at which turbulence is carried past, m/s.
    components : int
        Number of sines along each axis.
    seed : int
    """

    mean: Any = (3.0, 0.0, 0.0)
    deviation: Any = (0.8, 0.8, 0.4)
    length: Any = (6.0, 6.0, 2.0)
    speed: float = 3.0
    components: int = 24
    seed: int = 0

    def __post_init__(self) -> None:
        for name in ("mean", "deviation", "length"):
            set_field(self, name, numbers(getattr(self, name), (3,), f"`{name}` of gusts"))
        if (self.deviation < 0).any() or not (self.length > 0).all():
            raise MachineError("gusts need deviations of zero or more and positive lengths")
        if not (np.isfinite(self.speed) and self.speed > 0):
            raise MachineError(f"`speed` of gusts must be positive, got {self.speed}")
        if self.components < 1 or self.components != int(self.components):
            raise MachineError(f"gusts have 1 or more components, got {self.components}")

    def density(self, axis: int, frequency: np.ndarray) -> np.ndarray:
        """Return the spectrum along an axis for a deviation of one, s/rad."""
        w, slow = np.asarray(frequency, float), self.length[axis] / self.speed
        ratio = (slow * w) ** 2
        if axis == 0:
            return 2 * slow / np.pi / (1 + ratio)
        return slow / np.pi * (1 + 3 * ratio) / (1 + ratio) ** 2

    @cached_property
    def sines(self) -> tuple[SineSum, ...]:
        """The components along each axis."""
        rng, sums = np.random.default_rng(self.seed), []
        for axis in range(3):
            base = self.speed / self.length[axis]
            sums.append(
                sine_sum(
                    lambda w, axis=axis: self.density(axis, w), LOWEST * base, HIGHEST * base,
                    self.components, rng, float(self.deviation[axis]) ** 2,
                )
            )  # fmt: skip
        return tuple(sums)

    def velocity(self, t: Any) -> Any:
        """Return the wind at a time, m/s: a casadi column, or an array (..., 3) for times."""
        symbolic = isinstance(t, casadi.SX | casadi.DM)
        cos = casadi.cos if symbolic else np.cos
        parts = []
        for mean, sines in zip(self.mean, self.sines, strict=True):
            terms = [cos(w * t + p) for w, p in zip(sines.frequency, sines.phase, strict=True)]
            parts.append(mean + sines.amplitude * sum(terms))
        return casadi.vertcat(*parts) if symbolic else np.stack(np.broadcast_arrays(*parts), -1)


@dataclass(frozen=True, eq=False)
class WindDrag(PairForce):
    """Drag of wind on a frame; see the top of this file.

    Parameters
    ----------
    name, frame_a, frame_b : str
        Frame a, usually "world", has the axes of the wind; frame b feels the force.
    gusts : Gusts
    linear, quadratic : (3,)
        Along the axes of frame b: N s/m and N s^2/m^2.
    moment : float, optional
        Holds the time at this value, s.
    """

    name: str
    frame_a: str
    frame_b: str
    gusts: Gusts
    linear: Any = (0.0, 0.0, 0.0)
    quadratic: Any = (0.0, 0.0, 0.0)
    moment: float | None = field(default=None, kw_only=True)

    def __post_init__(self) -> None:
        checked_name(self.name, "a wind drag")
        for name in ("linear", "quadratic"):
            what = f"`{name}` of the wind drag `{self.name}`"
            set_field(self, name, numbers(getattr(self, name), (3,), what))
            if (getattr(self, name) < 0).any():
                raise MachineError(f"{what} must be zero or more")

    @property
    def timed(self) -> bool:
        """Whether time goes on."""
        return self.moment is None

    def held_at(self, time: float) -> "WindDrag":
        """Return the drag in the wind of one moment."""
        return replace(self, moment=float(time)) if self.timed else self

    def wrench_at(self, pose: Any, twist: Any, time: Any) -> Any:
        """Return the force, and no moment."""
        t = casadi.SX(time if self.moment is None else self.moment)
        c = pose[:3, :3].T @ self.gusts.velocity(t) - twist[:3]
        size = casadi.sqrt(casadi.sumsqr(c) + CALM**2)
        force = (casadi.DM(self.linear) + casadi.DM(self.quadratic) * size) * c
        return casadi.vertcat(force, casadi.SX(3, 1))
