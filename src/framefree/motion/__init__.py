"""Equations of motion: one folder a formulation, and what they share."""

from typing import TYPE_CHECKING

from framefree.lazy import lazy
from framefree.motion.formulate import equations

if TYPE_CHECKING:
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

# A formulation is loaded when it is asked for.
__getattr__ = lazy(
    __name__,
    {
        "Acceleration": "framefree.motion.constrained.rows:Acceleration",
        "BodyPartition": "framefree.motion.partition:BodyPartition",
        "BodySystem": "framefree.motion.redundant:BodySystem",
        "Closed": "framefree.motion.constrained.rows:Closed",
        "ClosureError": "framefree.motion.constrained.project:ClosureError",
        "Constrained": "framefree.motion.constrained:Constrained",
        "Coordinates": "framefree.motion.redundant:Coordinates",
        "Embedded": "framefree.motion.embedded:Embedded",
        "Embedding": "framefree.motion.embedded:Embedding",
        "Equations": "framefree.motion.equations:Equations",
        "EquationsError": "framefree.motion.equations:EquationsError",
        "Holonomic": "framefree.motion.constrained.rows:Holonomic",
        "LagrangianSystem": "framefree.motion.redundant:LagrangianSystem",
        "Load": "framefree.motion.load:Load",
        "Maximal": "framefree.motion.maximal:Maximal",
        "Nonholonomic": "framefree.motion.constrained.rows:Nonholonomic",
        "Redundant": "framefree.motion.redundant:Redundant",
        "RelativePose": "framefree.motion.redundant:RelativePose",
        "Stabilisation": "framefree.motion.constrained.rows:Stabilisation",
        "State": "framefree.motion.state:State",
        "Tree": "framefree.motion.tree:Tree",
    },
)
