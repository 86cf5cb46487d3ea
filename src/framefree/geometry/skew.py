"""The operators wed and vee on 3-vectors, the lowest layer; `so3` offers them by its name."""

from __future__ import annotations

import casadi as ca

from framefree.geometry.arrays import MATRIX3, VECTOR3, Matrix, MatrixLike, from_rows, traced


@traced(VECTOR3)
def wed(w: MatrixLike) -> Matrix:
    """Return the skew matrix (3x3) of w (3): wed(a) b = a x b."""
    x, y, z = w[0], w[1], w[2]
    return from_rows([[0, -z, y], [z, 0, -x], [-y, x, 0]])


@traced(MATRIX3)
def vee(W: MatrixLike) -> Matrix:
    """Return w (3) of a skew matrix (3x3): vee(wed(w)) = w. Only the lower triangle is read."""
    return ca.vertcat(W[2, 1], -W[2, 0], W[1, 0])
