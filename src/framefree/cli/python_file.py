"""Machines of one's own in a Python file, for commands that take a model.

The file is run as it is, like any script: give commands only files that you would run yourself. It
defines `machine`, a `framefree.Machine` or a function without arguments that returns one, and for
`framefree check` may define functions `mass(x)`, `coriolis(x, v)` and `mass_estimate` beside it.
"""

import runpy
import traceback
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from framefree.errors import FramefreeError
from framefree.machine import Machine

MATRICES = ("mass", "coriolis", "mass_estimate")


@dataclass(frozen=True)
class PythonFile:
    """What a Python file defines.

    Attributes
    ----------
    machine : Machine
    matrices : dict of str to Any
        Those of `MATRICES` that there are.
    """

    machine: Machine
    matrices: dict[str, Any]


def python_file(path: str) -> PythonFile:
    """Run a Python file and return its machine.

    Raises
    ------
    FramefreeError
        If it does not run to its end, or defines no machine.
    """
    if not Path(path).is_file():
        raise FramefreeError(f"there is no file `{path}`")
    try:
        defined = runpy.run_path(path)
        machine = _machine(path, defined)
    except FramefreeError:
        raise
    except Exception as error:
        raise FramefreeError(f"{_place(path, error)}: {type(error).__name__}: {error}") from error
    return PythonFile(machine, {name: defined[name] for name in MATRICES if name in defined})


def _machine(path: str, defined: dict[str, Any]) -> Machine:
    machines = {name: value for name, value in defined.items() if isinstance(value, Machine)}
    if "machine" in defined:
        given = defined["machine"]
        machine = given if isinstance(given, Machine) or not callable(given) else given()
        if not isinstance(machine, Machine):
            raise FramefreeError(
                f"`machine` in `{path}` must be a framefree.Machine, or a function without "
                f"arguments that returns one, got {type(machine).__name__}"
            )
        return machine
    if len(machines) == 1:
        return next(iter(machines.values()))
    found = f"; machines in it: {', '.join(sorted(machines))}" if machines else ""
    raise FramefreeError(
        f"`{path}` defines no `machine`: a framefree.Machine, or a function without arguments that "
        f"returns one{found}"
    )


def _place(path: str, error: Exception) -> str:
    """Return the file and the last of its lines that an error came through."""
    if isinstance(error, SyntaxError):
        return f"`{path}`, line {error.lineno}"
    lines = [frame.lineno for frame in traceback.extract_tb(error.__traceback__)
             if Path(frame.filename).name == Path(path).name]  # fmt: skip
    return f"`{path}`, line {lines[-1]}" if lines else f"`{path}`"
