"""The acceleration of a solver in closed form, with steps that are damped where they lead too far.

From an acceleration with which joints come to rest, each step of a solver adds what its rows ask
for in what the steps before leave free. With G = A W on that (W W^T = M^-1), a step of
least squares is G^+ d, without bound where rows become dependent. It is

    G^T (G G^T + damping I)^-1 d,    damping = f^2 (1 - (sigma / (t size))^2)^2 (t size)^2

with the least singular value sigma of G, the size of its rows and t = THRESHOLD, and zero as soon
as sigma > t size; f = 1 - 1 / e, where the step is e times as large as is ample, and zero where it
is not larger. So rows that are independent, and rows that ask for little, are met exactly. Of the
step that then is left, the share s is taken that keeps joints below their speed. What a step leaves
of d, beyond what contradicts itself, is at most

    1 - s sigma^2 / (sigma^2 + damping)     of d,

which is recorded. Where it is zero for all steps the solver's own result is taken as it is.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import casadi as ca

from framefree.control.qp.factor import SymmetricFactor
from framefree.control.tasks.ceiling import SpeedCeiling
from framefree.control.tasks.solvers.base import Level, Solver, TaskProblem
from framefree.control.tasks.solvers.priority import off
from framefree.motion.constrained.algebra import MassFactor, RowSpace

Matrix = Any


class BoundedAcceleration(NamedTuple):
    """An acceleration a (n), and of each step the share of what it asks for that it may miss."""

    a: Matrix
    damped: Matrix


class _Space(NamedTuple):
    """Rows of a step on what is left free: their space, and their size squared."""

    rows: RowSpace
    square: Matrix


def bounded_acceleration(
    solver: Solver, problem: TaskProblem, ceiling: SpeedCeiling
) -> BoundedAcceleration:
    """Return a solver's acceleration, damped where joints would move too fast."""
    steps = solver.steps(problem)
    factor, basis = MassFactor(steps.M), []
    a = ceiling.rest
    if problem.exact is not None:
        space = _space(factor, basis, problem.exact, steps.tolerance)
        a = a + factor.out(space.rows.least(problem.exact.b - problem.exact.A @ a))
        basis += space.rows.basis
    bounds, damped = ceiling.containing(a), []
    motion = factor.into(steps.M @ ceiling.v)
    for level in steps.levels:
        space = _space(factor, basis, level, steps.tolerance)
        step, kept = _damped_step(space, level.b - level.A @ a, a, motion, factor, bounds)
        share = bounds.share(a, step)
        a = a + share * step
        damped.append(1 - share * kept)
        basis += space.rows.basis
    exact = solver.acceleration(problem)
    outside = 1 - bounds.share(bounds.rest, exact - bounds.rest)
    open_ = off(basis, factor.into(steps.Q - steps.M @ a))
    step = factor.out(open_)
    share = bounds.share(a, step)
    a, damped = a + share * step, ca.vertcat(*damped, 1 - share)
    damped = ca.if_else(ca.mmax(damped) > 0, damped, outside)
    return BoundedAcceleration(ca.if_else(ca.mmax(damped) > 0, a, exact), damped)


def _space(factor: MassFactor, basis: Sequence[Matrix], level: Level, tolerance: float) -> _Space:
    """Return the space of a level's rows beside those that are known."""
    Y = factor.into(level.A.T)
    own = ca.sum1(Y**2).T
    rows = RowSpace.beside(basis, Y, tolerance)
    return _Space(rows, ca.sum1(own) / max(level.A.shape[0], 1))


def _damped_step(
    space: _Space,
    d: Matrix,
    a: Matrix,
    motion: Matrix,
    factor: MassFactor,
    bounds: SpeedCeiling,
) -> tuple[Matrix, Matrix]:
    """Return the step of rows that ask for d, and sigma^2 / (sigma^2 + damping)."""
    plain = factor.out(space.rows.least(d))
    beyond = ca.fmax(1 - 1 / bounds.excess(a + plain), bounds.hurry)
    inverse, known = space.rows.inverse_triangle(), space.rows.rank > 0
    sigma = ca.if_else(known, 1 / ca.if_else(known, ca.sumsqr(inverse), 1), 1)
    threshold = bounds.threshold(ca.norm_2(d))
    largest = threshold**2 * space.square
    share = sigma / ca.fmax(largest, 1e-300)
    damping = ca.if_else(share < 1, (beyond * (1 - share)) ** 2 * largest, 0)
    within = ca.fmax(bounds.share(a, plain), 1e-9)
    damping = ca.fmax(damping, sigma * (1 / within - 1))
    more = bounds.braking(ca.norm_2(d) / threshold**2) * space.rows.along(motion)
    asked = space.rows.components(d) - damping * (inverse.T @ more)
    soft = SymmetricFactor(ca.SX.eye(d.shape[0]) + damping * (inverse.T @ inverse))
    weights = inverse @ soft.solve(asked)
    return factor.out(space.rows.combine(weights)), sigma / (sigma + damping)
