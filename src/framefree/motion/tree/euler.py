"""The same motion in roll, pitch and yaw: for comparison only, nothing else here uses angles.

Coordinates eta (nv) are plain numbers: of a free joint its position and the three angles, of a ball
joint the angles, of joints with (cos, sin) the angle, of others their own. With v = T(eta) eta_dot

    M_eta = T^T M T,    C_eta = T^T (M dT/dt + C T),    c_eta = C_eta eta_dot

Properties of M and C carry over where T is regular. At pitch +-90 degrees T loses rank: so does
M_eta, and a bounded v needs an unbounded eta_dot [From2010, property 3].
"""

import casadi as ca

from framefree.geometry import quaternion
from framefree.machine import Joint, Machine, MachineError
from framefree.machine.joints import Continuous, Free, Planar, Spherical
from framefree.motion.spatial import Matrix


def configuration(machine: Machine, eta: Matrix) -> Matrix:
    """Return x (nx) at angles eta (nv)."""
    parts = [_joint_x(joint, eta[machine.v_slice[joint.name], :]) for joint in machine.joints]
    return ca.vertcat(ca.SX(0, 1), *parts)


def velocity_map(machine: Machine, eta: Matrix) -> Matrix:
    """Return T (nv x nv) with v = T d(eta)/dt."""
    blocks = []
    for joint in machine.joints:
        own = ca.SX.sym("eta", joint.nv)
        x = ca.SX(_joint_x(joint, own))
        A = ca.SX(joint.kind.rate(x))
        T = ca.solve(A.T @ A, A.T @ ca.jacobian(x, own)) if joint.nv else ca.SX(0, 0)
        at = ca.Function("T", [own], [T])
        blocks.append(at(eta[machine.v_slice[joint.name], :]) if joint.nv else T)
    return ca.diagcat(*blocks)


def from_angles(angles: Matrix) -> Matrix:
    """Return the quaternion (wxyz) of roll, pitch, yaw: R = Rz(yaw) Ry(pitch) Rx(roll)."""
    turns = []
    for axis in (2, 1, 0):
        half = angles[axis] / 2
        vector = ca.SX(3, 1)
        vector[axis] = ca.sin(half)
        turns.append(ca.vertcat(ca.cos(half), vector))
    return quaternion.product(quaternion.product(turns[0], turns[1]), turns[2])


def _joint_x(joint: Joint, eta: Matrix) -> Matrix:
    kind = joint.kind
    if isinstance(kind, Free):
        return ca.vertcat(eta[:3], from_angles(eta[3:6]))
    if isinstance(kind, Spherical):
        return from_angles(eta)
    if isinstance(kind, Continuous):
        return ca.vertcat(ca.cos(eta), ca.sin(eta))
    if isinstance(kind, Planar):
        return ca.vertcat(eta[:2], ca.cos(eta[2]), ca.sin(eta[2]))
    if not kind.vector:
        raise MachineError(
            f"the joint `{joint.name}` has no form in Euler angles: its kind is "
            f"{type(kind).__name__}"
        )
    return eta
