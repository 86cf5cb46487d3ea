"""Rows of numbers and their orthonormal bases, as routines that compile.

Rows lie one after the other, each padded with zeros to a multiple of four: four sums run side by
side then, always in the same order.
"""

from math import sqrt

from framefree.kernel.routines import Array, fma, routine

AGAIN = 0.1
"""A row that a basis has taken more of than leaves this share is made orthogonal once more: what
is left over of the basis is rounding then [Giraud2005]."""


@routine
def dot(a: Array, b: Array, width: int) -> float:
    """Return a . b."""
    s0 = 0.0
    s1 = 0.0
    s2 = 0.0
    s3 = 0.0
    for i in range(0, width, 4):
        s0 = fma(a[i], b[i], s0)
        s1 = fma(a[i + 1], b[i + 1], s1)
        s2 = fma(a[i + 2], b[i + 2], s2)
        s3 = fma(a[i + 3], b[i + 3], s3)
    return (s0 + s2) + (s1 + s3)


@routine
def add(factor: float, a: Array, b: Array, width: int) -> None:
    """Add factor a to b."""
    for i in range(width):
        b[i] = fma(factor, a[i], b[i])


@routine
def copy(a: Array, b: Array, width: int) -> None:
    """Write a to b."""
    for i in range(width):
        b[i] = a[i]


@routine
def fill(value: float, a: Array, width: int) -> None:
    """Write a number to all of a."""
    for i in range(width):
        a[i] = value


@routine
def combine(factors: Array, Q: Array, count: int, width: int, row: Array) -> None:
    """Subtract from a row the sum of `count` rows of Q, each with its factor."""
    for i in range(0, width, 4):
        r0 = row[i]
        r1 = row[i + 1]
        r2 = row[i + 2]
        r3 = row[i + 3]
        for j in range(count):
            q = Q[j * width + i :]
            f = -factors[j]
            r0 = fma(f, q[0], r0)
            r1 = fma(f, q[1], r1)
            r2 = fma(f, q[2], r2)
            r3 = fma(f, q[3], r3)
        row[i] = r0
        row[i + 1] = r1
        row[i + 2] = r2
        row[i + 3] = r3


@routine
def split_off(
    Q: Array, rank: int, width: int, least: float, part: Array, row: Array, again: Array
) -> float:
    """Take from a row what lies along a basis Q (rank rows); return the length of what is left.

    `part` (rank) is what was taken: row_before = part . Q + row. What is left need not be
    orthogonal where it is no longer than `least`.
    """
    before = dot(row, row, width)
    for j in range(rank):
        part[j] = dot(Q[j * width :], row, width)
    combine(part, Q, rank, width, row)
    left = dot(row, row, width)
    for _ in range(2):
        if left > AGAIN * AGAIN * before or left <= least * least:
            break
        for j in range(rank):
            again[j] = dot(Q[j * width :], row, width)
            part[j] += again[j]
        combine(again, Q, rank, width, row)
        before = left
        left = dot(row, row, width)
    return sqrt(left)


@routine
def append(
    y: Array, least: float, Q: Array, T: Array, rank: int, n: int, width: int, spare: Array
) -> int:
    """Extend a basis by a row, y = T[rank] . Q; return 1, or 0 if no more than `least` is new.

    `spare` has room for two rows.
    """
    copy(y, spare, width)
    left = split_off(Q, rank, width, least, T[rank * width :], spare, spare[width:])
    T[rank * width + rank] = left
    if rank >= n or not left > least:
        return 0
    for i in range(width):
        Q[rank * width + i] = spare[i] / left
    return 1
