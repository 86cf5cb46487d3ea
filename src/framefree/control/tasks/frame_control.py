"""A frame that follows a target: of the machine itself, or of a body that it holds.

All six rows or some of them. With the errors of `framefree.control.shared.frame_error`, e the pose
and y the velocity of the target D beside the frame E,

    d/dt y + Kd y + Kp e = 0,    d/dt e = L(e) y

row by row; for the rows of position L is the identity.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from framefree.control.shared.frame_error import frame_error
from framefree.control.shared.frames import FrameMotion, Frames
from framefree.control.tasks.base import (
    POSE_PARTS,
    TaskOfChosenRows,
    TaskRows,
    check_frames,
    chosen_parts,
    frame_shapes,
)
from framefree.machine import Machine
from framefree.machine.values import pose

Matrix = Any
GROUPS = {"all": POSE_PARTS, "position": POSE_PARTS[:3], "attitude": POSE_PARTS[3:]}


class _Following(TaskOfChosenRows):
    """What the tasks of this file share: a target, and which of its rows count."""

    target: str

    def _settle(self) -> None:
        object.__setattr__(self, "only", chosen_parts(self.only, POSE_PARTS, GROUPS, self.name))
        self.settle_gains()

    @property
    def shapes(self) -> Mapping[str, tuple[int, int]]:
        """Shapes of the reference signals."""
        return frame_shapes(self.target)

    def _rows(self, E: FrameMotion, reference: Mapping[str, Matrix]) -> TaskRows:
        error = frame_error(E, self.target, reference)
        rows = TaskRows(-error.J, error.drift, error.y, error.e)
        return rows.only([POSE_PARTS.index(part) for part in self.parts])


@dataclass(frozen=True)
class FrameControl(_Following):
    """A frame of the machine follows the reference TARGET.pose, TARGET.twist, TARGET.acceleration.

    Its error equation is at the top of this file.

    Parameters
    ----------
    frame : str
    target : str
        Of the reference; by default the frame's own name.
    Kp, Kd : float or one for every row
        1/s^2, 1/s; without Kd, critically damped.
    name : str
    only : str or sequence of str
        "all", "position", "attitude", or some of "x", "y", "z", "turn x", "turn y", "turn z".
        Positions are along the axes of `seen_from`, turns about those of the target.
    seen_from : str
        Frame, moving or not, from which the target is seen.
    """

    frame: str
    target: str = ""
    Kp: Any = 500.0
    Kd: Any = None
    name: str = "control"
    only: Any = "all"
    seen_from: str = "world"

    def __post_init__(self) -> None:
        object.__setattr__(self, "target", self.target or self.frame)
        self._settle()

    def check(self, machine: Machine) -> None:
        """Refuse frames that the machine does not have, and a frame seen from itself."""
        check_frames(machine, (self.frame, self.seen_from), self.name)

    def rows(self, frames: Frames, reference: Mapping[str, Matrix]) -> TaskRows:
        """Return the rows at a state."""
        E = frames.at(self.frame)
        if self.seen_from != "world":
            E = E.seen_from(frames.at(self.seen_from))
        return self._rows(E, reference)


@dataclass(frozen=True)
class HeldBodyControl(_Following):
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
    Kp, Kd : float or one for every row
        1/s^2, 1/s; without Kd, critically damped.
    name : str
    only : str or sequence of str
        Which rows; see `FrameControl`.
    """

    holder: str
    place: Any = None
    target: str = "held"
    Kp: Any = 500.0
    Kd: Any = None
    name: str = "control"
    only: Any = "all"

    def __post_init__(self) -> None:
        object.__setattr__(self, "place", pose(self.place, f"the place of task `{self.name}`"))
        self._settle()

    def check(self, machine: Machine) -> None:
        """Refuse a holder that the machine does not have."""
        machine.frame(self.holder)

    def rows(self, frames: Frames, reference: Mapping[str, Matrix]) -> TaskRows:
        """Return the rows at a state."""
        return self._rows(frames.at(self.holder, self.place), reference)
