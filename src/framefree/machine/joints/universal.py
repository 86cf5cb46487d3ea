"""The universal joint: two turns, one after the other."""

from dataclasses import dataclass
from typing import Any

import casadi
import numpy as np

from framefree.geometry import se3
from framefree.machine.joints.base import JointKind
from framefree.machine.joints.turning import angular, rotation_about
from framefree.machine.part import set_field
from framefree.machine.problems import MachineError
from framefree.machine.values import constant_pose, unit_axis


@dataclass(frozen=True, eq=False)
class Universal(JointKind):
    """Turning by x[0] about `axis1`, fixed in the parent, then x[1] about `axis2` of the child."""

    axis1: Any = "x"
    axis2: Any = "y"

    nx = 2
    nv = 2
    x_names = ("angle1", "angle2")
    v_names = ("angle1", "angle2")
    constant_jacobian = False

    def __post_init__(self) -> None:
        set_field(self, "axis1", unit_axis(self.axis1, "the first axis of a universal joint"))
        set_field(self, "axis2", unit_axis(self.axis2, "the second axis of a universal joint"))
        if np.linalg.norm(np.cross(self.axis1, self.axis2)) < 1e-9:
            raise MachineError(
                "the two axes of a universal joint must not be parallel, "
                f"got {self.axis1.tolist()} and {self.axis2.tolist()}"
            )

    def pose(self, x: Any) -> Any:
        """R = R1(x[0]) R2(x[1])."""
        R = self._first(x) @ self._second(x)
        return se3.pose(R, casadi.DM.zeros(3))

    def jacobian(self, x: Any) -> Any:
        """Angular columns R2' axis1 and axis2."""
        turned = self._second(x).T @ constant_pose(self.axis1)
        return casadi.horzcat(
            casadi.vertcat(casadi.DM.zeros(3), turned),
            angular(self.axis2),
        )

    def sample(self, rng: "np.random.Generator", count: int) -> np.ndarray:
        """Return pairs of angles in [-pi, pi)."""
        return rng.uniform(-np.pi, np.pi, (count, 2))

    def _first(self, x: Any) -> Any:
        return rotation_about(self.axis1, casadi.cos(x[0]), casadi.sin(x[0]))

    def _second(self, x: Any) -> Any:
        return rotation_about(self.axis2, casadi.cos(x[1]), casadi.sin(x[1]))
