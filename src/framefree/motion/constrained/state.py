"""One symbolic state under constraints: acceleration, constraint force, multipliers, on demand."""

from collections.abc import Callable, Sequence
from functools import cached_property
from itertools import pairwise
from typing import TYPE_CHECKING

import casadi as ca
import numpy as np

from framefree.motion.constrained.gauss import ConstrainedSystem
from framefree.motion.constrained.rows import Closed, Constraint, ConstraintRows, stacked
from framefree.motion.constrained.wrenches import loop_loads
from framefree.motion.load import Load
from framefree.motion.spatial import Matrix
from framefree.motion.state import ConstraintError, Jacobian, RelativeMotion, State

if TYPE_CHECKING:
    from framefree.motion.constrained.constrained import Constrained


class ConstrainedState(State):
    """A state of another formulation, with rows ``A a = b`` laid upon it.

    Parameters
    ----------
    equations : Constrained
    base : State
        What the rows are laid upon; all that they do not change is its.
    """

    equations: "Constrained"

    def __init__(self, equations: "Constrained", base: State) -> None:
        self.equations, self.base = equations, base
        self.x, self.v, self.t = base.x, base.v, base.t

    # ------------------------------------------------------------------ of the state below

    @property
    def mass(self) -> Matrix:
        """M (nv x nv)."""
        return self.base.mass

    def inverse(self, a: Matrix) -> Matrix:
        """Return the force (nv) under which the constraints have nothing to do."""
        return self.base.inverse(a)

    @property
    def bias(self) -> Matrix:
        """Force (nv) at zero acceleration."""
        return self.base.bias

    def generalised(self, load: Load) -> Matrix:
        """Return the force on the velocities (nv) that a load amounts to."""
        return self.base.generalised(load)

    @property
    def poses(self) -> list[Matrix]:
        """Pose (4x4) of every body."""
        return self.base.poses

    @property
    def twists(self) -> list[Matrix]:
        """Body twist (6) of every body."""
        return self.base.twists

    def accelerations(self, a: Matrix) -> list[Matrix]:
        """Rate (6) of every body twist under an acceleration a (nv)."""
        return self.base.accelerations(a)

    def jacobian(self, frame: str) -> Jacobian:
        """Return the body Jacobian of a frame (6 x nv), and its rate."""
        return self.base.jacobian(frame)

    def frame_pose(self, frame: str) -> Matrix:
        """Pose (4x4) of a frame seen from the world."""
        return self.base.frame_pose(frame)

    def relative(self, a: str, b: str) -> RelativeMotion:
        """Return frame b seen from frame a."""
        return self.base.relative(a, b)

    @property
    def joint_x(self) -> Matrix:
        """Coordinates of the machine's joints."""
        return self.base.joint_x

    @property
    def joint_v(self) -> Matrix:
        """Velocities of the machine's joints."""
        return self.base.joint_v

    @property
    def joint_jacobian(self) -> Matrix:
        """The matrix with ``joint_v = joint_jacobian v``."""
        return self.base.joint_jacobian

    @property
    def joint_jacobian_rate(self) -> Matrix:
        """Rate of `joint_jacobian`."""
        return self.base.joint_jacobian_rate

    @property
    def coriolis(self) -> Matrix:
        """C (nv x nv) of the state below."""
        return self.base.coriolis

    @property
    def gravity_force(self) -> Matrix:
        """Force (nv) that holds the machine against gravity without help of the constraints."""
        return self.base.gravity_force

    @property
    def kinetic(self) -> Matrix:
        """Kinetic energy (J)."""
        return self.base.kinetic

    @property
    def potential(self) -> Matrix:
        """Potential energy (J)."""
        return self.base.potential

    @property
    def dissipation(self) -> Matrix:
        """Power (W) lost in dampers, friction and drag."""
        return self.base.dissipation

    def power(self, load: Load) -> Matrix:
        """Return the rate of the energy (W): moving constraints may do work."""
        force = self._motion(load).constraint_force
        return self.base.power(load.plus(force=force))

    # ------------------------------------------------------------------ rows

    @cached_property
    def _parts(self) -> list[ConstraintRows]:
        own = [] if self.base.rows is None else [self.base.rows]
        return [*own, *(constraint.rows(self.base) for constraint in self.equations.constraints)]

    @cached_property
    def rows(self) -> ConstraintRows:
        """All rows: those that the state below keeps, of the machine's loops, and of the user."""
        return stacked(self._parts, self.v.shape[0])

    def constraint_errors(self) -> dict[str, ConstraintError]:
        """Return the errors of positions and velocities of all rows."""
        labels, units = self.equations.labels, self.equations.units
        rates = tuple(f"{unit}/s" if unit else "" for unit in units)
        return {
            "position_error": ConstraintError(self.rows.position, labels, units),
            "velocity_error": ConstraintError(self.rows.velocity, labels, rates),
        }

    @cached_property
    def definite_mass(self) -> Matrix:
        """M, or M made definite by the rows."""
        M = self.base.mass
        return M + self._ballast if self.equations.semidefinite else M

    @cached_property
    def _ballast(self) -> Matrix:
        """``A^T W A`` (nv x nv), which makes ``M + A^T W A`` definite if motion is unique at all.

        On ``A a = b`` it adds a constant to ``1/2 a . M a``, so the minimiser stays the same. The
        weights W give every row the size of M's mean diagonal entry.
        """
        A, M = self.rows.A, self.base.mass
        mean = ca.trace(M) / M.shape[0]
        lengths = [ca.sumsqr(A[i, :]) for i in range(A.shape[0])]
        weights = [mean / ca.if_else(length > 0, length, 1) for length in lengths]
        return A.T @ ca.diag(ca.vertcat(ca.SX(0, 1), *weights)) @ A

    def system(self, tolerance: float = 0.0) -> ConstrainedSystem:
        """Return M and A, eliminated along the tree of velocities.

        Rows are dependent up to `tolerance`, and at least up to that of the loops.
        """
        tolerance = max(tolerance, self.equations.rank_tolerance)
        return ConstrainedSystem(self.definite_mass, self.rows.A, self.rows.size, tolerance)

    @cached_property
    def _system(self) -> ConstrainedSystem:
        return self.system()

    # ------------------------------------------------------------------ motion

    def motion(self, force: Matrix) -> "ConstrainedMotion":
        """Return the motion under a force (nv)."""
        return ConstrainedMotion(self, force)

    def _motion(self, load: Load) -> "ConstrainedMotion":
        return self.motion(self.generalised(load))

    def accelerate(self, force: Matrix) -> Matrix:
        """Return the acceleration (nv) under a force."""
        return self.motion(force).a

    def respond(self, force: Matrix) -> Matrix:
        """Return the accelerations (nv x k) for forces where nothing else acts and b is zero."""
        return self.solve(force, ca.SX(self.rows.A.shape[0], force.shape[1]))

    def solve(self, force: Matrix, right: Matrix) -> Matrix:
        """Return a of ``M a = force + A^T lam, A a = right`` (nv x k)."""
        return self._system.solve(force, right)

    def multipliers(self, load: Load) -> Matrix:
        """Return the shortest lam (rows)."""
        return self._motion(load).multipliers

    def split(self, multipliers: Matrix) -> list[tuple[Constraint, ConstraintRows, Matrix]]:
        """Return every constraint with its rows and its part of the multipliers."""
        ends = np.cumsum([0, *(part.A.shape[0] for part in self._parts)]).tolist()
        shares = [multipliers[i:j] for i, j in pairwise(ends)]
        own = len(self._parts) - len(self.equations.constraints)
        return list(zip(self.equations.constraints, self._parts[own:], shares[own:], strict=True))

    def wrenches_of(self, multipliers: Matrix) -> list[Matrix]:
        """Return the wrench (6) of frame a on frame b, in b's axes, of every loop."""
        return [
            constraint.wrench(self.base, share)
            for constraint, _, share in self.split(multipliers)
            if isinstance(constraint, Closed)
        ]

    def loop_wrenches(self, load: Load) -> list[Matrix]:
        """Return the wrench (6) of frame a on frame b of every loop, in b's axes."""
        return [*self.base.loop_wrenches(load), *self.wrenches_of(self.multipliers(load))]

    def joint_wrenches(self, load: Load) -> list[Matrix]:
        """Return what joints carry: loops act on the bodies, other constraints at the joints."""
        motion = self._motion(load)
        others = [c for c in self.equations.constraints if not isinstance(c, Closed)]
        held = load.plus(force=motion.force_of(others), wrenches=self.loads_of(motion.multipliers))
        return self.base.carried_wrenches(motion.a, held)

    def loads_of(self, multipliers: Matrix) -> list[Matrix | None]:
        """Return the wrench (6) on every body that multipliers of loops amount to."""
        pairs = zip(self.equations.closed, self.wrenches_of(multipliers), strict=True)
        return loop_loads(self.base, pairs)

    # ------------------------------------------------------------------ derivatives

    def inverse_slopes(self, a: Matrix) -> tuple[Matrix, Matrix]:
        """Return the slopes (nv x nv) of `inverse` by x and by v."""
        return self.base.inverse_slopes(a)

    def newton_slopes(self, a: Matrix) -> tuple[Matrix, Matrix]:
        """Return slopes as `inverse_slopes` does, near enough for Newton's method."""
        return self.base.newton_slopes(a)

    def forward_slopes(self, force: Matrix) -> tuple[Matrix, Matrix, Matrix]:
        """Return the slopes (nv x nv) of `accelerate` by x, by v and by the force.

        The whole system is differentiated, not the tree below:

            M da = d(force) - d(inverse) + d(A^T) lam + A^T d(lam),      A da = db - dA a
        """
        motion = self.motion(force)
        by_x, by_v = self.base.inverse_slopes(motion.a)
        pull_x, gap_x = self._row_slopes(motion, self.along)
        pull_v, gap_v = self._row_slopes(motion, lambda value: ca.jacobian(value, self.v))
        return (
            self.solve(pull_x - by_x, gap_x),
            self.solve(pull_v - by_v, gap_v),
            self.respond(ca.SX.eye(self.v.shape[0])),
        )

    def _row_slopes(
        self, motion: "ConstrainedMotion", slope: Callable[[Matrix], Matrix]
    ) -> tuple[Matrix, Matrix]:
        """Return the slopes of ``A^T lam`` and ``b - A a`` at fixed a and lam."""
        a, lam = ca.densify(motion.a), ca.densify(motion.multipliers)
        held_a, held_lam = ca.SX.sym("a", a.shape[0]), ca.SX.sym("lam", lam.shape[0])
        rows = self.rows
        slopes = [slope(rows.A.T @ held_lam), slope(rows.stabilised - rows.A @ held_a)]
        pull, gap = ca.substitute(slopes, [held_a, held_lam], [a, lam])
        return pull, gap

    def sensitivity(self, force: Matrix) -> Matrix:
        """Return the slopes (nv x n) of `accelerate` by the machine's n tunable numbers."""
        motion, p = self.motion(force), self.machine.parameters.symbols
        held = ca.SX.sym("held", self.v.shape[0])
        by_p = ca.jacobian(self.base.inverse(held), p)
        by_p = ca.substitute(by_p, held, ca.densify(motion.a))
        pull, gap = self._row_slopes(motion, lambda value: ca.jacobian(value, p))
        return self.solve(pull - by_p, gap)


class ConstrainedMotion:
    """Acceleration of a `ConstrainedState` under a force, and what holds the constraints."""

    def __init__(self, at: ConstrainedState, force: Matrix) -> None:
        self.at, self.force = at, force
        self.free_force = force - at.bias

    @cached_property
    def a(self) -> Matrix:
        """Acceleration (nv): ``a_free + M^-1/2 (A M^-1/2)^+ (b - A a_free)``."""
        return self.at.solve(self.free_force, self.at.rows.stabilised)

    @cached_property
    def constraint_force(self) -> Matrix:
        """``Q_c = M a - Q`` (nv), always with the M that has no ballast (errata E3-5)."""
        return self.at.mass @ self.a - self.free_force

    @cached_property
    def multipliers(self) -> Matrix:
        """Shortest lam (m) with ``A^T lam = Q_c``."""
        return self.at._system.multipliers(self.constraint_force)

    def force_of(self, constraints: Sequence[Constraint]) -> Matrix:
        """Return what some of the constraints add to the force: their ``A^T lam`` (nv)."""
        parts = [
            rows.A.T @ share
            for constraint, rows, share in self.at.split(self.multipliers)
            if constraint in constraints
        ]
        return sum(parts, ca.SX(self.force.shape[0], 1))

    @property
    def rank(self) -> Matrix:
        """Number of rows that count."""
        return self.at._system.rank

    @cached_property
    def residual(self) -> Matrix:
        """Length of ``A a - b``."""
        gap = self.at.rows.A @ self.a - self.at.rows.stabilised
        return ca.sqrt(ca.sumsqr(gap)) if gap.shape[0] else ca.SX(0)
