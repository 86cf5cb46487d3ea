"""Runge-Kutta-Munthe-Kaas of fourth order."""

from typing import Any

from framefree.motion.groups import Group, inverse_differential
from framefree.simulate.integrators.base import Dynamics, ExplicitIntegrator


class RungeKuttaMuntheKaas4(ExplicitIntegrator):
    """Classical Runge-Kutta on (theta, v) with x = x0 exp(theta) [MuntheKaas1999].

    d(theta)/dt = dexp^-1(theta) w with w the velocity of x, see `inverse_differential`.
    """

    order = stages = 4

    def step(self, dynamics: Dynamics, group: Group, t: Any, x: Any, v: Any, dt: Any) -> Any:
        """Return x and v after a step of dt."""

        def rates(time: Any, theta: Any, v: Any) -> tuple[Any, Any]:
            moved = group.integrate(x, theta)
            turning = inverse_differential(group, theta, group.velocity(moved, v))
            return turning, dynamics(time, moved, v)

        p1, a1 = group.velocity(x, v), dynamics(t, x, v)
        p2, a2 = rates(t + dt / 2, dt / 2 * p1, v + dt / 2 * a1)
        p3, a3 = rates(t + dt / 2, dt / 2 * p2, v + dt / 2 * a2)
        p4, a4 = rates(t + dt, dt * p3, v + dt * a3)
        theta = dt / 6 * (p1 + 2 * (p2 + p3) + p4)
        return (
            group.normalise(group.integrate(x, theta)),
            v + dt / 6 * (a1 + 2 * (a2 + a3) + a4),
        )
