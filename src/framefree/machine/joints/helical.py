"""The helical joint: a screw."""

from dataclasses import dataclass
from typing import Any

import casadi
import numpy as np

from framefree.geometry import se3
from framefree.machine.joints.base import JointKind
from framefree.machine.joints.turning import angular, linear, rotation_about
from framefree.machine.part import set_field
from framefree.machine.values import constant_pose, scalar, unit_axis


@dataclass(frozen=True, eq=False)
class Helical(JointKind):
    """Turning about `axis` while sliding `pitch` metres per radian; x is the angle in rad."""

    axis: Any = "z"
    pitch: float = 0.0

    nx = 1
    nv = 1
    x_names = ("",)
    v_names = ("",)

    def __post_init__(self) -> None:
        set_field(self, "axis", unit_axis(self.axis, "the axis of a helical joint"))
        set_field(self, "pitch", scalar(self.pitch, "the pitch of a helical joint"))

    def pose(self, x: Any) -> Any:
        """Rotation by x about and translation by pitch x along the axis."""
        R = rotation_about(self.axis, casadi.cos(x), casadi.sin(x))
        return se3.pose(R, constant_pose(self.axis) * (self.pitch * x))

    def jacobian(self, x: Any) -> Any:
        """S = (pitch axis, axis)."""
        return self.pitch * linear(self.axis) + angular(self.axis)

    def sample(self, rng: "np.random.Generator", count: int) -> np.ndarray:
        """Return angles in [-pi, pi)."""
        return rng.uniform(-np.pi, np.pi, (count, 1))
