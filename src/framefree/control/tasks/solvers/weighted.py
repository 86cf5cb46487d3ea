"""The first level exactly, the others as far as their weight carries."""

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from framefree.control.law import ControlError
from framefree.control.shared.gains import positive
from framefree.control.tasks.solvers.base import Matrix, RowSteps, Solver, TaskProblem
from framefree.control.tasks.solvers.udwadia_kalaba import UdwadiaKalaba


@dataclass(frozen=True)
class Weighted(Solver):
    """The first level holds, the others pull: [Milioshin2024, eq. 3.40].

        min (a - a_free) . M (a - a_free) + sum_k weight_k |A_k a - b_k|^2   subject to A_1 a = b_1

    This is a compromise and no priority: what is left of the others goes as 1/weight.

    Parameters
    ----------
    weight : float or numbers
        Of the levels after the first, kg and kg m^2.
    equality : Solver
        What solves for the first level, with the other levels added to the mass.
    """

    weight: Any = 50.0
    equality: Solver = field(default_factory=UdwadiaKalaba)

    def __post_init__(self) -> None:
        weight = positive(self.weight, "weight")
        if weight.ndim > 1:
            raise ControlError(f"`weight` must be a number or one a level, got {self.weight}")
        object.__setattr__(self, "weight", tuple(weight.tolist()) if weight.ndim else float(weight))

    def acceleration(self, problem: TaskProblem) -> Matrix:
        """Return a (n)."""
        M, Q = softened(problem, self.weight)
        return self.equality.acceleration(TaskProblem(M, Q, problem.levels[:1], problem.exact))

    def steps(self, problem: TaskProblem) -> RowSteps:
        """Return the steps of the first level; the others pull on the motion that it leaves."""
        M, Q = softened(problem, self.weight)
        return self.equality.steps(TaskProblem(M, Q, problem.levels[:1], problem.exact))


def softened(problem: TaskProblem, weight: Any) -> tuple[Matrix, Matrix]:
    """Return ``M + sum w A^T A`` and ``Q + sum w A^T b`` over the levels after the first."""
    soft = problem.levels[1:]
    if np.ndim(weight) and len(weight) != len(soft):
        raise ControlError(f"`weight` must be a number or {len(soft)} of them, got {weight}")
    M, Q = problem.M, problem.Q
    for level, w in zip(soft, np.broadcast_to(weight, len(soft)).tolist(), strict=True):
        M, Q = M + w * (level.A.T @ level.A), Q + w * (level.A.T @ level.b)
    return M, Q
