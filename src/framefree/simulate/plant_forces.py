"""What acts on a plant where a control period begins: for sensors of forces and accelerations.

Our own equations know all forces but those of contacts that an engine solves itself. Of these the
engine tells the wrenches that it found over the step before.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import casadi as ca

from framefree.motion import State, forces
from framefree.motion.load import Load
from framefree.motion.spatial import SpatialWrench
from framefree.motion.state import in_joint_frame, step_of
from framefree.simulate.errors import SimulationError

Matrix = Any


@dataclass(frozen=True)
class PlantForces:
    """What acts on a plant at one state.

    Attributes
    ----------
    state : State
    driven : callable
        Gives the load of actuators and disturbances.
    disturbed : callable
        Gives that of disturbances alone.
    touch : (6 bodies, 1) or (0, 1)
        Wrenches of an engine's contacts on all bodies, in their own axes; empty where contacts
        are among the machine's interactions.
    """

    state: State
    driven: Callable[[], Load]
    disturbed: Callable[[], Load]
    touch: Matrix

    def acceleration(self) -> Matrix:
        """Return the accelerations of the plant."""
        return self.state.forward(self._load())

    def on_frame(self, name: str) -> Matrix:
        """Return the wrench (6) from outside on the body of a frame, in the frame's axes.

        That of contacts, interactions, loops and disturbances: all but gravity, actuators and the
        joints of the tree.
        """
        machine = self.state.machine
        frame = machine.frame(name)
        index = machine.body_index[frame.body]
        if index < 0:
            raise SimulationError(f"frame `{name}` is fixed to the world, which feels no forces")
        outside = self.disturbed()
        for known in self._touched():
            outside.on_body(*known)
        bodies = self.state.bodies
        for force in machine.interactions:
            if frame.body in self._bodies(force):
                _add_pair(outside, bodies, force, forces.pair_motion(bodies, force).wrench)
        if any(frame.body in self._bodies(loop) for loop in machine.loops):
            wrenches = self.state.loop_wrenches(self._load())
            for loop, wrench in zip(machine.loops, wrenches, strict=True):
                _add_pair(outside, bodies, loop, wrench)
        wrench = outside.wrenches[index]
        return in_joint_frame(frame.pose, ca.SX(6, 1) if wrench is None else wrench)

    def _load(self) -> Load:
        load = self.driven()
        for known in self._touched():
            load.on_body(*known)
        return load

    def _touched(self) -> list[tuple[int, Matrix]]:
        count = self.touch.shape[0] // 6
        return [(k, self.touch[6 * k : 6 * k + 6]) for k in range(count)]

    def _bodies(self, part: Any) -> tuple[str, str]:
        machine = self.state.machine
        return machine.frame(part.frame_a).body, machine.frame(part.frame_b).body


def _add_pair(load: Load, bodies: forces.Bodies, part: Any, wrench: Matrix) -> None:
    """Add the wrench on frame b of a part, in b's axes, and its reaction on frame a."""
    a, b, G = bodies.relative(part)
    load.on_frame(b, wrench)
    load.on_frame(a, -step_of(G).wrench_out(SpatialWrench.of(ca.densify(wrench))).vector)
