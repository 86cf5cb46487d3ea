"""How far joints are from where they should be: potentials on their own groups, no angles.

For every joint a potential Ph of its coordinates x and the desired x_d, its gradient g, and the
desired velocity carried to where the joint is, such that for moving x and x_d

    d/dt Ph = g . (v - carried)

    plain coordinates      1/2 sum k_i (x - x_d)_i^2       g = k (x - x_d)
    (cos, sin)             k (1 - cos(angle))              g = k sin(angle)
    rotations              tr(Wed(Pi) (I - R_d^T R))       g = vee2(Wed(Pi) R_d^T R)
    positions in space     k/2 |r - r_d|^2                 g = k R^T (r - r_d)

Attitudes have no unwinding and no singularity; a half turn off is an unstable equilibrium.
"""

from collections.abc import Callable
from typing import NamedTuple

import casadi as ca
import numpy as np

from framefree.control.law import ControlError
from framefree.geometry import quaternion
from framefree.geometry.operators import Wed, vee2
from framefree.machine import Machine
from framefree.machine.joints import Continuous, Free, Planar, Spherical
from framefree.motion.spatial import Matrix


class JointPotential(NamedTuple):
    """Potential (J), its gradient (n) and the carried desired velocity (n)."""

    potential: Matrix
    gradient: Matrix
    carried: Matrix


def check_joints(machine: Machine, names: tuple[str, ...], stiffness: np.ndarray) -> None:
    """Refuse joints without a potential, and positions that are stiffer in one direction."""
    at = 0
    for name in names:
        joint = machine.joint(name)
        if type(joint.kind) not in _POTENTIALS and not joint.kind.vector:
            raise ControlError(
                f"joint `{name}` is {type(joint.kind).__name__}: there is no potential for it"
            )
        k = stiffness[at : at + joint.nv]
        positions = POSITIONS.get(type(joint.kind), 0)
        if positions and np.ptp(k[:positions]) > 0:
            raise ControlError(
                f"the stiffness of the position of joint `{name}` must be one for all directions, "
                f"got {k[:positions].tolist()}"
            )
        at += joint.nv


def joint_potentials(
    machine: Machine,
    names: tuple[str, ...],
    stiffness: np.ndarray,
    x: Matrix,
    x_d: Matrix,
    v_d: Matrix,
) -> JointPotential:
    """Return the errors of several joints together.

    Parameters
    ----------
    machine : Machine
    names : tuple of str
    stiffness : (n,)
        For every velocity of these joints: N/m or Nm/rad.
    x, x_d : (nx)
    v_d : (nv)
    """
    parts, at = [], 0
    for name in names:
        joint = machine.joint(name)
        place = machine.x_slice[name]
        k = stiffness[at : at + joint.nv]
        at += joint.nv
        if joint.nv:
            of_kind = _POTENTIALS.get(type(joint.kind), _plain)
            parts.append(of_kind(k, x[place, :], x_d[place, :], v_d[machine.v_slice[name], :]))
    return _stacked(*parts)


def _plain(k: np.ndarray, x: Matrix, x_d: Matrix, v_d: Matrix) -> JointPotential:
    e = x - x_d
    return JointPotential(ca.dot(e, ca.DM(k) * e) / 2, ca.DM(k) * e, v_d)


def _free(k: np.ndarray, x: Matrix, x_d: Matrix, v_d: Matrix) -> JointPotential:
    R, R_d = quaternion.to_rotation(x[3:]), quaternion.to_rotation(x_d[3:])
    moved = _position(k[0], R, x[:3] - x_d[:3], R_d @ v_d[:3])
    return _stacked(moved, rotation_potential(k[3:], R, R_d, v_d[3:]))


def _spherical(k: np.ndarray, x: Matrix, x_d: Matrix, v_d: Matrix) -> JointPotential:
    return rotation_potential(k, quaternion.to_rotation(x), quaternion.to_rotation(x_d), v_d)


def _planar(k: np.ndarray, x: Matrix, x_d: Matrix, v_d: Matrix) -> JointPotential:
    R, R_d = _plane(x[2:4]), _plane(x_d[2:4])
    moved = _position(k[0], R, x[:2] - x_d[:2], R_d @ v_d[:2])
    return _stacked(moved, _angle(k[2:], x[2:4], x_d[2:4], v_d[2]))


def rotation_potential(k: np.ndarray, R: Matrix, R_d: Matrix, w_d: Matrix) -> JointPotential:
    """Return the error of an attitude; k (3) along its axes, Nm/rad, w_d in desired axes."""
    P, turn = Wed(np.diag(np.asarray(k, float))), R_d.T @ R
    potential = ca.trace(P @ (ca.DM.eye(3) - turn))
    return JointPotential(potential, vee2(P @ turn), turn.T @ w_d)


def _position(k: float, R: Matrix, e: Matrix, velocity: Matrix) -> JointPotential:
    return JointPotential(k / 2 * ca.sumsqr(e), k * (R.T @ e), R.T @ velocity)


def _angle(k: np.ndarray, pair: Matrix, pair_d: Matrix, rate: Matrix) -> JointPotential:
    cosine = ca.dot(pair, pair_d)
    sine = pair_d[0] * pair[1] - pair_d[1] * pair[0]
    return JointPotential(k[0] * (1 - cosine), k[0] * sine, rate)


def _plane(pair: Matrix) -> Matrix:
    return ca.blockcat([[pair[0], -pair[1]], [pair[1], pair[0]]])


def _stacked(*parts: JointPotential) -> JointPotential:
    potentials, gradients, carried = zip(*parts, strict=True)
    return JointPotential(sum(potentials, ca.SX(0)), ca.vertcat(*gradients), ca.vertcat(*carried))


_POTENTIALS: dict[type, Callable[..., JointPotential]] = {
    Free: _free,
    Spherical: _spherical,
    Planar: _planar,
    Continuous: _angle,
}
"""Kinds of joints whose coordinates are not plain; from k, x, x_d and v_d."""
POSITIONS = {Free: 3, Planar: 2}
"""How many of the velocities of a kind are of a position in space."""
