"""What the maximal formulation needs of a joint: its pose, step, bias, and its coordinates."""

from collections.abc import Callable
from typing import Any

import casadi as ca
import numpy as np

from framefree.geometry import quaternion, se3
from framefree.machine.joints import (
    Continuous,
    Cylindrical,
    Fixed,
    Free,
    Helical,
    JointKind,
    Locked,
    Planar,
    Prismatic,
    Revolute,
    Spherical,
    Universal,
)
from framefree.machine.values import constant_pose
from framefree.motion.spatial import Matrix, Step, Twist
from framefree.motion.tree.links import Link


def joint_pose(link: Link, parent: Matrix | None, own: Matrix) -> Matrix:
    """Pose (4x4) that a joint has, in link axes, from its links' poses; parent None: the world."""
    on_parent = own if parent is None else se3.compose(se3.inverse(parent), own)
    return se3.compose(se3.inverse(link.start), on_parent)


def joint_step(link: Link, G: Matrix, x: Matrix) -> Step:
    """Pose of a link on its parent's: turned as the bodies are, placed as the joint allows.

    G is the joint's pose as the bodies have it, x the machine's joint coordinates.
    """
    R0, r0, R = se3.rotation(link.start), se3.position(link.start), se3.rotation(G)
    if isinstance(link.kind, Prismatic):
        return Step(R0, r0 + R0[:, 2] * x[link.x])
    if link.turned_to_z:
        return Step(R0, r0, (R[0, 0], R[1, 0]))
    known = link.kind.pose(x[link.x])
    if not has_coordinates(link.kind) or not link.kind.nx:
        R = se3.rotation(known)
    return Step(R0 @ R, r0 + R0 @ se3.position(known))


def joint_bias(link: Link, carried: Twist, relative: Twist, x: Matrix, v: Matrix) -> Matrix:
    """Bias b (6): a_i = X_i a_p + b + S y in link axes, with X_i a_p the acceleration carried here.

    Its part along N is gamma of the joint's rows: N^T dS v stands for -(dN/dt)^T xi, which is the
    same where the joint holds.
    """
    bias = carried.cross(relative).vector
    return bias if link.constant_subspace else bias + link.subspace_bias(x, v).vector


# ------------------------------------------------------------------ coordinates from a pose


def coordinates(kind: JointKind, R: Matrix, r: Matrix, kept: Matrix) -> Matrix:
    """Return x (nx) of the joint whose pose has rotation R and position r.

    `kept` are the values of the `kept_coordinates`. Of an angle only its number of full turns is
    taken from them, the rest from the pose. For joints with one axis alone R and r are in link
    axes, where that axis is z (see `links`).
    """
    if not has_coordinates(kind):
        return kept
    x = ca.SX(_COORDINATES[type(kind)](kind, R, r))
    for place, k in enumerate(kept_coordinates(kind)):
        x[k] = _next_to(kept[place], x[k])
    return x


def has_coordinates(kind: JointKind) -> bool:
    """Tell whether a pose determines coordinates of this kind by a formula known here."""
    return type(kind) in _COORDINATES


def kept_coordinates(kind: JointKind) -> tuple[int, ...]:
    """Return which coordinates a pose does not determine, or only up to full turns.

    The travel of a screw tells its turns.
    """
    if not has_coordinates(kind):
        return tuple(range(kind.nx))
    if isinstance(kind, Helical):
        return () if isinstance(kind.pitch, ca.SX) or kind.pitch != 0 else (0,)
    return _ANGLES.get(type(kind), ())


def _next_to(value: Matrix, angle: Matrix) -> Matrix:
    """Return the angle with as many full turns as bring it next to a value."""
    return angle + 2 * np.pi * ca.floor((value - angle) / (2 * np.pi) + 0.5)


def _none(kind: Any, R: Matrix, r: Matrix) -> Matrix:
    return ca.SX(0, 1)


def _revolute(kind: Any, R: Matrix, r: Matrix) -> Matrix:
    return ca.atan2(R[1, 0], R[0, 0])


def _continuous(kind: Any, R: Matrix, r: Matrix) -> Matrix:
    return ca.vertcat(R[0, 0], R[1, 0])


def _prismatic(kind: Any, R: Matrix, r: Matrix) -> Matrix:
    return r[2]


def _helical(kind: Any, R: Matrix, r: Matrix) -> Matrix:
    angle = _angle(kind.axis, R)
    if not isinstance(kind.pitch, ca.SX) and kind.pitch == 0:
        return angle
    return _next_to(ca.dot(constant_pose(kind.axis), r) / kind.pitch, angle)


def _cylindrical(kind: Any, R: Matrix, r: Matrix) -> Matrix:
    return ca.vertcat(ca.dot(constant_pose(kind.axis), r), _angle(kind.axis, R))


def _universal(kind: Any, R: Matrix, r: Matrix) -> Matrix:
    first, second = constant_pose(kind.axis1), constant_pose(kind.axis2)
    # R axis2 is axis2 turned by x[0] about axis1; R^T axis1 is axis1 turned by -x[1] about axis2.
    return ca.vertcat(
        _turn(kind.axis1, kind.axis2, R @ second), -_turn(kind.axis2, kind.axis1, R.T @ first)
    )


def _planar(kind: Any, R: Matrix, r: Matrix) -> Matrix:
    cosine, sine = _cos_sin(kind.normal, R)
    return ca.vertcat(constant_pose(kind.basis[:, :2]).T @ r, cosine, sine)


def _spherical(kind: Any, R: Matrix, r: Matrix) -> Matrix:
    return quaternion.from_rotation(R)


def _free(kind: Any, R: Matrix, r: Matrix) -> Matrix:
    return ca.vertcat(r, quaternion.from_rotation(R))


def _cos_sin(axis: np.ndarray, R: Matrix) -> tuple[Matrix, Matrix]:
    """Cosine and sine of the angle of a rotation about a known axis."""
    twice = ca.vertcat(R[2, 1] - R[1, 2], R[0, 2] - R[2, 0], R[1, 0] - R[0, 1])
    return (ca.trace(R) - 1) / 2, ca.dot(constant_pose(axis), twice) / 2


def _angle(axis: np.ndarray, R: Matrix) -> Matrix:
    cosine, sine = _cos_sin(axis, R)
    return ca.atan2(sine, cosine)


def _turn(axis: np.ndarray, start: np.ndarray, end: Matrix) -> Matrix:
    """Angle about `axis` that turns the direction `start` into `end`."""
    across = start - axis * (axis @ start)
    return ca.atan2(
        ca.dot(constant_pose(np.cross(axis, across)), end), ca.dot(constant_pose(across), end)
    )


_COORDINATES: dict[type, Callable[[Any, Matrix, Matrix], Matrix]] = {
    Fixed: _none,
    Locked: _none,
    Revolute: _revolute,
    Continuous: _continuous,
    Prismatic: _prismatic,
    Helical: _helical,
    Cylindrical: _cylindrical,
    Universal: _universal,
    Planar: _planar,
    Spherical: _spherical,
    Free: _free,
}

_ANGLES: dict[type, tuple[int, ...]] = {Revolute: (0,), Cylindrical: (1,), Universal: (0, 1)}
"""Coordinates that are angles and count full turns."""
