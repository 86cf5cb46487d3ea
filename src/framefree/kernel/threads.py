"""Splitting rows among threads."""

import functools
import os
from collections.abc import Callable
from typing import Any

from framefree.kernel.errors import ArgumentError


def split(work: Callable[[int, int], int], rows: int, grain: int, threads: int) -> list[int]:
    """Call ``work(first, last)`` on contiguous ranges that cover all rows, on several threads.

    Ranges are multiples of `grain` rows, except the last.
    """
    if not isinstance(threads, int) or isinstance(threads, bool) or threads < 1:
        raise ArgumentError(f"`threads` must be a positive whole number, not {threads!r}")
    pieces = -(-rows // grain)
    threads = min(threads, pieces)
    if threads <= 1:
        return [work(0, rows)]
    bounds = [min(rows, pieces * k // threads * grain) for k in range(threads + 1)]
    pool = _pool(os.getpid())
    later = [pool.submit(work, bounds[k], bounds[k + 1]) for k in range(1, threads)]
    results = [work(bounds[0], bounds[1])]
    return results + [one.result() for one in later]


@functools.cache
def _pool(process: int) -> Any:
    """Make one pool for a process; a forked child gets its own."""
    from concurrent.futures import ThreadPoolExecutor  # takes 5 ms

    del process
    return ThreadPoolExecutor(max_workers=os.cpu_count() or 1, thread_name_prefix="framefree")
