"""Turning about and sliding along a fixed axis: the pieces of the one-axis joints."""

from typing import Any

import casadi
import numpy as np

from framefree.geometry import so3
from framefree.machine.values import constant_pose


def rotation_about(axis: np.ndarray, cosine: Any, sine: Any) -> Any:
    """Rotation (3x3) about a unit axis: a a' + cos (I - a a') + sin wed(a)."""
    along = constant_pose(np.outer(axis, axis))
    across = constant_pose(np.eye(3) - np.outer(axis, axis))
    return along + cosine * across + sine * so3.wed(constant_pose(axis))


def linear(axis: np.ndarray) -> casadi.DM:
    """Return the unit twist (6) of sliding along an axis."""
    return casadi.vertcat(constant_pose(axis), casadi.DM.zeros(3))


def angular(axis: np.ndarray) -> casadi.DM:
    """Return the unit twist (6) of turning about an axis through the origin."""
    return casadi.vertcat(casadi.DM.zeros(3), constant_pose(axis))
