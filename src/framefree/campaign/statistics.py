"""Shares and their intervals."""

import math


def success_rate(successes: int, count: int, z: float = 1.96) -> tuple[float, float, float]:
    """Return a share, and the interval in which the true share lies, by Wilson's formula.

    ``(p + z^2/2n +- z sqrt(p (1 - p) / n + z^2 / 4n^2)) / (1 + z^2/n)`` with p = successes / n
    [Wilson1927]; z = 1.96 is 95 percent. Without a run nothing is known: 0 to 1.
    """
    if count == 0:
        return math.nan, 0.0, 1.0
    p, share = successes / count, z * z / count
    middle = (p + share / 2) / (1 + share)
    half = z * math.sqrt(p * (1 - p) / count + share / (4 * count)) / (1 + share)
    return p, max(middle - half, 0.0), min(middle + half, 1.0)
