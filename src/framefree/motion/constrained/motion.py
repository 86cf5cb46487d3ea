"""One symbolic state under constraints: acceleration, constraint force, multipliers, on demand."""

from collections.abc import Sequence
from functools import cached_property
from itertools import pairwise

import casadi as ca
import numpy as np

from framefree.motion.constrained.algebra import TOLERANCE, MassFactor, RowSpace
from framefree.motion.constrained.carrier import Carrier, CarrierState
from framefree.motion.constrained.rows import Closed, Constraint, Rows, stacked
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
        return MassFactor(M + self._ballast if self._semidefinite else M)

    @cached_property
    def _ballast(self) -> Matrix:
        """``A^T W A`` (nv x nv), which makes ``M + A^T W A`` definite if motion is unique at all.

        On ``A a = b`` it adds a constant to ``1/2 a . M a``, so the minimiser stays the same. The
        weights W give every row the size of M's mean diagonal entry.
        """
        A, M = self.rows.A, self.state.mass
        mean = ca.trace(M) / M.shape[0]
        lengths = [ca.sumsqr(A[i, :]) for i in range(A.shape[0])]
        weights = [mean / ca.if_else(length > 0, length, 1) for length in lengths]
        return A.T @ ca.diag(ca.vertcat(ca.SX(0, 1), *weights)) @ A

    def space(self, tolerance: float = TOLERANCE) -> RowSpace:
        """Return the decomposition of A in the metric of M."""
        return RowSpace(self.rows.A, self.rows.size, self.factor, tolerance)

    def motion(self, force: Matrix) -> "Motion":
        """Return the motion under a force (nv)."""
        return Motion(self, force)

    def split(self, multipliers: Matrix) -> list[tuple[Constraint, Rows, Matrix]]:
        """Return every constraint with its rows and its part of the multipliers."""
        ends = np.cumsum([0, *(part.A.shape[0] for part in self._parts)]).tolist()
        shares = [multipliers[i:j] for i, j in pairwise(ends)]
        return list(zip(self._constraints, self._parts, shares, strict=True))

    def loop_wrenches(self, multipliers: Matrix) -> list[Matrix]:
        """Return the wrench (6) of frame a on frame b, in b's axes, of every loop."""
        return [
            constraint.wrench(self.state, self.t, share)
            for constraint, _, share in self.split(multipliers)
            if isinstance(constraint, Closed)
        ]


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
        rows, factor = self.at.rows, self.at.factor
        free = factor.out(factor.into(self.free_force))
        return free + self.space.least(rows.stabilised - rows.A @ free)

    @cached_property
    def constraint_force(self) -> Matrix:
        """``Q_c = M a - Q`` (nv), always with the M that has no ballast (errata E3-5)."""
        return self.at.state.mass @ self.a - self.free_force

    @cached_property
    def multipliers(self) -> Matrix:
        """Shortest lam (m) with ``A^T lam = Q_c``."""
        return self.space.multipliers(self.constraint_force)

    def force_of(self, constraints: Sequence[Constraint]) -> Matrix:
        """Return what some of the constraints add to the force: their ``A^T lam`` (nv)."""
        parts = [
            rows.A.T @ share
            for constraint, rows, share in self.at.split(self.multipliers)
            if constraint in constraints
        ]
        return sum(parts, ca.SX(self.force.shape[0], 1))

    @cached_property
    def residual(self) -> Matrix:
        """Length of ``A a - b``."""
        gap = self.at.rows.A @ self.a - self.at.rows.stabilised
        return ca.sqrt(ca.sumsqr(gap)) if gap.shape[0] else ca.SX(0)
