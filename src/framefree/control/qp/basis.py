"""The basis of a level and its working set, as routines: rows come in and go out."""

from math import sqrt

from framefree.control.qp.desk import (
    DAMPING,
    FREE,
    LEFT_OUT,
    LEVEL,
    LOWER,
    NEW,
    OWN,
    RANK,
    ROUNDED,
    SIGN,
    STALE,
    UPPER,
    WORKING,
)
from framefree.control.qp.least import triangular
from framefree.control.qp.rows import gradient, least_residuals
from framefree.control.qp.vectors import append, combine, copy, dot, fill
from framefree.kernel.routines import Array, Desk, fma, routine


@routine
def factor(w: Desk, first: int, last: int) -> None:
    """Extend the basis by the rows that count, and write them on it to F; other rows of F are 0."""
    base, own = int(w.count[RANK]) + int(w.count[WORKING]), 0
    for j in range(last - first):
        line = w.F[j * w.width :]
        fill(0.0, line, w.width)
        if w.picked[j] == 1.0:
            own += place(w, first + j, base, own, line)
    w.count[OWN] = float(own)
    w.count[STALE] = 0.0
    if own > 0 and own != last - first:
        triangular(w.F, last - first, own, w.width, w.L, w.U, w.spare)


@routine
def place(w: Desk, i: int, base: int, own: int, line: Array) -> int:
    """Write an own row on the basis, which it may extend; return by how many rows it does."""
    top = base + own
    if top >= w.n:
        for j in range(own):
            line[j] = dot(w.Y[i * w.width :], w.Q[(base + j) * w.width :], w.width)
        return 0
    least = w.tolerance * w.norm[i]
    added = append(w.Y[i * w.width :], least, w.Q, w.T, top, w.n, w.width, w.spare)
    copy(w.T[top * w.width + base :], line, own + added)
    w.row_of[top] = float(i)
    return added


@routine
def hold(w: Desk, i: int, side: float) -> int:
    """Take a row into the working set at its upper (1) or lower (-1) bound; return 1 if it can."""
    top = int(w.count[RANK]) + int(w.count[WORKING])
    w.count[STALE] = 1.0
    if append(w.Y[i * w.width :], NEW * w.norm[i], w.Q, w.T, top, w.n, w.width, w.spare) == 0:
        w.state[i] = LEFT_OUT
        return 0
    # Damping keeps to a fixed part of the basis, which this changes; from here on limits bound z.
    w.count[DAMPING] = 0.0
    w.row_of[top] = float(i)
    w.state[i] = UPPER if side > 0.0 else LOWER
    if w.guess[i] * side <= 0.0 or abs(w.guess[i]) > w.count[LEVEL]:
        w.guess[i] = w.count[LEVEL] if side > 0.0 else -w.count[LEVEL]
    w.count[WORKING] += 1.0
    return 1


@routine
def release(w: Desk, position: int) -> None:
    """Take a basis row out of the working set."""
    rank, working = int(w.count[RANK]), int(w.count[WORKING])
    gone = int(w.row_of[position])
    w.state[gone] = FREE
    w.guess[gone] = 0.0
    w.count[STALE] = 1.0
    for k in range(position, rank + working - 1):
        w.row_of[k] = w.row_of[k + 1]
    again(w, rank + working - 1 - position, position)


@routine
def again(w: Desk, rows: int, position: int) -> None:
    """Make the basis anew from a position on, of the next rows in `row_of`; these are working."""
    top = position
    for k in range(position, position + rows):
        i = int(w.row_of[k])
        if append(w.Y[i * w.width :], NEW * w.norm[i], w.Q, w.T, top, w.n, w.width, w.spare) == 1:
            w.row_of[top] = float(i)
            top += 1
        else:
            w.state[i] = FREE
    w.count[WORKING] = float(top) - w.count[RANK]


@routine
def off_basis(w: Desk) -> float:
    """Write as step what takes away all of z that the basis leaves free; return its length."""
    top = int(w.count[RANK]) + int(w.count[WORKING])
    for i in range(w.width):
        w.d[i] = -w.z[i]
    if top >= w.n:
        return 0.0
    for _ in range(2):
        for k in range(top):
            w.c[k] = dot(w.Q[k * w.width :], w.d, w.width)
        combine(w.c, w.Q, top, w.width, w.d)
    return sqrt(dot(w.d, w.d, w.width))


@routine
def multipliers(w: Desk, first: int, last: int, deepest: int) -> float:
    """Write multipliers mu of basis rows from `deepest` on, g + mu T = 0 on them.

    Return what to compare them with: the terms of the gradient, and a share of what it could be.
    """
    size = ROUNDED * least_residuals(w, first, last)
    size += gradient(w, first, last)
    back(w, int(w.count[RANK]) + int(w.count[WORKING]), deepest)
    return size


@routine
def back(w: Desk, top: int, deepest: int) -> None:
    """Solve mu T = -g Q^T for the multipliers of basis rows from `deepest` to `top`."""
    for j in range(top - deepest):
        k = top - 1 - j
        value = -dot(w.Q[k * w.width :], w.g, w.width)
        for i in range(k + 1, top):
            value = fma(-w.T[i * w.width + k], w.mu[i], value)
        w.mu[k] = value / w.T[k * w.width + k]


@routine
def wrong(w: Desk, size: float, plain: int) -> int:
    """Find a working row that should be left: the multiplier has the wrong sign; -1 if none.

    The worst, or where `plain` is 1 the first in the order of the program (which cannot go round
    in circles).
    """
    found, worst = -1, -SIGN * size
    rank = int(w.count[RANK])
    for k in range(rank, rank + int(w.count[WORKING])):
        i = int(w.row_of[k])
        side = 1.0 if w.state[i] == UPPER else -1.0
        share = side * w.mu[k] * w.norm[i]
        if share < worst:
            if plain == 0:
                worst = share
                found = k
            elif found < 0 or w.row_of[k] < w.row_of[found]:
                found = k
    return found
