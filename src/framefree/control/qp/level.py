"""One level of a lexicographic program, as routines: its rows as near to their bounds as can be.

At a level the variables z are changed so that the sum of squares of what its own rows miss falls to
its least value, while

- rows that levels above have fixed stay where they are: steps are orthogonal to the basis Q;
- other rows of levels above stay within their bounds: those that a step would leave become part of
  a working set, whose rows come next in the basis until a multiplier says otherwise.

This is the primal active-set method, each iterate of which is feasible. A row of the level itself
counts where it is violated; a step goes along the Newton direction to the least value on it, across
bounds at which own rows begin or cease to count.

The basis has rows that are fixed, then those of the working set, then own ones: basis row k stems
from row `row_of[k]` of the program, which is T[k] . Q. `count` has the sizes of these parts, and
what else is counted. The state of a row says whether it is free, fixed, at a bound in the working
set, or left out because it depends on that set; its guess, at which bound it will end.
"""

from math import sqrt

from framefree.control.qp.least import (
    damped_step,
    damping_of,
    inverse_length,
    plain_step,
    triangular,
)
from framefree.control.qp.vectors import add, append, combine, copy, dot, fill
from framefree.kernel.routines import Desk, fma, routine

FREE, FIXED, UPPER, LOWER, LEFT_OUT = 0.0, 1.0, 2.0, 3.0, 4.0
RANK, WORKING, OWN, PICKED, STALE, STEPS, DAMPING, SIGMA = 0, 1, 2, 3, 4, 5, 6, 7
"""Places in `count`; STALE is 1 where the own part of the basis is not that of the picked rows."""

MET = 1e-11
"""What a row may miss, relative to the numbers in it, to count as met."""
NEW = 1e-10
"""Share of a bounded row that must be new for it to block a step."""
STILL = 1e-14
"""Length of a step, relative to the variables, below which a level is at its least value."""
SIGN = 1e-10
"""Share of a multiplier in the gradient below which its sign says nothing."""
LOCKED = 1e-7
"""Share above which it says that the bound cannot be left: with less nothing is lost if it is."""
REFINED = 4
"""How often a step is repeated with the same rows."""


@routine
def missed(v: float, low: float, high: float) -> float:
    """Return by how much a value is above its upper bound (positive) or below the lower one."""
    if v > high:
        return v - high
    if v < low:
        return v - low
    return 0.0


@routine
def size_of(w: Desk, i: int, length: float) -> float:
    """Return how large the numbers in a row are, for variables of a length."""
    a = abs(w.low[i]) if abs(w.low[i]) < 1e20 else 0.0
    b = abs(w.high[i]) if abs(w.high[i]) < 1e20 else 0.0
    return fma(w.norm[i], length, max(a, b)) + 1e-300


@routine
def measure(w: Desk, first: int, last: int) -> float:
    """Measure own rows, pick those that count; return the largest residual, relative to its row."""
    length, worst, number = sqrt(dot(w.z, w.z, w.width)), 0.0, 0
    before = int(w.count[PICKED])
    for i in range(first, last):
        w.v[i] = dot(w.Y[i * w.width :], w.z, w.width)
        off = missed(w.v[i], w.low[i], w.high[i])
        share = abs(off) / size_of(w, i, length)
        worst = max(worst, share)
        if share > MET or w.low[i] == w.high[i]:
            if number >= before or w.picked[number] != float(i):
                w.count[STALE] = 1.0
            w.s[number] = off
            w.picked[number] = float(i)
            number += 1
    if number != before:
        w.count[STALE] = 1.0
    for a in range(number, (number + 3) // 4 * 4):
        w.s[a] = 0.0
    w.count[PICKED] = float(number)
    return worst


@routine
def factor(w: Desk, weighs: int) -> None:
    """Extend the basis by the picked rows, and write them on it to F.

    How strongly to damp is found out where `weighs` is 1.
    """
    base, own, rows, total = (
        int(w.count[RANK]) + int(w.count[WORKING]),
        0,
        int(w.count[PICKED]),
        0.0,
    )
    for a in range(rows if base < w.n else 0):
        i, top = int(w.picked[a]), base + own
        line, added = w.F[a * w.width :], 0
        fill(0.0, line, w.width)
        if top < w.n:
            least = w.tolerance * w.norm[i]
            added = append(w.Y[i * w.width :], least, w.Q, w.T, top, w.n, w.width, w.spare)
            copy(w.T[top * w.width + base :], line, own + added)
        else:
            for j in range(own):
                line[j] = dot(w.Y[i * w.width :], w.Q[(base + j) * w.width :], w.width)
        if added == 1:
            w.row_of[top] = float(i)
            own += 1
        total = fma(w.norm[i], w.norm[i], total)
    w.count[OWN] = float(own)
    w.count[STALE] = 0.0
    if own == 0:
        return
    if rows != own:
        triangular(w.F, rows, own, w.width, w.L, w.U, w.spare)
    if weighs == 1 or w.count[DAMPING] > 0.0:
        if rows == own:
            w.count[SIGMA] = 1.0 / inverse_length(w.F, own, w.width, w.c)
        else:
            w.count[SIGMA] = 1.0 / inverse_length(w.L, own, w.width, w.c)
    if weighs == 1:
        size = sqrt(total / float(rows))
        w.count[DAMPING] = damping_of(w.count[SIGMA], w.threshold, size)


@routine
def direction(w: Desk) -> float:
    """Write the step d of least squares; return its length."""
    base, own = int(w.count[RANK]) + int(w.count[WORKING]), int(w.count[OWN])
    rows = int(w.count[PICKED])
    basis = w.Q[base * w.width :]
    fill(0.0, w.d, w.width)
    if own == 0:
        return 0.0
    if w.count[DAMPING] > 0.0:
        for j in range(own):
            line = basis[j * w.width :]
            w.h[j] = dot(line, w.z, w.width) - dot(line, w.rest, w.width)
        damped_step(w.F, w.s, w.h, w.count[DAMPING], rows, own, w.width, w.L, w.c)
    else:
        plain_step(w.F, w.s, rows, own, w.width, w.L, w.U, w.c)
    for j in range(own):
        w.c[j] = -w.c[j]
    combine(w.c, basis, own, w.width, w.d)
    return sqrt(dot(w.d, w.d, w.width))


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
            near = 1e-12 * (abs(v) + abs(t * rate))
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
    w.guess[i] = side
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
def gradient(w: Desk, first: int, last: int) -> float:
    """Write g, the slope of half the sum of squares; return how large it could be.

    A level without rows is the last: it has least variables.
    """
    if first == last:
        copy(w.z, w.g, w.width)
        return sqrt(dot(w.z, w.z, w.width))
    total = 0.0
    fill(0.0, w.g, w.width)
    for a in range(int(w.count[PICKED])):
        i = int(w.picked[a])
        add(w.s[a], w.Y[i * w.width :], w.g, w.width)
        total = fma(abs(w.s[a]), w.norm[i], total)
    return total


@routine
def scale(w: Desk, first: int, last: int) -> float:
    """Return how large the gradient of a level's rows could be."""
    length, total = sqrt(dot(w.z, w.z, w.width)), 1e-300
    for i in range(first, last):
        total = fma(w.norm[i], size_of(w, i, length), total)
    return total


@routine
def multipliers(w: Desk, first: int, last: int, deepest: int) -> float:
    """Write multipliers mu of basis rows from `deepest` on, g + mu T = 0 on them.

    Return what to compare them with: the terms of the gradient, and a share of what it could be.
    """
    size = fma(0.2, scale(w, first, last), gradient(w, first, last))
    top = int(w.count[RANK]) + int(w.count[WORKING])
    for j in range(top - deepest):
        k = top - 1 - j
        value = -dot(w.Q[k * w.width :], w.g, w.width)
        for i in range(k + 1, top):
            value = fma(-w.T[i * w.width + k], w.mu[i], value)
        w.mu[k] = value / w.T[k * w.width + k]
    return size


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


@routine
def move(w: Desk, first: int, t: float) -> None:
    """Go along the step."""
    add(t, w.d, w.z, w.width)
    for i in range(first):
        if w.state[i] == FREE:
            w.v[i] = fma(t, w.rate[i], w.v[i])


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
def begin(w: Desk, first: int) -> None:
    """Start a level with the rows that are at a bound where they are expected to end."""
    length = sqrt(dot(w.z, w.z, w.width))
    for i in range(first):
        if w.state[i] == FREE and w.guess[i] != 0.0:
            bound = w.high[i] if w.guess[i] > 0.0 else w.low[i]
            if abs(w.v[i] - bound) <= MET * size_of(w, i, length):
                hold(w, i, w.guess[i])


@routine
def solve_level(w: Desk, first: int, last: int) -> float:
    """Bring the level's residuals to their least values; return 1 if its rows are all met.

    Return 0 if some had to give way, and -1 if the number of steps did not suffice.
    """
    bends, refined = 0, 0
    for i in range(first, last):
        if w.low[i] < w.high[i]:
            bends = 1
    w.count[PICKED] = 0.0
    w.count[OWN] = 0.0
    w.count[STALE] = 1.0
    w.count[WORKING] = 0.0
    w.count[DAMPING] = 0.0
    if w.threshold > 0.0 and first < last:
        met = measure(w, first, last)
        if met <= MET:
            return 1.0
        factor(w, 1)
    begin(w, first)
    for step in range(w.most):
        w.count[STEPS] += 1.0
        length, t, found = 0.0, 0.0, -1
        if first == last:
            length = off_basis(w)
        else:
            worst = measure(w, first, last)
            if worst <= MET:
                return 1.0
            if w.count[STALE] == 1.0:
                factor(w, 0)
                refined = 0
            length = direction(w)
        if length > STILL * sqrt(dot(w.z, w.z, w.width)) and refined < REFINED:
            found = blocking(w, first, length)
            t = w.reach[0]
            if bends == 1:
                t = least_along(w, first, last, w.reach[0])
            move(w, first, t)
            refined += 1
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
