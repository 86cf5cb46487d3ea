"""The weighted form with inequalities, as a quadratic program, by ProxQP [Bambade2022]."""

from dataclasses import dataclass
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from framefree.control.law import ControlError
from framefree.control.tasks.solvers.base import TaskAcceleration, TaskProblem
from framefree.control.tasks.solvers.weighted import softened


class AccelerationBounds(NamedTuple):
    """Rows ``lower <= C a <= upper``: C (k, n), bounds (k,).

    `hard` says of each row whether it holds in any case; the others give way before the program has
    no solution.
    """

    C: np.ndarray
    lower: np.ndarray
    upper: np.ndarray
    hard: np.ndarray

    @classmethod
    def none(cls, n: int) -> "AccelerationBounds":
        """Return no rows."""
        return cls(np.zeros((0, n)), np.zeros(0), np.zeros(0), np.zeros(0, bool))


class BoundedAcceleration(NamedTuple):
    """An answer under bounds.

    Attributes
    ----------
    answer : TaskAcceleration
    relaxed : bool
        Whether the first level had to give way to the bounds.
    solved : bool
        Whether the solver reached its accuracy.
    memory : (n + equalities + k,)
        Where the next solution may start from.
    """

    answer: TaskAcceleration
    relaxed: bool
    solved: bool
    memory: np.ndarray


@dataclass(frozen=True)
class ProxQp:
    """The first level holds within the bounds, the others pull with a weight.

        min (a - a_free) . M (a - a_free) + sum_k weight_k |A_k a - b_k|^2
        subject to  A_1 a = b_1,  lower <= C a <= upper

    Without bounds this is `Weighted`. Where the bounds leave no room for the first level, it and
    the bounds that are not hard are met as nearly as `relaxation` makes them.

    Parameters
    ----------
    weight : float or numbers
        Of the levels after the first, kg and kg m^2.
    relaxation : float
        Weight of the first level, and of bounds that are not hard, where they must give way.
    accuracy : float
        Largest error of all conditions of optimality.
    """

    weight: Any = 50.0
    relaxation: float = 1e4
    accuracy: float = 1e-9

    def solve(
        self,
        problem: TaskProblem,
        bounds: AccelerationBounds | None = None,
        memory: np.ndarray | None = None,
    ) -> BoundedAcceleration:
        """Return the acceleration of a problem in numbers, starting from `memory`."""
        n = len(problem.Q)
        bounds = AccelerationBounds.none(n) if bounds is None else bounds
        H, Q = softened(problem, self.weight)
        A, b = _equalities(problem)
        start = None if memory is None or not memory.any() else memory
        x, point, solved = self._run(H, Q, A, b, bounds, start)
        relaxed = not solved and len(bounds.C) > 0
        if relaxed:
            x, solved = self._relaxed(problem, H, Q, bounds)
        return BoundedAcceleration(TaskAcceleration.of(problem, x[:n]), relaxed, solved, point)

    def _relaxed(
        self, problem: TaskProblem, H: np.ndarray, Q: np.ndarray, bounds: AccelerationBounds
    ) -> tuple[np.ndarray, bool]:
        """Solve with the first level as a weight and one slack for each bound that is not hard."""
        n, first, soft = len(Q), problem.levels[0], np.flatnonzero(~bounds.hard)
        w, k = self.relaxation, len(soft)
        H = _padded(H + w * first.A.T @ first.A, k, w)
        Q = np.concatenate([Q + w * first.A.T @ first.b, np.zeros(k)])
        exact = problem.exact
        A = np.zeros((0, n)) if exact is None else exact.A
        b = np.zeros(0) if exact is None else exact.b
        slack = np.zeros((len(bounds.C), k))
        slack[soft, np.arange(k)] = 1.0
        wide = bounds._replace(C=np.hstack([bounds.C, slack]))
        x, _, solved = self._run(H, Q, np.hstack([A, np.zeros((len(A), k))]), b, wide, None)
        return x, solved

    def _run(
        self,
        H: np.ndarray,
        Q: np.ndarray,
        A: np.ndarray,
        b: np.ndarray,
        bounds: AccelerationBounds,
        start: np.ndarray | None,
    ) -> tuple[np.ndarray, np.ndarray, bool]:
        proxqp = _proxqp()
        n, m, k = len(Q), len(A), len(bounds.C)
        qp = proxqp.dense.QP(n, m, k)
        qp.settings.eps_abs = self.accuracy
        qp.settings.max_iter = 1000
        qp.init(H, -Q, A, b, bounds.C, bounds.lower, bounds.upper)
        if start is None:
            qp.solve()
        else:
            qp.settings.initial_guess = proxqp.InitialGuess.WARM_START
            qp.solve(start[:n], start[n : n + m], start[n + m :])
        results = qp.results
        solved = results.info.status == proxqp.QPSolverOutput.PROXQP_SOLVED
        memory = np.concatenate([results.x, results.y, results.z])
        if not (solved and np.isfinite(memory).all()):
            return np.nan_to_num(results.x), np.zeros(n + m + k), False
        return results.x.copy(), memory, True


def _equalities(problem: TaskProblem) -> tuple[np.ndarray, np.ndarray]:
    """Return the rows that hold exactly: those of nature and of the first level."""
    rows = (*(() if problem.exact is None else (problem.exact,)), *problem.levels[:1])
    n = len(problem.Q)
    return (
        np.vstack([np.zeros((0, n)), *(level.A for level in rows)]),
        np.concatenate([np.zeros(0), *(np.ravel(level.b) for level in rows)]),
    )


def _padded(H: np.ndarray, k: int, weight: float) -> np.ndarray:
    n = len(H)
    wide = np.zeros((n + k, n + k))
    wide[:n, :n], wide[n:, n:] = H, weight * np.eye(k)
    return wide


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
