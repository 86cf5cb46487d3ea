"""Rank-revealing orthogonal factors of sparse columns, as straight-line code.

A traced graph cannot branch on its data, so ranks are decided by masks: a column that depends on
those before it (what is left of it after they are projected out is below a tolerance) gets weight
zero, in the same instructions that treat the others. Columns are eliminated by reflections
[Golub2013, sec. 5.2], front by front (`fronts`); the factor is orthogonal to rounding however small
the pivots are. Normal equations would square the condition number and fail well before a mechanism
reaches its singular position.

A column that is masked takes no row away: the row that would have been its pivot's is met again by
the columns that follow, with weight zero where the pivot counts.

A front hands on columns that come later. Where it has fewer rows with entries there than columns,
these rows, as they are, become *bases*: instead of all columns one number a base is carried along,
and entries are made of it when their column comes. So a few rows that touch every column, such as
those of a trunk that carries all legs, cost no more than a few columns.
"""

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import casadi as ca

from framefree.motion.constrained.fronts import Front, plan_fronts, triangle_fronts
from framefree.motion.spatial import Matrix
from framefree.rounding import rounding_square

SMALLEST = 1e-280
"""Squares of lengths below this count as zero."""

SparseRows = dict[int, dict[int, Matrix]]
"""Entries by row and column, without those that are structurally zero.

Columns below zero stand for bases."""


class Reflection(NamedTuple):
    """``y -> y - scale w (w . y)`` on some of the rows."""

    rows: tuple[int, ...]
    w: tuple[Matrix, ...]
    scale: Matrix

    def apply(self, y: dict[int, Matrix]) -> None:
        """Reflect the rows of y in place; rows that are not there are zero."""
        along = [w * y[i] for i, w in zip(self.rows, self.w, strict=True) if i in y]
        if not along:
            return
        amount = self.scale * sum(along[1:], along[0])
        for i, w in zip(self.rows, self.w, strict=True):
            y[i] = y[i] - w * amount if i in y else -w * amount


class Taken(NamedTuple):
    """A row that became the pivot row of a column; where the column is masked, it stays."""

    row: int
    column: int
    masked: Matrix


class PivotRow(NamedTuple):
    """A row of C: its pivot and reciprocal (zero if masked), and what it carries of bases."""

    pivot: Matrix
    reciprocal: Matrix
    carried: dict[int, Matrix]


class Orthogonal:
    """Columns ``Y = B C`` with orthonormal B and triangular C; dependent columns are masked.

    C is upper triangular in the order of elimination, which for columns that all share a row is
    their own.

    Attributes
    ----------
    present : list of 0 or 1
        Whether the column counts.
    share : list
        What was left of each column after the projections, relative to what it is compared with;
        zero if it is masked.

    Parameters
    ----------
    columns, present : sequences
    tolerance : float
        Share below which a column is masked.
    squares : sequence, optional
        Squares of what the lengths of columns are compared with; by default their own.
    """

    def __init__(
        self,
        columns: Sequence[Matrix],
        present: Sequence[Matrix],
        tolerance: float,
        squares: Sequence[Any] | None = None,
    ) -> None:
        entries = [
            {} if counted.is_zero() else _entries(column)
            for column, counted in zip(columns, present, strict=True)
        ]
        rows: SparseRows = {}
        for j, column in enumerate(entries):
            for i, value in column.items():
                rows.setdefault(i, {})[j] = value
        wholes = [_squares(column.values()) for column in entries] if squares is None else squares
        self._height = columns[0].shape[0] if columns else 0
        self._begin(rows, {}, plan_fronts(entries), present)
        for front in self._fronts:
            self._meet(front, [rounding_square(tolerance**2) * whole for whole in wholes], wholes)

    @classmethod
    def of_triangle(cls, other: "Orthogonal") -> "Orthogonal":
        """Return the factors of ``C^T`` of another, without the columns that are masked there.

        Where no row of C^T is left out there is nothing to do, and no row costs digits of another.
        """
        rows: SparseRows = {}
        bases: SparseRows = {}
        for j, row in other._rows.items():
            rows[j] = {j: row.pivot, **other._above[j], **other._standing[j]}
            for base in other._standing[j]:  # of which there may be no pivot row
                bases.setdefault(base, {})
            for base, value in row.carried.items():
                bases.setdefault(base, {})[j] = value
        m = len(other.present)
        new = cls.__new__(cls)
        new._height = m
        new._begin(rows, bases, triangle_fronts(other._fronts), other.present)
        for front in new._fronts:
            new._meet(front, [ca.SX(0)] * m, [ca.SX(1)] * m)
        return new

    def _begin(
        self, entries: SparseRows, bases: SparseRows, fronts: list[Front], counted: Sequence[Matrix]
    ) -> None:
        m = len(counted)
        self.present: list[Matrix] = [ca.SX(0)] * m
        self.share: list[Matrix] = [ca.SX(0)] * m
        self._entries, self._bases, self._fronts, self._counted = entries, bases, fronts, counted
        self._left: list[list[int]] = []
        self._steps: list[Reflection | Taken] = []
        self._rows: dict[int, PivotRow] = {}
        # Column j of C beside its pivot: entries, and entries of the bases.
        self._above: list[dict[int, Matrix]] = [{} for _ in range(m)]
        self._standing: list[dict[int, Matrix]] = [{} for _ in range(m)]

    # ------------------------------------------------------------------ elimination

    def _meet(self, front: Front, leasts: Sequence[Matrix], wholes: Sequence[Matrix]) -> None:
        """Eliminate the columns of a front."""
        below = [i for k in front.below for i in self._left[k]]
        self._stand(front, below)
        active = [*front.rows, *below]
        carried = self._carried(active, front)
        for j in front.pivots:
            self._eliminate(active, j, leasts[j], wholes[j])
        self._left.append(self._gathered(active, carried))

    def _stand(self, front: Front, below: list[int]) -> None:
        """Write down the columns of a front in rows that have bases in their place."""
        for base in sorted({k for i in below for k in self._entries[i] if k < 0}, reverse=True):
            coming = self._bases[base]
            for j in front.pivots:
                if j in coming:
                    self._standing[j][base] = coming.pop(j)
            for i in below:
                if base in self._entries[i]:
                    row = self._entries[i]
                    for j in front.pivots:
                        if base in self._standing[j]:
                            added = row[base] * self._standing[j][base]
                            row[j] = row[j] + added if j in row else added
                    if not coming:
                        del row[base]

    def _carried(self, active: list[int], front: Front) -> list[int]:
        """Return what is carried through the front: columns that come later, or bases."""
        entries, later = self._entries, set(front.others)
        entering = [i for i in active if not later.isdisjoint(entries[i])]
        columns = sorted(later.intersection(*[set().union(*(entries[i] for i in entering))]))
        if len(entering) < len(columns):
            for i in entering:
                base = min(self._bases, default=0) - 1
                self._bases[base] = {j: entries[i].pop(j) for j in columns if j in entries[i]}
                entries[i][base] = ca.SX(1)
            columns = []
        return columns + sorted({k for i in active for k in entries[i] if k < 0}, reverse=True)

    def _eliminate(self, active: list[int], j: int, least: Matrix, whole: Matrix) -> None:
        """Make column j zero but for one row, which is taken away where the column counts."""
        entries, counted = self._entries, self._counted[j]
        touched = [i for i in active if j in entries[i]]
        parts = [entries[i].pop(j) for i in touched]
        left = _squares(parts)
        counts = left > least
        if not counted.is_one():
            counts = ca.logic_and(counted, counts)
        # A masked column is divided by 1, so that neither it nor its derivatives are infinite.
        norm = ca.sqrt(ca.if_else(counts, left, 1))
        pivot = self._reflect(touched, parts, norm, counts)
        row, masked = touched[0], ca.logic_not(counts)
        for k, value in entries[row].items():
            if k >= 0:
                self._above[k][j] = value
        carried = {k: value for k, value in entries[row].items() if k < 0}
        entries[row] = {k: masked * value for k, value in entries[row].items()}
        self._steps.append(Taken(row, j, masked))
        self._rows[j] = PivotRow(counts * pivot, counts / ca.if_else(counts, pivot, 1), carried)
        self.present[j] = counts
        self.share[j] = counts * norm / ca.sqrt(ca.if_else(counts, whole, 1))

    def _gathered(self, active: list[int], carried: list[int]) -> list[int]:
        """Reflect what is left into no more rows than columns are carried; return these rows."""
        entries, kept = self._entries, []
        active = [i for i in active if entries[i]]
        if len(active) <= len(carried):
            return active
        for j in carried:
            # The last comes first: rows of pivots are zero as a rule.
            touched = [i for i in active if j in entries[i]][::-1]
            if not touched:
                continue
            if len(touched) > 1:
                parts = [entries[i].pop(j) for i in touched]
                length = _squares(parts)
                some = length > SMALLEST
                norm = ca.sqrt(ca.if_else(some, length, 1))
                entries[touched[0]][j] = some * self._reflect(touched, parts, norm, some)
            active.remove(touched[0])
            kept.append(touched[0])
        return kept

    def _reflect(
        self, touched: list[int], parts: list[Matrix], norm: Matrix, some: Matrix
    ) -> Matrix:
        """Reflect `parts`, entries of a column in rows `touched`, into the first; return it."""
        if len(parts) == 1:
            return parts[0]
        size, entries = ca.copysign(norm, parts[0]), self._entries
        scale = some / (norm * (norm + ca.fabs(parts[0])))
        step = Reflection(tuple(touched), (parts[0] + size, *parts[1:]), scale)
        for k in sorted(set().union(*(entries[i] for i in touched))):
            column = {i: entries[i][k] for i in touched if k in entries[i]}
            step.apply(column)
            for i, value in column.items():
                entries[i][k] = value
        self._steps.append(step)
        return -size

    # ------------------------------------------------------------------ use

    def components(self, y: Matrix) -> list[Matrix]:
        """Return ``B^T y``, row by row."""
        values = {i: y[i, :] for i in range(y.shape[0]) if y[i, :].nnz()}
        parts: list[Matrix] = [ca.SX(1, y.shape[1])] * len(self.present)
        for step in self._steps:
            if isinstance(step, Reflection):
                step.apply(values)
            elif step.row in values:
                value = values[step.row]
                parts[step.column] = self.present[step.column] * value
                values[step.row] = step.masked * value
        return parts

    def combine(self, weights: Sequence[Matrix]) -> Matrix:
        """Return ``B weights``; weights of masked columns must be zero."""
        width = weights[0].shape[1] if weights else 1
        values: dict[int, Matrix] = {}
        for step in reversed(self._steps):
            if isinstance(step, Reflection):
                step.apply(values)
            else:
                kept = step.masked * values[step.row] if step.row in values else 0
                values[step.row] = weights[step.column] + kept
        nothing = ca.SX(1, width)
        rows = [values.get(i, nothing) for i in range(self._height)]
        return ca.vertcat(*rows) if rows else ca.SX(0, width)

    @property
    def basis(self) -> list[Matrix]:
        """The columns of B; zero for a column that is masked."""
        identity = ca.diag(ca.vertcat(ca.SX(0, 1), *self.present))
        B = self.combine([identity[j, :] for j in range(len(self.present))])
        return ca.horzsplit(B) if self.present else []

    def solve(self, right: Sequence[Matrix]) -> list[Matrix]:
        """Return ``C^-1 right``, zero for masked columns."""
        rest, later = list(right), _Sums()
        for front in reversed(self._fronts):
            for j in front.pivots:
                rest[j] = rest[j] - later.dot(self._rows[j].carried)
            for j in reversed(front.pivots):
                rest[j] = rest[j] * self._rows[j].reciprocal
                for k, value in self._above[j].items():
                    rest[k] = rest[k] - value * rest[j]
            for j in front.pivots:
                later.add(self._standing[j], rest[j])
        return self._only_known(rest)

    def solve_transposed(self, right: Sequence[Matrix]) -> list[Matrix]:
        """Return ``C^-T right``, zero for masked columns."""
        solution, earlier = list(right), _Sums()
        for front in self._fronts:
            for j in front.pivots:
                rest = right[j] - earlier.dot(self._standing[j])
                for k, value in self._above[j].items():
                    rest = rest - value * solution[k]
                solution[j] = rest * self._rows[j].reciprocal
            for j in front.pivots:
                earlier.add(self._rows[j].carried, solution[j])
        return self._only_known(solution)

    def _only_known(self, values: list[Matrix]) -> list[Matrix]:
        """Return values with those of columns that are structurally zero left out."""
        return [v if j in self._rows else ca.SX(1, v.shape[1]) for j, v in enumerate(values)]


class _Sums:
    """Sums of values by base."""

    def __init__(self) -> None:
        self._values: dict[int, Matrix] = {}

    def add(self, factors: dict[int, Matrix], value: Matrix) -> None:
        for base, factor in factors.items():
            added = factor * value
            self._values[base] = self._values[base] + added if base in self._values else added

    def dot(self, factors: dict[int, Matrix]) -> Matrix:
        known = (f * self._values[base] for base, f in factors.items() if base in self._values)
        return sum(known, ca.SX(0))


def _entries(column: Matrix) -> dict[int, Matrix]:
    """Return the entries of a column that are not structurally zero, by row."""
    column = ca.sparsify(ca.SX(column))
    return dict(zip(column.sparsity().row(), column.nonzeros(), strict=True))


def _squares(values: Iterable[Matrix]) -> Matrix:
    return sum((value**2 for value in values), ca.SX(0))
