"""Half-spaces, which fill z <= 0, with all other shapes."""

from typing import Any

import casadi
import numpy as np

from framefree.geometry import se3
from framefree.machine.contact_pairs.base import FLAT, Matrix, TouchPoint, half_sizes, rigid_slope


def _on_ground(center: Matrix, radius: float, G: Matrix, *, moving: bool = False) -> TouchPoint:
    """Return where a sphere around a point of b (in b's axes) touches the half-space of a."""
    up = se3.rotation(G).T[:, 2]
    depth = radius - (se3.position(G)[2] + casadi.dot(up, center))
    slope = None if moving else rigid_slope(center, up)
    return TouchPoint(depth, center - (radius - depth / 2) * up, up, slope=slope)


def ground_sphere(_: Any, size: Any, G: Matrix) -> list[TouchPoint]:
    """Return the lowest point of a sphere."""
    return [_on_ground(casadi.SX.zeros(3), float(size[0]), G)]


def ground_capsule(_: Any, size: Any, G: Matrix) -> list[TouchPoint]:
    """Return the lowest points of the two ends of a capsule."""
    ends = [casadi.SX([0, 0, side * float(size[1]) / 2]) for side in (-1, 1)]
    return [_on_ground(end, float(size[0]), G) for end in ends]


def ground_box(_: Any, size: Any, G: Matrix) -> list[TouchPoint]:
    """Return the eight corners of a box."""
    signs = [(i, j, k) for i in (-1, 1) for j in (-1, 1) for k in (-1, 1)]
    corners = [casadi.SX(np.array(sign) * half_sizes(size)) for sign in signs]
    return [_on_ground(corner, 0.0, G) for corner in corners]


def lowest_of_rim(radius: float, height: Matrix, up: Matrix) -> Matrix:
    """Return the lowest point of a circle about z, at a height along z; `up` in its own axes.

    It jumps when the circle passes through lying flat. With s the sine of the tilt the point lies
    at radius r s / sqrt(s^2 + FLAT^2), times a factor that makes an upright wheel exact.
    """
    across = casadi.vertcat(up[0], up[1], 0)
    factor = np.sqrt(1 + FLAT**2) / casadi.sqrt(casadi.sumsqr(across) + FLAT**2)
    return casadi.vertcat(0, 0, height) - radius * factor * across


def _rim(radius: float, height: float, G: Matrix) -> TouchPoint:
    up = se3.rotation(G).T[:, 2]
    return _on_ground(lowest_of_rim(radius, height, up), 0.0, G, moving=True)


def ground_disk(_: Any, size: Any, G: Matrix) -> list[TouchPoint]:
    """Return the lowest point of the rim."""
    return [_rim(float(size[0]), 0.0, G)]


def ground_cylinder(_: Any, size: Any, G: Matrix) -> list[TouchPoint]:
    """Return the lowest point of either rim."""
    return [_rim(float(size[0]), side * float(size[1]) / 2, G) for side in (-1, 1)]
