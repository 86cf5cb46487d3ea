"""The tasks of a law at one state: rows, problem, and the way from acceleration to inputs."""

from collections.abc import Mapping
from functools import cached_property
from typing import Any

import casadi as ca

from framefree.control.shared.allocation import Allocated, Allocation
from framefree.control.shared.frames import Frames
from framefree.control.shared.input_map import InputMap, unreached_directions
from framefree.control.shared.model import ActuatedState, Model
from framefree.control.tasks.base import Task, TaskRows
from framefree.control.tasks.held import Grip, HeldObject
from framefree.control.tasks.solvers.base import Level, TaskProblem
from framefree.machine import Machine
from framefree.motion.tree import Tree

Matrix = Any
Levels = tuple[tuple[Task, ...], ...]


class Assembly:
    """What tasks amount to at a symbolic state (x, v) of a machine.

    Attributes
    ----------
    M : (nv x nv)
    bias : (nv)
        Joint forces at zero acceleration: M a + bias is what motors and hands must give.
    rows : dict of task name to TaskRows
    """

    def __init__(
        self,
        machine: Machine,
        levels: Levels,
        held: HeldObject | None,
        x: Matrix,
        v: Matrix,
        reference: Mapping[str, Matrix],
    ) -> None:
        self.state = Tree(machine.tree).at(x, v)
        self.actuated = ActuatedState(self.state)
        self.frames = Frames(self.state)
        self.tasks = [task for level in levels for task in level]
        self.M = self.state.mass
        self.bias = self.state.inverse(ca.SX(machine.nv, 1))
        self.rows: dict[str, TaskRows] = {
            t.name: t.rows(self.frames, reference) for t in self.tasks
        }
        self._levels, self._held = levels, held
        self._allocation = Allocation(Model(machine.tree))

    @cached_property
    def levels(self) -> tuple[Level, ...]:
        """A and b of every level."""
        none = ca.SX(0, self.M.shape[0])
        return tuple(
            Level(
                ca.vertcat(none, *(self.rows[task.name].A for task in level)),
                ca.vertcat(ca.SX(0, 1), *(task.b(self.rows[task.name]) for task in level)),
            )
            for level in self._levels
        )

    @cached_property
    def grip(self) -> Grip | None:
        """The grasps of the held body."""
        return None if self._held is None else self._held.grip(self.frames)

    def motor_forces(self, tau: Matrix) -> Matrix:
        """Return what motors must give (nv x k) of joint forces M a + bias, without pressure."""
        return tau if self.grip is None else self.grip.transfer(tau)

    @property
    def pressure(self) -> Matrix:
        """Joint forces (nv) that motors give so that hands press the held body."""
        return ca.SX(self.M.shape[0], 1) if self.grip is None else self.grip.offset

    def inputs(self, a: Matrix) -> Allocated:
        """Return the inputs of least squares for an acceleration, and what they do not give."""
        force = self.motor_forces(self.M @ a + self.bias) + self.pressure
        return self._allocation(self.actuated, force, self._metric)

    @property
    def _metric(self) -> Matrix:
        return ca.DM.eye(self.M.shape[0])

    @property
    def idle_force(self) -> Matrix:
        """Joint forces (nv) that inputs must give at zero acceleration: B u = idle_force."""
        return self.motor_forces(self.bias) + self.pressure - self.actuated.input_bias

    @property
    def input_rows(self) -> Level:
        """Inputs as rows of the acceleration: u = A a + b."""
        inputs: InputMap = self._allocation.map(self.actuated.B, self._metric)
        return Level(inputs.least(self.motor_forces(self.M)), inputs.least(self.idle_force))

    def exact(self) -> Level | None:
        """Return the rows of accelerations that the actuators can give: N tau = 0; None if all."""
        carried = range(0) if self.grip is None else range(*self.grip.rows.indices(self.M.shape[0]))
        rows = [k for k in range(self.M.shape[0]) if k not in carried]
        N = unreached_directions(self.actuated.B, rows)
        if not N.shape[0]:
            return None
        return Level(N @ self.motor_forces(self.M), -(N @ self.idle_force))

    def problem(self, exact: bool) -> TaskProblem:
        """Return what is to be solved."""
        return TaskProblem(self.M, -self.bias, self.levels, self.exact() if exact else None)

    def signals(self, a: Matrix) -> dict[str, Matrix]:
        """Return what is worth recording at an acceleration, beside what is unrealised."""
        signals = {}
        for task in self.tasks:
            rows = self.rows[task.name]
            signals[f"{task.name}.error"] = rows.pose_error
            signals[f"{task.name}.velocity_error"] = rows.velocity_error
            signals[f"{task.name}.residual"] = rows.A @ a - task.b(rows)
        if self.grip is not None and self._held is not None:
            wrenches = self.grip.wrenches(self.M @ a + self.bias)
            for grasp, wrench in zip(self._held.grasps, wrenches, strict=True):
                signals[f"{grasp.name}.wrench"] = wrench
        return signals
