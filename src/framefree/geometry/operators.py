"""The operators vee2, Vee and Wed, on 3x3 matrices and on the 4x4 matrices of rigid motions.

With <A, B> = tr(A B^T) they carry sums over the points of a body to 3- and 6-vectors:

    <Q, wed(xi)> = xi . vee2(Q),    tr(wed(xi) Q wed(eta)^T) = eta . Vee(Q) xi,    Wed = Vee^-1
"""

from __future__ import annotations

import casadi as ca

from framefree.geometry.arrays import (
    MATRIX3,
    MATRIX4,
    MATRIX6,
    GeometryError,
    Matrix,
    MatrixLike,
    as_matrix,
    from_rows,
    traced,
)
from framefree.geometry.skew import vee, wed


def vee2(Q: MatrixLike) -> Matrix:
    """Return vee(Q - Q^T) (3) of a 3x3 matrix; (b, vee2(A)) (6) of a 4x4 one [A b; . .]."""
    Q = as_matrix(Q)
    if Q.shape == (3, 3):
        return _vee2(Q)
    if Q.shape == (4, 4):
        return ca.vertcat(Q[:3, 3], _vee2(Q[:3, :3]))
    raise GeometryError(f"`vee2` takes a 3x3 or 4x4 matrix, got {Q.shape}")


def Vee(Q: MatrixLike) -> Matrix:
    """Return tr(Q) I - Q (3x3), or [d I, wed(b)^T; wed(c), Vee(A)] (6x6) of [A b; c^T d] (4x4).

    For symmetric Q also vee2(wed(xi) Q) = Vee(Q) xi.
    """
    Q = as_matrix(Q)
    if Q.shape == (3, 3):
        return _Vee3(Q)
    if Q.shape == (4, 4):
        return _Vee4(Q)
    raise GeometryError(f"`Vee` takes a 3x3 or 4x4 matrix, got {Q.shape}")


def Wed(Q: MatrixLike) -> Matrix:
    """Return tr(Q)/2 I - Q (3x3), or [Wed(S), b; c^T d] (4x4) of [d I, wed(b)^T; wed(c), S] (6x6).

    The inverse of `Vee`: Wed(Vee(Q)) = Q.
    """
    Q = as_matrix(Q)
    if Q.shape == (3, 3):
        return _Wed3(Q)
    if Q.shape == (6, 6):
        return _Wed6(Q)
    raise GeometryError(f"`Wed` takes a 3x3 or 6x6 matrix, got {Q.shape}")


@traced(MATRIX3)
def _vee2(Q: Matrix) -> Matrix:
    return ca.vertcat(Q[2, 1] - Q[1, 2], Q[0, 2] - Q[2, 0], Q[1, 0] - Q[0, 1])


@traced(MATRIX3)
def _Vee3(Q: Matrix) -> Matrix:
    x, y, z = Q[0, 0], Q[1, 1], Q[2, 2]
    return _with_diagonal(-Q, y + z, x + z, x + y)


@traced(MATRIX4)
def _Vee4(Q: Matrix) -> Matrix:
    b, c, d = Q[:3, 3], Q[3, :3].T, Q[3, 3]
    return from_rows([[d * ca.DM.eye(3), wed(-b)], [wed(c), _Vee3(Q[:3, :3])]])


@traced(MATRIX3)
def _Wed3(Q: Matrix) -> Matrix:
    x, y, z = Q[0, 0] / 2, Q[1, 1] / 2, Q[2, 2] / 2
    return _with_diagonal(-Q, y + z - x, x + z - y, x + y - z)


@traced(MATRIX6)
def _Wed6(Q: Matrix) -> Matrix:
    b, c, d = -vee(Q[:3, 3:]), vee(Q[3:, :3]), Q[0, 0]
    return from_rows([[_Wed3(Q[3:, 3:]), b], [c.T, d]])


def _with_diagonal(Q: Matrix, x: Matrix, y: Matrix, z: Matrix) -> Matrix:
    return from_rows(
        [[x, Q[0, 1], Q[0, 2]], [Q[1, 0], y, Q[1, 2]], [Q[2, 0], Q[2, 1], z]],
    )
