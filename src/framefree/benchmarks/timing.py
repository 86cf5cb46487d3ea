"""Timing for benchmarks: the best of several runs, ratios in one run, and where they were made."""

import os
import platform
import statistics
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib import metadata
from time import perf_counter, thread_time

Clock = Callable[[], float]


def best_seconds(
    call: Callable[[], object], *, repeats: int = 7, loops: int = 1, clock: Clock = perf_counter
) -> float:
    """Return the shortest time of one call, over `repeats` runs of `loops` calls each."""
    best = float("inf")
    for _ in range(repeats):
        start = clock()
        for _ in range(loops):
            call()
        best = min(best, (clock() - start) / loops)
    return best


@dataclass(frozen=True)
class TurnTiming:
    """Times of one side of a comparison, s: the shortest turn, and the median turn over it."""

    best: float
    spread: float


def in_turns(
    calls: Mapping[str, Callable[[], object]],
    *,
    repeats: int = 7,
    loops: int = 1,
    clock: Clock = thread_time,
) -> dict[str, TurnTiming]:
    """Time several calls that take turns, so that load hits all of them.

    The clock is by default that of this thread: what other processes take from it does not count,
    which would hit long calls more than short ones.

    In each turn a call is made five times and the best counts: the first finds caches that the
    others have filled, the later ones run as in a loop that does nothing else.
    """
    turns: dict[str, list[float]] = {name: [] for name in calls}
    for _ in range(repeats):
        for name, call in calls.items():
            turns[name].append(best_seconds(call, repeats=5, loops=loops, clock=clock))
    return {name: summary(seconds) for name, seconds in turns.items()}


def summary(seconds: Sequence[float]) -> TurnTiming:
    """Return the best of several turns, and how far the median is from it."""
    return TurnTiming(min(seconds), statistics.median(seconds) / min(seconds))


def speedup(
    ours: Callable[[], object], theirs: Callable[[], object], *, repeats: int = 7, loops: int = 1
) -> float:
    """Return how many times as fast `ours` is by the clock on the wall, taking turns."""
    calls = {"ours": ours, "theirs": theirs}
    timings = in_turns(calls, repeats=repeats, loops=loops, clock=perf_counter)
    return timings["theirs"].best / timings["ours"].best


def tell(text: str) -> None:
    """Say on the standard error stream how far a long measurement is; figures go to the other."""
    print(text, file=sys.stderr, flush=True)


def circumstances(*packages: str) -> dict[str, object]:
    """Return what ratios depend on: versions of other libraries, processor, cores, load."""
    return {
        **{f"version.{name}": metadata.version(name) for name in packages},
        "machine": f"{_processor()}, {os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}",
    }


def _processor() -> str:
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as file:
            names = [line.partition(":")[2].strip() for line in file if "model name" in line]
    except OSError:
        names = []
    return names[0] if names else platform.processor() or platform.machine()
