"""Straight-line linear algebra for constraints: factors of M, and rank-revealing orthogonalisation.

A traced graph cannot branch on its data, so ranks are decided by masks: a row that depends on those
before it (what is left of it after they are projected out is below a tolerance) gets weight zero,
in the same instructions that treat the others. Orthogonalisation is done twice over, which keeps
the result good to rounding however small the pivots are [Giraud2005]; normal equations would square
the condition number and fail well before a mechanism reaches its singular position.
"""

from collections.abc import Sequence
from typing import Any

import casadi as ca

from framefree.motion.spatial import Matrix

TOLERANCE = 1e-9
"""What is left of a row, relative to itself, below which it counts as dependent on those before."""


class MassFactor:
    """Factors ``M = L^T D L`` of a positive definite matrix, L unit lower triangular.

    Eliminating the last coordinate first keeps the zeros that the branches of a tree leave in M
    [Featherstone2008, sec. 6.5]. A pivot of zero (M singular) makes every result infinite.
    """

    def __init__(self, M: Matrix) -> None:
        n = M.shape[0]
        H = [[M[i, j] for j in range(i + 1)] for i in range(n)]
        self.below: list[dict[int, Matrix]] = [{} for _ in range(n)]
        roots: list[Matrix] = [ca.SX(0)] * n
        for k in reversed(range(n)):
            coupled = [i for i in range(k) if not H[k][i].is_zero()]
            reciprocal = 1 / H[k][k]
            roots[k] = ca.sqrt(reciprocal)
            for i in coupled:
                factor = H[k][i] * reciprocal
                self.below[k][i] = factor
                for j in (j for j in coupled if j <= i):
                    H[i][j] = H[i][j] - factor * H[k][j]
        self.roots = roots

    def into(self, right: Matrix) -> Matrix:
        """Return ``D^-1/2 L^-T right``; its scalar products are those of ``M^-1``."""
        rows = [right[k, :] for k in range(right.shape[0])]
        for k in reversed(range(len(rows))):
            for i, factor in self.below[k].items():
                rows[i] = rows[i] - factor * rows[k]
        return _stacked([r * row for r, row in zip(self.roots, rows, strict=True)], right.shape[1])

    def out(self, right: Matrix) -> Matrix:
        """Return ``L^-1 D^-1/2 right``, so that ``out(into(y)) = M^-1 y``."""
        rows: list[Matrix] = []
        for k, root in enumerate(self.roots):
            row = root * right[k, :]
            for i, factor in self.below[k].items():
                row = row - factor * rows[i]
            rows.append(row)
        return _stacked(rows, right.shape[1])


class Orthogonal:
    """Columns Y = B C with orthonormal B and upper triangular C; dependent columns are masked.

    Attributes
    ----------
    basis : list of columns; zero for a column that is masked.
    coefficients : ``coefficients[j][k]`` = C_kj for k <= j.
    present : list of 0 or 1: whether the column counts.
    share : list: what was left of each column after the projections, relative to what it is
        compared with; zero if it is masked.

    Parameters
    ----------
    columns, present : sequences
    tolerance : float
        Share below which a column is masked.
    lengths : sequence, optional
        What the columns are compared with; by default their own lengths.
    """

    def __init__(
        self,
        columns: Sequence[Matrix],
        present: Sequence[Matrix],
        tolerance: float,
        lengths: Sequence[Any] | None = None,
    ) -> None:
        self.basis: list[Matrix] = []
        self.coefficients: list[list[Matrix]] = []
        self.present: list[Matrix] = []
        self.share: list[Matrix] = []
        self._reciprocals: list[Matrix] = []
        for k, (column, counted) in enumerate(zip(columns, present, strict=True)):
            square = ca.sumsqr(column) if lengths is None else lengths[k] ** 2
            self._append(column, counted, tolerance, square)

    def _append(self, column: Matrix, counted: Matrix, tolerance: float, square: Any) -> None:
        if column.is_zero() or counted.is_zero():
            self._store([ca.SX(0)] * len(self.basis), ca.SX(column.shape[0], 1), *[ca.SX(0)] * 4)
            return
        rest, coefficients = column, [ca.SX(0)] * len(self.basis)
        for _ in range(2):
            for k, known in enumerate(self.basis):
                along = ca.dot(known, rest)
                coefficients[k] = coefficients[k] + along
                rest = rest - along * known
        left = ca.sumsqr(rest)
        counts = ca.logic_and(counted, left > tolerance**2 * square)
        # A masked column is divided by 1, so that neither it nor its derivatives are infinite.
        norm = ca.sqrt(ca.if_else(counts, left, 1))
        share = counts * norm / ca.sqrt(ca.if_else(counts, square, 1))
        self._store(coefficients, rest * counts / norm, counts * norm, counts / norm, counts, share)

    def _store(
        self,
        coefficients: list[Matrix],
        basis: Matrix,
        pivot: Matrix,
        reciprocal: Matrix,
        counts: Matrix,
        share: Matrix,
    ) -> None:
        self.coefficients.append([*coefficients, pivot])
        self.basis.append(basis)
        self._reciprocals.append(reciprocal)
        self.present.append(counts)
        self.share.append(share)

    def components(self, y: Matrix) -> list[Matrix]:
        """Return ``B^T y``, row by row."""
        return [b.T @ y for b in self.basis]

    def combine(self, weights: Sequence[Matrix]) -> Matrix:
        """Return ``B weights``."""
        return sum((b @ w for b, w in zip(self.basis, weights, strict=True)), ca.SX(0))

    def solve(self, right: Sequence[Matrix]) -> list[Matrix]:
        """Return ``C^-1 right``, zero for masked columns."""
        n = len(self.basis)
        solution: list[Matrix] = [ca.SX(0)] * n
        for j in reversed(range(n)):
            rest = right[j]
            for later in range(j + 1, n):
                rest = rest - self.coefficients[later][j] * solution[later]
            solution[j] = rest * self._reciprocals[j]
        return solution

    def solve_transposed(self, right: Sequence[Matrix]) -> list[Matrix]:
        """Return ``C^-T right``, zero for masked columns."""
        solution: list[Matrix] = []
        for j, row in enumerate(self.coefficients):
            rest = right[j]
            for k in range(j):
                rest = rest - row[k] * solution[k]
            solution.append(rest * self._reciprocals[j])
        return solution


class RowSpace:
    """Complete orthogonal decomposition of constraint rows, ``A W = P R Q^T``.

    W W^T is ``M^-1``, or the identity without a mass factor. Rows that depend on others are masked
    in Q, so that the pseudo-inverse is ``(A W)^+ = Q R^-1 P^T`` [Golub2013, sec. 5.5].

    Parameters
    ----------
    A : (m x n)
    sizes : (m)
        Squares of what the length of a row is compared with to tell it from rounding errors.
    factor : MassFactor or None
    """

    def __init__(
        self, A: Matrix, sizes: Matrix, factor: MassFactor | None, tolerance: float = TOLERANCE
    ) -> None:
        m, self._n = A.shape
        self._factor = factor
        Y = A.T if factor is None else factor.into(A.T)
        present = [ca.sumsqr(A[i, :]) > tolerance**2 * sizes[i] for i in range(m)]
        self.rows = Orthogonal([Y[:, i] for i in range(m)], present, tolerance)
        # A W = T Q^T with lower triangular T; its columns in turn are P R.
        columns = [
            _stacked([ca.SX(0)] * j + [row[j] for row in self.rows.coefficients[j:]], 1)
            for j in range(m)
        ]
        self._columns = Orthogonal(columns, self.rows.present, 0.0)

    @property
    def rank(self) -> Matrix:
        """Number of rows that count."""
        return sum(self.rows.present, ca.SX(0))

    def least(self, d: Matrix) -> Matrix:
        """Return y of least ``y . M y`` among those of least ``|A y - d|``: ``W (A W)^+ d``."""
        weights = self._columns.solve(self._columns.components(d))
        z = self.rows.combine(weights) if weights else ca.SX(self._n, d.shape[1])
        return z if self._factor is None else self._factor.out(z)

    def multipliers(self, force: Matrix) -> Matrix:
        """Return the shortest lam with ``A^T lam = force``, for a force in the range of A^T."""
        z = force if self._factor is None else self._factor.into(force)
        weights = self._columns.solve_transposed(self.rows.components(z))
        return self._columns.combine(weights) if weights else ca.SX(0, force.shape[1])


def _stacked(rows: Sequence[Matrix], width: int) -> Matrix:
    return ca.vertcat(*rows) if rows else ca.SX(0, width)
