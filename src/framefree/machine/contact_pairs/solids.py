"""Signed distances of points from solids, positive outside, with their slopes.

Outside a box or cylinder the distance is that of the nearest point. Inside, with the distances
m_i > 0 from all faces, it is the smooth least (sum m_i^-8)^(-1/8), negative: nearer to one face
than to the others it is the distance from that face. Its slope is continuous on all faces.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import casadi

from framefree.machine.contact_pairs.base import (
    NEAR,
    Matrix,
    half_sizes,
    round_sizes,
    sign_of,
)


class SignedDistance(NamedTuple):
    """Distance of a point from a solid.

    Attributes
    ----------
    distance : scalar
        m, negative inside.
    gradient : (3,)
        Its slope.
    """

    distance: Matrix
    gradient: Matrix


Solid = Callable[[Matrix], SignedDistance]
"""From a point in the solid's own axes to its distance."""


def box(size: Any) -> Solid:
    """Return the signed distance from a box with the given edges."""
    half = half_sizes(size)
    return box_of_halves(casadi.SX(half), float(half.min()))


def box_of_halves(half: Matrix, smallest: float) -> Solid:
    """Return the signed distance from a box with the given half edges and the smallest of them."""

    def distance(p: Matrix) -> SignedDistance:
        margins = [half[i] - casadi.fabs(p[i]) for i in range(3)]
        value, slopes = _from_margins(margins, smallest)
        return SignedDistance(
            value, casadi.vertcat(*(-slopes[i] * sign_of(p[i]) for i in range(3)))
        )

    return distance


def cylinder(size: Any) -> Solid:
    """Return the signed distance from a cylinder about z, of radius and length."""
    radius, half = round_sizes(size)

    def distance(p: Matrix) -> SignedDistance:
        far = casadi.sqrt(p[0] ** 2 + p[1] ** 2 + (NEAR * radius) ** 2)
        margins = [radius - far, half - casadi.fabs(p[2])]
        value, (across, along) = _from_margins(margins, min(radius, half))
        outward = -across / far
        gradient = casadi.vertcat(outward * p[0], outward * p[1], -along * sign_of(p[2]))
        return SignedDistance(value, gradient)

    return distance


def capsule(size: Any) -> Solid:
    """Return the signed distance from a capsule about z; of a sphere with length zero."""
    radius, half = round_sizes(size)

    def distance(p: Matrix) -> SignedDistance:
        along = casadi.fmin(casadi.fmax(p[2], -half), half)
        way = casadi.vertcat(p[0], p[1], p[2] - along)
        far = casadi.sqrt(casadi.sumsqr(way) + (NEAR * radius) ** 2)
        return SignedDistance(far - radius, way / far)

    return distance


def disk(size: Any) -> Solid:
    """Return the distance from a disk without thickness: the same on both sides."""
    radius = float(size[0])

    def distance(p: Matrix) -> SignedDistance:
        across = casadi.sqrt(p[0] ** 2 + p[1] ** 2 + (NEAR * radius) ** 2)
        beyond = casadi.fmax(across - radius, 0)
        far = casadi.sqrt(beyond**2 + p[2] ** 2 + (NEAR * radius) ** 2)
        outward = beyond / (far * across)
        return SignedDistance(far, casadi.vertcat(outward * p[0], outward * p[1], p[2] / far))

    return distance


def _from_margins(margins: list[Matrix], size: float) -> tuple[Matrix, list[Matrix]]:
    """Return the distance from faces at the given margins inside, and its slopes by these."""
    outside = [casadi.fmax(-m, 0) for m in margins]
    far = casadi.sqrt(sum(o * o for o in outside) + (NEAR * size) ** 2)
    within = [casadi.fmax(m, 0) + NEAR**2 * size for m in margins]
    least = within[0]
    for m in within[1:]:
        least = casadi.fmin(least, m)
    ratios = [least / m for m in within]
    scale = 1 / _eighth_root(sum(_eighth(r) for r in ratios))
    inside = least * scale
    deep = casadi.mmin(casadi.vertcat(*margins)) >= 0
    slopes = []
    for o, r in zip(outside, ratios, strict=True):
        steep = r * scale
        slopes.append(-o / far - deep * _eighth(steep) * steep)
    return far - inside, slopes


def _eighth(x: Matrix) -> Matrix:
    fourth = (x * x) * (x * x)
    return fourth * fourth


def _eighth_root(x: Matrix) -> Matrix:
    return casadi.sqrt(casadi.sqrt(casadi.sqrt(x)))


# ------------------------------------------------------------------ extents


def extent_of_box(size: Any, u: Matrix) -> Matrix:
    """Return how far a box extends along a unit vector from its middle."""
    return casadi.dot(casadi.DM(half_sizes(size)), casadi.fabs(u))


def extent_of_round(size: Any, u: Matrix) -> Matrix:
    """Return how far a cylinder or disk extends along a unit vector from its middle."""
    radius, half = round_sizes(size)
    across = casadi.sqrt(u[0] ** 2 + u[1] ** 2 + NEAR**2)
    return radius * across + half * casadi.fabs(u[2])


def extent_of_capsule(size: Any, u: Matrix) -> Matrix:
    """Return how far a capsule extends along a unit vector from its middle."""
    radius, half = round_sizes(size)
    return radius + half * casadi.fabs(u[2])
