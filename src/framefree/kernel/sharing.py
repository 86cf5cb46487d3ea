"""Native code by which threads share work without the interpreter, and so without its lock.

A thread that waits for the interpreter's lock sleeps, and on a virtual machine wakes 60 to 130
microseconds later: as long as a small batch takes. Here helpers look at a word of memory for a
while after their work is done, take up the next batch at once, and share its ranges with the
caller by an atomic counter.
"""

import ctypes
import functools
import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import llvmlite.binding as llvm

from framefree.kernel.native import compile_object, load_engine
from framefree.kernel.target import host

IDLE, HANDED, TAKEN = 0, 1, 2
"""States of a mailbox: its helper waits, work lies in it, the helper is at work."""

ASSEMBLY = """
; A job: threads, function, ports, plan or null, failures; for each thread the next and the last of
; its ranges; and the bounds of all ranges.
; Works on the ranges of a thread, then on what others have left of theirs: in the next batch the
; same rows come to the same thread, which has them in its cache.
define void @take(ptr %job, i64 %thread) nounwind {
entry:
  %threads = load i64, ptr %job
  %function_at = getelementptr i64, ptr %job, i64 1
  %function = load ptr, ptr %function_at
  %ports_at = getelementptr i64, ptr %job, i64 2
  %ports = load ptr, ptr %ports_at
  %plan_at = getelementptr i64, ptr %job, i64 3
  %plan = load ptr, ptr %plan_at
  %failures = getelementptr i64, ptr %job, i64 4
  %shares = getelementptr i64, ptr %job, i64 5
  %twice = mul i64 %threads, 2
  %bounds = getelementptr i64, ptr %shares, i64 %twice
  %plain = icmp eq ptr %plan, null
  br label %one
one:
  %done = phi i64 [ 0, %entry ], [ %more, %next ]
  %shifted = add i64 %thread, %done
  %owner = urem i64 %shifted, %threads
  %share = mul i64 %owner, 2
  %next_at = getelementptr i64, ptr %shares, i64 %share
  %end_at = getelementptr i64, ptr %next_at, i64 1
  %end = load i64, ptr %end_at
  br label %turn
turn:
  %k = atomicrmw add ptr %next_at, i64 1 monotonic
  %some = icmp slt i64 %k, %end
  br i1 %some, label %work, label %next
work:
  %first_at = getelementptr i64, ptr %bounds, i64 %k
  %first = load i64, ptr %first_at
  %last_at = getelementptr i64, ptr %first_at, i64 1
  %last = load i64, ptr %last_at
  br i1 %plain, label %rows, label %steps
rows:
  %rows_code = call i32 %function(ptr %ports, i64 %first, i64 %last)
  br label %worked
steps:
  %steps_code = call i32 %function(ptr %ports, i64 %first, i64 %last, ptr %plan)
  br label %worked
worked:
  %code = phi i32 [ %rows_code, %rows ], [ %steps_code, %steps ]
  %wide = sext i32 %code to i64
  %before = atomicrmw or ptr %failures, i64 %wide monotonic
  br label %turn
next:
  %more = add i64 %done, 1
  %others = icmp slt i64 %more, %threads
  br i1 %others, label %one, label %all
all:
  ret void
}

; A mailbox: its state, the address of a job, the number of the thread in that job.
; Puts a job into mailboxes, and works on it as their owners do.
define void @share(ptr %job, ptr %mailboxes, i64 %count) nounwind {
entry:
  br label %head
head:
  %k = phi i64 [ 0, %entry ], [ %more, %hand ]
  %some = icmp slt i64 %k, %count
  br i1 %some, label %hand, label %own
hand:
  %place = getelementptr ptr, ptr %mailboxes, i64 %k
  %mailbox = load ptr, ptr %place
  %job_at = getelementptr i64, ptr %mailbox, i64 1
  store ptr %job, ptr %job_at
  %thread_at = getelementptr i64, ptr %mailbox, i64 2
  %more = add i64 %k, 1
  store i64 %more, ptr %thread_at
  store atomic i64 1, ptr %mailbox release, align 8
  br label %head
own:
  call void @take(ptr %job, i64 0)
  ret void
}

; Works on what comes into a mailbox, until nothing has come for so many looks.
define void @serve(ptr %mailbox, i64 %looks) nounwind {
entry:
  br label %look
look:
  %k = phi i64 [ 0, %entry ], [ %more, %wait ], [ 0, %work ]
  %state = load atomic i64, ptr %mailbox acquire, align 8
  %handed = icmp eq i64 %state, 1
  br i1 %handed, label %claim, label %wait
claim:
  %pair = cmpxchg ptr %mailbox, i64 1, i64 2 acq_rel acquire
  %claimed = extractvalue { i64, i1 } %pair, 1
  br i1 %claimed, label %work, label %wait
work:
  %job_at = getelementptr i64, ptr %mailbox, i64 1
  %job = load ptr, ptr %job_at
  %thread_at = getelementptr i64, ptr %mailbox, i64 2
  %thread = load i64, ptr %thread_at
  call void @take(ptr %job, i64 %thread)
  store atomic i64 0, ptr %mailbox release, align 8
  br label %look
wait:
  PAUSE
  %more = add i64 %k, 1
  %patient = icmp slt i64 %more, %looks
  br i1 %patient, label %look, label %end
end:
  ret void
}

; Takes back a job that its helper has not begun, or waits for its end; tells the state at last.
define i64 @finish(ptr %mailbox, i64 %looks) nounwind {
entry:
  %pair = cmpxchg ptr %mailbox, i64 1, i64 0 acq_rel acquire
  %withdrawn = extractvalue { i64, i1 } %pair, 1
  br i1 %withdrawn, label %end, label %look
look:
  %k = phi i64 [ 0, %entry ], [ %more, %wait ]
  %state = load atomic i64, ptr %mailbox acquire, align 8
  %idle = icmp eq i64 %state, 0
  br i1 %idle, label %end, label %wait
wait:
  PAUSE
  %more = add i64 %k, 1
  %patient = icmp slt i64 %more, %looks
  br i1 %patient, label %look, label %busy
end:
  ret i64 0
busy:
  ret i64 2
}
"""

PAUSES = {
    "x86_64": ("declare void @llvm.x86.sse2.pause()", "call void @llvm.x86.sse2.pause()"),
    "aarch64": ("declare void @llvm.aarch64.hint(i32)", "call void @llvm.aarch64.hint(i32 1)"),
}
"""What spares the processor while a thread looks again and again, by the kind of processor."""


@dataclass(frozen=True)
class Sharing:
    """The functions of `ASSEMBLY`; the interpreter lock is released while they run."""

    share: Callable[[int, ctypes.Array, int], None]
    serve: Callable[[int, int], None]
    finish: Callable[[int, int], int]
    engine: llvm.ExecutionEngine  # owns the code


@functools.cache
def sharing() -> Sharing:
    """Return the functions, compiled once in a process."""
    target = host(1)
    kind = target.triple.partition("-")[0].replace("arm64", "aarch64")
    declaration, pause = PAUSES.get(kind, ("", ""))
    text = declaration + ASSEMBLY.replace("PAUSE", pause)
    engine = load_engine(compile_object(text, target), target)
    word, pointer = ctypes.c_ssize_t, ctypes.c_void_p

    def function(name: str, result: type | None, *arguments: type) -> Callable:
        return ctypes.CFUNCTYPE(result, *arguments)(engine.get_function_address(name))

    return Sharing(
        function("share", None, pointer, pointer, word),
        function("serve", None, pointer, word),
        function("finish", word, pointer, word),
        engine,
    )


class Job:
    """Ranges of rows for a native function, in memory as native code reads it.

    Parameters
    ----------
    function : ctypes function
        ``function(ports, first, last)``, or with a plan as the last argument.
    tables : one or two ctypes objects
        Ports, and the plan if there is one.
    bounds : sequence of int
        Where the ranges begin, and where the last ends.
    threads : int
        Among which they are shared.
    """

    def __init__(
        self,
        function: Any,
        tables: Sequence[ctypes.Array | ctypes.Structure],
        bounds: Sequence[int],
        threads: int,
    ) -> None:
        self._held = function, tables
        address = ctypes.cast(function, ctypes.c_void_p).value
        ports, plan, *_ = (*map(ctypes.addressof, tables), 0)
        parts = [(len(bounds) - 1) * k // threads for k in range(threads + 1)]
        shares = itertools.chain.from_iterable(itertools.pairwise(parts))
        words = (threads, address, ports, plan, 0, *shares, *bounds)
        self.words = (ctypes.c_ssize_t * len(words))(*words)

    @property
    def address(self) -> int:
        """Where it lies in memory."""
        return ctypes.addressof(self.words)

    @property
    def failed(self) -> bool:
        """Whether the function returned anything but zero for a range."""
        return self.words[4] != 0
