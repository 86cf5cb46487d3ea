"""One symbolic state under constraints: acceleration, constraint force, multipliers, on demand."""

from collections.abc import Sequence
from functools import cached_property

import casadi as ca

from framefree.motion.constrained_algebra import TOLERANCE, MassFactor, RowSpace
from framefree.motion.constrained_carrier import Carrier, CarrierState
from framefree.motion.constrained_rows import Closed, Constraint, Rows, stacked
from framefree.motion.spatial import Matrix


class ConstraintState:
    """Rows of constraints at a state and time, and the factors that solve with them.

    Parameters
    ----------
    carrier : Carrier
    constraints : sequence of Constraint
    state : CarrierState
    t : time, s
    semidefinite : bool
        Whether M may be singular.
    """

    def __init__(
        self,
        carrier: Carrier,
        constraints: Sequence[Constraint],
        state: CarrierState,
        t: Matrix,
        *,
        semidefinite: bool = False,
    ) -> None:
        self.state, self.t, self._semidefinite = state, ca.SX(t), semidefinite
        self._constraints = constraints
        self._parts = [constraint.rows(carrier, state, self.t) for constraint in constraints]
        self.rows: Rows = stacked(self._parts, carrier.nv)

    @cached_property
    def factor(self) -> MassFactor:
        """Factors of M, or of M made definite by the rows."""
        M = self.state.mass
        return MassFactor(M + self._ballast @ self.rows.A if self._semidefinite else M)

    @cached_property
    def _ballast(self) -> Matrix:
        """``A^T W`` (nv x m) such that ``M + A^T W A`` is definite if motion is unique at all.

        On ``A a = b`` it adds a constant to ``1/2 a . M a`` once Q gains ``A^T W b``, so the
        minimiser stays. The weights W give every row the size of M's mean diagonal entry.
        """
        A, M = self.rows.A, self.state.mass
        mean = ca.trace(M) / M.shape[0]
        lengths = [ca.sumsqr(A[i, :]) for i in range(A.shape[0])]
        weights = [mean / ca.if_else(length > 0, length, 1) for length in lengths]
        return A.T @ ca.diag(ca.vertcat(ca.SX(0, 1), *weights))

    def space(self, tolerance: float = TOLERANCE) -> RowSpace:
        """Return the decomposition of A in the metric of M."""
        return RowSpace(self.rows.A, self.rows.size, self.factor, tolerance)

    def motion(self, force: Matrix) -> "Motion":
        """Return the motion under a force (nv)."""
        return Motion(self, force)

    def loop_wrenches(self, multipliers: Matrix) -> list[Matrix]:
        """Return the wrench (6) of frame a on frame b, in b's axes, of every loop."""
        wrenches, start = [], 0
        for constraint, part in zip(self._constraints, self._parts, strict=True):
            stop = start + part.A.shape[0]
            if isinstance(constraint, Closed):
                wrenches.append(constraint.wrench(self.state, self.t, multipliers[start:stop]))
            start = stop
        return wrenches


class Motion:
    """Acceleration of a `ConstraintState` under a force, and what holds the constraints."""

    def __init__(self, at: ConstraintState, force: Matrix) -> None:
        self.at, self.force = at, force
        self.free_force = force - at.state.bias

    @cached_property
    def space(self) -> RowSpace:
        """Decomposition of A in the metric of M."""
        return self.at.space()

    @cached_property
    def a(self) -> Matrix:
        """Acceleration (nv): ``a_free + M^-1/2 (A M^-1/2)^+ (b - A a_free)``."""
        at, factor, Q = self.at, self.at.factor, self.free_force
        b = at.rows.stabilised
        if at._semidefinite:
            Q = Q + at._ballast @ b
        free = factor.out(factor.into(Q))
        return free + self.space.least(b - at.rows.A @ free)

    @cached_property
    def constraint_force(self) -> Matrix:
        """``Q_c = M a - Q`` (nv), always with the M that has no ballast (errata E3-5)."""
        return self.at.state.mass @ self.a - self.free_force

    @cached_property
    def multipliers(self) -> Matrix:
        """Shortest lam (m) with ``A^T lam = Q_c``."""
        return self.space.multipliers(self.constraint_force)

    @cached_property
    def residual(self) -> Matrix:
        """Length of ``A a - b``."""
        gap = self.at.rows.A @ self.a - self.at.rows.stabilised
        return ca.sqrt(ca.sumsqr(gap)) if gap.shape[0] else ca.SX(0)
