"""Native code by which threads share rows without the interpreter, and so without its lock.

A thread that waits for the interpreter's lock sleeps, and on a virtual machine wakes 60 to 130
microseconds later: as long as a small batch takes. Here helpers look at a word of memory for a
while after their work is done, take up the next batch at once, and share its ranges with the
caller by an atomic counter. Compiled code calls `share_rows` by itself (`entry.py`). The functions
are written in `sharing_code.py`; here they are compiled and told what they need from the system.
"""

import ctypes
import functools
import os
import sys
from collections.abc import Callable
from dataclasses import dataclass
from time import perf_counter
from typing import Any

import llvmlite.binding as llvm

from framefree.kernel.agreed import MOST_THREADS
from framefree.kernel.interpreter import SHARING
from framefree.kernel.native import compile_object, load_engine
from framefree.kernel.sharing_code import ASSEMBLY, BEGIN, PAUSES, SHARES
from framefree.kernel.target import host

LEFT = 3
"""State of a mailbox whose helper has left."""
LINE = 8
"""Words of a mailbox: state, address of a job, number of the thread in it, patience; and the rest
of a line of the cache, so that mailboxes do not disturb each other."""
PATIENCE = 5e-4
"""Seconds for which a thread looks for more work before it goes to sleep, or leaves."""


@dataclass(frozen=True)
class Sharing:
    """The functions of `ASSEMBLY`; the interpreter lock is released while they run."""

    rows: Callable[..., int]
    idle: Callable[[Any, int], None]
    mailboxes: ctypes.Array
    engine: llvm.ExecutionEngine  # owns the code

    def set_patience(self, seconds: float) -> None:
        """Let threads look for more work for about so long, from the next helper on."""
        SHARING[2] = max(1, int(seconds / _seconds_of_a_look(self)))

    def forget_helpers(self) -> None:
        """Say that all helpers have left, as in a process that was forked they have."""
        for slot in range(0, len(self.mailboxes), LINE):
            self.mailboxes[slot] = LEFT


@functools.cache
def sharing() -> Sharing:
    """Return the functions, compiled once in a process, and tell compiled code where they are."""
    engine = _compiled()
    word, pointer = ctypes.c_ssize_t, ctypes.c_void_p

    def function(name: str, result: type | None, *arguments: type) -> Callable:
        return ctypes.CFUNCTYPE(result, *arguments)(engine.get_function_address(name))

    slots = min(max(os.cpu_count() or 1, 2), MOST_THREADS) - 1
    native = Sharing(
        function("share_rows", ctypes.c_int, *[pointer] * 4, *[word] * 3),
        function("idle", None, pointer, word),
        _aligned_words(slots * LINE),
        engine,
    )
    native.forget_helpers()
    # A helper may be about to return while the interpreter ends: its code lives for ever.
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(native))
    native.set_patience(PATIENCE)
    (sleep, time), (create, free) = _system_sleep(), _system_threads()
    SHARING[1], SHARING[3:8] = (
        slots,
        (sleep, time, ctypes.addressof(native.mailboxes), create, free),
    )
    SHARING[0] = engine.get_function_address("share_rows")
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(after_in_child=native.forget_helpers)
    return native


def _compiled() -> llvm.ExecutionEngine:
    target = host(1)
    kind = target.triple.partition("-")[0].replace("arm64", "aarch64")
    declaration, pause = PAUSES.get(kind, ("", ""))
    words = 5 + 2 * MOST_THREADS + SHARES * MOST_THREADS + 1
    text = ASSEMBLY
    for name, value in (
        ("PAUSE", pause),
        ("WORDS", str(words)),
        ("MOST", str(MOST_THREADS)),
        ("SHARES", str(SHARES)),
    ):
        text = text.replace(name, value)
    return load_engine(compile_object(declaration + text + BEGIN[os.name], target), target)


def _aligned_words(count: int) -> ctypes.Array:
    """Return words whose first begins a line of the cache."""
    memory = (ctypes.c_ssize_t * (count + LINE))()
    first = -ctypes.addressof(memory) // 8 % LINE
    return (ctypes.c_ssize_t * count).from_buffer(memory, 8 * first)


def _seconds_of_a_look(native: Sharing) -> float:
    """Measure it: an instruction that pauses takes 5 to 60 ns, from processor to processor."""
    word, looks, best = ctypes.c_ssize_t(0), 2000, float("inf")
    for _ in range(3):
        start = perf_counter()
        native.idle(ctypes.addressof(word), looks)
        best = min(best, perf_counter() - start)
    return max(best, 1e-7) / looks


def _system_sleep() -> tuple[int, int]:
    """Return the system's function that sends a thread to sleep, and the time for 0.1 ms or so."""
    if sys.platform == "win32":
        return _address(ctypes.windll.kernel32.Sleep), 1  # ms
    return _address(ctypes.CDLL(None).usleep), 100  # us


def _system_threads() -> tuple[int, int]:
    """Return the functions of the system that begin a thread, and that let go of it."""
    if sys.platform == "win32":
        kernel32 = ctypes.windll.kernel32
        return _address(kernel32.CreateThread), _address(kernel32.CloseHandle)
    library = ctypes.CDLL(None)
    return _address(library.pthread_create), _address(library.pthread_detach)


def _address(function: Any) -> int:
    return ctypes.cast(function, ctypes.c_void_p).value or 0
