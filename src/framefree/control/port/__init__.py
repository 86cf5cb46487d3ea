"""Port laws: velocity, pose and end-effector control of trees of bodies by a virtual port."""

from framefree.control.port.avoidance import Avoidance
from framefree.control.port.base import PortLaw, looped
from framefree.control.port.end_effector import EndEffectorControl
from framefree.control.port.feasible import Misfit, misfits, require_feasible
from framefree.control.port.goals import FrameGoal
from framefree.control.port.obstacles import Capsule, HalfSpace, Moving, Obstacle, Sphere
from framefree.control.port.pose import PoseControl
from framefree.control.port.realise import VirtualPort
from framefree.control.port.velocity import VelocityControl

Port = VirtualPort
"""The virtual port by its short name."""

__all__ = [
    "Avoidance",
    "Capsule",
    "EndEffectorControl",
    "FrameGoal",
    "HalfSpace",
    "Misfit",
    "Moving",
    "Obstacle",
    "Port",
    "PortLaw",
    "PoseControl",
    "Sphere",
    "VelocityControl",
    "VirtualPort",
    "looped",
    "misfits",
    "require_feasible",
]
