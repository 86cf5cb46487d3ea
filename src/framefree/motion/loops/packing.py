"""From expressions to blocks of numbers and back, for functions that hand over results."""

from collections.abc import Sequence
from functools import cache
from itertools import count
from typing import Any

import casadi as ca
import numpy as np

from framefree.motion.spatial import Matrix


class PackedValues:
    """A nested tuple of matrices as a column of its entries that are not constant, each once.

    These are what one function must store and the next must load.

    Attributes
    ----------
    vector : Matrix
        The entries; equal ones once.
    key : int
        Equal for tuples that are packed in the same way.
    """

    def __init__(self, value: Any) -> None:
        self._places: dict[int, int] = {}
        entries: list[Matrix] = []
        self._plan = self._visit(value, entries)
        self.vector = ca.vertcat(*entries) if entries else ca.SX(0, 1)
        self.key = _numbered(_plan_key(self._plan))

    @property
    def size(self) -> int:
        """Number of entries."""
        return self.vector.shape[0]

    @property
    def shape(self) -> tuple[int, int]:
        """Shape of a single matrix."""
        return self._plan[0].shape

    def restore(self, entries: Matrix) -> Any:
        """Return the tuple with other values for its entries."""
        return _rebuild(self._plan, entries)

    def _visit(self, value: Any, entries: list[Matrix]) -> Any:
        if value is None:
            return None
        if isinstance(value, tuple):
            return (type(value), [self._visit(one, entries) for one in value])
        matrix = ca.SX(value)
        marks: list[tuple[int, float]] = []
        entries_of: Any = matrix.nonzeros()
        for entry in map(ca.SX, entries_of):
            if entry.is_constant():
                marks.append((-1, float(entry)))
                continue
            key = entry.element_hash()
            if key not in self._places:
                self._places[key] = len(entries)
                entries.append(entry)
            marks.append((self._places[key], 0.0))
        return (matrix.sparsity(), marks)


def _rebuild(plan: Any, entries: Matrix) -> Any:
    if plan is None:
        return None
    kind, parts = plan
    if isinstance(kind, type):
        rebuilt = [_rebuild(part, entries) for part in parts]
        return tuple(rebuilt) if kind is tuple else kind(*rebuilt)
    values = [constant if place < 0 else entries[place] for place, constant in parts]
    return ca.SX(kind, ca.vertcat(*values)) if values else ca.SX(kind)


def _plan_key(plan: Any) -> Any:
    if plan is None:
        return None
    kind, parts = plan
    if isinstance(kind, type):
        return (kind, tuple(_plan_key(part) for part in parts))
    return (kind.shape, tuple(kind.row()), tuple(kind.colind()), tuple(parts))


@cache
def _numbered(key: Any) -> int:
    """Return a number for a key, another for every other key."""
    return next(_COUNT)


_COUNT = count()


class LiftedNumbers:
    """Numbers of several alike bodies: constants where all agree, symbols where they differ."""

    def __init__(self) -> None:
        self._symbols: dict[tuple[float, ...], Matrix] = {}

    def matrix(self, values: Sequence[Any]) -> Matrix:
        """Return one matrix for the constant matrices, all of one shape, of all bodies."""
        rows, columns = ca.SX(values[0]).shape
        side_by_side = np.asarray(ca.DM(ca.horzcat(*map(ca.SX, values))).full())
        arrays = side_by_side.reshape(rows, len(values), columns)
        lifted = ca.SX(rows, columns)
        for i, j in np.ndindex(rows, columns):
            column = arrays[i, :, j]
            alike = bool((column == column[0]).all())
            lifted[i, j] = column[0] if alike else self._symbol(tuple(column.tolist()))
        return ca.sparsify(lifted)

    def _symbol(self, column: tuple[float, ...]) -> Matrix:
        if column not in self._symbols:
            self._symbols[column] = ca.SX.sym(f"c{len(self._symbols)}")
        return self._symbols[column]

    @property
    def symbols(self) -> Matrix:
        """All symbols in a column."""
        return ca.vertcat(*self._symbols.values()) if self._symbols else ca.SX(0, 1)

    def numbers(self, body: int) -> tuple[float, ...]:
        """Return the values of the symbols for one body, counted from 0."""
        return tuple(column[body] for column in self._symbols)
