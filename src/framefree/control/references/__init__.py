"""References: what a law is to follow, as functions of time."""

from typing import TYPE_CHECKING

from framefree.control.references.base import Reference
from framefree.control.references.compose import Named, Shifted, Together
from framefree.control.references.contacts import ContactSchedule
from framefree.control.references.frames import Circle, FramePath, FrameReference, FrameWaypoints
from framefree.control.references.joints import (
    Hold,
    JointPath,
    JointReference,
    JointSpline,
    MinimumJerk,
)
from framefree.control.references.signals import SignalPath
from framefree.lazy import lazy

if TYPE_CHECKING:
    from framefree.control.references.bodies import BodyPoses, BodyVelocities
    from framefree.control.references.from_frames import joint_reference

__all__ = [
    "BodyPoses",
    "BodyVelocities",
    "Circle",
    "ContactSchedule",
    "FramePath",
    "FrameReference",
    "FrameWaypoints",
    "Hold",
    "JointPath",
    "JointReference",
    "JointSpline",
    "MinimumJerk",
    "Named",
    "Reference",
    "Shifted",
    "SignalPath",
    "Together",
    "joint_reference",
]

# What these need, equations of bodies and inverse kinematics, would make `import framefree` slow.
__getattr__ = lazy(
    __name__,
    {
        "BodyPoses": "framefree.control.references.bodies:BodyPoses",
        "BodyVelocities": "framefree.control.references.bodies:BodyVelocities",
        "joint_reference": "framefree.control.references.from_frames:joint_reference",
    },
)


def __dir__() -> list[str]:
    return __all__
