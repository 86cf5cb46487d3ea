"""Splitting rows among threads."""

import ctypes
from collections.abc import Sequence
from typing import Any

from framefree.kernel.agreed import MOST_THREADS
from framefree.kernel.errors import ArgumentError
from framefree.kernel.interpreter import SHARING
from framefree.kernel.sharing import sharing


def split(
    function: Any,
    tables: Sequence[Any],
    rows: int,
    grain: int,
    threads: int,
) -> bool:
    """Call a native ``function(ports, first, last, ...)`` of ctypes on ranges that cover all rows.

    It returns a whole number, zero if all went well. `tables` are its first argument and what
    follows the range, in memory. Ranges are multiples of `grain` rows, except the last; see
    `framefree.kernel.sharing`. Returns whether all went well.
    """
    if not isinstance(threads, int) or isinstance(threads, bool) or threads < 1:
        raise ArgumentError(f"`threads` must be a positive whole number, not {threads!r}")
    ports, *plan = map(ctypes.addressof, tables)
    if threads == 1:
        return not function(ports, 0, rows, *plan)
    desk, code = ctypes.addressof(SHARING), ctypes.cast(function, ctypes.c_void_p)
    threads = min(threads, MOST_THREADS)
    return not sharing().rows(desk, code, ports, *(plan or [None]), rows, grain, threads)
