"""What a solver is: from mass, forces and rows of tasks to the joint acceleration.

Levels of rows come in order of importance. Among the accelerations that fulfil them as far as the
solver says, all take the one nearest to the free motion in the sense of Gauss: least
``(a - a_free) . M (a - a_free)`` with ``a_free = M^-1 Q``.

To add one, subclass `Solver` (a frozen dataclass) and give ``acceleration(problem)`` as casadi
expressions, and ``steps(problem)``: how rows come one after the other, for where they must be
damped (`framefree.control.tasks.damped_steps`).
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, NamedTuple

import casadi as ca
import numpy as np

from framefree.motion.constrained.algebra import TOLERANCE, MassFactor, RowSpace

Matrix = Any


class Level(NamedTuple):
    """Rows ``A a = b`` of one importance: A (m x n), b (m)."""

    A: Matrix
    b: Matrix


class TaskProblem(NamedTuple):
    """What is to be solved, as casadi matrices or NumPy arrays.

    Attributes
    ----------
    M : (n x n)
        Mass matrix.
    Q : (n)
        Forces without actuation: minus the bias.
    levels : tuple of Level
        The most important first.
    exact : Level or None
        Rows that hold in nature, such as those of joints without actuators; above all levels.
    """

    M: Matrix
    Q: Matrix
    levels: tuple[Level, ...]
    exact: Level | None = None

    @property
    def all_levels(self) -> tuple[Level, ...]:
        """All rows, those that are exact first."""
        return self.levels if self.exact is None else (self.exact, *self.levels)


@dataclass(frozen=True)
class TaskAcceleration:
    """An acceleration, with what certifies it.

    Attributes
    ----------
    a : (n,)
    force : (n,)
        M a - Q: what actuators and the held body must give together.
    residuals : tuple of (m,)
        A a - b of every level.
    """

    a: np.ndarray
    force: np.ndarray
    residuals: tuple[np.ndarray, ...]

    @classmethod
    def of(cls, problem: TaskProblem, a: np.ndarray) -> "TaskAcceleration":
        """Return an acceleration with its force and residuals."""
        residuals = tuple(level.A @ a - level.b for level in problem.levels)
        return cls(a, problem.M @ a - problem.Q, residuals)


class RowSteps(NamedTuple):
    """How a solver takes rows: M and Q, levels one after the other, and which rows are dependent.

    Attributes
    ----------
    M, Q : (n x n), (n)
        Of the motion that is left free.
    levels : tuple of Level
    tolerance : float
        Share of a row below which it counts as dependent on those before.
    """

    M: Matrix
    Q: Matrix
    levels: tuple[Level, ...]
    tolerance: float


class Solver(ABC):
    """Base of all solvers that are compiled; see the contract at the top of this file."""

    @abstractmethod
    def acceleration(self, problem: TaskProblem) -> Matrix:
        """Return a (n) as a casadi expression."""

    @abstractmethod
    def steps(self, problem: TaskProblem) -> RowSteps:
        """Return how it takes the rows of all levels but those that are exact."""

    def solve(self, problem: TaskProblem) -> TaskAcceleration:
        """Return the acceleration of a problem in numbers."""
        shapes = tuple(level.A.shape for level in problem.all_levels)
        function = _traced(self, len(problem.Q), shapes, problem.exact is not None)
        rows = [part for level in problem.all_levels for part in level]
        return TaskAcceleration.of(problem, np.array(function(problem.M, problem.Q, *rows)).ravel())


@lru_cache(maxsize=256)
def _traced(solver: Solver, n: int, shapes: tuple, exact: bool) -> ca.Function:
    M, Q = ca.SX.sym("M", n, n), ca.SX.sym("Q", n)
    levels = tuple(Level(ca.SX.sym("A", *shape), ca.SX.sym("b", shape[0])) for shape in shapes)
    problem = TaskProblem(M, Q, levels[exact:], levels[0] if exact else None)
    symbols = [M, Q, *(part for level in levels for part in level)]
    return ca.Function("solver", symbols, [ca.densify(ca.SX(solver.acceleration(problem)))])


def stacked(levels: Sequence[Level], n: int) -> Level:
    """Return the rows of all levels as one."""
    return Level(
        ca.vertcat(ca.SX(0, n), *(level.A for level in levels)),
        ca.vertcat(ca.SX(0, 1), *(level.b for level in levels)),
    )


def scales(levels: Sequence[Level]) -> Matrix:
    """Return for each row the mean square of the rows of its level, to tell it from rounding."""
    means = [ca.sumsqr(level.A) / max(level.A.shape[0], 1) for level in levels]
    columns = [ca.repmat(m, level.A.shape[0], 1) for m, level in zip(means, levels, strict=True)]
    return ca.vertcat(ca.SX(0, 1), *columns)


def nearest(
    M: Matrix, Q: Matrix, levels: Sequence[Level], tolerance: float = TOLERANCE
) -> tuple[Matrix, Matrix]:
    """Return the acceleration of least Gauss constraint with all rows of equal right, and its rank.

    a = a_free + M^-1/2 (A M^-1/2)^+ (b - A a_free)  [Udwadia1992]
    """
    rows = stacked(levels, M.shape[0])
    factor = MassFactor(M)
    free = factor.out(factor.into(Q))
    space = RowSpace(rows.A, scales(levels), factor, tolerance)
    return free + space.least(rows.b - rows.A @ free), space.rank


def together(problem: TaskProblem, semidefinite: bool, tolerance: float) -> RowSteps:
    """Return the steps of a solver to which all rows have equal right."""
    M = with_rows(problem.M, problem.all_levels) if semidefinite else problem.M
    rows = stacked(problem.levels, M.shape[0])
    return RowSteps(M, problem.Q, (rows,), tolerance)


def with_rows(M: Matrix, levels: Sequence[Level]) -> Matrix:
    """Return M + A^T A, which is as good as M where all rows hold, and definite where [M; A] is.

    The form of [Udwadia2006] for masses that are only semidefinite, with A^T A in place of A^+ A.
    The force is still that of M itself (errata E3-5).
    """
    A = stacked(levels, M.shape[0]).A
    if not A.shape[0]:
        return M
    size = ca.trace(M) / ca.fmax(ca.sumsqr(A), 1e-12)
    return M + size * (A.T @ A)
