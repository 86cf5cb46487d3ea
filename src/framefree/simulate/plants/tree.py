"""The plant of a tree of joints."""

from collections.abc import Callable
from typing import Any

import numpy as np

from framefree.motion.constrained.wrenches import joint_wrenches
from framefree.motion.tree import Tree
from framefree.simulate.groups import JointGroup
from framefree.simulate.load import Load
from framefree.simulate.plants.base import (
    NativePlant,
    PlantState,
    Signal,
    energy_signals,
    joint_wrench_signal,
    momentum_signals,
)

Matrix = Any


class TreePlant(NativePlant):
    """A machine without loops, in its joint coordinates."""

    def __init__(self, equations: Tree) -> None:
        self.equations, self.machine = equations, equations.machine
        self.nx, self.nv = self.machine.nx, self.machine.nv
        self.group = JointGroup(self.machine)

    def at(self, t: Matrix, x: Matrix, v: Matrix) -> "OnTree":
        """Return a state."""
        return OnTree(self, x, v)

    def start(self, x: np.ndarray, v: np.ndarray, parameters: Any) -> tuple[Any, Any]:
        """Return the state itself."""
        return x, v


class OnTree(PlantState):
    """A state of a `TreePlant`."""

    def __init__(self, plant: TreePlant, x: Matrix, v: Matrix) -> None:
        self.x, self.v, self._plant = x, v, plant
        self._state = plant.equations.model.at(x, v)

    @property
    def poses(self) -> list[Matrix]:
        """Poses (4x4) of the bodies."""
        return self._state.poses

    def acceleration(self, load: Load) -> Matrix:
        """Return the joint accelerations."""
        return self._state.forward(load.force, load.wrenches)

    def signals(self, load: Load) -> dict[str, Callable[[], dict[str, Signal]]]:
        """Return energy, momentum and joint wrenches."""
        equations, state = self._plant.equations, {"x": self.x, "v": self.v}

        def carried() -> dict[str, Signal]:
            wrenches = joint_wrenches(self._state, self.acceleration(load), load.wrenches)
            return joint_wrench_signal(equations.machine, wrenches)

        return {
            "energy": lambda: energy_signals(equations.quantity("energy").trace(**state)),
            "momentum": lambda: momentum_signals(equations.quantity("momentum").trace(**state)),
            "joint_wrench": carried,
        }
