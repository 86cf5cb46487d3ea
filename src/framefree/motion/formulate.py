"""From a machine and the name of a formulation to its equations."""

from typing import Any

from framefree.machine import Machine
from framefree.motion.constrained import Constrained
from framefree.motion.embedded import Embedded
from framefree.motion.equations import Equations, EquationsError
from framefree.motion.maximal import Maximal
from framefree.motion.redundant import Redundant
from framefree.motion.tree import Tree

FORMULATIONS: dict[str, type[Equations]] = {
    "tree": Tree,
    "maximal": Maximal,
    "embedded": Embedded,
    "constrained": Constrained,
    "redundant": Redundant,
}
"""Formulations by name."""


def equations(machine: Machine, formulation: str = "tree", **options: Any) -> Equations:
    """Return the equations of motion of a machine in one of the five formulations.

    Parameters
    ----------
    machine : Machine
    formulation : str
        "tree", "maximal", "embedded", "constrained" or "redundant".
    **options
        Of the formulation: see its class.

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
    return FORMULATIONS[formulation](machine, **options)
