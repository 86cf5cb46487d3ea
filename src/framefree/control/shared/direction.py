"""Inputs within limits that keep the direction of a force.

    G u = wanted,    lower <= u <= upper

Where limits are in the way of u_0 with G u_0 = wanted, inputs that cancel each other (G Z = 0) make
room; where that is not enough the force keeps its direction and is as large as they allow:

    u = share u_0 + Z z,    min 1/2 |Z z / range|^2 + rho/2 (1 - share)^2,    0 <= share <= 1

for every group of inputs that act together: an arm's torques do not suffer from a vehicle's
thrusters. Where u_0 is within the limits it is the solution.
"""

from typing import Any

import casadi as ca
import numpy as np

from framefree.control.law import ControlError
from framefree.control.qp import solve_qp
from framefree.control.shared.input_map import FULL, blocks
from framefree.control.shared.limits import less

Matrix = Any

PRIORITY = 100.0
"""rho: how much more a full force counts than small inputs, relative to their ranges."""


def along(G: Matrix, u_0: Matrix, lower: Any, upper: Any) -> Matrix:
    """Return u (nu) within its limits with G u along G u_0.

    Parameters
    ----------
    G : (n x nu)
        Its structural zeros tell which inputs act together; numbers where several do.
    u_0 : (nu)
    lower, upper : (nu,)
        With lower < upper; infinite where there is no limit.
    """
    G, u_0 = ca.sparsify(ca.SX(G)), ca.densify(ca.SX(u_0))
    lower, upper = np.asarray(lower, float), np.asarray(upper, float)
    if not (lower < upper).all():
        raise ControlError("inputs can be shared out only where `lower` < `upper` for all of them")
    u = ca.SX(u_0)
    for rows, columns in blocks(G):
        low, high = lower[columns], upper[columns]
        if len(rows) == len(columns) == 1:
            u[columns] = ca.fmin(ca.fmax(u_0[columns], low[0]), high[0])
        elif np.isfinite([low, high]).any():
            u[columns] = _shared(G[rows, columns], u_0[columns], low, high)
    return u


def _shared(G: Matrix, u_0: Matrix, lower: np.ndarray, upper: np.ndarray) -> Matrix:
    """Return the inputs of one group."""
    if not G.is_constant():
        raise ControlError("inputs whose directions change cannot be shared out within limits")
    _, values, Vt = np.linalg.svd(ca.DM(G).full())
    rank = int((values > FULL * values[0]).sum())
    Z, size = Vt[rank:].T, np.where(np.isfinite(upper - lower), (upper - lower) / 2, 1.0)
    k = Z.shape[1]
    H = np.zeros((k + 1, k + 1))
    H[:k, :k] = Z.T @ np.diag(size**-2.0) @ Z
    H[k, k] = PRIORITY
    # The last variable is what is missing of the share: zero at the optimum if nothing is.
    rows = ca.vertcat(ca.horzcat(ca.DM(Z), -u_0), ca.horzcat(ca.DM.zeros(1, k), 1))
    low = ca.vertcat(*(less(side, u_0[i]) for i, side in enumerate(lower)), 0.0)
    high = ca.vertcat(*(less(side, u_0[i]) for i, side in enumerate(upper)), 1.0)
    z = solve_qp(ca.DM(H), ca.DM.zeros(k + 1), None, None, rows, low, high).z
    u = u_0 + ca.DM(Z) @ z[:k] - u_0 * z[k]
    inside = ca.logic_and(ca.mmin(u_0 - ca.DM(lower)) >= 0, ca.mmin(ca.DM(upper) - u_0) >= 0)
    return ca.if_else(inside, u_0, ca.fmin(ca.fmax(u, lower), upper))
