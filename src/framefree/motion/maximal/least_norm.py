"""Straight-line solution of positive semidefinite systems, with their rank."""

from collections.abc import Sequence

import casadi as ca

from framefree.motion.spatial import Matrix, solve_symmetric, symmetric
from framefree.rounding import rounding, rounding_square

RANK = rounding(1e-12)
"""A row of loops or couplings is redundant if no more than this share of its mobility is new."""

ROUNDING = rounding_square(1e-24)
"""A row whose mobility is below this share of the largest one does not move at all: what is left of
it is the square of rounding errors."""


def least_norm(
    matrix: Matrix, right: Matrix, held: Sequence[Matrix] | None = None
) -> tuple[Matrix, Matrix]:
    """Return the shortest least-squares solution of ``matrix @ y = right``, and the rank.

    `matrix` is positive semidefinite. It is factored as B D B^T by L D L^T with diagonal pivots on
    its correlation form, so that units do not count; then
    y = B (B^T B)^-1 D^-1 (B^T B)^-1 B^T right. Rows with a diagonal entry up to `held`
    count as zero.
    """
    n = matrix.shape[0]
    largest = ca.fmax(ca.mmax(ca.diag(matrix)), 0) if n else ca.SX(0)
    least = [ca.fmax(ROUNDING * largest, held[i] if held else 0) for i in range(n)]
    moving = [ca.if_else(matrix[i, i] > least[i], matrix[i, i], 0) for i in range(n)]
    size = [ca.sqrt(one) for one in moving]
    inverse = [_reciprocal(size[i], size[i] > 0) for i in range(n)]
    rest = [[matrix[i, j] * inverse[i] * inverse[j] for j in range(i + 1)] for i in range(n)]
    columns: list[list[Matrix]] = []
    pivots: list[Matrix] = []
    kept: list[Matrix] = []
    for _ in range(n):
        chosen = _largest([rest[i][i] for i in range(n)])
        column = [_pick(chosen, [rest[max(i, j)][min(i, j)] for j in range(n)]) for i in range(n)]
        pivot = _pick(chosen, column)
        keep = pivot > RANK
        reciprocal = _reciprocal(pivot, keep)
        scaled = [one * reciprocal for one in column]
        rest = [[rest[i][j] - scaled[i] * column[j] for j in range(i + 1)] for i in range(n)]
        columns.append([scaled[i] * size[i] for i in range(n)])
        pivots.append(reciprocal)
        kept.append(keep)
    if not n:
        return ca.SX(0, right.shape[1]), ca.SX(0)
    B = ca.horzcat(*(ca.vertcat(*column) for column in columns))
    gram = symmetric(B.T @ B) + ca.diag(ca.vertcat(*(ca.if_else(one, 0, 1) for one in kept)))
    scale = ca.diag(ca.vertcat(*pivots))

    def apply(to: Matrix) -> Matrix:
        return B @ solve_symmetric(gram, scale @ solve_symmetric(gram, B.T @ to))

    first = apply(right)
    # Rows of very different size cost digits in the squares above: correct once.
    return first + apply(right - matrix @ first), sum(kept, ca.SX(0))


def _reciprocal(value: Matrix, allowed: Matrix) -> Matrix:
    return ca.if_else(allowed, 1 / ca.if_else(allowed, value, 1), 0)


def _largest(values: list[Matrix]) -> list[Matrix]:
    """Return a truth for each value: the first of the largest."""
    best = values[0]
    for value in values[1:]:
        best = ca.fmax(best, value)
    taken, chosen = ca.SX(0), []
    for value in values:
        chosen.append(ca.logic_and(value >= best, ca.logic_not(taken)))
        taken = ca.logic_or(taken, chosen[-1])
    return chosen


def _pick(chosen: list[Matrix], values: list[Matrix]) -> Matrix:
    return sum(
        (ca.if_else(one, value, 0) for one, value in zip(chosen, values, strict=True)), ca.SX(0)
    )
