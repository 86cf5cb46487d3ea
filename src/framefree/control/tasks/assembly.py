"""The tasks of a law at one state: rows, problem, and the way from acceleration to inputs."""

from collections.abc import Mapping
from functools import cached_property
from typing import Any

import casadi as ca

from framefree.control.tasks.base import Rows, Task
from framefree.control.tasks.frames import Frames
from framefree.control.tasks.held import Grip, HeldObject
from framefree.control.tasks.recovery import Recovery
from framefree.control.tasks.solvers.base import Level, Problem
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
    rows : dict of task name to Rows
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
        self.frames = Frames(self.state)
        self.tasks = [task for level in levels for task in level]
        self.M = self.state.mass
        self.bias = self.state.inverse(ca.SX(machine.nv, 1))
        self.rows: dict[str, Rows] = {t.name: t.rows(self.frames, reference) for t in self.tasks}
        self._levels, self._held = levels, held
        self.recovery = Recovery(self.state)

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

    def exact(self) -> Level | None:
        """Return the rows of accelerations that the actuators can give: N tau = 0; None if all."""
        N = self.recovery.unactuated(None if self.grip is None else self.grip.rows)
        if not N.shape[0]:
            return None
        given = self.motor_forces(self.bias) + self.pressure - self.recovery.bias
        return Level(N @ self.motor_forces(self.M), -(N @ given))

    def problem(self, exact: bool) -> Problem:
        """Return what is to be solved."""
        return Problem(self.M, -self.bias, self.levels, self.exact() if exact else None)

    def signals(self, a: Matrix, undelivered: Matrix) -> dict[str, Matrix]:
        """Return what is worth recording at an acceleration."""
        found = {}
        for task in self.tasks:
            rows = self.rows[task.name]
            found[f"{task.name}.error"] = rows.pose_error
            found[f"{task.name}.velocity_error"] = rows.velocity_error
            found[f"{task.name}.residual"] = rows.A @ a - task.b(rows)
        if self.grip is not None and self._held is not None:
            wrenches = self.grip.wrenches(self.M @ a + self.bias)
            for grasp, wrench in zip(self._held.grasps, wrenches, strict=True):
                found[f"{grasp.name}.wrench"] = wrench
        return {**found, "undelivered": undelivered}
