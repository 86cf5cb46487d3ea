"""A frame that follows a target: of the machine itself, or of a body that it holds."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import casadi as ca

from framefree.control.tasks.base import Rows, Task
from framefree.control.tasks.frames import FrameMotion, Frames
from framefree.geometry import se3, so3
from framefree.machine.values import pose

Matrix = Any


@dataclass(frozen=True)
class FrameControl(Task):
    """A frame of the machine follows the reference TARGET.pose, TARGET.twist, TARGET.acceleration.

    With D the target and E the frame, in world axes [Milioshin2024, sec. 3.4]:

        pose error      (p_D - p_E, log(R_E^T R_D))
        velocity error  (v_D - v_E, R_D^T (w_D - w_E))

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
        return _needs(self.target)

    def rows(self, frames: Frames, reference: Mapping[str, Matrix]) -> Rows:
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
        return _needs(self.target)

    def rows(self, frames: Frames, reference: Mapping[str, Matrix]) -> Rows:
        """Return the rows at a state."""
        return _following(frames.at(self.holder, self.place), self.target, reference)


def _needs(target: str) -> tuple[str, ...]:
    return tuple(f"{target}.{part}" for part in ("pose", "twist", "acceleration"))


def _following(E: FrameMotion, target: str, reference: Mapping[str, Matrix]) -> Rows:
    """Return the rows of a frame that follows a target."""
    G, twist, rate = (ca.SX(reference[name]) for name in _needs(target))
    p, R = se3.position(G), se3.rotation(G)
    v, w = R @ twist[:3], R @ twist[3:]
    a, alpha = R @ (rate[:3] + ca.cross(twist[3:], twist[:3])), R @ rate[3:]
    relative = w - E.w
    return Rows(
        # The rotational rows turn with the target, not with the frame (errata E3-10).
        ca.vertcat(-E.Jv, -R.T @ E.Jw),
        ca.vertcat(a - E.dv, R.T @ (alpha - E.dw - ca.cross(w, relative))),
        ca.vertcat(v - E.v, R.T @ relative),
        ca.vertcat(p - E.p, so3.log(E.R.T @ R)),
    )
