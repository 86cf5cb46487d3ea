"""Joints that stay at, or return to, a posture: what is left to do where tasks leave freedom."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import casadi as ca
import numpy as np

from framefree.control.shared.frames import Frames
from framefree.control.tasks.base import Task, TaskRows
from framefree.machine import Machine

Matrix = Any


@dataclass(frozen=True)
class JointControl(Task):
    """All joints go to a posture, ``a = -Kd v - Kp difference(x_posture, x)``; damping for Kp = 0.

    Parameters
    ----------
    machine : Machine
    posture : (nx,)
        By default the neutral one.
    Kp, Kd : float or (nv,)
        1/s^2, 1/s.
    name : str
    """

    machine: Machine
    posture: Any = None
    Kp: Any = 0.0
    Kd: Any = 2.0
    name: str = "posture"

    def __post_init__(self) -> None:
        posture = self.machine.neutral() if self.posture is None else self.posture
        self.machine.validate(posture)
        object.__setattr__(self, "posture", np.asarray(posture, float))
        self.settle_gains()

    @property
    def parts(self) -> tuple[str, ...]:
        """Names of the velocities."""
        return self.machine.v_names

    def rows(self, frames: Frames, reference: Mapping[str, Matrix]) -> TaskRows:
        """Return the rows at a state."""
        x, v = frames.state.x, frames.state.v
        away = frames.machine.difference(ca.SX(ca.DM(self.posture)), x)
        return TaskRows(ca.SX.eye(self.machine.nv), ca.SX(self.machine.nv, 1), v, away)
