"""Two frames held together by one rigid body, a ball, a hinge or a slider, as rows.

With r from frame a to where b belongs, world axes, and R_B the rotation where b belongs:

    pose error      (p_b - p_B, log(R_B^T R_b))
    velocity error  (v_b - v_a - w_a x r, R_b^T (w_b - w_a))

[Milioshin2024, sec. 3.3]. A weld has all six rows, a ball the first three. A hinge lets b turn
about an axis that both frames share, and a slider lets it move along one: their rows are those
across the axis,

    hinge    position and P^T log(R_B^T R_b), P^T R_b^T (w_b - w_a)
    slider   P^T R_B^T (p_b - p_B) with its rate, and attitude

with P (3 x 2) across the axis. For the hinge the error of attitude is that of the axis alone: 2
coordinates of `framefree.control.tasks.pointing`, of which the velocity error is the rate.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import casadi as ca
import numpy as np

from framefree.control.law import ControlError
from framefree.control.shared.frames import FrameMotion, Frames
from framefree.control.tasks.along import Place, rows_of_frames
from framefree.control.tasks.base import POSE_PARTS, Task, TaskRows, check_frames
from framefree.control.tasks.pointing import projected
from framefree.geometry import se3, so3
from framefree.machine import Machine
from framefree.machine.loop import across
from framefree.machine.values import constant_pose, pose, unit_axis
from framefree.motion.constrained.states import numbers
from framefree.motion.tree import Tree

Matrix = Any
COUPLINGS = {
    "weld": POSE_PARTS,
    "ball": POSE_PARTS[:3],
    "hinge": (*POSE_PARTS[:3], "tilt 1", "tilt 2"),
    "slider": ("across 1", "across 2", *POSE_PARTS[3:]),
}
"""Names of the rows of each kind."""


@dataclass(frozen=True)
class RigidCoupling(Task):
    """Frame b keeps its pose seen from frame a, as if a rigid body joined them, or a joint.

    The frames may be on two robots, on one, or one on the world. Errors are at the top of this
    file; ``d/dt s + Kd s + Kp e = 0`` with s = d/dt e, but for the rows of attitude of weld and
    slider, where d/dt e = L(e) s.

    Parameters
    ----------
    frame_a, frame_b : str
    pose : pose
        G_ab to be kept, by default the identity; `RigidCoupling.as_now` takes it from a
        configuration.
    Kp, Kd : float or one for every row
        1/s^2, 1/s; without Kd, critically damped.
    name : str
    kind : "weld", "ball", "hinge" or "slider"
    axis : three numbers or "x", "y", "z", ...
        Of a hinge or slider, in the axes of b; where b belongs, a's are turned by `pose`.
    """

    frame_a: str
    frame_b: str
    pose: Any = None
    Kp: Any = 1000.0
    Kd: Any = None
    name: str = "coupling"
    kind: str = "weld"
    axis: Any = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "pose", pose(self.pose, f"the pose of task `{self.name}`"))
        if self.kind not in COUPLINGS:
            raise ControlError(
                f"`kind` of task `{self.name}` must be one of {', '.join(COUPLINGS)}, got "
                f"{self.kind!r}"
            )
        if (self.kind in ("hinge", "slider")) != (self.axis is not None):
            needs = "needs an" if self.axis is None else "has no"
            raise ControlError(f"task `{self.name}` of kind {self.kind} {needs} `axis`")
        if self.axis is not None:
            axis = unit_axis(self.axis, f"the axis of task `{self.name}`")
            object.__setattr__(self, "axis", axis)
        self.settle_gains()

    @classmethod
    def as_now(
        cls, machine: Machine, x: Any, frame_a: str, frame_b: str, **options: Any
    ) -> "RigidCoupling":
        """Return the coupling that keeps two frames as they are at a configuration x (nx,).

        Tunable numbers have their defaults: give ``machine.with_parameters(...)`` for others.
        """
        values = np.asarray(x, float)
        machine.validate(values)
        tree = Tree(machine.with_parameters(machine.parameters.values().tolist()).tree)
        A, B = (
            np.eye(4) if machine.frame(frame).body == "world" and frame == "world"
            else np.asarray(numbers(tree, f"frame_pose:{frame}", x=values)[0])
            for frame in (frame_a, frame_b)
        )  # fmt: skip
        return cls(frame_a, frame_b, se3.inverse(A).full() @ B, **options)

    @property
    def parts(self) -> tuple[str, ...]:
        """Names of the rows."""
        return COUPLINGS[self.kind]

    @property
    def blocked(self) -> np.ndarray:
        """Directions (6 x k), in b's axes, along which b cannot move on a, and feels wrenches."""
        one = np.eye(6)
        if self.kind in ("weld", "ball"):
            return one[:, : len(self.parts)]
        P, zero = across(np.asarray(self.axis)), np.zeros((3, 2))
        if self.kind == "hinge":
            return np.hstack([one[:, :3], np.vstack([zero, P])])
        return np.hstack([np.vstack([P, zero]), one[:, 3:]])

    def check(self, machine: Machine) -> None:
        """Refuse frames that the machine does not have, and one frame in place of two."""
        check_frames(machine, (self.frame_a, self.frame_b), self.name)

    def rows(self, frames: Frames, reference: Mapping[str, Matrix]) -> TaskRows:
        """Return the rows at a state."""
        a, b = frames.at(self.frame_a), frames.at(self.frame_b)
        whole = self._welded(a, b)
        if self.kind in ("weld", "ball"):
            return whole.only(range(len(self.parts)))
        G = constant_pose(self.pose)
        R, p = se3.rotation(G), se3.position(G)
        if self.kind == "hinge":
            axis = np.asarray(self.axis)

            def tilt(one: Place, other: Place) -> Matrix:
                return projected(R.T @ (one[1].T @ (other[1] @ ca.DM(axis))), axis)

            pair = whole.only(range(3)), rows_of_frames(tilt, [a, b])
        else:
            P = ca.DM(across(np.asarray(self.axis)))

            def aside(one: Place, other: Place) -> Matrix:
                return P.T @ (R.T @ (one[1].T @ (other[0] - one[0]) - p))

            pair = rows_of_frames(aside, [a, b]), whole.only(range(3, 6))
        return TaskRows(*(ca.vertcat(*parts) for parts in zip(*pair, strict=True)))

    def _welded(self, a: FrameMotion, b: FrameMotion) -> TaskRows:
        """Return all six rows."""
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
