"""Plants: what is simulated, in some formulation or by another engine, one file each."""

from framefree.machine import Machine
from framefree.motion import Equations, equations
from framefree.motion.constrained import Constrained
from framefree.motion.embedded import Embedded
from framefree.motion.maximal import Maximal
from framefree.motion.tree import Tree
from framefree.simulate.plants.base import NativePlant, PlantState, Signal
from framefree.simulate.plants.embedded import EmbeddedPlant
from framefree.simulate.plants.joints import ConstrainedPlant, JointPlant
from framefree.simulate.plants.maximal import MaximalPlant
from framefree.simulate.plants.tree import TreePlant


def native_plant(machine: Machine, formulation: str | Equations | None) -> NativePlant:
    """Return the plant of a machine in a formulation.

    Without one, a machine with loops or couplings is "constrained" and any other a "tree".
    """
    if formulation is None:
        formulation = "constrained" if machine.loops or machine.couplings else "tree"
    if isinstance(formulation, str):
        formulation = equations(machine, formulation)
    if isinstance(formulation, Tree):
        return TreePlant(formulation)
    if isinstance(formulation, Constrained):
        return ConstrainedPlant(formulation)
    if isinstance(formulation, Maximal):
        return MaximalPlant(formulation)
    if isinstance(formulation, Embedded):
        return EmbeddedPlant(formulation)
    return JointPlant(formulation)


__all__ = ["NativePlant", "PlantState", "Signal", "native_plant"]
