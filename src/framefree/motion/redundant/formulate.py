"""The redundant formulation of whatever has one."""

from framefree.machine import Machine
from framefree.motion.equations import Equations
from framefree.motion.redundant.lagrange import Lagrange, LagrangianSystem
from framefree.motion.redundant.redundant import Redundant
from framefree.motion.redundant.system import BodySystem


def redundant(machine: Machine | BodySystem | LagrangianSystem) -> Equations:
    """Return the redundant formulation of a machine, a system of bodies, or a Lagrangian."""
    if isinstance(machine, LagrangianSystem):
        return Lagrange(machine)
    return Redundant(machine)
