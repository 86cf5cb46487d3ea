"""Spheres and capsules with each other and with boxes: points and axes that are nearest."""

from typing import Any

import casadi

from framefree.geometry import se3
from framefree.machine.contact_pairs.base import ALONG, NEAR, Matrix, TouchPoint, half_sizes


def two_spheres(way: Matrix, radius_a: float, radius_b: float, G: Matrix) -> TouchPoint:
    """Return where spheres touch; `way` leads from the center of a to that of b, in a's axes."""
    far = casadi.sqrt(casadi.sumsqr(way) + (NEAR * max(radius_a, radius_b)) ** 2)
    normal = se3.rotation(G).T @ (way / far)
    depth = radius_a + radius_b - far
    return TouchPoint(depth, -(radius_b - depth / 2) * normal, normal)


def sphere_sphere(size_a: Any, size_b: Any, G: Matrix) -> list[TouchPoint]:
    """Return the place on the line of centers."""
    return [two_spheres(se3.position(G), float(size_a[0]), float(size_b[0]), G)]


def capsule_sphere(size_a: Any, size_b: Any, G: Matrix) -> list[TouchPoint]:
    """Return the place at the nearest point of the capsule's axis."""
    center, half = se3.position(G), float(size_a[1]) / 2
    along = casadi.fmin(casadi.fmax(center[2], -half), half)
    way = center - casadi.vertcat(0, 0, along)
    return [two_spheres(way, float(size_a[0]), float(size_b[0]), G)]


def box_sphere(size_a: Any, size_b: Any, G: Matrix) -> list[TouchPoint]:
    """Return the place at the nearest point of the box, as long as the center is outside."""
    center = se3.position(G)
    half, radius = half_sizes(size_a), float(size_b[0])
    beside = [
        casadi.fmin(casadi.fmax(center[i], -float(half[i])), float(half[i])) for i in range(3)
    ]
    return [two_spheres(center - casadi.vertcat(*beside), 0.0, radius, G)]


def capsule_capsule(size_a: Any, size_b: Any, G: Matrix) -> list[TouchPoint]:
    """Return the place at the nearest points of the two axes.

    They jump where the axes are parallel. The points minimise

        |a + s - b - t|^2 + ALONG^2 (s^2 + t^2),    s, t along the axes from their middles

    so that two capsules side by side touch in the middle of where they face each other, and resist
    turning about each other like a spring while they are nearly parallel.
    """
    half_a, half_b = float(size_a[1]) / 2, float(size_b[1]) / 2
    way, axis = se3.position(G), se3.rotation(G)[:, 2]
    s, t = nearest_on_axes(way, casadi.SX([0, 0, 1]), axis, half_a, half_b)
    nearest = way + t * axis - casadi.vertcat(0, 0, s)
    place = two_spheres(nearest, float(size_a[0]), float(size_b[0]), G)
    return [place._replace(point=place.point + casadi.vertcat(0, 0, t))]


def nearest_on_axes(
    way: Matrix, axis_a: Matrix, axis_b: Matrix, half_a: float, half_b: float
) -> tuple[Matrix, Matrix]:
    """Return s and t of the nearest points s a and way + t b, within the two half lengths.

    With u = a . b the function is (1 + e) (s^2 + t^2) - 2 u s t - 2 p s + 2 q t + ..., which is
    convex: its least value along s, cut off, then along t, and once more along s where t is cut
    off, is the least of all.
    """
    u, p, q = casadi.dot(axis_a, axis_b), casadi.dot(way, axis_a), casadi.dot(way, axis_b)
    one = 1 + ALONG**2

    def within(value: Matrix, half: float) -> Matrix:
        return casadi.fmin(casadi.fmax(value, -half), half)

    s = within((one * p - u * q) / (one**2 - u**2), half_a)
    t = within((u * s - q) / one, half_b)
    return within((p + u * t) / one, half_a), t
