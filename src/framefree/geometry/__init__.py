"""Rotations, poses, twists, quaternions and moments; nothing about machines.

Every function takes `casadi.SX` or `casadi.DM` (or anything NumPy reads, taken as `DM`) and returns
the same kind; `batch` has the same functions for NumPy arrays of many. Conventions:
`docs/conventions.md`.
"""

from typing import TYPE_CHECKING

from framefree.geometry import batch, operators, quaternion, se3, so3
from framefree.geometry.arrays import GeometryError
from framefree.geometry.moments import Moments, MomentsError
from framefree.lazy import lazy

if TYPE_CHECKING:
    from framefree.geometry import attitude, euler

__all__ = [
    "GeometryError",
    "Moments",
    "MomentsError",
    "attitude",
    "batch",
    "euler",
    "operators",
    "quaternion",
    "se3",
    "so3",
]

__getattr__ = lazy(__name__, {name: f"framefree.geometry.{name}" for name in ("attitude", "euler")})
