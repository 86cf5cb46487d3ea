"""The prismatic joint: sliding along an axis."""

from dataclasses import dataclass
from typing import Any

import casadi
import numpy as np

from framefree.geometry import se3
from framefree.machine.joints.base import JointKind
from framefree.machine.joints.turning import linear
from framefree.machine.part import set_field
from framefree.machine.values import constant_pose, unit_axis


@dataclass(frozen=True, eq=False)
class Prismatic(JointKind):
    """Sliding along `axis`; x is the displacement in m, v its rate in m/s."""

    axis: Any = "z"

    nx = 1
    nv = 1
    x_names = ("",)
    v_names = ("",)

    def __post_init__(self) -> None:
        set_field(self, "axis", unit_axis(self.axis, "the axis of a prismatic joint"))

    def pose(self, x: Any) -> Any:
        """Return the translation by x along the axis."""
        return se3.pose(casadi.DM(np.eye(3)), constant_pose(self.axis) * x)

    def jacobian(self, x: Any) -> Any:
        """S = (axis, 0)."""
        return linear(self.axis)

    def sample(self, rng: "np.random.Generator", count: int) -> np.ndarray:
        """Return displacements within 1 m."""
        return rng.uniform(-1.0, 1.0, (count, 1))
