"""Wrenches of loops on the bodies that they hold together."""

from collections.abc import Iterable

from framefree.motion.constrained.rows import Closed
from framefree.motion.load import Load
from framefree.motion.spatial import Matrix, SpatialWrench
from framefree.motion.state import State, step_of


def loop_loads(state: State, loops: Iterable[tuple[Closed, Matrix]]) -> list[Matrix | None]:
    """Return the wrench (6) that loops exert on every body, in body axes; None where none does.

    Loops come with the wrench of frame a on frame b in b's axes; frame a feels the reaction.
    """
    machine = state.machine
    total = Load(machine)
    for closed, wrench in loops:
        a, b = (machine.frame(name) for name in (closed.loop.frame_a, closed.loop.frame_b))
        G_ab = state.relative(a.name, b.name).G
        total.on_frame(b, wrench)
        total.on_frame(a, -step_of(G_ab).wrench_out(SpatialWrench.of(wrench)).vector)
    return total.wrenches
