"""The implicit midpoint rule on a group: symmetric in time, so that energy does not drift."""

from dataclasses import dataclass
from typing import Any

from framefree.motion.groups import Group
from framefree.simulate.integrators.base import Dynamics, Integrator


@dataclass(frozen=True)
class ImplicitMidpoint(Integrator):
    """v1 = v + dt a(t + dt/2, xm, vm),  x1 = x exp(dt vm),  vm = (v + v1)/2,  xm = x exp(dt/2 vm).

    Reversing time and the sign of v runs the same steps backwards; reversible machines without
    losses keep their energy to within a bounded oscillation of second order. The equations for vm
    and xm are solved by `iterations` fixed-point iterations; each gains a factor of about dt times
    the largest rate of the accelerations.
    """

    iterations: int = 8
    order = 2
    on_constraints = True

    @property
    def stages(self) -> int:  # type: ignore[override]
        """Evaluations of the dynamics in a step: one an iteration."""
        return self.iterations

    def step(self, dynamics: Dynamics, group: Group, t: Any, x: Any, v: Any, dt: Any) -> Any:
        """Return x and v after a step of dt."""
        middle, x_middle = v, x
        for _ in range(self.iterations):
            x_middle = group.integrate(x, dt / 2 * group.velocity(x_middle, middle))
            middle = v + dt / 2 * dynamics(t + dt / 2, x_middle, middle)
        moved = group.integrate(x, dt * group.velocity(x_middle, middle))
        return group.normalise(moved), 2 * middle - v
