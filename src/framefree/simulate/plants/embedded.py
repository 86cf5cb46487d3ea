"""The plant of a closed chain in minimal coordinates."""

from collections.abc import Callable
from functools import partial
from typing import Any

import casadi as ca
import numpy as np

from framefree.motion.constrained.wrenches import joint_wrenches, loads
from framefree.motion.embedded import Embedded
from framefree.motion.embedded.maps import Expression, Map
from framefree.simulate.groups import Group, JointGroup
from framefree.simulate.load import Load
from framefree.simulate.plants.base import (
    NativePlant,
    PlantState,
    Signal,
    energy_signals,
    joint_wrench_signal,
    momentum_signals,
)
from framefree.simulate.plants.joints import consistent, projected

Matrix = Any


class MinimalGroup:
    """Coordinates of an `Expression`: plain numbers, or what couplings leave of the joints."""

    def __init__(self, map: Expression) -> None:
        self.map, self._joints = map, JointGroup(map.machine)
        self._kept_x = [] if map.independent is None else _places(map.machine.x_names, map.x_names)

    def velocity(self, x: Matrix, v: Matrix) -> Matrix:
        """Return v itself."""
        return v

    def integrate(self, x: Matrix, dv: Matrix) -> Matrix:
        """Move x by dv."""
        return self.map.integrate(x, dv)

    def bracket(self, a: Matrix, b: Matrix) -> Matrix:
        """Bracket of the joints that are left."""
        if self.map.independent is None:
            return ca.SX(*a.shape)
        kept = list(self.map.independent)
        zero = np.zeros(self.map.machine.nv)
        return self._joints.bracket(_placed(zero, kept, a), _placed(zero, kept, b))[kept]

    def normalise(self, x: Matrix) -> Matrix:
        """Bring quaternions and (cos, sin) pairs to unit length."""
        if self.map.independent is None:
            return x
        whole = _placed(self.map.machine.neutral(), self._kept_x, x)
        return self._joints.normalise(whole)[self._kept_x]


class ClosedGroup(JointGroup):
    """The tree's configurations, moved by the independent velocities: x moves at E(x) v."""

    def __init__(self, map: Map, machine: Any) -> None:
        super().__init__(machine)
        self.map = map

    def velocity(self, x: Matrix, v: Matrix) -> Matrix:
        """Return the velocities of all joints."""
        return self.map.at(x, ca.SX(self.map.nv, 1)).E @ v


class EmbeddedPlant(NativePlant):
    """A machine whose loops or couplings are embedded; loops are closed after every step."""

    def __init__(self, equations: Embedded) -> None:
        self.equations, self.machine = equations, equations.machine
        self.nx, self.nv = equations.sizes["x"], equations.sizes["v"]
        map = equations.map
        self.group: Group
        if isinstance(map, Expression):
            self.group, self.constrained = MinimalGroup(map), False
        else:
            self.group, self.constrained = ClosedGroup(map, self.machine), True

    def at(self, t: Matrix, x: Matrix, v: Matrix) -> "OnMinimal":
        """Return a state."""
        return OnMinimal(self, x, v)

    def start(self, x: np.ndarray, v: np.ndarray, parameters: Any) -> tuple[Any, Any]:
        """Return the minimal coordinates of a closed state of the tree."""
        if len(x) == self.nx and not self.constrained:
            return x, v
        x, v = consistent(self.equations.constrained, x, v, parameters)
        return self.equations.reduce(x, v)

    def project(self, t: Matrix, x: Matrix, v: Matrix, rounds: int) -> tuple[Matrix, Matrix]:
        """Close the loops."""
        if not self.constrained:
            return x, v
        closed, _ = projected(self.equations.constrained, t, x, ca.SX(self.machine.nv, 1), rounds)
        return closed, v


class OnMinimal(PlantState):
    """A state of an `EmbeddedPlant`."""

    def __init__(self, plant: EmbeddedPlant, x: Matrix, v: Matrix) -> None:
        self._equations, self._own = plant.equations, {"x": x, "v": v}
        self._state = plant.equations.at(x, v)
        self.x, self.v = self._state.chart.x, self._state.tree.v

    @property
    def poses(self) -> list[Matrix]:
        """Poses (4x4) of the bodies."""
        return self._state.tree.poses

    def acceleration(self, load: Load) -> Matrix:
        """Return the rates of the minimal velocities."""
        return self._state.forward(self._state.chart.E.T @ self._joint_force(load))

    def _joint_force(self, load: Load) -> Matrix:
        tree = self._state.tree
        return load.at_joints([partial(_jacobian, tree, b.name) for b in load.machine.bodies])

    def signals(self, load: Load) -> dict[str, Callable[[], dict[str, Signal]]]:
        """Return energy, momentum and joint wrenches."""
        equations = self._equations

        def carried() -> dict[str, Signal]:
            state, joint_force = self._state, self._joint_force(load)
            a, closed = self.acceleration(load), equations.constrained.closed
            wrenches = state.loop_wrenches(list(equations.constrained.constraints), a, joint_force)
            acting = loads(state.tree, zip(closed, wrenches, strict=True))
            total = [
                p if q is None else q if p is None else p + q
                for p, q in zip(acting, load.wrenches, strict=True)
            ]
            value = joint_wrenches(state.tree, state.acceleration(a), total)
            return joint_wrench_signal(equations.machine, value)

        return {
            "energy": lambda: energy_signals(equations.quantity("energy").trace(**self._own)),
            "momentum": lambda: momentum_signals(equations.quantity("momentum").trace(**self._own)),
            "joint_wrench": carried,
        }


def _places(names: tuple[str, ...], chosen: tuple[str, ...]) -> list[int]:
    return [names.index(name) for name in chosen]


def _placed(whole: np.ndarray, places: list[int], values: Matrix) -> Matrix:
    result = ca.SX(ca.DM(whole))
    result[places] = values
    return result


def _jacobian(tree: Any, body: str) -> Matrix:
    return tree.jacobian(body).value
