"""PD control of all joints on their groups, with gravity compensated [Takegaki1981].

    force = g(x) - E^T K e - D v_e,    e = difference(x_d, x),    de/dt = E v_e
    V = 1/2 v . M v + 1/2 e . K e,     dV/dt = -v . D v + (power of friction and drag)

for a constant reference, with E the tangent map of e, so that K is the stiffness of a true
potential, for ball and free joints too. g holds the machine against gravity, springs and buoyancy.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import casadi as ca
import numpy as np

from framefree.control.law import Command
from framefree.control.shared.allocation import UNITS
from framefree.control.shared.joint_error import joint_error
from framefree.control.shared.joint_law import JointLaw
from framefree.machine.values import constant

Matrix = Any


@dataclass(frozen=True, eq=False)
class PDGravity(JointLaw):
    """PD control of all joints, with gravity compensated.

    Needs the reference "x", and takes "v" where the reference has it. Signals: `e` (n), `V`,
    `V_rate`, `unrealised`.

    Parameters
    ----------
    stiffness, damping : number, (n,), (n, n), or mapping by joint
        K and D over the (independent) velocities, symmetric and positive definite, Nm/rad and N/m.
    machine, independent, weight, limits :
        See `JointLaw`.

    Notes
    -----
    V_rate is dV/dt of the model exactly, for a moving reference too. It is negative for a constant
    one without current. At a half turn of a ball or free joint e jumps; the potential does not
    where stiffness about (and along) all axes is alike.
    """

    needs = ("x",)
    follows_time = True
    units: ClassVar[Mapping[str, str]] = {"V": "J", "V_rate": "W", **UNITS}

    def control(
        self, t: Matrix, x: Matrix, v: Matrix, reference: Mapping[str, Matrix], memory: Matrix
    ) -> Command:
        """Return the inputs, e, V and V_rate."""
        state, K, D = self.model.at(x, v, t), constant(self.stiffness), constant(self.damping)
        nothing = ca.SX(self.machine.nv, 1)
        v_d = reference.get("v", nothing)
        desired = reference["x"], v_d, nothing
        error = joint_error(self.machine, self.model.joints, desired, (x, v))
        # v_e, the velocity relative to the reference, is v where that is at rest.
        still = _is_zero(v_d)
        v_e = state.v if still else error.velocity()
        pull = K @ error.e
        inputs = self.allocation(state, state.holding - error.E.T @ pull - D @ v_e)
        V = state.tree.kinetic + ca.dot(error.e, pull) / 2
        V_rate = state.passive_power - ca.dot(state.v, D @ v_e + inputs.unrealised)
        if not still:
            V_rate += ca.dot(pull, error.rate - error.E @ state.v)
        signals = {"e": error.e, "V": V, "V_rate": V_rate, **inputs.signals}
        return Command(inputs.u, signals)


def _is_zero(value: Matrix) -> bool:
    value = ca.SX(value)
    return value.nnz() == 0 or (value.is_constant() and not np.any(ca.DM(value).full()))
