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
from framefree.machine.values import constant_pose
from framefree.motion import State
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
        or a joint, which feels a force (nv). Where a joint and a body have one name, as in many
        model files, a wrench is the body's, unless the joint has six velocities.
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

    @property
    def numbers(self) -> np.ndarray | None:
        """Numbers (batch, n) that differ among many trajectories; None where all have the same."""
        return None

    def with_numbers(self, column: Matrix) -> "Disturbance":
        """Return it for one trajectory with these numbers (n), by symbols too."""
        return self

    def of_trajectory(self, index: int) -> "Disturbance":
        """Return it as one of many trajectories feels it."""
        return self

    @abstractmethod
    def value(self, moment: Moment) -> Matrix:
        """Return the wrench (6) or joint force (nv) at a moment."""

    def add(self, load: Load, state: State, moment: Moment) -> None:
        """Add what is felt in a state to a load."""
        value, machine = ca.SX(self.value(moment)), state.machine
        on_joint = self.target in machine.joint_index
        size = machine.joint(self.target).nv if on_joint else 6
        if size != 6 and value.shape == (6, 1) and self.target in machine.body_index:
            on_joint, size = False, 6
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
            R = se3.rotation(se3.compose(state.poses[index], pose) if index >= 0 else pose)
            value = ca.vertcat(R.T @ value[:3], R.T @ value[3:])
        load.on_frame(frame, value)


@dataclass(frozen=True)
class Pulse(Disturbance):
    """A constant push for a while.

    Parameters
    ----------
    target : str
    size : (6,) or (nv,); or (batch, 6) or (batch, nv)
        Wrench in N and Nm, or joint force; or one for each of many trajectories.
    start, duration : float or (batch,)
        s; the default duration is for ever.
    axes : "world" or "frame"
    """

    size: Any
    start: Any = 0.0
    duration: Any = np.inf
    axes: str = field(default="world")

    def __post_init__(self) -> None:
        if isinstance(self.size, ca.SX):  # of one trajectory, by symbols
            return
        size = np.atleast_1d(np.asarray(self.size, float))
        object.__setattr__(self, "size", size)
        _check_axes(self)
        start, duration = np.asarray(self.start, float), np.asarray(self.duration, float)
        if not ((duration >= 0).all() and np.isfinite(start).all()):
            raise SimulationError(
                f"the pulse on `{self.target}` must start at a finite time and last at least 0 s, "
                f"got `start` {self.start} and `duration` {self.duration}"
            )
        many = [len(a) for a, n in ((size, 2), (start, 1), (duration, 1)) if a.ndim == n]
        if len(set(many)) > 1 or size.ndim > 2 or max(start.ndim, duration.ndim) > 1:
            raise SimulationError(
                f"the pulse on `{self.target}` must have one size, start and duration, or one for "
                f"each trajectory, got shapes {size.shape}, {start.shape} and {duration.shape}"
            )

    @property
    def numbers(self) -> np.ndarray | None:
        """Size, start and duration of each trajectory, (batch, n + 2)."""
        size = np.asarray(self.size, float)
        start, duration = np.asarray(self.start, float), np.asarray(self.duration, float)
        many = [len(a) for a, n in ((size, 2), (start, 1), (duration, 1)) if a.ndim == n]
        if not many:
            return None
        times = [np.broadcast_to(time, many[0])[:, None] for time in (start, duration)]
        return np.hstack([np.broadcast_to(size, (many[0], size.shape[-1])), *times])

    def with_numbers(self, column: Matrix) -> "Pulse":
        """Return the pulse of one trajectory, by symbols of size, start and duration."""
        n = column.shape[0] - 2
        return Pulse(self.target, column[:n], column[n], column[n + 1], self.axes)

    def of_trajectory(self, index: int) -> "Pulse":
        """Return the pulse of one of many trajectories."""
        if self.numbers is None:
            return self
        *size, start, duration = self.numbers[index].tolist()
        return Pulse(self.target, size, start, duration, self.axes)

    @property
    def stop(self) -> Any:
        """Time (s) of its end."""
        return self.start + self.duration

    @property
    def times(self) -> tuple[float, ...]:
        """Beginning and end."""
        if self.numbers is not None:
            return ()
        return tuple(time for time in (self.start, self.stop) if np.isfinite(time))

    def value(self, moment: Moment) -> Matrix:
        """Return the mean of the pulse over the step."""
        end, known = moment.start + moment.length, not isinstance(self.size, ca.SX)
        stop = end if known and not np.isfinite(self.stop) else ca.fmin(end, self.stop)
        share = ca.fmax(stop - ca.fmax(moment.start, self.start), 0) / moment.length
        return share * (ca.DM(self.size) if known else self.size)


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
