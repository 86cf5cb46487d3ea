"""What people give where a machine belongs: taken, or refused with what would be right."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

from framefree.errors import FramefreeError
from framefree.machine import Machine
from framefree.motion.equations import Equations

if TYPE_CHECKING:
    from framefree.motion.redundant import System


def checked_machine(
    machine: Any, error: type[FramefreeError], what: str = "`machine`"
) -> "Machine | System":
    """Return a machine or a system in the user's own coordinates; refuse anything else.

    Parameters
    ----------
    machine : Any
        What was given.
    error : type of FramefreeError
        Raised if it is neither.
    what : str
        The argument, for the message.
    """
    if isinstance(machine, Machine):
        return machine
    from framefree.motion.redundant import System  # costs a start nothing where machines are meant

    if isinstance(machine, System):
        return machine
    raise error(f"{what} must be a Machine, got {_got(machine)}")


def _got(machine: Any) -> str:
    if isinstance(machine, Equations):
        return "its equations: give `eom.machine` (a simulation takes `formulation=eom` beside it)"
    if isinstance(machine, str | Path):
        return (
            f"{str(machine)!r}; a model file is read by `framefree.read(...)`, a machine of the "
            "gallery is made by `gallery.MACHINES[...]()`"
        )
    if callable(machine):
        name = getattr(machine, "__name__", type(machine).__name__)
        return f"the function {name}: call it first"
    shown = " ".join(repr(machine).split())
    shown = shown if len(shown) <= 80 else f"{shown[:77]}..."
    return f"{shown} ({type(machine).__name__})"
