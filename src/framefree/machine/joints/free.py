"""The free joint: any motion, the joint of a floating base."""

from dataclasses import dataclass
from typing import Any

import casadi
import numpy as np

from framefree.geometry import quaternion, se3
from framefree.geometry.series import pose_step_ratios
from framefree.machine.joints.base import JointKind
from framefree.machine.joints.spherical import quaternion_rate, random_quaternions


@dataclass(frozen=True, eq=False)
class Free(JointKind):
    """x = (position in m, unit quaternion wxyz); v the body twist, linear first, m/s and rad/s."""

    nx = 7
    nv = 6
    x_names = ("px", "py", "pz", "qw", "qx", "qy", "qz")
    v_names = ("vx", "vy", "vz", "wx", "wy", "wz")
    vector = False
    springy = False
    unit_blocks = (slice(3, 7),)

    def pose(self, x: Any) -> Any:
        """Return the pose with this position and rotation."""
        return se3.pose(quaternion.to_rotation(x[3:7]), x[:3])

    def jacobian(self, x: Any) -> Any:
        """S = I."""
        return casadi.DM(np.eye(6))

    def rate(self, x: Any) -> Any:
        """d(position)/dt = R v, d(quaternion)/dt = q (0, w) / 2."""
        zero = casadi.DM.zeros
        return casadi.vertcat(
            casadi.horzcat(quaternion.to_rotation(x[3:7]), zero(3, 3)),
            casadi.horzcat(zero(4, 3), quaternion_rate(x[3:7])),
        )

    def integrate(self, x: Any, dv: Any) -> Any:
        """Pose times the exponential of the twist dv on SE(3)."""
        move, turn = dv[:3], dv[3:6]
        cosine, sine, rest = pose_step_ratios(casadi.sumsqr(turn))
        across = casadi.cross(turn, move)
        shift = move + 2 * sine**2 * across + rest * casadi.cross(turn, across)
        attitude = quaternion.product(x[3:7], casadi.vertcat(cosine, sine * turn))
        return casadi.vertcat(x[:3] + quaternion.to_rotation(x[3:7]) @ shift, attitude)

    def difference(self, x0: Any, x1: Any) -> Any:
        """Twist log(G0^-1 G1), its rotation at most pi long."""
        turn = quaternion.product(quaternion.conjugate(x0[3:7]), x1[3:7])
        shift = quaternion.to_rotation(x0[3:7]).T @ (x1[:3] - x0[:3])
        return se3.log(se3.pose(quaternion.to_rotation(turn), shift))

    @property
    def neutral(self) -> np.ndarray:
        """At the origin, not rotated."""
        return np.array([0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0])

    def sample(self, rng: "np.random.Generator", count: int) -> np.ndarray:
        """Return positions within a cube of 2 m and uniformly distributed rotations."""
        return np.hstack([rng.uniform(-1.0, 1.0, (count, 3)), random_quaternions(rng, count)])
