"""What is kept of each run beside its metrics: columns over time, all rows or some of them."""

from typing import Any

import numpy as np

from framefree.simulate import Run

METRICS, THINNED, FULL = "metrics", "thinned", "full"
KEEP = (METRICS, THINNED, FULL)
"""What may be kept: metrics only; thinned records too; all that was recorded."""
ROWS = 101
"""Rows of a thinned record."""
TIME = "t"

Record = dict[str, np.ndarray]
"""Columns (rows,) by names such as "x.elbow [rad]"; "t" is the time in s."""


def record_of(run: Run, trajectory: int | None, keep: str) -> Record | None:
    """Return the record of a run, or of one trajectory of many.

    A thinned record has configuration, velocity, input and single numbers of the signals; rows of a
    trajectory that ended early are left out.
    """
    if keep == METRICS:
        return None
    rows = chosen_rows(len(run.t)) if keep == THINNED else np.arange(len(run.t))
    arrays = run.arrays()
    columns: Record = {TIME: run.t[rows]}
    for channel in run.channels:
        if keep == THINNED and channel.group != "state" and channel.size > 1:
            continue
        values = arrays[channel.key]
        values = (values if trajectory is None else values[trajectory])[rows]
        flat = values.reshape(len(rows), -1)
        columns |= {name: flat[:, i] for i, name in enumerate(channel.columns)}
    first = next((name for name in columns if name != TIME), None)
    there = slice(None) if first is None else np.isfinite(columns[first])
    return {name: np.ascontiguousarray(column[there]) for name, column in columns.items()}


def thinned(record: Record | None, keep: str) -> Record | None:
    """Return as much of a record as is kept."""
    if record is None or keep == METRICS:
        return None
    if keep == FULL:
        return record
    rows = chosen_rows(len(record[TIME]))
    return {name: column[rows] for name, column in record.items()}


def chosen_rows(count: int) -> np.ndarray:
    """Return the rows of a thinned record, the first and the last among them."""
    return np.unique(np.linspace(0, count - 1, min(ROWS, count)).round().astype(int))


def quantiles(t: np.ndarray, runs: list[tuple[np.ndarray, np.ndarray]], shares: Any) -> np.ndarray:
    """Return quantiles (shares, times) over runs, each of times and values, at the times t.

    A run that has ended before a time does not count there.
    """
    values = np.full((len(runs), len(t)), np.nan)
    for k, (times, column) in enumerate(runs):
        if len(times) == len(t) and np.array_equal(times, t):
            values[k] = column
        elif len(times):
            values[k] = np.interp(t, times, column, right=np.nan)
    there = ~np.isnan(values).all(axis=0)
    result = np.full((len(shares), len(t)), np.nan)
    if there.any():
        result[:, there] = np.nanquantile(values[:, there], shares, axis=0)
    return result
