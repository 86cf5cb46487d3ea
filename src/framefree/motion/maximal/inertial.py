"""The maximal form in inertial layout, its matrices by the names of [Eslami2025].

Velocities are those of the bodies' mass centers and angular velocities, all in world axes, all
linear parts first: nu = (v_1, ..., v_N, w_1, ..., w_N). With S_b = wed(r_b - r_J), r_b the mass
center of body b and r_J the joint, Omega = wed(w) and I_b = R_b I_c R_b^T:

    M_v = blockdiag(m_b 1),  M_omega = blockdiag(I_b),  M = blockdiag(M_v, M_omega)     (eq. 48)
    C_omega = blockdiag(Omega_b I_b),  C = blockdiag(0, C_omega)                      (eq. 6, 64)
    D_M = dM/dt = blockdiag(0, Omega_b I_b - I_b Omega_b),  N = D_M - 2 C             (eq. 57, 65)
    J = [J_v, J_omega],   rows of a ball joint  v_q - v_p + S_q w_q - S_p w_p = 0     (eq. 17, 18)
    gamma = -dJ/dt nu,    rows  w_q x (w_q x s_q) - w_p x (w_p x s_p),  s_b = r_b - r_J   (eq. 56)
    C_F = -J_v^T,  C_M = -J_omega^T                                                   (eq. 3, 8)
    F_gJ = weight and passive wrenches,   F_known = F_gJ - C nu                       (errata E0-4)
    K = [M, J^T; J, 0],   K (dnu/dt, F_J) = (F_known + port, gamma)           (eq. 19, errata E0-2)

F_J holds the forces of children on parents. N is skew-symmetric, N + N^T = 0. Joints of other
kinds have their blocked directions as rows: of those that block all translations the first three
rows are as above, the others turn with the child. Loops and couplings follow.
"""

from typing import Any, NamedTuple

import casadi as ca
import numpy as np

from framefree.geometry import se3, so3
from framefree.machine import MachineError
from framefree.machine.values import constant
from framefree.motion import forces
from framefree.motion.load import Load
from framefree.motion.maximal.kinematics import stack
from framefree.motion.maximal.state import MaximalState
from framefree.motion.outputs import Outputs, matrix, vector
from framefree.motion.spatial import Matrix

WHOLE = np.vstack([np.eye(3), np.zeros((3, 3))])
"""Blocked directions of a ball joint: all translations."""


class InertialMatrices(NamedTuple):
    """Matrices of the inertial layout at a state (see the top of this file), NumPy arrays.

    Of N bodies and m rows of joints, loops and couplings: nu (6N), M_v, M_omega, C_omega (3N, 3N),
    M, C, D_M, N (6N, 6N), J_v, J_omega (m, 3N), J (m, 6N), C_F, C_M (3N, m), gamma (m), F_gJ and
    F_known (6N), K (6N + m, 6N + m). SI units.
    """

    nu: np.ndarray
    M_v: np.ndarray
    M_omega: np.ndarray
    M: np.ndarray
    C_omega: np.ndarray
    C: np.ndarray
    D_M: np.ndarray
    N: np.ndarray
    J_v: np.ndarray
    J_omega: np.ndarray
    J: np.ndarray
    C_F: np.ndarray
    C_M: np.ndarray
    gamma: np.ndarray
    F_gJ: np.ndarray
    F_known: np.ndarray
    K: np.ndarray


def inertial(state: MaximalState) -> Outputs:
    """Return all matrices of the layout."""
    n = 3 * len(state.machine.bodies)
    M_v, M_omega, C_omega, D_omega = tensors(state)
    M = ca.diagcat(M_v, M_omega)
    C, D_M = (ca.diagcat(ca.SX(n, n), part) for part in (C_omega, D_omega))
    J, gamma = _rows(state)
    m, nu = J.shape[0], to_inertial(state) @ state.v
    F_gJ = from_inertial(state).T @ (
        stack(state.gravity_wrenches)
        + stack(state.passive_wrenches)
        - state.joint_jacobian.T @ state.resistance
    )
    K = ca.blockcat([[M, J.T], [J, ca.SX(m, m)]])
    values = (M_v, M_omega, M, C_omega, C, D_M, D_M - 2 * C, J[:, :n], J[:, n:], J)
    values = (*values, -J[:, :n].T, -J[:, n:].T)
    names = InertialMatrices._fields
    outputs: Outputs = {"nu": vector(nu)}
    outputs |= {name: matrix(value) for name, value in zip(names[1:13], values, strict=True)}
    vectors = {"gamma": gamma, "F_gJ": F_gJ, "F_known": F_gJ - C @ nu}
    return outputs | {k: vector(one) for k, one in vectors.items()} | {"K": matrix(K)}


def tensors(state: MaximalState) -> tuple[Matrix, Matrix, Matrix, Matrix]:
    """Return M_v, M_omega, C_omega and dM_omega/dt, (3N x 3N) each.

    Raises
    ------
    MachineError
        Where rotors or added mass are part of M, which is not block-diagonal then, and where a body
        without mass has no mass center.
    """
    machine = state.machine
    for body in machine.bodies:
        if not body.moments.symbolic and body.moments.total == 0.0:
            raise MachineError(
                f"the inertial layout has velocities of mass centers: `{body.name}` has no mass"
            )
    if state.equations.geared:
        raise MachineError("the inertial layout knows no rotors: it needs armature 0")
    if any(extra is not None for extra in forces.added_masses(machine)):
        raise MachineError("the inertial layout knows no added mass: its M is not block-diagonal")
    masses, inertias, spins = [], [], []
    for body, G, xi in zip(machine.bodies, state.poses, state.twists, strict=True):
        R = se3.rotation(G)
        masses.append(ca.SX(constant(body.moments.total)) * ca.SX.eye(3))
        inertias.append(R @ ca.SX(constant(body.moments.moment_at_center)) @ R.T)
        spins.append(so3.wed(R @ xi[3:]))
    M_v, M_omega, Omega = (ca.diagcat(ca.SX(0, 0), *part) for part in (masses, inertias, spins))
    return M_v, M_omega, Omega @ M_omega, Omega @ M_omega - M_omega @ Omega


def inertial_motion(state: MaximalState, force: Matrix, joint_force: Matrix) -> Outputs:
    """Return dnu/dt (6N) and F_J (m) under wrenches on bodies (6N, body axes) and joint forces.

    Also `port` (6N): both in the layout, so that K (dnu/dt, F_J) = (F_known + port, gamma).
    """
    load = Load(state.machine, force=force, joint_force=joint_force)
    a = state.forward(load)
    port = from_inertial(state).T @ (force + state.joint_jacobian.T @ joint_force)
    F_J = _rebased(state) @ state.kkt_multipliers(load)
    rate = to_inertial(state) @ a + turned(state)
    return {"nu_rate": vector(rate), "F_J": vector(F_J), "port": vector(port)}


# ---------------------------------------------------------------------- from body twists and back


def to_inertial(state: MaximalState) -> Matrix:
    """Return Q (6N x 6N) with nu = Q (body twists)."""
    return _layout(state, lambda R, c: (R, -R @ so3.wed(c), R))


def from_inertial(state: MaximalState) -> Matrix:
    """Return the inverse of Q; its transpose takes wrenches on bodies into the layout."""
    return _layout(state, lambda R, c: (R.T, so3.wed(c) @ R.T, R.T), inverse=True)


def _layout(state: MaximalState, blocks: Any, *, inverse: bool = False) -> Matrix:
    N = len(state.machine.bodies)
    Q = ca.SX(6 * N, 6 * N)
    for i, (body, G) in enumerate(zip(state.machine.bodies, state.poses, strict=True)):
        c = ca.SX(constant(body.moments.center)) if body.inertia else ca.SX(3, 1)
        corners = blocks(se3.rotation(G), c)
        twist = (slice(6 * i, 6 * i + 3), slice(6 * i + 3, 6 * i + 6))
        own = (slice(3 * i, 3 * i + 3), slice(3 * (N + i), 3 * (N + i) + 3))
        rows, columns = (twist, own) if inverse else (own, twist)
        for (a, b), block in zip(((0, 0), (0, 1), (1, 1)), corners, strict=True):
            Q[rows[a], columns[b]] = block
    return Q


def turned(state: MaximalState) -> Matrix:
    """Return dQ/dt (body twists): R (w x v + w x (w x c)) of the mass centers, 0 of turns."""
    parts = []
    for body, G, xi in zip(state.machine.bodies, state.poses, state.twists, strict=True):
        c = ca.SX(constant(body.moments.center)) if body.inertia else ca.SX(3, 1)
        w = xi[3:]
        parts.append(se3.rotation(G) @ ca.cross(w, xi[:3] + ca.cross(w, c)))
    return ca.vertcat(ca.SX(0, 1), *parts, ca.SX(3 * len(parts), 1))


# ---------------------------------------------------------------------- rows


def _rows(state: MaximalState) -> tuple[Matrix, Matrix]:
    """Return J (m x 6N) and gamma (m).

    Turning the rows adds nothing to gamma where joints hold, J nu = 0; that dnu/dt is another rate
    than that of body twists does.
    """
    turn = _rebased(state)
    J = turn @ state.held.all_rows @ from_inertial(state)
    return J, turn @ state.held.all_right + J @ turned(state)


def _rebased(state: MaximalState) -> Matrix:
    """Return the rotation (m x m) of rows of body axes that makes translations those of the world.

    Of a joint that blocks all translations, N = [1, *; 0, *], the first three rows are turned.
    """
    turns = []
    for link_pose, directions in zip(state.at.link_poses, state.at.directions, strict=True):
        turns += _turn(se3.rotation(link_pose), directions.N)
    for loop, N in zip(state.machine.loops, state.held.loop_blocked, strict=True):
        frame = state.machine.frame(loop.frame_b)
        turns += _turn(se3.rotation(ca.SX(state.bodies.pose(frame))), N)
    turns.append(ca.SX.eye(len(state.machine.couplings)))
    return ca.diagcat(*turns)


def _turn(R: Matrix, N: Matrix) -> list[Matrix]:
    k = N.shape[1]
    first = ca.SX(N)[:, :3] if k >= 3 else ca.SX(0, 0)
    if first.is_constant() and np.array_equal(ca.DM(first).full(), WHOLE):
        return [R, ca.SX.eye(k - 3)]
    return [ca.SX.eye(k)]
