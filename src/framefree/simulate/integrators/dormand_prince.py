"""The embedded Runge-Kutta pair of orders 5 and 4 of Dormand and Prince, in Munthe-Kaas form."""

from typing import Any

from framefree.motion.groups import Group, inverse_differential
from framefree.simulate.integrators.base import Dynamics, ExplicitIntegrator

# Nodes, rows of the stages (the last is the fifth-order solution), and its difference to the
# fourth-order one [DormandPrince1980].
_NODES = (0.0, 1 / 5, 3 / 10, 4 / 5, 8 / 9, 1.0, 1.0)
_ROWS = (
    (),
    (1 / 5,),
    (3 / 40, 9 / 40),
    (44 / 45, -56 / 15, 32 / 9),
    (19372 / 6561, -25360 / 2187, 64448 / 6561, -212 / 729),
    (9017 / 3168, -355 / 33, 46732 / 5247, 49 / 176, -5103 / 18656),
    (35 / 384, 0.0, 500 / 1113, 125 / 192, -2187 / 6784, 11 / 84),
)
_ERROR = (71 / 57600, 0.0, -71 / 16695, 71 / 1920, -17253 / 339200, 22 / 525, -1 / 40)


class DormandPrince(ExplicitIntegrator):
    """Fifth order on (theta, v) with x = x0 exp(theta), and an estimate of the error of a step."""

    order, stages = 5, 7
    on_constraints = True

    def step(self, dynamics: Dynamics, group: Group, t: Any, x: Any, v: Any, dt: Any) -> Any:
        """Return x and v after a step of dt."""
        return self.step_with_error(dynamics, group, t, x, v, dt)[:2]

    def step_with_error(
        self, dynamics: Dynamics, group: Group, t: Any, x: Any, v: Any, dt: Any
    ) -> tuple[Any, Any, Any, Any]:
        """Return x and v after a step, and the differences of theta and v to fourth order."""
        turnings, accelerations = [], []
        for node, row in zip(_NODES, _ROWS, strict=True):
            moved, speed, theta = x, v, None
            if row:
                theta, speed = dt * _sum(row, turnings), v + dt * _sum(row, accelerations)
                moved = group.integrate(x, theta)
            turning = group.velocity(moved, speed)
            if theta is not None:
                turning = inverse_differential(group, theta, turning)
            turnings.append(turning)
            accelerations.append(dynamics(t + node * dt, moved, speed))
        return (
            group.normalise(moved),
            speed,
            dt * _sum(_ERROR, turnings),
            dt * _sum(_ERROR, accelerations),
        )


def _sum(weights: tuple[float, ...], values: list[Any]) -> Any:
    parts = [w * value for w, value in zip(weights, values, strict=True) if w]
    return sum(parts[1:], parts[0])
