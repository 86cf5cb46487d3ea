"""The tasks of a law at one state: rows, problem, and the way from acceleration to inputs.

Tasks state their rows on the accelerations of all joints of the tree, A_j a_j = b_j. Loops and
couplings leave fewer of them free (`framefree.control.shared.model`), a_j = E a + drift, so that
on the independent ones

    A = A_j E,    b = b_j - A_j drift

and everything that a solver sees, rows, mass and forces, is in these. Loops by which hands hold a
`HeldObject` are left open: its grasps are tasks, and what they carry is split by the law.
"""

from collections.abc import Mapping
from functools import cached_property
from typing import Any

import casadi as ca
import numpy as np

from framefree.control.shared.allocation import Allocated, Allocation
from framefree.control.shared.frames import Frames
from framefree.control.shared.held_resistance import held_resistance, resistance_range
from framefree.control.shared.input_map import InputMap, rank, unreached_directions
from framefree.control.shared.model import Model, at_configurations
from framefree.control.tasks.base import Task, TaskRows
from framefree.control.tasks.held import Grip, HeldObject
from framefree.control.tasks.solvers.base import Level, TaskProblem
from framefree.machine import Machine

Matrix = Any
Levels = tuple[tuple[Task, ...], ...]


class Assembly:
    """What tasks amount to at a symbolic state (x, v) of a machine.

    Attributes
    ----------
    model : Model
        The machine in independent velocities, its grasps open.
    M : (n x n)
    bias : (n)
        Forces at zero acceleration: M a + bias is what motors and hands must give.
    rows : dict of task name to TaskRows
        On the accelerations (nv) of all joints.
    """

    def __init__(
        self,
        machine: Machine,
        levels: Levels,
        held: HeldObject | None,
        x: Matrix,
        v: Matrix,
        reference: Mapping[str, Matrix],
        memory: Matrix | None = None,
        period: float | None = None,
    ) -> None:
        self._period = period
        self.model = Model(machine if held is None else held.opened(machine))
        self.state = self.model.at(x, v)
        self.frames = Frames(self.state.tree)
        self.tasks = [task for level in levels for task in level]
        self.M = self.state.mass
        self.bias = self.state.inverse(ca.SX(self.n, 1))
        self.rows: dict[str, TaskRows] = {
            t.name: t.rows(self.frames, reference) for t in self.tasks
        }
        self._levels, self._held, self._reference = levels, held, reference
        self._memory = memory
        self._allocation = Allocation(self.model)

    @property
    def n(self) -> int:
        """Number of independent accelerations."""
        return self.model.n

    @property
    def joints(self) -> Level:
        """Accelerations (nv) of all joints as rows of the independent ones: A a + b."""
        return Level(self.state.E, self.state.drift)

    def reduced(self, A: Matrix, b: Matrix) -> Level:
        """Return rows A a = b on the accelerations (nv) of all joints, on the independent ones."""
        return Level(ca.SX(A) @ self.state.E, b - A @ self.state.drift)

    @cached_property
    def levels(self) -> tuple[Level, ...]:
        """A and b of every level."""
        return tuple(
            self.reduced(
                ca.vertcat(
                    ca.SX(0, self.state.E.shape[0]), *(self.rows[task.name].A for task in level)
                ),
                ca.vertcat(ca.SX(0, 1), *(task.b(self.rows[task.name]) for task in level)),
            )
            for level in self._levels
        )

    @cached_property
    def grip(self) -> Grip | None:
        """The grasps of the held body."""
        return (
            None
            if self._held is None
            else self._held.grip(self.frames, self.state, self._reference, self._memory)
        )

    def motor_forces(self, tau: Matrix) -> Matrix:
        """Return what motors must give (n x k) of forces M a + bias, without pressure."""
        return tau if self.grip is None else self.grip.transfer(tau)

    @property
    def pressure(self) -> Matrix:
        """Forces (n) that motors give so that hands press the held body."""
        return ca.SX(self.n, 1) if self.grip is None else self.grip.offset

    def inputs(self, a: Matrix, by_motors: Matrix = None) -> Allocated:
        """Return the inputs of least squares for an acceleration, and what they do not give.

        `by_motors` is the acceleration less what contacts add to it, where there are any.
        """
        tau = self.M @ (a if by_motors is None else by_motors) + self.bias
        force = self.motor_forces(tau + self._held_resistance(a)) + self.pressure
        return self._allocation(self.state, force, self._metric)

    def _held_resistance(self, a: Matrix) -> Matrix:
        """Return forces (n) that make up for what joints resist while inputs are held."""
        joints = self.joints.A @ a + self.joints.b
        tree, machine = self.state.tree, self.model.machine
        return self.state.reduced(held_resistance(machine, tree, joints, self._period))

    @property
    def _metric(self) -> Matrix:
        return ca.DM.eye(self.n)

    @property
    def idle_force(self) -> Matrix:
        """Forces (n) that inputs must give at zero acceleration: B u = idle_force."""
        return self.motor_forces(self.bias) + self.pressure - self.state.input_bias

    def input_rows(self) -> tuple[Level, Matrix, Matrix]:
        """Return inputs as rows of the acceleration, and what they may be beside it (nu), (nu).

        A a + b + least <= u <= A a + b + most, for what joints resist while inputs are held.
        """
        inputs: InputMap = self._allocation.map(self.state.B, self._metric)
        tree, machine = self.state.tree, self.model.machine
        slope, least, most = resistance_range(machine, tree, self._period)
        E = ca.SX(self.state.E)
        M = self.M + self.state.reduced(ca.diag(slope) @ E) if slope.nnz() else self.M
        rows = Level(inputs.least(self.motor_forces(M)), inputs.least(self.idle_force))
        if not (least.nnz() or most.nnz()):
            return rows, ca.SX(rows.A.shape[0], 1), ca.SX(rows.A.shape[0], 1)
        share = inputs.least(self.motor_forces(self.state.reduced(ca.SX.eye(machine.nv))))
        up, down = ca.fmax(share, 0), ca.fmin(share, 0)
        return rows, up @ least + down @ most, up @ most + down @ least

    def exact(self) -> Level | None:
        """Return the rows of accelerations that the actuators can give: N tau = 0; None if all."""
        none = Level(ca.SX(0, self.n), ca.SX(0, 1))
        parts = [self._exact_motors() or none]
        if self.grip is not None:
            parts.append(Level(*self.grip.exact(self.M, self.bias)))
        whole = Level(*(ca.vertcat(*sides) for sides in zip(*parts, strict=True)))
        return whole if whole.A.shape[0] else None

    def _exact_motors(self) -> Level | None:
        """Return the rows of accelerations for which motors can give their part of the forces."""
        carried = [] if self.grip is None else self.grip.places
        rows = [k for k in range(self.n) if k not in carried]
        if not self.state.B.is_constant() and self._reach(rows) == len(rows):
            return None
        N = unreached_directions(self.state.B, rows)
        if not N.shape[0]:
            return None
        return Level(N @ self.motor_forces(self.M), -(N @ self.idle_force))

    def _reach(self, rows: list[int]) -> int:
        """Return how many directions of forces at some velocities the inputs reach.

        In numbers, at configurations: with an expression, directions that are always reached would
        be rounding errors.
        """
        x = ca.SX.sym("x", self.model.machine.nx)
        B = self.model.at(x, ca.SX(self.model.machine.nv, 1)).B[rows, :]
        samples = at_configurations(self.model.machine, x, B, self.model.samples(3))
        return max((rank(sample) for sample in samples if np.isfinite(sample).all()), default=0)

    def problem(self, exact: bool) -> TaskProblem:
        """Return what is to be solved."""
        return TaskProblem(self.M, -self.bias, self.levels, self.exact() if exact else None)

    def signals(self, a: Matrix, by_motors: Matrix = None) -> dict[str, Matrix]:
        """Return what is worth recording at an acceleration, beside what is unrealised.

        `by_motors` is the acceleration less what contacts add to it, where there are any.
        """
        signals, joints = {}, self.joints.A @ a + self.joints.b
        for task in self.tasks:
            rows = self.rows[task.name]
            signals[f"{task.name}.error"] = rows.pose_error
            signals[f"{task.name}.velocity_error"] = rows.velocity_error
            signals[f"{task.name}.residual"] = rows.A @ joints - task.b(rows)
        signals |= self._grasp_signals(a if by_motors is None else by_motors)
        return signals

    def grasp_rows(self) -> tuple[Level, np.ndarray]:
        """Return what grasps carry, A a + b in the axes of their frames b, and its largest size."""
        n, limits = self.n, None if self._held is None else self._held.carries
        if self.grip is None or limits is None:
            return Level(ca.SX(0, n), ca.SX(0, 1)), np.zeros(0)
        local = [ca.diagcat(R, R).T for R in self.grip.turns]
        places = self.grip.places
        pairs = list(zip(local, self.grip.contacts, self.grip.pressure, strict=True))
        A = ca.vertcat(*(T @ (C @ self.M[places, :]) for T, C, _ in pairs))
        b = ca.vertcat(*(T @ (C @ self.bias[places] + p) for T, C, p in pairs))
        return Level(A, b), limits.ravel()

    def _grasp_signals(self, a: Matrix) -> dict[str, Matrix]:
        """Return wrenches of hands on the held body, and how much of what they carry is used."""
        if self.grip is None or self._held is None:
            return {}
        signals = {}
        wrenches = self.grip.wrenches(self.M @ a + self.bias)
        for grasp, wrench in zip(self._held.grasps, wrenches, strict=True):
            signals[f"{grasp.name}.wrench"] = wrench
        for grasp, error in zip(self._held.grasps, self.grip.errors, strict=False):
            signals[f"{grasp.name}.wrench_error"] = error
        rows, limits = self.grasp_rows()
        if len(limits):
            share = ca.fabs(rows.A @ a + rows.b) / ca.DM(np.maximum(limits, 1e-12))
            for k, grasp in enumerate(self._held.grasps):
                finite = [6 * k + i for i in range(6) if np.isfinite(limits[6 * k + i])]
                signals[f"{grasp.name}.use"] = ca.mmax(share[finite]) if finite else ca.SX(0)
        return signals
