"""Poses as model files write them."""

from __future__ import annotations

from typing import Any

import numpy as np

from framefree.geometry import batch
from framefree.machine.formats.markup import Place

UNIT = 1e-2
"""Largest deviation from unit length of a quaternion in a file: it may have few digits."""


def origin_of(place: Place) -> np.ndarray | None:
    """Pose (4x4) of an element's <origin>, the identity without one; None if it is broken."""
    element = place.element.first("origin")
    return np.eye(4) if element is None else placed(place.inside(element))


def placed(place: Place) -> np.ndarray | None:
    """Pose (4x4) of the attributes xyz, and rpy or (URDF 1.1) quat_xyzw; None if it is broken."""
    xyz = place.numbers("xyz", 3, (0.0, 0.0, 0.0))
    if "quat_xyzw" not in place.element.attributes:
        rpy = place.numbers("rpy", 3, (0.0, 0.0, 0.0))
        return None if xyz is None or rpy is None else pose_of_rpy(xyz, rpy)
    if place.element.get("rpy") is not None:
        place.problem("`rpy` and `quat_xyzw` both give the rotation; leave one out")
        return None
    xyzw = place.numbers("quat_xyzw", 4, None)
    if xyz is None or xyzw is None:
        return None
    length = float(np.linalg.norm(xyzw))
    if not abs(length - 1.0) <= UNIT:
        place.problem(f"`quat_xyzw` must have unit length, got {length:.6g}")
        return None
    return pose_of_quaternion(xyz, (xyzw[3], *xyzw[:3]))


def pose_of_rpy(xyz: Any, rpy: Any) -> np.ndarray:
    """Pose (4x4) of a position and the turns about fixed x, y, z axes: R = Rz(y) Ry(p) Rx(r)."""
    (cr, cp, cy), (sr, sp, sy) = np.cos(rpy), np.sin(rpy)
    return posed(
        [
            [cy * cp, cy * sp * sr - sy * cr, cy * sp * cr + sy * sr],
            [sy * cp, sy * sp * sr + cy * cr, sy * sp * cr - cy * sr],
            [-sp, cp * sr, cp * cr],
        ],
        xyz,
    )


def rpy_of_rotation(R: np.ndarray) -> np.ndarray:
    """Return the turns (3), rad, about fixed x, y, z axes with R = Rz(y) Ry(p) Rx(r), |p| <= pi/2.

    Roll and pitch are read from Rz(-y) R, so that they compensate errors of the yaw. Near
    p = +-pi/2, where roll and yaw turn about one axis, R is then still met to all digits.
    """
    yaw = np.arctan2(R[1, 0], R[0, 0])
    c, s = np.cos(yaw), np.sin(yaw)
    pitch = np.arctan2(-R[2, 0], c * R[0, 0] + s * R[1, 0])
    roll = np.arctan2(s * R[0, 2] - c * R[1, 2], c * R[1, 1] - s * R[0, 1])
    return np.array([roll, pitch, yaw])


def pose_of_quaternion(position: Any, wxyz: Any) -> np.ndarray:
    """Pose (4x4) of a position and a quaternion wxyz of any length but zero."""
    unit = np.asarray(wxyz, float) / np.linalg.norm(wxyz)
    return posed(batch.rotation(unit), position)


def quaternion_of_rotation(R: np.ndarray) -> np.ndarray:
    """Return the unit quaternion wxyz of a rotation (3x3), from the largest of its components."""
    xx, yy, zz = np.diag(R)
    squares = np.array([1 + xx + yy + zz, 1 + xx - yy - zz, 1 - xx + yy - zz, 1 - xx - yy + zz])
    i = int(np.argmax(squares))
    w = np.array([R[2, 1] - R[1, 2], R[0, 2] - R[2, 0], R[1, 0] - R[0, 1]])
    if i == 0:
        q = np.array([squares[0], *w])
    else:
        q = np.array([w[i - 1], *(R[i - 1] + R[:, i - 1])])
        q[i] = squares[i]
    return q / np.linalg.norm(q)


def posed(rotation: Any, position: Any) -> np.ndarray:
    """Pose (4x4) of a rotation (3x3) and a position (3)."""
    pose = np.eye(4)
    pose[:3, :3] = rotation
    pose[:3, 3] = position
    return pose


def inverse(pose: np.ndarray) -> np.ndarray:
    """Inverse of a pose: [R^T, -R^T r; 0 1]."""
    R = pose[:3, :3]
    return posed(R.T, -R.T @ pose[:3, 3])
