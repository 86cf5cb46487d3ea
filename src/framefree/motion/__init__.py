"""Equations of motion: one folder a formulation, and what they share."""

from framefree.motion.constrained.project import ClosureError
from framefree.motion.constrained.rows import (
    Acceleration,
    Closed,
    Holonomic,
    Nonholonomic,
    Stabilisation,
)
from framefree.motion.embedded.maps import Embedding
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
