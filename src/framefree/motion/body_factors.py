"""Factors of the gyroscopic wrench of a body: 6x6 matrices Gam, ``Gam xi = -ad_xi^T M xi``."""

from collections.abc import Callable

import casadi as ca

from framefree.geometry import se3
from framefree.motion.spatial import Matrix, wed


def kirchhoff_matrix(momentum: Matrix) -> Matrix:
    """Return ``W(p, l) = [0, wed(p); wed(p), wed(l)]``: W(h) xi = ad_xi^T h."""
    p, l = wed(momentum[:3]), wed(momentum[3:])
    return ca.blockcat([[ca.SX(3, 3), p], [p, l]])


def _skew(M: Matrix, xi: Matrix) -> Matrix:
    ad = se3.little_adjoint(xi)
    return (M @ ad - ad.T @ M - kirchhoff_matrix(M @ xi)) / 2


def _kirchhoff(M: Matrix, xi: Matrix) -> Matrix:
    return -kirchhoff_matrix(M @ xi)


def _adjoint(M: Matrix, xi: Matrix) -> Matrix:
    return -se3.little_adjoint(xi).T @ M


BODY_FACTORS: dict[str, Callable[[Matrix, Matrix], Matrix]] = {
    "skew": _skew,
    "kirchhoff": _kirchhoff,
    "adjoint": _adjoint,
}
"""Name to the 6x6 matrix Gam(M, xi) with ``Gam xi = -ad_xi^T M xi`` of one body."""
