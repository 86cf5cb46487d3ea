"""A picture of a machine as an SVG file: its shapes, or a skeleton of bodies and joints.

Drawn in parallel projection, far things first. Bodies without shapes are drawn as the ellipsoids
of uniform density that have their mass and inertia. Many configurations become a picture that
moves.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any
from xml.sax.saxutils import escape

import numpy as np

from framefree.files import MADE_BY, write_file
from framefree.look.solids import ellipsoid, faces_of, inertia_ellipsoid, triangle_normals
from framefree.machine.machine import Machine
from framefree.machine.problems import MachineError
from framefree.machine.values import is_symbolic

SIZE = 900.0
"""Length of the longer side of the drawing, in pixels."""

MARGIN = 60.0

LARGEST = 0.25
"""Longest half axis of an ellipsoid that stands for a body, in sizes of the machine."""

_VIEW = np.array([1.0, -1.25, 0.75])
_LIGHT = np.array([0.35, -0.65, 0.9])
_BODY_COLOR = (0.45, 0.58, 0.75, 0.85)
_INK, _TRAIL = "#1d2733", "#e8a4ad"
_JOINT_COLORS = {
    "Revolute": "#d1495b",
    "Continuous": "#d1495b",
    "Universal": "#d1495b",
    "Spherical": "#8a4fd1",
    "Prismatic": "#e09f3e",
    "Cylindrical": "#e09f3e",
    "Helical": "#e09f3e",
    "Planar": "#e09f3e",
    "Free": "#2a9d8f",
    "Custom": "#555555",
}


def draw(
    machine: Machine,
    path: str | os.PathLike[str],
    x: Any = None,
    *,
    collision: bool = False,
    duration: float = 5.0,
    trail: str | None = None,
) -> Path:
    """Write a picture of a machine.

    Parameters
    ----------
    machine : Machine
    path : path
        An `.svg` file. One that framefree has made is replaced, any other refused.
    x : (nx,) or (frames, nx)
        Configuration; default the keyframe `initial` or else the first, or the neutral one. Of
        many, such as ``run.x[::50]``, the picture moves: each is shown for the same time, for ever.
    collision : bool
        Draw collision shapes instead of visual ones.
    duration : float
        Seconds that all frames of a moving picture take.
    trail : str, optional
        A frame or body whose path is drawn in a moving picture.

    Returns
    -------
    Path
        The file that was written.
    """
    path = Path(path)
    if path.suffix.lower() != ".svg":
        raise MachineError(f"the picture must be an `.svg` file, got `{path.name}`")
    if len(machine.parameters.names):
        machine = machine.numeric
    x = start_of(machine) if x is None else np.asarray(x, dtype=float)
    machine.validate(x)
    if x.ndim == 1:
        text = svg(machine, x, collision=collision)
    else:
        text = moving_svg(machine, x, duration, trail, collision=collision)
    return write_file(path, text, guard=True)


def start_of(machine: Machine) -> np.ndarray:
    """Return the configuration (nx) to show: the keyframe `initial`, the first, or neutral."""
    names = [key.name for key in machine.keyframes]
    if not names:
        return machine.neutral()
    return machine.keyframe("initial" if "initial" in names else names[0])[0]


def svg(machine: Machine, x: np.ndarray, *, collision: bool = False) -> str:
    """Return the picture at a configuration (nx) as SVG text."""
    scene = scene_of(machine, x, collision=collision)
    _add_ground(scene)
    return scene.text(machine.name or "machine", _words(machine))


def moving_svg(
    machine: Machine, x: np.ndarray, duration: float, trail: str | None, *, collision: bool = False
) -> str:
    """Return configurations (frames, nx) as SVG text that shows them one after the other."""
    scenes = [scene_of(machine, one, collision=collision) for one in x]
    whole = _Scene()
    for scene in scenes:
        whole.faces += scene.faces
        whole.lines += scene.lines
        whole.marks += scene.marks
    _add_ground(whole)
    places = np.zeros((0, 3))
    if trail is not None:
        frame = machine.frame(trail)
        poses = (body_poses(machine, one)[frame.body] @ frame.pose for one in x)
        places = np.array([pose[:3, 3] for pose in poses])
    return whole.film(scenes, machine.name or "machine", _words(machine), duration, places)


def scene_of(machine: Machine, x: np.ndarray, *, collision: bool = False) -> _Scene:
    """Return what is to be seen at a configuration (nx)."""
    poses = body_poses(machine, x)
    scene = _Scene()
    shown = _add_shapes(scene, machine, poses, "collision" if collision else "visual")
    if not shown and not collision:
        shown = _add_shapes(scene, machine, poses, "collision")
    _add_skeleton(scene, machine, poses)
    low, high = scene.bounds()
    for body in machine.bodies:
        if body.name not in shown:
            _add_ellipsoid(scene, body, poses[body.name], float(np.linalg.norm(high - low)))
    return scene


def _words(machine: Machine) -> str:
    count = len(machine.bodies)
    words = f"{count} {'body' if count == 1 else 'bodies'}, {machine.nv} velocities, "
    words += f"{machine.nu} {'input' if machine.nu == 1 else 'inputs'}"
    missing = sum(shape.kind == "mesh" and faces_of(shape) is None for shape in machine.geometry)
    if missing:
        words += f"; {missing} mesh files were not found or not read: give `packages`"
    return words


def body_poses(machine: Machine, x: np.ndarray) -> dict[str, np.ndarray]:
    """Return the pose (4x4) of every body in the world at a configuration (nx)."""
    poses = {"world": np.eye(4)}
    for joint in machine.joints:
        moved = np.array(joint.kind.pose(x[machine.x_slice[joint.name]]), dtype=float)
        local = joint.parent_pose @ moved @ np.linalg.inv(joint.child_pose)
        poses[joint.child] = poses[joint.parent] @ local
    return poses


# ---------------------------------------------------------------------- what is drawn


def _add_shapes(
    scene: _Scene, machine: Machine, poses: dict[str, np.ndarray], role: str
) -> set[str]:
    """Draw the shapes of one role; return the bodies that have some."""
    shown = set()
    for shape in machine.geometry:
        if shape.role != role or shape.kind == "plane":
            continue
        faces = faces_of(shape)
        if faces is None:
            continue
        frame = machine.frame(shape.frame)
        pose = poses[frame.body] @ frame.pose @ shape.pose
        scene.solid([pose[:3, :3] @ face + pose[:3, 3:] for face in faces], shape.color, frame.body)
        shown.add(frame.body)
    return shown


def _add_ellipsoid(scene: _Scene, body: Any, pose: np.ndarray, reach: float) -> None:
    """Draw the ellipsoid of uniform density with the body's inertia.

    Numbers of a model file may be far from any real body: one that would be larger than a part of
    the machine's size is drawn smaller.
    """
    if body.massless or is_symbolic(body.moments.total):
        return
    half, on_body = inertia_ellipsoid(body.moments, 0.2)
    if reach > 0.3 * float(half.max()):  # a single body is its own measure
        half = half * min(1.0, LARGEST * reach / float(half.max()))
    at = pose @ on_body
    faces = [at[:3, :3] @ face + at[:3, 3:] for face in ellipsoid(half)]
    scene.solid(faces, _BODY_COLOR, body.name)


def _add_skeleton(scene: _Scene, machine: Machine, poses: dict[str, np.ndarray]) -> None:
    """Draw lines from joint to joint, and a mark on each joint that moves."""
    at = {"world": None}
    for joint in machine.joints:
        place = (poses[joint.child] @ joint.child_pose)[:3, 3]
        before = at.get(joint.parent)
        if before is not None:
            scene.line(before, place)
        at[joint.child] = place
        if joint.nv:
            kind = type(joint.kind).__name__
            scene.mark(place, _JOINT_COLORS.get(kind, "#555555"), f"{joint.name} ({kind.lower()})")
    leaves = {joint.child for joint in machine.joints} - {joint.parent for joint in machine.joints}
    for body in machine.bodies:
        before = at.get(body.name)
        if body.name in leaves and not body.massless and before is not None:
            center = poses[body.name][:3, :3] @ body.moments.center + poses[body.name][:3, 3]
            scene.line(before, center)


def _add_ground(scene: _Scene) -> None:
    """Draw a grid below the lowest point, with a round spacing."""
    low, high = scene.bounds()
    reach = max(float((high - low)[:2].max()), 0.25 * float(high[2] - low[2]), 1e-6)
    step = 10.0 ** np.floor(np.log10(reach / 2))
    step *= 5 if reach / step > 10 else 2 if reach / step > 5 else 1
    first = np.floor(low[:2] / step - 0.5) * step
    last = np.ceil(high[:2] / step + 0.5) * step
    z = 0.0 if low[2] >= -1e-9 and low[2] < reach else float(low[2])
    for value in np.arange(first[0], last[0] + step / 2, step):
        scene.ground([value, first[1], z], [value, last[1], z])
    for value in np.arange(first[1], last[1] + step / 2, step):
        scene.ground([first[0], value, z], [last[0], value, z])
    scene.note = f"grid {step:g} m, z = {z:.3g} m"
    scene.origin = np.array([first[0], first[1], z])
    scene.step = step


class _Scene:
    """Faces, lines and marks in the world, and their projection."""

    def __init__(self) -> None:
        self.faces: list[tuple[np.ndarray, Any, str]] = []
        self.lines: list[tuple[np.ndarray, np.ndarray]] = []
        self.marks: list[tuple[np.ndarray, str, str]] = []
        self.grid: list[tuple[np.ndarray, np.ndarray]] = []
        self.note = ""
        self.origin = np.zeros(3)
        self.step = 1.0
        depth = _VIEW / np.linalg.norm(_VIEW)
        right = np.cross([0.0, 0.0, 1.0], depth)
        right /= np.linalg.norm(right)
        self.axes = np.array([right, -np.cross(depth, right), depth])
        """Rows: right and down on the page, and towards the eye."""

    def solid(self, faces: list[np.ndarray], color: Any, title: str) -> None:
        self.faces += [(face, color, title) for face in faces]

    def line(self, start: Any, end: Any) -> None:
        self.lines.append((np.asarray(start), np.asarray(end)))

    def mark(self, place: Any, color: str, title: str) -> None:
        self.marks.append((np.asarray(place), color, title))

    def ground(self, start: Any, end: Any) -> None:
        self.grid.append((np.asarray(start, float), np.asarray(end, float)))

    def bounds(self) -> tuple[np.ndarray, np.ndarray]:
        """Return the corners of the box around everything but the ground."""
        points = [face.T for face, _, _ in self.faces]
        points += [np.array(line) for line in self.lines] + [m[0][None] for m in self.marks]
        if not points:
            return np.zeros(3), np.ones(3) * 0.1
        every = np.vstack(points)
        low, high = every.min(axis=0), every.max(axis=0)
        return low, np.maximum(high, low + 1e-3)

    # ------------------------------------------------------------------ the page

    def text(self, title: str, words: str) -> str:
        """Return a picture that stands still."""
        page, size = self._window()
        return self._framed(page, size, title, words, [*self._solids(page), *self._bones(page)])

    def film(
        self, scenes: list[_Scene], title: str, words: str, duration: float, trail: np.ndarray
    ) -> str:
        """Return a picture that shows scenes in turn, within what this scene, of all, takes."""
        page, size = self._window()
        parts = []
        if len(trail):
            data = "L".join(_at(page(place)) for place in trail)
            parts.append(f'<path d="M{data}" stroke="{_TRAIL}" stroke-width="2" fill="none"/>')
        for k, scene in enumerate(scenes):
            ends = f"0;{k / len(scenes):.5f};{(k + 1) / len(scenes):.5f}"
            parts += [
                f'<g display="{"none" if k else "inline"}">',
                '<animate attributeName="display" values="none;inline;none" calcMode="discrete" '
                f'keyTimes="{ends}" dur="{duration:g}s" repeatCount="indefinite"/>',
                *scene._solids(page),
                *scene._bones(page),
                "</g>",
            ]
        return self._framed(page, size, title, words, parts)

    def _window(self) -> tuple[Any, np.ndarray]:
        """Return the map from the world (3, n) to the page, and the size of the page."""
        corners = [point for line in self.grid for point in line]
        corners += [face[:, i] for face, _, _ in self.faces for i in (0, face.shape[1] // 2)]
        corners += [point for line in self.lines for point in line]
        flat = np.array(corners) @ self.axes[:2].T
        low, high = flat.min(axis=0), flat.max(axis=0)
        scale = SIZE / max(float((high - low).max()), 1e-9)

        def page(points: np.ndarray) -> np.ndarray:
            return ((self.axes[:2] @ points).T - low).T * scale + MARGIN

        return page, (high - low) * scale + 2 * MARGIN

    def _framed(self, page: Any, size: np.ndarray, title: str, words: str, parts: list[str]) -> str:
        """Return what is drawn with ground, title, axes and a note."""
        width, height = size
        lines = [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:.0f} {height + 40:.0f}" '
            f'width="{width:.0f}" height="{height + 40:.0f}" font-family="sans-serif">',
            f"<!-- {MADE_BY} -->",
            f'<rect width="100%" height="100%" fill="#ffffff"/><title>{escape(title)}</title>',
            *self._ground(page),
            *parts,
            f'<text x="24" y="36" font-size="22" font-weight="bold" fill="{_INK}">'
            f"{escape(title)}</text>",
            f'<text x="24" y="60" font-size="14" fill="#5b6673">{escape(words)}</text>',
            self._triad(height),
            f'<text x="110" y="{height + 20:.0f}" font-size="13" fill="#5b6673">'
            f"{escape(self.note)}</text>",
            "</svg>",
        ]
        return "\n".join(lines)

    def _ground(self, page: Any) -> list[str]:
        data = "".join(f"M{_at(page(start))}L{_at(page(end))}" for start, end in self.grid)
        return [f'<path d="{data}" stroke="#dde3e9" stroke-width="1" fill="none"/>']

    def _solids(self, page: Any) -> list[str]:
        """Return the faces that look at the eye, far ones first, shaded by the light."""
        if not self.faces:
            return []
        light = _LIGHT / np.linalg.norm(_LIGHT)
        corners = np.array([face[:, :3].T for face, _, _ in self.faces])
        normals = triangle_normals(corners)
        lengths = np.linalg.norm(normals, axis=1)
        normals /= np.maximum(lengths, 1e-30)[:, None]
        shades = 0.55 + 0.45 * np.maximum(0.0, normals @ light)
        seen = (normals @ self.axes[2] > 0) & (lengths > 1e-15)
        depths = [float(self.axes[2] @ face.mean(axis=1)) for face, _, _ in self.faces]
        return [
            f'<polygon points="{" ".join(_at(p) for p in page(self.faces[i][0]).T)}" '
            f"{_fill(self.faces[i][1], shades[i])}/>"
            for i in np.argsort(depths)
            if seen[i]
        ]

    def _bones(self, page: Any) -> list[str]:
        solid = bool(self.faces)
        width, opacity = (2.0, 0.55) if solid else (5.0, 0.9)
        data = "".join(f"M{_at(page(a))}L{_at(page(b))}" for a, b in self.lines)
        parts = [
            f'<path d="{data}" stroke="{color}" stroke-width="{wide}" stroke-opacity="{opacity}" '
            'stroke-linecap="round" fill="none"/>'
            for color, wide in (("#ffffff", width + 2.0), (_INK, width))
        ]
        radius = 4.0 if len(self.marks) > 12 else 6.0
        for place, color, title in self.marks:
            x, y = page(place)
            parts.append(
                f'<circle cx="{x:.1f}" cy="{y:.1f}" r="{radius}" fill="{color}" stroke="#ffffff" '
                f'stroke-width="1.2"><title>{escape(title)}</title></circle>'
            )
        return parts

    def _triad(self, height: float) -> str:
        """Return the world's axes, in the lower left corner."""
        parts, start = [], np.array([60.0, height - 10.0])
        for axis, color, name in zip(
            np.eye(3), ("#d1495b", "#2a9d3f", "#2f6fd1"), "xyz", strict=True
        ):
            end = start + 36.0 * (self.axes[:2] @ axis)
            label = start + 48.0 * (self.axes[:2] @ axis)
            parts.append(
                f'<path d="M{_at(start)}L{_at(end)}" stroke="{color}" stroke-width="3"/>'
                f'<text x="{label[0]:.1f}" y="{label[1] + 5:.1f}" font-size="14" fill="{color}" '
                f'text-anchor="middle">{name}</text>'
            )
        return "".join(parts)


def _at(point: np.ndarray) -> str:
    return f"{point[0]:.1f},{point[1]:.1f}"


def _fill(color: Any, shade: float) -> str:
    r, g, b, a = (float(np.clip(part, 0.0, 1.0)) for part in color)
    rgb = "#" + "".join(f"{round(255 * part * shade):02x}" for part in (r, g, b))
    if a >= 0.99:
        return f'fill="{rgb}" stroke="{rgb}" stroke-width="0.6"'
    return f'fill="{rgb}" fill-opacity="{a:.2f}"'
