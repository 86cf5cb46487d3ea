"""Least squares on groups, for many problems of one shape at once: Levenberg-Marquardt.

Each step minimises ``|J d + r|^2 + mu |d|^2`` over the directions d that no bound blocks, and is
cut where it would leave the bounds. mu is proportional to |r|, so that steps become Gauss-Newton
steps near a solution, also where J is rank-deficient there [Fan2005].
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

Evaluate = Callable[[np.ndarray, np.ndarray], tuple[np.ndarray, np.ndarray]]
"""From points z (k, n) and the indices (k,) of their problems to r (k, m) and J (k, m, nd)."""

STALLED = 8
"""Steps in a row that gain less than a share of `GAIN` after which a problem is abandoned."""
GAIN = 1e-3

_SOFTEST, _STIFFEST = 1e-12, 1e8


@dataclass(frozen=True)
class LeastSquares:
    """A least-squares problem.

    Attributes
    ----------
    evaluate : callable
        See `Evaluate`.
    move : callable
        From z (k, n) and steps d (k, nd) to new points.
    room : callable
        From z (k, n) to the least and the largest step (k, nd) that stay within bounds.
    tolerance : float
        Largest entry of |r| with which a problem counts as solved.
    """

    evaluate: Evaluate
    move: Callable[[np.ndarray, np.ndarray], np.ndarray]
    room: Callable[[np.ndarray], tuple[np.ndarray, np.ndarray]]
    tolerance: float


@dataclass(frozen=True)
class Minimum:
    """The results: z (k, n), their largest |r| and sum of r^2 (k,), and the number of steps."""

    z: np.ndarray
    largest: np.ndarray
    cost: np.ndarray
    iterations: int


def minimise(problem: LeastSquares, z: np.ndarray, iterations: int = 100) -> Minimum:
    """Return the points reached from z (k, n), one problem per row."""
    z = np.array(z, dtype=float)
    every = np.arange(len(z))
    r, J = problem.evaluate(z, every)
    damping, stalled = np.full(len(z), 1e-2), np.zeros(len(z), dtype=int)
    active, count = every[np.abs(r).max(axis=1, initial=0.0) > problem.tolerance / 10], 0
    while len(active) and count < iterations:
        count += 1
        low, high = problem.room(z[active])
        step = _step(r[active], J[active], low, high, damping[active])
        tried = problem.move(z[active], step)
        r_new, J_new = problem.evaluate(tried, active)
        before, after = _cost(r[active]), _cost(r_new)
        better = after < before  # not, where the trial is no number
        taken = active[better]
        z[taken], r[taken], J[taken] = tried[better], r_new[better], J_new[better]
        factors = np.where(better, 0.2, 6.0)
        damping[active] = np.clip(damping[active] * factors, _SOFTEST, 10 * _STIFFEST)
        slow = better & (after > (1 - GAIN) * before)
        stalled[active] = np.where(better, np.where(slow, stalled[active] + 1, 0), stalled[active])
        solved = np.abs(r[active]).max(axis=1, initial=0.0) <= problem.tolerance / 10
        hopeless = (damping[active] > _STIFFEST) | (stalled[active] > STALLED)
        active = active[~(solved | hopeless)]
    return Minimum(z, np.abs(r).max(axis=1, initial=0.0), _cost(r), count)


def _step(
    r: np.ndarray, J: np.ndarray, low: np.ndarray, high: np.ndarray, damping: np.ndarray
) -> np.ndarray:
    gradient = np.einsum("kmi,km->ki", J, r)
    free = ~(((low >= 0) & (gradient > 0)) | ((high <= 0) & (gradient < 0)))
    J = J * free[:, None, :]
    H = np.einsum("kmi,kmj->kij", J, J)
    diagonal = np.einsum("kii->ki", H)
    scale = np.maximum(diagonal.mean(axis=1), 1e-300)
    mu = np.maximum(damping * scale * np.minimum(np.sqrt(_cost(r)), 1.0), 1e-15 * scale)
    H = H + mu[:, None, None] * np.eye(H.shape[1])
    step = -np.linalg.solve(H, (gradient * free)[:, :, None])[:, :, 0]
    return np.clip(step * free, np.minimum(low, 0), np.maximum(high, 0))


def _cost(r: np.ndarray) -> np.ndarray:
    return np.einsum("km,km->k", r, r)
