"""What an integrator is: one step of dx/dt = x w (on a group), w = w(x, v), dv/dt = a(t, x, v).

To add one, subclass `Integrator` and give

1. ``order``: the power of dt with which the error at a fixed time falls, and ``stages``: how often
   a step evaluates the dynamics;
2. ``step(dynamics, group, t, x, v, dt)``: the state after dt, as casadi expressions, built from
   ``dynamics(t, x, v)`` and the group's `velocity`, `integrate` and `bracket`.

3. ``on_constraints``, if it iterates or estimates errors: near a singular position accelerations a
   little off the constraints are far off, so that iterations diverge and no step is short enough.

A step must not leave the group: positions of quaternions are reached by `group.integrate` alone.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable
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

    @abstractmethod
    def step(
        self, dynamics: Dynamics, group: Group, t: Matrix, x: Matrix, v: Matrix, dt: Matrix
    ) -> tuple[Matrix, Matrix]:
        """Return x and v after a step of dt."""
