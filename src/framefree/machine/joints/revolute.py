"""The revolute joint: turning about an axis, by an angle that counts turns."""

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
class Revolute(JointKind):
    """Turning about `axis`; x is the angle in rad, v its rate in rad/s.

    Parameters
    ----------
    axis : three numbers or "x", "y", "z", "-x", ...
        Axis in the joint frame; stored with unit length.
    """

    axis: Any = "z"

    nx = 1
    nv = 1
    x_names = ("",)
    v_names = ("",)

    def __post_init__(self) -> None:
        set_field(self, "axis", unit_axis(self.axis, "the axis of a revolute joint"))

    def pose(self, x: Any) -> Any:
        """Rotation about the axis by x."""
        return se3.pose(rotation_about(self.axis, casadi.cos(x), casadi.sin(x)), casadi.DM.zeros(3))

    def jacobian(self, x: Any) -> Any:
        """S = (0, axis)."""
        return angular(self.axis)

    def sample(self, rng: "np.random.Generator", count: int) -> np.ndarray:
        """Return angles in [-pi, pi)."""
        return rng.uniform(-np.pi, np.pi, (count, 1))
