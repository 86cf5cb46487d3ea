"""All rows of equal right, by the saddle-point equations."""

from dataclasses import dataclass

from framefree.control.qp.factor import SymmetricFactor
from framefree.control.tasks.solvers.base import (
    Matrix,
    RowSteps,
    Solver,
    TaskProblem,
    stacked,
    together,
    with_rows,
)
from framefree.motion.constrained.algebra import MassFactor


@dataclass(frozen=True)
class Kkt(Solver):
    """The acceleration from ``[M A^T; A 0] (a, -lam) = (Q, b)``, by its complement A M^-1 A^T.

    The same acceleration as `UdwadiaKalaba` in half the operations, where b is in the range of A:
    rows whose pivot is rounding are left out. It squares the condition number of the rows, and
    among rows that contradict each other the first ones win. In single precision pivots of rows
    that depend on others are not told from small ones in some states: take `UdwadiaKalaba` there.

    Parameters
    ----------
    semidefinite : bool
        Whether the mass matrix may be singular; [M; A] must not.
    tolerance : float
        Pivot, relative to its row, below which the row counts as dependent on those before.
    """

    semidefinite: bool = False
    tolerance: float = 1e-12

    def acceleration(self, problem: TaskProblem) -> Matrix:
        """Return a (n)."""
        levels = problem.all_levels
        M = with_rows(problem.M, levels) if self.semidefinite else problem.M
        rows = stacked(levels, M.shape[0])
        factor = MassFactor(M)
        free = factor.into(problem.Q)
        Y = factor.into(rows.A.T)
        lam = SymmetricFactor(Y.T @ Y, drop=self.tolerance).solve(rows.b - Y.T @ free)
        return factor.out(free + Y @ lam)

    def steps(self, problem: TaskProblem) -> RowSteps:
        """Return all rows as one step; pivots are squares of shares."""
        return together(problem, self.semidefinite, self.tolerance**0.5)
