"""PD control of all joints on their groups, with gravity compensated [Takegaki1981].

    force = g(x) - E^T K e - D v_e,    e = difference(x_d, x),    de/dt = E v_e
    V = 1/2 v . M v + 1/2 e . K e,     dV/dt = -v . D v + (power of friction and drag)

for a constant reference, with E the tangent map of e, so that K is the stiffness of a true
potential, for ball and free joints too. g holds the machine against gravity, springs and buoyancy.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import casadi as ca
import numpy as np

from framefree.control.allocation import UNITS, Allocation
from framefree.control.deviation import Deviation
from framefree.control.gains import joint_gain
from framefree.control.law import Command, Law
from framefree.control.model import Model
from framefree.machine import Machine
from framefree.machine.part import set_field

Matrix = Any


@dataclass(frozen=True, eq=False)
class PDGravity(Law):
    """PD control of all joints, with gravity compensated.

    Needs the reference "x", and takes "v" where the reference has it. Signals: `e` (n), `V`,
    `V_rate`, `unrealised`.

    Parameters
    ----------
    machine : Machine
        With an actuator for every velocity, or for every independent one where loops or couplings
        leave fewer.
    stiffness, damping : number, (n,), (n, n), or mapping by joint
        K and D over the (independent) velocities, symmetric and positive definite, Nm/rad and N/m.
    independent : sequence of str, optional
        Of a closed machine, see `Model`.
    weight, limits
        Of the inputs, see `Allocation`. Within limits the force may not be realised; V_rate tells
        what dV/dt is then.

    Notes
    -----
    V_rate is dV/dt of the model exactly, for a moving reference too. It is negative for a constant
    one without current. At a half turn of a ball or free joint e jumps; the potential does not
    where stiffness about (and along) all axes is alike.
    """

    machine: Machine
    stiffness: Any
    damping: Any
    independent: Sequence[str] | None = None
    weight: Any = None
    limits: bool = False

    needs = ("x",)
    units: ClassVar[Mapping[str, str]] = {"V": "J", "V_rate": "W", **UNITS}

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
        """Return the inputs, e, V and V_rate."""
        state, K, D = self.model.at(x, v), ca.DM(self.stiffness), ca.DM(self.damping)
        nothing = ca.SX(self.machine.nv, 1)
        moving = reference.get("v", nothing)
        deviation = Deviation(self.machine, self.model.parts)
        motion = deviation.motion(reference["x"], moving, nothing, x, v)
        # v_e, the velocity relative to the reference, is v where that is at rest.
        still = _is_zero(moving)
        v_e = state.v if still else deviation.velocity(motion)
        pull = K @ motion.e
        given = self.allocation(state, state.holding - motion.E.T @ pull - D @ v_e)
        V = state.tree.kinetic + ca.dot(motion.e, pull) / 2
        V_rate = state.passive_power - ca.dot(state.v, D @ v_e + given.unrealised)
        if not still:
            V_rate += ca.dot(pull, motion.rate - motion.E @ state.v)
        signals = {"e": motion.e, "V": V, "V_rate": V_rate, **given.signals}
        return Command(given.u, signals)


def _is_zero(value: Matrix) -> bool:
    value = ca.SX(value)
    return value.nnz() == 0 or (value.is_constant() and not np.any(ca.DM(value).full()))
