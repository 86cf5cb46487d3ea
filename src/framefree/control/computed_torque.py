"""Computed torque: exact linearisation of the error, on the groups of the joints [Luh1980].

    d2e/dt2 + Kd de/dt + Kp e = 0,    e = difference(x_d, x)
    V = 1/2 |de/dt|^2 + 1/2 e . Kp e,    dV/dt = -de/dt . Kd de/dt

The acceleration that this asks for goes through the inverse dynamics, so that gains are those of
unit masses: Kp = w^2 and Kd = 2 zeta w place poles of frequency w and damping ratio zeta.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import casadi as ca

from framefree.control.law import Command
from framefree.control.shared.allocation import UNITS
from framefree.control.shared.joint_error import joint_error
from framefree.control.shared.joint_law import JointLaw
from framefree.machine.values import constant
from framefree.motion.spatial import solve_symmetric

Matrix = Any


@dataclass(frozen=True, eq=False)
class ComputedTorque(JointLaw):
    """Inverse dynamics with linear error dynamics of all joints.

    Needs references "x", "v" and "a". Signals: `e`, `e_rate` (n each), `V`, `V_rate`, `unrealised`.

    Parameters
    ----------
    stiffness, damping : number, (n,), (n, n), or mapping by joint
        Kp, 1/s^2, and Kd, 1/s, over the (independent) velocities, symmetric and positive definite.
    machine, independent, weight, limits :
        See `JointLaw`.

    Notes
    -----
    For a ball or free joint e is a logarithm: it jumps at a half turn, as in `PDGravity`. V_rate is
    dV/dt of the model exactly, what limits leave unrealised included.

    Examples
    --------
    >>> import numpy as np
    >>> import framefree as ff
    >>> from framefree.control.references import Hold
    >>> arm = ff.gallery.MACHINES["scara"]()
    >>> law = ff.control.ComputedTorque(arm, stiffness=100.0, damping=20.0)
    >>> run = ff.simulate(arm, law, Hold(arm, [0.5, 0.5]), x0=[0.0, 0.0], duration=2.0, dt=1e-3)
    >>> bool(np.abs(run.x[-1] - 0.5).max() < 1e-6)
    True
    """

    needs = ("x", "v", "a")
    follows_time = True
    units: ClassVar[Mapping[str, str]] = {"V": "1/s^2", "V_rate": "1/s^3", **UNITS}

    def control(
        self, t: Matrix, x: Matrix, v: Matrix, reference: Mapping[str, Matrix], memory: Matrix
    ) -> Command:
        """Return the inputs, the error and its rate, V and V_rate."""
        state, Kp, Kd = self.model.at(x, v, t), constant(self.stiffness), constant(self.damping)
        desired = reference["x"], reference["v"], reference["a"]
        error = joint_error(self.machine, self.model.joints, desired, (x, v))
        e, rate = error.e, error.rate
        a = error.acceleration(-Kd @ rate - Kp @ e)
        inputs = self.allocation(state, state.inverse(a))
        V = ca.sumsqr(rate) / 2 + ca.dot(e, Kp @ e) / 2
        V_rate = -ca.dot(rate, Kd @ rate)
        if inputs.unrealised.nnz():
            missing = solve_symmetric(state.mass, ca.densify(inputs.unrealised))
            V_rate -= ca.dot(rate, error.E @ missing)
        signals = {"e": e, "e_rate": rate, "V": V, "V_rate": V_rate, **inputs.signals}
        return Command(inputs.u, signals)
