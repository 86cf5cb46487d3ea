"""Levels in strict order by a cascade of quadratic programs, by ProxQP [Bambade2022].

One program a level: least squares of what its rows miss, with the rows of all levels above kept at
what they miss at least. It is the second opinion to the compiled method of
`framefree.control.qp.lexicographic`, slower and less accurate, as every program has the errors of
those before it in its bounds.
"""

from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from framefree.control.law import ControlError


class CascadeSolution(NamedTuple):
    """Variables z (n,), what rows miss (m,), and whether ProxQP reached its accuracy each time."""

    z: np.ndarray
    slack: np.ndarray
    solved: bool


@dataclass(frozen=True)
class ProxQp:
    """A cascade of programs ``lower_k <= Y_k z <= upper_k``; last of all the shortest z.

    Parameters
    ----------
    accuracy : float
        Largest error of the conditions of optimality of each program.
    """

    accuracy: float = 1e-10

    def solve(
        self, Y: np.ndarray, lower: np.ndarray, upper: np.ndarray, ends: tuple[int, ...]
    ) -> CascadeSolution:
        """Return the solution of levels that end at the rows `ends`."""
        n, slack, solved = Y.shape[1], np.zeros(len(Y)), True
        low, high = lower.copy(), upper.copy()
        for first, last in pairwise((0, *ends)):
            m = last - first
            H = np.diag(np.r_[np.zeros(n), np.ones(m)])
            C = np.zeros((last, n + m))
            C[:, :n], C[first:, n:] = Y[:last], -np.eye(m)
            z, good = self._run(H, C, low[:last], high[:last])
            own = slice(first, last)
            value = Y[own] @ z[:n]
            slack[own] = np.maximum(value - upper[own], 0) + np.minimum(value - lower[own], 0)
            same = lower[own] == upper[own]
            low[own] += np.where(same, slack[own], np.minimum(slack[own], 0))
            high[own] += np.where(same, slack[own], np.maximum(slack[own], 0))
            solved &= good
        z, good = self._run(np.eye(n), Y, low, high)
        return CascadeSolution(z, slack, solved and good)

    def _run(
        self, H: np.ndarray, C: np.ndarray, lower: np.ndarray, upper: np.ndarray
    ) -> tuple[np.ndarray, bool]:
        proxqp, same = _proxqp(), lower == upper
        qp = proxqp.dense.QP(len(H), int(same.sum()), int((~same).sum()))
        qp.settings.eps_abs, qp.settings.max_iter = self.accuracy, 2000
        low, high = np.maximum(lower[~same], -1e20), np.minimum(upper[~same], 1e20)
        qp.init(H, np.zeros(len(H)), C[same], lower[same], C[~same], low, high)
        qp.solve()
        solved = qp.results.info.status == proxqp.QPSolverOutput.PROXQP_SOLVED
        return np.nan_to_num(qp.results.x), solved


@lru_cache(maxsize=1)
def _proxqp() -> Any:
    # An optional dependency.
    try:
        import proxsuite
    except ImportError:
        raise ControlError(
            "ProxSuite is not installed: install `framefree[qp]`, or the package `proxsuite`"
        ) from None
    return proxsuite.proxqp
