"""What a native plant is: equations of motion in some coordinates, as the loop needs them.

To add one, subclass `NativePlant` and give

1. ``machine``, ``nx``, ``nv`` and ``group``: the machine, the sizes of the plant's own coordinates
   and velocities, and the group that they live on;
2. ``at(t, x, v)``: a `PlantState`, from symbols of the plant's own coordinates;
3. ``start(x, v)``: the plant's own coordinates of a state of the machine's joints, in numbers;
4. ``project(t, x, v)``, where there are constraints: the state brought back onto them.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from framefree.machine import Machine
from framefree.motion.equations import Output
from framefree.simulate.groups import Group
from framefree.simulate.load import Load

Matrix = Any


class Signal(NamedTuple):
    """A quantity to record: its value, the names of its entries (row-major) and their units.

    Without names, entries are numbered; a single unit serves all.
    """

    value: Output
    names: tuple[str, ...] = ()
    units: tuple[str, ...] = ()


class PlantState(ABC):
    """A symbolic state of a plant.

    Attributes
    ----------
    x, v : casadi columns
        Coordinates and velocities of the machine's joints.
    """

    x: Matrix
    v: Matrix

    @property
    @abstractmethod
    def poses(self) -> list[Matrix]:
        """Poses (4x4) of the bodies."""

    @abstractmethod
    def acceleration(self, load: Load) -> Matrix:
        """Return the rate of the plant's own velocities."""

    @abstractmethod
    def signals(self, load: Load) -> dict[str, Callable[[], dict[str, Signal]]]:
        """Return what can be recorded, by the name under which it is asked for."""


class NativePlant(ABC):
    """Base of all native plants; see the contract at the top of this file."""

    machine: Machine
    group: Group
    nx: int
    nv: int
    constrained: bool = False
    """Whether states must be projected after every step."""

    @abstractmethod
    def at(self, t: Matrix, x: Matrix, v: Matrix) -> PlantState:
        """Return a state in the plant's own coordinates."""

    @abstractmethod
    def start(
        self, x: np.ndarray, v: np.ndarray, parameters: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return the plant's own coordinates for one state of the machine's joints."""

    def project(self, t: Matrix, x: Matrix, v: Matrix, rounds: int) -> tuple[Matrix, Matrix]:
        """Return the state on the constraints, after so many rounds of Newton's method."""
        return x, v


WRENCH = ("fx", "fy", "fz", "mx", "my", "mz")
WRENCH_UNITS = ("N",) * 3 + ("Nm",) * 3


def joint_wrench_signal(machine: Machine, value: Output) -> dict[str, Signal]:
    """Return the signal of the wrenches that joints carry."""
    names = tuple(f"{joint.name}.{part}" for joint in machine.joints for part in WRENCH)
    return {"joint_wrench": Signal(value, names, WRENCH_UNITS * len(machine.joints))}


def energy_signals(outputs: dict[str, Output]) -> dict[str, Signal]:
    """Return the signals of the energies."""
    return {name: Signal(value, units=("J",)) for name, value in outputs.items()}


def momentum_signals(outputs: dict[str, Output]) -> dict[str, Signal]:
    """Return the signals of the momenta."""
    units = {"linear": "N s", "angular": "Nm s", "centroidal": "Nm s"}
    return {
        f"{name}_momentum": Signal(value, ("x", "y", "z"), (units[name],) * 3)
        for name, value in outputs.items()
    }
