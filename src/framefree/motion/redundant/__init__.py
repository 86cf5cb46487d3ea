"""The user's own coordinates and velocities, redundant or not, or a Lagrangian in them."""

from framefree.motion.redundant.coordinates import Coordinates
from framefree.motion.redundant.formulate import redundant
from framefree.motion.redundant.lagrange import Lagrange, LagrangianSystem
from framefree.motion.redundant.redundant import Redundant
from framefree.motion.redundant.system import BodySystem, RelativePose, System

__all__ = [
    "BodySystem",
    "Coordinates",
    "Lagrange",
    "LagrangianSystem",
    "Redundant",
    "RelativePose",
    "System",
    "redundant",
]
