"""Two frames held by one rigid body, as rows of the joint acceleration."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import casadi as ca

from framefree.control.shared.frames import Frames
from framefree.control.tasks.base import Task, TaskRows
from framefree.geometry import se3, so3
from framefree.machine import Machine
from framefree.machine.values import constant_pose, pose

Matrix = Any


@dataclass(frozen=True)
class RigidCoupling(Task):
    """Frame b keeps its pose seen from frame a, as if a rigid body joined them.

    With r from a to where b belongs, world axes, and R_B the rotation where b belongs:

        pose error      (p_b - p_B, log(R_B^T R_b))
        velocity error  (v_b - v_a - w_a x r, R_b^T (w_b - w_a))

    [Milioshin2024, sec. 3.3]. The frames may be on two robots, on one, or one on the world.

    Parameters
    ----------
    frame_a, frame_b : str
    pose : pose
        G_ab to be kept.
    Kp, Kd : float or (6,)
        1/s^2, 1/s; without Kd, critically damped.
    name : str
    """

    frame_a: str
    frame_b: str
    pose: Any = None
    Kp: Any = 1000.0
    Kd: Any = None
    name: str = "coupling"

    def __post_init__(self) -> None:
        object.__setattr__(self, "pose", pose(self.pose, f"the pose of task `{self.name}`"))
        self.settle_gains()

    def check(self, machine: Machine) -> None:
        """Refuse frames that the machine does not have."""
        for frame in (self.frame_a, self.frame_b):
            machine.frame(frame)

    def rows(self, frames: Frames, reference: Mapping[str, Matrix]) -> TaskRows:
        """Return the rows at a state."""
        a, b = frames.at(self.frame_a), frames.at(self.frame_b)
        G_ab = constant_pose(self.pose)
        r = a.R @ se3.position(G_ab)
        R_B = a.R @ se3.rotation(G_ab)
        relative = b.w - a.w
        turning = ca.cross(a.w, ca.cross(a.w, r))
        return TaskRows(
            ca.vertcat(b.Jv - a.Jv + so3.wed(r) @ a.Jw, b.R.T @ (b.Jw - a.Jw)),
            ca.vertcat(
                b.dv - a.dv - ca.cross(a.dw, r) - turning,
                b.R.T @ (b.dw - a.dw - ca.cross(b.w, relative)),
            ),
            ca.vertcat(b.v - a.v - ca.cross(a.w, r), b.R.T @ relative),
            ca.vertcat(b.p - a.p - r, so3.log(R_B.T @ b.R)),
        )
