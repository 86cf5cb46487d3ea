"""Motion of frames of a machine in world axes: pose, velocity, Jacobians, bias accelerations."""

from functools import cached_property
from typing import Any, NamedTuple

import casadi as ca

from framefree.geometry import se3, so3
from framefree.machine.values import compose, constant_pose
from framefree.motion.spatial import Step, Twist
from framefree.motion.state import Jacobian, State

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

    @classmethod
    def of(cls, G: Matrix, jacobian: Jacobian, velocities: Matrix) -> "FrameMotion":
        """Return the motion of a frame at pose G, by its body Jacobian and the rate of that."""
        J = jacobian.value
        return cls.turned(G, J @ velocities, J, jacobian.rate @ velocities)

    @classmethod
    def turned(cls, G: Matrix, twist: Matrix, J: Matrix, rate: Matrix) -> "FrameMotion":
        """Return the motion from what it is in the frame's own axes."""
        R, (v, w) = se3.rotation(G), Twist.of(twist)
        dv, dw = Twist.of(rate)
        # The rate of a body-fixed velocity lacks the turning of its axes.
        parts = (v, w, J[:3, :], J[3:, :], dv + ca.cross(w, v), dw)
        return cls(se3.position(G), R, *(R @ part for part in parts))

    def seen_from(self, a: "FrameMotion") -> "FrameMotion":
        """Return the motion relative to frame a, in its axes.

        With r from a to this frame and u = v - v_a, all in world axes before R_a^T:

            v_r = u - w_a x r
            dv_r = dv - dv_a - dw_a x r - 2 w_a x u + w_a x (w_a x r)
            w_r = w - w_a,    dw_r = dw - dw_a - w_a x w_r
        """
        r, u, turning = self.p - a.p, self.v - a.v, self.w - a.w
        parts = (
            u - ca.cross(a.w, r),
            turning,
            self.Jv - a.Jv + so3.wed(r) @ a.Jw,
            self.Jw - a.Jw,
            self.dv
            - a.dv
            - ca.cross(a.dw, r)
            - 2 * ca.cross(a.w, u)
            + ca.cross(a.w, ca.cross(a.w, r)),
            self.dw - a.dw - ca.cross(a.w, turning),
        )
        return FrameMotion(a.R.T @ r, a.R.T @ self.R, *(a.R.T @ part for part in parts))


class Frames:
    """The frames of a machine at one state (x, v)."""

    def __init__(self, state: State) -> None:
        self.state, self.machine = state, state.machine

    @cached_property
    def _biases(self) -> list[Matrix]:
        """Rates (6) of all body twists at zero joint acceleration."""
        return self.state.accelerations(ca.SX(self.machine.nv, 1))

    def at(self, frame: str, place: Any = None) -> FrameMotion:
        """Return the motion of a frame, or of a place (4x4) given in it."""
        own = self.machine.frame(frame)
        pose = constant_pose(own.pose if place is None else compose(own.pose, place))
        step = Step(se3.rotation(pose), se3.position(pose))
        index = self.machine.body_index[own.body]
        if index < 0:
            rest, none = ca.SX(3, 1), ca.SX(3, self.machine.nv)
            return FrameMotion(step.r, step.R0, rest, rest, none, none, rest, rest)
        twist, rate = (
            step.twist_into(Twist.of(of_body)).vector
            for of_body in (self.state.twists[index], self._biases[index])
        )
        J = self.state.jacobian(own.body).into(step, Twist.zero()).value
        return FrameMotion.turned(se3.compose(self.state.poses[index], pose), twist, J, rate)
