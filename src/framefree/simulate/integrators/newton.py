"""The equations of one implicit stage, solved by Newton's method with a line search.

A stage asks for the column y = (v, drive) and the coordinates X with

    X = x exp(theta + g velocity(X, v)),      y = base + g rate(t, X, y)

where theta and `base` are known and g is the stage's own share of the step. In forces its residual
is M (y - base) - g M rate, which for dampers, springs and servos that clip their force is the slope
of a convex function of v. A Newton step along d can overshoot where such a force switches; then
``d . residual`` grows positive at its end, and the step is shortened until it is not. Without this
a servo at its limits hops from one limit to the other for ever.

Iterations are one compiled function, called again and again; what has converged stays as it is.
"""

from dataclasses import dataclass
from typing import Any, NamedTuple

import casadi as ca

from framefree.motion.groups import Group

Matrix = Any

CONVERGED = 1e-11
"""Size of a Newton step, relative to the velocities, after which a stage is solved."""
ACCEPTED = 1e-6
"""The same, that is accepted where rounding allows no smaller one: near singular positions of
loops it is amplified to about 1e-7."""
AT_REST = 1e-3
"""Velocity (rad/s, m/s) that counts as none where steps are compared with velocities."""
OVERSHOOT = 0.5
"""Share of ``d . residual`` at the beginning that it may have at the end of a step."""
SHORTENED = 40
"""How often a Newton step is shortened at most: enough to find, by halves, the narrow range of
speeds in which dry friction changes its sign."""


class NewtonStep(NamedTuple):
    """What an evaluation at (X, y) gives.

    Attributes
    ----------
    d : column
        Newton's step of y.
    residual : column (nv)
        Of the velocities, in forces times the stage's share of the step.
    size : scalar
        Size of d relative to the velocities.
    """

    d: Matrix
    residual: Matrix
    size: Matrix


class StageState(NamedTuple):
    """The state of the iteration of one stage.

    Attributes
    ----------
    y, d : columns
        Latest accepted column, and Newton's step from there.
    X : column
        Coordinates at y.
    length : scalar
        Share of d that is tried next.
    slope : scalar
        ``d . residual`` at y.
    tries : scalar
        How often d has been shortened.
    size : scalar
        Relative size of d.
    done : scalar
        1 where the stage is solved.
    """

    y: Matrix
    d: Matrix
    X: Matrix
    length: Matrix
    slope: Matrix
    tries: Matrix
    size: Matrix
    done: Matrix

    @classmethod
    def symbols(cls, n: int, nx: int) -> "StageState":
        """Return symbols for n entries of y and nx coordinates."""
        sizes = (n, n, nx, 1, 1, 1, 1, 1)
        pairs = zip(cls._fields, sizes, strict=True)
        return cls(*(ca.SX.sym(name, size) for name, size in pairs))

    @classmethod
    def first(cls, y: Matrix, X: Matrix) -> "StageState":
        """Return the state before the first iteration: the guess itself is accepted."""
        one, nothing = ca.SX(1), ca.SX(0)
        return cls(y, ca.SX.zeros(y.shape[0]), X, one, nothing, nothing, one, nothing)


@dataclass(frozen=True)
class ImplicitStage:
    """The known part of a stage: x, theta, base, and its share g of the step (s)."""

    group: Group
    x: Matrix
    theta: Matrix
    base: Matrix
    share: Matrix

    def coordinates(self, X: Matrix, y: Matrix) -> Matrix:
        """Return the coordinates at y, with the velocity taken at X."""
        return self.group.integrate(self.x, self.theta + self.share * self.group.velocity(X, y))

    def rates(self, X: Matrix, y: Matrix) -> tuple[Matrix, Matrix]:
        """Return the rates of x (in its algebra) and of y at a solution."""
        return self.group.velocity(self.coordinates(X, y), y), (y - self.base) / self.share


def iterated(stage: ImplicitStage, now: StageState, evaluate: Any) -> StageState:
    """Return the state after one evaluation; ``evaluate(X, y, rate)`` gives a `NewtonStep`."""
    y = now.y + now.length * now.d
    X = stage.coordinates(now.X, y)
    found: NewtonStep = evaluate(X, y, (y - stage.base) / stage.share)
    nv = found.residual.shape[0]
    slope = ca.dot(now.d[:nv, :], found.residual)
    # At first there is no step yet, and of tiny ones rounding may be all that is seen.
    whole = ca.logic_or(now.slope >= 0, now.size <= ACCEPTED)
    enough = ca.logic_or(slope <= -OVERSHOOT * now.slope, now.tries >= SHORTENED)
    accepted = ca.logic_or(whole, enough)
    shorter = now.length * ca.fmax(ca.fmin(now.slope / (now.slope - slope), 0.9), 0.1)
    size = ca.fmax(found.size, _gap(stage, now.X, X, y))
    done = ca.logic_and(accepted, size <= CONVERGED)
    following = StageState(
        ca.if_else(accepted, ca.if_else(done, y + found.d, y), now.y),
        ca.if_else(accepted, found.d, now.d),
        ca.if_else(accepted, X, now.X),
        ca.if_else(accepted, 1, shorter),
        ca.if_else(accepted, ca.dot(found.d[:nv, :], found.residual), now.slope),
        ca.if_else(accepted, 0, now.tries + 1),
        ca.if_else(accepted, size, now.size),
        done,
    )
    # Kept as it is where it is done: results must not depend on what runs beside it.
    pairs = zip(following, now, strict=True)
    return StageState(*(ca.if_else(now.done, old, new) for new, old in pairs))


def solved(now: StageState) -> Matrix:
    """Tell whether the last iteration leaves a solution; false for what is not a number."""
    return ca.logic_or(now.done, now.size <= ACCEPTED)


def relative_size(mass: Matrix, d: Matrix, *velocities: Matrix) -> Matrix:
    """Return the size of d relative to velocities, in the metric of M."""
    known = sum((ca.dot(v, mass @ v) for v in velocities), AT_REST**2 * ca.trace(mass))
    return ca.sqrt(ca.fabs(ca.dot(d, mass @ d)) / ca.fmax(known, 1e-300))


def _gap(stage: ImplicitStage, before: Matrix, X: Matrix, y: Matrix) -> Matrix:
    """Return how far the rate of x depends on the coordinates that it was taken at."""
    rate = stage.group.velocity(X, y)
    apart = ca.densify(rate - stage.group.velocity(before, y))
    if apart.is_zero():
        return ca.SX(0)
    return ca.norm_inf(apart) / (AT_REST + ca.norm_inf(ca.densify(rate)))


def solve_unpivoted(matrix: Matrix, right: Matrix) -> Matrix:
    """Solve ``matrix @ y = right`` by elimination without exchanges, the last unknown first.

    For matrices whose symmetric part is positive definite, or nearly so. This order keeps the zeros
    that the branches of a tree leave [Featherstone2008, sec. 6.5].
    """
    matrix = ca.sparsify(matrix)
    n = matrix.shape[0]
    rows: list[dict[int, Matrix]] = [{} for _ in range(n)]
    for i, j in zip(*matrix.sparsity().get_triplet(), strict=True):
        rows[i][j] = matrix[i, j]
    values = [right[i] for i in range(n)]
    for k in reversed(range(n)):
        reciprocal = 1 / rows[k][k]
        for i in range(k):
            if k not in rows[i]:
                continue
            factor = rows[i].pop(k) * reciprocal
            for j, entry in rows[k].items():
                if j < k:
                    rows[i][j] = rows[i].get(j, 0) - factor * entry
            values[i] = values[i] - factor * values[k]
    for k in range(n):
        known = sum((entry * values[j] for j, entry in rows[k].items() if j < k), ca.SX(0))
        values[k] = (values[k] - known) / rows[k][k]
    return ca.vertcat(ca.SX(0, 1), *values)
