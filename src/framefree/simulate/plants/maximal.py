"""The plant of bodies with poses and twists of their own, held together by joint forces."""

from collections.abc import Callable
from typing import Any

import casadi as ca
import numpy as np

from framefree.motion.constrained import Constrained
from framefree.motion.constrained.states import numbers
from framefree.motion.equations import Output
from framefree.motion.maximal import Maximal
from framefree.motion.maximal.state import MaximalState
from framefree.simulate.groups import BodyGroup
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


class MaximalPlant(NativePlant):
    """Position, quaternion and twist of every body.

    After every step the joint coordinates are read off the poses and the poses built from them
    again, so that joints stay together; loops and couplings are closed in between.
    """

    constrained = True

    def __init__(self, equations: Maximal) -> None:
        self.equations, self.machine = equations, equations.machine
        self.nx, self.nv = equations.sizes["x"], equations.sizes["v"]
        self.group = BodyGroup(equations.model)
        closed = self.machine.loops or self.machine.couplings
        self.loops = Constrained(self.machine) if closed else None

    def at(self, t: Matrix, x: Matrix, v: Matrix) -> "OnBodies":
        """Return a state."""
        return OnBodies(self, x, v)

    def start(self, x: np.ndarray, v: np.ndarray, parameters: Any) -> tuple[Any, Any]:
        """Return poses and twists of the bodies."""
        if self.loops is not None:
            x, v = consistent(self.loops, x, v, parameters)
        found = numbers(self.equations, "from_joints", parameters, joint_x=x, joint_v=v)
        return found[0], found[1]

    def project(self, t: Matrix, x: Matrix, v: Matrix, rounds: int) -> tuple[Matrix, Matrix]:
        """Return the state with all joints together and all loops closed."""
        parameters = self.machine.parameters
        more = [parameters.symbols] if len(parameters) else []
        functions = self.equations.functions
        joint_x, joint_v = functions["joint_state"](x, v, *more)
        if self.loops is not None:
            joint_x, joint_v = projected(self.loops, t, joint_x, joint_v, rounds)
        return functions["from_joints"](joint_x, joint_v, *more)


class OnBodies(PlantState):
    """A state of a `MaximalPlant`."""

    def __init__(self, plant: MaximalPlant, x: Matrix, v: Matrix) -> None:
        self._equations = plant.equations
        self._own = {"x": x, "v": v}
        self._state = MaximalState(plant.equations.model, x, v)
        self.x, self.v = self._state.at.joint_x, self._state.at.joint_v

    @property
    def poses(self) -> list[Matrix]:
        """Poses (4x4) of the bodies."""
        return self._state.at.poses

    def acceleration(self, load: Load) -> Matrix:
        """Return the rates of the body twists."""
        solution = self._state.solve(load.stacked, load.force)
        return self._state.at.of_links(solution.accelerations)

    def signals(self, load: Load) -> dict[str, Callable[[], dict[str, Signal]]]:
        """Return energy, momentum, joint wrenches and how far joints and loops are apart."""
        equations = self._equations
        port = {**self._own, "force": load.stacked, "joint_force": load.force}

        def trace(name: str) -> dict[str, Output]:
            return equations.quantity(name).trace(**self._own)

        def carried() -> dict[str, Signal]:
            wrench = equations.quantity("joint_wrench").trace(**port)["wrench"]
            return joint_wrench_signal(equations.machine, wrench)

        def apart() -> dict[str, Signal]:
            found = equations.quantity("violation").trace(x=self._own["x"])
            return {
                f"{name}_apart": Signal(Output(ca.mmax(ca.fabs(ca.vec(ca.SX(out.value)))), ()))
                for name, out in found.items()
                if out.value.numel()
            }

        return {
            "energy": lambda: energy_signals(trace("energy")),
            "momentum": lambda: momentum_signals(trace("momentum")),
            "joint_wrench": carried,
            "constraint": apart,
        }
