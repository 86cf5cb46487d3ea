"""Motion of a frame along a surface and force against it [Raibert1981], [Khatib1987].

The frame's origin touches a surface that does not move, with normal n (out of it), and the surface
pushes the frame with the wrench (F, m), which is measured. With P = I - n n^T, and error e and y of
the frame as in `Impedance`, the law asks for the acceleration

    across n:     P (h dy/dt + d y + k e) = 0,     the same for rotation where it is held
    along n:      n . (rate of v) = -c n . v

of a machine that feels P F and m as measured, over a filter (F_s, m_s), and presses with f_d + z:

    force = M a + bias - Jv^T P F_s - Jw^T m_s - Jv^T n (f_d + z)

Where nothing is felt, it moves along -n with `approach` instead of pressing, all else the same. The
filter is needed on hard surfaces: friction that is felt a period late and made up for at once
changes the normal force by more than itself in some postures, and so on from period to period.

On a rigid surface n . v = 0, so that the last two lines meet: f = n . F = f_d + z + delta, where
delta is all that the model does not know. The integral z' = i (f_d - f) leaves, for e_f = f_d - f,

    e_f' = -i e_f - delta'

At a control period T and a delay of k periods, that of the measurement counted, this is stable for
i T < 2 sin(pi / (2 (2 k + 1))). An elastic surface on which the frame weighs mu has
mu p^3 + c mu p^2 + K p + i K = 0: by Routh stable for every mu and every stiffness K where i < c.

The normal is learned from the motion. While the frame touches, it cannot move along the true
normal n*, n* . v = 0, and

    n' = -g (n . v) P v    gives    W = 1 - n . n*,    W' = -g (n . n*) (n . v)^2 <= 0

whatever the friction: within 90 degrees n never gets worse, and gets right where v turns in the
surface. Not proved is the loop as a whole: V's rate below is exact for a measured wrench that acts,
the others hold for a frame that touches a flat and rigid surface.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import casadi as ca
import numpy as np

from framefree.control.law import Command, ControlError, Timing
from framefree.control.shared.allocation import UNITS
from framefree.control.shared.frame_error import FrameError, frame_error, frame_signals
from framefree.control.shared.frames import FrameMotion
from framefree.control.shared.null_space import NullSpaceLaw
from framefree.control.shared.taskspace import TaskSpace
from framefree.machine import Machine
from framefree.machine.part import set_field

Matrix = Any

ORIENTATIONS = ("held", "free")


@dataclass(frozen=True, eq=False)
class HybridControl(NullSpaceLaw):
    """Motion of a frame along a surface, and force against it.

    Needs references "FRAME.pose", "FRAME.twist" and "FRAME.acceleration", of which only what lies
    across the normal is followed, and a `ForceSensor` at the frame.
    Signals: `e` (6), `V`, `V_rate`, `normal` (3), `pressure`, `integral`, `touching`, `margin`,
    `missed`, `unrealised`.

    Parameters
    ----------
    machine : Machine
        Without the surface; with an actuator for every (independent) velocity.
    frame : str
        Whose origin keeps its distance to the surface: a point that touches, or the middle of a
        ball that does.
    force : float
        f_d, N.
    normal : (3,)
        Where n is believed to point, in world axes, out of the surface, of any length.
    stiffness, damping, inertia : number or (2,)
        k, d and h, for translation and rotation: N/m, Nm/rad and so on.
    normal_damping : float
        c, 1/s.
    integral : float
        i, 1/s; less than `normal_damping`.
    integral_limit : float, optional
        Largest |z|, N; by default half of `force`.
    adaptation : float
        g, s/m^2, for learning the normal; 0 keeps it. At a speed v along the surface it is learned
        at about g v^2 (1/s).
    approach : float
        Speed (m/s) along -n until something is felt.
    filter : float
        Time constant (s) of the filter of the wrench, at least one control period.
    touch : float, optional
        Force (N) along n from which on the frame counts as touching; default a tenth of `force`.
    orientation : "held" or "free"
        Whether the frame's rotation follows its reference too.
    sensor : str
        Name of the `ForceSensor`.
    null_damping, null_stiffness, posture, singular, independent, weight, limits :
        See `Impedance`.

    Notes
    -----
    V = h/2 |P y|^2 + k/2 |P e|^2 of translation, and the same of rotation where it is held. V_rate
    is dV/dt of the model exactly, that of a changing normal counted, where the measured wrench is
    the one that acts: -d |P y|^2 and so on while the normal rests.
    """

    machine: Machine
    frame: str
    force: float
    normal: Any
    stiffness: Any
    damping: Any
    inertia: Any
    normal_damping: float = 60.0
    integral: float = 10.0
    integral_limit: Any = None
    adaptation: float = 0.0
    approach: float = 0.02
    filter: float = 0.02
    touch: Any = None
    orientation: str = "held"
    sensor: str = "force"
    null_damping: Any = None
    null_stiffness: Any = None
    posture: Any = None
    singular: float = 0.02
    independent: Any = None
    weight: Any = None
    limits: bool | str = False

    follows_time = True
    units: ClassVar[Mapping[str, str]] = {
        "e": "m, rad",
        "V": "J",
        "V_rate": "W",
        "pressure": "N",
        "integral": "N",
        "missed": "m/s^2, rad/s^2",
        **UNITS,
    }

    def __post_init__(self) -> None:
        self.machine.frame(self.frame)
        if self.orientation not in ORIENTATIONS:
            raise ControlError(f'`orientation` must be "held" or "free", got {self.orientation!r}')
        for name in ("stiffness", "damping", "inertia"):
            set_field(self, name, _pair(getattr(self, name), name))
        normal = np.asarray(self.normal, float)
        if normal.shape != (3,) or not np.isfinite(normal).all() or not normal.any():
            raise ControlError(f"`normal` must be a direction (3), not zero, got {self.normal!r}")
        set_field(self, "normal", normal / np.linalg.norm(normal))
        defaults = {"integral_limit": self.force / 2, "touch": self.force / 10}
        for name, value in defaults.items():
            if getattr(self, name) is None:
                set_field(self, name, value)
        for name in ("force", "normal_damping", "approach", "filter", "touch"):
            _check(name, getattr(self, name), strictly=True)
        for name in ("integral", "integral_limit", "adaptation"):
            _check(name, getattr(self, name), strictly=False)
        if self.integral >= self.normal_damping:
            raise ControlError(
                f"`integral` must be less than `normal_damping`, {self.normal_damping:g} 1/s: on "
                "an elastic surface the force would swing ever more, got "
                f"{self.integral:g} 1/s"
            )
        if self.touch >= self.force:
            raise ControlError(
                f"`touch` must be less than `force`, {self.force:g} N, got {self.touch:g} N"
            )
        if self.rows > self.model.n:
            raise ControlError(
                f"`{self.machine.name}` has {self.model.n} velocities, too few for {self.rows} "
                f"directions of `{self.frame}`"
                + ('; orientation="free" takes three' if self.rows > 3 else "")
            )
        self.check_null_space(self.rows)
        self.allocation.require_full(self.name)

    @property
    def rows(self) -> int:
        """Number of directions of the frame that are prescribed."""
        return 6 if self.orientation == "held" else 3

    @property
    def needs(self) -> tuple[str, ...]:  # type: ignore[override]
        """Names of the reference signals."""
        return frame_signals(self.frame)

    @property
    def measures(self) -> tuple[str, ...]:  # type: ignore[override]
        """Names of the sensors."""
        return (self.sensor,)

    @property
    def memory(self) -> np.ndarray:
        """First memory: z, n, and the filtered wrench."""
        return np.concatenate([[0.0], self.normal, np.zeros(6)])

    def timed(self, timing: Timing) -> "HybridControl":
        """Refuse an integral or a filter that is too fast for a control period and a delay."""
        if self.filter < timing.period:
            raise ControlError(
                f"`filter` must be at least the control period of {timing.period:g} s, got "
                f"{self.filter:g} s"
            )
        # The force of this period is felt, at the earliest, when the next begins.
        delays = timing.delay + 1
        most = 2 * np.sin(np.pi / (2 * (2 * delays + 1)))
        if self.integral * timing.period >= most:
            raise ControlError(
                f"`integral` must be less than {most / timing.period:.4g} 1/s at a control period "
                f"of {timing.period:g} s and a delay of {timing.delay}, got {self.integral:g}"
            )
        return self

    # ------------------------------------------------------------------ the law

    def control(
        self, t: Matrix, x: Matrix, v: Matrix, reference: Mapping[str, Matrix], memory: Matrix
    ) -> Command:
        """Return the inputs, errors, V and V_rate."""
        state = self.model.at(x, v, t)
        E = state.frame(self.frame)
        error = frame_error(E, self.frame, reference)
        now, seen = reference[self.sensor], memory[4:]
        z, n = memory[0], memory[1:4] / ca.norm_2(memory[1:4])
        P = ca.DM.eye(3) - n @ n.T
        pressure, touching = ca.dot(n, E.R @ now[:3]), ca.dot(n, E.R @ seen[:3]) > self.touch

        wanted = self._wanted(E, error, n, P, touching)
        task = TaskSpace(state, error.J[: self.rows, :], self.singular)
        a = task.acceleration(wanted)
        if self.has_null_force:
            a += task.solve_mass(task.unfelt(self.null_force(state, task)))
        F = E.R @ seen[:3]
        pressed = ca.if_else(touching, self.force + z, ca.dot(n, F))
        expected = E.Jv.T @ (P @ F + n * pressed) + E.Jw.T @ (E.R @ seen[3:])
        inputs = self.allocation(state, state.inverse(a) - expected)

        felt = E.Jv.T @ (E.R @ now[:3]) + E.Jw.T @ (E.R @ now[3:])
        missed = wanted - task.J @ (a + task.solve_mass(felt - expected - inputs.unrealised))
        n_rate = ca.if_else(touching, -self.adaptation * ca.dot(n, E.v) * (P @ E.v), ca.SX(3, 1))
        signals = {
            "e": error.e,
            **self._stored(error, n, P, n_rate, missed),
            "normal": n,
            "pressure": pressure,
            "integral": z,
            "touching": touching,
            "margin": task.margin,
            "missed": ca.vertcat(missed, ca.SX(6 - self.rows, 1)),
            **inputs.signals,
        }
        z_rate = ca.if_else(touching, self.integral * (self.force - pressure), 0)
        kept = ca.fmin(ca.fmax(z, -self.integral_limit), self.integral_limit)
        rates = ca.vertcat(z_rate, n_rate, (now - seen) / self.filter)
        return Command(inputs.u, signals, ca.vertcat(kept, n, seen), rates)

    def _wanted(
        self, E: FrameMotion, error: FrameError, n: Matrix, P: Matrix, touching: Matrix
    ) -> Matrix:
        """Return J a that the law asks for: across the normal, along it, and turning."""
        (k, kr), (d, dr), (h, hr) = self.stiffness, self.damping, self.inertia
        speed = ca.dot(n, E.v) + ca.if_else(touching, 0, self.approach)
        across = P @ (error.drift[:3] + (k * error.e[:3] + d * error.y[:3]) / h)
        along = n * (-self.normal_damping * speed - ca.dot(n, E.dv))
        if self.orientation == "free":
            return across + along
        pull = error.L.T @ ca.vertcat(ca.SX(3, 1), kr * error.e[3:])
        return ca.vertcat(across + along, error.drift[3:] + (pull[3:] + dr * error.y[3:]) / hr)

    def _stored(
        self, error: FrameError, n: Matrix, P: Matrix, n_rate: Matrix, missed: Matrix
    ) -> dict[str, Matrix]:
        """V and its rate; P changes by -(n' n^T + n n'^T)."""
        (k, kr), (d, dr), (h, hr) = self.stiffness, self.damping, self.inertia
        e, y = P @ error.e[:3], P @ error.y[:3]
        V = (h * ca.sumsqr(y) + k * ca.sumsqr(e)) / 2
        rate = -d * ca.sumsqr(y) + h * ca.dot(y, missed[:3])
        rate -= h * ca.dot(y, n_rate) * ca.dot(n, error.y[:3])
        rate -= k * ca.dot(e, n_rate) * ca.dot(n, error.e[:3])
        if self.orientation == "held":
            turn, spin = error.e[3:], error.y[3:]
            V += (hr * ca.sumsqr(spin) + kr * ca.sumsqr(turn)) / 2
            rate += -dr * ca.sumsqr(spin) + hr * ca.dot(spin, missed[3:])
        return {"V": V, "V_rate": rate}


def _pair(value: Any, name: str) -> tuple[float, float]:
    numbers = np.asarray(value, float)
    if numbers.shape not in ((), (2,)) or not (np.isfinite(numbers).all() and (numbers > 0).all()):
        raise ControlError(
            f"`{name}` must be a positive number, or two for translation and rotation, got "
            f"{value!r}"
        )
    first, second = np.broadcast_to(numbers, 2).tolist()
    return first, second


def _check(name: str, value: Any, *, strictly: bool) -> None:
    number = np.asarray(value, float)
    bad = number.shape != () or not np.isfinite(number) or number < 0 or (strictly and number == 0)
    if bad:
        least = "positive" if strictly else "not negative"
        raise ControlError(f"`{name}` must be a number, {least}, got {value!r}")
