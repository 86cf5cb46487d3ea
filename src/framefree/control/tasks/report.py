"""What can be said of the tasks of a law at one state: ranks, dependent rows, contradictions."""

from dataclasses import dataclass
from typing import Any

import casadi as ca
import numpy as np

from framefree.control.references.base import Reference
from framefree.control.tasks.assembly import Assembly
from framefree.control.tasks.carried import StandingBase
from framefree.control.tasks.law import TaskControl
from framefree.control.tasks.limited import LimitedTaskControl
from framefree.control.tasks.solvers.base import Level, TaskProblem
from framefree.motion.constrained.solve import null_space, numerical_rank, pseudo_inverse

TAKES_PART = 1e-7
"""Share of a combination of rows that vanishes, above which a row takes part in it."""
NOTICED = 1e-8
"""What is left of a row, relative to the right side, above which it is not fulfilled."""


@dataclass(frozen=True)
class LevelReport:
    """One level of tasks at a state, after the levels above have taken what they need.

    Attributes
    ----------
    rows : tuple of str
        Names of all rows.
    rank : int
        Number of independent rows that are left.
    dependent : tuple of str
        Rows that depend on each other, or on levels above.
    contradicting : tuple of str
        Rows that cannot be fulfilled together with each other and with the levels above.
    residual : (m,)
        A a - b of least squares.
    """

    rows: tuple[str, ...]
    rank: int
    dependent: tuple[str, ...]
    contradicting: tuple[str, ...]
    residual: np.ndarray

    def __str__(self) -> str:
        lines = [f"{len(self.rows)} rows, of which {self.rank} are independent"]
        if self.dependent:
            lines.append(f"depend on each other or on levels above: {', '.join(self.dependent)}")
        if self.contradicting:
            size = float(np.linalg.norm(self.residual))
            lines.append(f"cannot be fulfilled: {', '.join(self.contradicting)}")
            lines.append(f"least residual of A a = b: {size:.3g}")
        return "; ".join(lines)


@dataclass(frozen=True)
class TaskReport:
    """The tasks of a law at one state.

    Attributes
    ----------
    levels : tuple of LevelReport
        In order; where joints lack actuators or contacts stand, their rows are the first.
    unique : bool
        Whether mass and rows leave one acceleration only: [M; A] has full column rank.
    """

    levels: tuple[LevelReport, ...]
    unique: bool

    def __str__(self) -> str:
        lines = [f"level {k}: {level}" for k, level in enumerate(self.levels, start=1)]
        if not self.unique:
            lines.append("the acceleration is not unique: mass and tasks leave it open")
        return "\n".join(lines)


def task_report(
    law: TaskControl | LimitedTaskControl,
    x: Any,
    v: Any,
    reference: Reference | None = None,
    t: float = 0.0,
) -> TaskReport:
    """Return what the tasks of a law amount to at a state."""
    problem = numbers(law, np.asarray(x, float), np.asarray(v, float), reference, t)
    labels = [tuple(row for task in level for row in task.labels) for level in law.levels]
    if problem.exact is not None:
        held = [f"{c.name}: {part}" for c in law.contacts for part in c.parts]
        others = range(len(problem.exact.b) - len(held))
        labels.insert(0, (*held, *(f"unactuated {k}" for k in others)))
    return examined(problem, labels)


def examined(problem: TaskProblem, labels: list[tuple[str, ...]]) -> TaskReport:
    """Return what the numbers of a problem say."""
    n = len(problem.Q)
    free, a, reports = np.eye(n), np.zeros(n), []
    for level, names in zip(problem.all_levels, labels, strict=True):
        left = level.A @ free
        # What levels above have taken leaves rounding errors of the rows as they were.
        size = np.linalg.norm(level.A, axis=1, keepdims=True)
        left[np.linalg.norm(left, axis=1) <= 1e-9 * size[:, 0]] = 0.0
        wanted = level.b - level.A @ a
        step = pseudo_inverse(left) @ wanted
        gap = left @ step - wanted
        idle = null_space(left.T)
        takes_part = np.abs(idle).max(axis=1, initial=0.0) > TAKES_PART
        noticed = np.abs(gap) > NOTICED * (1 + np.abs(wanted).max(initial=0.0))
        rank = numerical_rank(left)
        reports.append(
            LevelReport(names, rank, _chosen(names, takes_part), _chosen(names, noticed), gap)
        )
        a, free = a + free @ step, free @ null_space(left)
    rows = np.vstack([problem.M, *(level.A for level in problem.all_levels)])
    scale = np.linalg.norm(rows, axis=1, keepdims=True)
    rows = np.divide(rows, scale, out=np.zeros_like(rows), where=scale > 0)
    return TaskReport(tuple(reports), numerical_rank(rows) == n)


def _chosen(names: tuple[str, ...], mask: np.ndarray) -> tuple[str, ...]:
    return tuple(name for name, chosen in zip(names, mask, strict=True) if chosen)


def numbers(
    law: TaskControl | LimitedTaskControl,
    x: np.ndarray,
    v: np.ndarray,
    reference: Reference | None,
    t: float,
) -> TaskProblem:
    """Return the problem of a law at a state, in numbers; contacts are held among exact rows."""
    named = {} if reference is None else reference.at(ca.SX(t))
    X, V = ca.SX.sym("x", len(x)), ca.SX.sym("v", len(v))
    whole = Assembly(law.machine, law.levels, law.held, X, V, named)
    if law.contacts:
        problem = StandingBase(whole, law.contacts, named).problem(feasible=True)
    else:
        problem = whole.problem(exact=True)
    parts = [problem.M, problem.Q, *(part for level in problem.all_levels for part in level)]
    values = ca.Function("problem", [X, V], [ca.densify(ca.SX(part)) for part in parts])(x, v)
    M, Q, *rows = (np.array(value) for value in values)
    levels = tuple(Level(rows[k], rows[k + 1].ravel()) for k in range(0, len(rows), 2))
    if problem.exact is None:
        return TaskProblem(M, Q.ravel(), levels)
    return TaskProblem(M, Q.ravel(), levels[1:], levels[0])
