"""Constraints that the user lays upon a machine, where another engine is the plant.

MuJoCo knows the machine's loops and couplings but no other rows. Their constraint force, of our own
equations, is applied there as a generalised force, held over a step. What a step leaves of their
errors is pulled back critically damped, at a rate that a held force can follow.
"""

from dataclasses import replace
from typing import Any

from framefree.motion.constrained import Constrained
from framefree.motion.constrained.rows import Constraint, Stabilisation
from framefree.simulate.errors import SimulationError

PULL = 0.1
"""Rate (per step) at which errors of the rows are pulled to zero where they have no own gains."""


def user_constraints(formulation: Any) -> tuple[Constraint, ...]:
    """Return the constraints of a formulation beside the loops and couplings of its machine."""
    if not isinstance(formulation, Constrained):
        return ()
    machine = formulation.machine
    own = {part.name for part in (*machine.loops, *machine.couplings)} | {formulation.base.name}
    return tuple(c for c in formulation.constraints if c.name not in own)


def rows_for_mujoco(formulation: Any) -> bool:
    """Return whether a formulation has rows of the user; refuse those not laid upon the tree."""
    constraints = user_constraints(formulation)
    if constraints and formulation.base.name != "tree":
        names = ", ".join(f"`{constraint.name}`" for constraint in constraints)
        raise SimulationError(
            f"the constraints {names} are laid upon the {formulation.base.name} formulation and "
            "cannot act on a MuJoCo plant: lay them upon the tree, or take the native plant"
        )
    return bool(constraints)


def held_over_steps(formulation: Constrained, dt: float) -> Constrained:
    """Return the formulation with gains of the rows for forces that are held over steps of dt."""
    pull = Stabilisation.critical(PULL / dt)
    constraints = [
        replace(c, gains=pull) if c.gains in (None, Stabilisation()) else c
        for c in user_constraints(formulation)
    ]
    return Constrained(formulation.machine, constraints)
