"""Corners and rims that touch a solid: balls at points of shape b, against the distance from a.

Corners of boxes and rims of cylinders are rounded by `ROUNDED`, so that they roll over edges of the
other shape rather than jump. Faces are where they are: the balls touch them from within the shape.
"""

from itertools import product
from typing import Any, NamedTuple

import casadi
import numpy as np

from framefree.geometry import se3
from framefree.machine.contact_pairs.base import (
    FAR,
    NEAR,
    ROUNDED,
    SIDES,
    Matrix,
    TouchPoint,
    half_sizes,
    ramp,
    rigid_slope,
    round_sizes,
    sign_of,
    unit,
)
from framefree.machine.contact_pairs.ground import lowest_of_rim
from framefree.machine.contact_pairs.solids import Solid

_SAMPLES = 8
"""Points on a rim from which the crossing with another one is looked for."""
_LIES = (0.9, 0.99)
"""Cosines of the tilt between which a cap begins to count as lying flat."""


class Ball(NamedTuple):
    """A ball on shape b.

    Attributes
    ----------
    center : (3,)
        In b's axes.
    radius : scalar
        m.
    share : scalar
        See `TouchPoint`.
    carried : bool
        Whether the center is fixed on b.
    """

    center: Matrix
    radius: float
    share: Matrix = 1.0
    carried: bool = True


def in_solid(solid: Solid, balls: list[Ball], G: Matrix) -> list[TouchPoint]:
    """Return where balls of shape b touch a solid in the axes of a; G = G_ab."""
    R, r = se3.rotation(G), se3.position(G)
    places = []
    for ball in balls:
        at = solid(R @ ball.center + r)
        gradient = R.T @ at.gradient
        normal = unit(gradient, NEAR)
        depth = ball.radius - at.distance
        point = ball.center - (ball.radius - depth / 2) * normal
        slope = rigid_slope(ball.center, gradient) if ball.carried else None
        places.append(TouchPoint(depth, point, normal, ball.share, slope))
    return places


def corners(size: Any) -> list[Ball]:
    """Return the rounded corners of a box."""
    half = half_sizes(size)
    radius = ROUNDED * float(half.min())
    signs = product(SIDES, repeat=3)
    return [Ball(casadi.SX(np.array(s) * (half - radius)), radius) for s in signs]


def ends(size: Any) -> list[Ball]:
    """Return the two ends of a capsule."""
    radius, half = round_sizes(size)
    return [Ball(casadi.SX([0, 0, side * half]), radius) for side in SIDES]


def rims(size: Any, halves: dict[int, float], G: Matrix) -> list[Ball]:
    """Return points on the rims of a cylinder that may touch flat faces of a.

    `halves` are the half widths of a along the axes across which it has faces. The lowest point of
    each rim over each face on its side; and, where the cap lies flat on a face, points on its rim
    in the directions of a's axes, so that it resists turning.
    """
    radius, half = round_sizes(size)
    rounding = ROUNDED * min(radius, half)
    around, height = radius - rounding, half - rounding
    R, r = se3.rotation(G), se3.position(G)
    found = []
    for h, (i, wide) in product((-height, height), halves.items()):
        middle = R[i, 2] * h + r[i]
        lowest = lowest_of_rim(around, h, sign_of(middle) * R[i, :].T)
        share = ramp(casadi.fabs(middle) - 0.5 * wide, 0.4 * wide)
        found.append(Ball(lowest, rounding, share, carried=False))
    toward = sign_of(-casadi.dot(R[:, 2], r))
    lies = casadi.mmax(casadi.vertcat(*(casadi.fabs(R[i, 2]) for i in halves)))
    flat = ramp(lies - _LIES[0], _LIES[1] - _LIES[0])
    for axis, side in product((i for i in range(3) if list(halves) != [i]), SIDES):
        along = casadi.vertcat(R[axis, 0], R[axis, 1], 0)
        center = side * around * unit(along, NEAR) + casadi.vertcat(0, 0, toward * height)
        share = flat * ramp(casadi.sumsqr(along) - 0.5, 0.4)
        found.append(Ball(center, rounding, share, carried=False))
    return found


def deepest_samples(size: Any, solid: Solid, G: Matrix) -> list[Matrix]:
    """Return the deepest of some points on either rim of a cylinder b in a solid of a."""
    radius, half = round_sizes(size)
    R, r, found = se3.rotation(G), se3.position(G), []
    for side in SIDES:
        best, least = casadi.SX.zeros(3), casadi.SX(FAR)
        for angle in 2 * np.pi * np.arange(_SAMPLES) / _SAMPLES:
            point = casadi.SX([radius * np.cos(angle), radius * np.sin(angle), side * half])
            far = solid(R @ point + r).distance
            best, least = casadi.if_else(far < least, point, best), casadi.fmin(far, least)
        found.append(best)
    return found
