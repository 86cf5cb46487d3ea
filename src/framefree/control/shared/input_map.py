"""Inputs for a force at a state: ``B u`` as near to what is wanted as it comes.

Rows of B are taken apart into blocks that share no input. Blocks of constant numbers and full row
rank are inverted beforehand and cost a product. The other rows N, if any, are solved in the metric
that those leave to them, r_N . (G_NN)^-1 r_N, since the exact rows can follow any remainder:

    r_E = G_EN (G_NN)^-1 r_N

so that a machine with unactuated joints needs no factor but that of G_NN. There, ranks are found
from the numbers: inputs that do nothing new at a state stay small.
"""

from collections.abc import Sequence
from functools import cached_property
from typing import Any

import casadi as ca
import numpy as np

from framefree.motion.constrained.algebra import MassFactor, RowSpace
from framefree.motion.constrained.solve import null_space

Matrix = Any

FULL = 1e-9
"""Share of the largest singular value above which a direction counts as actuated."""


class InputMap:
    """B, taken apart.

    Parameters
    ----------
    B : (n x nu)
    weight : (nu,)
        Inputs are smallest in the sum of weight u^2, where there is a choice.
    metric : (n x n)
        G, symmetric and positive definite: the remainder r is the smallest in r . G^-1 r.
    parameters : sequence of symbols
        What B may hold beside numbers and still count as known: tunable numbers.
    """

    def __init__(
        self, B: Matrix, weight: np.ndarray, metric: Matrix, parameters: Sequence[Matrix] = ()
    ) -> None:
        self.weight, self.G = weight, metric
        self.B = ca.sparsify(ca.SX(B), 1e-14)
        self._known = {str(symbol) for symbol in parameters}
        self.exact: list[tuple[list[int], list[int], Matrix]] = []
        rows, columns = set(range(self.B.shape[0])), set(range(self.B.shape[1]))
        for block_rows, block_columns in blocks(self.B):
            inverse = self._inverse(block_rows, block_columns)
            if inverse is not None:
                self.exact.append((block_rows, block_columns, inverse))
                rows -= set(block_rows)
                columns -= set(block_columns)
        self.rows, self.columns = sorted(rows), sorted(columns)
        self.exact_rows = [i for i in range(self.B.shape[0]) if i not in rows]

    def _inverse(self, rows: list[int], columns: list[int]) -> Matrix | None:
        """Return u of least weight per unit of force, if the block is known and of full rank."""
        block = ca.densify(self.B[rows, columns])
        if not block.is_constant():
            fixed = {str(symbol) for symbol in ca.symvar(block)} <= self._known
            return 1 / block if fixed and block.is_scalar() else None
        B = ca.DM(block).full()
        scaled = B / np.sqrt(self.weight[columns])
        values = np.linalg.svd(scaled, compute_uv=False)
        if len(values) < len(rows) or values[-1] <= FULL * values[0]:
            return None
        inverse = np.linalg.pinv(scaled) / np.sqrt(self.weight[columns])[:, None]
        return ca.sparsify(ca.DM(inverse), 1e-15 * np.abs(inverse).max())

    @cached_property
    def distinct(self) -> bool:
        """Whether it is known that no inputs do the same: B of numbers, of full column rank."""
        if not self.B.is_constant():
            return False
        values = np.linalg.svd(ca.DM(self.B).full(), compute_uv=False)
        return len(values) == self.B.shape[1] and bool(values[-1] > FULL * values[0])

    @cached_property
    def factor(self) -> MassFactor:
        """Factors of the whole metric."""
        return MassFactor(self.G)

    @cached_property
    def _rest_factor(self) -> MassFactor:
        return MassFactor(self.G[self.rows, self.rows])

    @cached_property
    def _rest(self) -> RowSpace | None:
        """Decomposition of the rows that are not exact, in their metric and the inputs' weight."""
        if not self.rows or not self.columns:
            return None
        inner = self._rest_factor.into(ca.densify(self.B[self.rows, self.columns]))
        A = inner @ ca.diag(ca.DM(self.weight[self.columns] ** -0.5))
        return RowSpace(A, ca.repmat(ca.sumsqr(A), len(self.rows), 1), None)

    def least(self, wanted: Matrix) -> Matrix:
        """Return the inputs (nu x k) without limits for k forces (n x k)."""
        wanted = ca.SX(wanted)
        u = ca.SX(self.B.shape[1], wanted.shape[1])
        if self._rest is not None:
            inner = self._rest.least(self._rest_factor.into(wanted[self.rows, :]))
            u[self.columns, :] = ca.diag(ca.DM(self.weight[self.columns] ** -0.5)) @ inner
        follow = self._followed(self._rest_remainder(wanted, u))
        for rows, columns, inverse in self.exact:
            places = [self.exact_rows.index(i) for i in rows]
            u[columns, :] = inverse @ (wanted[rows, :] - follow[places, :])
        return u

    def _rest_remainder(self, wanted: Matrix, u: Matrix) -> Matrix:
        if not self.rows or not self.columns:
            return wanted[self.rows, :]
        return wanted[self.rows, :] - self.B[self.rows, self.columns] @ u[self.columns, :]

    def _followed(self, remainder: Matrix) -> Matrix:
        """Return the remainder of the exact rows that goes with one of the others."""
        if not self.rows or not self.exact_rows:
            return ca.SX(len(self.exact_rows), remainder.shape[1])
        factor = self._rest_factor
        return self.G[self.exact_rows, self.rows] @ factor.out(factor.into(remainder))

    def remainder(self, wanted: Matrix, u: Matrix) -> Matrix:
        """Return what inputs that `least` gave leave over (n), structurally zero where exact."""
        r = ca.SX(self.B.shape[0], 1)
        if self.rows:
            rest = self._rest_remainder(wanted, u)
            r[self.rows], r[self.exact_rows] = rest, self._followed(rest)
        return r


def blocks(B: Matrix) -> list[tuple[list[int], list[int]]]:
    """Return rows and columns of the blocks of B that share no row and no column; none is empty."""
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    rows, columns = (np.array(part, int) for part in B.sparsity().get_triplet())
    ends = rows, B.shape[0] + columns
    graph = coo_array((np.ones(len(rows)), ends), shape=(sum(B.shape),) * 2)
    label = connected_components(graph, directed=False)[1][rows]
    members = [label == one for one in dict.fromkeys(label[np.argsort(rows, kind="stable")])]
    return [(np.unique(rows[m]).tolist(), np.unique(columns[m]).tolist()) for m in members]


def unreached(B: np.ndarray) -> np.ndarray:
    """Tell for every row of B (n, nu) whether forces along it alone are out of its range."""
    if not B.size:
        return np.ones(B.shape[0], bool)
    U, values, _ = np.linalg.svd(B)
    rank = int((values > FULL * values[0]).sum())
    return (U[:, rank:] ** 2).sum(axis=1) > FULL


def rank(B: np.ndarray) -> int:
    """Return the number of independent directions of B in numbers."""
    values = np.linalg.svd(B, compute_uv=False)
    return int((values > FULL * max(values.max(initial=0.0), 1e-300)).sum())


def unreached_directions(B: Matrix, rows: Sequence[int]) -> Matrix:
    """Return N (k x n): of forces f at these rows alone, ``N f = 0`` iff f = B u for some u."""
    n, rows = B.shape[0], list(rows)
    own = ca.SX(B)[rows, :]
    if own.is_constant():
        free = ca.DM(null_space(ca.DM(own).full().T).T)
    else:
        sizes = ca.SX.ones(own.shape[1], 1) * ca.sumsqr(own)
        basis = RowSpace(own.T, sizes, None).basis
        free = ca.SX.eye(len(rows)) - sum((b @ b.T for b in basis), ca.SX(len(rows), len(rows)))
    N = ca.SX(free.shape[0], n)
    N[:, rows] = free
    return ca.sparsify(N)
