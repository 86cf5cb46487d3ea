"""What a machine looks like: its shapes, or where it has none, bones between its joints."""

from collections.abc import Iterator
from typing import Any

import numpy as np

from framefree.look.report import mesh
from framefree.look.report.mesh import Solid
from framefree.look.solids import faces_of
from framefree.machine import Free, Machine
from framefree.machine.actuators import FrameActuator

PALETTE = (
    (0.16, 0.44, 0.70),
    (0.88, 0.50, 0.12),
    (0.18, 0.58, 0.44),
    (0.62, 0.34, 0.66),
    (0.78, 0.27, 0.31),
    (0.42, 0.47, 0.54),
)
"""Colours of bodies without shapes, in turn."""
GROUND = (0.25, 0.28, 0.32)
_ROUND = ("sphere", "ellipsoid", "capsule")
LARGEST = 5.0
"""Longest half axis of an ellipsoid that stands for a body within a machine, in radii of a bone."""
_BALL = 1.5
"""Radius of the ball at a joint, in radii of a bone."""


def solids_of(machine: Machine, reach: float) -> list[Solid]:
    """Return what is drawn of a machine (in numbers).

    Parameters
    ----------
    machine : Machine
    reach : float
        Size of the machine, m, for the thickness of bones.
    """
    shaped = _shapes(machine, "visual") or _shapes(machine, "collision")
    done = {solid.body for solid in shaped}
    points = {i: joints_on(machine, i) for i in range(len(machine.bodies)) if i not in done}
    thickness = _thickness(points, reach)
    solids = list(shaped)
    alone = len(machine.bodies) == 1
    for i, places in points.items():
        solids += _bones(machine, i, places, thickness, alone)
    if not shaped:
        solids += [
            mesh.ball(-1, place, 1.2 * _BALL * thickness, GROUND) for place in _anchors(machine)
        ]
    return solids


def joints_on(machine: Machine, index: int) -> list[np.ndarray]:
    """Return points (3) of a body, in its frame, that something is joined to, its own joint first.

    These are joints, ends of loops and places of actuators; at the end of a chain, named frames.
    """
    body = machine.bodies[index].name
    below = [joint for joint in machine.joints if joint.parent == body]
    poses = [np.asarray(machine.joint_of(index).child_pose, float)]
    poses += [np.asarray(joint.parent_pose, float) for joint in below]
    names = [name for loop in machine.loops for name in (loop.frame_a, loop.frame_b)]
    names += [a.frame for a in machine.actuators if isinstance(a, FrameActuator)]
    if not below:
        names += [frame.name for frame in machine.frames]
    frames = [machine.frame(name) for name in dict.fromkeys(names)]
    poses += [np.asarray(frame.pose, float) for frame in frames if frame.body == body]
    return _distinct([pose[:3, 3] for pose in poses])


def ties(machine: Machine) -> list[tuple[int, Any, int, Any]]:
    """Return springs, dampers and rods of given length as pairs of body and point (3).

    A damper to `world` itself is drag: it ties its body to no place.
    """
    drag = [damper for damper in machine.dampers if "world" in (damper.frame_a, damper.frame_b)]
    parts = [*machine.springs, *(one for one in machine.dampers if one not in drag)]
    parts += [loop for loop in machine.loops if loop.kind == "distance"]
    pairs = []
    for part in parts:
        ends = [machine.frame(name) for name in (part.frame_a, part.frame_b)]
        a, b = ((machine.body_index[f.body], tuple(np.asarray(f.pose, float)[:3, 3])) for f in ends)
        pairs.append((*a, *b))
    return list(dict.fromkeys(pairs))


def _shapes(machine: Machine, role: str) -> list[Solid]:
    solids = []
    for shape in machine.geometry:
        faces = None if shape.role != role or shape.kind == "plane" else faces_of(shape)
        color = tuple(float(part) for part in np.clip(shape.color, 0.0, 1.0))
        if not faces or color[3] < 0.02:
            continue
        frame = machine.frame(shape.frame)
        pose = np.asarray(frame.pose, float) @ np.asarray(shape.pose, float)
        round_ = shape.kind in _ROUND
        body = machine.body_index[frame.body]
        solids.append(mesh.solid(body, faces, pose, color, round_=round_))
    return solids


def _bones(
    machine: Machine, index: int, places: list[Any], thickness: float, alone: bool
) -> Iterator[Solid]:
    """Give rods from a body's own joint to the other places, and its mass where it tells more."""
    body, color = machine.bodies[index], PALETTE[index % len(PALETTE)]
    free = isinstance(machine.joint_of(index).kind, Free)
    massive = not body.massless and float(body.moments.total) > 0
    if massive and (free or len(places) == 1):
        # A body on a joint belongs to a machine whose bones tell its size; one alone does not.
        largest = np.inf if free or alone else LARGEST * thickness
        shown = mesh.inertia_ellipsoid(index, body.moments, color, largest)
        yield shown
        places = _distinct([*places, np.asarray(body.moments.center, float)])
    for place in places[1:]:
        yield mesh.bone(index, places[0], place, thickness, color)
    if not free:
        yield mesh.ball(index, places[0], _BALL * thickness, tuple(0.6 * part for part in color))


def _thickness(points: dict[int, list[np.ndarray]], reach: float) -> float:
    lengths = [np.linalg.norm(p - places[0]) for places in points.values() for p in places[1:]]
    typical = float(np.median(lengths)) if lengths else np.inf
    return max(min(0.025 * reach, 0.16 * typical), 0.004 * reach)


def _anchors(machine: Machine) -> list[np.ndarray]:
    """Return the points of the world that something is joined to."""
    held = [joint for joint in machine.joints if joint.parent == "world"]
    places = [np.asarray(j.parent_pose, float)[:3, 3] for j in held if not isinstance(j.kind, Free)]
    frames = [machine.frame(n) for loop in machine.loops for n in (loop.frame_a, loop.frame_b)]
    places += [np.asarray(frame.pose, float)[:3, 3] for frame in frames if frame.body == "world"]
    return _distinct(places)


def _distinct(points: list[np.ndarray]) -> list[np.ndarray]:
    kept: list[np.ndarray] = []
    for point in points:
        if all(np.linalg.norm(point - other) > 1e-9 for other in kept):
            kept.append(np.asarray(point, float))
    return kept
