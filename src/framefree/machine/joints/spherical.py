"""The spherical (ball) joint: any rotation."""

from dataclasses import dataclass
from typing import Any

import casadi
import numpy as np

from framefree.geometry import quaternion, se3, so3
from framefree.machine.joints.base import JointKind


@dataclass(frozen=True, eq=False)
class Spherical(JointKind):
    """x is the unit quaternion wxyz, v the angular velocity in child axes, rad/s."""

    nx = 4
    nv = 3
    x_names = ("qw", "qx", "qy", "qz")
    v_names = ("wx", "wy", "wz")
    vector = False
    unit_blocks = (slice(0, 4),)

    def pose(self, x: Any) -> Any:
        """Return the rotation of the quaternion."""
        return se3.pose(quaternion.to_rotation(x), casadi.DM.zeros(3))

    def jacobian(self, x: Any) -> Any:
        """S = (0, I)."""
        return casadi.DM(np.eye(6)[:, 3:])

    def rate(self, x: Any) -> Any:
        """Quaternion kinematics, dx/dt = x (0, v) / 2."""
        return quaternion_rate(x)

    def integrate(self, x: Any, dv: Any) -> Any:
        """X exp(dv), dv a rotation vector in child axes."""
        return quaternion.product(x, quaternion.exp(dv))

    def difference(self, x0: Any, x1: Any) -> Any:
        """Rotation vector log(x0* x1), at most pi long."""
        return quaternion.log(quaternion.product(quaternion.conjugate(x0), x1))

    def difference_rate(self, x0: Any, x1: Any) -> Any:
        """Inverse of the right Jacobian of the rotation vector."""
        return so3.right_jacobian_inverse(self.difference(x0, x1))

    @property
    def neutral(self) -> np.ndarray:
        """No rotation: (1, 0, 0, 0)."""
        return np.array([1.0, 0.0, 0.0, 0.0])

    def sample(self, rng: "np.random.Generator", count: int) -> np.ndarray:
        """Return uniformly distributed rotations."""
        return random_quaternions(rng, count)


def quaternion_rate(wxyz: Any) -> Any:
    """Matrix (4x3) that takes the body-fixed angular velocity to d(wxyz)/dt."""
    return casadi.horzcat(*(quaternion.rate(wxyz, axis) for axis in np.eye(3)))


def random_quaternions(rng: "np.random.Generator", count: int) -> np.ndarray:
    """Return unit quaternions (count, 4) of uniformly distributed rotations, with w >= 0."""
    wxyz = rng.normal(size=(count, 4))
    return np.copysign(1.0, wxyz[:, :1]) * wxyz / np.linalg.norm(wxyz, axis=1, keepdims=True)
