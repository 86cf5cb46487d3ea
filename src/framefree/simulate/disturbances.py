"""Forces from outside, known to the plant but not to the law.

A disturbance gives its value for a moment of a step of the integrator: `Pulse` the mean over the
whole step, so that its impulse is exact for every integrator and every step, and `Push` the value
at the moment itself.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import casadi as ca
import numpy as np

from framefree.geometry import se3
from framefree.machine import Machine
from framefree.machine.values import constant_pose
from framefree.motion.load import Load
from framefree.simulate.errors import SimulationError

Matrix = Any


class Moment(NamedTuple):
    """A time t in the step of the integrator that begins at `start` and takes `length`, in s."""

    t: Matrix
    start: Matrix
    length: Matrix


@dataclass(frozen=True)
class Disturbance(ABC):
    """Base of all disturbances: something that pushes a frame, a body or a joint.

    Parameters
    ----------
    target : str
        A frame or a body, which feels a wrench (6, linear part first) at the origin of its frame;
        or a joint, which feels a force (nv).
    """

    target: str

    @property
    def times(self) -> tuple[float, ...]:
        """Times (s) at which it jumps."""
        return ()

    @property
    def axes(self) -> str:
        """Axes of a wrench: "world", or "frame" for the frame's own."""
        return "world"

    @abstractmethod
    def value(self, moment: Moment) -> Matrix:
        """Return the wrench (6) or joint force (nv) at a moment."""

    def add(self, load: Load, machine: Machine, poses: Callable[[], Any], moment: Moment) -> None:
        """Add what is felt to a load; `poses()` are those of the bodies."""
        value = ca.SX(self.value(moment))
        on_joint = self.target in machine.joint_index
        size = machine.joint(self.target).nv if on_joint else 6
        if value.shape != (size, 1):
            raise SimulationError(
                f"the disturbance of `{self.target}` must be {size} numbers, got shape "
                f"{value.shape}"
            )
        if on_joint:
            load.on_joint(self.target, value)
            return
        frame = machine.frame(self.target)
        if self.axes == "world":
            index = machine.body_index[frame.body]
            pose = constant_pose(frame.pose)
            R = se3.rotation(se3.compose(poses()[index], pose) if index >= 0 else pose)
            value = ca.vertcat(R.T @ value[:3], R.T @ value[3:])
        load.on_frame(frame, value)


@dataclass(frozen=True)
class Pulse(Disturbance):
    """A constant push for a while.

    Parameters
    ----------
    target : str
    size : (6,) or (nv,)
        Wrench in N and Nm, or joint force.
    start, duration : float
        s; the default duration is for ever.
    axes : "world" or "frame"
    """

    size: Any
    start: float = 0.0
    duration: float = np.inf
    axes: str = field(default="world")

    def __post_init__(self) -> None:
        object.__setattr__(self, "size", np.atleast_1d(np.asarray(self.size, float)))
        _check_axes(self)
        if not (self.duration >= 0 and np.isfinite(self.start)):
            raise SimulationError(
                f"the pulse on `{self.target}` must start at a finite time and last at least 0 s, "
                f"got `start` {self.start} and `duration` {self.duration}"
            )

    @property
    def stop(self) -> float:
        """Time (s) of its end."""
        return self.start + self.duration

    @property
    def times(self) -> tuple[float, ...]:
        """Beginning and end."""
        return tuple(time for time in (self.start, self.stop) if np.isfinite(time))

    def value(self, moment: Moment) -> Matrix:
        """Return the mean of the pulse over the step."""
        end = moment.start + moment.length
        stop = ca.fmin(end, self.stop) if np.isfinite(self.stop) else end
        share = ca.fmax(stop - ca.fmax(moment.start, self.start), 0) / moment.length
        return share * ca.DM(self.size)


@dataclass(frozen=True)
class Push(Disturbance):
    """A push that varies smoothly with time.

    Parameters
    ----------
    target : str
    function : callable
        From the time t (casadi scalar, s) to the wrench (6) or joint force (nv).
    axes : "world" or "frame"
    """

    function: Callable[[Matrix], Any]
    axes: str = field(default="world")

    def __post_init__(self) -> None:
        _check_axes(self)

    def value(self, moment: Moment) -> Matrix:
        """Return the function's value."""
        value = self.function(moment.t)
        return ca.vertcat(*value) if isinstance(value, list | tuple) else value


def _check_axes(disturbance: Any) -> None:
    if disturbance.axes not in ("world", "frame"):
        raise SimulationError(
            f'the axes of the disturbance of `{disturbance.target}` must be "world" or "frame", '
            f"got {disturbance.axes!r}"
        )
