"""Rigid-body machines: equations of motion and control that hold in every frame.

Start with ``machine = framefree.read("robot.urdf")`` and ``framefree.equations(machine, "tree")``.

``framefree.simulate`` is both the function, ``framefree.simulate(machine, ...)``, and the package
with what a simulation may be given, such as ``framefree.simulate.Pulse``.
"""

from typing import TYPE_CHECKING

from framefree.lazy import lazy

if TYPE_CHECKING:
    from framefree import (
        certify,
        control,
        gallery,
        geometry,
        identify,
        learn,
        look,
        machine,
        motion,
        solve,
    )
    from framefree.campaign import campaign
    from framefree.certify import check
    from framefree.errors import FramefreeError
    from framefree.geometry import Moments
    from framefree.kernel import Kernel, compile
    from framefree.look import report
    from framefree.look.view import view
    from framefree.machine import Body, Frame, Joint, Machine
    from framefree.machine.read import read
    from framefree.motion import Equations, equations
    from framefree.motion.constrained import Constrained
    from framefree.motion.embedded import Embedded
    from framefree.motion.maximal import Maximal
    from framefree.motion.redundant import Redundant
    from framefree.motion.tree import Tree
    from framefree.simulate import Run, simulate
    from framefree.solve import linearise

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
    "check",
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
    "view",
]

# Nothing is loaded before it is used: a start costs what it needs.
__getattr__ = lazy(
    __name__,
    {
        "Body": "framefree.machine:Body",
        "Constrained": "framefree.motion.constrained:Constrained",
        "Embedded": "framefree.motion.embedded:Embedded",
        "Equations": "framefree.motion.equations:Equations",
        "Frame": "framefree.machine:Frame",
        "FramefreeError": "framefree.errors:FramefreeError",
        "Joint": "framefree.machine:Joint",
        "Kernel": "framefree.kernel:Kernel",
        "Machine": "framefree.machine:Machine",
        "Maximal": "framefree.motion.maximal:Maximal",
        "Moments": "framefree.geometry:Moments",
        "Redundant": "framefree.motion.redundant:Redundant",
        "Run": "framefree.simulate.run:Run",
        "Tree": "framefree.motion.tree:Tree",
        "check": "framefree.certify:check",
        "campaign": "framefree.campaign",
        "certify": "framefree.certify",
        "compile": "framefree.kernel:compile",
        "control": "framefree.control",
        "equations": "framefree.motion.formulate:equations",
        "gallery": "framefree.gallery",
        "geometry": "framefree.geometry",
        "identify": "framefree.identify",
        "learn": "framefree.learn",
        "linearise": "framefree.solve.linearise:linearise",
        "look": "framefree.look",
        "machine": "framefree.machine",
        "motion": "framefree.motion",
        "read": "framefree.machine.read:read",
        "report": "framefree.look.report",
        "simulate": "framefree.simulate",
        "solve": "framefree.solve",
        "view": "framefree.look.view:view",
    },
)


def __dir__() -> list[str]:
    return [*__all__, "__version__"]
