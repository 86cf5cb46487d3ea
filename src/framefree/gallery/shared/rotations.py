"""Attitudes of whole records at once, as rotation matrices (..., 3, 3)."""

from typing import Any

import numpy as np


def about(axis: str, angle: Any) -> np.ndarray:
    """Return the rotations (n, 3, 3) by angles (n,), rad, about "x", "y" or "z"."""
    angle = np.asarray(angle, float)
    k = "xyz".index(axis)
    i, j = (k + 1) % 3, (k + 2) % 3
    R = np.zeros((*angle.shape, 3, 3))
    R[..., k, k] = 1.0
    R[..., i, i] = R[..., j, j] = np.cos(angle)
    R[..., j, i] = np.sin(angle)
    R[..., i, j] = -R[..., j, i]
    return R


def angle_between(A: Any, B: Any) -> np.ndarray:
    """Return the angle, rad, from one rotation to another: |A - B| = 2 sqrt(2) sin(angle / 2)."""
    gap = np.linalg.norm(np.asarray(A) - np.asarray(B), axis=(-2, -1))
    return 2 * np.arcsin(np.minimum(gap / np.sqrt(8.0), 1.0))
