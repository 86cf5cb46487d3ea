"""Euler angles, for people and for files that hold them. Nothing inside framefree uses them.

A sequence such as "xyz" names the axes of three successive turns, about the axes of the fixed
frame or of the moving one. The default, fixed "xyz", is roll, pitch, yaw as in URDF. Every sequence
has attitudes at which two of its axes are parallel and the angles are not determined.
"""

from __future__ import annotations

from dataclasses import dataclass

import casadi as ca
import numpy as np

from framefree.geometry.arrays import (
    GeometryError,
    Matrix,
    MatrixLike,
    as_shape,
    from_rows,
)

SINGULAR_MARGIN = 1e-8


@dataclass(frozen=True, slots=True, eq=False)
class EulerAngles:
    """Three angles, and how far they are from the singularity of their sequence.

    Attributes
    ----------
    angles
        The three angles (3), rad, in the order of `axes`.
    axes, fixed
        The sequence, as for `to_rotation`.
    margin
        Sine of the angle between the first and the third axis, or for three different axes the
        cosine of the second angle: 1 at best, 0 at the singularity. Errors of the matrix are
        multiplied by 1 / margin in the first and third angle.
    singular
        Whether `margin` is below 1e-8. Then only the sum or difference of the first and third
        angle means anything, and the one of the turn nearest the body is returned as zero.
    """

    angles: np.ndarray
    axes: str
    fixed: bool
    margin: float
    singular: bool


def to_rotation(angles: MatrixLike, axes: str = "xyz", fixed: bool = True) -> Matrix:
    """Return R (3x3) = R_3 R_2 R_1 for turns R_i about fixed axes, R_1 R_2 R_3 for moving ones.

    Parameters
    ----------
    angles
        Three angles (3), rad.
    axes
        Three letters of x, y, z, no two neighbours equal.
    fixed
        Whether all turns are about axes of the fixed frame, or each about the moved frame.
    """
    _axis_numbers(axes)
    angles = as_shape(angles, (3, 1), "angles")
    first, second, third = (_turn(axis, angles[i]) for i, axis in enumerate(axes))
    return third @ second @ first if fixed else first @ second @ third


def from_rotation(R: MatrixLike, axes: str = "xyz", fixed: bool = True) -> EulerAngles:
    """Return the angles of a rotation matrix (3x3) of numbers: to_rotation(angles) = R.

    The second angle lies in [-pi/2, pi/2] for three different axes and in [0, pi] otherwise.
    """
    matrix = as_shape(R, (3, 3), "R")
    if isinstance(matrix, ca.SX):
        raise GeometryError("`R` must hold numbers: Euler angles are not for expressions")
    M = np.array(matrix)
    # Turns about fixed axes are those about moving axes in the opposite order.
    i, j, k = _axis_numbers(axes[::-1] if fixed else axes)
    other = 3 - i - j
    sign = 1.0 if (j - i) % 3 == 1 else -1.0
    proper = i == k
    # Column k, the third axis of the sequence seen from the frame, is free of the third turn.
    sine, cosine = (M[j, i], -sign * M[other, i]) if proper else (-sign * M[j, k], M[k, k])
    margin = float(np.hypot(sine, cosine))
    singular = margin < SINGULAR_MARGIN
    if singular:
        sine, cosine = sign * M[other, j], M[j, j]
    first = np.arctan2(sine, cosine)
    # Taking the first turn off keeps the whole matrix right when the first angle is uncertain.
    M = np.array(_turn("xyz"[i], ca.DM(first))).T @ M
    if proper:
        second = np.arctan2(-sign * M[other, i], M[i, i])
        third = np.arctan2(-sign * M[j, other], M[j, j])
    else:
        second = np.arctan2(sign * M[i, k], M[k, k])
        third = np.arctan2(sign * M[j, i], M[j, j])
    if singular:
        third = 0.0
    angles = np.array([first, second, third])
    return EulerAngles(angles[::-1].copy() if fixed else angles, axes, fixed, margin, singular)


def _axis_numbers(axes: str) -> tuple[int, int, int]:
    valid = len(axes) == 3 and set(axes) <= set("xyz") and axes[0] != axes[1] != axes[2]
    if not valid:
        raise GeometryError(
            f"`axes` must be three letters of x, y, z with no two neighbours equal, got {axes!r}"
        )
    i, j, k = ("xyz".index(letter) for letter in axes)
    return i, j, k


def _turn(axis: str, angle: Matrix) -> Matrix:
    """Return the rotation (3x3) by `angle` about a coordinate axis."""
    c, s = ca.cos(angle), ca.sin(angle)
    if axis == "x":
        return from_rows([[1, 0, 0], [0, c, -s], [0, s, c]])
    if axis == "y":
        return from_rows([[c, 0, s], [0, 1, 0], [-s, 0, c]])
    return from_rows([[c, -s, 0], [s, c, 0], [0, 0, 1]])
