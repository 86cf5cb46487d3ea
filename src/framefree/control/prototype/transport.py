"""Transport maps Psi(x, x_R): velocities of the reference, carried to where the machine is.

The energy approach needs (nv x nv) Psi, regular, Psi(x, x) = 1, with

    d_R V = -Psi^T d V

so that the potential depends on the error alone. There is one by construction where every joint is
a subgroup of the rigid motions and stiffness acts across single joints only: for each joint the
restriction of Ad_{G_E}^-1 to the joint's twists, which is 1 for joints that commute. Elsewhere the
user gives one, or none is known.
"""

from collections.abc import Callable, Sequence
from typing import Any

import casadi as ca
import numpy as np

from framefree.control.law import ControlError
from framefree.control.prototype.kinematics import relative_kinematics, route_between
from framefree.control.prototype.parameters import PairParameters
from framefree.geometry import se3, so3
from framefree.machine import (
    Continuous,
    Cylindrical,
    Fixed,
    Free,
    Helical,
    Joint,
    Locked,
    Machine,
    Planar,
    Prismatic,
    Revolute,
    Spherical,
)
from framefree.motion import equations

Matrix = Any
Transport = Callable[[Matrix, Matrix], Matrix]

COMMUTING = (Fixed, Locked, Revolute, Continuous, Prismatic, Helical, Cylindrical)
TURNING = (Spherical, Planar, Free)


def missing_map(machine: Machine, pairs: Sequence[PairParameters]) -> str | None:
    """Return why `by_joints` has no map for these parameters, or None where it has one."""
    if machine.closed:
        return f"no transport map is known for `{machine.name}`, which has loops or couplings"
    for pair in pairs:
        joints = route_between(machine, pair.a, pair.b).joints
        if pair.stiffness is not None and len(joints) != 1:
            between = ", ".join(f"`{joint.name}`" for joint in joints) or "no joint"
            return (
                f"no transport map is known for stiffness between `{pair.a}` and `{pair.b}`, which "
                f"are joined by {between}: the energy approach needs stiffness across single "
                "joints, or a `transport` of your own"
            )
    for joint in machine.joints:
        if not isinstance(joint.kind, (*COMMUTING, *TURNING)):
            return (
                f"no transport map is known for joint `{joint.name}`: a "
                f"{type(joint.kind).__name__} joint is no subgroup of the rigid motions; give a "
                "`transport` of your own"
            )
    return None


def by_joints(machine: Machine, pairs: Sequence[PairParameters]) -> Transport:
    """Return the map made of the joints' own, or say by name where there is none."""
    reason = missing_map(machine, pairs)
    if reason is not None:
        raise ControlError(reason)

    def transport(x: Matrix, x_R: Matrix) -> Matrix:
        return ca.diagcat(*(_of_joint(machine, joint, x, x_R) for joint in machine.joints))

    return transport


def straight(machine: Machine, center: Any = (0.0, 0.0, 0.0)) -> Transport:
    """Return a map of a single free body under which errors of position go straight ways.

        Psi = [R_E^T, wed(h) R_E^T - R_E^T wed(h); 0, R_E^T]

    carries the velocity of the center of stiffness h as it is in the world, where `by_joints`
    carries it along with the turning reference. With centers of inertia and damping at h too, the
    position of h follows m e'' + d e' + k e = 0 in world axes [Konz2024, ch. 4].

    Parameters
    ----------
    machine : Machine
        One body on a free joint.
    center : (3,)
        h: center of the prototype's stiffness in the body's frame, m.
    """
    if len(machine.joints) != 1 or not isinstance(machine.joints[0].kind, Free):
        raise ControlError(
            f"`{machine.name}` must be one free body for straight ways; it has joints "
            + ", ".join(f"`{joint.name}`" for joint in machine.joints)
        )
    h = so3.wed(ca.DM(np.asarray(center, float)))

    def transport(x: Matrix, x_R: Matrix) -> Matrix:
        kind = machine.joints[0].kind
        back = se3.rotation(kind.pose(x)).T @ se3.rotation(kind.pose(x_R))
        return ca.blockcat([[back, h @ back - back @ h], [ca.SX(3, 3), back]])

    return transport


def by_frame(machine: Machine, a: str, b: str) -> Transport:
    """Return ``J^-1 Ad_{G_E}^-1 J_R`` of one pair whose Jacobian is square and regular."""
    if machine.nv != 6:
        raise ControlError(
            f"a transport map by (`{a}`, `{b}`) needs a machine with 6 velocities, got {machine.nv}"
        )

    def transport(x: Matrix, x_R: Matrix) -> Matrix:
        model = equations(machine.tree)
        now, at_reference = (relative_kinematics(model.at(q), a, b) for q in (x, x_R))
        carried = se3.adjoint(se3.compose(se3.inverse(now.G), at_reference.G)) @ at_reference.J
        return ca.solve(ca.densify(now.J), ca.densify(carried))

    return transport


def by_errors(machine: Machine, errors: Callable[[Matrix, Matrix], Matrix]) -> Transport:
    """Return ``-(d x_E)^-1 (d_R x_E)`` of error coordinates on which alone the potential depends.

    Parameters
    ----------
    machine : Machine
    errors : callable (x, x_R) -> (nv)
        Zero where x = x_R, with a regular slope.
    """
    x, x_R = ca.SX.sym("x", machine.nx), ca.SX.sym("x_R", machine.nx)
    e = ca.densify(ca.SX(errors(x, x_R)))
    if e.shape != (machine.nv, 1):
        raise ControlError(f"`errors` must be {machine.nv} numbers, got shape {e.shape}")
    slope = ca.jacobian(e, x) @ machine.rate_matrix(x)
    slope_R = ca.jacobian(e, x_R) @ machine.rate_matrix(x_R)
    Psi = ca.solve(ca.densify(slope), ca.densify(-slope_R))
    function = ca.Function("transport", [x, x_R], [Psi])
    return lambda x, x_R: function(x, x_R)


def with_rate(
    machine: Machine, transport: Transport, state: tuple[Matrix, Matrix], reference: Any
) -> tuple[Matrix, Matrix]:
    """Return Psi and dPsi/dt at (x, v) and (x_R, v_R)."""
    x, x_R = ca.SX.sym("x", machine.nx), ca.SX.sym("x_R", machine.nx)
    v, v_R = ca.SX.sym("v", machine.nv), ca.SX.sym("v_R", machine.nv)
    if not callable(transport):
        raise ControlError(f"`transport` must be a function of x and x_R, got {transport!r}")
    Psi = ca.densify(ca.SX(transport(x, x_R)))
    if Psi.shape != (machine.nv, machine.nv):
        raise ControlError(
            f"`transport` must be {machine.nv} x {machine.nv} numbers, got shape {Psi.shape}"
        )
    moving = ca.vertcat(machine.rate_matrix(x) @ v, machine.rate_matrix(x_R) @ v_R)
    rate = ca.jtimes(ca.vec(Psi), ca.vertcat(x, x_R), moving)
    parameters = _parameters(machine)
    function = ca.Function(
        "transport", [x, v, x_R, v_R, *parameters], [Psi, ca.reshape(rate, *Psi.shape)]
    )
    carried = function(*state, *reference, *parameters)
    return carried[0], carried[1]


def _parameters(machine: Machine) -> list[Matrix]:
    return [machine.parameters.symbols] if len(machine.parameters) else []


def _of_joint(machine: Machine, joint: Joint, x: Matrix, x_R: Matrix) -> Matrix:
    if isinstance(joint.kind, COMMUTING):
        return ca.SX.eye(joint.nv)
    part = machine.x_slice[joint.name]
    now, reference = joint.kind.pose(x[part, :]), joint.kind.pose(x_R[part, :])
    Ad = se3.adjoint(se3.compose(se3.inverse(now), reference))
    S = np.array(ca.DM(joint.kind.jacobian(ca.DM(joint.kind.neutral))))
    # The columns of S span an invariant space of Ad: any left inverse gives the restriction.
    return ca.DM(np.linalg.pinv(S)) @ Ad @ ca.DM(S)
