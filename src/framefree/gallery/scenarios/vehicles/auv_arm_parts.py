"""The path of the vehicle with arm: a loop of the hull, and what the gripper does then."""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import casadi as ca
import numpy as np

from framefree.control.references import FramePath, JointPath, JointSpline, Reference, Together
from framefree.gallery.machines.auv import auv_rest
from framefree.gallery.scenarios.vehicles.vehicle_checks import frame_distance
from framefree.geometry import quaternion, se3
from framefree.machine import Machine
from framefree.motion.tree import Tree
from framefree.simulate import Run
from framefree.solve import inverse_kinematics

RADIUS = 0.5
"""Radius of the vehicle's loop, m."""
KNOT = 0.25
"""Time between the points for which joints are found, s."""


@dataclass(frozen=True, eq=False)
class DiveLoop:
    """A dive loop of the vehicle through all pitch angles, and a path of the gripper.

    The hull turns about its y axis by an angle that rises from 0 to 360 degrees, its middle on a
    circle. The gripper keeps near its place at rest on the hull, but goes 10 cm to either side, 6
    cm up and down, 8 cm back, and turns by 17 degrees to either side.

    Parameters
    ----------
    machine : Machine
    period : float
        s.
    """

    machine: Machine
    period: float

    def turned(self, t: Any) -> Any:
        """Return the angle of the loop, rad."""
        s = ca.fmin(ca.fmax(t / self.period, 0), 1)
        return 2 * np.pi * s**3 * (10 - 15 * s + 6 * s * s)

    def base(self, t: Any) -> Any:
        """Return the coordinates (7) of the hull."""
        angle = self.turned(t)
        place = ca.vertcat(RADIUS * ca.sin(angle), 0, RADIUS * (ca.cos(angle) - 1))
        return ca.vertcat(place, _turn("y", angle))

    def gripper(self, t: Any) -> Any:
        """Return the pose (4x4) of the gripper."""
        x, angle = self.base(t), self.turned(t)
        hull = se3.pose(quaternion.to_rotation(x[3:]), x[:3])
        shift = ca.vertcat(
            -0.04 * (1 - ca.cos(angle)), 0.10 * ca.sin(2 * angle), 0.06 * ca.sin(angle)
        )
        turn = quaternion.to_rotation(_turn("z", 0.3 * ca.sin(angle)))
        return se3.compose(hull, ca.DM(self._at_rest), se3.pose(turn, shift))

    @cached_property
    def rest(self) -> np.ndarray:
        """Configuration at the start (nx)."""
        return auv_rest(self.machine)

    @cached_property
    def _at_rest(self) -> np.ndarray:
        return Tree(self.machine).functions["frame_pose:gripper"](self.rest).full()

    def reference(self) -> Reference:
        """Return the path of the gripper, and of the hull with the arm at rest as posture."""
        arm = ca.DM(self.rest[7:])
        posture = JointPath(self.machine, lambda t: ca.vertcat(self.base(t), arm))
        return Together(FramePath("gripper", self.gripper), posture)

    def joints(self) -> JointSpline:
        """Return the same as a path of all joints, by inverse kinematics of the arm."""
        times = np.arange(-1.0, self.period + 1.0 + KNOT / 2, KNOT)
        hull, poses = self._sampled(times)
        start = np.tile(self.rest, (len(times), 1))
        start[:, :7] = hull
        postures = inverse_kinematics(self.machine, {"gripper": poses}, start, hold=("base",))
        return JointSpline(self.machine, postures.x, times)

    def wanted(self, t: np.ndarray) -> np.ndarray:
        """Return poses (n, 4, 4) of the gripper at times (n,)."""
        return self._sampled(t)[1]

    def _sampled(self, t: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        time = ca.SX.sym("t")
        function = ca.Function("path", [time], [self.base(time), ca.vec(self.gripper(time).T)])
        hull, pose = function(ca.DM(t).T)
        return hull.full().T, pose.full().T.reshape(-1, 4, 4)


def gripper_error(run: Run, loop: DiveLoop, begin: float = 0.0) -> np.ndarray:
    """Return how far (n,) the gripper of a run is off its path, m, begun at a time of the loop."""
    poses = Tree(loop.machine).kernel("frame_pose:gripper")(run.x)
    return frame_distance(np.asarray(poses), loop.wanted(run.t + begin))


def hull_sizes(loop: DiveLoop) -> np.ndarray:
    """Return the inertia (nv,) each velocity has at rest; one for all directions of the hull."""
    size = np.diag(Tree(loop.machine).functions["mass"](loop.rest).full()).copy()
    size[:3], size[3:6] = size[:3].mean(), size[3:6].mean()
    return size


def pitch(x: np.ndarray) -> np.ndarray:
    """Return the pitch (n,), deg, of the hull within 90 either way, of configurations (n, nx)."""
    w, a, b, c = x[:, 3:7].T
    return np.rad2deg(np.arcsin(np.clip(2 * (w * b - a * c), -1.0, 1.0)))


def _turn(axis: str, angle: Any) -> Any:
    parts = [ca.cos(angle / 2), 0, 0, 0]
    parts[1 + "xyz".index(axis)] = ca.sin(angle / 2)
    return ca.vertcat(*parts)
