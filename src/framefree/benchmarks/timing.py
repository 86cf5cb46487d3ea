"""Timing for benchmarks: the best of several runs, ratios in one run."""

from collections.abc import Callable
from time import perf_counter


def best_seconds(call: Callable[[], object], *, repeats: int = 7, loops: int = 1) -> float:
    """Return the shortest time of one call, over `repeats` runs of `loops` calls each."""
    best = float("inf")
    for _ in range(repeats):
        start = perf_counter()
        for _ in range(loops):
            call()
        best = min(best, (perf_counter() - start) / loops)
    return best


def speedup(
    ours: Callable[[], object], theirs: Callable[[], object], *, repeats: int = 7, loops: int = 1
) -> float:
    """Return how many times as fast `ours` is; the two take turns, so that load hits both.

    In each turn a call is made five times and the best counts: the first finds caches that the
    other has filled, the others run as in a loop that does nothing else.
    """
    best = [float("inf"), float("inf")]
    for _ in range(repeats):
        for i, call in enumerate((ours, theirs)):
            best[i] = min(best[i], best_seconds(call, repeats=5, loops=loops))
    return best[1] / best[0]
