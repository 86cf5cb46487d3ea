"""Computed torque: exact linearisation of the error, on the groups of the joints [Luh1980].

    d2e/dt2 + Kd de/dt + Kp e = 0,    e = difference(x_d, x)
    V = 1/2 |de/dt|^2 + 1/2 e . Kp e,    dV/dt = -de/dt . Kd de/dt

The acceleration that this asks for goes through the inverse dynamics, so that gains are those of
unit masses: Kp = w^2 and Kd = 2 zeta w place poles of frequency w and damping ratio zeta.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import casadi as ca

from framefree.control.allocation import UNITS, Allocation
from framefree.control.deviation import Deviation
from framefree.control.gains import joint_gain
from framefree.control.law import Command, Law
from framefree.control.model import Model
from framefree.machine import Machine
from framefree.machine.part import set_field
from framefree.motion.spatial import solve_symmetric

Matrix = Any


@dataclass(frozen=True, eq=False)
class ComputedTorque(Law):
    """Inverse dynamics with linear error dynamics of all joints.

    Needs references "x", "v" and "a". Signals: `e`, `e_rate` (n each), `V`, `V_rate`, `unrealised`.

    Parameters
    ----------
    machine : Machine
        With an actuator for every velocity, or for every independent one where loops or couplings
        leave fewer.
    stiffness, damping : number, (n,), (n, n), or mapping by joint
        Kp, 1/s^2, and Kd, 1/s, over the (independent) velocities, symmetric and positive definite.
    independent : sequence of str, optional
        Of a closed machine, see `Model`. Only the independent joints of the reference are read.
    weight, limits
        Of the inputs, see `Allocation`.

    Notes
    -----
    For a ball or free joint e is a logarithm: it jumps at a half turn, as in `PDGravity`. V_rate is
    dV/dt of the model exactly, what limits leave unrealised included.
    """

    machine: Machine
    stiffness: Any
    damping: Any
    independent: Sequence[str] | None = None
    weight: Any = None
    limits: bool = False

    needs = ("x", "v", "a")
    units: ClassVar[Mapping[str, str]] = {"V": "1/s^2", "V_rate": "1/s^3", **UNITS}

    def __post_init__(self) -> None:
        parts = self.model.parts
        set_field(self, "stiffness", joint_gain(self.stiffness, parts, "stiffness"))
        set_field(self, "damping", joint_gain(self.damping, parts, "damping"))
        self.allocation.require_full(self.name)

    @cached_property
    def model(self) -> Model:
        """The machine in independent velocities."""
        return Model(self.machine, self.independent)

    @cached_property
    def allocation(self) -> Allocation:
        """From forces to inputs."""
        return Allocation(self.model, self.weight, self.limits)

    def control(
        self, t: Matrix, x: Matrix, v: Matrix, reference: Mapping[str, Matrix], memory: Matrix
    ) -> Command:
        """Return the inputs, the error and its rate, V and V_rate."""
        state, Kp, Kd = self.model.at(x, v), ca.DM(self.stiffness), ca.DM(self.damping)
        deviation = Deviation(self.machine, self.model.parts)
        motion = deviation.motion(reference["x"], reference["v"], reference["a"], x, v)
        a = deviation.acceleration(motion, -Kd @ motion.rate - Kp @ motion.e)
        given = self.allocation(state, state.inverse(a))
        V = ca.sumsqr(motion.rate) / 2 + ca.dot(motion.e, Kp @ motion.e) / 2
        V_rate = -ca.dot(motion.rate, Kd @ motion.rate)
        if given.unrealised.nnz():
            missing = solve_symmetric(state.mass, ca.densify(given.unrealised))
            V_rate -= ca.dot(motion.rate, motion.E @ missing)
        signals = {"e": motion.e, "e_rate": motion.rate, "V": V, "V_rate": V_rate, **given.signals}
        return Command(given.u, signals)
