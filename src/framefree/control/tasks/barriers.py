"""Barriers: what must stay positive, as rows ``A a >= b`` of the acceleration.

With h >= 0 where all is well, a barrier of rate k asks for

    d2/dt2 h + 2 k d/dt h + k^2 h >= 0

so that d/dt h + k h, once it is not negative, never becomes so, and then neither does h. Where the
barrier holds something back, the equality is met: h decays to zero critically damped at rate k, and
it is never crossed. Barriers need a law that takes inequalities: `LimitedTaskControl`.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import casadi as ca
import numpy as np

from framefree.control.law import ControlError
from framefree.control.port.obstacles import Obstacle
from framefree.control.shared.frames import Frames
from framefree.control.shared.gains import positive
from framefree.control.tasks.along import Place, rows_of_frames
from framefree.control.tasks.base import Task, TaskRows
from framefree.machine import Machine

Matrix = Any


class Barrier(Task):
    """Base of barriers: `pose_error` of its rows is h, and ``A a >= b`` is asked for."""

    barrier = True
    rate: float

    @property
    def Kp(self) -> float:
        """k^2."""
        return self.rate**2

    @property
    def Kd(self) -> float:
        """2 k."""
        return 2 * self.rate


@dataclass(frozen=True, eq=False)
class JointRange(Barrier):
    """Joints stay between their lower and upper limits: h = x - lower and upper - x.

    Parameters
    ----------
    machine : Machine
    joints : sequence of str
        By default all with one coordinate that have limits.
    rate : float
        k, 1/s.
    margin : float
        By how much they stay within their limits, rad or m.
    name : str
    """

    machine: Machine
    joints: tuple[str, ...] = ()
    rate: float = 20.0
    margin: float = 0.0
    name: str = "joint_range"

    def __post_init__(self) -> None:
        positive(self.rate, "rate", f"task `{self.name}`")
        for joint in self.joints:
            self.machine.joint(joint)
        object.__setattr__(self, "joints", tuple(self.joints))
        for joint, lower, upper in self._limited:
            if upper - lower <= 2 * self.margin:
                raise ControlError(
                    f"`margin` {self.margin:g} of task `{self.name}` leaves joint `{joint}` no "
                    f"room between {lower:g} and {upper:g}"
                )
        if not self._limited:
            raise ControlError(f"no joint of task `{self.name}` has one coordinate and limits")

    @property
    def _limited(self) -> list[tuple[str, float, float]]:
        chosen = self.joints or tuple(joint.name for joint in self.machine.joints)
        joints = [self.machine.joint(name) for name in chosen]
        one = [joint for joint in joints if joint.nx == joint.nv == 1]
        limits = [(joint.name, float(joint.lower[0]), float(joint.upper[0])) for joint in one]
        return [limit for limit in limits if np.isfinite(limit[1:]).any()]

    @property
    def _sides(self) -> list[tuple[str, float, float]]:
        """Joint, sign and limit of every row."""
        pairs = [((name, 1.0, low), (name, -1.0, up)) for name, low, up in self._limited]
        return [side for pair in pairs for side in pair if np.isfinite(side[2])]

    @property
    def parts(self) -> tuple[str, ...]:
        """Names of the rows."""
        words = {1.0: "lower", -1.0: "upper"}
        return tuple(f"{joint} {words[sign]}" for joint, sign, _ in self._sides)

    def check(self, machine: Machine) -> None:
        """Refuse a machine without these joints."""
        for joint, _, _ in self._sides:
            machine.joint(joint)

    def rows(self, frames: Frames, reference: Mapping[str, Matrix]) -> TaskRows:
        """Return the rows at a state."""
        machine, sides = frames.machine, self._sides
        A, h = ca.SX(len(sides), machine.nv), ca.SX(len(sides), 1)
        for row, (joint, sign, limit) in enumerate(sides):
            A[row, machine.v_slice[joint].start] = sign
            x = frames.state.x[machine.x_slice[joint].start]
            h[row] = sign * (x - limit) - self.margin
        return TaskRows(A, ca.SX(len(sides), 1), A @ frames.state.v, h)


@dataclass(frozen=True, eq=False)
class Clearance(Barrier):
    """Balls about origins of frames stay outside of obstacles: h = distance - radius.

    Parameters
    ----------
    obstacles : sequence of Obstacle
        `Sphere`, `Capsule` or `HalfSpace`, in any frame of the machine: they may move with it.
    frames : mapping of str to float
        Radius (m) of the ball about the origin of each frame.
    rate : float
        k, 1/s.
    name : str
    """

    obstacles: Any
    frames: Mapping[str, float]
    rate: float = 10.0
    name: str = "clearance"

    def __post_init__(self) -> None:
        positive(self.rate, "rate", f"task `{self.name}`")
        given = self.obstacles
        obstacles = (given,) if isinstance(given, Obstacle) else tuple(given)
        for item in obstacles:
            if not isinstance(item, Obstacle):
                raise ControlError(
                    f"`obstacles` of task `{self.name}` must be obstacles, got "
                    f"{type(item).__name__}"
                )
        object.__setattr__(self, "obstacles", obstacles)
        for frame, radius in self.frames.items():
            if not (np.isfinite(radius) and radius >= 0):
                raise ControlError(
                    f"the radius about `{frame}` of task `{self.name}` must be from 0 on, got "
                    f"{radius}"
                )
        if not obstacles or not self.frames:
            raise ControlError(f"task `{self.name}` needs obstacles, and frames to keep off them")

    @property
    def parts(self) -> tuple[str, ...]:
        """Names of the rows."""
        return tuple(
            f"{frame} off {k}" for k, _ in enumerate(self.obstacles) for frame in self.frames
        )

    def check(self, machine: Machine) -> None:
        """Refuse frames that the machine does not have."""
        for frame in (*self.frames, *(item.frame for item in self.obstacles)):
            machine.frame(frame)

    def rows(self, frames: Frames, reference: Mapping[str, Matrix]) -> TaskRows:
        """Return the rows at a state."""
        found = []
        for item in self.obstacles:
            for frame, radius in self.frames.items():

                def gap(a: Place, b: Place, item: Any = item, radius: float = radius) -> Matrix:
                    return item.distance(b[1].T @ (a[0] - b[0])) - radius

                found.append(rows_of_frames(gap, [frames.at(frame), frames.at(item.frame)]))
        return TaskRows(*(ca.vertcat(*parts) for parts in zip(*found, strict=True)))
