"""Worked machines and scenarios that run by name; a scenario is one file."""

from collections.abc import Callable

from framefree.gallery.machines.arms import iiwa, revolute_chain
from framefree.gallery.machines.crane import crane
from framefree.gallery.machines.dual_arm import dual_arm, six_joint_arm, three_arms
from framefree.gallery.machines.five_bar import five_bar
from framefree.machine import Machine


def _chain() -> Machine:
    """Return 30 equal rods in a row, each turning about an axis across the one before."""
    return revolute_chain(30)


MACHINES: dict[str, Callable[[], Machine]] = {
    "iiwa": iiwa,
    "two-armed-robot": dual_arm,
    "three-arms": three_arms,
    "six-joint-arm": six_joint_arm,
    "crane": crane,
    "five-bar": five_bar,
    "revolute-chain": _chain,
}
"""Machines that commands take by name, in place of a file."""
