"""Where a page looks from: so that the machine fills what the controls leave free."""

from typing import NamedTuple

import numpy as np

FOV = np.deg2rad(45.0)
"""Angle of sight from the lower to the upper side, rad."""
FROM = np.array([0.95, -1.2, 0.62]) / np.linalg.norm([0.95, -1.2, 0.62])
"""Direction from the machine to the camera, in a world with z up."""
NARROW = 0.8
"""Width by height of a page, as of a phone, below which controls lie under the machine."""
PANEL = 360.0
"""Width of the controls on other pages, in pixels."""
EDGE, UNDER = 0.8, 0.28
"""How far a machine may come to the sides, and down to the controls of a narrow page, in halves of
the page from its middle."""


class CameraPlace(NamedTuple):
    """Where a camera is and what it looks at (3,)."""

    position: np.ndarray
    look_at: np.ndarray


def placed(points: np.ndarray, width: float, height: float) -> CameraPlace:
    """Return the nearest place from which points (n, 3) are within the free part of a page.

    Parameters
    ----------
    points : (n, 3)
        Of the machine, in the world.
    width, height : float
        Of the page, in pixels.
    """
    right = np.cross([0.0, 0.0, 1.0], FROM)
    right /= np.linalg.norm(right)
    up = np.cross(FROM, right)
    low, high = free_part(width, height)
    middle, half = (low + high) / 2, (high - low) / 2
    slopes = np.tan(FOV / 2) * np.array([width / height, 1.0])
    center = (points.min(axis=0) + points.max(axis=0)) / 2
    away = points - center
    across, toward = away @ np.stack([right, up], axis=1), away @ FROM
    distance = 1e-3 + 1.05 * max(float(toward.max()), 0.0)
    while True:
        # The camera is moved sideways, so that the machine's center lies in the free part's.
        beside = -middle * distance * slopes
        seen = (across - beside) / ((distance - toward)[:, None] * slopes)
        if (np.abs(seen - middle) <= half).all():
            break
        distance *= 1.03
    look_at = center + beside[0] * right + beside[1] * up
    return CameraPlace(look_at + distance * FROM, look_at)


def free_part(width: float, height: float) -> tuple[np.ndarray, np.ndarray]:
    """Return the corners, in halves of the page from its middle, of what controls leave free."""
    if width < NARROW * height:
        return np.array([-EDGE, UNDER]), np.array([EDGE, EDGE])
    side = max(1 - 2 * PANEL / width, 0.1)
    return np.array([-EDGE, -EDGE]), np.array([side, EDGE])
