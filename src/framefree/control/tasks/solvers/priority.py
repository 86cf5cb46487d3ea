"""Levels in strict order: each does what it can without disturbing those above."""

from dataclasses import dataclass

import casadi as ca

from framefree.control.tasks.solvers.base import Matrix, RowSteps, Solver, TaskProblem, with_rows
from framefree.motion.constrained.algebra import MassFactor, RowSpace


@dataclass(frozen=True)
class StrictPriority(Solver):
    """Each level is met as well as it can be in the null space of all levels above it.

    With W W^T = M^-1, Y_k = A_k W and N_k the projector off the rows of levels before k:

        z <- z + (Y_k N_k)^+ (b_k - A_k a_free - Y_k z),    a = a_free + W z

    Parameters
    ----------
    semidefinite : bool
        Whether the mass matrix may be singular; [M; A_1; A_2; ...] must not.
    tolerance : float
        Share of a row, left after the levels above, below which it is given up.
    """

    semidefinite: bool = False
    tolerance: float = 1e-6

    def acceleration(self, problem: TaskProblem) -> Matrix:
        """Return a (n)."""
        levels = problem.all_levels
        factor = MassFactor(with_rows(problem.M, levels) if self.semidefinite else problem.M)
        free = factor.into(problem.Q)
        z, basis = ca.SX(problem.M.shape[0], 1), []
        for level in levels:
            Y = factor.into(level.A.T)
            space = RowSpace.beside(basis, Y, self.tolerance)
            z = z + space.least(level.b - Y.T @ (free + z))
            basis += space.basis
        return factor.out(free + z)

    def steps(self, problem: TaskProblem) -> RowSteps:
        """Return a step for each level."""
        M = with_rows(problem.M, problem.all_levels) if self.semidefinite else problem.M
        return RowSteps(M, problem.Q, problem.levels, self.tolerance)


def off(basis: list[Matrix], Y: Matrix) -> Matrix:
    """Return the columns of Y without their parts along an orthonormal basis."""
    for _ in range(2 if basis else 0):
        for known in basis:
            Y = Y - known @ (known.T @ Y)
    return Y
