"""Native code by which threads share work without the interpreter, and so without its lock.

A thread that waits for the interpreter's lock sleeps, and on a virtual machine wakes 60 to 130
microseconds later: as long as a small batch takes. Here helpers look at a word of memory for a
while after their work is done, take up the next batch at once, and share its ranges with the
caller by an atomic counter.
"""

import ctypes
import functools
import itertools
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import llvmlite.binding as llvm

from framefree.kernel.native import compile_object, load_engine
from framefree.kernel.target import host

IDLE, HANDED, TAKEN, LEFT, CHOSEN = range(5)
"""States of a mailbox: its helper waits, work lies in it, the helper is at work, it has left, it
waits for work that somebody has promised."""

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
; Puts a job into mailboxes whose helpers were chosen, works on it as these do, and returns when
; all are done: nothing of the job is read afterwards. There is no way out in between, so that an
; interrupt comes before or after.
define void @share(
  ptr %job, ptr %mailboxes, i64 %count, i64 %looks, ptr %sleep, i32 %time
) nounwind {
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
  %handed = cmpxchg ptr %mailbox, i64 4, i64 1 acq_rel acquire
  br label %head
own:
  call void @take(ptr %job, i64 0)
  br label %rest
rest:
  %j = phi i64 [ 0, %own ], [ %following, %finished ]
  %left = icmp slt i64 %j, %count
  br i1 %left, label %withdraw, label %end
withdraw:
  %other_at = getelementptr ptr, ptr %mailboxes, i64 %j
  %other = load ptr, ptr %other_at
  %withdrawn = cmpxchg ptr %other, i64 1, i64 0 acq_rel acquire
  br label %look
look:
  %turn = phi i64 [ 0, %withdraw ], [ %next, %wait ], [ %turn_slept, %slept ]
  %state = load atomic i64, ptr %other acquire, align 8
  %busy = icmp eq i64 %state, 2
  br i1 %busy, label %patience, label %finished
patience:
  %awake = icmp slt i64 %turn, %looks
  br i1 %awake, label %wait, label %slept
wait:
  PAUSE
  %next = add i64 %turn, 1
  br label %look
slept:
  %turn_slept = phi i64 [ %turn, %patience ]
  %ignored = call i32 %sleep(i32 %time)
  br label %look
finished:
  %following = add i64 %j, 1
  br label %rest
end:
  ret void
}

; Chooses a helper that waits; tells whether it did.
define i32 @choose(ptr %mailbox) nounwind {
entry:
  %pair = cmpxchg ptr %mailbox, i64 0, i64 4 acq_rel acquire
  %chosen = extractvalue { i64, i1 } %pair, 1
  %answer = zext i1 %chosen to i32
  ret i32 %answer
}

; Works on what comes into a mailbox, and leaves when nothing has come for so many looks, or, if it
; was chosen, for a thousand times as many.
define void @serve(ptr %mailbox, i64 %looks) nounwind {
entry:
  br label %look
look:
  %k = phi i64 [ 0, %entry ], [ %more, %wait ], [ 0, %work ], [ 0, %again ]
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
  %chosen = icmp eq i64 %state, 4
  %longer = mul i64 %looks, 1000
  %limit = select i1 %chosen, i64 %longer, i64 %looks
  %patient = icmp slt i64 %more, %limit
  br i1 %patient, label %look, label %leave
leave:
  %waits = icmp eq i64 %state, 0
  %may = or i1 %waits, %chosen
  br i1 %may, label %try, label %again
try:
  %left_pair = cmpxchg ptr %mailbox, i64 %state, i64 3 acq_rel acquire
  %gone = extractvalue { i64, i1 } %left_pair, 1
  br i1 %gone, label %end, label %again
again:
  br label %look
end:
  ret void
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

    share: Callable[[int, ctypes.Array, int, int, Any, int], None]
    choose: Callable[[int], int]
    serve: Callable[[int, int], None]
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
        function("share", None, pointer, pointer, word, word, pointer, ctypes.c_int),
        function("choose", ctypes.c_int, pointer),
        function("serve", None, pointer, word),
        engine,
    )


@functools.cache
def system_sleep() -> tuple[Any, int]:
    """Return the system's function that sends a thread to sleep, and the time for 0.1 ms or so."""
    if sys.platform == "win32":
        return ctypes.cast(ctypes.windll.kernel32.Sleep, ctypes.c_void_p), 1  # ms
    return ctypes.cast(ctypes.CDLL(None).usleep, ctypes.c_void_p), 100  # us


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
