"""Single values that stand out from their neighbours: a lost bit, a wrong camera frame."""

from dataclasses import replace

import numpy as np

from framefree.identify.recording import Recording
from framefree.machine import Machine

WIDTH = 5
"""Rows whose median a value is compared with."""
DEVIATIONS, SHARE = 10.0, 0.05
"""A spike is this many deviations off, and this share of how much its column varies."""


def without_spikes(recording: Recording, machine: Machine) -> tuple[Recording, float]:
    """Return a recording with spikes replaced by the median of their neighbours, and their share.

    A median follows steps and slopes, so that only what goes out and back at once is changed.
    Coordinates that are not plain numbers, such as quaternions, are left as they are.
    """
    plain = np.zeros(machine.nx, bool)
    for joint in machine.joints:
        plain[machine.x_slice[joint.name]] = joint.kind.vector
    changed, count, total = {}, 0, 0
    for name in ("x", "v", "a", "force", "u"):
        values = getattr(recording, name)
        if values is None or not values.size:
            continue
        spikes, median = _spikes(values)
        if name == "x":
            spikes &= plain
        count, total = count + int(spikes.sum()), total + values.size
        if spikes.any():
            changed[name] = np.where(spikes, median, values)
    return (replace(recording, **changed) if changed else recording), count / max(total, 1)


def _spikes(values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    half = WIDTH // 2
    padded = np.pad(values, ((half, half), (0, 0)), mode="edge")
    windows = np.lib.stride_tricks.sliding_window_view(padded, WIDTH, axis=0)
    median = np.median(windows, axis=-1)
    off = np.abs(values - median)
    # Most values equal their median exactly: the deviation is that of the others.
    deviation = np.array([np.median(c[c > 0]) if (c > 0).any() else 0.0 for c in off.T]) * 1.4826
    return off > np.maximum(DEVIATIONS * deviation, SHARE * values.std(axis=0)), median
