"""Rigid-body machines: equations of motion and control that hold in every frame.

Start with ``machine = framefree.read("robot.urdf")`` and ``framefree.equations(machine, "tree")``.

``framefree.simulate`` is both the function, ``framefree.simulate(machine, ...)``, and the package
with what a simulation may be given, such as ``framefree.simulate.Pulse``.
"""

from typing import TYPE_CHECKING

from framefree import control, geometry, machine, motion
from framefree.errors import FramefreeError
from framefree.geometry import Moments
from framefree.kernel import Kernel, compile
from framefree.lazy import lazy
from framefree.machine import Body, Frame, Joint, Machine
from framefree.machine.read import read
from framefree.motion import Equations, equations
from framefree.motion.constrained import Constrained
from framefree.motion.embedded import Embedded
from framefree.motion.maximal import Maximal
from framefree.motion.redundant import Redundant
from framefree.motion.tree import Tree
from framefree.simulate import Run

if TYPE_CHECKING:
    from framefree import certify, gallery, identify, learn, look, solve
    from framefree.campaign import campaign
    from framefree.look import report
    from framefree.simulate import simulate
    from framefree.solve import linearise
else:
    from framefree import simulate

__version__ = "0.1.0"

__all__ = [
    "Body",
    "Constrained",
    "Embedded",
    "Equations",
    "Frame",
    "FramefreeError",
    "Joint",
    "Kernel",
    "Machine",
    "Maximal",
    "Moments",
    "Redundant",
    "Run",
    "Tree",
    "campaign",
    "certify",
    "compile",
    "control",
    "equations",
    "gallery",
    "geometry",
    "identify",
    "learn",
    "linearise",
    "look",
    "machine",
    "motion",
    "read",
    "report",
    "simulate",
    "solve",
]

__getattr__ = lazy(
    __name__,
    {
        "campaign": "framefree.campaign",
        "certify": "framefree.certify",
        "gallery": "framefree.gallery",
        "identify": "framefree.identify",
        "learn": "framefree.learn",
        "look": "framefree.look",
        "report": "framefree.look.report",
        "linearise": "framefree.solve.linearise:linearise",
        "solve": "framefree.solve",
    },
)


def __dir__() -> list[str]:
    return [*__all__, "__version__"]
