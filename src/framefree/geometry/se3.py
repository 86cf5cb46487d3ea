"""Poses: SE(3), twists and wrenches.

A pose G_ab = [R r; 0 1] (4x4) gives frame b seen from frame a, G_ac = G_ab G_bc. A twist
xi = (v, w) (6) is body-fixed and linear first, dG/dt = G wed(xi), in m/s and rad/s.
"""

from __future__ import annotations

import casadi as ca

from framefree.geometry import so3
from framefree.geometry.arrays import (
    MATRIX3,
    MATRIX4,
    VECTOR3,
    VECTOR6,
    GeometryError,
    Matrix,
    MatrixLike,
    as_shape,
    from_rows,
    traced,
)
from framefree.geometry.series import cotangent_ratio, sine_ratios


@traced(MATRIX3, VECTOR3)
def pose(R: MatrixLike, r: MatrixLike) -> Matrix:
    """Return G = [R r; 0 1] (4x4) of a rotation (3x3) and a position (3), m."""
    return from_rows([[R, r], [0, 0, 0, 1]])


@traced(MATRIX4)
def rotation(G: MatrixLike) -> Matrix:
    """Return R (3x3) of G = [R r; 0 1]."""
    return G[:3, :3]


@traced(MATRIX4)
def position(G: MatrixLike) -> Matrix:
    """Return r (3), m, of G = [R r; 0 1]."""
    return G[:3, 3]


def compose(*poses: MatrixLike) -> Matrix:
    """Return G_1 G_2 ... (4x4): compose(G_ab, G_bc) = G_ac. The last rows are taken as 0 0 0 1."""
    if not poses:
        raise GeometryError("`compose` needs at least one pose, got none")
    result = as_shape(poses[0], MATRIX4, "poses[0]")
    for G in poses[1:]:
        result = compose_two(result, G)
    return result


@traced(MATRIX4, MATRIX4)
def compose_two(A: MatrixLike, B: MatrixLike) -> Matrix:
    """Return A B (4x4) of two poses."""
    R = rotation(A)
    return pose(R @ rotation(B), R @ position(B) + position(A))


@traced(MATRIX4)
def inverse(G: MatrixLike) -> Matrix:
    """Return G^-1 = [R^T, -R^T r; 0 1] (4x4): inverse(G_ab) = G_ba."""
    R, r = rotation(G), position(G)
    return pose(R.T, -(R.T @ r))


@traced(MATRIX4)
def adjoint(G: MatrixLike) -> Matrix:
    """Return Ad_G = [R, wed(r) R; 0, R] (6x6): G wed(xi) G^-1 = wed(Ad_G xi)."""
    R, r = rotation(G), position(G)
    return from_rows([[R, so3.wed(r) @ R], [ca.DM.zeros(3, 3), R]])


@traced(VECTOR6)
def little_adjoint(xi: MatrixLike) -> Matrix:
    """Return ad_xi = [wed(w), wed(v); 0, wed(w)] (6x6): d/dt Ad_G = Ad_G ad_xi."""
    v, w = xi[:3], xi[3:]
    V, W = so3.wed(v), so3.wed(w)
    return from_rows([[W, V], [ca.DM.zeros(3, 3), W]])


@traced(VECTOR6)
def wed(xi: MatrixLike) -> Matrix:
    """Return [wed(w), v; 0 0] (4x4) of a twist xi = (v, w) (6)."""
    v, w = xi[:3], xi[3:]
    return from_rows([[so3.wed(w), v], [0, 0, 0, 0]])


@traced(MATRIX4)
def vee(X: MatrixLike) -> Matrix:
    """Return xi (6) of X (4x4): vee(wed(xi)) = xi. Of the skew block the lower half is read."""
    return ca.vertcat(X[:3, 3], so3.vee(X[:3, :3]))


@traced(VECTOR6)
def exp(xi: MatrixLike) -> Matrix:
    """Return the pose (4x4) reached from the identity by moving with twist xi (6) for unit time.

    R = exp(w), r = left_jacobian(w) v: the matrix exponential of wed(xi).
    """
    v, w = xi[:3], xi[3:]
    a, b, c = sine_ratios(ca.sumsqr(w))
    W = so3.wed(w)
    return pose(so3.skew_polynomial(w, a, b), v + W @ (b * v + c * (W @ v)))


@traced(MATRIX4)
def log(G: MatrixLike) -> Matrix:
    """Return the twist xi = (v, w) (6), |w| <= pi, with exp(xi) = G (4x4).

    At a half turn w and -w are equally valid; `so3.log` says which is taken.
    """
    R, r = rotation(G), position(G)
    w = so3.log(R)
    W = so3.wed(w)
    v = r + W @ (cotangent_ratio(ca.sumsqr(w)) * (W @ r) - r / 2)
    return ca.vertcat(v, w)


@traced(MATRIX4, MATRIX4)
def pose_error(G: MatrixLike, G_desired: MatrixLike) -> Matrix:
    """Return e = (r_d - r, log(R^T R_d)) (6), m and rad: what is still to go from G to G_desired.

    The first half is in the axes of the common frame, the second in those of either body (log has
    the same components in both). With world-axes velocities v, w and v_d, w_d:

        d/dt e = (v_d - v, right_jacobian_inverse(e_R) w_e),    w_e = R_d^T (w_d - w)

    and d/dt |e_R|^2 / 2 = e_R . w_e. Zero only at G = G_desired; discontinuous at half turns.
    """
    R, R_desired = rotation(G), rotation(G_desired)
    return ca.vertcat(position(G_desired) - position(G), so3.log(R.T @ R_desired))
