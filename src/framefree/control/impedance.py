"""Impedance of a frame: a spring, a damper and, if wanted, an inertia to its reference [Hogan1985].

The error is `se3.pose_error`, e = (r_d - r, log(R^T R_d)), the velocity error
y = (v_d - v, R_d^T (w_d - w)) with world-axes velocities; de/dt = L y. With F = L^T K e + D y and
the Jacobian J of the frame in the axes of y:

natural inertia   force = g(x) + J^T F + N^T tau,
                  V = 1/2 v . M v + 1/2 e . K e,    dV/dt = -y . D y + (N v) . tau + ...

given inertia H   J a = (what makes) H dy/dt + F = 0,    force = M (a + M^-1 N^T tau) + h
                  V = 1/2 y . H y + 1/2 e . K e,    dV/dt = -y . D y

the first for a constant reference, the second for any. What the frame leaves free is damped and
drawn to a posture in its null space, tau = -D_n N v - K_n (posture), which the frame does not feel:
N = I - M^-1 J^T A^-1 J, A = J M^-1 J^T [Khatib1987].
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import casadi as ca
import numpy as np

from framefree.control.law import Command, ControlError
from framefree.control.shared.allocation import UNITS, Allocated
from framefree.control.shared.frame_error import FrameError, frame_error, frame_signals
from framefree.control.shared.gains import frame_gain, matrix_gain
from framefree.control.shared.model import ModelState
from framefree.control.shared.null_space import NullSpaceLaw
from framefree.control.shared.taskspace import TaskSpace
from framefree.machine import Machine
from framefree.machine.part import set_field
from framefree.machine.values import constant, is_symbolic

Matrix = Any


@dataclass(frozen=True, eq=False)
class Impedance(NullSpaceLaw):
    """Impedance of a frame, with a null space.

    Needs references "FRAME.pose" and "FRAME.twist", and "FRAME.acceleration" with an inertia.
    Signals: `e` (6), `V`, `V_rate`, `margin`, `missed`, `unrealised`.

    Parameters
    ----------
    machine : Machine
        With an actuator for every (independent) velocity.
    frame : str
    stiffness, damping : number, (2,), (6,) or (6, 6)
        K and D. Two numbers are for translation and rotation; translation is in world axes (N/m),
        rotation in those of the frame (Nm/rad). Directions in which both are zero are left free.
    inertia : the same, optional
        H, kg and kg m^2; without, the frame keeps the inertia that the machine has there.
    null_damping : number, (n,), (n, n) or mapping by joint
        Of motions that the frame does not feel; must be given where the machine has such.
    null_stiffness, posture : as null_damping, and (nx,)
        Pull of those motions towards a posture.
    singular : float
        Margin below which directions that the frame loses are damped, see below.
    independent, weight, limits :
        See `Model` and `Allocation`.

    Notes
    -----
    `margin`, between 0 and 1, is what the frame's directions have left of themselves once those
    before them are taken out, in the metric of M: 0 at a singular position. Below `singular` the
    inverse of A is damped; `missed` is the acceleration of the frame that is then not given (m/s^2,
    rad/s^2). Without an inertia nothing is inverted but for the null space.

    V_rate is dV/dt of the model exactly, in all of these cases. It is negative away from singular
    positions and within the limits of inputs; with natural inertia also only for a constant
    reference and without a posture.
    """

    machine: Machine
    frame: str
    stiffness: Any
    damping: Any
    inertia: Any = None
    null_damping: Any = None
    null_stiffness: Any = None
    posture: Any = None
    singular: float = 0.02
    independent: Sequence[str] | None = None
    weight: Any = None
    limits: bool | str = False

    units: ClassVar[Mapping[str, str]] = {
        "e": "m, rad",
        "V": "J",
        "V_rate": "W",
        "missed": "m/s^2, rad/s^2",
        **UNITS,
    }

    def __post_init__(self) -> None:
        self.machine.frame(self.frame)
        for name in ("stiffness", "damping"):
            set_field(self, name, frame_gain(getattr(self, name), name, definite=False))
        rows = self.rows
        if not rows:
            raise ControlError("`stiffness` and `damping` are zero in every direction")
        if not is_symbolic(self.damping):
            matrix_gain(self.damping[np.ix_(rows, rows)], len(rows), "damping")
        if self.inertia is not None:
            set_field(self, "inertia", frame_gain(self.inertia, "inertia", definite=True))
            self._check_rows()
        if not 0 < self.singular < 1:
            raise ControlError(f"`singular` must be between 0 and 1, got {self.singular!r}")
        self.check_null_space(len(self.rows))
        self.allocation.require_full(self.name)

    follows_time = True

    @property
    def needs(self) -> tuple[str, ...]:  # type: ignore[override]
        """Names of the reference signals."""
        signals = frame_signals(self.frame)
        return signals[:2] if self.inertia is None else signals

    @property
    def rows(self) -> list[int]:
        """Directions of the frame that are not left free."""
        gains = [ca.SX(constant(gain)) for gain in (self.stiffness, self.damping)]
        return [k for k in range(6) if not all(gain[k, :].is_zero() for gain in gains)]

    # ------------------------------------------------------------------ checks

    def _check_rows(self) -> None:
        turning = [k for k in self.rows if k >= 3]
        if 0 < len(turning) < 3:
            raise ControlError(
                "with an inertia, rotation is free about all axes or about none: `stiffness` and "
                f"`damping` leave out only {3 - len(turning)} of them"
            )
        if len(self.rows) > self.model.n:
            raise ControlError(
                f"`{self.machine.name}` has {self.model.n} velocities, too few for {len(self.rows)}"
                f" directions of `{self.frame}`: leave out the inertia, or some directions"
            )

    # ------------------------------------------------------------------ the law

    def control(
        self, t: Matrix, x: Matrix, v: Matrix, reference: Mapping[str, Matrix], memory: Matrix
    ) -> Command:
        """Return the inputs, e, V and V_rate."""
        state = self.model.at(x, v, t)
        error = frame_error(state.frame(self.frame), self.frame, reference)
        task = TaskSpace(state, error.J[self.rows, :], self.singular)
        make = self._natural if self.inertia is None else self._shaped
        inputs, signals = make(state, error, task)
        return Command(inputs.u, {"e": error.e, **signals, **inputs.signals})

    def _force(self, error: FrameError) -> Matrix:
        """F = L^T K e + D y (6)."""
        return error.L.T @ (constant(self.stiffness) @ error.e) + constant(self.damping) @ error.y

    def _potential(self, error: FrameError) -> Matrix:
        return ca.dot(error.e, constant(self.stiffness) @ error.e) / 2

    def _natural(self, state: ModelState, error: FrameError, task: TaskSpace) -> "Outcome":
        F, v = self._force(error), state.v
        force = state.holding + error.J.T @ F
        # With y = y_d - J v; for a reference at rest this is -y . D y.
        pull = error.L.T @ (constant(self.stiffness) @ error.e)
        rate = ca.dot(error.J @ v, constant(self.damping) @ error.y) + ca.dot(pull, error.y_d)
        if self.has_null_force:
            tau = self.null_force(state, task)
            force += task.unfelt(tau)
            rate += ca.dot(task.free(v), tau)
        inputs = self.allocation(state, force)
        rate += state.passive_power - ca.dot(v, inputs.unrealised)
        V = state.tree.kinetic + self._potential(error)
        return inputs, {"V": V, "V_rate": rate, "margin": task.margin}

    def _shaped(self, state: ModelState, error: FrameError, task: TaskSpace) -> "Outcome":
        rows = self.rows
        H = ca.DM(self.inertia[np.ix_(rows, rows)])
        F, y = self._force(error)[rows], error.y[rows]
        inverse = ca.DM(np.linalg.inv(self.inertia[np.ix_(rows, rows)]))
        wanted = error.drift[rows] + inverse @ F
        a = task.acceleration(wanted)
        if self.has_null_force:
            a += task.solve_mass(task.unfelt(self.null_force(state, task)))
        inputs = self.allocation(state, state.inverse(a))
        if inputs.unrealised.nnz():
            a -= task.solve_mass(inputs.unrealised)
        missed = wanted - task.J @ a
        V = ca.dot(y, H @ y) / 2 + self._potential(error)
        rate = -ca.dot(y, constant(self.damping)[rows, rows] @ y) + ca.dot(y, H @ missed)
        whole = ca.SX(6, 1)
        whole[rows] = missed
        return inputs, {"V": V, "V_rate": rate, "margin": task.margin, "missed": whole}


Outcome = tuple[Allocated, dict[str, Matrix]]
"""Inputs with what is unrealised, and further signals."""
