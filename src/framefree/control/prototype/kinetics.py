"""The machine at a state, and the inputs whose accelerations come closest to the desired ones.

    min_u 1/2 |a + Mbar^-1 bbar|^2_Mbar    subject to    M a + b = B u

Gauss's principle with the template's inertia. Where the machine is fully actuated the minimum is
zero and the template is the closed loop; elsewhere the inputs do what they can. It is an allocation
(`framefree.control.allocation`) of the force M (-Mbar^-1 bbar) + b, whose remainder r counts as
r . M^-1 Mbar M^-1 r.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import casadi as ca

from framefree.control.allocation import Allocation
from framefree.motion.spatial import solve_symmetric
from framefree.motion.tree.state import TreeState

Matrix = Any

REDUNDANT = 1e-12
"""Share of the trace that is added to the matrix of the constraint forces."""


@dataclass(frozen=True, eq=False)
class Kinetics:
    """The machine at a state: M a + b = B u, and A a = c where loops are closed.

    With S = A M^-1 A^T the accelerations are a = N u - m,

        N = (1 - M^-1 A^T S^-1 A) M^-1 B,    m = M^-1 b - M^-1 A^T S^-1 (A M^-1 b + c)
    """

    state: TreeState
    b: Matrix
    B: Matrix
    A: Matrix | None = None
    c: Matrix | None = None

    @property
    def M(self) -> Matrix:
        """Mass matrix (nv x nv) of the tree."""
        return self.state.mass

    @cached_property
    def solved(self) -> tuple[Matrix, Matrix]:
        """N (nv x nu) and m (nv)."""
        if self.A is None:
            return solve_symmetric(self.M, self.B), solve_symmetric(self.M, self.b)
        free = solve_symmetric(self.M, ca.horzcat(self.B, self.b, self.A.T))
        nu = self.B.shape[1]
        N, m, across = free[:, :nu], free[:, nu], free[:, nu + 1 :]
        S = self.A @ across
        # Rows of loops may say the same twice; a trifle on the diagonal shares the force evenly.
        S = S + REDUNDANT * ca.trace(S) * ca.SX.eye(S.shape[0])
        held = solve_symmetric(S, ca.horzcat(self.A @ N, self.A @ m + self.c))
        return N - across @ held[:, :nu], m - across @ held[:, nu]

    def accelerations(self, u: Matrix) -> Matrix:
        """Return N u - m."""
        N, m = self.solved
        return N @ u - m

    def nearest(self, allocation: Allocation, Mbar: Matrix, bbar: Matrix) -> Matrix:
        """Return the optimal inputs (nu); the smallest of them where several do the same."""
        if self.A is None:
            found = solve_symmetric(Mbar, ca.horzcat(bbar, self.M))
            force, metric = self.b - self.M @ found[:, 0], self.M @ found[:, 1:]
            return allocation.nearest(self.state, self.B, force, metric).u
        # Not every acceleration can be had: they are shared out themselves, in their own metric.
        N, m = self.solved
        found = solve_symmetric(Mbar, ca.horzcat(bbar, ca.SX.eye(m.shape[0])))
        return allocation.nearest(self.state, N, m - found[:, 0], found[:, 1:]).u
