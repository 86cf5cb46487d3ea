"""The continuous joint: turning without end, the angle kept as its cosine and sine."""

from dataclasses import dataclass
from typing import Any

import casadi
import numpy as np

from framefree.geometry import se3
from framefree.machine.joints.base import JointKind
from framefree.machine.joints.turning import angular, rotation_about
from framefree.machine.part import set_field
from framefree.machine.values import unit_axis


@dataclass(frozen=True, eq=False)
class Continuous(JointKind):
    """Turning about `axis`; x = (cos, sin) of the angle, v its rate in rad/s."""

    axis: Any = "z"

    nx = 2
    nv = 1
    x_names = ("cos", "sin")
    v_names = ("",)
    vector = False
    unit_blocks = (slice(0, 2),)

    def __post_init__(self) -> None:
        set_field(self, "axis", unit_axis(self.axis, "the axis of a continuous joint"))

    @property
    def additive(self) -> bool:
        """Angles add up."""
        return True

    def pose(self, x: Any) -> Any:
        """Rotation about the axis."""
        return se3.pose(rotation_about(self.axis, x[0], x[1]), casadi.DM.zeros(3))

    def jacobian(self, x: Any) -> Any:
        """S = (0, axis)."""
        return angular(self.axis)

    def rate(self, x: Any) -> Any:
        """d(cos, sin)/dt = (-sin, cos) v."""
        return casadi.vertcat(-x[1], x[0])

    def integrate(self, x: Any, dv: Any) -> Any:
        """Turn on by the angle dv."""
        return turned(x, dv)

    def difference(self, x0: Any, x1: Any) -> Any:
        """Angle from x0 to x1, in (-pi, pi]."""
        return angle_between(x0, x1)

    @property
    def neutral(self) -> np.ndarray:
        """Angle zero: (1, 0)."""
        return np.array([1.0, 0.0])

    def sample(self, rng: "np.random.Generator", count: int) -> np.ndarray:
        """Return uniformly distributed directions."""
        return random_pairs(rng, count)


def turned(pair: Any, angle: Any) -> Any:
    """Return the (cos, sin) pair turned by an angle."""
    c, s = casadi.cos(angle), casadi.sin(angle)
    return casadi.vertcat(pair[0] * c - pair[1] * s, pair[1] * c + pair[0] * s)


def angle_between(pair0: Any, pair1: Any) -> Any:
    """Angle that turns pair0 = (cos, sin) into pair1, in (-pi, pi]."""
    sine = pair0[0] * pair1[1] - pair0[1] * pair1[0]
    return casadi.atan2(sine, pair0[0] * pair1[0] + pair0[1] * pair1[1])


def random_pairs(rng: "np.random.Generator", count: int) -> np.ndarray:
    """Return (cos, sin) of uniformly distributed angles (count, 2)."""
    angles = rng.uniform(-np.pi, np.pi, count)
    return np.stack([np.cos(angles), np.sin(angles)], axis=1)
