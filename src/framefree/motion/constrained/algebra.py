"""Straight-line linear algebra for constraints: factors of M, and the space that rows span."""

from collections.abc import Sequence

import casadi as ca

from framefree.motion.constrained.orthogonal import Orthogonal
from framefree.motion.spatial import Matrix
from framefree.rounding import rounding_square

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


class WhitenedRows:
    """Complete orthogonal decomposition ``G = P R Q^T`` of rows in coordinates without metric.

    Rows that depend on others are masked in Q, so that the pseudo-inverse is ``G^+ = Q R^-1 P^T``
    [Golub2013, sec. 5.5].

    Parameters
    ----------
    columns : n x m
        ``G^T``.
    present : sequence of m
        0 for rows that do not count.
    tolerance : float
        Share of a row, left beside others, below which it counts as dependent on them.
    """

    def __init__(self, columns: Matrix, present: Sequence[Matrix], tolerance: float) -> None:
        m = columns.shape[1]
        self.rows = Orthogonal([columns[:, i] for i in range(m)], present, tolerance)
        # G = T Q^T with triangular T; its columns in turn are P R.
        self._columns = Orthogonal.of_triangle(self.rows)

    @property
    def rank(self) -> Matrix:
        """Number of rows that count."""
        return sum(self.rows.present, ca.SX(0))

    def weights(self, d: Matrix) -> list[Matrix]:
        """Return ``T^+ d = R^-1 P^T d``, row by row."""
        return self._columns.solve(self._columns.components(d))

    def column_components(self, d: Matrix) -> Matrix:
        """Return ``P^T d``."""
        return ca.vertcat(ca.SX(0, d.shape[1]), *self._columns.components(d))

    def inverse_triangle(self, right: Matrix) -> Matrix:
        """Return ``R^-1 right``."""
        rows = [right[j, :] for j in range(right.shape[0])]
        return ca.vertcat(ca.SX(0, right.shape[1]), *self._columns.solve(rows))

    def combine(self, weights: Sequence[Matrix]) -> Matrix:
        """Return ``Q weights``."""
        return self.rows.combine(weights)

    def along(self, z: Matrix) -> list[Matrix]:
        """Return ``Q^T z``, row by row."""
        return self.rows.components(z)

    def multipliers(self, z: Matrix) -> Matrix:
        """Return the shortest lam with ``G^T lam = z``, for z in the range of G^T."""
        return self.multipliers_of(self.along(z))

    def multipliers_of(self, weights: Sequence[Matrix]) -> Matrix:
        """Return the shortest lam with ``G^T lam = Q weights``: ``P R^-T weights``."""
        return self._columns.combine(self._columns.solve_transposed(weights))


class RowsBeside(WhitenedRows):
    """The same decomposition of what is left of rows beside an orthonormal basis.

    Each row is projected off the basis together with the rows before it, twice [Giraud2005]. A row
    of which a small share s is left is then orthogonal to all of them to rounding. If it were
    projected off the basis first and off the rows before it afterwards, it would be so to
    rounding / s only, and in single precision with s below 1e-3 what this leaves of the rows that
    follow would be taken for rows that count.

    Parameters
    ----------
    columns, tolerance : see `WhitenedRows`
        Whole rows; the tolerance is a share of these.
    known : sequence of n
        The basis; columns may be zero.
    """

    def __init__(self, columns: Matrix, known: Sequence[Matrix], tolerance: float) -> None:
        m = columns.shape[1]
        self.rows = Beside([columns[:, i] for i in range(m)], known, tolerance)
        T = self.rows.along
        self._columns = Orthogonal([T[:, i] for i in range(m)], self.rows.present, 0.0)


class Beside:
    """Orthonormal columns that span others beside a basis; zero for those that do not count.

    Attributes
    ----------
    present : list of 0 or 1
    basis : list of n
    along : (m x m)
        Row i has the components of column i along the basis.
    """

    def __init__(
        self, columns: Sequence[Matrix], known: Sequence[Matrix], tolerance: float
    ) -> None:
        m = len(columns)
        self.present: list[Matrix] = []
        self.basis: list[Matrix] = []
        self.along, rest = ca.SX(m, m), []
        for i, whole in enumerate(columns):
            y = whole
            for _ in range(2):
                for j, one in enumerate((*known, *self.basis), -len(known)):
                    part = ca.dot(one, y)
                    y = y - one * part
                    if j >= 0:
                        self.along[i, j] += part
            left = ca.sumsqr(y)
            counts = left > rounding_square(tolerance**2) * ca.sumsqr(whole)
            length = ca.sqrt(ca.if_else(counts, left, 1))
            self.along[i, i] = counts * length
            self.basis.append(y * (counts / length))
            self.present.append(counts)
            rest.append(y * (1 - counts))
        # What is left of a column that does not count may lie along those after it.
        for i, y in enumerate(rest):
            for j in range(i + 1, m):
                self.along[i, j] = ca.dot(self.basis[j], y)

    def combine(self, weights: Sequence[Matrix]) -> Matrix:
        """Return the basis times weights, row by row."""
        return ca.horzcat(*self.basis) @ ca.vertcat(*weights)

    def components(self, y: Matrix) -> list[Matrix]:
        """Return the components of y along the basis, row by row."""
        return ca.vertsplit(ca.horzcat(*self.basis).T @ y)


class DampedRows:
    """Rows that need not be met: ``min |z|^2 + |G z - d|^2 / damping``.

    With slack variables, ``G z + sqrt(damping) s = d``, the rows are met and independent.

    Parameters
    ----------
    columns : n x m
        ``G^T``.
    damping : scalar
        Positive.
    """

    def __init__(self, columns: Matrix, damping: Matrix) -> None:
        self._n, m = columns.shape
        slack = ca.sqrt(damping) * ca.SX.eye(m)
        whole = ca.vertcat(columns, slack)
        self._rows = Orthogonal([whole[:, i] for i in range(m)], [ca.SX(1)] * m, 0.0)

    def weights(self, d: Matrix) -> list[Matrix]:
        """Return ``T^-1 d``, row by row."""
        return self._rows.solve_transposed(ca.vertsplit(d))

    def combine(self, weights: Sequence[Matrix]) -> Matrix:
        """Return ``Q weights`` without the slack."""
        return self._rows.combine(weights)[: self._n, :]

    def along(self, z: Matrix) -> list[Matrix]:
        """Return ``Q^T z`` at no slack, row by row."""
        return self._rows.components(ca.vertcat(z, ca.SX(len(self._rows.present), z.shape[1])))


class RowSpace:
    """The space that rows A span: ``A W = P R Q^T`` with W W^T = M^-1, or W the identity.

    Parameters
    ----------
    A : (m x n)
    sizes : (m)
        Squares of what the length of a row is compared with to tell it from rounding errors.
    factor : MassFactor or None
    """

    _rows: WhitenedRows

    def __init__(
        self, A: Matrix, sizes: Matrix, factor: MassFactor | None, tolerance: float = TOLERANCE
    ) -> None:
        self._factor, m = factor, A.shape[0]
        columns = A.T if factor is None else factor.into(A.T)
        present = [ca.sumsqr(A[i, :]) > rounding_square(tolerance**2) * sizes[i] for i in range(m)]
        self._rows = WhitenedRows(columns, present, tolerance)

    @classmethod
    def beside(cls, known: Sequence[Matrix], Y: Matrix, tolerance: float) -> "RowSpace":
        """Return the space of what is left of rows beside an orthonormal basis, W the identity.

        Columns of Y (n x m) are the rows; a row counts where more than a share of it is left.
        """
        if not known or not Y.shape[1]:
            return cls(Y.T, ca.sum1(Y**2).T, None, tolerance)
        new = cls.__new__(cls)
        new._factor, new._rows = None, RowsBeside(Y, known, tolerance)
        return new

    @property
    def rank(self) -> Matrix:
        """Number of rows that count."""
        return self._rows.rank

    @property
    def basis(self) -> list[Matrix]:
        """Orthonormal columns that span the rows ``A W``; zero for rows that do not count."""
        return self._rows.rows.basis

    def least(self, d: Matrix) -> Matrix:
        """Return y of least ``y . M y`` among those of least ``|A y - d|``: ``W (A W)^+ d``."""
        z = self._rows.combine(self._rows.weights(d))
        return z if self._factor is None else self._factor.out(z)

    def inverse_triangle(self) -> Matrix:
        """Return ``R^-1`` (m x m), zero for rows that do not count."""
        present = ca.diag(ca.vertcat(ca.SX(0, 1), *self._rows.rows.present))
        return self._rows.inverse_triangle(present)

    def along(self, z: Matrix) -> Matrix:
        """Return ``Q^T z``."""
        return ca.vertcat(ca.SX(0, z.shape[1]), *self._rows.along(z))

    def components(self, d: Matrix) -> Matrix:
        """Return ``P^T d``, so that ``least(d) = W Q R^-1 P^T d``."""
        return self._rows.column_components(d)

    def combine(self, weights: Matrix) -> Matrix:
        """Return ``W Q weights``."""
        z = self._rows.combine(ca.vertsplit(weights))
        return z if self._factor is None else self._factor.out(z)

    def multipliers(self, force: Matrix) -> Matrix:
        """Return the shortest lam with ``A^T lam = force``, for a force in the range of A^T."""
        return self._rows.multipliers(force if self._factor is None else self._factor.into(force))


def _stacked(rows: Sequence[Matrix], width: int) -> Matrix:
    return ca.vertcat(*rows) if rows else ca.SX(0, width)
