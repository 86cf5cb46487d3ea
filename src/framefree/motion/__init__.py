"""Equations of motion: one file a formulation, one file a derived quantity."""

from framefree.motion.constrained_project import ClosureError
from framefree.motion.constrained_rows import (
    Acceleration,
    Closed,
    Holonomic,
    Nonholonomic,
    Stabilisation,
)
from framefree.motion.embedded_maps import Embedding
from framefree.motion.equations import Equations, EquationsError
from framefree.motion.formulate import equations

__all__ = [
    "Acceleration",
    "Closed",
    "ClosureError",
    "Embedding",
    "Equations",
    "EquationsError",
    "Holonomic",
    "Nonholonomic",
    "Stabilisation",
    "equations",
]
