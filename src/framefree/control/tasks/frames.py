"""Motion of frames of a machine in world axes: pose, velocity, Jacobians, bias accelerations."""

from functools import cached_property
from typing import Any, NamedTuple

import casadi as ca

from framefree.geometry import se3
from framefree.machine.values import compose, constant_pose
from framefree.motion.spatial import Step, Twist
from framefree.motion.tree.state import TreeState

Matrix = Any


class FrameMotion(NamedTuple):
    """A frame at one state; everything in world axes, of the frame's origin.

    Attributes
    ----------
    p, R : position (3) and rotation (3x3)
    v, w : velocity and angular velocity (3)
    Jv, Jw : their Jacobians (3 x nv)
    dv, dw : their rates (3) at zero joint acceleration: d/dt v = Jv a + dv
    """

    p: Matrix
    R: Matrix
    v: Matrix
    w: Matrix
    Jv: Matrix
    Jw: Matrix
    dv: Matrix
    dw: Matrix


class Frames:
    """The frames of a machine at one state (x, v)."""

    def __init__(self, state: TreeState) -> None:
        self.state, self.machine = state, state.machine

    @cached_property
    def _biases(self) -> list[Matrix]:
        """Rates (6) of all body twists at zero joint acceleration."""
        return self.state.accelerations(ca.SX(self.machine.nv, 1))

    def at(self, frame: str, place: Any = None) -> FrameMotion:
        """Return the motion of a frame, or of a place (4x4) given in it."""
        found = self.machine.frame(frame)
        pose = found.pose if place is None else compose(found.pose, place)
        G = constant_pose(pose)
        step = Step(se3.rotation(G), se3.position(G))
        index = self.machine.body_index[found.body]
        if index < 0:
            rest, none = ca.SX(3, 1), ca.SX(3, self.machine.nv)
            return FrameMotion(step.r, step.R0, rest, rest, none, none, rest, rest)
        G = se3.compose(self.state.poses[index], G)
        J = self.state.jacobian(found.body).into(step, Twist.zero()).value
        v, w = step.twist_into(Twist.of(self.state.twists[index]))
        dv, dw = step.twist_into(Twist.of(self._biases[index]))
        R = se3.rotation(G)
        # The rate of a body-fixed velocity lacks the turning of its axes.
        dv = dv + ca.cross(w, v)
        return FrameMotion(
            se3.position(G), R, *(R @ part for part in (v, w, J[:3, :], J[3:, :], dv, dw))
        )
