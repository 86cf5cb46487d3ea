"""From a machine and the name of a formulation to its equations."""

from framefree.machine import Machine
from framefree.motion.equations import Equations, EquationsError
from framefree.motion.tree import Tree

FORMULATIONS: dict[str, type[Equations]] = {"tree": Tree}
"""Formulations by name."""


def equations(machine: Machine, formulation: str = "tree") -> Equations:
    """Return the equations of motion of a machine in one of the five formulations.

    Parameters
    ----------
    machine : Machine
    formulation : str
        "tree", "maximal", "embedded", "constrained" or "redundant".

    Raises
    ------
    EquationsError
        If there is no such formulation.
    MachineError
        If it does not apply to this machine.
    """
    if formulation not in FORMULATIONS:
        raise EquationsError(
            f"there is no formulation `{formulation}`; choose one of: {', '.join(FORMULATIONS)}"
        )
    return FORMULATIONS[formulation](machine)
