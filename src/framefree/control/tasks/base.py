"""What a task is: rows A and b of the joint acceleration that make an error of motion vanish.

A task has an error e of pose and an error s of velocity, both zero where it is fulfilled. With
``d/dt s = A a + rate`` the joint accelerations that it asks for are those with

    A a = b,    b = -rate - Kd s - Kp e.

so that ``d/dt s + Kd s + Kp e = 0``: the error equation of every task. Most errors e are functions
of the configuration with s = d/dt e, and the equation is linear; where it is not, the task says
what d/dt e is. A barrier asks for ``A a >= b`` instead (`framefree.control.tasks.barriers`).

To add one, subclass `Task` (a frozen dataclass) and give

1. ``name``: what its rows and signals are called;
2. ``Kp``, ``Kd``: its gains, numbers or one for every row;
3. ``shapes``: the names of the reference signals that it reads, and their shapes;
4. ``parts``: names of its rows, whose number they tell;
5. ``rows(frames, reference)``: its `TaskRows` on the accelerations of all joints, as casadi
   expressions;
6. ``check(machine)``: refuses a machine that it cannot be a task of, where that can be said before.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import casadi as ca
import numpy as np

from framefree.control.law import ControlError
from framefree.control.shared.frame_error import frame_signals
from framefree.control.shared.frames import Frames
from framefree.control.shared.gains import vector_gain
from framefree.machine import Machine

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

    def only(self, places: Sequence[int]) -> "TaskRows":
        """Return some of the rows."""
        return TaskRows(*(part[list(places), :] for part in self))


class Task(ABC):
    """Base of all tasks; see the contract at the top of this file."""

    name: str
    Kp: Any
    Kd: Any
    parts: tuple[str, ...] = POSE_PARTS
    barrier: bool = False
    """Whether it asks for ``A a >= b``."""

    @property
    def shapes(self) -> Mapping[str, tuple[int, int]]:
        """Shapes of the reference signals that it reads, by name."""
        return {}

    @property
    def needs(self) -> tuple[str, ...]:
        """Names of the reference signals that it reads."""
        return tuple(self.shapes)

    def check(self, machine: Machine) -> None:
        """Raise `ControlError` or `MachineError` if it cannot be a task of this machine."""
        return

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


class TaskOfChosenRows(Task):
    """Base of tasks of which the user may choose rows, by name or group: their field `only`."""

    only: Any

    @property
    def parts(self) -> tuple[str, ...]:
        """Names of the rows."""
        return self.only


def frame_shapes(target: str) -> dict[str, tuple[int, int]]:
    """Return the signals of a frame's reference: pose, twist and acceleration."""
    return dict(zip(frame_signals(target), ((4, 4), (6, 1), (6, 1)), strict=True))


def check_frames(machine: Machine, frames: Sequence[str], name: str) -> None:
    """Refuse frames that the machine does not have, and one frame where a task needs two."""
    for frame in frames:
        machine.frame(frame)
    if len(set(frames)) < len(frames):
        raise ControlError(f"task `{name}` is one of two frames, got `{frames[0]}` twice")


def chosen_parts(only: Any, known: Sequence[str], groups: Mapping[str, Any], name: str) -> Any:
    """Return the names of chosen rows of a task: of some, or of a group of them, or all."""
    listed = only if isinstance(only, Iterable) else (only,)
    chosen = groups.get(only, (only,)) if isinstance(only, str) else tuple(listed)
    unknown = [part for part in chosen if part not in known]
    if unknown or not chosen or len(set(chosen)) < len(chosen):
        words = ", ".join(f'"{word}"' for word in (*groups, *known))
        raise ControlError(f"`only` of task `{name}` must be one or some of {words}; got {only!r}")
    return chosen


def critical(Kp: Any) -> Any:
    """Return the Kd with which an error under Kp returns fastest without overshoot: 2 sqrt(Kp)."""
    return 2.0 * np.sqrt(Kp)
