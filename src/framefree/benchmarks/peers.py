"""The same machine in Pinocchio, for comparison."""

from typing import Any

from framefree.certify.pinocchio_model import pinocchio_model
from framefree.errors import FramefreeError
from framefree.machine import Machine


def pinocchio() -> Any:
    """Return the module, or say how to install it."""
    try:
        import pinocchio as pin
    except ImportError:
        raise FramefreeError(
            "this needs Pinocchio, which is not installed; install it with: "
            'pip install "framefree[peers]"'
        ) from None
    return pin


def to_pinocchio(machine: Machine) -> Any:
    """Return the machine as a pinocchio.Model; joint i + 1 carries body i."""
    return pinocchio_model(pinocchio(), machine)
