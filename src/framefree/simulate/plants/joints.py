"""The plant of any formulation in the machine's joint coordinates, under constraints or not."""

from collections.abc import Callable
from functools import cached_property, partial
from typing import Any

import casadi as ca
import numpy as np

from framefree.motion.constrained import Constrained
from framefree.motion.constrained.carrier import OnTree as CarriedByTree
from framefree.motion.constrained.motion import Motion
from framefree.motion.constrained.rows import Closed
from framefree.motion.constrained.wrenches import joint_wrenches, loads
from framefree.motion.equations import Equations, Output
from framefree.simulate.errors import SimulationError
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

CONSISTENT = 1e-6
"""How far (m, rad, m/s, rad/s) a first state may be off the constraints."""


class JointPlant(NativePlant):
    """Equations ``forward(x, v, force)`` in joint coordinates: constrained or redundant."""

    def __init__(self, equations: Equations) -> None:
        self.equations, self.machine = equations, equations.machine
        self.nx, self.nv = self.machine.nx, self.machine.nv
        if (equations.sizes["x"], equations.sizes["v"]) != (self.nx, self.nv):
            raise SimulationError(
                f"the {equations.name} formulation of `{self.machine.name}` has coordinates that "
                "are not those of its joints: it cannot be simulated as it is"
            )
        self.group = JointGroup(self.machine)

    def at(self, t: Matrix, x: Matrix, v: Matrix) -> "OnJoints":
        """Return a state."""
        return OnJoints(self, t, x, v)

    def start(self, x: np.ndarray, v: np.ndarray, parameters: Any) -> tuple[Any, Any]:
        """Return the state itself."""
        return x, v


class OnJoints(PlantState):
    """A state of a `JointPlant`."""

    def __init__(self, plant: JointPlant, t: Matrix, x: Matrix, v: Matrix) -> None:
        self.t, self.x, self.v, self._equations = t, x, v, plant.equations

    @cached_property
    def poses(self) -> list[Matrix]:
        """Poses (4x4) of the bodies."""
        rows = self._outputs("body_pose")["pose"].value
        return [ca.reshape(rows[i, :], 4, 4).T for i in range(rows.shape[0])]

    def acceleration(self, load: Load) -> Matrix:
        """Return the joint accelerations."""
        return self._outputs("forward", force=self.force(load))["a"].value

    def signals(self, load: Load) -> dict[str, Callable[[], dict[str, Signal]]]:
        """Return energy, momentum and joint wrenches."""
        return {
            "energy": lambda: energy_signals(self._outputs("energy")),
            "momentum": lambda: momentum_signals(self._outputs("momentum")),
            "joint_wrench": lambda: joint_wrench_signal(
                self._equations.machine, self._joint_wrench(load)
            ),
        }

    def force(self, load: Load) -> Matrix:
        """Return the joint forces that a load amounts to."""
        return load.at_joints([partial(self._jacobian, b) for b in load.machine.bodies])

    def _joint_wrench(self, load: Load) -> Output:
        return self._outputs("joint_wrench", force=self.force(load))["wrench"]

    def _jacobian(self, body: Any) -> Matrix:
        return self._outputs(f"jacobian:{body.name}")["jacobian"].value

    def _outputs(self, name: str, **more: Matrix) -> dict[str, Output]:
        quantity = self._equations.quantity(name)
        given = {"x": self.x, "v": self.v, "t": self.t, **more}
        return quantity.trace(**{key: given[key] for key in quantity.inputs})


class ConstrainedPlant(JointPlant):
    """A machine with loops, couplings or further constraints; projected after every step."""

    constrained = True
    equations: Constrained

    def at(self, t: Matrix, x: Matrix, v: Matrix) -> "OnConstraints":
        """Return a state."""
        return OnConstraints(self, t, x, v)

    def start(self, x: np.ndarray, v: np.ndarray, parameters: Any) -> tuple[Any, Any]:
        """Return the state on the constraints; refuse one that is far off."""
        return consistent(self.equations, x, v, parameters)

    def project(self, t: Matrix, x: Matrix, v: Matrix, rounds: int) -> tuple[Matrix, Matrix]:
        """Return the state on the constraints."""
        return projected(self.equations, t, x, v, rounds)


class OnConstraints(OnJoints):
    """A state of a `ConstrainedPlant`."""

    _equations: Constrained

    def _motion(self, load: Load) -> Motion:
        return self._at.motion(self.force(load))

    @cached_property
    def _at(self) -> Any:
        return self._equations.at(self.x, self.v, self.t)

    def acceleration(self, load: Load) -> Matrix:
        """Return the joint accelerations."""
        return self._motion(load).a

    def force(self, load: Load) -> Matrix:
        """Return the joint forces that a load amounts to."""
        state = self._at.state
        if not isinstance(state, CarriedByTree):
            return super().force(load)
        return load.at_joints(
            [partial(_value, state.tree, body.name) for body in load.machine.bodies]
        )

    def signals(self, load: Load) -> dict[str, Callable[[], dict[str, Signal]]]:
        """Return also the errors of the constraints."""
        return {**super().signals(load), "constraint": self._errors}

    def _errors(self) -> dict[str, Signal]:
        return error_signals(self._equations, self._at.rows)

    def _joint_wrench(self, load: Load) -> Output:
        motion = self._motion(load)
        state = motion.at.state
        if not isinstance(state, CarriedByTree):
            return super()._joint_wrench(load)
        carried = motion.at.loop_wrenches(motion.multipliers)
        acting = loads(state.tree, zip(self._equations.closed, carried, strict=True))
        total = [
            b if a is None else a if b is None else a + b
            for a, b in zip(acting, load.wrenches, strict=True)
        ]
        return joint_wrenches(state.tree, motion.a, total)


def error_signals(equations: Constrained, rows: Any) -> dict[str, Signal]:
    """Return the signals of the errors of constraints."""
    labels = equations.labels
    units = sum((_units(c, c.size(equations.carrier)) for c in equations.constraints), ())
    rates = tuple(f"{unit}/s" if unit else "" for unit in units)
    return {
        "position_error": Signal(Output(rows.position, (len(labels),)), labels, units),
        "velocity_error": Signal(Output(rows.velocity, (len(labels),)), labels, rates),
    }


def _units(constraint: Any, size: int) -> tuple[str, ...]:
    if not isinstance(constraint, Closed):
        return ("",) * size
    linear = {"slider": 2, "distance": 1}.get(constraint.loop.kind, 3)
    return ("m",) * linear + ("rad",) * (size - linear)


def _value(tree: Any, body: str) -> Matrix:
    return tree.jacobian(body).value


def projected(
    equations: Constrained, t: Matrix, x: Matrix, v: Matrix, rounds: int
) -> tuple[Matrix, Matrix]:
    """Return a state of the joints after Newton steps onto the constraints, and a velocity step."""

    def step(name: str, **inputs: Matrix) -> Matrix:
        function = equations.functions[name]
        inputs |= {"t": t, "parameters": equations.machine.parameters.symbols}
        return function(*(inputs[key] for key in function.name_in()))

    for _ in range(rounds):
        x = step("projected_x", x=x)
    return x, step("projected_v", x=x, v=v)


def consistent(
    equations: Constrained, x: np.ndarray, v: np.ndarray, parameters: Any
) -> tuple[np.ndarray, np.ndarray]:
    """Return a state brought onto the constraints; raise if it is far off."""
    from_start = equations.project(x, v, limits=False, parameters=parameters)
    moved = np.abs(equations.machine.difference(x, from_start.x)).max(initial=0.0)
    turned = np.abs(v - from_start.v).max(initial=0.0)
    if max(moved, turned) > CONSISTENT:
        what = "configuration" if moved > CONSISTENT else "velocity"
        raise SimulationError(
            f"the first {what} does not meet the constraints of `{equations.machine.name}`: the "
            f"nearest that does is {max(moved, turned):.3g} away; "
            'use `framefree.equations(machine, "constrained").project(x, v)`'
        )
    return from_start.x, from_start.v
