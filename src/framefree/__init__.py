"""Rigid-body machines: equations of motion and control that hold in every frame.

Start with ``machine = framefree.read("robot.urdf")`` and ``framefree.equations(machine, "tree")``.
"""

from framefree import geometry, machine
from framefree.errors import FramefreeError
from framefree.geometry import Moments
from framefree.kernel import Kernel, compile
from framefree.machine import Body, Frame, Joint, Machine
from framefree.machine.read import read
from framefree.motion import Equations, equations

__version__ = "0.1.0"

__all__ = [
    "Body",
    "Equations",
    "Frame",
    "FramefreeError",
    "Joint",
    "Kernel",
    "Machine",
    "Moments",
    "compile",
    "equations",
    "geometry",
    "machine",
    "read",
]
