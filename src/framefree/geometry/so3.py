"""Rotations: SO(3), its Lie algebra, exponential, logarithm and their derivatives.

A rotation vector w (3), rad, is axis times angle. All functions take `SX` or `DM` (or anything
NumPy reads) and return the same kind. Values and first derivatives hold at w = 0 and up to |w| = pi
and, where the function itself exists there, beyond.
"""

from __future__ import annotations

import casadi as ca
import numpy as np

from framefree.geometry import quaternion
from framefree.geometry.arrays import (
    MATRIX3,
    MATRIX4,
    SCALAR,
    VECTOR3,
    Matrix,
    MatrixLike,
    as_shape,
    from_rows,
    traced,
)
from framefree.geometry.operators import vee2
from framefree.geometry.series import cotangent_ratio, sine_ratios
from framefree.geometry.skew import vee, wed

__all__ = [
    "exp",
    "left_jacobian",
    "left_jacobian_inverse",
    "log",
    "nearest_rotation",
    "right_jacobian",
    "right_jacobian_inverse",
    "skew_polynomial",
    "vee",
    "wed",
]

# Enough for `nearest_rotation` to tell two eigenvalues apart that differ by one part in 10^6.
SQUARINGS = 30


@traced(VECTOR3)
def exp(w: MatrixLike) -> Matrix:
    """Return the rotation (3x3) by |w| about w (3): the matrix exponential of wed(w)."""
    a, b, _ = sine_ratios(ca.sumsqr(w))
    return skew_polynomial(w, a, b)


@traced(MATRIX3)
def log(R: MatrixLike) -> Matrix:
    """Return the rotation vector w (3), |w| <= pi, with exp(w) = R (3x3).

    At a half turn w and -w are the same rotation; the one is returned whose first component
    (beyond rounding, see `quaternion`) is positive. There log is discontinuous, and the derivative
    is that of the branch returned.
    """
    return quaternion.log(quaternion.scaled_from_rotation(R))


@traced(VECTOR3)
def left_jacobian(w: MatrixLike) -> Matrix:
    """Return J (3x3): d/dt exp(w) = wed(J(w) dw/dt) exp(w). Also the integral of exp(s w), 0..1."""
    _, b, c = sine_ratios(ca.sumsqr(w))
    return skew_polynomial(w, b, c)


@traced(VECTOR3)
def right_jacobian(w: MatrixLike) -> Matrix:
    """Return J (3x3): d/dt exp(w) = exp(w) wed(J(w) dw/dt)."""
    return left_jacobian(-w)


@traced(VECTOR3)
def left_jacobian_inverse(w: MatrixLike) -> Matrix:
    """Return the inverse (3x3) of `left_jacobian(w)`; infinite at full turns, |w| = 2 pi k."""
    return skew_polynomial(w, -0.5, cotangent_ratio(ca.sumsqr(w)))


@traced(VECTOR3)
def right_jacobian_inverse(w: MatrixLike) -> Matrix:
    """Return the inverse (3x3) of `right_jacobian(w)`; it is infinite at full turns."""
    return left_jacobian_inverse(-w)


def nearest_rotation(Q: MatrixLike) -> Matrix:
    """Return the rotation R (3x3) nearest to Q (3x3): it minimises sum of (R - Q)_ij^2.

    It exists for every Q, also of negative determinant. With singular values s1 >= s2 >= s3 it is
    unique iff s2 + sign(det Q) s3 > 0; otherwise one of the nearest is returned (the identity
    for Q = 0), and the derivative means nothing.

    The quaternion of R is the top eigenvector of a symmetric matrix linear in Q [Davenport1968].
    As an expression it is sharp while s2 + sign(det Q) s3 > 1e-5 s1; for numbers it always is.
    """
    Q = as_shape(Q, MATRIX3, "Q")
    size = ca.sum(ca.fabs(Q))
    Q = Q / ca.if_else(size > 0, size, 1)
    K = _davenport_matrix(Q)
    numeric = isinstance(K, ca.DM) and K.is_regular()
    projector = _top_projector_of_numbers(K) if numeric else _top_projector(K)
    return quaternion.to_rotation(quaternion.normalise(quaternion.dominant_column(projector)))


@traced(MATRIX3)
def _davenport_matrix(Q: Matrix) -> Matrix:
    """Return K (4x4) with q . K q = tr(R^T Q) for the rotation R of every unit quaternion q.

    No eigenvalue exceeds the sum of |Q_ij| in size.
    """
    z, trace = vee2(Q), Q[0, 0] + Q[1, 1] + Q[2, 2]
    return from_rows([[trace, z.T], [z, Q + Q.T - trace * ca.DM(np.eye(3))]])


@traced(MATRIX4)
def _top_projector(K: Matrix) -> Matrix:
    """Return the projector (4x4), up to a factor, onto the eigenvectors of top eigenvalue.

    An expression has no eigenvalue solver, but the powers of K + I, found by squaring, tend to
    the projector, if no eigenvalue exceeds 1 in size.
    """
    power = K + ca.DM(np.eye(4))
    for _ in range(SQUARINGS):
        power = ca.triu2symm(ca.triu(power @ power))
        power = power / (power[0, 0] + power[1, 1] + power[2, 2] + power[3, 3])
    return power


def _top_projector_of_numbers(K: ca.DM) -> ca.DM:
    values, vectors = np.linalg.eigh(np.array(K))
    top = vectors[:, values > values[-1] - 1e-15]
    return ca.DM(top @ top.T)


@traced(VECTOR3, SCALAR, SCALAR)
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
