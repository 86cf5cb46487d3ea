"""Semi-implicit Euler: the velocity first, then the configuration with the new velocity."""

from typing import Any

from framefree.motion.groups import Group
from framefree.simulate.integrators.base import Dynamics, ExplicitIntegrator


class SemiImplicitEuler(ExplicitIntegrator):
    """v1 = v + dt a(t, x, v),  x1 = x exp(dt w(v1)). First order, one evaluation."""

    order = stages = 1

    def step(self, dynamics: Dynamics, group: Group, t: Any, x: Any, v: Any, dt: Any) -> Any:
        """Return x and v after a step of dt."""
        v1 = v + dt * dynamics(t, x, v)
        return group.normalise(group.integrate(x, dt * group.velocity(x, v1))), v1
