"""The user's own coordinates and velocities, redundant or not, or a Lagrangian in them."""

from framefree.motion.redundant.redundant import Redundant

__all__ = ["Redundant"]
