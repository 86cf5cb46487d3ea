"""Symmetric factors as straight-line code, with their least pivot."""

from typing import Any

import casadi as ca

from framefree.rounding import rounding

Matrix = Any

PIVOT = rounding(1e-14)
"""Smallest pivot, relative to its diagonal entry: rounding cannot make a solution infinite."""


class SymmetricFactor:
    """L D L^T of a positive definite matrix, unrolled; its lower half is read.

    Parameters
    ----------
    K : (n x n)
    drop : float, optional
        Share of its diagonal entry up to which a pivot counts as rounding: its row then depends on
        those before it and is left out of solutions. Without, such pivots are raised to `PIVOT`.

    Attributes
    ----------
    least : scalar
        Least pivot relative to its diagonal entry, between 0 and 1; 0 where K is singular.
    """

    def __init__(self, K: Matrix, drop: float | None = None) -> None:
        n = K.shape[0]
        rows = [[K[i, j] for j in range(i + 1)] for i in range(n)]
        self.least: Matrix = ca.SX(1)
        self._reciprocals: list[Matrix] = []
        self._L: list[list[Matrix]] = [[] for _ in range(n)]
        for j in range(n):
            pivot, diagonal = rows[j][j], K[j, j]
            self.least = ca.fmin(self.least, ca.fmax(pivot, 0) / ca.fmax(diagonal, 1e-300))
            reciprocal = _reciprocal(pivot, diagonal, drop)
            self._reciprocals.append(reciprocal)
            below = [(i, rows[i][j] * reciprocal) for i in range(j + 1, n)]
            for i, factor in below:
                self._L[i].append(factor)
                for k in range(j + 1, i + 1):
                    rows[i][k] = rows[i][k] - factor * rows[k][j]

    def solve(self, right: Matrix) -> Matrix:
        """Return K^-1 right (n x k)."""
        x = [right[i, :] for i in range(right.shape[0])]
        for i, row in enumerate(self._L):
            for k, factor in enumerate(row):
                x[i] = x[i] - factor * x[k]
        x = [value * r for value, r in zip(x, self._reciprocals, strict=True)]
        for i in reversed(range(len(x))):
            for k, factor in enumerate(self._L[i]):
                x[k] = x[k] - factor * x[i]
        return ca.vertcat(ca.SX(0, right.shape[1]), *x)


def _reciprocal(pivot: Matrix, diagonal: Matrix, drop: float | None) -> Matrix:
    if drop is None:
        return 1 / ca.fmax(pivot, PIVOT * diagonal + 1e-300)
    counts = pivot > rounding(drop) * diagonal
    return counts / ca.if_else(counts, pivot, 1)
