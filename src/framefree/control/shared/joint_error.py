"""How far joints are from a reference, on their groups, and how that changes.

    e = difference(x_d, x),    de/dt = E v + (what the reference adds),    d2e/dt2 = E a + rest

For joints with plain coordinates and for turns E is the identity; for a ball or a free joint it is
the inverse of the right Jacobian of the logarithm, found by differentiating `difference`. At a half
turn e jumps from one half turn to the other; on both sides all of this is finite and exact.
"""

from collections.abc import Sequence
from functools import lru_cache
from typing import Any, NamedTuple

import casadi as ca

from framefree.control.shared.model import IndependentJoint
from framefree.machine import Machine
from framefree.machine.joints.base import JointKind

Matrix = Any


class JointError(NamedTuple):
    """Errors of joints, stacked: e (n), its rate (n), E (n x n) and rest (n)."""

    e: Matrix
    rate: Matrix
    E: Matrix
    rest: Matrix
    joints: tuple[IndependentJoint, ...]

    def acceleration(self, wanted: Matrix) -> Matrix:
        """Return the accelerations (n) of the joints with d2e/dt2 = wanted."""
        return self._solved(wanted - self.rest)

    def velocity(self) -> Matrix:
        """Return the velocities (n) relative to the reference: E^-1 de/dt."""
        return self._solved(self.rate)

    def _solved(self, right: Matrix) -> Matrix:
        """Return E^-1 right, joint by joint."""
        parts, first = [], 0
        for one in self.joints:
            rows = slice(first, first + one.size)
            part = right[rows]
            if not one.joint.kind.additive:
                part = ca.solve(self.E[rows, rows], ca.densify(part))
            parts.append(part)
            first += one.size
        return ca.vertcat(*parts)


def joint_error(
    machine: Machine,
    joints: Sequence[IndependentJoint],
    reference: tuple[Matrix, Matrix, Matrix],
    state: tuple[Matrix, Matrix],
) -> JointError:
    """Return the errors of some joints of a machine.

    Parameters
    ----------
    machine : Machine
    joints : sequence of IndependentJoint
        Their errors are stacked in this order.
    reference : (x_d, v_d, a_d)
        Of the whole machine.
    state : (x, v)
        Of the whole machine.
    """
    (x_d, v_d, a_d), (x, v) = reference, state
    parts = []
    for joint, chosen in joints:
        own_x, own_v = machine.x_slice[joint.name], machine.v_slice[joint.name]
        desired = x_d[own_x], v_d[own_v], a_d[own_v]
        e, rate, E, rest = _single(joint.kind, desired, (x[own_x], v[own_v]))
        keep = list(chosen)
        parts.append((e[keep], rate[keep], E[keep, keep], rest[keep]))
    e, rate, E, rest = zip(*parts, strict=True)
    return JointError(
        ca.vertcat(*e), ca.vertcat(*rate), ca.diagcat(*E), ca.vertcat(*rest), tuple(joints)
    )


def _single(kind: JointKind, reference: Any, state: Any) -> Any:
    """Return e, its rate, E and rest of one joint."""
    (x_d, v_d, a_d), (x, v) = reference, state
    if kind.additive:
        return kind.difference(x_d, x), v - v_d, ca.DM.eye(kind.nv), -a_d
    return _differentiated(kind)(x_d, v_d, a_d, x, v)


@lru_cache(maxsize=64)
def _differentiated(kind: JointKind) -> ca.Function:
    sizes = {"x_d": kind.nx, "v_d": kind.nv, "a_d": kind.nv, "x": kind.nx, "v": kind.nv}
    x_d, v_d, a_d, x, v = (ca.SX.sym(name, size) for name, size in sizes.items())
    moving, velocity = ca.vertcat(x_d, x), ca.vertcat(kind.rate(x_d) @ v_d, kind.rate(x) @ v)
    e = ca.densify(kind.difference(x_d, x))
    rate = ca.jtimes(e, moving, velocity)
    rest = ca.jtimes(rate, ca.vertcat(moving, v_d), ca.vertcat(velocity, a_d))
    return ca.Function(
        "joint_error", [x_d, v_d, a_d, x, v], [e, rate, ca.jacobian(rate, v), ca.densify(rest)]
    )
