"""The point of a polytope nearest to a given one, as a compiled expression.

    min_u 1/2 (u - u0) . H (u - u0)    subject to    A u <= b

A primal-dual interior-point method with predictor and corrector [Mehrotra1992], a fixed number of
iterations written out: as many operations at every call, and no memory. Where u0 is inside, it is
returned as it is.
"""

from typing import Any

import casadi as ca
import numpy as np

from framefree.control.law import ControlError
from framefree.motion.spatial import solve_symmetric

Matrix = Any

ITERATIONS = 14
"""Each shrinks the gap by a factor of ten or more."""
CLOSED = 1e-14
"""Share of the largest multiplier at which the gap counts as closed."""


def irredundant(A: np.ndarray, b: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the rows of A u <= b that are not implied by the others, each scaled to length one.

    Raises
    ------
    ControlError
        If no u fulfils them all.
    """
    from scipy.optimize import linprog

    scale = np.linalg.norm(A, axis=1)
    A, b = A / scale[:, None], b / scale
    free = [(None, None)] * A.shape[1]
    kept = list(range(len(b)))
    if linprog(np.zeros(A.shape[1]), A, b, bounds=free).status == 2:
        raise ControlError("the limits of the inputs leave no input at all")
    for i in range(len(b)):
        others = [k for k in kept if k != i]
        if not others:
            break
        # One more row, a little further out, so that the largest value is finite.
        rows, sides = np.vstack([A[others], A[i]]), np.append(b[others], b[i] + 1.0)
        found = linprog(-A[i], rows, sides, bounds=free)
        if found.status == 0 and -found.fun <= b[i] + 1e-9 * max(1.0, abs(b[i])):
            kept = others
    return A[kept], b[kept]


def center(A: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Return the center of the largest ball in A u <= b, or of one of radius 1 where it is larger.

    Rows of A are of unit length.

    Raises
    ------
    ControlError
        If the polytope has no inside.
    """
    from scipy.optimize import linprog

    n = A.shape[1]
    rows = np.column_stack([A, np.ones(len(b))])
    bounds = [(None, None)] * n + [(None, 1.0)]
    found = linprog(np.append(np.zeros(n), -1.0), rows, b, bounds=bounds)
    if found.status != 0 or not found.x[-1] > 1e-9:
        raise ControlError("the limits of the inputs leave no room for any input to change")
    return found.x[:n]


def nearest_inside(u0: Matrix, H: Matrix, A: np.ndarray, b: np.ndarray) -> Matrix:
    """Return the u of the polytope nearest to u0 (n) in the metric H (n x n)."""
    rows, sides = ca.sparsify(ca.DM(A)), ca.DM(b)
    # In units of H's size multipliers are of the size of slacks.
    H = H / (ca.trace(H) / H.shape[0])
    excess = rows @ u0 - sides
    middle = center(A, b)
    u, slack = ca.SX(ca.DM(middle)), ca.SX(ca.DM(b - A @ middle))
    size = ca.fmax(ca.norm_inf(H @ (u - u0)), 1e-6)
    pull = size * ca.SX.ones(len(b), 1)
    for _ in range(ITERATIONS):
        moved = _step(u0, H, rows, sides, u, slack, pull)
        # Past convergence steps are made of rounding: stay, also where one is no number.
        open_gap = ca.dot(slack, pull) > CLOSED * len(b) * (1 + ca.mmax(pull))
        onwards = ca.logic_and(open_gap, ca.sumsqr(ca.vertcat(*moved)) < 1e300)
        u, slack, pull = (
            ca.if_else(onwards, new, old) for new, old in zip(moved, (u, slack, pull), strict=True)
        )
    outside = ca.mmax(excess) > 0
    return ca.if_else(outside, u, u0)


def _step(
    u0: Matrix, H: Matrix, A: Matrix, b: Matrix, u: Matrix, s: Matrix, y: Matrix
) -> tuple[Matrix, Matrix, Matrix]:
    """One predictor-corrector step for H (u - u0) + A^T y = 0, A u + s = b, s y = 0."""
    count = b.shape[0]
    dual = H @ (u - u0) + A.T @ y
    primal = A @ u + s - b
    weight = y / s
    K = H + A.T @ ca.diag(weight) @ A

    def direction(complementary: Matrix) -> tuple[Matrix, Matrix, Matrix]:
        """Return the Newton step with s dy + y ds = -complementary."""
        bent = (complementary - y * primal) / s
        du = solve_symmetric(K, -dual + A.T @ bent)
        ds = -primal - A @ du
        dy = -(complementary + y * ds) / s
        return du, ds, dy

    gap = ca.dot(s, y) / count
    _, ds, dy = direction(s * y)
    reach = _reach(s, ds, y, dy, 1.0)
    ahead = ca.dot(s + reach * ds, y + reach * dy) / count
    centered = (ahead / gap) ** 3 * gap
    du, ds, dy = direction(s * y + ds * dy - centered)
    reach = _reach(s, ds, y, dy, 0.995)
    tiny = 1e-14
    return u + reach * du, ca.fmax(s + reach * ds, tiny), ca.fmax(y + reach * dy, tiny)


def _reach(s: Matrix, ds: Matrix, y: Matrix, dy: Matrix, share: float) -> Matrix:
    """Return how far, up to 1, a step may go with s and y positive."""
    far = 1e20
    ratios = [
        ca.if_else(step < 0, -value / ca.fmin(step, -1e-300), far)
        for value, step in ((s, ds), (y, dy))
    ]
    return ca.fmin(1, share * ca.mmin(ca.vertcat(*ratios)))
