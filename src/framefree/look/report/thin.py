"""Fewer points for a line that has more than a screen can show, without losing its peaks."""

from itertools import pairwise

import numpy as np

_KEPT = 5
"""Points kept of every stretch: extremes of x and y, and one gap."""


def thinned(x: np.ndarray, y: np.ndarray, most: int = 5000) -> tuple[np.ndarray, np.ndarray]:
    """Return at most `most` of the points (n,), (n,), in their order.

    The line is cut into stretches of equal length; of each stretch the points where x and y are
    least and greatest stay, and one that is not finite if there is one. So every peak stays, and
    so does every gap that is a whole stretch long. Half of the points are for that; the others lie
    where the line bends: chords of a smooth line then are equally close to it everywhere.
    """
    if len(x) <= most:
        return x, y
    stretches = max(most // 2 // _KEPT, 1)
    edges = np.linspace(0, len(x), stretches + 1).astype(int)
    gap = ~(np.isfinite(x) & np.isfinite(y))
    kept = [_extremes(x, y, gap, first, last) for first, last in pairwise(edges)]
    bends = _bends(x, y, most - stretches * _KEPT)
    order = np.unique(np.concatenate([*kept, bends]))
    return x[order], y[order]


def _extremes(x: np.ndarray, y: np.ndarray, gap: np.ndarray, first: int, last: int) -> np.ndarray:
    """Return the rows from `first` to before `last` that stay."""
    missing = gap[first:last]
    rows = np.flatnonzero(~missing) + first
    extremes = [values[rows].argmin() for values in (x, y)] if len(rows) else []
    extremes += [values[rows].argmax() for values in (x, y)] if len(rows) else []
    kept = rows[np.array(extremes, int)]
    return np.append(kept, first + missing.argmax()) if missing.any() else kept


def _bends(x: np.ndarray, y: np.ndarray, count: int) -> np.ndarray:
    """Return rows so that between neighbours the root of the curvature adds up to the same.

    A chord of length h is off a line by h^2 y''/8: with h like 1/sqrt(y'') it is so everywhere.
    """
    if count < 2:
        return np.zeros(0, int)
    clean = [np.where(np.isfinite(values), values, 0.0) for values in (x, y)]
    sizes = [max(float(np.ptp(values)), 1e-300) for values in clean]
    bend = np.zeros(len(x))
    for values, size in zip(clean, sizes, strict=True):
        bend[1:-1] += np.abs(np.diff(values, 2)) / size
    density = np.sqrt(bend) + 0.1 * np.sqrt(bend).mean() + 1e-300
    way = np.cumsum(density)
    return np.searchsorted(way, np.linspace(way[0], way[-1], count)).clip(0, len(x) - 1)
