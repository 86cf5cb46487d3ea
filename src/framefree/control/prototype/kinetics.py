"""The machine at a state, and the inputs whose accelerations come closest to the desired ones.

    min_u 1/2 |a + Mbar^-1 bbar|^2_Mbar    subject to    M a + b = B u

Gauss's principle with the template's inertia. Where the machine is fully actuated the minimum is
zero and the template is the closed loop; elsewhere the inputs do what they can. It is an allocation
(`framefree.control.shared.allocation`) of the force M (-Mbar^-1 bbar) + b, whose remainder r counts
as r . M^-1 Mbar M^-1 r.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import casadi as ca

from framefree.control.qp.factor import SymmetricFactor
from framefree.control.shared.allocation import Allocation
from framefree.motion.constrained.algebra import MassFactor
from framefree.motion.spatial import solve_symmetric
from framefree.motion.state import State
from framefree.rounding import rounding

Matrix = Any

REDUNDANT = rounding(1e-12)
"""Share of the trace that is added to the matrix of the constraint forces."""


@dataclass(frozen=True, eq=False)
class Kinetics:
    """The machine at a state: M a + b = f, and A a = c where loops are closed.

    b holds all but the actuators' joint forces f = B u + bias. With S = A M^-1 A^T the forces of
    the loops leave

        a = P M^-1 (f - b) + M^-1 A^T S^-1 c,    P = 1 - M^-1 A^T S^-1 A
    """

    state: State
    b: Matrix
    B: Matrix
    bias: Matrix
    A: Matrix = None
    c: Matrix = None

    @property
    def M(self) -> Matrix:
        """Mass matrix (nv x nv) of the tree."""
        return self.state.mass

    def _solved(self, force: Matrix) -> Matrix:
        """Return M^-1 force (nv x k)."""
        return self._factor.out(self._factor.into(ca.densify(force)))

    @cached_property
    def _factor(self) -> MassFactor:
        return MassFactor(self.M)

    @cached_property
    def _projector(self) -> "LoopProjector":
        return LoopProjector(self.A, self._solved(self.A.T))

    def kept(self, a: Matrix, c: Matrix | float = 0.0) -> Matrix:
        """Return accelerations (nv x k) brought to A a = c by forces of the loops."""
        return a if self.A is None else self._projector(a, c)

    @cached_property
    def per_input(self) -> Matrix:
        """Accelerations per unit of every input (nv x nu): P M^-1 B."""
        return self.kept(self._solved(self.B))

    def accelerations(self, force: Matrix) -> Matrix:
        """Return a (nv) under joint forces of the actuators (nv)."""
        return self.kept(self._solved(force - self.b), self.c)

    def missing(self, Mbar: Matrix, left: Matrix) -> Matrix:
        """Return the joint forces (nv) that lack where ``Mbar a + bbar`` is left over, not zero.

        That is M times what lacks of the accelerations: of the wanted ones or, with loops, of those
        that the loops allow and that are nearest to them in the metric Mbar.
        """
        if self.A is None:
            return -self.M @ solve_symmetric(Mbar, left)
        solved = solve_symmetric(Mbar, ca.horzcat(left, self.A.T))
        return -self.M @ LoopProjector(self.A, solved[:, 1:])(solved[:, 0])

    def nearest(self, allocation: Allocation, Mbar: Matrix, bbar: Matrix) -> Matrix:
        """Return the optimal inputs (nu); the smallest of them where several do the same."""
        if self.A is None:
            solved = solve_symmetric(Mbar, ca.horzcat(bbar, self.M))
            force, metric = self.b - self.bias - self.M @ solved[:, 0], self.M @ solved[:, 1:]
            return allocation.nearest(self.state, self.B, force, metric)
        # Not every acceleration can be had: they are shared out themselves, in their own metric.
        idle = self.accelerations(self.bias)
        solved = solve_symmetric(Mbar, ca.horzcat(bbar, ca.SX.eye(idle.shape[0])))
        return allocation.nearest(self.state, self.per_input, -idle - solved[:, 0], solved[:, 1:])


class LoopProjector:
    """Brings accelerations to A a = c along X = W^-1 A^T (nv x m): nearest in the metric W."""

    def __init__(self, A: Matrix, X: Matrix) -> None:
        self._A, self._X = A, X
        S = A @ X
        # Rows of loops may say the same twice; a trifle on the diagonal shares the force evenly.
        self._S = SymmetricFactor(S + REDUNDANT * ca.trace(S) * ca.SX.eye(S.shape[0]))

    def __call__(self, a: Matrix, c: Matrix | float = 0.0) -> Matrix:
        """Return the nearest accelerations (nv x k) with A a = c."""
        return a - self._X @ self._S.solve(self._A @ a - c)
