"""What all pairs of shapes share: the places in which they touch, and smooth switches."""

from typing import Any, NamedTuple

import casadi
import numpy as np

from framefree.geometry import se3

Matrix = Any

FLAT = 1e-3
"""Sine of the tilt below which the lowest point of a rim moves to its center."""
ALONG = 0.05
"""Sine of the angle below which two axes, side by side, are taken as parallel: the place in which
they touch moves to the middle."""
NEAR = 1e-12
"""Share of a length below which the distance of two points is smooth rather than exact."""
FAR = 1e6
"""Distance (m) where nothing is known."""
ROUNDED = 0.01
"""Radius of corners and rims that meet other shapes than half-spaces, as a share of the smallest
half width of their shape. It is also the length over which edges and corners take over from each
other."""


THIN = 0.02
"""Half thickness that a disk has for boxes, cylinders and other disks, as a share of its radius: a
thing without thickness does not tell on which side of it they are."""
SIDES = (-1.0, 1.0)


class TouchPoint(NamedTuple):
    """One place in which shapes touch, in the axes of frame b.

    Attributes
    ----------
    depth : scalar
        d, m, positive where the shapes overlap.
    point, normal : (3,)
        In the middle of the overlap, and the unit normal from shape a into shape b.
    share : scalar
        Between 0 and 1: how much of the stiffness the place has. It changes smoothly where one
        place takes over from another.
    slope : (6,) or None
        Of the depth, d' = slope . twist, where it is known; otherwise it is derived.
    apart : scalar
        Distance (m) of the shapes, as far as this place tells it, where it has no share.
    """

    depth: Matrix
    point: Matrix
    normal: Matrix
    share: Matrix = 1.0
    slope: Matrix = None
    apart: Matrix = FAR

    def moved(self, G: Matrix) -> "TouchPoint":
        """Return the place in the axes of a frame in which frame b, a part of it, has pose G."""
        R, r = se3.rotation(G), se3.position(G)
        point, slope = R @ self.point + r, self.slope
        if slope is not None:
            force = R @ slope[:3]
            slope = casadi.vertcat(force, R @ slope[3:] + casadi.cross(r, force))
        return self._replace(point=point, normal=R @ self.normal, slope=slope)


def seen_from_other(place: TouchPoint, G: Matrix) -> TouchPoint:
    """Return a place, given in a's axes with its normal from b into a, in b's axes; G = G_ab."""
    R, r = se3.rotation(G), se3.position(G)
    point, normal = R.T @ (place.point - r), -R.T @ place.normal
    slope = place.slope
    if slope is not None:
        force = -R.T @ slope[:3]
        moment = -R.T @ (slope[3:] - casadi.cross(r, slope[:3]))
        slope = casadi.vertcat(force, moment)
    return place._replace(point=point, normal=normal, slope=slope)


def rigid_slope(point: Matrix, gradient: Matrix) -> Matrix:
    """Return the slope of a depth that falls as a point of b moves along a gradient."""
    return -casadi.vertcat(gradient, casadi.cross(point, gradient))


def ramp(value: Matrix, width: float) -> Matrix:
    """Return 0 where a value is negative, 1 from `width` on, and a smooth step between."""
    x = casadi.fmin(casadi.fmax(value / width, 0), 1)
    return x * x * (3 - 2 * x)


def sign_of(value: Matrix) -> Matrix:
    """Return 1 or -1, never 0."""
    return casadi.if_else(value >= 0, 1, -1)


def unit(vector: Matrix, small: float) -> Matrix:
    """Return a vector over its length, which is at least `small`."""
    return vector / casadi.sqrt(casadi.sumsqr(vector) + small**2)


def half_sizes(size: Any) -> np.ndarray:
    """Return the half edges of a box."""
    return np.asarray(size, float) / 2


def round_sizes(size: Any) -> tuple[float, float]:
    """Return radius and half length of a capsule or cylinder, of a disk with length zero."""
    return float(size[0]), float(size[1]) / 2 if len(size) > 1 else 0.0
