"""Gauss' principle along the tree of velocities: ``M a = force + A^T lam, A a = right``.

Minimise ``1/2 a . M a - force . a`` under ``A a = right`` (least squares where rows contradict each
other), cluster by cluster from the tips inwards (`clusters`). With ``F^T F`` what is left of M for
the velocities a_c of a cluster, and a_o the velocities that carry it,

    1/2 |F a_c + X a_o - f|^2    under  A_c a_c = b_c,        G = A_c F^-1 = T Q^T
    F a_c = f - X a_o + Q y,     y = T^+ (b_c - G f) + U a_o,     U = Q^T X

What carries the cluster feels, beside what it would feel of free joints, ``1/2 |y|^2``: an inertia
U^T U and a force ``-U^T T^+ (b_c - G f)``. Only pivots of M and of the orthogonal factors are
divided by; rows that depend on others are masked in the latter.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Generic, Protocol, TypeVar

import casadi as ca

from framefree.motion.constrained.algebra import DampedRows, WhitenedRows
from framefree.motion.constrained.clusters import Cluster, carriers, clusters
from framefree.motion.spatial import Matrix
from framefree.rounding import rounding, rounding_square

LowerHalf = list[dict[int, Matrix]]
"""Entries of a symmetric matrix up to its diagonal, by row, without structural zeros."""


class DecomposedRows(Protocol):
    """Rows ``G = T Q^T`` of a cluster."""

    def weights(self, d: Matrix) -> list[Matrix]:
        """Return ``T^+ d``, row by row."""
        ...

    def combine(self, weights: list[Matrix]) -> Matrix:
        """Return ``Q weights``."""
        ...

    def along(self, z: Matrix) -> list[Matrix]:
        """Return ``Q^T z``, row by row."""
        ...


RowsT = TypeVar("RowsT", bound=DecomposedRows)


@dataclass(frozen=True)
class HeldCluster(Generic[RowsT]):
    """A cluster with rows, factored.

    Attributes
    ----------
    velocities, rows : lists of int
        Those of the cluster.
    columns : Matrix
        ``G^T`` (velocities x rows).
    space : DecomposedRows
        T and Q.
    outside : list of int
        Velocities that carry the cluster.
    U : list of Matrix
        U by its rows.
    """

    velocities: list[int]
    rows: list[int]
    columns: Matrix
    space: RowsT
    outside: list[int]
    U: list[Matrix] = field(repr=False)


class GaussSystem(Generic[RowsT]):
    """M and rows A at a configuration, eliminated; gives accelerations for any right side.

    Parameters
    ----------
    M : n x n
        Positive definite. A pivot of zero (M singular) makes every result infinite.
    A : m x n
    decompose : callable
        From ``G^T`` and the numbers of its rows in A to their `DecomposedRows`.
    """

    def __init__(
        self, M: Matrix, A: Matrix, decompose: Callable[[Matrix, list[int]], RowsT]
    ) -> None:
        self._m, self._n = A.shape
        A, H = ca.sparsify(ca.SX(A)), _lower_half(M)
        patterns = [[k for k in row if k < i] for i, row in enumerate(H)]
        supports = [A[r, :].sparsity().get_col() for r in range(self._m)]
        self._below: list[dict[int, Matrix]] = [{} for _ in range(self._n)]
        self._roots: list[Matrix] = [ca.SX(0)] * self._n
        self._clusters = clusters(carriers(patterns), supports)
        self._held: dict[Cluster, HeldCluster[RowsT]] = {}
        for cluster in self._clusters:
            for k in reversed(cluster.velocities):
                self._eliminate(H, k)
            if cluster.rows:
                self._held[cluster] = self._hold(H, A, cluster, decompose)

    def _eliminate(self, H: LowerHalf, k: int) -> None:
        """Eliminate one velocity, its joint being free: ``M = L^T D L`` [Featherstone2008]."""
        row = H[k]
        reciprocal = 1 / row.pop(k)
        self._roots[k] = ca.sqrt(reciprocal)
        self._below[k] = {i: value * reciprocal for i, value in row.items()}
        for i, factor in self._below[k].items():
            for j, value in row.items():
                if j <= i:
                    H[i][j] = H[i].get(j, 0) - factor * value

    def _hold(
        self,
        H: LowerHalf,
        A: Matrix,
        cluster: Cluster,
        decompose: Callable[[Matrix, list[int]], RowsT],
    ) -> HeldCluster[RowsT]:
        """Factor the rows of a cluster, and add to H what its carriers feel of them."""
        inside, rows = list(cluster.velocities), list(cluster.rows)
        columns = self._into(inside, A[rows, inside].T)
        space = decompose(columns, rows)
        outside = sorted({i for k in inside for i in self._below[k]}.difference(inside))
        X = ca.SX(len(inside), len(outside))
        for place, k in enumerate(inside):
            for column, i in enumerate(outside):
                if i in self._below[k]:
                    X[place, column] = self._below[k][i] / self._roots[k]
        U = space.along(X)
        for a, i in enumerate(outside):
            for b, j in enumerate(outside[: a + 1]):
                H[i][j] = H[i].get(j, 0) + sum((u[a] * u[b] for u in U), ca.SX(0))
        return HeldCluster(inside, rows, columns, space, outside, U)

    def _into(self, inside: list[int], right: Matrix) -> Matrix:
        """Return ``F^-T right`` for forces on the velocities of a cluster."""
        rows = {k: right[place, :] for place, k in enumerate(inside)}
        for k in reversed(inside):
            for i, factor in self._below[k].items():
                if i in rows:
                    rows[i] = rows[i] - factor * rows[k]
        return ca.vertcat(*(self._roots[k] * rows[k] for k in inside))

    # ------------------------------------------------------------------ solving

    def solve(self, force: Matrix, right: Matrix) -> Matrix:
        """Return a (n x k) of ``M a = force + A^T lam, A a = right``."""
        loads = [force[k, :] for k in range(self._n)]
        drives: dict[Cluster, list[Matrix]] = {}
        for cluster in self._clusters:
            for k in reversed(cluster.velocities):
                for i, factor in self._below[k].items():
                    loads[i] = loads[i] - factor * loads[k]
                loads[k] = self._roots[k] * loads[k]
            if cluster in self._held:
                drives[cluster] = self._driven(self._held[cluster], loads, right)
        a: list[Matrix] = [ca.SX(1, force.shape[1])] * self._n
        for cluster in reversed(self._clusters):
            if cluster in self._held:
                self._push(self._held[cluster], loads, drives[cluster], a)
            for k in cluster.velocities:
                a[k] = self._roots[k] * loads[k]
                for i, factor in self._below[k].items():
                    a[k] = a[k] - factor * a[i]
        return ca.vertcat(*a) if a else ca.SX(0, force.shape[1])

    def _driven(self, held: HeldCluster[RowsT], loads: list[Matrix], right: Matrix) -> list[Matrix]:
        """Return ``T^+ (b - G f)``, row by row, and let the carriers feel it."""
        f = ca.vertcat(*(loads[k] for k in held.velocities))
        y = held.space.weights(right[held.rows, :] - held.columns.T @ f)
        for column, i in enumerate(held.outside):
            loads[i] = loads[i] - sum(
                (u[column] * part for u, part in zip(held.U, y, strict=True)), ca.SX(0)
            )
        return y

    def _push(
        self, held: HeldCluster[RowsT], loads: list[Matrix], y: list[Matrix], a: list[Matrix]
    ) -> None:
        """Add what the rows do to the forces of a cluster, its carriers' accelerations known."""
        if held.outside:
            carried = ca.vertcat(*(a[i] for i in held.outside))
            y = [part + u @ carried for u, part in zip(held.U, y, strict=True)]
        z = held.space.combine(y)
        for place, k in enumerate(held.velocities):
            loads[k] = loads[k] + z[place, :]


class ConstrainedSystem(GaussSystem[WhitenedRows]):
    """Rows that are met, those that depend on others up to a tolerance masked.

    Parameters
    ----------
    M : n x n
    A : m x n
    sizes : m
        Squares of what the length of a row is compared with to tell it from rounding errors.
    tolerance : float
        Share of a row, left beside others, below which it counts as dependent on them.
    """

    def __init__(self, M: Matrix, A: Matrix, sizes: Matrix, tolerance: float) -> None:
        def decompose(columns: Matrix, rows: list[int]) -> WhitenedRows:
            present = [ca.sumsqr(A[r, :]) > rounding_square(tolerance**2) * sizes[r] for r in rows]
            return WhitenedRows(columns, present, tolerance)

        super().__init__(M, A, decompose)

    def multipliers(self, force: Matrix) -> Matrix:
        """Return the shortest lam (m x k) with ``A^T lam = force``, for forces in the range."""
        lam = ca.SX(self._m, force.shape[1])
        for held in self._held.values():
            lam[held.rows, :] = held.space.multipliers(
                self._into(held.velocities, force[held.velocities, :])
            )
        return lam

    @property
    def rank(self) -> Matrix:
        """Number of rows that count."""
        return sum((held.space.rank for held in self._held.values()), ca.SX(0))


def damped_step(M: Matrix, gradient: Matrix, error: Matrix) -> Matrix:
    """Return dv (n) of a Gauss-Newton step towards ``gradient dv = error`` in the metric of M.

    Damped where it would leave its own range. The damping, of the size of the error of each
    cluster, vanishes with it; so the steps converge quadratically at redundant rows too [Fan2005].
    """

    def decompose(columns: Matrix, rows: list[int]) -> DampedRows:
        length = ca.sqrt(ca.sumsqr(error[rows]))
        return DampedRows(columns, ca.sumsqr(columns) * (length + rounding(1e-14)))

    return GaussSystem(M, gradient, decompose).solve(ca.SX(M.shape[0], 1), error)


def _lower_half(M: Matrix) -> LowerHalf:
    half: LowerHalf = [{} for _ in range(M.shape[0])]
    M = ca.sparsify(ca.SX(M))
    for i, j, value in zip(*M.sparsity().get_triplet(), M.nonzeros(), strict=True):
        if j <= i:
            half[i][j] = value
    return half
