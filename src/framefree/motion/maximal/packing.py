"""From expressions to blocks of numbers and back, for functions that hand results to one another.

`Pack` takes any nested tuple of matrices and finds the entries that are not constant, each once:
these are what one function must store and the next must load. `Lift` takes the numbers of many
alike bodies and makes symbols of those that differ.
"""

from collections.abc import Sequence
from typing import Any

import casadi as ca
import numpy as np

from framefree.motion.spatial import Matrix


class Pack:
    """The entries of a nested tuple of matrices that are not constant.

    Attributes
    ----------
    vector : Matrix
        These entries in a column, equal ones once.
    """

    def __init__(self, value: Any) -> None:
        self._places: dict[int, int] = {}
        entries: list[Matrix] = []
        self._plan = self._visit(value, entries)
        self.vector = ca.vertcat(*entries) if entries else ca.SX(0, 1)

    @property
    def size(self) -> int:
        """Number of entries."""
        return self.vector.shape[0]

    def restore(self, entries: Matrix) -> Any:
        """Return the tuple with other values for its entries."""
        return _rebuild(self._plan, entries)

    def _visit(self, value: Any, entries: list[Matrix]) -> Any:
        if value is None or isinstance(value, bool):
            return value
        if isinstance(value, tuple):
            parts = [self._visit(one, entries) for one in value]
            return (type(value), parts)
        matrix = ca.SX(value)
        marks: list[tuple[int, Matrix]] = []
        entries_of: Any = matrix.nonzeros()
        for entry in map(ca.SX, entries_of):
            if entry.is_constant():
                marks.append((-1, entry))
                continue
            key = entry.element_hash()
            if key not in self._places:
                self._places[key] = len(entries)
                entries.append(entry)
            marks.append((self._places[key], entry))
        return (matrix.sparsity(), marks)


def _rebuild(plan: Any, entries: Matrix) -> Any:
    if plan is None or isinstance(plan, bool):
        return plan
    kind, parts = plan
    if isinstance(kind, type):
        rebuilt = [_rebuild(part, entries) for part in parts]
        return tuple(rebuilt) if kind is tuple else kind(*rebuilt)
    values = [constant if place < 0 else entries[place] for place, constant in parts]
    return ca.SX(kind, ca.vertcat(*values)) if values else ca.SX(kind)


class Lift:
    """Numbers of several alike members: constants where all agree, symbols where they differ."""

    def __init__(self) -> None:
        self._symbols: dict[tuple[float, ...], Matrix] = {}

    def matrix(self, values: Sequence[Any]) -> Matrix:
        """Return one matrix for the constant matrices, all of one shape, of all members."""
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

    def numbers(self, member: int) -> tuple[float, ...]:
        """Return the values of the symbols for one member."""
        return tuple(column[member] for column in self._symbols)
