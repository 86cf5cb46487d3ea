"""Tasks: couplings and targets of frames as rows of the joint acceleration, and their solvers."""

from framefree.control.tasks.base import Rows, Task, critical
from framefree.control.tasks.coupling import RigidCoupling
from framefree.control.tasks.frame_control import FrameControl, HeldBodyControl
from framefree.control.tasks.frames import FrameMotion, Frames
from framefree.control.tasks.held import HeldObject
from framefree.control.tasks.joint_control import JointControl
from framefree.control.tasks.law import TaskControl
from framefree.control.tasks.solvers import (
    Answer,
    Kkt,
    Level,
    Problem,
    Solver,
    StrictPriority,
    UdwadiaKalaba,
    Weighted,
)

__all__ = [
    "Answer",
    "FrameControl",
    "FrameMotion",
    "Frames",
    "HeldBodyControl",
    "HeldObject",
    "JointControl",
    "Kkt",
    "Level",
    "Problem",
    "RigidCoupling",
    "Rows",
    "Solver",
    "StrictPriority",
    "Task",
    "TaskControl",
    "UdwadiaKalaba",
    "Weighted",
    "critical",
]
