"""References of a frame: its pose, its body twist and the rate of that."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import casadi as ca
import numpy as np

from framefree.control.law import ControlError
from framefree.control.references.base import Matrix, Reference
from framefree.control.references.checks import (
    checked_frame,
    checked_number,
    checked_pose,
    checked_poses,
    checked_times,
    checked_vector,
    frozen,
)
from framefree.control.references.path import minimum_jerk, spline
from framefree.geometry import quaternion, se3, so3
from framefree.machine.joints import Free, Prismatic, Spherical
from framefree.machine.loop import across
from framefree.machine.part import set_field


class FrameReference(Reference):
    """Base of references that give the pose, twist and acceleration of one frame.

    "FRAME.pose" (4x4) is seen from the world, "FRAME.twist" (6) and its rate "FRAME.acceleration"
    (6) are body-fixed, linear part first.
    """

    frame: str

    def at(self, t: Matrix) -> dict[str, Matrix]:
        """Return pose, twist and acceleration at time t."""
        pose, twist, acceleration = self.function(t)
        return {
            f"{self.frame}.pose": pose,
            f"{self.frame}.twist": twist,
            f"{self.frame}.acceleration": acceleration,
        }

    @property
    def function(self) -> ca.Function:
        """From t to pose, twist and acceleration."""
        raise NotImplementedError


def differentiated(t: Matrix, G: Matrix) -> ca.Function:
    """Return the function from t to the pose G (4x4), vee(G^-1 dG/dt), and the rate of that."""
    G = ca.densify(ca.SX(G))
    rate = ca.reshape(ca.jacobian(ca.vec(G), t), 4, 4)
    twist = ca.densify(se3.vee(se3.inverse(G) @ rate))
    return ca.Function("frame", [t], [G, twist, ca.densify(ca.jacobian(twist, t))])


@dataclass(frozen=True, eq=False)
class FramePath(FrameReference):
    """Any path of a frame that can be written down; its derivatives follow from it.

    Parameters
    ----------
    frame : str
    path : callable
        From t (casadi scalar, s) to the pose (4x4, casadi).
    times : sequence of float
        Where the path is not smooth, s.
    """

    frame: str
    path: Callable[[Matrix], Any]
    times: Any = ()

    def __post_init__(self) -> None:
        checked_frame(self.frame, self.name)
        set_field(self, "times", tuple(float(time) for time in self.times))
        checked_pose(self.function(0.0)[0].full(), f"`path` of {self.name} at t = 0")

    @cached_property
    def function(self) -> ca.Function:  # type: ignore[override]
        """From t to pose, twist and acceleration."""
        t = ca.SX.sym("t")
        G = ca.SX(self.path(t))
        if G.shape != (4, 4):
            raise ControlError(f"`path` of {self.name} must give a 4x4 pose, got shape {G.shape}")
        return differentiated(t, G)


@dataclass(frozen=True, eq=False)
class FrameWaypoints(FrameReference):
    """A frame that moves from pose to pose.

    Parameters
    ----------
    frame : str
    poses : sequence
        Each 4x4, a position (3) without rotation, or position and quaternion wxyz (7).
    times : (n,)
        When they are reached, s; increasing. Before and after, the frame rests.
    stop : bool
        Whether it stops at every pose, on the shortest ways with the least integral of squared
        jerk. Otherwise it rests only at the ends and passes the others smoothly, with continuous
        acceleration, see `JointSpline`.
    screw : bool
        Whether it moves from pose to pose along screws, G_k exp(s xi). By default its origin goes
        along straight lines (or splines of them) while it turns about one axis.
    """

    frame: str
    poses: Any
    times: Any = ()
    stop: bool = True
    screw: bool = False

    def __post_init__(self) -> None:
        checked_frame(self.frame, self.name)
        set_field(self, "poses", checked_poses(self.poses, self.name))
        set_field(self, "times", checked_times(self.times, len(self.poses), self.name))

    @cached_property
    def function(self) -> ca.Function:  # type: ignore[override]
        """From t to pose, twist and acceleration."""
        points = np.array(
            [[*G[:3, 3], *quaternion.from_rotation(G[:3, :3]).full().ravel()] for G in self.poses]
        )
        straight = (Prismatic("x"), Prismatic("y"), Prismatic("z"), Spherical())
        make = minimum_jerk if self.stop else spline
        path = make((Free(),) if self.screw else straight, self.times, points)
        t = ca.SX.sym("t")
        x, v, a = path.function(t)
        if not self.screw:
            R, w = quaternion.to_rotation(x[3:]), v[3:]
            linear = R.T @ v[:3]
            v, a = (
                ca.vertcat(linear, w),
                ca.vertcat(R.T @ a[:3] - ca.cross(w, linear), a[3:]),
            )
        return ca.Function("frame", [t], [Free().pose(x), v, a])


@dataclass(frozen=True, eq=False)
class Circle(FrameReference):
    """A frame that goes round in a circle.

    Parameters
    ----------
    frame : str
    center : (3,)
        m, in world axes.
    radius : float
        m.
    rate : float
        Angular velocity, rad/s; negative goes round the other way.
    normal : (3,)
        Axis of the circle, of any length.
    start : (3,), optional
        Direction from the center to where the frame is at t = 0; what it has along the normal is
        left out. Default any.
    attitude : (3, 3) or wxyz (4,), optional
        Rotation of the frame at t = 0, by default none.
    turning : bool
        Whether the frame turns about the normal as it goes round, or keeps its attitude.
    ramp : float
        Time in s from t = 0, until which the frame rests, to full speed; acceleration and jerk are
        continuous. Without, it goes round at all times.
    """

    frame: str
    center: Any
    radius: float
    rate: float
    normal: Any = (0.0, 0.0, 1.0)
    start: Any = None
    attitude: Any = None
    turning: bool = False
    ramp: float = 0.0

    def __post_init__(self) -> None:
        what = f"of {self.name}"
        checked_frame(self.frame, self.name)
        set_field(self, "center", checked_vector(self.center, 3, f"`center` {what}"))
        set_field(self, "radius", checked_number(self.radius, f"`radius` {what}", least=0.0))
        set_field(self, "rate", checked_number(self.rate, f"`rate` {what}"))
        set_field(self, "ramp", checked_number(self.ramp, f"`ramp` {what}", least=0.0))
        normal = checked_vector(self.normal, 3, f"`normal` {what}")
        if not normal.any():
            raise ControlError(f"`normal` {what} must not be zero")
        set_field(self, "normal", frozen(normal / np.linalg.norm(normal)))
        set_field(self, "start", self._direction())
        set_field(self, "attitude", self._rotation())
        set_field(self, "times", (0.0, self.ramp) if self.ramp else ())

    def _direction(self) -> np.ndarray:
        if self.start is None:
            return frozen(across(self.normal)[:, 0])
        start = checked_vector(self.start, 3, f"`start` of {self.name}")
        flat = start - self.normal * (self.normal @ start)
        if np.linalg.norm(flat) <= 1e-9 * np.linalg.norm(start):
            raise ControlError(f"`start` of {self.name} must not be along `normal`, got {start}")
        return frozen(flat / np.linalg.norm(flat))

    def _rotation(self) -> np.ndarray:
        attitude = np.eye(3) if self.attitude is None else np.asarray(self.attitude, dtype=float)
        what = f"`attitude` of {self.name}"
        if attitude.shape == (4,):
            return frozen(checked_pose([0.0, 0.0, 0.0, *attitude], what)[:3, :3])
        if attitude.shape != (3, 3):
            raise ControlError(f"{what} must be a 3x3 rotation or wxyz, got shape {attitude.shape}")
        G = np.eye(4)
        G[:3, :3] = attitude
        return frozen(checked_pose(G, what)[:3, :3])

    @cached_property
    def function(self) -> ca.Function:  # type: ignore[override]
        """From t to pose, twist and acceleration."""
        t = ca.SX.sym("t")
        angle = self.rate * self._elapsed(t)
        normal, start = ca.DM(self.normal), ca.DM(self.start)
        side = ca.cross(normal, start)
        r = ca.DM(self.center) + self.radius * (ca.cos(angle) * start + ca.sin(angle) * side)
        R = ca.DM(self.attitude)
        if self.turning:
            one, N = ca.DM.eye(3), so3.wed(normal)
            R = (one + ca.sin(angle) * N + (1 - ca.cos(angle)) * (N @ N)) @ R
        return differentiated(t, se3.pose(R, r))

    def _elapsed(self, t: Matrix) -> Matrix:
        """Integral of the share of the full rate, which rises from 0 to 1 by `smooth_step`."""
        if not self.ramp:
            return t
        s = t / self.ramp
        rising = self.ramp * s**4 * (2.5 + s * (s - 3))
        return ca.if_else(t <= 0, 0, ca.if_else(t < self.ramp, rising, t - self.ramp / 2))
