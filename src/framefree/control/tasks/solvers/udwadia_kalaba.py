"""All rows of equal right, in closed form."""

from dataclasses import dataclass

from framefree.control.tasks.solvers.base import (
    Matrix,
    RowSteps,
    Solver,
    TaskProblem,
    nearest,
    together,
    with_rows,
)
from framefree.motion.constrained.algebra import TOLERANCE


@dataclass(frozen=True)
class UdwadiaKalaba(Solver):
    """The acceleration of [Udwadia1992] for the rows of all levels together.

        a = a_free + M^-1/2 (A M^-1/2)^+ (b - A a_free)

    Rows that depend on others are left out, rows that contradict each other are met in the sense
    of least squares.

    Parameters
    ----------
    semidefinite : bool
        Whether the mass matrix may be singular; [M; A] must not.
    tolerance : float
        Share of a row, left after those before it, below which it counts as dependent.
    """

    semidefinite: bool = False
    tolerance: float = TOLERANCE

    def acceleration(self, problem: TaskProblem) -> Matrix:
        """Return a (n)."""
        levels = problem.all_levels
        M = with_rows(problem.M, levels) if self.semidefinite else problem.M
        return nearest(M, problem.Q, levels, self.tolerance)[0]

    def steps(self, problem: TaskProblem) -> RowSteps:
        """Return all rows as one step."""
        return together(problem, self.semidefinite, self.tolerance)
