"""Splitting rows among threads."""

import ctypes
import functools
import os
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any

from framefree.kernel.errors import ArgumentError
from framefree.kernel.sharing import CHOSEN, LEFT, Job, Sharing, sharing, system_sleep

SHARES = 4
"""Ranges for each thread."""

LOOKS = 6000
"""How often a thread looks for more work before it goes to sleep; 10 to 50 ns each."""


def split(
    function: Callable[..., int],
    tables: Sequence[Any],
    rows: int,
    grain: int,
    threads: int,
) -> bool:
    """Call a native ``function(ports, first, last, ...)`` on ranges that cover all rows.

    `tables` are its first argument and what follows the range, in memory. Ranges are multiples of
    `grain` rows, except the last. There are several for each thread, and whoever is free takes the
    next: a thread that wakes late, or is held up, costs little. Returns whether all went well.
    """
    if not isinstance(threads, int) or isinstance(threads, bool) or threads < 1:
        raise ArgumentError(f"`threads` must be a positive whole number, not {threads!r}")
    pieces = -(-rows // grain)
    threads = min(threads, pieces)
    if threads <= 1:
        ports, *rest = map(ctypes.addressof, tables)
        return not function(ports, 0, rows, *rest)
    count = min(pieces, threads * SHARES)
    bounds = [min(rows, pieces * k // count * grain) for k in range(count + 1)]
    job = Job(function, tables, bounds, threads)
    _helpers(os.getpid()).share(job, threads - 1)
    return not job.failed


class _Helpers:
    """Threads that help with jobs: some wait for the next one, the others are made anew.

    An interrupt (Ctrl-C) may come between any two lines here, but not while a job is shared. A
    helper that is then forgotten leaves by itself, as all do to whom nothing comes for a while.
    """

    def __init__(self) -> None:
        from concurrent.futures import ThreadPoolExecutor  # takes 5 ms

        self.native, self._sleep = sharing(), system_sleep()
        self.waiting: deque[_Helper] = deque()
        count = os.cpu_count() or 1
        self._pool = ThreadPoolExecutor(max_workers=count, thread_name_prefix="framefree")

    def share(self, job: Job, count: int) -> None:
        """Do a job on this thread and so many others, as far as they come to it."""
        chosen = [self._one() for _ in range(count)]
        mailboxes = (ctypes.c_void_p * count)(*[helper.address for helper in chosen])
        self.native.share(job.address, mailboxes, count, LOOKS, *self._sleep)
        self.waiting.extend(helper for helper in chosen if not helper.left)

    def _one(self) -> "_Helper":
        """Choose a helper that waits, or a new one."""
        while True:
            try:
                helper = self.waiting.pop()
            except IndexError:
                helper = _Helper()
                self._pool.submit(helper.serve, self.native, LOOKS)
                return helper
            if self.native.choose(helper.address):
                return helper


class _Helper:
    """The mailbox of a thread, see `framefree.kernel.sharing`."""

    def __init__(self) -> None:
        self._words = (ctypes.c_ssize_t * 3)(CHOSEN)
        self.address = ctypes.addressof(self._words)

    def serve(self, native: Sharing, looks: int) -> None:
        """Do what comes into the mailbox until nothing has come for so many looks."""
        native.serve(self.address, looks)

    @property
    def left(self) -> bool:
        """Whether its thread has left; nothing comes of what is put into its mailbox then."""
        return self._words[0] == LEFT


@functools.cache
def _helpers(process: int) -> _Helpers:
    """Return the helpers of a process; a forked child has its own."""
    del process
    return _Helpers()
