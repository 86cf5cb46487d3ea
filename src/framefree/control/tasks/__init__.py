"""Tasks: couplings and targets of frames as rows of the joint acceleration, and their solvers."""

from framefree.control.tasks.base import Rows, Task, critical
from framefree.control.tasks.coupling import RigidCoupling
from framefree.control.tasks.frame_control import FrameControl, HeldBodyControl
from framefree.control.tasks.frames import FrameMotion, Frames
from framefree.control.tasks.held import HeldObject
from framefree.control.tasks.joint_control import JointControl
from framefree.control.tasks.law import TaskControl
from framefree.control.tasks.limited import LimitedTaskControl
from framefree.control.tasks.report import LevelReport, TaskReport, task_report
from framefree.control.tasks.solvers import (
    Answer,
    Bounds,
    Kkt,
    Level,
    Problem,
    ProxQp,
    Solver,
    StrictPriority,
    UdwadiaKalaba,
    Weighted,
)

__all__ = [
    "Answer",
    "Bounds",
    "FrameControl",
    "FrameMotion",
    "Frames",
    "HeldBodyControl",
    "HeldObject",
    "JointControl",
    "Kkt",
    "Level",
    "LevelReport",
    "LimitedTaskControl",
    "Problem",
    "ProxQp",
    "RigidCoupling",
    "Rows",
    "Solver",
    "StrictPriority",
    "Task",
    "TaskControl",
    "TaskReport",
    "UdwadiaKalaba",
    "Weighted",
    "critical",
    "task_report",
]
