"""Joint kinds, one file each; `base.py` holds the contract for adding one."""

from framefree.machine.joints.base import JointKind
from framefree.machine.joints.continuous import Continuous
from framefree.machine.joints.custom import Custom
from framefree.machine.joints.cylindrical import Cylindrical
from framefree.machine.joints.fixed import Fixed
from framefree.machine.joints.free import Free
from framefree.machine.joints.helical import Helical
from framefree.machine.joints.locked import Locked
from framefree.machine.joints.planar import Planar
from framefree.machine.joints.prismatic import Prismatic
from framefree.machine.joints.revolute import Revolute
from framefree.machine.joints.spherical import Spherical
from framefree.machine.joints.universal import Universal

__all__ = [
    "Continuous",
    "Custom",
    "Cylindrical",
    "Fixed",
    "Free",
    "Helical",
    "JointKind",
    "Locked",
    "Planar",
    "Prismatic",
    "Revolute",
    "Spherical",
    "Universal",
]
