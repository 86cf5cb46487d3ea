"""From which size on quantities of a tree are native loops and not straight-line code."""

from framefree.machine import Machine

PAIRS = {"mass": 2000, "coriolis": 1500, "forward_derivatives": 600}
"""Pairs of velocities of which one carries the other from which on a quantity is a loop.

Straight-line code of these grows with such pairs. A humanoid with 38 velocities has 426 pairs, a
chain of 40 joints 780, one of 80 joints 3160. Loops of mass and Coriolis matrices take up to twice
as long for each state as straight-line code, which takes seconds to compile; those of the
derivatives take less.
"""

VELOCITIES = dict.fromkeys(("forward", "forward:joint_force", "inverse", "bias"), 100)
"""Velocities from which on a quantity is a loop whose straight-line code grows with links.

With 80 joints loops take 1.2 times as long, with 160 joints less than straight-line code, which is
then fetched anew for every few states; they are compiled 4 and 13 times as fast.
"""


def is_long(machine: Machine, name: str) -> bool:
    """Tell whether a quantity of a tree should be native loops."""
    if name in VELOCITIES:
        return machine.nv >= VELOCITIES[name]
    return name in PAIRS and pairs_of(machine) >= PAIRS[name]


def pairs_of(machine: Machine) -> int:
    """Return the number of pairs of velocities of which one carries the other."""
    carrying: list[int] = []
    total = 0
    for joint, parent in zip(machine.joints, machine.parent, strict=True):
        above = carrying[parent] if parent >= 0 else 0
        total += joint.nv * above + joint.nv * (joint.nv - 1) // 2
        carrying.append(above + joint.nv)
    return total
