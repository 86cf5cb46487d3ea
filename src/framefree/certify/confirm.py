"""Bounds of the mass matrix tried at very many random states, by compiled code.

M - d1 I and d2 I - M are positive definite where all pivots of their L D L^T are positive; no
eigenvalue is ever computed.
"""

from dataclasses import dataclass

import casadi as ca
import numpy as np

from framefree.kernel import compile
from framefree.machine.units import Units
from framefree.motion import Equations

CHUNK = 65536


@dataclass(frozen=True)
class Confirmation:
    """The number of random configurations outside of the bounds, and one of them.

    Attributes
    ----------
    states, below, above : int
    x : (nx,) or None
    """

    states: int
    below: int
    above: int
    x: np.ndarray | None = None


def confirm(
    eom: Equations,
    low: float,
    high: float,
    *,
    states: int = 1_000_000,
    seed: int = 0,
    scale: np.ndarray | None = None,
    units: Units | None = None,
) -> Confirmation:
    """Test ``low I <= M <= high I`` at random configurations within the limits.

    Parameters
    ----------
    eom : Equations
        A tree.
    low, high : float
    states : int
        Number of configurations.
    seed : int
    scale : (nv,), optional
        Units of the velocities: M stands for scale M scale.
    units : Units, optional
        Natural units of the machine, in which translations without limits are spread.
    """
    units = Units.of(eom.machine) if units is None else units
    machine, rng = eom.machine, np.random.default_rng(seed)
    test = compile(_pivots(eom, np.ones(machine.nv) if scale is None else scale))
    below = above = done = 0
    worst = None
    while done < states:
        x = units.random(machine, rng, min(CHUNK, states - done))
        lower, upper, total = (np.ravel(v) for v in test(x, np.array([low]), np.array([high])))
        # What is no number is not inside either.
        is_below, is_above = (~(p > 0) | ~np.isfinite(total) for p in (lower, upper))
        outside = is_below | is_above
        below += int(is_below.sum())
        above += int(is_above.sum())
        if worst is None and outside.any():
            worst = x[int(outside.argmax())]
        done += len(x)
    return Confirmation(states, below, above, worst)


def _pivots(eom: Equations, scale: np.ndarray) -> ca.Function:
    """Return the smallest pivots of M - low I and high I - M, and the sum of the entries of M."""
    x = ca.SX.sym("x", eom.machine.nx)
    low, high = ca.SX.sym("low"), ca.SX.sym("high")
    units = ca.diag(ca.DM(np.asarray(scale, float)))
    M, one = units @ eom.functions["mass"](x) @ units, ca.SX.eye(eom.machine.nv)
    outputs = [_smallest_pivot(M - low * one), _smallest_pivot(high * one - M), ca.sum1(ca.vec(M))]
    names = ["below", "above", "total"]
    return ca.Function("pivots", [x, low, high], outputs, ["x", "low", "high"], names)


def _smallest_pivot(matrix: ca.SX) -> ca.SX:
    """Return the smallest pivot of L D L^T; once one is negative, so is the result."""
    n = matrix.shape[0]
    rest = [[matrix[i, j] for j in range(i + 1)] for i in range(n)]
    smallest = ca.SX(np.inf)
    for k in range(n):
        pivot = rest[k][k]
        smallest = ca.fmin(smallest, pivot)
        for i in range(k + 1, n):
            factor = rest[i][k] / pivot
            for j in range(k + 1, i + 1):
                rest[i][j] = rest[i][j] - factor * rest[j][k]
    return smallest
