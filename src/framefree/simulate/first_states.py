"""The first values of all states of a control loop."""

from typing import Any

import casadi as ca
import numpy as np

from framefree.simulate.errors import SimulationError
from framefree.simulate.loop import ControlLoop

Matrix = Any
Values = dict[str, np.ndarray]


def first_states(
    loop: ControlLoop, x: np.ndarray, v: np.ndarray, u: np.ndarray, constants: Values
) -> Values:
    """Return the first values of all states.

    x and v are the plant's own, one state or many; u are the inputs before, and `constants` the
    values of the loop's parameters.
    """
    output, given = loop.law_side.output, {"x": x, "v": v, **constants}
    drive = np.zeros(0) if loop.drive is None else loop.drive.start(u)
    values = {
        **given,
        "drive": drive,
        "pipe": np.tile(u, loop.delay),
        "held": u,
        "count": np.zeros(1),
        "touch": np.zeros(loop.symbol("touch").shape[0]),
        "law_output": np.zeros(0 if output is None else output.size),
    }
    if "memory" in loop.states:
        values["memory"] = _at_first(loop, _first_memory(loop), given)
    if "estimate" in loop.states:
        values["estimate"] = _at_first(loop, _first_estimate(loop, drive, u), given)
    return {name: values[name] for name in loop.states}


def _first_memory(loop: ControlLoop) -> Matrix:
    """Return the law's memory at the first state, by symbols of it."""
    s = loop.symbols
    state = loop.plant.at(s["x"], s["v"], s["time"])
    memory = loop.law_side.first_memory(state.joint_x, state.joint_v)
    if ca.SX(memory).shape != s["memory"].shape:
        raise SimulationError(
            f"the law's memory has {s['memory'].shape[0]} entries, its first memory shape "
            f"{ca.SX(memory).shape}"
        )
    return memory


def _first_estimate(loop: ControlLoop, drive: np.ndarray, u: np.ndarray) -> Matrix:
    """Return what sensors, estimators and observer remember at the first state."""
    s, estimation, z = loop.symbols, loop.estimation, ca.DM(drive)
    if estimation is None:
        return ca.SX(0, 1)
    state = loop.plant.at(s["x"], s["v"], s["time"])
    return estimation.first_memory(state, loop.forces_on(state, s["time"], z, ca.DM(u)), z)


def _at_first(loop: ControlLoop, value: Matrix, given: Values) -> np.ndarray:
    """Return a column in numbers (n,) or (batch, n) at the first state."""
    s = loop.symbols
    symbols = [*(s[name] for name in given), s["time"], s["h"]]
    first = ca.Function("first", symbols, [ca.densify(value)])
    lead = np.broadcast_shapes(*(array.shape[:-1] for array in given.values()))
    full = [np.broadcast_to(a, (*lead, a.shape[-1])) for a in given.values()]
    rows = zip(*full, strict=True) if lead else [full]
    columns = [np.array(first(*row, 0.0, 1.0)).ravel() for row in rows]
    return np.array(columns if lead else columns[0])
