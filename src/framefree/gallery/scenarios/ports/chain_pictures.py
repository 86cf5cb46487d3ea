"""Pictures of whole motions of chains, after figures 3 to 5 of [Eslami2025].

A traced picture has the way of every body, solid, beside the way that it should take, dashed, and
the machine itself at some moments. It stands still, and can be turned.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from framefree.control.port import Sphere
from framefree.control.port.avoidance import spine
from framefree.look.report import Figure, Line
from framefree.look.report.scene import as_position_and_wxyz, body_poses
from framefree.machine import Machine
from framefree.simulate import Run

MOMENTS = 9
"""At how many moments the machine itself is drawn."""
GAP = np.full((1, 3), np.nan)


def traced(
    title: str,
    run: Run,
    desired: Mapping[str, np.ndarray] | None = None,
    *,
    frames: Sequence[str] = (),
    balls: Sequence[Sphere] = (),
    caption: str = "",
) -> Figure:
    """Return the ways of all bodies of a run in one picture.

    Parameters
    ----------
    desired : mapping of str to (rows, 3), optional
        Where bodies or frames should be, by name.
    frames : sequence of str
        Frames that leave a trace beside the bodies.
    balls : sequence of Sphere
        Obstacles.
    """
    machine = run.machine
    assert machine is not None
    machine = machine.numeric
    poses = body_poses(machine, run.x)
    lines = [
        Line.in_space(body.name, _centers(body, poses[:, i]))
        for i, body in enumerate(machine.bodies)
    ]
    lines += [Line.in_space(name, _places(machine, name, poses)) for name in frames]
    for name, places in (desired or {}).items():
        lines.append(Line.in_space(f"{name} desired", places, dashed=True))
    rows = np.linspace(0, len(run) - 1, MOMENTS).astype(int)
    name = f"machine at {MOMENTS} moments"
    lines.append(Line.in_space(name, _drawn(machine, poses[rows]), faint=True))
    if balls:
        outline = np.vstack([_outline(ball) for ball in balls])
        lines.append(Line.in_space("obstacle", outline, faint=True))
    return Figure(title, "x (m)", "y (m)", tuple(lines), caption, z_label="z (m)")


def desired_centers(run: Run) -> dict[str, np.ndarray]:
    """Return where the mass centers of all bodies should be (rows, 3), of recorded poses."""
    assert run.machine is not None
    bodies = run.machine.numeric.bodies
    return {body.name: _centers(body, run[f"{body.name}.pose"]) for body in bodies}


def followed(title: str, run: Run, frame: str) -> tuple[Figure, Figure]:
    """Return place and attitude of a frame over time, desired ones dashed."""
    assert run.machine is not None
    machine = run.machine.numeric
    own = machine.frame(frame)
    poses = body_poses(machine, run.x)[:, machine.body_index[own.body]] @ np.asarray(own.pose)
    desired = run[f"{frame}.pose"]
    places: dict[str, Any] = {}
    for k, axis in enumerate("xyz"):
        places[axis] = poses[:, k, 3]
        places[f"{axis} desired *"] = desired[:, k, 3]
    turns: dict[str, Any] = {}
    actual, wanted = (_one_sided(as_position_and_wxyz(G)[:, 3:]) for G in (poses, desired))
    wanted = wanted * np.sign(np.sum(actual[0] * wanted[0]))
    for k, part in enumerate("wxyz"):
        turns[f"q{part}"] = actual[:, k]
        turns[f"q{part} desired *"] = wanted[:, k]
    return (
        Figure.over_time(f"{title}: position of `{frame}`", "position (m)", run.t, places),
        Figure.over_time(f"{title}: attitude of `{frame}`", "unit quaternion", run.t, turns),
    )


def _one_sided(wxyz: np.ndarray) -> np.ndarray:
    """Return quaternions (rows, 4) without jumps of sign."""
    jumps = np.sign(np.einsum("ni,ni->n", wxyz[1:], wxyz[:-1]))
    return wxyz * np.concatenate([[1.0], np.cumprod(np.where(jumps < 0, -1.0, 1.0))])[:, None]


def _centers(body: Any, poses: np.ndarray) -> np.ndarray:
    center = np.asarray(body.moments.center if body.inertia else np.zeros(3), float)
    return poses[:, :3, :3] @ center + poses[:, :3, 3]


def _places(machine: Machine, name: str, poses: np.ndarray) -> np.ndarray:
    frame = machine.frame(name)
    return (poses[:, machine.body_index[frame.body]] @ np.asarray(frame.pose))[:, :3, 3]


def _drawn(machine: Machine, poses: np.ndarray) -> np.ndarray:
    """Return points (n, 3) of lines along all bodies at poses (k, bodies, 4, 4), with gaps."""
    parts = []
    for G in poses:
        for i, body in enumerate(machine.bodies):
            for line in spine(machine, body.name):
                parts += [line @ G[i, :3, :3].T + G[i, :3, 3], GAP]
    return np.vstack(parts)


def _outline(ball: Sphere) -> np.ndarray:
    """Return three circles (n, 3) around a ball, with gaps."""
    angle, parts = np.linspace(0, 2 * np.pi, 49), []
    for k in range(3):
        circle = np.zeros((len(angle), 3))
        circle[:, k - 1], circle[:, k - 2] = np.cos(angle), np.sin(angle)
        parts += [np.asarray(ball.center, float) + ball.radius * circle, GAP]
    return np.vstack(parts)
