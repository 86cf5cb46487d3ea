"""Random signals of a given spectrum as a sum of sines, the same for the same seed.

    s(t) = sum_i a cos(w_i t + p_i),     sum_i a^2 / 2 = variance

All components have one amplitude: frequencies lie so that each stands for the same share of the
variance, at a random place within its share, and phases are random. So the variance is exact for
any number of components, and the signal does not repeat.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

GRID = 20001
"""Points at which a spectrum is integrated."""


@dataclass(frozen=True)
class SineSum:
    """Amplitude, frequencies (n,) in rad/s and phases (n,) in rad of a sum of sines."""

    amplitude: float
    frequency: np.ndarray
    phase: np.ndarray


def sine_sum(
    density: Callable[[np.ndarray], np.ndarray],
    lowest: float,
    highest: float,
    count: int,
    rng: "np.random.Generator",
    variance: float | None = None,
) -> SineSum:
    """Return the components of a spectrum between two frequencies.

    Parameters
    ----------
    density : callable
        One-sided spectrum S(w), variance per rad/s, of frequencies (n,) in rad/s.
    lowest, highest : float
        rad/s; what lies beyond is left out.
    count : int
        Number of components.
    rng : numpy.random.Generator
    variance : float, optional
        What the components add up to; default that of the spectrum between the two frequencies.
    """
    w = np.geomspace(lowest, highest, GRID)
    S = density(w)
    below = np.concatenate([[0.0], np.cumsum((S[1:] + S[:-1]) / 2 * np.diff(w))])
    total = below[-1] if variance is None else variance
    shares = (np.arange(count) + rng.uniform(0, 1, count)) / count
    frequency = np.interp(shares * below[-1], below, w)
    phase = rng.uniform(0, 2 * np.pi, count)
    return SineSum(float(np.sqrt(2 * total / count)), frequency, phase)
