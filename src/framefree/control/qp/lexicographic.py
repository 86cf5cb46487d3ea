"""Programs of levels in strict order, as a routine.

Level k has rows ``lower_k <= Y_k z <= upper_k`` (an equation has equal bounds). Each level misses
its bounds by as little as can be, in the sense of least squares, among all z that are best for the
levels above; of what is left open at the end the shortest z is taken:

    w_k(z) = what Y_k z is above its upper or below its lower bounds
    z in argmin |w_k|^2 over argmin |w_(k-1)|^2 over ... ,    last |z|^2

A level that is solved leaves behind rows that are fixed (its equations, and what it had to miss)
and rows that must stay within their bounds. A bound of a level above whose multiplier is not zero
cannot be left without harm to the level, and is fixed too.

Certificate: at each level the gradient w_k Y_k is a sum of rows that are active, times multipliers
`multipliers[k]`, which have the signs of their bounds unless the row is fixed from above; own rows
have their residuals as multipliers. `level_info` has of each level: the length of what is missed,
the error of the gradient (relative to its terms) or of signs, the damping's bound on the error
relative to what is asked for, and 1 if met, 0 if it gave way, -1 if steps ran out.
"""

from math import sqrt

from framefree.control.qp.basis import again, factor, multipliers
from framefree.control.qp.desk import (
    DAMPING,
    FIXED,
    FREE,
    LEFT_OUT,
    LOCKED,
    MET,
    OWN,
    RANK,
    SIGMA,
    STALE,
    STEPS,
    UPPER,
    WORKING,
)
from framefree.control.qp.level import solve_level
from framefree.control.qp.rows import missed, scale, size_of, undefined_of
from framefree.control.qp.vectors import add, dot, fill
from framefree.kernel.routines import Desk, Layout, Procedure, fma, routine

PARTS = 4
"""Numbers of `level_info`."""
STEPS_PER_SIZE = 4


@routine
def prepare(w: Desk) -> None:
    """Take over start, bounds and guesses."""
    fill(0.0, w.count, 8)
    fill(0.0, w.z, w.width)
    for i in range(w.n):
        if abs(w.start[i]) < 1e100:
            w.z[i] = w.start[i]
    for i in range(w.m):
        low, high = w.lower[i], w.upper[i]
        if low > high:
            low = 0.5 * (low + high)
            high = low
        w.low[i] = low
        w.high[i] = high
        w.guess[i] = w.guessed[i]
        w.state[i] = FREE
        w.v[i] = 0.0
        row = w.Y[i * w.width :]
        w.norm[i] = sqrt(dot(row, row, w.width))
    fill(0.0, w.multipliers, w.levels * w.m)


@routine
def certify(w: Desk, level: int, first: int, last: int) -> float:
    """Write the multipliers of a level that gave way; return the largest relative error.

    Signs are compared with the gradient, the sum with its terms: rows that are nearly dependent
    have large multipliers, which are rounded.
    """
    size = multipliers(w, first, last, 0) + scale(w, first, last)
    rank, error, terms = int(w.count[RANK]), 0.0, size
    top = rank + int(w.count[WORKING])
    out = w.multipliers[level * w.m :]
    for k in range(top):
        i = int(w.row_of[k])
        out[i] = w.mu[k]
        add(w.mu[k], w.Y[i * w.width :], w.g, w.width)
        terms = fma(abs(w.mu[k]), w.norm[i], terms)
        if k >= rank:
            side = 1.0 if w.state[i] == UPPER else -1.0
            error = max(error, -side * w.mu[k] * w.norm[i] / size)
    for j in range(last - first):
        if w.picked[j] == 1.0:
            out[first + j] = w.s[j]
    if w.damps == 1 and w.count[DAMPING] > 0.0:
        for j in range(int(w.count[OWN])):
            line = w.Q[(top + j) * w.width :]
            away = dot(line, w.z, w.width) - dot(line, w.rest, w.width)
            add(w.count[DAMPING] * away, line, w.g, w.width)
    return max(error, sqrt(dot(w.g, w.g, w.width)) / terms)


@routine
def settle(w: Desk, first: int, last: int, met: float) -> None:
    """Fix what a solved level fixes, and let the rest of its rows be bounds for those below."""
    rank, kept, working = int(w.count[RANK]), 0, int(w.count[WORKING])
    size = 0.0
    if met != 1.0 and working > 0:
        size = multipliers(w, first, last, rank)
    for k in range(rank, rank + working):
        i = int(w.row_of[k])
        if met != 1.0 and abs(w.mu[k]) * w.norm[i] > LOCKED * size:
            w.state[i] = FIXED
            w.row_of[rank + kept] = w.row_of[k]
            kept += 1
        else:
            w.state[i] = FREE
    length = sqrt(dot(w.z, w.z, w.width))
    for row in range(first, last):
        # A bound that is met stays one, though it may have counted for what rounding leaves of it.
        most = MET * size_of(w, row, length) if w.low[row] < w.high[row] else -1.0
        if w.picked[row - first] == 1.0 and abs(w.s[row - first]) <= most:
            w.picked[row - first] = 0.0
            w.count[STALE] = 1.0
    if kept < working:
        again(w, kept, rank)
        w.count[STALE] = 1.0
    if w.count[STALE] == 1.0:
        factor(w, first, last)
    w.count[RANK] += w.count[WORKING] + w.count[OWN]
    w.count[WORKING] = 0.0
    for row in range(first, last):
        if w.picked[row - first] == 1.0:
            w.state[row] = FIXED
    for row in range(last):
        if w.state[row] == LEFT_OUT:
            w.state[row] = FREE
            w.v[row] = dot(w.Y[row * w.width :], w.z, w.width)
        if w.state[row] == FREE:
            w.low[row] = min(w.low[row], w.v[row])
            w.high[row] = max(w.high[row], w.v[row])


@routine
def lexicographic(w: Desk) -> None:
    """Solve a program; see the top of the file."""
    prepare(w)
    first = 0
    for k in range(w.levels):
        last = w.ends[k]
        met = solve_level(w, first, last)
        info = w.level_info[4 * k :]
        info[1] = 0.0
        info[2] = 0.0
        info[3] = met
        if met != 1.0:
            info[1] = certify(w, k, first, last)
            if w.damps == 1 and w.count[DAMPING] > 0.0:
                sigma = w.count[SIGMA] * w.count[SIGMA]
                info[2] = w.count[DAMPING] / (w.count[DAMPING] + sigma)
        if k + 1 < w.levels:
            settle(w, first, last, met)
        first = last
    finish(w)


@routine
def finish(w: Desk) -> None:
    """Write the solution, what rows miss, where they end, and errors of kept residuals.

    Rows that are not numbers have no solution: nor is it numbers then.
    """
    length, first, undefined = sqrt(dot(w.z, w.z, w.width)), 0, 0.0
    for i in range(w.m):
        undefined = undefined_of(w.norm[i] - w.norm[i], undefined)
        undefined = undefined_of(w.lower[i], undefined)
        undefined = undefined_of(w.upper[i], undefined)
    for i in range(w.n):
        w.solution[i] = w.z[i] + undefined
    w.steps[0] = w.count[STEPS]
    for k in range(w.levels):
        last, total, info = w.ends[k], 0.0, w.level_info[4 * k :]
        for i in range(first, last):
            before = missed(w.v[i], w.lower[i], w.upper[i])
            v = dot(w.Y[i * w.width :], w.z, w.width)
            w.slack[i] = missed(v, w.lower[i], w.upper[i])
            total = fma(w.slack[i], w.slack[i], total)
            size = size_of(w, i, length)
            info[1] = max(info[1], abs(w.slack[i] - before) / size)
            info[3] = info[3] if undefined == 0.0 else -1.0
            w.status[i] = w.guess[i]
            if abs(w.slack[i]) > MET * size and w.lower[i] < w.upper[i]:
                w.status[i] = float(w.levels) if w.slack[i] > 0.0 else -float(w.levels)
        info[0] = sqrt(total)
        first = last


def program(
    label: str, n: int, ends: tuple[int, ...], *, damps: bool, tolerance: float, exact: int = 0
) -> Procedure:
    """Return the routine for programs of one shape.

    Parameters
    ----------
    label : str
        A name that C allows.
    n : int
        Number of variables.
    ends : tuple of int
        Number of rows up to the end of each level.
    damps : bool
        Whether levels are damped where the least singular value of their rows, relative to them, is
        below the input `threshold` and they lead farther than `farthest` from `still`.
    tolerance : float
        Share of a row that must be new for it to count.
    exact : int
        Number of levels, from the first on, that are never damped.
    """
    m, width = ends[-1], -(-n // 4) * 4
    tallest = max(b - a for a, b in zip((0, *ends), ends, strict=False))
    height = -(-tallest // 4) * 4
    levels = len(ends) + 1
    inputs = {"Y": m * width, "lower": m, "upper": m, "rest": width, "still": width}
    inputs |= {"farthest": 1, "threshold": 1, "start": n, "guessed": m}
    outputs = {"solution": n, "slack": m, "multipliers": levels * m, "status": m}
    outputs |= {"level_info": levels * PARTS, "steps": 1}
    square, long = (n + 2) * width, max(n, m) + 8
    parts = {**inputs, **outputs, "Q": square, "T": square, "L": square}
    parts |= {"F": (height + 1) * width, "U": (n + 2) * height, "spare": 2 * max(width, height) + 8}
    parts |= dict.fromkeys(("z", "d", "g"), width)
    parts |= dict.fromkeys(("low", "high", "norm", "v", "s", "rate", "state", "guess"), long)
    parts |= dict.fromkeys(("picked", "row_of", "mu", "c", "h", "r"), long)
    parts |= {"count": 8, "reach": 1}
    numbers = {"n": n, "m": m, "width": width, "levels": levels}
    numbers |= {
        "damps": int(damps),
        "exact": float(exact),
        "tolerance": tolerance,
        "most": STEPS_PER_SIZE * (n + m) + 10,
    }
    layout = Layout(parts, numbers, {"ends": (*ends, ends[-1])})
    return Procedure(label, lexicographic, layout, tuple(inputs), tuple(outputs))
