"""The cylindrical joint: sliding along and turning about one axis, independently."""

from dataclasses import dataclass
from typing import Any

import casadi
import numpy as np

from framefree.geometry import se3
from framefree.machine.joints.base import JointKind
from framefree.machine.joints.turning import angular, linear, rotation_about
from framefree.machine.part import set_field
from framefree.machine.values import constant_pose, unit_axis


@dataclass(frozen=True, eq=False)
class Cylindrical(JointKind):
    """x = (displacement in m, angle in rad) along and about `axis`."""

    axis: Any = "z"

    nx = 2
    nv = 2
    x_names = ("displacement", "angle")
    v_names = ("displacement", "angle")

    def __post_init__(self) -> None:
        set_field(self, "axis", unit_axis(self.axis, "the axis of a cylindrical joint"))

    def pose(self, x: Any) -> Any:
        """Return the translation by x[0] along and rotation by x[1] about the axis."""
        R = rotation_about(self.axis, casadi.cos(x[1]), casadi.sin(x[1]))
        return se3.pose(R, constant_pose(self.axis) * x[0])

    def jacobian(self, x: Any) -> Any:
        """Columns (axis, 0) and (0, axis)."""
        return casadi.horzcat(linear(self.axis), angular(self.axis))

    def sample(self, rng: "np.random.Generator", count: int) -> np.ndarray:
        """Return displacements within 1 m and angles in [-pi, pi)."""
        return rng.uniform(-1.0, 1.0, (count, 2)) * [1.0, np.pi]
