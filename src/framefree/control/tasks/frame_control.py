"""A frame that follows a target: of the machine itself, or of a body that it holds."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from framefree.control.shared.frame_error import frame_error, frame_signals
from framefree.control.shared.frames import FrameMotion, Frames
from framefree.control.tasks.base import Task, TaskRows
from framefree.machine.values import pose

Matrix = Any


@dataclass(frozen=True)
class FrameControl(Task):
    """A frame of the machine follows the reference TARGET.pose, TARGET.twist, TARGET.acceleration.

    Its errors are those of `framefree.control.shared.frame_error`.

    Parameters
    ----------
    frame : str
    target : str
        Of the reference; by default the frame's own name.
    Kp, Kd : float or (6,)
        1/s^2, 1/s; without Kd, critically damped.
    name : str
    """

    frame: str
    target: str = ""
    Kp: Any = 500.0
    Kd: Any = None
    name: str = "control"

    def __post_init__(self) -> None:
        object.__setattr__(self, "target", self.target or self.frame)
        self.settle_gains()

    @property
    def needs(self) -> tuple[str, ...]:
        """Names of the reference signals."""
        return frame_signals(self.target)

    def rows(self, frames: Frames, reference: Mapping[str, Matrix]) -> TaskRows:
        """Return the rows at a state."""
        return _following(frames.at(self.frame), self.target, reference)


@dataclass(frozen=True)
class HeldBodyControl(Task):
    """A frame fixed on the held body follows a reference.

    The body is held by a frame of the machine, so that its own frames move with that one; the rows
    are those of `FrameControl` at the place on the body.

    Parameters
    ----------
    holder : str
        Frame of the machine that holds the body.
    place : pose
        The frame on the body, seen from the holder.
    target : str
        Of the reference: TARGET.pose and so on.
    Kp, Kd : float or (6,)
        1/s^2, 1/s; without Kd, critically damped.
    name : str
    """

    holder: str
    place: Any = None
    target: str = "held"
    Kp: Any = 500.0
    Kd: Any = None
    name: str = "control"

    def __post_init__(self) -> None:
        object.__setattr__(self, "place", pose(self.place, f"the place of task `{self.name}`"))
        self.settle_gains()

    @property
    def needs(self) -> tuple[str, ...]:
        """Names of the reference signals."""
        return frame_signals(self.target)

    def rows(self, frames: Frames, reference: Mapping[str, Matrix]) -> TaskRows:
        """Return the rows at a state."""
        return _following(frames.at(self.holder, self.place), self.target, reference)


def _following(E: FrameMotion, target: str, reference: Mapping[str, Matrix]) -> TaskRows:
    """Return the rows of a frame that follows a target."""
    error = frame_error(E, target, reference)
    return TaskRows(-error.J, error.drift, error.y, error.e)
