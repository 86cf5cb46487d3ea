"""The machine on paper: bodies, joints, what acts between them, and how it is read and edited."""

from framefree.machine.body import Body
from framefree.machine.frame import Frame
from framefree.machine.joint import Joint
from framefree.machine.joints import (
    Continuous,
    Cylindrical,
    Fixed,
    Free,
    Helical,
    JointKind,
    Planar,
    Prismatic,
    Revolute,
    Spherical,
    Universal,
)
from framefree.machine.machine import Machine
from framefree.machine.problems import MachineError, Problems, StateError

__all__ = [
    "Body",
    "Continuous",
    "Cylindrical",
    "Fixed",
    "Frame",
    "Free",
    "Helical",
    "Joint",
    "JointKind",
    "Machine",
    "MachineError",
    "Planar",
    "Prismatic",
    "Problems",
    "Revolute",
    "Spherical",
    "StateError",
    "Universal",
]
