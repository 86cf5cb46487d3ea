"""Figures taken from records: rates by differences, root mean squares, settling times."""

from typing import Any

import numpy as np

from framefree.simulate.errors import SimulationError

_STENCIL = np.array([1.0, -8.0, 0.0, 8.0, -1.0]) / 12.0


def rate(t: Any, y: Any) -> np.ndarray:
    """Return dy/dt at t[2:-2] by differences of fourth order, along the first axis.

        dy/dt = (y[k-2] - 8 y[k-1] + 8 y[k+1] - y[k+2]) / (12 h) + O(h^4)

    Parameters
    ----------
    t : (n,)
        Equally spaced, n >= 5.
    y : (n, ...)
    """
    t, y = np.asarray(t, float), np.asarray(y, float)
    steps = np.diff(t)
    if len(t) < 5 or np.ptp(steps) > 1e-9 * steps.mean() * len(t):
        raise SimulationError("rates by differences need five or more equally spaced times")
    n = len(t) - 4
    return sum(c * y[k : k + n] for k, c in enumerate(_STENCIL)) / steps.mean()


def rate_error(t: Any, value: Any, stated: Any, floor: float = 1e-3) -> float:
    """Return the largest error of a stated rate, relative to it.

        max |dy/dt - r| / (|r| + floor max |r|)

    Parameters
    ----------
    t : (n,)
    value : (n,)
        What was recorded, such as a Lyapunov function.
    stated : (n,)
        Its rate, as recorded.
    floor : float
        Share of the largest stated rate that is added to the scale.
    """
    r = np.asarray(stated, float)[2:-2]
    scale = np.abs(r) + floor * np.abs(r).max()
    error = np.abs(rate(t, value) - r)
    return float(np.max(np.divide(error, scale, out=error.copy(), where=scale > 0)))


def rms(y: Any) -> float:
    """Return the root of the mean square of the norm of the rows of y (n,) or (n, m)."""
    y = np.asarray(y, float)
    return float(np.sqrt(np.mean(np.sum(y.reshape(len(y), -1) ** 2, axis=1))))


def settling_time(t: Any, y: Any, bound: float) -> float:
    """Return the time from which the norm of the rows of y stays at most at a bound; inf if never.

    Parameters
    ----------
    t : (n,)
    y : (n,) or (n, m)
    bound : float
    """
    t, y = np.asarray(t, float), np.asarray(y, float)
    outside = np.flatnonzero(~(np.linalg.norm(y.reshape(len(y), -1), axis=1) <= bound))
    if not len(outside):
        return float(t[0])
    return float(t[outside[-1] + 1]) if outside[-1] + 1 < len(t) else float("inf")
