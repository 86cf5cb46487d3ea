"""Worked machines and scenarios that run by name; a scenario is one file."""

from collections.abc import Callable

from framefree.gallery.machines.arms import iiwa, revolute_chain
from framefree.machine import Machine

MACHINES: dict[str, Callable[[], Machine]] = {
    "iiwa": iiwa,
    "revolute-chain": lambda: revolute_chain(30),
}
"""Machines that commands take by name, in place of a file."""
