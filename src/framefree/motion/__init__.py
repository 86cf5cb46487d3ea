"""Equations of motion: one folder a formulation, and what they share."""

from framefree.motion.constrained import Constrained
from framefree.motion.constrained.project import ClosureError
from framefree.motion.constrained.rows import (
    Acceleration,
    Closed,
    Holonomic,
    Nonholonomic,
    Stabilisation,
)
from framefree.motion.embedded import Embedded, Embedding
from framefree.motion.equations import Equations, EquationsError
from framefree.motion.formulate import equations
from framefree.motion.load import Load
from framefree.motion.maximal import Maximal
from framefree.motion.partition import BodyPartition
from framefree.motion.redundant import (
    BodySystem,
    Coordinates,
    LagrangianSystem,
    Redundant,
    RelativePose,
)
from framefree.motion.state import State
from framefree.motion.tree import Tree

__all__ = [
    "Acceleration",
    "BodyPartition",
    "BodySystem",
    "Closed",
    "ClosureError",
    "Constrained",
    "Coordinates",
    "Embedded",
    "Embedding",
    "Equations",
    "EquationsError",
    "Holonomic",
    "LagrangianSystem",
    "Load",
    "Maximal",
    "Nonholonomic",
    "Redundant",
    "RelativePose",
    "Stabilisation",
    "State",
    "Tree",
    "equations",
]
