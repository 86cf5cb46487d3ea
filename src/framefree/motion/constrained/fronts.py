"""The order in which a sparse matrix is made triangular, found from its pattern before any number.

Columns that share no row need not know of each other. Eliminating a column joins all rows that it
touches to one *front*: a small dense problem, whose remainder is met again by the columns that are
left. Of all columns the one that meets fewest others comes next (minimum degree), together with
those that the same front completes. For columns that meet only their neighbours, such as the loops
of linkages in a row, fronts stay as small as one loop and the cost is linear in their number
[Davis2006, ch. 5 and 7].
"""

from collections.abc import Collection, Sequence
from typing import NamedTuple


class Front(NamedTuple):
    """One small dense problem.

    Attributes
    ----------
    rows : tuple of int
        Rows of the matrix that no front before this has met.
    below : tuple of int
        Fronts before this whose remainders are met here, too.
    pivots : tuple of int
        Columns that are eliminated here, in this order.
    others : tuple of int
        Columns that these rows touch beside them.
    """

    rows: tuple[int, ...]
    below: tuple[int, ...]
    pivots: tuple[int, ...]
    others: tuple[int, ...]


def plan_fronts(columns: Sequence[Collection[int]]) -> list[Front]:
    """Return the fronts for a matrix, given the rows that each of its columns touches.

    Columns without rows are in no front.
    """
    # An element is a row, or what a front has left; rows are counted from 0 and fronts from -1 on.
    touching: dict[int, set[int]] = {}
    for j, rows in enumerate(columns):
        for i in rows:
            touching.setdefault(i, set()).add(j)
    elements: dict[int, set[int]] = {j: set(rows) for j, rows in enumerate(columns) if rows}

    def met(j: int) -> int:
        return sum(len(touching[e]) for e in elements[j])

    degrees = {j: met(j) for j in elements}
    fronts: list[Front] = []
    while elements:
        merged = elements[min(elements, key=lambda j: (degrees[j], j))]
        touched = set().union(*(touching.pop(e) for e in merged))
        pivots = sorted(j for j in touched if elements[j] <= merged)
        others = sorted(touched.difference(pivots))
        rows, below = sorted(e for e in merged if e >= 0), sorted(-1 - e for e in merged if e < 0)
        fronts.append(Front(tuple(rows), tuple(below), tuple(pivots), tuple(others)))
        for j in pivots:
            del elements[j]
        if others:
            touching[-len(fronts)] = set(others)
        for j in others:
            elements[j] = elements[j] - merged | {-len(fronts)}
        near = set().union(*(touching[e] for j in others for e in elements[j]))
        degrees.update({j: met(j) for j in near})
    return fronts


def triangle_fronts(fronts: Sequence[Front]) -> list[Front]:
    """Return the fronts for ``C^T``, where `fronts` are those that made a matrix triangular, ``C``.

    Its columns are met in the opposite order, the last first: as long as no row of C^T is left
    out, each column then has one row alone.
    """
    earlier: dict[int, set[int]] = {}
    for front in fronts:
        for j in front.others:
            earlier.setdefault(j, set()).update(front.pivots)
    left: dict[int, set[int]] = {}
    reverse: list[Front] = []
    for front in reversed(fronts):
        pivots = set(front.pivots)
        below = sorted(k for k, columns in left.items() if columns & pivots)
        others = set().union(
            *(left.pop(k) for k in below), *(earlier.get(j, set()) for j in pivots)
        )
        others -= pivots
        left[len(reverse)] = others
        reverse.append(Front(front.pivots, tuple(below), front.pivots[::-1], tuple(sorted(others))))
    return reverse
