"""An animation as plain data for the page: solids once, poses of the bodies over time, curves."""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from framefree.look.report import mesh, style
from framefree.look.report.content import Animation, ReportError
from framefree.look.report.mesh import Solid
from framefree.look.report.packing import packed
from framefree.machine import Machine
from framefree.motion import equations
from framefree.simulate.run import Run

FRAMES = (200, 1500)
"""Least and most moments that are kept; those in between are interpolated on the page."""
POSES = 100_000
"""Most poses that are kept: with 28 bytes each, the largest part of an animation."""
TURN = 0.35
"""Turn of a body from one kept moment to the next that is aimed at, rad."""
STEP = 0.02
"""Way of a frame with a trail from one kept moment to the next, in sizes of the whole trail."""
FLAT = 0.25
"""Share of the second largest extent below which a motion counts as one in a plane."""
VIEW = (0.95, -1.2, 0.62)
ALONG = ((1.5, -0.42, 0.36), (0.42, -1.5, 0.36), (0.2, -0.75, 1.35))
"""Directions to look from: in general, and at motions in a plane normal to x, y or z."""
DISTANCE, NEAR = 1.42, 1.28
"""Distance of the eye from the middle, in diagonals of the box around everything; the second for
motions in a plane."""
OBSTACLE = (0.80, 0.20, 0.25, 0.35)


def scene(animation: Animation) -> dict[str, Any]:
    """Return what the page's script needs to draw an animation.

    Arrays are {"bdata": base64, "dtype": ..}, little-endian; poses are (frames, bodies, 7), each
    position in m and quaternion wxyz of a body in the world.
    """
    run = one_trajectory(animation.run)
    if run.machine is None:
        raise ReportError(
            f"`{animation.title}` cannot be shown: the machine of its run has parts that live only "
            "in Python"
        )
    machine = drawn_machine(run)
    frames = {name: machine.frame(name) for name in animation.trails}
    rows, poses = moments_to_show(machine, run, tuple(frames.values()))
    trails = {name: _places(machine, frame, poses) for name, frame in frames.items()}
    paths = {name: _curve(name, points) for name, points in (animation.paths or {}).items()}
    solids = style.solids_of(machine, size_of(machine, poses[0]))
    solids += [mesh.ball(-1, center, radius, OBSTACLE) for center, radius in animation.spheres]
    curves = [*trails.values(), *paths.values()]
    low, high = _bounds(solids, poses, curves)
    return {
        "times": packed(run.t[rows]),
        "bodies": [body.name for body in machine.bodies],
        "poses": packed(as_position_and_wxyz(poses)),
        "meshes": [_merged(same) for same in _by_opacity(solids)],
        "ties": [list(tie) for tie in style.ties(machine)],
        "trails": [{"name": name, "points": packed(points)} for name, points in trails.items()],
        "paths": [{"name": name, "points": packed(points)} for name, points in paths.items()],
        **_box(low, high),
    }


def one_trajectory(run: Run, index: int = 0) -> Run:
    """Return one trajectory of a run of many; a single one as it is."""
    if run.batch is None:
        return run
    if not 0 <= index < run.batch:
        raise ReportError(f"there is no trajectory {index}; the run has {run.batch}")
    return replace(
        run,
        x=run.x[index],
        v=run.v[index],
        u=run.u[index],
        reference={name: value[index] for name, value in run.reference.items()},
        signals={name: value[index] for name, value in run.signals.items()},
    )


def drawn_machine(run: Run) -> Machine:
    """Return the machine of a run in numbers, as its run had them."""
    machine = run.machine
    if machine is None:
        raise ReportError("the machine of the run has parts that live only in Python")
    values = np.asarray(run.meta.get("parameters", ()), float)
    if not len(machine.parameters.names) or values.shape[-1:] != (len(machine.parameters),):
        return machine.numeric
    return machine.with_parameters(values.reshape(-1, values.shape[-1])[0].tolist())


def body_poses(machine: Machine, x: np.ndarray, t: np.ndarray | float = 0.0) -> np.ndarray:
    """Return the poses (rows, bodies, 4, 4) of all bodies at configurations (rows, nx)."""
    eom = equations(machine.tree)
    inputs = [np.ascontiguousarray(x)]
    if eom.takes_time("body_pose"):
        inputs.append(np.broadcast_to(np.reshape(t, (-1, 1)), (len(x), 1)))
    return eom.body_pose(*inputs)


def moments_to_show(
    machine: Machine, run: Run, frames: Sequence[Any] = ()
) -> tuple[np.ndarray, np.ndarray]:
    """Return rows of a run, evenly in time, and the poses (rows, bodies, 4, 4) at them.

    There are so many that, in the mean, no body turns by more than `TURN` and no frame of `frames`
    goes further than `STEP` from one to the next, within `FRAMES` and `POSES`.
    """
    good = np.flatnonzero(np.isfinite(run.x).all(axis=1))
    if not len(good):
        raise ReportError("the run has no finite state that could be shown")
    most = int(np.clip(POSES // max(len(machine.bodies), 1), *FRAMES))
    rows = good[_evenly(run.t[good], most)]
    poses = body_poses(machine, run.x[rows], run.t[rows])
    R = poses[..., :3, :3]
    traces = np.einsum("tbij,tbij->tb", R[1:], R[:-1])
    turned = np.arccos(np.clip((traces - 1) / 2, -1, 1)).sum(axis=0).max(initial=0.0)
    steps = [turned / TURN, *(_steps(_places(machine, frame, poses)) for frame in frames)]
    kept = _evenly(run.t[rows], int(np.clip(max(steps), FRAMES[0], most)))
    return rows[kept], poses[kept]


def as_position_and_wxyz(poses: np.ndarray) -> np.ndarray:
    """Return poses (..., 4, 4) as positions and unit quaternions (..., 7)."""
    # Loading scipy.spatial takes as long as all of framefree.
    from scipy.spatial.transform import Rotation

    lead = poses.shape[:-2]
    flat = poses.reshape(-1, 4, 4)
    if not len(flat):
        return np.zeros((*lead, 7))
    wxyz = Rotation.from_matrix(flat[:, :3, :3]).as_quat()[:, [3, 0, 1, 2]]
    return np.hstack([flat[:, :3, 3], wxyz]).reshape(*lead, 7)


# ---------------------------------------------------------------------- parts


def _evenly(t: np.ndarray, most: int) -> np.ndarray:
    """Return at most so many rows of times (n,), the first and the last among them."""
    if len(t) <= most:
        return np.arange(len(t))
    wanted = np.linspace(t[0], t[-1], most)
    after = np.clip(np.searchsorted(t, wanted), 1, len(t) - 1)
    nearer = wanted - t[after - 1] < t[after] - wanted
    return np.unique(np.r_[0, np.where(nearer, after - 1, after), len(t) - 1])


def _places(machine: Machine, frame: Any, poses: np.ndarray) -> np.ndarray:
    """Return the origins (rows, 3) of a frame."""
    at = np.asarray(frame.pose, float)[:3, 3]
    index = machine.body_index[frame.body]
    if index < 0:
        return np.tile(at, (len(poses), 1))
    return poses[:, index, :3, :3] @ at + poses[:, index, :3, 3]


def _steps(points: np.ndarray) -> float:
    """Return how many steps of `STEP` a curve (n, 3) is long."""
    size = float(np.ptp(points, axis=0).max())
    length = float(np.linalg.norm(np.diff(points, axis=0), axis=1).sum())
    return length / (STEP * size) if size > 1e-9 else 0.0


def _curve(name: str, points: Any) -> np.ndarray:
    points = np.asarray(points, float)
    if points.ndim != 2 or points.shape[1] != 3:
        raise ReportError(f"the path `{name}` must be points (n, 3), got {points.shape}")
    return points[:: 1 + len(points) // 2000]


def size_of(machine: Machine, poses: np.ndarray) -> float:
    """Return the size of the machine at a moment, m."""
    points = [np.zeros((0, 3))]
    for i, (body, G) in enumerate(zip(machine.bodies, poses, strict=True)):
        own = style.joints_on(machine, i)
        if not body.massless:
            own.append(np.asarray(body.moments.center, float))
        points.append(np.array(own) @ G[:3, :3].T + G[:3, 3])
    every = np.vstack(points)
    size = float(np.linalg.norm(np.ptp(every, axis=0))) if len(every) else 0.0
    if size > 1e-9:
        return size
    traces = [
        np.trace(b.moments.second) / b.moments.total for b in machine.bodies if not b.massless
    ]
    return 2 * float(np.sqrt(max(traces, default=1.0))) or 1.0


def _bounds(
    solids: Iterable[Solid], poses: np.ndarray, curves: Sequence[np.ndarray]
) -> tuple[np.ndarray, np.ndarray]:
    """Return the corners of the box around everything at all moments."""
    clouds = [curve[np.isfinite(curve).all(axis=1)] for curve in curves]
    for solid in solids:
        low, high = solid.points.min(axis=0), solid.points.max(axis=0)
        corners = np.array(np.meshgrid(*zip(low, high, strict=True))).reshape(3, -1)
        if solid.body < 0:
            clouds.append(corners.T)
        else:
            G = poses[:, solid.body]
            moved = G[:, :3, :3] @ corners + G[:, :3, 3:]
            clouds.append(moved.transpose(0, 2, 1).reshape(-1, 3))
    every = np.vstack([np.zeros((0, 3)), *clouds])
    if not len(every):
        return -np.ones(3), np.ones(3)
    return every.min(axis=0), every.max(axis=0)


def _box(low: np.ndarray, high: np.ndarray) -> dict[str, Any]:
    """Return ranges of the axes, of one scale, and where to look from, and how far up.

    A motion in a plane is seen nearly along the plane's normal.
    """
    size = high - low
    largest = max(float(size.max()), 1e-6)
    half = np.maximum(1.06 * size, 0.3 * largest) / 2
    middle, aspect = (low + high) / 2, half / half.max()
    thin, other, _ = np.argsort(size)
    planar = size[thin] < FLAT * size[other]
    view = np.array(ALONG[thin] if planar else VIEW)
    eye = (NEAR if planar else DISTANCE) * np.linalg.norm(aspect) * view / np.linalg.norm(view)
    return {
        "ranges": [[float(m - h), float(m + h)] for m, h in zip(middle, half, strict=True)],
        "aspect": aspect.tolist(),
        "eye": eye.tolist(),
        "center": 0.0 if planar else -0.08 * float(aspect[2]),
    }


def _by_opacity(solids: Iterable[Solid]) -> list[list[Solid]]:
    """Return the solids in groups of one opacity, opaque ones first."""
    groups: dict[float, list[Solid]] = {}
    for solid in solids:
        groups.setdefault(round(solid.opacity, 1) or 0.1, []).append(solid)
    return [groups[opacity] for opacity in sorted(groups, reverse=True)]


def _merged(solids: list[Solid]) -> dict[str, Any]:
    """Return solids as one mesh, whose points know their body."""
    starts = np.cumsum([0, *(len(solid.points) for solid in solids)])
    triangles = [s.triangles + start for s, start in zip(solids, starts, strict=False)]
    colors = np.vstack([solid.colors for solid in solids])
    palette, index = np.unique(np.round(255 * colors).astype(int), axis=0, return_inverse=True)
    return {
        "opacity": round(solids[0].opacity, 1) or 0.1,
        "points": packed(np.vstack([solid.points for solid in solids])),
        "owner": packed(np.repeat([s.body for s in solids], [len(s.points) for s in solids]), "i2"),
        "triangles": packed(np.vstack(triangles), "u4"),
        "palette": [f"rgb({r},{g},{b})" for r, g, b in palette.tolist()],
        "color": packed(index.reshape(-1), "u2"),
    }
