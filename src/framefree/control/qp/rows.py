"""Rows of a level, as routines: what they miss, how large that is, and the slope of its squares."""

from math import sqrt

from framefree.control.qp.desk import COUNTS, DAMPING, OWN, STALE
from framefree.control.qp.vectors import add, copy, dot, fill
from framefree.kernel.routines import Desk, fma, routine


@routine
def missed(v: float, low: float, high: float) -> float:
    """Return by how much a value is above its upper bound (positive) or below the lower one."""
    if v > high:
        return v - high
    if v < low:
        return v - low
    return 0.0


@routine
def undefined_of(value: float, other: float) -> float:
    """Return a value if it is not a number, else the other."""
    if value < 0.0 or value >= 0.0:
        return other
    return value


@routine
def size_of(w: Desk, i: int, length: float) -> float:
    """Return how large the numbers in a row are, for variables of a length."""
    a = abs(w.low[i]) if abs(w.low[i]) < 1e20 else 0.0
    b = abs(w.high[i]) if abs(w.high[i]) < 1e20 else 0.0
    return fma(w.norm[i], length, max(a, b)) + 1e-300


@routine
def measure(w: Desk, first: int, last: int) -> float:
    """Measure own rows and mark those that count; return the largest residual, relative to its row.

    Of own row j, `picked[j]` is 1 where it counts, and s[j] its residual, else 0.
    """
    length, worst = sqrt(dot(w.z, w.z, w.width)), 0.0
    for i in range(first, last):
        w.v[i] = dot(w.Y[i * w.width :], w.z, w.width)
        off = missed(w.v[i], w.low[i], w.high[i])
        share = abs(off) / size_of(w, i, length)
        worst = max(worst, share)
        counts = 1.0 if share > COUNTS or w.low[i] == w.high[i] else 0.0
        if counts != w.picked[i - first]:
            w.count[STALE] = 1.0
        w.picked[i - first] = counts
        w.s[i - first] = off * counts
    return worst


@routine
def least_residuals(w: Desk, first: int, last: int) -> float:
    """Write what is left of own residuals off the range of the rows; return how far it is rounded.

    At the least value of a level residuals s are orthogonal to the columns of F. Beside small rows
    large ones miss next to nothing, and s has that as the difference of large numbers: the part
    along the columns U, which is rounding, is taken off. What a row's rounding then can do to the
    gradient is what U leaves of it.
    """
    rows, own, length = last - first, int(w.count[OWN]), sqrt(dot(w.z, w.z, w.width))
    height, total = (rows + 3) // 4 * 4, 1e-300
    for j in range(height):
        w.r[j] = w.s[j]
    spans = 1 if own > 0 and own != rows and w.count[DAMPING] == 0.0 else 0
    if spans == 1:
        for k in range(own):
            add(-dot(w.U[k * height :], w.r, height), w.U[k * height :], w.r, height)
    for j in range(rows):
        if w.picked[j] == 0.0:
            continue
        share = 1.0
        if spans == 1:
            for k in range(own):
                share = fma(-w.U[k * height + j], w.U[k * height + j], share)
        total = fma(w.norm[first + j] * max(share, 0.0), size_of(w, first + j, length), total)
    return total


@routine
def gradient(w: Desk, first: int, last: int) -> float:
    """Write g, the slope of half the sum of squares of r; return how large it could be.

    A level without rows is the last: it has least variables.
    """
    if first == last:
        copy(w.z, w.g, w.width)
        return sqrt(dot(w.z, w.z, w.width))
    total = 0.0
    fill(0.0, w.g, w.width)
    for i in range(first, last):
        add(w.r[i - first], w.Y[i * w.width :], w.g, w.width)
        total = fma(abs(w.r[i - first]), w.norm[i], total)
    return total


@routine
def scale(w: Desk, first: int, last: int) -> float:
    """Return how large the gradient of a level's rows could be."""
    length, total = sqrt(dot(w.z, w.z, w.width)), 1e-300
    for i in range(first, last):
        total = fma(w.norm[i], size_of(w, i, length), total)
    return total
