"""Equations of motion: one file a formulation, one file a derived quantity."""

from framefree.motion.equations import Equations, EquationsError
from framefree.motion.formulate import equations

__all__ = ["Equations", "EquationsError", "equations"]
