"""Redundant coordinates x with minimal velocities v.

    phi(x) = 0,    dx/dt = A(x) v,    (dphi/dx) A = 0,    rank A = nv

Where phi leaves just the directions of A free (rank dphi/dx = nx - nv), or where the columns of A
commute into each other, they are *integrable*: the velocities belong to coordinates. A wheel that
rolls has velocities that do not; the equations of motion then hold only as far as they rest on
poses and A alone.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import casadi as ca
import numpy as np

from framefree.machine import Machine, MachineError, StateError
from framefree.motion.groups import CoordinateGroup
from framefree.motion.spatial import Matrix, solve_symmetric
from framefree.motion.tangent import Tangent

ON_SURFACE = 1e-6
"""How far phi(x) may be from zero in a valid configuration."""

COMMUTING = 1e-8
"""Share of a bracket of two columns of A outside of their span up to which it counts as none."""

TRIED = 4
"""Number of configurations at which coordinates are checked."""


@dataclass(frozen=True)
class Checked:
    """What a check of coordinates finds: whether the velocities belong to coordinates."""

    integrable: bool


@dataclass(frozen=True)
class Coordinates:
    """Coordinates x (nx) that may depend on each other, and velocities v (nv) that do not.

    Parameters
    ----------
    nx, nv : int
    rate : callable x -> nx x nv
        A(x) with dx/dt = A v: a casadi matrix of a casadi column.
    constraint : callable x -> column, optional
        phi(x); zero exactly on the configuration space. Rows may depend on each other.
    sample : (nx,), optional
        A configuration with phi(x) = 0; by default one is searched for.
    x_names, v_names : sequence of str, optional
        Names; default q0, q1, ... and v0, v1, ....
    """

    nx: int
    nv: int
    rate: Callable[[Matrix], Matrix]
    constraint: Callable[[Matrix], Matrix] | None = None
    sample: Any = None
    x_names: Sequence[str] = ()
    v_names: Sequence[str] = ()

    def __post_init__(self) -> None:
        if not 0 <= self.nv <= self.nx:
            raise MachineError(f"coordinates need 0 <= nv <= nx, got nv={self.nv}, nx={self.nx}")
        shape = ca.SX(self.rate(ca.SX.sym("x", self.nx))).shape
        if shape != (self.nx, self.nv):
            raise MachineError(f"`rate` must return {self.nx} x {self.nv} numbers, got {shape}")
        for field, letter, size in (("x_names", "q", self.nx), ("v_names", "v", self.nv)):
            names = tuple(getattr(self, field)) or tuple(f"{letter}{i}" for i in range(size))
            if len(names) != size or len(set(names)) != size:
                raise MachineError(f"`{field}` must be {size} different names, got {names}")
            object.__setattr__(self, field, names)

    @classmethod
    def moving(
        cls,
        nx: int,
        nv: int,
        velocity: Callable[[Matrix, Matrix], Matrix],
        constraint: Callable[[Matrix], Matrix] | None = None,
        **more: Any,
    ) -> "Coordinates":
        """Return coordinates given by ``dx/dt = velocity(x, v)``, which must be linear in v."""
        symbol = ca.SX.sym("v", nv)

        def rate(x: Matrix) -> Matrix:
            A = ca.jacobian(velocity(x, symbol), symbol)
            if ca.depends_on(A, symbol):
                raise MachineError("`velocity` must be linear in v, but its slope depends on v")
            return A

        return cls(nx, nv, rate, constraint, **more)

    @classmethod
    def on(
        cls,
        constraint: Callable[[Matrix], Matrix],
        sample: Any,
        independent: Sequence[int] | None = None,
        x_names: Sequence[str] = (),
    ) -> "Coordinates":
        """Return coordinates on phi(x) = 0 whose velocities are the rates of independent ones.

        With the Jacobian of phi split into its dependent and independent columns,
        A = (I, -J_dep^-1 J_ind). Where J_dep is singular other coordinates must be chosen.

        Parameters
        ----------
        constraint : callable x -> column
            phi, without rows that depend on others.
        sample : (nx,)
            A configuration with phi(x) = 0.
        independent : sequence of int, optional
            Which coordinates are independent; by default chosen at `sample`.
        x_names : sequence of str, optional
        """
        sample = np.asarray(sample, float)
        x = ca.SX.sym("x", len(sample))
        phi = ca.SX(constraint(x))
        J = ca.jacobian(phi, x)
        numbers = ca.Function("J", [x], [ca.densify(J)])(sample).full()
        rows = phi.shape[0]
        if np.linalg.matrix_rank(numbers) < rows:
            raise MachineError("`constraint` has rows that depend on others at `sample`")
        if independent is None:
            dependent = _pivots(numbers)
        else:
            dependent = [k for k in range(len(sample)) if k not in set(independent)]
        if len(dependent) != rows or np.linalg.matrix_rank(numbers[:, dependent]) < rows:
            raise MachineError(
                f"{len(sample) - rows} coordinates are independent, and phi must determine the "
                f"others; got {list(independent or ())}"
            )
        chosen = [k for k in range(len(sample)) if k not in dependent]
        names = tuple(x_names) or tuple(f"q{k}" for k in range(len(sample)))

        def rate(at: Matrix) -> Matrix:
            J = ca.jacobian(ca.SX(constraint(x)), x)
            A = ca.SX(len(sample), len(chosen))
            A[chosen, :] = ca.SX.eye(len(chosen))
            A[dependent, :] = -ca.solve(J[:, dependent], J[:, chosen])
            return ca.substitute(A, x, ca.densify(ca.SX(at)))

        rates = tuple(names[k] for k in chosen)
        return cls(len(sample), len(chosen), rate, constraint, sample, names, rates)

    @classmethod
    def of_machine(cls, machine: Machine) -> "Coordinates":
        """Return those of a machine; phi holds the lengths of quaternions and (cos, sin) pairs."""

        def constraint(x: Matrix) -> Matrix:
            blocks = [
                x[machine.x_slice[joint.name], :][block, :]
                for joint in machine.joints
                for block in joint.kind.unit_blocks
            ]
            return ca.vertcat(ca.SX(0, 1), *(ca.sumsqr(block) - 1 for block in blocks))

        names = {"x_names": machine.x_names, "v_names": machine.v_names}
        sizes = machine.nx, machine.nv
        return cls(*sizes, machine.rate_matrix, constraint, machine.neutral(), **names)

    def at(self, x: Matrix) -> Tangent:
        """Return the calculus at a symbol x."""
        return Tangent(x, ca.SX(self.rate(x)))

    @cached_property
    def group(self) -> CoordinateGroup:
        """The group that integrators move x on."""
        return CoordinateGroup(lambda x: ca.SX(self.rate(x)))

    def residual(self, x: Matrix) -> Matrix:
        """Return phi(x); an empty column if there is no constraint."""
        return ca.SX(0, 1) if self.constraint is None else ca.SX(self.constraint(x))

    def restore(self, x: Matrix, rounds: int = 1) -> Matrix:
        """Return x after Gauss-Newton steps onto phi = 0, of a casadi column.

        They are damped by the square of the error, so that rows may depend on each other [Fan2005].
        """
        if self.constraint is None:
            return x
        for _ in range(rounds):
            symbol = ca.SX.sym("x", self.nx)
            phi = self.residual(symbol)
            J = ca.jacobian(phi, symbol)
            phi, J = ca.substitute([phi, J], [symbol], [ca.densify(ca.SX(x))])
            squares = J @ J.T
            # The square of the error, not its length, whose slope has no value where it is zero.
            error = ca.sumsqr(phi)
            damping = ca.trace(squares) * (0.1 * error / (1 + error) + 1e-14)
            lengths = squares + damping * ca.DM.eye(phi.shape[0])
            x = x - J.T @ solve_symmetric(lengths, phi)
        return x

    @cached_property
    def nearest(self) -> ca.Function:
        """From x to x after one step onto phi = 0, and the largest residual before it."""
        x = ca.SX.sym("x", self.nx)
        phi = self.residual(x)
        largest = ca.mmax(ca.fabs(phi)) if phi.shape[0] else ca.SX(0)
        return ca.Function("nearest", [x], [self.restore(x), largest])

    def closest(self, x: Any, steps: int = 60) -> np.ndarray:
        """Return the configuration (nx,) on phi = 0 that Newton's method reaches from x."""
        at = np.asarray(x, float)
        for _ in range(steps):
            moved, off = self.nearest(at)
            if not float(off) > 1e-14:
                break
            at = moved.full().ravel()
        if not float(self.nearest(at)[1]) < ON_SURFACE:
            raise StateError(f"no configuration with phi(x) = 0 is reached from {np.asarray(x)}")
        return at

    @cached_property
    def start(self) -> np.ndarray:
        """A configuration (nx,) with phi(x) = 0: the sample, or one that is searched for."""
        if self.sample is not None:
            return np.asarray(self.sample, float)
        rng = np.random.default_rng(0)
        for spread in (0.0, *np.linspace(0.2, 2.0, 20)):
            try:
                return self.closest(spread * rng.normal(size=self.nx))
            except StateError:
                continue
        raise MachineError("no configuration with phi(x) = 0 could be found; give a `sample`")

    def random(self, rng: "np.random.Generator", size: float = 1.0) -> np.ndarray:
        """Return a configuration (nx,) on phi = 0 near `start`, moved along A."""
        x = ca.SX.sym("x", self.nx)
        A = ca.Function("A", [x], [ca.densify(ca.SX(self.rate(x)))])
        at = self.start
        for _ in range(10):
            at = self.closest(at + A(at).full() @ (0.1 * size * rng.normal(size=self.nv)))
        return at

    def check(self) -> Checked:
        """Check phi, A and their ranks at several configurations.

        Raises
        ------
        MachineError
            Where (dphi/dx) A is not zero, A has not full rank, or phi leaves more directions free
            than A has although A is integrable: then phi misses rows.
        """
        rng = np.random.default_rng(0)
        at = [self.start, *(self.random(rng) for _ in range(TRIED - 1))]
        try:
            self._validate(at[0])
            brackets = max(self._bracket(x) for x in at)
            free = [self._validate(x) for x in at[1:]]
        except StateError as error:
            raise MachineError(f"the coordinates are not consistent: {error}") from None
        if brackets > COMMUTING:
            return Checked(integrable=False)
        if max(free, default=self.nv) > self.nv:
            raise MachineError(
                f"phi leaves {max(free)} directions free, but there are nv = {self.nv} velocities "
                "whose directions belong to coordinates: phi misses rows"
            )
        return Checked(integrable=True)

    def validate(self, x: np.ndarray) -> None:
        """Raise `StateError` unless x is on phi = 0 and A is a basis of the tangent space there."""
        free = self._validate(np.asarray(x, float))
        if free != self.nv:
            raise StateError(
                f"the rank of dphi/dx must be nx - nv = {self.nx - self.nv}, got {self.nx - free}"
            )

    @cached_property
    def _numbers(self) -> ca.Function:
        """From x to phi, A, dphi/dx, and the brackets of all pairs of columns of A."""
        x = ca.SX.sym("x", self.nx)
        phi, A = self.residual(x), ca.SX(self.rate(x))
        slopes = [ca.jacobian(A[:, j], x) @ A for j in range(self.nv)]
        pairs = [
            slopes[j][:, i] - slopes[i][:, j] for i in range(self.nv) for j in range(i + 1, self.nv)
        ]
        brackets = ca.horzcat(ca.SX(self.nx, 0), *pairs)
        outputs = [phi, A, ca.jacobian(phi, x), brackets]
        return ca.Function("coordinates", [x], [ca.densify(out) for out in outputs])

    def on_surface(self, x: np.ndarray) -> None:
        """Raise `StateError` unless x is finite and phi(x) = 0."""
        if np.shape(x) != (self.nx,) or not np.isfinite(x).all():
            raise StateError(f"`x` must be {self.nx} finite numbers, got shape {np.shape(x)}")
        off = float(self.nearest(x)[1])
        if not off < ON_SURFACE:
            raise StateError(f"`x` must fulfil phi(x) = 0, but the largest residual is {off:.3g}")

    def _validate(self, x: np.ndarray) -> int:
        """Check phi, (dphi/dx) A and the rank of A; return how many directions phi leaves free."""
        self.on_surface(x)
        _, A, slope, _ = (out.full() for out in self._numbers(x))
        leaving = float(np.abs(slope @ A).max(initial=0))
        sizes = np.abs(slope).max(initial=0) * np.abs(A).max(initial=0)
        if not leaving <= ON_SURFACE * max(1e-300, float(sizes)):
            raise StateError(f"(dphi/dx) A must be zero, but its largest entry is {leaving:.3g}")
        ranks = [int(np.linalg.matrix_rank(m)) if m.size else 0 for m in (A, slope)]
        if ranks[0] != self.nv:
            raise StateError(f"the rank of A must be nv = {self.nv}, got {ranks[0]}")
        return self.nx - ranks[1]

    def _bracket(self, x: np.ndarray) -> float:
        """Return how far brackets of columns of A leave their span, relative to their length."""
        _, A, _, brackets = (out.full() for out in self._numbers(x))
        if not brackets.size:
            return 0.0
        rest = brackets - A @ np.linalg.lstsq(A, brackets, rcond=None)[0]
        size = max(float(np.abs(brackets).max()), float(np.abs(A).max()) ** 2, 1e-300)
        return float(np.abs(rest).max()) / size

    def named(self, x_names: Sequence[str], v_names: Sequence[str]) -> "Coordinates":
        """Return the same with other names."""
        return replace(self, x_names=x_names, v_names=v_names)


def _pivots(J: np.ndarray) -> list[int]:
    """Return columns of J, as many as it has rows, that are far from depending on each other."""
    rest, taken = J.copy(), []
    for _ in range(len(J)):
        lengths = np.linalg.norm(rest, axis=0)
        best = int(np.argmax(lengths))
        taken.append(best)
        direction = rest[:, best] / lengths[best]
        rest = rest - np.outer(direction, direction @ rest)
    return sorted(taken)
