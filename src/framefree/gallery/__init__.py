"""Worked machines and scenarios that run by name; a scenario is one file."""

from collections.abc import Callable

from framefree.gallery.machines.arms import iiwa, revolute_chain
from framefree.gallery.machines.dual_arm import dual_arm, six_joint_arm, three_arms
from framefree.machine import Machine

MACHINES: dict[str, Callable[[], Machine]] = {
    "iiwa": iiwa,
    "two-armed-robot": dual_arm,
    "three-arms": three_arms,
    "six-joint-arm": six_joint_arm,
    "revolute-chain": lambda: revolute_chain(30),
}
"""Machines that commands take by name, in place of a file."""
