"""Tasks of directions and distances: an axis that points, a gaze, a distance that is kept.

A direction has two coordinates, those of the plane onto which the sphere of directions is projected
from the point opposite to the wanted one: with u the unit vector and n the wanted one,

    e = 2 (u . b1, u . b2) / (1 + u . n),    |e| = 2 tan(angle / 2)

with b1, b2, n right-handed. All of them obey d2/dt2 e + Kd d/dt e + Kp e = 0: from rest the
direction goes the shortest way, from anywhere but exactly opposite. Distances obey the same.
"""

from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import casadi as ca

from framefree.control.law import ControlError
from framefree.control.shared.frames import Frames
from framefree.control.shared.gains import positive
from framefree.control.tasks.along import Place, following, rows_of_frames, signal_shapes
from framefree.control.tasks.base import Task, TaskRows, check_frames
from framefree.machine import Machine
from framefree.machine.loop import across
from framefree.machine.values import unit_axis

Matrix = Any
OPPOSITE = 1e-9
"""1 + u . n counts as no smaller than this."""


class FrameFunction(Task):
    """Base of tasks whose error is a function of the poses of some frames."""

    target: str = ""

    @property
    @abstractmethod
    def on(self) -> tuple[str, ...]:
        """Names of the frames."""

    @abstractmethod
    def value(self, *places: Place) -> Matrix:
        """Return the errors, from position (3) and rotation (3x3) of each frame."""

    @property
    def shapes(self) -> Mapping[str, tuple[int, int]]:
        """Shapes of the reference signals."""
        return signal_shapes(self.target, len(self.parts))

    def check(self, machine: Machine) -> None:
        """Refuse frames that the machine does not have, and one frame in place of two."""
        check_frames(machine, self.on, self.name)

    def rows(self, frames: Frames, reference: Mapping[str, Matrix]) -> TaskRows:
        """Return the rows at a state."""
        rows = rows_of_frames(self.value, [frames.at(frame) for frame in self.on])
        return following(rows, self.target, reference)


def projected(u: Matrix, n: Any) -> Matrix:
    """Return the two coordinates of a direction u about the wanted one n (numbers)."""
    return 2 * (ca.DM(across(n)).T @ u) / ca.fmax(1 + ca.dot(ca.DM(n), u), OPPOSITE)


@dataclass(frozen=True)
class DirectionControl(FrameFunction):
    """An axis of a frame points along a direction that is given in another frame.

    The turn about the axis is left free. Error equation: at the top of this file.

    Parameters
    ----------
    frame : str
    axis : three numbers or "x", "y", "z", ...
        In the axes of the frame.
    direction : three numbers or "x", "y", "z", ...
        Where it shall point, in the axes of `seen_from`.
    seen_from : str
    Kp, Kd : float or (2,)
        1/s^2, 1/s; without Kd, critically damped.
    name : str
    """

    frame: str
    axis: Any = "z"
    direction: Any = "z"
    seen_from: str = "world"
    Kp: Any = 100.0
    Kd: Any = None
    name: str = "direction"
    parts = ("across 1", "across 2")

    def __post_init__(self) -> None:
        for word in ("axis", "direction"):
            value = unit_axis(getattr(self, word), f"the {word} of task `{self.name}`")
            object.__setattr__(self, word, value)
        self.settle_gains()

    @property
    def on(self) -> tuple[str, ...]:
        """The frame, and that in which the direction is given."""
        return self.frame, self.seen_from

    def value(self, *places: Place) -> Matrix:
        """Return the two coordinates of the axis."""
        (_, R), (_, R_seen) = places
        return projected(R_seen.T @ (R @ ca.DM(self.axis)), self.direction)


@dataclass(frozen=True)
class GazeControl(FrameFunction):
    """An axis of a frame points at the origin of another frame, as a camera looks at a thing.

    The coordinates are those of the picture: fixed in the frame that looks.

    Parameters
    ----------
    frame : str
        That looks.
    at : str
        Frame that is looked at; the two must not be at one place.
    axis : three numbers or "x", "y", "z", ...
        Of sight, in the axes of `frame`.
    Kp, Kd : float or (2,)
        1/s^2, 1/s; without Kd, critically damped.
    name : str
    """

    frame: str
    at: str
    axis: Any = "z"
    Kp: Any = 100.0
    Kd: Any = None
    name: str = "gaze"
    parts = ("across 1", "across 2")

    def __post_init__(self) -> None:
        axis = unit_axis(self.axis, f"the axis of task `{self.name}`")
        object.__setattr__(self, "axis", axis)
        self.settle_gains()

    @property
    def on(self) -> tuple[str, ...]:
        """The frame that looks, and what it looks at."""
        return self.frame, self.at

    def value(self, *places: Place) -> Matrix:
        """Return the place in the picture, as two coordinates of the direction."""
        (p, R), (thing, _) = places
        line = R.T @ (thing - p)
        return projected(line / ca.sqrt(ca.sumsqr(line)), self.axis)


@dataclass(frozen=True)
class DistanceControl(FrameFunction):
    """The origins of two frames keep a distance, or one that follows the reference.

    Parameters
    ----------
    frame_a, frame_b : str
        Their origins must not be at one place: there a distance has no direction.
    distance : float, optional
        m, positive; to be given where there is no target.
    target : str
        Of the reference: TARGET.value and so on, see `SignalPath`.
    Kp, Kd : float
        1/s^2, 1/s; without Kd, critically damped.
    name : str
    """

    frame_a: str
    frame_b: str
    distance: Any = None
    target: str = ""
    Kp: Any = 100.0
    Kd: Any = None
    name: str = "distance"
    parts = ("distance",)

    def __post_init__(self) -> None:
        if (self.distance is None) == (not self.target):
            raise ControlError(f"task `{self.name}` needs a `distance` or a `target`, not both")
        if self.distance is not None:
            positive(self.distance, "distance", f"task `{self.name}`")
        self.settle_gains()

    @property
    def on(self) -> tuple[str, ...]:
        """Both frames."""
        return self.frame_a, self.frame_b

    def value(self, *places: Place) -> Matrix:
        """Return the distance less the wanted one."""
        (a, _), (b, _) = places
        return ca.sqrt(ca.sumsqr(b - a)) - (0.0 if self.distance is None else self.distance)
