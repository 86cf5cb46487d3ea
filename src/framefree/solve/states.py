"""Find consistent states: configurations and velocities that loops and couplings allow."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from framefree.machine import Machine
from framefree.motion.constrained.project import Projection
from framefree.solve.kinematics import constrained


def assemble(
    machine: Machine,
    x0: Any = None,
    *,
    hold: Sequence[str] = (),
    tries: int = 20,
    parameters: Any = None,
) -> np.ndarray:
    """Return a configuration (nx,) in which all loops and couplings of a machine are closed.

    Parameters
    ----------
    machine : Machine
    x0 : (nx,), optional
        Where to look first; default neutral. If no closed configuration is reached from there,
        starts around it are tried.
    hold : sequence of str
        Joints, or single velocities as in `machine.v_names`, that keep their values: the ones that
        say which of the many closed configurations it is to be.
    tries : int
        Largest number of starts.
    parameters
        Values of the machine's tunable numbers, by default their defaults.

    Raises
    ------
    ClosureError
        If it cannot be closed; its `errors` tell by how much each row is open.
    StateError
        If x0 is not a configuration of the machine.
    """
    x0 = machine.neutral() if x0 is None else x0
    machine.validate(x0)
    equations = constrained(machine)
    x0 = machine.normalise(x0)
    return equations.assemble(x0, hold=hold, tries=tries, parameters=parameters)


def project(
    machine: Machine,
    x: Any,
    v: Any = None,
    *,
    weight: str = "mass",
    hold: Sequence[str] = (),
    parameters: Any = None,
) -> Projection:
    """Return the state nearest to (x, v) that loops and couplings of a machine allow.

    Parameters
    ----------
    machine : Machine
    x, v : (nx,), (nv,)
        One state; without v the machine is at rest.
    weight : "mass" or "unit"
        Metric in which steps towards it are shortest: that of the mass matrix, or of plain
        coordinates, which are taken also where the former do not arrive.
    hold : sequence of str
        Joints, or single velocities as in `machine.v_names`, whose coordinates stay.
    parameters
        Values of the machine's tunable numbers, by default their defaults.

    Returns
    -------
    Projection
        With `x`, `v`, and the errors that are left.

    Raises
    ------
    ClosureError
        If the constraints cannot be met from x; its `errors` tell by how much each row is open.
    StateError
        If (x, v) is not a state of the machine.
    """
    machine.validate(x, v)
    equations = constrained(machine)
    x = machine.normalise(x)
    return equations.project(x, v, weight=weight, hold=hold, parameters=parameters)
