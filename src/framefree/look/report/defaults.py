"""The figures and the animation that any run gets, from what it has recorded."""

from collections.abc import Iterable
from typing import Any

import numpy as np

from framefree.look.report.bands import band_figures
from framefree.look.report.content import Animation, Figure, Line, Page
from framefree.look.report.scene import (
    as_position_and_wxyz,
    body_poses,
    drawn_machine,
    one_trajectory,
)
from framefree.look.report.signals import SignalGroup, changing, groups, resting
from framefree.motion import equations
from framefree.simulate.columns import Channel
from framefree.simulate.run import Run

LINES = 12
"""Most lines of a figure; what has more entries gets several figures."""
FIGURES = 4
"""Most figures of one recorded array."""
TRACED, PATH_ROWS, STILL = 40, 1500, 1e-9
"""Most bodies whose paths are drawn, rows of a path, and the least way of one, m."""
_STATE = {"x": "Configuration", "v": "Velocity", "u": "Input"}
_SYMBOL = {"x": "x", "v": "v", "u": "u"}
_OWN = ("kinetic", "potential", "position_error", "velocity_error", "joint_wrench", "V", "V_rate")


def run_page(run: Run, title: str = "", trajectory: int = 0, **options: Any) -> Page:
    """Return the page of a run: figures, and the motion of one of its trajectories."""
    name = title or (run.machine.name if run.machine is not None else "") or "A run"
    notes = []
    if run.batch is not None:
        notes.append(
            f"Figures show all {run.batch} trajectories: their median, the band from 5 to 95 "
            f"percent of them, and all. The motion is that of trajectory {trajectory}, counted "
            "from 0."
        )
        if run.failures:
            notes.append(
                f"{len(run.failures)} trajectories ended early and count until then; the first: "
                f"{run.failures[0]['message']}"
            )
    trouble = "" if run.status == "finished" else f"The run is {run.status}."
    return Page(
        title=name,
        runs={"run": run},
        figures=default_figures(run),
        animations=(default_animation(one_trajectory(run, trajectory)),),
        notes=tuple(notes),
        tables=resting(_other_signals(run)) if run.batch is None and len(run) else (),
        trouble=run.meta.get("failure", trouble),
        **options,
    )


def default_animation(run: Run, title: str = "Motion") -> Animation:
    """Return the motion of a run, with trails of the frames that a reference is given for."""
    trails: tuple[str, ...] = ()
    paths: dict[str, np.ndarray] = {}
    if run.machine is not None:
        names = {frame.name for frame in (*run.machine.frames, *run.machine.bodies)}
        for key, value in run.reference.items():
            frame, _, what = key.rpartition(".")
            if what == "pose" and frame in names and value.shape[-2:] == (4, 4):
                trails += (frame,)
                paths[f"{frame} reference"] = value[:, :3, 3]
    return Animation(title, run, trails, paths)


def default_figures(run: Run) -> tuple[Figure, ...]:
    """Return figures of all that a run has recorded; of many trajectories, as bands."""
    if run.batch is not None:
        return band_figures(run)
    figures = [
        *_energy(run),
        *_state(run, "x"),
        *_tracking(run),
        *_state(run, "v"),
        *_state(run, "u"),
        *_lyapunov(run),
        *_others(run),
        *_constraints(run),
        *_wrenches(run),
        *_paths(run),
    ]
    return distinct(figures)


def distinct(figures: Iterable[Figure]) -> tuple[Figure, ...]:
    """Return figures without those that show nothing, or what one before them shows already.

    A figure shows the same where all its lines do, up to their sign: errors of laws and ours.
    """
    kept: list[Figure] = []
    for figure in figures:
        if not any(np.isfinite(line.y).any() for line in figure.lines):
            continue
        if not any(_same(figure, other) for other in kept):
            kept.append(figure)
    return tuple(kept)


def _same(a: Figure, b: Figure) -> bool:
    if len(a.lines) != len(b.lines) or a.x_label != b.x_label or a.logarithmic != b.logarithmic:
        return False
    if any(len(p.y) != len(q.y) for p, q in zip(a.lines, b.lines, strict=True)):
        return False
    pairs = [(p.y, q.y) for p, q in zip(a.lines, b.lines, strict=True)]
    still = all(np.nanmax(np.abs(p), initial=0.0) == 0.0 for p, _ in pairs)
    return not still and any(
        all(np.array_equal(p, sign * q, equal_nan=True) for p, q in pairs) for sign in (1.0, -1.0)
    )


# ---------------------------------------------------------------------- one kind each


def _energy(run: Run) -> list[Figure]:
    if not {"kinetic", "potential"} <= set(run.signals):
        return []
    total = run.energy
    values = {"kinetic": run["kinetic"], "potential": run["potential"], "total": total}
    change = f"The total changes by {total[-1] - total[0]:.3g} J." if len(run) else ""
    return [Figure.over_time("Energy", "energy (J)", run.t, values, caption=change)]


def _state(run: Run, name: str) -> list[Figure]:
    channel = _channel(run, "state", name)
    if channel is None:
        return []
    reference = _channel(run, "reference", name)
    dashed: dict[str, np.ndarray] = {}
    if reference is not None:
        rows = run.reference[name].reshape(len(run), -1)
        dashed = {entry: rows[:, i] for i, entry in enumerate(reference.entries)}
    return _entries(run, channel, _STATE[name], _SYMBOL[name], dashed)


def _tracking(run: Run) -> list[Figure]:
    """Return errors against references of the joints and of frames."""
    if run.machine is None or not len(run):
        return []
    machine, figures = drawn_machine(run), []
    reference = _channel(run, "reference", "x")
    if reference is not None and reference.entries == machine.x_names:
        error = machine.difference(run.x, run.reference["x"])
        units = run.units("v")
        channel = Channel(
            "signals",
            "error",
            (machine.nv,),
            machine.v_names,
            tuple(unit.removesuffix("/s") for unit in units),
        )
        figures += _figures_of(run.t, error, channel, "Tracking error of the joints", "error")
    eom = equations(machine.tree)
    for key, value in run.reference.items():
        frame, _, what = key.rpartition(".")
        known = frame in machine.body_index or frame in {f.name for f in machine.frames}
        if what == "pose" and known and value.shape[1:] == (4, 4):
            pose = eom.kernel(f"frame_pose:{frame}")(np.ascontiguousarray(run.x))
            figures += _pose_error(run.t, frame, pose, value)
    return figures


def _pose_error(t: np.ndarray, frame: str, pose: np.ndarray, reference: np.ndarray) -> list[Figure]:
    apart = np.linalg.norm(pose[:, :3, 3] - reference[:, :3, 3], axis=1)
    between = np.zeros_like(pose)
    between[:, :3, :3] = np.swapaxes(reference[:, :3, :3], 1, 2) @ pose[:, :3, :3]
    wxyz = as_position_and_wxyz(between)[:, 3:]
    angle = 2 * np.arctan2(np.linalg.norm(wxyz[:, 1:], axis=1), np.abs(wxyz[:, 0]))
    return [
        Figure.over_time(f"Position error of {frame}", "distance (m)", t, {frame: apart}),
        Figure.over_time(f"Attitude error of {frame}", "angle (rad)", t, {frame: angle}),
    ]


def _lyapunov(run: Run) -> list[Figure]:
    figures = []
    for name, title in (("V", "Lyapunov function"), ("V_rate", "Rate of the Lyapunov function")):
        if name not in run.signals or run.signals[name].ndim != 1:
            continue
        unit = run.units(name)[0] or ("J" if "J" in run.units("V") else "")
        unit = f"{unit}/s" if name == "V_rate" and unit and "/s" not in unit else unit
        values = run.signals[name]
        positive = values[values > 0]
        wide = name == "V" and len(positive) > 1 and positive.max() > 1e3 * positive.min()
        label = f"{name} ({unit})" if unit else name
        figures.append(Figure.over_time(title, label, run.t, {name: values}, logarithmic=wide))
    return figures


def _others(run: Run) -> list[Figure]:
    """Return what the law and the plant tell beyond that, as far as it changes."""
    figures: list[Figure] = []
    for one in changing(_other_signals(run)):
        channel = one.channel
        title = channel.name.replace("_", " ").replace(".", " ")
        # A symbol stays as it is: E would be another one than e.
        title = title if len(title) == 1 else title[:1].upper() + title[1:]
        figures += _figures_of(run.t, one.values, channel, title, channel.name)
    return figures


def _other_signals(run: Run) -> list[SignalGroup]:
    return groups(run, {*_OWN, *(name for name in run.signals if name.endswith("_apart"))})


def _constraints(run: Run) -> list[Figure]:
    """Return by how much constraints are violated, as the largest entry."""
    figures = []
    titles = {
        "position_error": ("Constraint error, positions", "largest error (m or rad)"),
        "velocity_error": ("Constraint error, velocities", "largest error (m/s or rad/s)"),
    }
    for name, (title, label) in titles.items():
        if name in run.signals and run.signals[name].size:
            worst = np.abs(run.signals[name].reshape(len(run), -1)).max(axis=1)
            figures.append(
                Figure.over_time(title, label, run.t, {"largest": worst}, logarithmic=True)
            )
    apart = {name: value for name, value in run.signals.items() if name.endswith("_apart")}
    if apart:
        figures.append(
            Figure.over_time("Joints apart", "largest error", run.t, apart, logarithmic=True)
        )
    return figures


def _wrenches(run: Run) -> list[Figure]:
    wrench = run.signals.get("joint_wrench")
    channel = _channel(run, "signals", "joint_wrench")
    if wrench is None or channel is None or wrench.ndim != 3 or wrench.shape[2] != 6:
        return []
    names = [entry.rpartition(".")[0] for entry in channel.entries[::6]] or [
        str(i) for i in range(wrench.shape[1])
    ]
    figures: list[Figure] = []
    for title, unit, part in (
        ("Joint forces", "N", slice(0, 3)),
        ("Joint moments", "Nm", slice(3, 6)),
    ):
        size = np.linalg.norm(wrench[:, :, part], axis=2)
        like = Channel("signals", title, (len(names),), tuple(names), (unit,))
        figures += _figures_of(run.t, size, like, title, "size")
    return figures


# ---------------------------------------------------------------------- arrays


def _channel(run: Run, group: str, name: str) -> Channel | None:
    channels = [c for c in run.channels if c.group == group and c.name == name and c.size]
    return channels[0] if channels else None


def _entries(
    run: Run, channel: Channel, title: str, symbol: str, dashed: dict[str, Any] | None = None
) -> list[Figure]:
    arrays = {"state": {"x": run.x, "v": run.v, "u": run.u}, "signals": run.signals}
    values = arrays.get(channel.group, run.reference)[channel.name]
    return _figures_of(run.t, values.reshape(len(run), -1), channel, title, symbol, dashed)


def _figures_of(
    t: np.ndarray,
    values: np.ndarray,
    channel: Channel,
    title: str,
    symbol: str,
    dashed: dict[str, Any] | None = None,
) -> list[Figure]:
    """Return figures of the entries (rows, n) of a channel: one a unit, more if there are many."""
    units = (
        channel.units if len(channel.units) == channel.size else channel.units[:1] * channel.size
    )
    units = units or ("",) * channel.size
    entries = channel.entries if len(channel.entries) == channel.size else ()
    names = entries or tuple(_index(channel, i) for i in range(channel.size))
    figures = []
    for unit in dict.fromkeys(units):
        mine = [i for i in range(channel.size) if units[i] == unit]
        groups = [mine[k : k + LINES] for k in range(0, len(mine), LINES)]
        for k, group in enumerate(groups[:FIGURES]):
            lines = _lines(names, values, group, dashed or {})
            part = _named_part([names[i] for i in group], len(groups), channel)
            left = len(mine) - LINES * FIGURES
            caption = f"{left} more are in the table." if k == FIGURES - 1 and left > 0 else ""
            label = f"{symbol} ({unit})" if unit else symbol
            figures.append(Figure.over_time(title + part, label, t, lines, caption=caption))
    return figures


def _named_part(names: list[str], groups: int, channel: Channel) -> str:
    """Return which entries a figure shows, for its title: one, or the first and the last."""
    if len(names) == 1 and channel.shape:
        return f": {names[0]}"
    return f": {names[0]} to {names[-1]}" if groups > 1 else ""


def _paths(run: Run) -> list[Figure]:
    """Return the paths of all bodies' centers of mass, in the plane in which they move most."""
    if run.machine is None or not len(run):
        return []
    machine = drawn_machine(run)
    good = np.flatnonzero(np.isfinite(run.x).all(axis=1))
    massive = [i for i, body in enumerate(machine.bodies) if not body.massless]
    if not len(good) or not massive or len(machine.bodies) > TRACED:
        return []
    rows = good[:: max(len(good) // PATH_ROWS, 1)]
    poses = body_poses(machine, run.x[rows], run.t[rows])
    centers = {
        machine.bodies[i].name: poses[:, i, :3, :3] @ np.asarray(machine.bodies[i].moments.center)
        + poses[:, i, :3, 3]
        for i in massive
    }
    spread = np.max([np.ptp(path, axis=0) for path in centers.values()], axis=0)
    if spread.max() < STILL:
        return []
    a, b = sorted(np.argsort(spread)[-2:].tolist())
    lines = tuple(Line(name, path[:, a], path[:, b]) for name, path in centers.items())
    starts = np.array([path[0] for path in centers.values()])
    first = Line("start", starts[:, a], starts[:, b], markers=True)
    axes = "xyz"
    return [
        Figure(
            "Paths of the bodies",
            f"{axes[a]} (m)",
            f"{axes[b]} (m)",
            (*lines, first),
            caption="Centers of mass, seen along the axis along which they move least.",
            equal=True,
        )
    ]


def _lines(
    names: tuple[str, ...], values: np.ndarray, group: Iterable[int], dashed: dict[str, Any]
) -> dict[str, np.ndarray]:
    lines = {}
    for i in group:
        lines[names[i]] = values[:, i]
        if names[i] in dashed:
            lines[f"{names[i]} reference*"] = dashed[names[i]]
    return lines


def _index(channel: Channel, i: int) -> str:
    if not channel.shape:
        return channel.name
    index = np.unravel_index(i, channel.shape)
    return f"{channel.name}[{', '.join(str(int(k)) for k in index)}]"
