"""Feedback of measured grasp wrenches, and pressure within what grasps carry.

Of the wrenches w_i that hands give to a body, the part that does not move it, ``w_i - D_i sum w_j``
(`framefree.control.tasks.held`), is theirs to choose. Sensors in the hands tell it. With e_i what
is missing of it to its reference, in the axes of grasp i,

    dz_i/dt = K e_i,    the hands press by reference + z_i

so that under a constant reference and a constant error of the model  de_i/dt + K e_i = 0. A sampled
law reads what its command of a period before has done: K times the control period must be small.
"""

from collections.abc import Sequence
from typing import Any

import casadi as ca
import numpy as np

from framefree.control.shared.frames import Frames

Matrix = Any


def measured_wrench(frames: Frames, hand: str, place: Matrix, reading: Matrix) -> Matrix:
    """Return the wrench (6) of a hand on what it holds, at a place, in world axes.

    `reading` is that of a sensor of the wrench on the hand, at the hand's frame and in its axes.
    """
    at = frames.at(hand)
    force, moment = -(at.R @ reading[:3]), -(at.R @ reading[3:])
    return ca.vertcat(force, moment + ca.cross(at.p - place, force))


def integral_rate(K: float, error: Matrix, z: Matrix, limits: np.ndarray | None) -> Matrix:
    """Return dz/dt = K e; zero where z is beyond what the grasps carry and would go on."""
    if limits is None:
        return K * error
    most = ca.DM(limits.ravel())
    beyond = ca.logic_and(ca.fabs(z) >= most, z * error > 0)
    return ca.if_else(beyond, ca.SX(z.shape[0], 1), K * error)


def within(pressure: Sequence[Matrix], turns: Sequence[Matrix], limits: np.ndarray) -> Matrix:
    """Return the share of a pressure (world axes) that all grasps can carry: at most 1.

    All hands press by the same share, so that the body is not moved by what is left out.
    """
    local = ca.vertcat(
        *(ca.diagcat(R, R).T @ p for R, p in zip(turns, pressure, strict=True)), ca.SX(0, 1)
    )
    share = ca.SX(1)
    for k, most in enumerate(limits.ravel().tolist()):
        size = ca.fabs(local[k])
        if np.isfinite(most):
            share = ca.fmin(share, ca.if_else(size > most, most / size, 1))
    return share
