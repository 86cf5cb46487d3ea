"""Many runs over time in one figure: their median, most of them, and all."""

from collections.abc import Sequence

import numpy as np

from framefree.campaign.records import chosen_rows, quantiles
from framefree.look.report.content import TIME_LABEL, Figure, Line
from framefree.simulate.run import Run

SHARES = (0.0, 0.05, 0.5, 0.95, 1.0)
"""Least, the band of most, median, greatest."""
FIGURES = 12
"""Most figures of one recorded array."""
_STATE = {"x": "Configuration", "v": "Velocity", "u": "Input"}


def band_figures(run: Run) -> tuple[Figure, ...]:
    """Return bands of configurations, velocities, inputs and single signals of many trajectories.

    A trajectory that ended early counts until then.
    """
    rows, arrays, figures = chosen_rows(len(run.t)), run.arrays(), []
    for channel in run.channels:
        single = channel.group == "signals" and channel.size == 1
        if channel.group != "state" and not single:
            continue
        batch = arrays[channel.key][:, rows].reshape(run.batch or 1, len(rows), -1)
        reference = run.reference.get(channel.name) if channel.group == "state" else None
        same = reference is not None and reference.shape == arrays[channel.key].shape
        for k, column in enumerate(channel.columns[:FIGURES]):
            runs = [(run.t[rows], values) for values in batch[:, :, k]]
            wanted = reference[0, rows, k] if same and reference is not None else None
            title = _STATE.get(channel.name, channel.name.replace("_", " "))
            figures.append(band_figure(title, column, run.t[rows], runs, wanted))
    return tuple(figures)


def band_figure(
    title: str,
    column: str,
    t: np.ndarray,
    runs: Sequence[tuple[np.ndarray, np.ndarray]],
    reference: np.ndarray | None = None,
) -> Figure:
    """Return the bands of one column, such as "x.elbow [rad]", of runs of times and values."""
    name, _, unit = column.partition(" [")
    entry = name.removeprefix("signals.")
    label = f"{entry} ({unit.rstrip(']')})" if unit else entry
    low, most_low, median, most_high, high = quantiles(t, list(runs), SHARES)
    lines = [
        Line("median", t, median),
        Line.band("5 to 95 percent", t, most_low, most_high),
        Line.band("all runs", t, low, high),
    ]
    if reference is not None:
        lines.append(Line("reference", t, reference, dashed=True))
    words = f"{title} {entry.partition('.')[2]}" if "." in entry else title
    return Figure(words[:1].upper() + words[1:], TIME_LABEL, label, tuple(lines))
