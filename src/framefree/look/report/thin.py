"""Fewer points for a line that has more than a screen can show, without losing its peaks."""

from itertools import pairwise

import numpy as np

_KEPT = 5
"""Points kept of every stretch: extremes of x and y, and one gap."""


def thinned(x: np.ndarray, y: np.ndarray, most: int = 5000) -> tuple[np.ndarray, np.ndarray]:
    """Return at most `most` of the points (n,), (n,), in their order.

    The line is cut into stretches of equal length; of each stretch the points where x and y are
    least and greatest stay, and one that is not finite if there is one. So every peak stays, and
    so does every gap that is a whole stretch long.
    """
    if len(x) <= most:
        return x, y
    stretches = max(most // _KEPT, 1)
    edges = np.linspace(0, len(x), stretches + 1).astype(int)
    gap = ~(np.isfinite(x) & np.isfinite(y))
    kept = [_extremes(x, y, gap, first, last) for first, last in pairwise(edges)]
    order = np.unique(np.concatenate(kept))
    return x[order], y[order]


def _extremes(x: np.ndarray, y: np.ndarray, gap: np.ndarray, first: int, last: int) -> np.ndarray:
    """Return the rows from `first` to before `last` that stay."""
    missing = gap[first:last]
    rows = np.flatnonzero(~missing) + first
    extremes = [values[rows].argmin() for values in (x, y)] if len(rows) else []
    extremes += [values[rows].argmax() for values in (x, y)] if len(rows) else []
    kept = rows[np.array(extremes, int)]
    return np.append(kept, first + missing.argmax()) if missing.any() else kept
