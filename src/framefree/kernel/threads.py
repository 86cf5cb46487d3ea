"""Splitting rows among threads."""

import functools
import os
from collections import deque
from collections.abc import Callable
from typing import Any

from framefree.kernel.errors import ArgumentError

SHARES = 4
"""Ranges for each thread."""


def split(work: Callable[[int, int], int], rows: int, grain: int, threads: int) -> list[int]:
    """Call ``work(first, last)`` on contiguous ranges that cover all rows, on several threads.

    Ranges are multiples of `grain` rows, except the last. There are several for each thread, and
    whoever is free takes the next: a thread that wakes late, or is held up, costs little.
    """
    if not isinstance(threads, int) or isinstance(threads, bool) or threads < 1:
        raise ArgumentError(f"`threads` must be a positive whole number, not {threads!r}")
    pieces = -(-rows // grain)
    threads = min(threads, pieces)
    if threads <= 1:
        return [work(0, rows)]
    count = min(pieces, threads * SHARES)
    bounds = [min(rows, pieces * k // count * grain) for k in range(count + 1)]
    waiting = deque(range(count))

    def take() -> list[int]:
        results = []
        while True:
            try:
                k = waiting.popleft()
            except IndexError:
                return results
            results.append(work(bounds[k], bounds[k + 1]))

    pool = _pool(os.getpid())
    later = [pool.submit(take) for _ in range(threads - 1)]
    results = take()
    for one in later:
        if not one.cancel():  # a thread that has not begun finds nothing left
            results += one.result()
    return results


@functools.cache
def _pool(process: int) -> Any:
    """Make one pool for a process; a forked child gets its own."""
    from concurrent.futures import ThreadPoolExecutor  # takes 5 ms

    del process
    return ThreadPoolExecutor(max_workers=os.cpu_count() or 1, thread_name_prefix="framefree")
