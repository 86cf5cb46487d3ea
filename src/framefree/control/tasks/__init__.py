"""Tasks: couplings and targets of frames as rows of the joint acceleration, and their solvers."""

from framefree.control.shared.frames import FrameMotion, Frames
from framefree.control.tasks.barriers import Barrier, Clearance, JointRange
from framefree.control.tasks.base import Task, TaskRows, critical
from framefree.control.tasks.contact_frames import ContactFrame
from framefree.control.tasks.contact_report import UnloadedContact, unloaded_contacts
from framefree.control.tasks.coupling import RigidCoupling
from framefree.control.tasks.frame_control import FrameControl, HeldBodyControl
from framefree.control.tasks.held import HeldObject
from framefree.control.tasks.joint_control import JointControl
from framefree.control.tasks.law import TaskControl
from framefree.control.tasks.limited import LimitedTaskControl
from framefree.control.tasks.pointing import DirectionControl, DistanceControl, GazeControl
from framefree.control.tasks.report import LevelReport, TaskReport, task_report
from framefree.control.tasks.solvers import (
    CascadeSolution,
    Kkt,
    Level,
    ProxQp,
    Solver,
    StrictPriority,
    TaskAcceleration,
    TaskProblem,
    UdwadiaKalaba,
    Weighted,
)
from framefree.control.tasks.user_rows import PositionRows, VelocityRows
from framefree.control.tasks.whole_body import CenterOfMassControl, MomentumControl

__all__ = [
    "Barrier",
    "CascadeSolution",
    "CenterOfMassControl",
    "Clearance",
    "ContactFrame",
    "DirectionControl",
    "DistanceControl",
    "FrameControl",
    "FrameMotion",
    "Frames",
    "GazeControl",
    "HeldBodyControl",
    "HeldObject",
    "JointControl",
    "JointRange",
    "Kkt",
    "Level",
    "LevelReport",
    "LimitedTaskControl",
    "MomentumControl",
    "PositionRows",
    "ProxQp",
    "RigidCoupling",
    "Solver",
    "StrictPriority",
    "Task",
    "TaskAcceleration",
    "TaskControl",
    "TaskProblem",
    "TaskReport",
    "TaskRows",
    "UdwadiaKalaba",
    "UnloadedContact",
    "VelocityRows",
    "Weighted",
    "critical",
    "task_report",
    "unloaded_contacts",
]
