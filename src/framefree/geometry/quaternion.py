"""Unit quaternions, stored wxyz: q = (cos(t/2), sin(t/2) a) turns by t about the unit axis a.

q and -q are the same rotation. Functions that choose, choose the *shortest branch*: q_w >= 0.
At a half turn, |q_w| <= `HALF_TURN` |q|, the first of x, y, z whose size exceeds that bound
is positive; so all matrices that are one half turn up to rounding give one quaternion.
"""

from __future__ import annotations

import casadi as ca

from framefree.geometry.arrays import (
    MATRIX3,
    MATRIX4,
    VECTOR3,
    VECTOR4,
    Matrix,
    MatrixLike,
    from_rows,
    traced,
)
from framefree.geometry.series import arctangent_ratio, half_angle_ratios
from framefree.rounding import rounding

HALF_TURN = rounding(2e-15)


@traced(VECTOR4)
def to_rotation(q: MatrixLike) -> Matrix:
    """Return R (3x3) with R b = vector part of q (0, b) q*, for a unit quaternion (4)."""
    w, x, y, z = q[0], q[1], q[2], q[3]
    xx, yy, zz = 2 * x * x, 2 * y * y, 2 * z * z
    xy, xz, yz = 2 * x * y, 2 * x * z, 2 * y * z
    wx, wy, wz = 2 * w * x, 2 * w * y, 2 * w * z
    return from_rows(
        [
            [1 - (yy + zz), xy - wz, xz + wy],
            [xy + wz, 1 - (xx + zz), yz - wx],
            [xz - wy, yz + wx, 1 - (xx + yy)],
        ]
    )


@traced(MATRIX3)
def from_rotation(R: MatrixLike) -> Matrix:
    """Return the unit quaternion (4) of a rotation matrix, on the shortest branch.

    The largest of the four components is found first and divides the others, so that no digit is
    lost at any angle.
    """
    q = scaled_from_rotation(R)
    size = ca.sqrt(ca.sumsqr(q))
    return _shortest_sign(q, size) * q / size


@traced(MATRIX3)
def scaled_from_rotation(R: MatrixLike) -> Matrix:
    """Return 4 q_i q (4), q_i the component of largest size: the quaternion, unnormalised.

    These are the columns of 4 q q^T, which is linear in R.
    """
    xx, yy, zz = R[0, 0], R[1, 1], R[2, 2]
    wx, wy, wz = R[2, 1] - R[1, 2], R[0, 2] - R[2, 0], R[1, 0] - R[0, 1]
    xy, xz, yz = R[0, 1] + R[1, 0], R[0, 2] + R[2, 0], R[1, 2] + R[2, 1]
    return dominant_column(
        from_rows(
            [
                [1 + xx + yy + zz, wx, wy, wz],
                [wx, 1 + xx - yy - zz, xy, xz],
                [wy, xy, 1 - xx + yy - zz, yz],
                [wz, xz, yz, 1 - xx - yy + zz],
            ]
        )
    )


@traced(MATRIX4)
def dominant_column(K: Matrix) -> Matrix:
    """Return the column (4) of K (4x4) whose diagonal entry is largest, the first of equals."""
    best, largest = K[:, 0], K[0, 0]
    for i in (1, 2, 3):
        better = K[i, i] > largest
        best = ca.if_else(better, K[:, i], best)
        largest = ca.if_else(better, K[i, i], largest)
    return best


@traced(VECTOR4, VECTOR4)
def product(p: MatrixLike, q: MatrixLike) -> Matrix:
    """Return p q (4): to_rotation(product(p, q)) = to_rotation(p) to_rotation(q)."""
    a, b, c, d = p[0], p[1], p[2], p[3]
    w, x, y, z = q[0], q[1], q[2], q[3]
    return ca.vertcat(
        a * w - b * x - c * y - d * z,
        a * x + b * w + c * z - d * y,
        a * y - b * z + c * w + d * x,
        a * z + b * y - c * x + d * w,
    )


@traced(VECTOR4)
def conjugate(q: MatrixLike) -> Matrix:
    """Return q* (4), the inverse rotation: product(q, conjugate(q)) = (1, 0, 0, 0)."""
    return ca.vertcat(q[0], -q[1:])


@traced(VECTOR4)
def normalise(q: MatrixLike) -> Matrix:
    """Return q / |q| (4)."""
    return q / ca.sqrt(ca.sumsqr(q))


@traced(VECTOR4, VECTOR3)
def rate(q: MatrixLike, w: MatrixLike) -> Matrix:
    """Return dq/dt = q (0, w) / 2 (4) for the body-fixed angular velocity w (3), rad/s."""
    return product(q, ca.vertcat(0, w / 2))


@traced(VECTOR3)
def exp(w: MatrixLike) -> Matrix:
    """Return the quaternion (4) of the rotation vector w (3), rad; to_rotation(exp(w)) = exp(w)."""
    cosine, sine = half_angle_ratios(ca.sumsqr(w))
    return ca.vertcat(cosine, sine * w)


@traced(VECTOR4)
def log(q: MatrixLike) -> Matrix:
    """Return the rotation vector w (3), |w| <= pi, of a quaternion: exp(log(q)) = q or -q.

    With |v| = sin(t/2) the angle is t = 4 arctan(|v| / (w + |q|)), a form that is accurate and
    smooth from 0 to beyond pi. A scaled quaternion gives the same result.
    """
    size = ca.sqrt(ca.sumsqr(q))
    q = _shortest_sign(q, size) * q
    v = q[1:] / (q[0] + size)
    return 4 * arctangent_ratio(ca.sumsqr(v)) * v


def _shortest_sign(q: Matrix, size: Matrix) -> Matrix:
    """Return the sign, +1 or -1, that takes q to its shortest branch (see the top of the file)."""
    lead = q[3]
    for i in (2, 1, 0):
        lead = ca.if_else(ca.fabs(q[i]) > HALF_TURN * size, q[i], lead)
    return ca.if_else(lead < 0, -1.0, 1.0)
