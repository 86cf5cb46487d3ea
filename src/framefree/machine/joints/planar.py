"""The planar joint: sliding and turning in a plane."""

from dataclasses import dataclass
from typing import Any

import casadi
import numpy as np

from framefree.geometry import se3, so3
from framefree.machine.joints.base import JointKind
from framefree.machine.joints.continuous import angle_between, random_pairs, turned
from framefree.machine.joints.turning import angular, linear, rotation_about
from framefree.machine.part import set_field
from framefree.machine.values import constant_pose, unit_axis


@dataclass(frozen=True, eq=False)
class Planar(JointKind):
    """Motion in the plane across `normal`.

    The coordinates x are the position (m) along two in-plane axes and the (cos, sin) of the angle
    about the normal; v = (vx, vy, w) is the body twist in the turned axes.

    The in-plane axes are the joint frame's x and y, turned by the smallest rotation that takes z to
    the normal. For a normal with negative z, they are x and -y turned by the smallest rotation that
    takes -z to it.
    """

    normal: Any = "z"

    nx = 4
    nv = 3
    x_names = ("px", "py", "cos", "sin")
    v_names = ("vx", "vy", "w")
    vector = False
    springy = False
    unit_blocks = (slice(2, 4),)

    def __post_init__(self) -> None:
        set_field(self, "normal", unit_axis(self.normal, "the normal of a planar joint"))

    @property
    def basis(self) -> np.ndarray:
        """In-plane axes and normal as columns (3x3), in the joint frame."""
        x, y, z = self.normal
        side = 1.0 if z >= 0.0 else -1.0
        half = 1.0 / (1.0 + side * z)
        return np.array(
            [
                [1 - half * x * x, -side * half * x * y, x],
                [-half * x * y, side * (1 - half * y * y), y],
                [-side * x, -y, z],
            ]
        )

    def pose(self, x: Any) -> Any:
        """Return the translation in the plane, then rotation about the normal."""
        across = constant_pose(self.basis[:, :2])
        return se3.pose(rotation_about(self.normal, x[2], x[3]), across @ x[:2])

    def jacobian(self, x: Any) -> Any:
        """Columns: sliding along the two in-plane axes, turning about the normal."""
        first, second, normal = self.basis.T
        return casadi.horzcat(linear(first), linear(second), angular(normal))

    def rate(self, x: Any) -> Any:
        """d(x, y)/dt = R (vx, vy), d(cos, sin)/dt = (-sin, cos) w."""
        c, s = x[2], x[3]
        return casadi.vertcat(
            casadi.horzcat(c, -s, 0),
            casadi.horzcat(s, c, 0),
            casadi.horzcat(0, 0, -s),
            casadi.horzcat(0, 0, c),
        )

    def integrate(self, x: Any, dv: Any) -> Any:
        """Move by the exponential of dv on SE(2)."""
        shift = so3.left_jacobian(_about_z(dv[2])) @ casadi.vertcat(dv[0], dv[1], 0)
        px = x[0] + x[2] * shift[0] - x[3] * shift[1]
        py = x[1] + x[3] * shift[0] + x[2] * shift[1]
        return casadi.vertcat(px, py, turned(x[2:4], dv[2]))

    def difference(self, x0: Any, x1: Any) -> Any:
        """Logarithm on SE(2) of the motion from x0 to x1."""
        angle = angle_between(x0[2:4], x1[2:4])
        dx, dy = x1[0] - x0[0], x1[1] - x0[1]
        shift = casadi.vertcat(x0[2] * dx + x0[3] * dy, x0[2] * dy - x0[3] * dx, 0)
        return casadi.vertcat((so3.left_jacobian_inverse(_about_z(angle)) @ shift)[:2], angle)

    @property
    def neutral(self) -> np.ndarray:
        """At the origin, not turned."""
        return np.array([0.0, 0.0, 1.0, 0.0])

    def sample(self, rng: "np.random.Generator", count: int) -> np.ndarray:
        """Return positions within a square of 2 m and uniformly distributed directions."""
        return np.hstack([rng.uniform(-1.0, 1.0, (count, 2)), random_pairs(rng, count)])


def _about_z(angle: Any) -> Any:
    return casadi.vertcat(0, 0, angle)
