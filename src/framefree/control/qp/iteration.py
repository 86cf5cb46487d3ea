"""The two steps of the method: an interior-point iteration, and the polish of a guessed active set.

A program is ``min 1/2 z . H z + g . z`` with rows ``lower <= C z <= upper``; an equation is a row
with equal bounds. With slacks s and multipliers y of both sides, all positive, the iteration is
Mehrotra's predictor and corrector [Mehrotra1992] on

    H z + g + C^T (y_u - y_l) = 0,    s_l = C z - lower,    s_u = upper - C z,    s y = mu -> 0

with proximal terms that shrink with mu [Pougkakiotis2021]: r (y - y_now) in the slacks and
p (z - z_now) in the first equation. They vanish at the solution, and bound what rows without
interior (equal bounds, dependent or contradicting rows) and a singular H can do to a step.

Functions here are traced once for every shape and called as often as needed.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, NamedTuple

import casadi as ca

from framefree.control.qp.factor import SymmetricFactor
from framefree.rounding import rounding, rounding_square

Matrix = Any

CENTRAL = rounding_square(1e-18)
"""Smallest target of s y, relative to its first size."""
REGULAR = rounding(1e-10)
"""Smallest mu, relative to its first size, that the proximal terms follow."""
DUAL, PRIMAL = 0.1, 1e-3
"""Proximal terms r and p per relative mu."""
SHORT = 0.6
"""Length of a predictor below which its curvature counts less: without, a few programs cycle."""
SHARE = 0.995
"""Share of the way to the boundary that a step takes."""
PENALTY, PROXIMAL = 1e5, 1e-7
"""Weights of the polish: of active rows, and of moving away."""
REFINEMENTS = 3


@dataclass(frozen=True)
class QpShape:
    """Sizes of a program: variables, rows, places of C's entries, rows with a bound on each side.

    `entries` are the row and column indices of C, column by column.
    """

    n: int
    m: int
    entries: tuple[tuple[int, ...], tuple[int, ...]]
    lower: tuple[int, ...]
    upper: tuple[int, ...]

    @property
    def bounds(self) -> int:
        """Number of bounds."""
        return len(self.lower) + len(self.upper)

    def net(self, of_lower: Matrix, of_upper: Matrix) -> Matrix:
        """Return what the upper bounds' values less the lower ones' make for every row (m)."""
        total = ca.SX(self.m, 1)
        total[list(self.upper)] = of_upper
        total[list(self.lower)] -= of_lower
        return total


class QpTerms(NamedTuple):
    """H (lower half), g, C, and the bounds that there are."""

    H: Matrix
    g: Matrix
    C: Matrix
    lower: Matrix
    upper: Matrix

    @classmethod
    def symbols(cls, shape: QpShape) -> "QpTerms":
        """Return a program of symbols."""
        rows = ca.Sparsity.triplet(shape.m, shape.n, *(list(part) for part in shape.entries))
        return cls(
            ca.SX.sym("H", ca.Sparsity.lower(shape.n)),
            ca.SX.sym("g", shape.n),
            ca.SX.sym("C", rows),
            ca.SX.sym("lower", len(shape.lower)),
            ca.SX.sym("upper", len(shape.upper)),
        )

    def slope(self, z: Matrix, y: Matrix) -> Matrix:
        """Return H z + g + C^T y (n)."""
        return ca.tril2symm(self.H) @ z + self.g + self.C.T @ y

    def violations(self, shape: QpShape, z: Matrix) -> tuple[Matrix, Matrix]:
        """Return lower - C z and C z - upper, where there is a bound."""
        along = self.C @ z
        return self.lower - along[list(shape.lower)], along[list(shape.upper)] - self.upper

    def error(self, shape: QpShape, z: Matrix, y: Matrix) -> Matrix:
        """Return the largest violation of the conditions of optimality.

        H z + g + C^T y = 0 and y = max(y + C z - upper, 0) + min(y + C z - lower, 0).
        """
        below, above = self.violations(shape, z)
        up = ca.fmax(y[list(shape.upper)] + above, 0)
        down = ca.fmax(below - y[list(shape.lower)], 0)
        return largest([self.slope(z, y), shape.net(down, up) - y])


class Interior(NamedTuple):
    """A point of the iteration: z, slacks and multipliers of both sides."""

    z: Matrix
    s_l: Matrix
    s_u: Matrix
    y_l: Matrix
    y_u: Matrix


def weighted(program: QpTerms, weights: Matrix, more: Any) -> Matrix:
    """Return the lower half of H + C^T diag(weights) C + more I."""
    H, C, n = program.H, program.C, program.H.shape[0]
    scaled = ca.diag(weights) @ C
    columns = [ca.vertcat(ca.SX(j, 1), C[:, j:].T @ scaled[:, j]) for j in range(n)]
    return ca.tril(H) + ca.horzcat(*columns) + more * ca.DM.eye(n)


def largest(parts: Sequence[Matrix]) -> Matrix:
    """Return the largest absolute value of all entries."""
    entries = ca.vertcat(ca.SX(0), *parts)
    return ca.mmax(ca.fabs(entries))


@lru_cache(maxsize=32)
def interior_step(shape: QpShape) -> ca.Function:
    """Return one iteration: from a program, a point and its first size to the next point."""
    program, now, size = (
        QpTerms.symbols(shape),
        _interior_symbols(shape),
        ca.SX.sym("size"),
    )
    newton = _Newton(shape, program, now, size)
    affine = newton.direction(-now.s_l * now.y_l, -now.s_u * now.y_u)
    reach = newton.length(affine, 1.0)
    ahead = newton.gap_after(affine, reach)
    central = ca.fmax((ahead / newton.gap) ** 3 * newton.gap, CENTRAL * size**2)
    trust = ca.fmin(1, (reach / SHORT) ** 2)
    step = newton.direction(
        central - now.s_l * now.y_l - trust * affine.s_l * affine.y_l,
        central - now.s_u * now.y_u - trust * affine.s_u * affine.y_u,
    )
    a = newton.length(step, SHARE)
    moved = [value + a * d for value, d in zip(now, step, strict=True)]
    # Where rounding is all that is left, slacks and multipliers still stay positive.
    moved[1:] = [ca.fmax(value, 1e-30 * size) for value in moved[1:]]
    return ca.Function("interior_step", [*program, *now, size], moved)


class _Newton:
    """Newton steps from one point, with one factor."""

    def __init__(self, shape: QpShape, program: QpTerms, now: Interior, size: Matrix) -> None:
        self.shape, self.program, self.now = shape, program, now
        below, above = program.violations(shape, now.z)
        self.short_l, self.short_u = -below - now.s_l, -above - now.s_u
        self.slope = program.slope(now.z, shape.net(now.y_l, now.y_u))
        self.gap = (ca.dot(now.s_l, now.y_l) + ca.dot(now.s_u, now.y_u)) / shape.bounds
        reach = ca.fmin(ca.fmax(self.gap / size**2, REGULAR), 10)
        self.r = DUAL * reach
        self.soft_l, self.soft_u = (
            1 / (now.s_l + self.r * now.y_l),
            1 / (now.s_u + self.r * now.y_u),
        )
        self.weight_l, self.weight_u = now.y_l * self.soft_l, now.y_u * self.soft_u
        weights = shape.net(-self.weight_l, self.weight_u)
        self.factor = SymmetricFactor(weighted(program, weights, PRIMAL * reach))
        self.inverse = [1 / part for part in now[1:]]

    def direction(self, target_l: Matrix, target_u: Matrix) -> Interior:
        """Return the step that changes every s y by its target, to first order."""
        shape, now, C = self.shape, self.now, self.program.C
        push_l = (target_l - now.y_l * self.short_l) * self.soft_l
        push_u = (target_u - now.y_u * self.short_u) * self.soft_u
        dz = self.factor.solve(-self.slope - C.T @ shape.net(push_l, push_u))
        along = C @ dz
        along_l, along_u = along[list(shape.lower)], along[list(shape.upper)]
        dy_l, dy_u = push_l - self.weight_l * along_l, push_u + self.weight_u * along_u
        ds_l = self.short_l + along_l + self.r * dy_l
        ds_u = self.short_u - along_u + self.r * dy_u
        return Interior(dz, ds_l, ds_u, dy_l, dy_u)

    def length(self, step: Interior, share: float) -> Matrix:
        """Return how far of the step to go, at most 1, so that all stays positive."""
        falls = [-d * i for d, i in zip(step[1:], self.inverse, strict=True)]
        return share / ca.fmax(ca.mmax(ca.vertcat(*falls)), share)

    def gap_after(self, step: Interior, a: Matrix) -> Matrix:
        """Return the mean of s y after a step of length a."""
        _, s_l, s_u, y_l, y_u = [p + a * d for p, d in zip(self.now, step, strict=True)]
        return (ca.dot(s_l, y_l) + ca.dot(s_u, y_u)) / self.shape.bounds


@lru_cache(maxsize=32)
def polish_step(shape: QpShape) -> ca.Function:
    """Return the solution with a guessed active set, kept where it is better.

    From a program, (z, y, error) and the guess `at` (m, +1 at the upper bound, -1 at the lower, 0
    off both) to the better (z, y, error), and to the guess that the new point suggests. Active rows
    hold by multipliers with a penalty, refined with one factor; dependent ones do no harm.
    """
    program, at = QpTerms.symbols(shape), ca.SX.sym("at", shape.m)
    z0, y0, error = ca.SX.sym("z", shape.n), ca.SX.sym("y", shape.m), ca.SX.sym("error")
    lower, upper = ca.SX(shape.m, 1), ca.SX(shape.m, 1)
    lower[list(shape.lower)], upper[list(shape.upper)] = program.lower, program.upper
    active = at * at
    wanted = active * ca.if_else(at > 0, upper, lower)
    factor = SymmetricFactor(weighted(program, PENALTY * active, PROXIMAL))
    z, y = z0, y0 * active
    for _ in range(REFINEMENTS):
        off = active * (program.C @ z) - wanted
        dz = factor.solve(-program.slope(z, y + PENALTY * off))
        y = y + PENALTY * (off + active * (program.C @ dz))
        z = z + dz
    reached = program.error(shape, z, y)
    better = reached < error
    below, above = program.violations(shape, z)
    up = y[list(shape.upper)] + above > 0
    down = below - y[list(shape.lower)] > 0
    kept = [ca.if_else(better, a, b) for a, b in ((z, z0), (y, y0), (reached, error))]
    return ca.Function(
        "polish_step", [*program, z0, y0, error, at], [*kept, guess(shape, down, up)]
    )


def guess(shape: QpShape, down: Matrix, up: Matrix) -> Matrix:
    """Return +1 for rows at their upper bound, -1 at the lower, 0 off both (m)."""
    at_upper = shape.net(ca.SX(len(shape.lower), 1), up)
    at_lower = shape.net(-down, ca.SX(len(shape.upper), 1))
    return ca.if_else(at_upper, 1, -at_lower)


def _interior_symbols(shape: QpShape) -> Interior:
    low, high = len(shape.lower), len(shape.upper)
    sizes = {"z": shape.n, "s_l": low, "s_u": high, "y_l": low, "y_u": high}
    return Interior(*(ca.SX.sym(name, size) for name, size in sizes.items()))
