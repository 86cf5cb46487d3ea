"""Rotations: SO(3), its Lie algebra, exponential, logarithm and their derivatives.

A rotation vector w (3), rad, is axis times angle. All functions take `SX` or `DM` (or anything
NumPy reads) and return the same kind. Values and first derivatives hold at w = 0 and up to |w| = pi
and, where the function itself exists there, beyond.
"""

from __future__ import annotations

import casadi as ca

from framefree.geometry import quaternion
from framefree.geometry.arrays import Matrix, MatrixLike, as_shape, as_vector, from_rows
from framefree.geometry.series import cotangent_ratio, sine_ratios


def wed(w: MatrixLike) -> Matrix:
    """Return the skew matrix (3x3) of w (3): wed(a) b = a x b."""
    w = as_vector(w, 3, "w")
    x, y, z = w[0], w[1], w[2]
    return from_rows([[0, -z, y], [z, 0, -x], [-y, x, 0]])


def vee(W: MatrixLike) -> Matrix:
    """Return w (3) of a skew matrix (3x3): vee(wed(w)) = w. Only the lower triangle is read."""
    W = as_shape(W, (3, 3), "W")
    return ca.vertcat(W[2, 1], -W[2, 0], W[1, 0])


def exp(w: MatrixLike) -> Matrix:
    """Return the rotation (3x3) by |w| about w (3): the matrix exponential of wed(w)."""
    w = as_vector(w, 3, "w")
    a, b, _ = sine_ratios(ca.sumsqr(w))
    return skew_polynomial(w, a, b)


def log(R: MatrixLike) -> Matrix:
    """Return the rotation vector w (3), |w| <= pi, with exp(w) = R (3x3).

    At a half turn w and -w are the same rotation; the one is returned whose first component
    (beyond rounding, see `quaternion`) is positive. There log is discontinuous, and the derivative
    is that of the branch returned.
    """
    return quaternion.log(quaternion.scaled_from_rotation(R))


def left_jacobian(w: MatrixLike) -> Matrix:
    """Return J (3x3): d/dt exp(w) = wed(J(w) dw/dt) exp(w). Also the integral of exp(s w), 0..1."""
    w = as_vector(w, 3, "w")
    _, b, c = sine_ratios(ca.sumsqr(w))
    return skew_polynomial(w, b, c)


def right_jacobian(w: MatrixLike) -> Matrix:
    """Return J (3x3): d/dt exp(w) = exp(w) wed(J(w) dw/dt)."""
    return left_jacobian(-as_vector(w, 3, "w"))


def left_jacobian_inverse(w: MatrixLike) -> Matrix:
    """Return the inverse (3x3) of `left_jacobian(w)`; infinite at full turns, |w| = 2 pi k."""
    w = as_vector(w, 3, "w")
    return skew_polynomial(w, -0.5, cotangent_ratio(ca.sumsqr(w)))


def right_jacobian_inverse(w: MatrixLike) -> Matrix:
    """Return the inverse (3x3) of `right_jacobian(w)`; it is infinite at full turns."""
    return left_jacobian_inverse(-as_vector(w, 3, "w"))


def skew_polynomial(w: Matrix, a: Matrix, b: Matrix) -> Matrix:
    """Return I + a wed(w) + b wed(w)^2 (3x3), written out so that nothing is computed twice."""
    ax, ay, az = a * w[0], a * w[1], a * w[2]
    bx, by, bz = b * w[0], b * w[1], b * w[2]
    xx, yy, zz = bx * w[0], by * w[1], bz * w[2]
    xy, xz, yz = bx * w[1], bx * w[2], by * w[2]
    return from_rows(
        [
            [1 - (yy + zz), xy - az, xz + ay],
            [xy + az, 1 - (xx + zz), yz - ax],
            [xz - ay, yz + ax, 1 - (xx + yy)],
        ]
    )
