"""All rows of equal right, by the saddle-point equations."""

from dataclasses import dataclass

import casadi as ca

from framefree.control.tasks.solvers.base import Matrix, Problem, Solver, stacked, with_rows
from framefree.motion.constrained.algebra import MassFactor


@dataclass(frozen=True)
class Kkt(Solver):
    """The acceleration from ``[M A^T; A 0] (a, -lam) = (Q, b)``, by its complement A M^-1 A^T.

    The same acceleration as `UdwadiaKalaba` in half the operations, where b is in the range of A:
    rows whose pivot is rounding are left out. It squares the condition number of the rows, and
    among rows that contradict each other the first ones win.

    Parameters
    ----------
    semidefinite : bool
        Whether the mass matrix may be singular; [M; A] must not.
    tolerance : float
        Pivot, relative to its row, below which the row counts as dependent on those before.
    """

    semidefinite: bool = False
    tolerance: float = 1e-12

    def acceleration(self, problem: Problem) -> Matrix:
        """Return a (n)."""
        levels = problem.all_levels
        M = with_rows(problem.M, levels) if self.semidefinite else problem.M
        rows = stacked(levels, M.shape[0])
        factor = MassFactor(M)
        free = factor.into(problem.Q)
        Y = factor.into(rows.A.T)
        lam = _solved(Y.T @ Y, rows.b - Y.T @ free, self.tolerance)
        return factor.out(free + Y @ lam)


def _solved(S: Matrix, d: Matrix, tolerance: float) -> Matrix:
    """Return S^-1 d by L D L^T, leaving out rows with a pivot of rounding."""
    m = S.shape[0]
    L = [[ca.SX(0)] * m for _ in range(m)]
    LD = [[ca.SX(0)] * m for _ in range(m)]
    reciprocal: list[Matrix] = []
    for j in range(m):
        pivot = S[j, j] - sum((LD[j][k] * L[j][k] for k in range(j)), ca.SX(0))
        counts = pivot > tolerance * S[j, j]
        reciprocal.append(counts / ca.if_else(counts, pivot, 1))
        for i in range(j + 1, m):
            LD[i][j] = S[i, j] - sum((L[i][k] * LD[j][k] for k in range(j)), ca.SX(0))
            L[i][j] = LD[i][j] * reciprocal[j]
    y: list[Matrix] = []
    for i in range(m):
        y.append(d[i] - sum((L[i][k] * y[k] for k in range(i)), ca.SX(0)))
    for i in reversed(range(m)):
        y[i] = y[i] * reciprocal[i] - sum((L[k][i] * y[k] for k in range(i + 1, m)), ca.SX(0))
    return ca.vertcat(ca.SX(0, 1), *y)
