"""Faces of the solids that are drawn, as polygons in their own frame.

A face is an array (3, n) of corners, counter-clockwise seen from outside.
"""

from __future__ import annotations

import re
from functools import lru_cache
from pathlib import Path

import numpy as np

from framefree.geometry import Moments
from framefree.machine.shape import Shape

Faces = list[np.ndarray]

AROUND, ALONG = 20, 10
"""Corners around a round solid, and steps from pole to pole."""

MESH_POINTS, MOST_VERTICES, MESH_BYTES = 160, 20_000, 100 * 2**20
"""Outermost points that are kept of a mesh, points looked at, and the largest file."""

DENSITY = 1000.0
"""kg/m^3 of the ellipsoids that stand for bodies without shapes."""


def faces_of(shape: Shape) -> Faces | None:
    """Return the faces of a shape; None for one that cannot be drawn, such as a missing mesh."""
    size = [float(number) for number in np.asarray(shape.size)]
    if shape.kind == "box":
        return box(np.array(size) / 2)
    if shape.kind == "sphere":
        return ellipsoid(np.full(3, size[0]))
    if shape.kind == "ellipsoid":
        return ellipsoid(np.array(size))
    if shape.kind == "cylinder":
        return turned(
            [
                (0.0, -size[1] / 2),
                (size[0], -size[1] / 2),
                (size[0], size[1] / 2),
                (0.0, size[1] / 2),
            ]
        )
    if shape.kind == "capsule":
        return capsule(size[0], size[1])
    if shape.kind == "mesh":
        return hull_of_mesh(shape.file, tuple(size))
    return None


def box(half: np.ndarray) -> Faces:
    """Return the six faces of a box of these half lengths (3)."""
    faces = []
    for axis in range(3):
        a, b = np.eye(3)[(axis + 1) % 3] * half, np.eye(3)[(axis + 2) % 3] * half
        out = np.eye(3)[axis] * half
        faces.append(np.array([out - a - b, out + a - b, out + a + b, out - a + b]).T)
        faces.append(np.array([-out - a - b, -out - a + b, -out + a + b, -out + a - b]).T)
    return faces


def ellipsoid(half: np.ndarray) -> Faces:
    """Return the faces of an ellipsoid with these half axes (3)."""
    angles = np.linspace(-np.pi / 2, np.pi / 2, ALONG + 1)
    profile = [(float(np.cos(a)), float(np.sin(a))) for a in angles]
    return [half[:, None] * face for face in turned(profile)]


def capsule(radius: float, length: float) -> Faces:
    """Return the faces of a cylinder along z with round caps."""
    angles = np.linspace(-np.pi / 2, np.pi / 2, ALONG + 2)
    profile = [
        (radius * float(np.cos(a)), radius * float(np.sin(a)) + np.copysign(length / 2, a))
        for a in angles
    ]
    return turned(profile)


def turned(profile: list[tuple[float, float]]) -> Faces:
    """Return the faces of a profile of (radius, height), from below upwards, turned about z."""
    angles = np.linspace(0.0, 2 * np.pi, AROUND + 1)
    rings = [
        np.array([r * np.cos(angles), r * np.sin(angles), np.full(AROUND + 1, z)])
        for r, z in profile
    ]
    faces = []
    for lower, upper, (r0, _), (r1, _) in zip(rings, rings[1:], profile, profile[1:], strict=False):
        for i in range(AROUND):
            corners = [lower[:, i], lower[:, i + 1], upper[:, i + 1], upper[:, i]]
            if r0 < 1e-12:
                corners = [lower[:, i], upper[:, i + 1], upper[:, i]]
            elif r1 < 1e-12:
                corners = [lower[:, i], lower[:, i + 1], upper[:, i]]
            faces.append(np.array(corners).T)
    return faces


@lru_cache(maxsize=256)
def hull_of_mesh(file: str, scale: tuple[float, ...]) -> Faces | None:
    """Return the convex hull of a mesh file, of its outermost points; None without the file."""
    vertices = vertices_of(file)
    if vertices is None:
        return None
    from scipy.spatial import ConvexHull, QhullError

    points = vertices[:: 1 + len(vertices) // MOST_VERTICES] * np.asarray(scale)
    directions = np.random.default_rng(0).normal(size=(MESH_POINTS, 3))
    outer = points[np.unique((directions @ points.T).argmax(axis=1))]
    try:
        hull = ConvexHull(outer)
    except (QhullError, ValueError):
        return None
    corners = outer[hull.simplices]
    outward = np.einsum("ij,ij->i", triangle_normals(corners), hull.equations[:, :3]) > 0
    return [(face if out else face[::-1]).T for face, out in zip(corners, outward, strict=True)]


def triangle_normals(corners: np.ndarray) -> np.ndarray:
    """Return the normals (n, 3), not of unit length, of triangles (n, 3 corners, 3)."""
    return np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0])


def vertices_of(file: str) -> np.ndarray | None:
    """Return the vertices (n, 3) of an STL or OBJ file, or of others if `trimesh` is installed.

    None if there is no such file, or nothing in it that can be drawn.
    """
    path = Path(file)
    try:
        if not path.is_file() or path.stat().st_size > MESH_BYTES:
            return None
        data = path.read_bytes()
    except (OSError, ValueError):
        return None
    suffix = path.suffix.lower()
    if suffix == ".stl":
        vertices = _binary_stl(data) if _is_binary_stl(data) else _numbers_after(b"vertex", data)
    elif suffix == ".obj":
        vertices = _numbers_after(b"v", data)
    else:
        vertices = _by_trimesh(path)
    if vertices is None or len(vertices) < 4 or not np.isfinite(vertices).all():
        return None
    return vertices


def _is_binary_stl(data: bytes) -> bool:
    return len(data) >= 84 and len(data) >= 84 + 50 * int.from_bytes(data[80:84], "little") > 84


def _binary_stl(data: bytes) -> np.ndarray:
    count = int.from_bytes(data[80:84], "little")
    record = np.dtype([("normal", "<f4", 3), ("corners", "<f4", (3, 3)), ("extra", "<u2")])
    return np.frombuffer(data, record, count, 84)["corners"].reshape(-1, 3).astype(float)


def _numbers_after(word: bytes, data: bytes) -> np.ndarray | None:
    """Return the three numbers after a word at the start of each line that has it."""
    number = rb"[ \t]+([-+0-9.eE]{1,40})"
    rows = re.findall(rb"^[ \t]*" + word + number * 3, data, re.MULTILINE)
    try:
        return np.array(rows, dtype=float).reshape(-1, 3)
    except ValueError:
        return None


def _by_trimesh(path: Path) -> np.ndarray | None:
    try:
        import trimesh  # pyright: ignore[reportMissingImports]

        mesh = trimesh.load(path, force="mesh", process=False)
        vertices = np.asarray(getattr(mesh, "vertices", None), dtype=float)
    except Exception:  # whatever a mesh file holds, the picture is drawn without it
        return None
    return vertices if vertices.ndim == 2 and vertices.shape[1:] == (3,) else None


def inertia_ellipsoid(moments: Moments, least: float) -> tuple[np.ndarray, np.ndarray]:
    """Return half axes (3) and pose (4x4) of the uniform ellipsoid with a body's mass and inertia.

    Its second moment along a principal axis is ``m a^2 / 5`` with the half axis a. No half axis is
    shorter than `least` times the radius of a ball of this mass: a rod must still be seen.
    """
    center = np.asarray(moments.center, float)
    second = np.asarray(moments.second, float) - moments.total * np.outer(center, center)
    sizes, axes = np.linalg.eigh(second)
    if np.linalg.det(axes) < 0:
        axes[:, 0] *= -1
    half = np.sqrt(np.maximum(5 * sizes / moments.total, 0.0))
    ball = (3 * moments.total / (4 * np.pi * DENSITY)) ** (1 / 3)
    pose = np.eye(4)
    pose[:3, :3], pose[:3, 3] = axes, center
    return np.maximum(half, least * ball), pose
