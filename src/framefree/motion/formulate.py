"""From a machine and the name of a formulation to its equations."""

from collections.abc import Callable
from importlib import import_module
from inspect import signature
from typing import TYPE_CHECKING, Any

from framefree.errors import near
from framefree.machine import Machine
from framefree.motion.equations import Equations, EquationsError
from framefree.motion.given_machine import checked_machine
from framefree.motion.pairs import is_long

if TYPE_CHECKING:
    from framefree.motion.redundant import System

FORMULATIONS: dict[str, str] = {
    "tree": "Tree",
    "maximal": "Maximal",
    "embedded": "Embedded",
    "constrained": "Constrained",
    "redundant": "redundant",
}
"""Formulations by name, each also the name of its folder, and what in there makes its equations.

A folder is loaded when its formulation is asked for.
"""


def equations(
    machine: "Machine | System", formulation: str | None = None, **options: Any
) -> Equations:
    """Return the equations of motion of a machine in one of the five formulations.

    Parameters
    ----------
    machine : Machine, BodySystem or LagrangianSystem
    formulation : str, optional
        - "tree": joint coordinates, for machines without loops and couplings; the fastest.
        - "maximal": poses and twists of all bodies, joint forces explicit; any machine. Option
          `stabilisation` (1/s, default 0): see `framefree.motion.maximal.Maximal`.
        - "embedded": minimal coordinates of closed chains. Options `embedding` (closed form),
          `independent` (names of velocities), `start` (configuration near which loops close): see
          `framefree.motion.embedded.Embedded`.
        - "constrained": joint coordinates under A(x, v, t) a = b; any machine, and what the user
          adds. Options `constraints` (`Holonomic`, `Nonholonomic`, `Acceleration`, `Closed`),
          `stabilisation` (gains), `base` (other equations below), `semidefinite`: see
          `framefree.motion.constrained.Constrained`.
        - "redundant": any coordinates x with phi(x) = 0 and dx/dt = A(x) v: machines without loops,
          a `BodySystem` or a `LagrangianSystem`: see `framefree.motion.redundant.Redundant`.

        By default "tree", "constrained" for a machine with loops or couplings, and "redundant" for
        a system.
    **options
        Of the formulation, as listed above.

    Raises
    ------
    EquationsError
        If there is no such formulation, or it has no such option.
    MachineError
        If it does not apply to this machine.

    Examples
    --------
    >>> import framefree as ff
    >>> eom = ff.equations(ff.gallery.MACHINES["double-pendulum"]())
    >>> eom.forward([0.0, 0.0], [0.0, 0.0], [0.0, 0.0])  # it hangs, and stays
    array([0., 0.])
    >>> eom.mass([0.0, 0.0]).shape
    (2, 2)
    """
    own_coordinates = not isinstance(machine, Machine)
    if own_coordinates:
        checked_machine(machine, EquationsError)
    if formulation is None:
        formulation = "constrained" if machine.closed else "tree"
        formulation = "redundant" if own_coordinates else formulation
    if formulation not in FORMULATIONS:
        raise EquationsError(
            f"there is no formulation `{formulation}`; {near(formulation, FORMULATIONS)}"
            f"choose one of: {', '.join(FORMULATIONS)}"
        )
    if own_coordinates and formulation != "redundant":
        raise EquationsError(
            f"`{machine.name}` is given by coordinates of its own: it has the redundant "
            f"formulation only, not `{formulation}`"
        )
    make = maker(formulation)
    known = list(signature(make).parameters)[1:]
    for name in options:
        if name not in known:
            listed = ", ".join(f"`{one}`" for one in known) or "none"
            raise EquationsError(
                f"the {formulation} formulation has no option `{name}`; it has: {listed}"
            )
    made = make(machine, **options)
    if not own_coordinates:
        made.made_by = formulation, options
    if formulation == "tree":
        made.loop_program = _looped_tree
    return made


def _looped_tree(made: Any, name: str) -> Any:
    """Return a quantity as native loops; None where straight-line code is as good."""
    if not is_long(made.machine, name):
        return None
    from framefree.motion.loops.long_trees import looped_program

    return looped_program(made, name)


def maker(formulation: str) -> Callable[..., Equations]:
    """Return what makes the equations of a machine in a formulation of `FORMULATIONS`."""
    folder = import_module(f"framefree.motion.{formulation}")
    return getattr(folder, FORMULATIONS[formulation])
