"""Which quantities of a long tree are native loops."""

from framefree.kernel.loops import Calls
from framefree.motion.loops.tree_slopes import forward_derivatives, slopes_in_loops
from framefree.motion.loops.trees import matrix_program, pairs_of, supports_tree_loops
from framefree.motion.tree import Tree

PAIRS = {"mass": 2000, "coriolis": 1500, "forward_derivatives": 600}
"""Pairs of velocities of which one carries the other from which on a quantity is a loop.

A humanoid with 38 velocities has 426 pairs, a chain of 40 joints 780, one of 80 joints 3160. Loops
of mass and Coriolis matrices take up to twice as long for each state as straight-line code, which
takes seconds to compile; those of the derivatives take less.
"""


def looped_program(model: Tree, name: str) -> Calls | None:
    """Return a quantity as a program of loops; None where straight-line code is as good."""
    if name not in PAIRS or pairs_of(model.machine) < PAIRS[name]:
        return None
    if not supports_tree_loops(model.machine):
        return None
    if name == "forward_derivatives":
        return forward_derivatives(model) if slopes_in_loops(model.machine) else None
    return matrix_program(model, name)
