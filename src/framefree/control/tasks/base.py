"""What a task is: rows A and b of the joint acceleration that make an error of motion vanish.

A task has an error e of pose and an error s of velocity, both zero where it is fulfilled. With
``d/dt s = A a + rate`` the joint accelerations that it asks for are those with

    A a = b,    b = -rate - Kd s - Kp e.

To add one, subclass `Task` (a frozen dataclass) and give

1. ``name``: what its rows and signals are called;
2. ``Kp``, ``Kd``: its gains, numbers or one for every row;
3. ``needs``: the names of the reference signals that it reads;
4. ``parts``: names of its rows, whose number they tell;
5. ``rows(frames, reference)``: its `TaskRows`, as casadi expressions.
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any, NamedTuple

import casadi as ca
import numpy as np

from framefree.control.shared.frames import Frames
from framefree.control.shared.gains import vector_gain

Matrix = Any
POSE_PARTS = ("x", "y", "z", "turn x", "turn y", "turn z")


class TaskRows(NamedTuple):
    """The rows of a task at one state.

    Attributes
    ----------
    A : (m x nv)
    rate : (m)
        d/dt of the velocity error at zero joint acceleration: with zero gains b is -rate.
    velocity_error, pose_error : (m)
    """

    A: Matrix
    rate: Matrix
    velocity_error: Matrix
    pose_error: Matrix


class Task(ABC):
    """Base of all tasks; see the contract at the top of this file."""

    name: str
    Kp: Any
    Kd: Any
    needs: tuple[str, ...] = ()
    parts: tuple[str, ...] = POSE_PARTS

    @abstractmethod
    def rows(self, frames: Frames, reference: Mapping[str, Matrix]) -> TaskRows:
        """Return the rows at a state."""

    def b(self, rows: TaskRows) -> Matrix:
        """Return the right side: ``-rate - Kd s - Kp e``."""
        Kp, Kd = (ca.DM(np.broadcast_to(gain, len(self.parts))) for gain in (self.Kp, self.Kd))
        return -rows.rate - Kd * rows.velocity_error - Kp * rows.pose_error

    @property
    def labels(self) -> tuple[str, ...]:
        """Names of all rows."""
        return tuple(f"{self.name}: {part}" for part in self.parts)

    def settle_gains(self) -> None:
        """Damp critically where no Kd is given; refuse gains that are negative or do not fit."""
        for word in ("Kp", "Kd"):
            if word == "Kd" and self.Kd is None:
                object.__setattr__(self, "Kd", critical(self.Kp))
            vector_gain(
                getattr(self, word), len(self.parts), word, f"task `{self.name}`", zero=True
            )


def critical(Kp: Any) -> Any:
    """Return the Kd with which an error under Kp returns fastest without overshoot: 2 sqrt(Kp)."""
    return 2.0 * np.sqrt(Kp)
