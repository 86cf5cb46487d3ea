"""One level of a lexicographic program, as routines: its rows as near to their bounds as can be.

At a level the variables z are changed so that the sum of squares of what its own rows miss falls to
its least value, while

- rows that levels above have fixed stay where they are: steps are orthogonal to the basis Q;
- other rows of levels above stay within their bounds: those that a step would leave become part of
  a working set, whose rows come next in the basis until a multiplier says otherwise.

This is the primal active-set method, each iterate of which is feasible. A row of the level itself
counts where it is violated; a step goes along the Newton direction to the least value on it, across
bounds at which own rows begin or cease to count.
"""

from math import sqrt

from framefree.control.qp.basis import (
    factor,
    hold,
    multipliers,
    off_basis,
    release,
    wrong,
)
from framefree.control.qp.desk import (
    COUNTS,
    DAMPING,
    FREE,
    LEFT_OUT,
    LEVEL,
    LOWER,
    MET,
    NEW,
    OWN,
    RANK,
    REFINED,
    SIGMA,
    STALE,
    STEPS,
    STILL,
    UPPER,
    WORKING,
)
from framefree.control.qp.least import damped_step, damping_of, inverse_length, plain_step
from framefree.control.qp.rows import measure, missed, size_of
from framefree.control.qp.vectors import add, combine, dot, fill
from framefree.kernel.routines import Desk, fma, routine
from framefree.rounding import rounding

NEAR = rounding(1e-12)
"""Share of a value within which it is at a bound that a step crosses."""


@routine
def direction(w: Desk, first: int, last: int) -> float:
    """Write the step d of least squares; return its length."""
    base, own = int(w.count[RANK]) + int(w.count[WORKING]), int(w.count[OWN])
    basis = w.Q[base * w.width :]
    fill(0.0, w.d, w.width)
    if own == 0:
        return 0.0
    if w.damps == 1 and w.count[DAMPING] > 0.0:
        for j in range(own):
            line = basis[j * w.width :]
            w.h[j] = dot(line, w.z, w.width) - dot(line, w.rest, w.width)
        damped_step(w.F, w.s, w.h, w.count[DAMPING], last - first, own, w.width, w.L, w.c)
    else:
        plain_step(w.F, w.s, last - first, own, w.width, w.L, w.U, w.c)
    for j in range(own):
        w.c[j] = -w.c[j]
    combine(w.c, basis, own, w.width, w.d)
    return sqrt(dot(w.d, w.d, w.width))


@routine
def damp(w: Desk, first: int, last: int) -> None:
    """Choose how strongly to damp: not at all unless the step leads too far from still."""
    own, total = int(w.count[OWN]), 0.0
    direction(w, first, last)
    for i in range(w.width):
        away = (w.z[i] - w.still[i]) + w.d[i]
        total = fma(away, away, total)
    if own == 0 or total <= w.farthest[0] * w.farthest[0]:
        return
    matrix = w.F if own == last - first else w.L
    w.count[SIGMA] = 1.0 / inverse_length(matrix, own, w.width, w.c)
    size = 0.0
    for i in range(first, last):
        size = fma(w.norm[i], w.norm[i] * w.picked[i - first], size)
    beyond = 1.0 - w.farthest[0] / sqrt(total)
    size = sqrt(size / float(last - first))
    w.count[DAMPING] = beyond * beyond * damping_of(w.count[SIGMA], w.threshold[0], size)


@routine
def blocking(w: Desk, first: int, length: float) -> int:
    """Find the free row of levels above that a step meets first, at most at its end; -1 if none.

    How far of the step that is goes to `reach`.
    """
    found = -1
    w.reach[0] = 1.0
    for i in range(first):
        if w.state[i] != FREE:
            continue
        rate = dot(w.Y[i * w.width :], w.d, w.width)
        w.rate[i] = rate
        room = w.high[i] - w.v[i] if rate > 0.0 else w.low[i] - w.v[i]
        if abs(rate) > NEW * w.norm[i] * length and room / rate < w.reach[0]:
            w.reach[0] = max(room / rate, 0.0)
            found = i
    return found


@routine
def least_along(w: Desk, first: int, last: int, most: float) -> float:
    """Return how far of a step the sum of squares of own rows falls, at most `most`.

    Its slope is piecewise linear; this goes from piece to piece.
    """
    t, damped = 0.0, 0.0
    for j in range(int(w.count[OWN])):
        damped = fma(w.c[j], w.c[j], damped)
    damped = damped * w.count[DAMPING]
    for i in range(first, last):
        w.rate[i] = dot(w.Y[i * w.width :], w.d, w.width)
    for _ in range(2 * (last - first) + 2):
        slope, bend, following = damped * t, damped, most
        if w.count[DAMPING] > 0.0:
            for j in range(int(w.count[OWN])):
                slope = fma(-w.count[DAMPING] * w.h[j], w.c[j], slope)
        for i in range(first, last):
            rate, v = w.rate[i], fma(t, w.rate[i], w.v[i])
            near = NEAR * (abs(v) + abs(t * rate))
            ahead = v
            if w.picked[i - first] == 0.0:
                ahead = v + near if rate > 0.0 else v - near
            off = missed(ahead, w.low[i], w.high[i])
            if off != 0.0 or w.low[i] == w.high[i]:
                slope = fma(off, rate, slope)
                bend = fma(rate, rate, bend)
            edge = w.high[i] if rate > 0.0 and ahead >= w.low[i] else w.low[i]
            if rate < 0.0 and ahead > w.high[i]:
                edge = w.high[i]
            passed = (edge - w.v[i]) / rate if rate != 0.0 else most
            if passed > t and abs(edge - v) > near:
                following = min(following, passed)
        if slope >= 0.0:
            return t
        if bend > 0.0 and t - slope / bend <= following:
            return t - slope / bend
        if following >= most:
            return most
        t = following
    return t


@routine
def move(w: Desk, first: int, t: float) -> None:
    """Go along the step."""
    add(t, w.d, w.z, w.width)
    for i in range(first):
        if w.state[i] == FREE:
            w.v[i] = fma(t, w.rate[i], w.v[i])


@routine
def begin(w: Desk, first: int) -> None:
    """Start a level with rows in the working set that are expected to end there.

    They are brought to their bounds, if other rows allow it, else those that are there already are
    taken.
    """
    rank, level = int(w.count[RANK]), w.count[LEVEL]
    for i in range(first):
        if w.state[i] == FREE and w.guess[i] != 0.0 and abs(w.guess[i]) <= level:
            if abs(w.high[i] if w.guess[i] > 0.0 else w.low[i]) < 1e20:
                hold(w, i, w.guess[i])
            if w.state[i] == LEFT_OUT:
                w.state[i] = FREE
    if w.count[WORKING] == 0.0:
        return
    towards(w, rank, rank + int(w.count[WORKING]))
    length = sqrt(dot(w.z, w.z, w.width))
    step = sqrt(dot(w.d, w.d, w.width))
    if step <= COUNTS * length:
        return
    if blocking(w, first, step) < 0:
        move(w, first, 1.0)
        for i in range(first):
            if w.state[i] == UPPER or w.state[i] == LOWER:
                w.v[i] = w.high[i] if w.state[i] == UPPER else w.low[i]
        return
    w.count[WORKING] = 0.0
    for i in range(first):
        if w.state[i] == UPPER or w.state[i] == LOWER:
            w.state[i] = FREE
            bound = w.high[i] if w.guess[i] > 0.0 else w.low[i]
            if abs(w.v[i] - bound) <= MET * size_of(w, i, length):
                hold(w, i, w.guess[i])


@routine
def towards(w: Desk, rank: int, top: int) -> None:
    """Write the step d that brings the rows of the working set to their bounds."""
    fill(0.0, w.d, w.width)
    for k in range(rank, top):
        i = int(w.row_of[k])
        value = (w.high[i] if w.state[i] == UPPER else w.low[i]) - w.v[i]
        for j in range(rank, k):
            value = fma(-w.T[k * w.width + j], w.c[j], value)
        w.c[k] = value / w.T[k * w.width + k]
        add(w.c[k], w.Q[k * w.width :], w.d, w.width)


@routine
def solve_level(w: Desk, first: int, last: int) -> float:
    """Bring the level's residuals to their least values; return 1 if its rows are all met.

    Return 0 if some had to give way, and -1 if the number of steps did not suffice.
    """
    bends, refined, moved = 0, 0, 0
    for i in range(first, last):
        w.picked[i - first] = 0.0
        if w.low[i] < w.high[i]:
            bends = 1
    for j in range(last - first, (last - first + 3) // 4 * 4):
        w.s[j] = 0.0
    w.count[OWN] = 0.0
    w.count[STALE] = 1.0
    w.count[WORKING] = 0.0
    w.count[DAMPING] = 0.0
    w.count[LEVEL] += 1.0
    begin(w, first)
    for step in range(w.most):
        w.count[STEPS] += 1.0
        length, t, found = 0.0, 0.0, -1
        if first == last:
            length = off_basis(w)
        else:
            worst = measure(w, first, last)
            if worst <= COUNTS or (worst <= MET and moved == 1):
                return 1.0
            if w.count[STALE] == 1.0:
                factor(w, first, last)
                refined = 0
            if w.damps == 1 and w.count[LEVEL] > w.exact and step + w.count[WORKING] == 0.0:
                damp(w, first, last)
            length = direction(w, first, last)
        if length > STILL * sqrt(dot(w.z, w.z, w.width)) and refined < REFINED:
            found = blocking(w, first, length)
            t = w.reach[0]
            if bends == 1:
                t = least_along(w, first, last, w.reach[0])
            move(w, first, t)
            refined += 1
            moved = 1
        if found >= 0 and t >= w.reach[0]:
            hold(w, found, 1.0 if w.rate[found] > 0.0 else -1.0)
            refined = 0
        elif t * length <= STILL * sqrt(dot(w.z, w.z, w.width)):
            if w.count[WORKING] == 0.0:
                return 0.0
            size = multipliers(w, first, last, int(w.count[RANK]))
            leaving = wrong(w, size, 1 if step > w.n + first else 0)
            if leaving < 0:
                return 0.0
            release(w, leaving)
            refined = 0
    measure(w, first, last)
    return -1.0
