"""Rigid-body machines: equations of motion and control that hold in every frame.

Start with ``machine = framefree.read("robot.urdf")`` and ``framefree.equations(machine, "tree")``.

``framefree.simulate`` is the function; what else its package has comes by
``from framefree.simulate import Pulse``.
"""

from framefree import control, geometry, machine
from framefree.errors import FramefreeError
from framefree.geometry import Moments
from framefree.kernel import Kernel, compile
from framefree.machine import Body, Frame, Joint, Machine
from framefree.machine.read import read
from framefree.motion import Equations, equations
from framefree.simulate import Run, simulate

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
    "Run",
    "compile",
    "control",
    "equations",
    "geometry",
    "machine",
    "read",
    "simulate",
]
