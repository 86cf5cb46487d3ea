"""Constraints as rows ``A a = b``, from loops, couplings and the user.

Each constraint has an error that must stay zero. With position error phi(x, t) and velocity error
eta(x, v, t), whose rate is ``d/dt eta = A a - b``:

    holonomic      phi(x, t) = 0,  eta = d/dt phi
    nonholonomic   eta(x, v, t) = 0
    acceleration   A and b given, no error

Loops compare poses. Their velocity error is N^T xi_E, the blocked part of the twist of frame b
relative to where it belongs, and their position error lies on the group: (R^T p, log R) for a weld.
With ``error="residual"`` eta is instead the exact rate of the residual (classical Baumgarte); where
the loop is closed both are the same.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import casadi as ca
import numpy as np

from framefree.geometry import se3
from framefree.machine import Coupling, Loop, Machine, MachineError
from framefree.machine.part import checked_name
from framefree.motion.equations import Equations
from framefree.motion.spatial import Matrix
from framefree.motion.state import RelativeMotion, State


class ConstraintRows(NamedTuple):
    """Rows of one or several constraints at a state; m rows, nv velocities.

    Attributes
    ----------
    A, b
        ``A a = b`` (m x nv, m), nothing stabilised.
    rate
        dA/dt (m x nv) where b = -dA/dt v; None if b is given otherwise.
    velocity, position
        Errors eta and phi (m each); zero where the constraint has none.
    gradient
        d(phi)/dt = gradient v + ... (m x nv); zero where there is no position error.
    size
        Squares of what the lengths of the rows of A are compared with to tell them from rounding
        errors (m).
    gains
        Position and velocity gain of every row (m x 2).
    """

    A: Matrix
    b: Matrix
    rate: Matrix | None
    velocity: Matrix
    position: Matrix
    gradient: Matrix
    size: Matrix
    gains: np.ndarray

    @property
    def stabilised(self) -> Matrix:
        """``b - kd eta - kp phi`` (m)."""
        return self.b - self.gains[:, 1] * self.velocity - self.gains[:, 0] * self.position


@dataclass(frozen=True)
class Stabilisation:
    """Pulls errors to zero: ``d/dt eta + velocity eta + position phi = 0``.

    Parameters
    ----------
    position, velocity : float
        Gains, 1/s^2 and 1/s.
    error : "group" or "residual"
        What the velocity error of a loop is; see the top of this file.
    """

    position: float = 0.0
    velocity: float = 0.0
    error: str = "group"

    def __post_init__(self) -> None:
        for name in ("position", "velocity"):
            value = getattr(self, name)
            if not np.isfinite(value) or value < 0:
                raise MachineError(f"`{name}` of a stabilisation must not be negative, got {value}")
        if self.error not in ("group", "residual"):
            raise MachineError(
                f'`error` of a stabilisation must be "group" or "residual", got {self.error!r}'
            )

    @classmethod
    def critical(cls, rate: float, error: str = "group") -> "Stabilisation":
        """Return gains under which errors decay critically damped at this rate, 1/s."""
        return cls(rate**2, 2 * rate, error)


@dataclass(frozen=True, eq=False)
class Constraint(ABC):
    """Base of all constraints: a name, own gains if any, and the rows at a state."""

    name: str
    gains: Stabilisation | None = field(default=None, kw_only=True)

    def __post_init__(self) -> None:
        checked_name(self.name, "a constraint")

    @abstractmethod
    def size(self, equations: Equations) -> int:
        """Return the number of rows."""

    @abstractmethod
    def rows(self, state: State) -> ConstraintRows:
        """Return the rows at a state and its time."""

    def labels(self, equations: Equations) -> tuple[str, ...]:
        """Return a name for every row."""
        size = self.size(equations)
        return (self.name,) if size == 1 else tuple(f"{self.name}[{i}]" for i in range(size))

    def units(self, size: int) -> tuple[str, ...]:
        """Return the units of the position errors; empty where they are the user's own."""
        return ("",) * size

    def _gains(self, size: int) -> np.ndarray:
        gains = self.gains or Stabilisation()
        return np.tile([gains.position, gains.velocity], (size, 1))


@dataclass(frozen=True, eq=False)
class Holonomic(Constraint):
    """``phi(x, t) = 0``.

    Parameters
    ----------
    name : str
    phi : callable
        From casadi columns x (nx) and t (1) to the errors, one or a column of them.
    gains : Stabilisation, optional
    """

    phi: Callable[[Any, Any], Any]

    def size(self, equations: Equations) -> int:
        """Return the number of rows."""
        x, _, t = _symbols(equations)
        return _column(self.phi(x, t), self.name).shape[0]

    def rows(self, state: State) -> ConstraintRows:
        """Return the rows at a state and its time."""
        x, v, time = _symbols(state.equations)
        velocity = state.equations.rate_matrix(x) @ v
        phi = _column(self.phi(x, time), self.name)
        eta = ca.jtimes(phi, x, velocity) + ca.jacobian(phi, time)
        A, b = _differentiated(eta, x, v, time, velocity)
        rate = ca.reshape(ca.jtimes(ca.vec(A), x, velocity), *A.shape)
        timeless = not ca.depends_on(phi, time)
        outputs = [A, b, rate, eta, phi]
        A, b, rate, eta, phi = _substituted(outputs, [x, v, time], [state.x, state.v, state.t])
        m = phi.shape[0]
        return ConstraintRows(
            A,
            b,
            rate if timeless else None,
            eta,
            phi,
            A,
            _lengths(A),
            self._gains(m),
        )


@dataclass(frozen=True, eq=False)
class Nonholonomic(Constraint):
    """``eta(x, v, t) = 0``, such as rolling without slipping.

    Parameters
    ----------
    name : str
    eta : callable
        From casadi columns x (nx), v (nv) and t (1) to the errors, one or a column of them.
    gains : Stabilisation, optional
        Only the velocity gain acts.
    """

    eta: Callable[[Any, Any, Any], Any]

    def size(self, equations: Equations) -> int:
        """Return the number of rows."""
        return _column(self.eta(*_symbols(equations)), self.name).shape[0]

    def rows(self, state: State) -> ConstraintRows:
        """Return the rows at a state and its time."""
        x, v, time = _symbols(state.equations)
        eta = _column(self.eta(x, v, time), self.name)
        A, b = _differentiated(eta, x, v, time, state.equations.rate_matrix(x) @ v)
        A, b, eta = _substituted([A, b, eta], [x, v, time], [state.x, state.v, state.t])
        m, nv = A.shape
        none, zero = ca.SX(m, nv), ca.SX(m, 1)
        return ConstraintRows(A, b, None, eta, zero, none, _lengths(A), self._gains(m))


@dataclass(frozen=True, eq=False)
class Acceleration(Constraint):
    """``A(x, v, t) a = b(x, v, t)`` as given.

    Parameters
    ----------
    name : str
    terms : callable
        From casadi columns x (nx), v (nv) and t (1) to A (m x nv) and b (m).
    """

    terms: Callable[[Any, Any, Any], tuple[Any, Any]]

    def size(self, equations: Equations) -> int:
        """Return the number of rows."""
        return ca.SX(self.terms(*_symbols(equations))[0]).shape[0]

    def rows(self, state: State) -> ConstraintRows:
        """Return the rows at a state and its time."""
        x, v, time = _symbols(state.equations)
        A, b = (ca.SX(value) for value in self.terms(x, v, time))
        if A.shape != (b.shape[0], v.shape[0]) or b.shape[1] != 1:
            raise MachineError(
                f"constraint `{self.name}` must give A (m x {v.shape[0]}) and b (m x 1), got "
                f"{A.shape} and {b.shape}"
            )
        A, b = _substituted([A, b], [x, v, time], [state.x, state.v, state.t])
        m, nv = A.shape
        zero = ca.SX(m, 1)
        none = ca.SX(m, nv)
        return ConstraintRows(A, b, None, zero, zero, none, _lengths(A), self._gains(m))


@dataclass(frozen=True, eq=False)
class Closed(Constraint):
    """A loop, or a loop that is driven: its rest pose moves with time.

    Parameters
    ----------
    name : str
    loop : Loop
    rest : callable, optional
        From time t (casadi) to the pose (4x4) that counts as closed, in place of the loop's own.
        Not for a loop of kind distance.
    gains : Stabilisation, optional
    """

    loop: Loop
    rest: Callable[[Any], Any] | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if not isinstance(self.loop, Loop):
            raise MachineError(f"constraint `{self.name}` needs a Loop, got {self.loop!r}")
        if self.rest is not None and self.loop.kind == "distance":
            raise MachineError(f"constraint `{self.name}`: a distance has no rest pose to move")

    def size(self, equations: Equations) -> int:
        """Return the number of rows."""
        return self.loop.size

    def rows(self, state: State) -> ConstraintRows:
        """Return the rows at a state and its time."""
        frames = self._frames(state)
        J, dJ = frames.jacobian
        loop, E, drift, drift_rate = self._from_rest(frames.G, state.t)
        # Twist relative to where b belongs, and its rate at a = 0.
        xi = J @ state.v - drift
        xi_rate = dJ @ state.v - drift_rate + se3.little_adjoint(xi) @ drift
        exact, exact_rate = _residual_jacobian(loop, E, xi)
        N, dN = (
            (exact, exact_rate) if self._by_residual else (_blocked(loop, E), ca.SX(loop.size, 6))
        )
        m = loop.size
        return ConstraintRows(
            N @ J,
            -(N @ xi_rate + dN @ xi),
            N @ dJ + dN @ J if self.rest is None else None,
            N @ xi,
            ca.SX(loop.residual(E)),
            exact @ J,
            _lengths(N) * frames.size,
            self._gains(m),
        )

    def units(self, size: int) -> tuple[str, ...]:
        """Return the units of the position errors: m first, then rad."""
        linear = {"slider": 2, "distance": 1}.get(self.loop.kind, 3)
        return ("m",) * linear + ("rad",) * (size - linear)

    def wrench(self, state: State, multipliers: Matrix) -> Matrix:
        """Return the wrench (6) that frame a exerts on frame b through the loop, in b's axes."""
        loop, E, drift, _ = self._from_rest(self._frames(state).G, state.t)
        N = _residual_jacobian(loop, E, drift)[0] if self._by_residual else _blocked(loop, E)
        return N.T @ multipliers

    @property
    def _by_residual(self) -> bool:
        error = self.gains.error if self.gains is not None else "group"
        return self.loop.kind == "distance" or error == "residual"

    def _frames(self, state: State) -> RelativeMotion:
        return state.relative(self.loop.frame_a, self.loop.frame_b)

    def _from_rest(self, G: Matrix, t: Matrix) -> tuple[Loop, Matrix, Matrix, Matrix]:
        """Return the loop, the pose it judges, and the rest's twist and its rate in b's axes."""
        zero = ca.SX(6, 1)
        if self.rest is None:
            return self.loop, G, zero, zero
        time = ca.SX.sym("t")
        rest = ca.SX(self.rest(time))
        if rest.shape != (4, 4):
            raise MachineError(
                f"`rest` of constraint `{self.name}` must give a 4x4 pose, got {rest.shape}"
            )
        velocity = ca.reshape(ca.jacobian(ca.vec(rest), time), 4, 4)
        twist = se3.vee(se3.inverse(rest) @ velocity)
        outputs = [rest, twist, ca.jacobian(twist, time)]
        rest, twist, twist_rate = _substituted(outputs, [time], [t])
        E = se3.compose(se3.inverse(rest), G)
        carried = se3.adjoint(se3.inverse(E))
        loop = replace(self.loop, rest=None)
        return loop, E, carried @ twist, carried @ twist_rate


def of_machine(machine: Machine, gains: Stabilisation | None) -> list[Constraint]:
    """Return the constraints that a machine's loops and couplings are."""
    loops = [Closed(loop.name, loop, gains=gains) for loop in machine.loops]
    return [*loops, *(of_coupling(machine, coupling, gains) for coupling in machine.couplings)]


def of_coupling(machine: Machine, coupling: Coupling, gains: Stabilisation | None) -> Holonomic:
    """Return ``target - law(sources) = 0``."""
    target, *sources = (machine.x_names.index(name) for name in coupling.coordinates)

    def error(x: Matrix, t: Matrix) -> Matrix:
        return x[target] - coupling.value(*(x[k] for k in sources))

    return Holonomic(coupling.name, error, gains=gains)


def stacked(parts: list[ConstraintRows], nv: int) -> ConstraintRows:
    """Return the rows of several constraints as one."""
    if not parts:
        none, zero = ca.SX(0, nv), ca.SX(0, 1)
        return ConstraintRows(none, zero, none, zero, zero, none, zero, np.zeros((0, 2)))
    rates: list[Any] = [part.rate for part in parts]
    A, b, _, velocity, position, gradient, size, gains = zip(*parts, strict=True)
    return ConstraintRows(
        ca.vertcat(*A),
        ca.vertcat(*b),
        None if any(rate is None for rate in rates) else ca.vertcat(*rates),
        ca.vertcat(*velocity),
        ca.vertcat(*position),
        ca.vertcat(*gradient),
        ca.vertcat(*size),
        np.vstack(gains),
    )


def _residual_jacobian(loop: Loop, E: Matrix, xi: Matrix) -> tuple[Matrix, Matrix]:
    """Return the Jacobian (k x 6) of a loop's residual and its rate at twist xi."""
    pose, twist = ca.SX.sym("E", 4, 4), ca.SX.sym("xi", 6)
    jacobian = ca.densify(ca.SX(loop.jacobian(pose)))
    rate = ca.jtimes(ca.vec(jacobian), ca.vec(pose), ca.vec(pose @ se3.wed(twist)))
    outputs = [jacobian, ca.reshape(rate, *jacobian.shape)]
    value, rate = _substituted(outputs, [pose, twist], [E, xi])
    return value, rate


def _blocked(loop: Loop, E: Matrix) -> Matrix:
    """Return the blocked directions (k x 6), one a row."""
    return ca.SX(loop.blocked(E)).T


def _symbols(equations: Equations) -> tuple[Matrix, Matrix, Matrix]:
    sizes = equations.sizes
    return ca.SX.sym("x", sizes["x"]), ca.SX.sym("v", sizes["v"]), ca.SX.sym("t")


def _differentiated(
    eta: Matrix, x: Matrix, v: Matrix, t: Matrix, velocity: Matrix
) -> tuple[Matrix, Matrix]:
    """Return A and b with ``d/dt eta = A a - b``."""
    return ca.jacobian(eta, v), -(ca.jtimes(eta, x, velocity) + ca.jacobian(eta, t))


def _substituted(
    outputs: list[Matrix], symbols: list[Matrix], values: list[Matrix]
) -> list[Matrix]:
    return ca.substitute(outputs, symbols, [ca.densify(ca.SX(value)) for value in values])


def _lengths(A: Matrix) -> Matrix:
    """Squared length of every row: rows that are given are never taken for rounding errors."""
    return ca.vertcat(ca.SX(0, 1), *(ca.sumsqr(A[i, :]) for i in range(A.shape[0])))


def _column(value: Any, name: str) -> Matrix:
    value = ca.SX(value)
    if value.shape[1] != 1:
        raise MachineError(
            f"the error of constraint `{name}` must be a column, got shape {value.shape}"
        )
    return value
