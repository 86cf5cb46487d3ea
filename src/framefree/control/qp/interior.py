"""The method of `framefree.control.qp.iteration` as a routine: loops over variables and rows.

As an expression the method grows with the rows times the square of the variables; here its code is
the same for programs of all sizes. The formulas, their constants and their order are those of
`program.py` and `iteration.py`; names of arrays too. All rows have both bounds, equations equal
ones, and bounds that are infinite are far away.
"""

from math import sqrt

from framefree.control.qp.factor import PIVOT
from framefree.control.qp.iteration import (
    CENTRAL,
    DUAL,
    PENALTY,
    PRIMAL,
    PROXIMAL,
    REFINEMENTS,
    REGULAR,
    SHARE,
    SHORT,
)
from framefree.control.qp.program import FIRST_SHARE, POLISHES, TOLERANT
from framefree.kernel.routines import Array, Desk, Layout, Procedure, fma, routine

FAR = 1e20
"""What stands for a bound that is infinite."""


@routine
def inner(a: Array, b: Array, count: int) -> float:
    """Return a . b."""
    total = 0.0
    for i in range(count):
        total = fma(a[i], b[i], total)
    return total


@routine
def scale(w: Desk) -> None:
    """Scale the program: unit diagonal of H, unit rows."""
    n, top = w.n, 0.0
    for i in range(n):
        top = max(top, w.H[i * n + i])
    top = top if top > 0.0 else 1.0
    for i in range(n):
        own = w.H[i * n + i]
        w.by_variable[i] = 1.0 / sqrt(own if own > 1e-18 * top else top)
        w.gs[i] = w.by_variable[i] * w.g[i]
    for i in range(n):
        for j in range(i + 1):
            w.Hs[i * n + j] = w.by_variable[i] * w.H[i * n + j] * w.by_variable[j]
            w.Hs[j * n + i] = w.Hs[i * n + j]
    for k in range(w.m):
        squares = 0.0
        for j in range(n):
            own = w.A[k * n + j] if k < w.equations else w.C[(k - w.equations) * n + j]
            w.R[k * n + j] = own * w.by_variable[j]
            squares = fma(w.R[k * n + j], w.R[k * n + j], squares)
        w.by_row[k] = 1.0 / sqrt(squares if squares > 0.0 else 1.0)
        for j in range(n):
            w.R[k * n + j] *= w.by_row[k]
        low = w.b[k] if k < w.equations else max(w.lower[k - w.equations], -FAR)
        high = w.b[k] if k < w.equations else min(w.upper[k - w.equations], FAR)
        w.low[k] = w.by_row[k] * low
        w.high[k] = w.by_row[k] * high


@routine
def factorise(w: Desk, more: float) -> None:
    """Factor K = H + R^T diag(weights) R + more I; L is kept above the diagonal."""
    n = w.n
    for i in range(n):
        for j in range(i + 1):
            w.K[i * n + j] = w.Hs[i * n + j]
        w.K[i * n + i] += more
    for k in range(w.m):
        for i in range(n):
            part = w.weights[k] * w.R[k * n + i]
            for j in range(i + 1):
                w.K[i * n + j] = fma(part, w.R[k * n + j], w.K[i * n + j])
    for i in range(n):
        w.pivots[i] = w.K[i * n + i]
    for j in range(n):
        w.pivots[j] = 1.0 / max(w.K[j * n + j], PIVOT * w.pivots[j] + 1e-300)
        for i in range(j + 1, n):
            factor = w.K[i * n + j] * w.pivots[j]
            w.K[j * n + i] = factor
            for k in range(j + 1, i + 1):
                w.K[i * n + k] = fma(-factor, w.K[k * n + j], w.K[i * n + k])


@routine
def solve(w: Desk) -> None:
    """Replace dz by K^-1 dz, and write R dz."""
    n = w.n
    for i in range(n):
        for k in range(i):
            w.dz[i] = fma(-w.K[k * n + i], w.dz[k], w.dz[i])
    for i in range(n):
        w.dz[i] *= w.pivots[i]
    for r in range(n):
        i = n - 1 - r
        for k in range(i):
            w.dz[k] = fma(-w.K[k * n + i], w.dz[i], w.dz[k])
    for k in range(w.m):
        w.moved[k] = inner(w.R[k * n :], w.dz, n)


@routine
def residuals(w: Desk, z: Array, y: Array) -> None:
    """Write R z, and H z + g + R^T y."""
    n = w.n
    for k in range(w.m):
        w.along[k] = inner(w.R[k * n :], z, n)
    for i in range(n):
        w.slope[i] = w.gs[i] + inner(w.Hs[i * n :], z, n)
    for k in range(w.m):
        for i in range(n):
            w.slope[i] = fma(w.R[k * n + i], y[k], w.slope[i])


@routine
def violation(w: Desk, z: Array, y: Array) -> float:
    """Return the largest violation of the conditions of optimality."""
    residuals(w, z, y)
    worst = 0.0
    for i in range(w.n):
        worst = max(worst, abs(w.slope[i]))
    for k in range(w.m):
        up = max(y[k] + w.along[k] - w.high[k], 0.0)
        down = max(w.low[k] - w.along[k] - y[k], 0.0)
        worst = max(worst, abs(up - down - y[k]))
    return worst


@routine
def begin(w: Desk) -> None:
    """Write the first point, and its size: how far the damped solution violates the bounds."""
    for k in range(w.m):
        w.weights[k] = 0.0
    factorise(w, 1e-2)
    for i in range(w.n):
        w.dz[i] = -w.gs[i]
    solve(w)
    worst, largest = -FAR, 0.0
    for i in range(w.n):
        w.z[i] = w.dz[i]
        largest = max(largest, abs(w.z[i]))
    for k in range(w.m):
        worst = max(worst, max(w.low[k] - w.moved[k], w.moved[k] - w.high[k]))
    size = max(worst, FIRST_SHARE * largest + 1e-8)
    w.size[0] = size
    for k in range(w.m):
        w.s_l[k] = max(w.moved[k] - w.low[k], size)
        w.s_u[k] = max(w.high[k] - w.moved[k], size)
        w.y_l[k] = size * size / w.s_l[k]
        w.y_u[k] = size * size / w.s_u[k]


@routine
def direct(w: Desk, r: float) -> None:
    """Write the step that changes every s y by its target t, to first order."""
    n = w.n
    for i in range(n):
        w.dz[i] = -w.slope[i]
    for k in range(w.m):
        w.p_l[k] = (w.t_l[k] - w.y_l[k] * (w.along[k] - w.low[k] - w.s_l[k])) * w.soft_l[k]
        w.p_u[k] = (w.t_u[k] - w.y_u[k] * (w.high[k] - w.along[k] - w.s_u[k])) * w.soft_u[k]
        net = w.p_u[k] - w.p_l[k]
        for i in range(n):
            w.dz[i] = fma(-w.R[k * n + i], net, w.dz[i])
    solve(w)
    for k in range(w.m):
        w.dy_l[k] = w.p_l[k] - w.y_l[k] * w.soft_l[k] * w.moved[k]
        w.dy_u[k] = w.p_u[k] + w.y_u[k] * w.soft_u[k] * w.moved[k]
        w.ds_l[k] = fma(r, w.dy_l[k], w.along[k] - w.low[k] - w.s_l[k] + w.moved[k])
        w.ds_u[k] = fma(r, w.dy_u[k], w.high[k] - w.along[k] - w.s_u[k] - w.moved[k])


@routine
def length(w: Desk, share: float) -> float:
    """Return how far of the step to go, at most 1, so that all stays positive."""
    fall = share
    for k in range(w.m):
        fall = max(fall, max(-w.ds_l[k] / w.s_l[k], -w.ds_u[k] / w.s_u[k]))
        fall = max(fall, max(-w.dy_l[k] / w.y_l[k], -w.dy_u[k] / w.y_u[k]))
    return share / fall


@routine
def iterate(w: Desk) -> None:
    """Make one iteration: Mehrotra's predictor and corrector."""
    size, total = w.size[0], 0.0
    for k in range(w.m):
        w.y[k] = w.y_u[k] - w.y_l[k]
        total = fma(w.s_l[k], w.y_l[k], fma(w.s_u[k], w.y_u[k], total))
    residuals(w, w.z, w.y)
    bounds = 2.0 * float(w.m)
    gap = total / bounds
    reach = min(max(gap / (size * size), REGULAR), 10.0)
    r = DUAL * reach
    for k in range(w.m):
        w.soft_l[k] = 1.0 / fma(r, w.y_l[k], w.s_l[k])
        w.soft_u[k] = 1.0 / fma(r, w.y_u[k], w.s_u[k])
        w.weights[k] = w.y_l[k] * w.soft_l[k] + w.y_u[k] * w.soft_u[k]
        w.t_l[k] = -w.s_l[k] * w.y_l[k]
        w.t_u[k] = -w.s_u[k] * w.y_u[k]
    factorise(w, PRIMAL * reach)
    direct(w, r)
    far = length(w, 1.0)
    total = 0.0
    for k in range(w.m):
        total += fma(far, w.ds_l[k], w.s_l[k]) * fma(far, w.dy_l[k], w.y_l[k])
        total += fma(far, w.ds_u[k], w.s_u[k]) * fma(far, w.dy_u[k], w.y_u[k])
    left = total / bounds / gap
    central = max(left * left * left * gap, CENTRAL * size * size)
    trust = min(1.0, far * far / (SHORT * SHORT))
    for k in range(w.m):
        w.t_l[k] = central - w.s_l[k] * w.y_l[k] - trust * w.ds_l[k] * w.dy_l[k]
        w.t_u[k] = central - w.s_u[k] * w.y_u[k] - trust * w.ds_u[k] * w.dy_u[k]
    direct(w, r)
    far = length(w, SHARE)
    for i in range(w.n):
        w.z[i] = fma(far, w.dz[i], w.z[i])
    for k in range(w.m):
        w.s_l[k] = max(fma(far, w.ds_l[k], w.s_l[k]), 1e-30 * size)
        w.s_u[k] = max(fma(far, w.ds_u[k], w.s_u[k]), 1e-30 * size)
        w.y_l[k] = max(fma(far, w.dy_l[k], w.y_l[k]), 1e-30 * size)
        w.y_u[k] = max(fma(far, w.dy_u[k], w.y_u[k]), 1e-30 * size)


@routine
def polish(w: Desk) -> None:
    """Solve with the guessed active set, keep what is better, and guess again."""
    for k in range(w.m):
        w.weights[k] = PENALTY * abs(w.at[k])
        w.y_new[k] = w.y[k] * abs(w.at[k])
    for i in range(w.n):
        w.z_new[i] = w.z[i]
    factorise(w, PROXIMAL)
    for _ in range(REFINEMENTS):
        residuals(w, w.z_new, w.y_new)
        for i in range(w.n):
            w.dz[i] = -w.slope[i]
        for k in range(w.m):
            wanted = w.high[k] if w.at[k] > 0.0 else w.low[k]
            w.p_l[k] = abs(w.at[k]) * (w.along[k] - wanted)
            for i in range(w.n):
                w.dz[i] = fma(-w.R[k * w.n + i], PENALTY * w.p_l[k], w.dz[i])
        solve(w)
        for k in range(w.m):
            w.y_new[k] = fma(PENALTY, w.p_l[k] + abs(w.at[k]) * w.moved[k], w.y_new[k])
        for i in range(w.n):
            w.z_new[i] += w.dz[i]
    reached = violation(w, w.z_new, w.y_new)
    for k in range(w.m):
        down = 1.0 if w.low[k] - w.along[k] - w.y_new[k] > 0.0 else 0.0
        w.at[k] = 1.0 if w.y_new[k] + w.along[k] - w.high[k] > 0.0 else -down
    if reached < w.error[0]:
        w.error[0] = reached
        for i in range(w.n):
            w.z[i] = w.z_new[i]
        for k in range(w.m):
            w.y[k] = w.y_new[k]


@routine
def conclude(w: Desk) -> None:
    """Undo the scaling, and measure how far rows are violated in their own units."""
    worst = 0.0
    for k in range(w.m):
        along = inner(w.R[k * w.n :], w.z, w.n)
        own = max(w.low[k] - along, along - w.high[k]) / w.by_row[k]
        worst = max(worst, own)
        if k < w.equations:
            w.equality[k] = w.by_row[k] * w.y[k]
        else:
            w.bounds[k - w.equations] = w.by_row[k] * w.y[k]
    w.residual[0] = worst
    for i in range(w.n):
        w.solution[i] = w.by_variable[i] * w.z[i]


@routine
def interior_point(w: Desk) -> None:
    """Solve a program; see the top of the file."""
    scale(w)
    begin(w)
    for _ in range(w.iterations):
        iterate(w)
    for k in range(w.m):
        w.y[k] = w.y_u[k] - w.y_l[k]
        down = 1.0 if w.y_l[k] > w.s_l[k] else 0.0
        w.at[k] = 1.0 if w.y_u[k] > w.s_u[k] else -down
    w.error[0] = TOLERANT * violation(w, w.z, w.y)
    for _ in range(POLISHES):
        polish(w)
    conclude(w)


def interior_procedure(n: int, equations: int, rows: int, iterations: int) -> Procedure:
    """Return the routine for programs of one size, from H, g, A, b, C, lower and upper."""
    m = equations + rows
    inputs = {"H": n * n, "g": n, "A": equations * n, "b": equations}
    inputs |= {"C": rows * n, "lower": rows, "upper": rows}
    outputs = {"solution": n, "equality": equations, "bounds": rows, "residual": 1, "error": 1}
    parts = {**inputs, **outputs, "Hs": n * n, "K": n * n, "R": m * n, "size": 1}
    parts |= dict.fromkeys(("by_variable", "gs", "pivots", "dz", "slope", "z", "z_new"), n)
    of_rows = ("by_row", "low", "high", "weights", "along", "moved", "y", "y_new", "at")
    sides = ("s", "y", "p", "t", "soft", "ds", "dy")
    both = [f"{name}_{side}" for name in sides for side in "lu"]
    parts |= dict.fromkeys((*of_rows, *both), m)
    numbers: dict[str, int | float] = {"n": n, "m": m, "equations": equations}
    numbers["iterations"] = iterations
    layout = Layout(parts, numbers)
    return Procedure("interior_point", interior_point, layout, tuple(inputs), tuple(outputs))
