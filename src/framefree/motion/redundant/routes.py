"""Five ways to the force of inertia of rigid bodies in redundant coordinates. They agree.

With xi_b = J_b v, the kinetic energy T and the accelerations of the body's points:

    projection      sum_b J^T (M_b dxi_b/dt - ad_{xi_b}^T M_b xi_b)          [Konz2024, eq. 3.114]
    euler_lagrange  d/dt dT/dv^i + gamma^k_ij v^j dT/dv^k - d_i T            [Konz2024, eq. 3.31]
    levi_civita     M_ij a^j + Gamma_ijk v^j v^k                             [Konz2024, eq. 3.32]
    gibbs_appell    dS/da,  S = sum_b 1/2 tr(G'' M' G''^T)                   [Konz2024, eq. 3.113]
    gauss           dZ/da,  Z = sum_b 1/2 tr(G'' M' G''^T) - tr(G'' F'^T)    [Konz2024, eq. 3.24]

G'' is the second derivative of the pose, M' the 4x4 moments of mass. Gauss's constraint Z (up to
what does not depend on a) also knows the applied forces, F' = sum_p F_p (h_p, 1)^T over the points
p; a motion without further forces minimises it. All formulas stand on the left of
M a + c + ... = force (errata E4-12).
"""

from collections.abc import Callable

import casadi as ca

from framefree.geometry import se3
from framefree.machine.values import constant
from framefree.motion.redundant.state import RedundantState
from framefree.motion.spatial import Matrix


def projection(state: RedundantState, a: Matrix) -> Matrix:
    """Newton and Euler's laws of every body, projected on the velocities."""
    return state.inverse(a) - state.extra_inertia(a)


def euler_lagrange(state: RedundantState, a: Matrix) -> Matrix:
    """Lagrange's equations in quasi-velocities (Boltzmann, Hamel)."""
    v, tangent = state.v, state.tangent
    kinetic = sum(
        (
            ca.dot(xi, M @ xi) / 2
            for M, xi in zip(state.equations.inertias, state.twists, strict=True)
        ),
        ca.SX(0),
    )
    momentum = ca.gradient(kinetic, v)
    rate = tangent.rate(momentum, v) + ca.jtimes(momentum, v, a)
    return rate + tangent.bracket_force(v, momentum) - tangent.gradient(kinetic) + state.passive


def levi_civita(state: RedundantState, a: Matrix) -> Matrix:
    """Mass matrix and connection coefficients."""
    C = state.tangent.connection_matrix(state.rigid_mass, state.v)
    return state.rigid_mass @ a + C @ state.v + state.passive


def gibbs_appell(state: RedundantState, a: Matrix) -> Matrix:
    """Gradient of the acceleration energy."""
    symbol = ca.SX.sym("a", a.shape[0])
    force = ca.gradient(acceleration_energy(state, symbol), symbol)
    return ca.substitute(force, symbol, a) + state.passive


def gauss(state: RedundantState, a: Matrix) -> Matrix:
    """Gradient of Gauss's constraint, which knows the forces on the bodies' points."""
    symbol = ca.SX.sym("a", a.shape[0])
    force = ca.gradient(gauss_constraint(state, symbol), symbol)
    return ca.substitute(force, symbol, a) + state.resistance


def acceleration_energy(state: RedundantState, a: Matrix) -> Matrix:
    """S = sum_b 1/2 tr(G'' M' G''^T), taken in body axes (kg m^2/s^4)."""
    total = ca.SX(0)
    for body, pulled in zip(state.machine.bodies, _pulled_accelerations(state, a), strict=True):
        total += ca.trace(pulled @ constant(body.moments.matrix4) @ pulled.T) / 2
    return total


def gauss_constraint(state: RedundantState, a: Matrix) -> Matrix:
    """Z = S - sum_b tr(G'' F'^T) of gravity and all wrenches on the bodies."""
    total = acceleration_energy(state, a)
    for body, pulled, G, wrench in zip(
        state.machine.bodies,
        _pulled_accelerations(state, a),
        state.poses,
        state.body_loads,
        strict=True,
    ):
        fall = se3.wed(ca.vertcat(se3.rotation(G).T @ state.equations.gravity_vector, ca.SX(3, 1)))
        applied = fall @ constant(body.moments.matrix4)
        # Any distribution over the points with this wrench serves: vee2 gives it back.
        applied += se3.wed(ca.vertcat(wrench[:3], wrench[3:] / 2))
        total -= ca.trace(pulled @ applied.T)
    return total


def _pulled_accelerations(state: RedundantState, a: Matrix) -> list[Matrix]:
    """``G^-1 G'' = wed(dxi/dt) + wed(xi)^2`` (4x4) of every body."""
    found = []
    for xi, rate in zip(state.twists, state.accelerations(a), strict=True):
        W = se3.wed(xi)
        found.append(se3.wed(rate) + W @ W)
    return found


ROUTES: dict[str, Callable[[RedundantState, Matrix], Matrix]] = {
    "projection": projection,
    "euler_lagrange": euler_lagrange,
    "levi_civita": levi_civita,
    "gibbs_appell": gibbs_appell,
    "gauss": gauss,
}
"""Name to the function that gives the force (nv) for accelerations a, but for `extra_inertia`."""

NEEDS_INTEGRABLE = ("euler_lagrange", "levi_civita")
"""Routes that hold only where the velocities belong to coordinates, and poses do not move."""
