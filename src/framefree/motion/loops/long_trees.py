"""Quantities of a long tree as native loops; `framefree.motion.pairs` says which are."""

from framefree.kernel.loops import Calls
from framefree.motion.loops.tree_dynamics import DYNAMICS, dynamics_program
from framefree.motion.loops.tree_slopes import forward_derivatives, slopes_in_loops
from framefree.motion.loops.trees import matrix_program, supports_tree_loops
from framefree.motion.tree import Tree


def looped_program(model: Tree, name: str) -> Calls | None:
    """Return a quantity as a program of loops; None if the machine has what these do not."""
    if not supports_tree_loops(model.machine):
        return None
    if name == "forward_derivatives":
        return forward_derivatives(model) if slopes_in_loops(model.machine) else None
    return dynamics_program(model, name) if name in DYNAMICS else matrix_program(model, name)
