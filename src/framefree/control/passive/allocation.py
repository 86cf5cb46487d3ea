"""Inputs for a wanted force: of least norm, or within the limits of thrusters and motors.

    G u = wanted,    lower <= u <= upper

Where limits are in the way of u_0 = G^+ wanted, inputs that cancel each other (G Z = 0) make room;
where that is not enough the force keeps its direction and is as large as they allow:

    u = share u_0 + Z z,    min 1/2 |Z z / range|^2 + rho/2 (1 - share)^2,    0 <= share <= 1

for every group of inputs that act together: an arm's torques do not suffer from a vehicle's
thrusters. Where u_0 is within the limits it is the solution.
"""

from typing import Any

import casadi as ca
import numpy as np

from framefree.control.allocation import blocks
from framefree.control.law import ControlError
from framefree.control.qp import solve_qp
from framefree.motion.spatial import Matrix, solve_symmetric

PRIORITY = 100.0
"""rho: how much more a full force counts than small inputs, relative to their ranges."""


def least(G: Matrix, wanted: Matrix) -> Matrix:
    """Return the smallest u (nu) with G u = wanted (n); G (n x nu) has full row rank."""
    G = ca.SX(G)
    if G.is_constant():
        return ca.sparsify(ca.DM(np.linalg.pinv(ca.DM(G).full())), 1e-14) @ wanted
    if G.shape[0] == G.shape[1] and G.sparsity().is_diag():
        return wanted / ca.diag(G)
    return G.T @ solve_symmetric(ca.densify(G @ G.T), wanted)


def allocated(G: Matrix, wanted: Matrix, lower: Any, upper: Any) -> Matrix:
    """Return u (nu) within its limits with G u along wanted (n).

    Parameters
    ----------
    G : (n x nu)
        Its structural zeros tell which inputs act together; numbers where several do.
    wanted : (n)
    lower, upper : (nu,)
        With lower < upper; infinite where there is no limit.
    """
    G, wanted = ca.sparsify(ca.SX(G)), ca.densify(ca.SX(wanted))
    lower, upper = np.asarray(lower, float), np.asarray(upper, float)
    if not (lower < upper).all():
        raise ControlError("inputs can be shared out only where `lower` < `upper` for all of them")
    u = ca.SX(G.shape[1], 1)
    for rows, columns in blocks(G):
        block, ask = G[rows, columns], wanted[rows]
        low, high = lower[columns], upper[columns]
        if len(rows) == len(columns) == 1:
            u[columns] = ca.fmin(ca.fmax(ask / block, low[0]), high[0])
        elif rows:
            u[columns] = _shared(block, ask, low, high)
    return u


def _shared(G: Matrix, wanted: Matrix, lower: np.ndarray, upper: np.ndarray) -> Matrix:
    """Return the inputs of one group."""
    if not G.is_constant():
        raise ControlError("inputs whose directions change cannot be shared out within limits")
    numbers = ca.DM(G).full()
    _, values, Vt = np.linalg.svd(numbers)
    rank = int((values > 1e-12 * values[0]).sum())
    Z, size = Vt[rank:].T, np.where(np.isfinite(upper - lower), (upper - lower) / 2, 1.0)
    u0 = ca.DM(np.linalg.pinv(numbers)) @ wanted
    k = Z.shape[1]
    H = np.zeros((k + 1, k + 1))
    H[:k, :k] = Z.T @ np.diag(size**-2.0) @ Z
    H[k, k] = PRIORITY
    # The last variable is what is missing of the share: zero at the optimum if nothing is.
    rows = ca.vertcat(ca.horzcat(ca.DM(Z), -u0), ca.horzcat(ca.DM.zeros(1, k), 1))
    low = ca.vertcat(ca.DM(lower) - u0, 0.0)
    high = ca.vertcat(ca.DM(upper) - u0, 1.0)
    found = solve_qp(ca.DM(H), ca.DM.zeros(k + 1), None, None, rows, low, high).z
    u = u0 + ca.DM(Z) @ found[:k] - u0 * found[k]
    inside = ca.logic_and(ca.mmin(u0 - ca.DM(lower)) >= 0, ca.mmin(ca.DM(upper) - u0) >= 0)
    return ca.if_else(inside, u0, ca.fmin(ca.fmax(u, lower), upper))
