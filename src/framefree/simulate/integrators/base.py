"""What an integrator is: one step of dx/dt = x w (on a group), w = w(x, v), dv/dt = a(t, x, v).

To add one that evaluates the dynamics a fixed number of times, subclass `ExplicitIntegrator` and
give

1. ``order``: the power of dt with which the error at a fixed time falls, and ``stages``: how often
   a step evaluates the dynamics;
2. ``step(dynamics, group, t, x, v, dt)``: the state after dt, as casadi expressions, built from
   ``dynamics(t, x, v)`` and the group's `velocity`, `integrate` and `bracket`.

3. ``on_constraints``, if it iterates or estimates errors: near a singular position accelerations a
   little off the constraints are far off, so that iterations diverge and no step is short enough.

To add one whose stages are equations to be solved, make an `ImplicitIntegrator` of its table; the
equations of every stage are those of `framefree.simulate.integrators.newton`.

A step must not leave the group: positions of quaternions are reached by `group.integrate` alone.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from framefree.motion.groups import Group

Matrix = Any
Dynamics = Callable[[Matrix, Matrix, Matrix], Matrix]
"""Acceleration a(t, x, v)."""


class Integrator(ABC):
    """Base of all integrators with a fixed step; see the contract at the top of this file."""

    order: int
    stages: int
    """Evaluations of the dynamics in a step."""
    on_constraints: bool = False
    """Whether the states at which it asks for accelerations must meet the constraints exactly."""


class ExplicitIntegrator(Integrator):
    """Base of integrators whose step is a formula."""

    @abstractmethod
    def step(
        self, dynamics: Dynamics, group: Group, t: Matrix, x: Matrix, v: Matrix, dt: Matrix
    ) -> tuple[Matrix, Matrix]:
        """Return x and v after a step of dt."""


@dataclass(frozen=True)
class ImplicitIntegrator(Integrator):
    """A diagonally implicit Runge-Kutta method, whose stages are solved one after the other.

    With rates P_i of x (in its algebra) and A_i of v at stage i, and g_i its own weight,

        theta_i = h (sum_{j<i} rows[i][j] P_j + g_i P_i),    x_i = x exp(theta_i)
        v_i = v + h (sum_{j<i} rows[i][j] A_j + g_i A_i),    g_i = rows[i][i]
        x' = x exp(h sum_i weights[i] P_i),                  v' = v + h sum_i weights[i] A_i

    The bracket of theta and P is left out: for methods of second order it is of third.

    Attributes
    ----------
    order : int
        At most 2.
    rows : tuple of tuples
        Row i has i + 1 weights, the last one not zero.
    weights : tuple
    iterations : int
        Most evaluations of Newton's method for a stage; those that are not needed cost nothing. A
        stage that has not converged then stops the run.
    """

    order: int
    rows: tuple[tuple[float, ...], ...]
    weights: tuple[float, ...]
    iterations: int = 150
    on_constraints = True

    @property
    def stages(self) -> int:  # type: ignore[override]
        """Stages of a step, each solved by some iterations."""
        return len(self.rows)

    @property
    def nodes(self) -> tuple[float, ...]:
        """Times of the stages, in steps."""
        return tuple(sum(row) for row in self.rows)
