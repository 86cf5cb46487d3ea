"""Triangles of the solids that stand for bodies: shapes, bones between joints, ellipsoids."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from framefree.geometry import Moments
from framefree.look import solids
from framefree.look.solids import Faces, ellipsoid, turned

Color = tuple[float, ...]

_WEIGHT = 0.2
"""Share of the radius of a ball of the same mass that an ellipsoid's half axes have at least."""


@dataclass(frozen=True)
class Solid:
    """Triangles fixed to a body.

    Attributes
    ----------
    body : int
        Its index; -1 for the world.
    points : (n, 3)
        In the body's frame, m.
    triangles : (m, 3)
        Rows of `points`.
    colors : (m, 3)
        Red, green, blue of the triangles in [0, 1].
    opacity : float
    """

    body: int
    points: np.ndarray
    triangles: np.ndarray
    colors: np.ndarray
    opacity: float = 1.0


def solid(
    body: int, faces: Faces, pose: np.ndarray, color: Color, *, round_: bool = False
) -> Solid:
    """Return the solid with these faces in a frame with this pose (4x4) on the body.

    Corners of a round solid are shared by its faces, so that light runs smoothly over them.
    """
    sizes = [face.shape[1] for face in faces]
    starts = np.concatenate([[0], np.cumsum(sizes)[:-1]])
    triangles = np.array(
        [
            (start, start + k, start + k + 1)
            for start, size in zip(starts, sizes, strict=True)
            for k in range(1, size - 1)
        ]
    )
    points = np.hstack(faces).T
    if round_:
        scale = max(float(np.ptp(points, axis=0).max()), 1e-12)
        _, first, same = np.unique(
            np.round(points / scale, 9), axis=0, return_index=True, return_inverse=True
        )
        points, triangles = points[first], same.reshape(-1)[triangles]
    colors = np.tile(np.asarray(color[:3], float), (len(triangles), 1))
    opacity = float(color[3]) if len(color) > 3 else 1.0
    return Solid(body, points @ pose[:3, :3].T + pose[:3, 3], triangles, colors, opacity)


def bone(body: int, start: Any, end: Any, radius: float, color: Color) -> Solid:
    """Return a rod between two points of a body."""
    start, end = np.asarray(start, float), np.asarray(end, float)
    length = float(np.linalg.norm(end - start))
    profile = [(0.0, 0.0), (radius, 0.0), (radius, length), (0.0, length)]
    pose = np.eye(4)
    pose[:3, :3], pose[:3, 3] = _turn_z_to((end - start) / length), start
    return solid(body, turned(profile), pose, color)


def ball(body: int, center: Any, radius: float, color: Color) -> Solid:
    """Return a ball."""
    pose = np.eye(4)
    pose[:3, 3] = center
    return solid(body, ellipsoid(np.full(3, radius)), pose, color, round_=True)


def inertia_ellipsoid(body: int, moments: Moments, color: Color, largest: float = np.inf) -> Solid:
    """Return the uniform ellipsoid with the mass and inertia of a body.

    Neighbouring octants differ in brightness, so that a turn about an axis of symmetry is seen. One
    with a half axis beyond `largest` (m) is drawn smaller as a whole: numbers of a model file may
    be far from those of any real body.
    """
    half, pose = solids.inertia_ellipsoid(moments, _WEIGHT)
    half = np.maximum(half, _WEIGHT * half.max())
    half = half * min(1.0, largest / float(half.max()))
    center, axes = pose[:3, 3], pose[:3, :3]
    made = solid(body, ellipsoid(half), pose, color, round_=True)
    middles = (made.points[made.triangles].mean(axis=1) - center) @ axes
    odd = (np.signbit(middles).sum(axis=1) % 2).astype(bool)
    made.colors[odd] = 1 - 0.45 * (1 - made.colors[odd])
    return made


def _turn_z_to(direction: np.ndarray) -> np.ndarray:
    """Return a rotation (3x3) that turns the z axis to a unit vector."""
    helper = np.eye(3)[np.abs(direction).argmin()]
    x = np.cross(helper, direction)
    x /= np.linalg.norm(x)
    return np.array([x, np.cross(direction, x), direction]).T
