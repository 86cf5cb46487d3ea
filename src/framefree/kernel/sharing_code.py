"""Helpers that take part in a batch, in LLVM assembly: what `sharing.py` compiles.

A helper has a mailbox, whose state goes round: it has LEFT (3), or is IDLE (0); a caller has CHOSEN
it (4), writes a job there and has HANDED it (1); the helper has TAKEN it (2), and is DONE (5); the
caller sees that, and it is IDLE again. From HANDED a caller may go back to IDLE, if no work is
left. Nobody but the helper leaves IDLE for LEFT, nobody but the caller who has chosen it touches it
until it is IDLE again.
"""

SHARES = 4
"""Ranges for each thread."""

ASSEMBLY = """
; A job: threads, function, ports, plan or null, failures; for each thread the next and the last of
; its ranges; and the bounds of all ranges.
; Works on the ranges of a thread, then on what others have left of theirs: in the next batch the
; same rows come to the same thread, which has them in its cache.
define internal void @take(ptr %job, i64 %thread) nounwind {
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
  %code = call i32 @work(ptr %function, ptr %ports, ptr %plan, i64 %first, i64 %last)
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

; Calls a function on a range, with a plan if there is one.
define internal i32 @work(
  ptr %function, ptr %ports, ptr %plan, i64 %first, i64 %last
) nounwind {
entry:
  %plain = icmp eq ptr %plan, null
  br i1 %plain, label %rows, label %steps
rows:
  %rows_code = call i32 %function(ptr %ports, i64 %first, i64 %last)
  ret i32 %rows_code
steps:
  %steps_code = call i32 %function(ptr %ports, i64 %first, i64 %last, ptr %plan)
  ret i32 %steps_code
}

; Chooses so many helpers, who wait or are begun now; returns how many it got.
define internal i64 @choose(ptr %desk, i64 %wanted, ptr %chosen) nounwind {
entry:
  %slots_at = getelementptr i64, ptr %desk, i64 1
  %slots = load i64, ptr %slots_at
  %looks_at = getelementptr i64, ptr %desk, i64 2
  %looks = load i64, ptr %looks_at
  %table_at = getelementptr i64, ptr %desk, i64 5
  %table = load ptr, ptr %table_at
  br label %head
head:
  %k = phi i64 [ 0, %entry ], [ %following, %next ]
  %found = phi i64 [ 0, %entry ], [ %found_now, %next ]
  %lacking = icmp slt i64 %found, %wanted
  %left = icmp slt i64 %k, %slots
  %on = and i1 %lacking, %left
  br i1 %on, label %one, label %end
one:
  %word = mul i64 %k, 8
  %mailbox = getelementptr i64, ptr %table, i64 %word
  %idle = cmpxchg ptr %mailbox, i64 0, i64 4 acq_rel acquire
  %was_idle = extractvalue { i64, i1 } %idle, 1
  br i1 %was_idle, label %got, label %absent
absent:
  %gone = cmpxchg ptr %mailbox, i64 3, i64 4 acq_rel acquire
  %was_gone = extractvalue { i64, i1 } %gone, 1
  br i1 %was_gone, label %begin, label %next
begin:
  %patience_at = getelementptr i64, ptr %mailbox, i64 3
  store i64 %looks, ptr %patience_at
  %begun = call i1 @begin(ptr %desk, ptr %mailbox)
  br i1 %begun, label %got, label %failed
failed:
  store atomic i64 3, ptr %mailbox release, align 8
  br label %end
got:
  %place = getelementptr ptr, ptr %chosen, i64 %found
  store ptr %mailbox, ptr %place
  %found_more = add i64 %found, 1
  br label %next
next:
  %found_now = phi i64 [ %found, %absent ], [ %found_more, %got ]
  %following = add i64 %k, 1
  br label %head
end:
  ret i64 %found
}

; Puts a job into mailboxes whose helpers were chosen, works on it as these do, and returns when
; all are done: nothing of the job is read afterwards.
define internal void @share(ptr %desk, ptr %job, ptr %mailboxes, i64 %count) nounwind {
entry:
  %looks_at = getelementptr i64, ptr %desk, i64 2
  %looks = load i64, ptr %looks_at
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
  br label %rest
rest:
  %j = phi i64 [ 0, %own ], [ %following, %finished ]
  %left = icmp slt i64 %j, %count
  br i1 %left, label %withdraw, label %end
withdraw:
  %other_at = getelementptr ptr, ptr %mailboxes, i64 %j
  %other = load ptr, ptr %other_at
  %pair = cmpxchg ptr %other, i64 1, i64 0 acq_rel acquire
  %withdrawn = extractvalue { i64, i1 } %pair, 1
  br i1 %withdrawn, label %finished, label %look
look:
  %turn = phi i64 [ 0, %withdraw ], [ %next, %wait ], [ %turn, %slept ]
  %state = load atomic i64, ptr %other acquire, align 8
  %busy = icmp ne i64 %state, 5
  br i1 %busy, label %patience, label %collect
patience:
  %awake = icmp slt i64 %turn, %looks
  br i1 %awake, label %wait, label %slept
wait:
  PAUSE
  %next = add i64 %turn, 1
  br label %look
slept:
  %sleep_at = getelementptr i64, ptr %desk, i64 3
  %sleep = load ptr, ptr %sleep_at
  %time_at = getelementptr i64, ptr %desk, i64 4
  %time = load i64, ptr %time_at
  %short = trunc i64 %time to i32
  %ignored = call i32 %sleep(i32 %short)
  br label %look
collect:
  store atomic i64 0, ptr %other release, align 8
  br label %finished
finished:
  %following = add i64 %j, 1
  br label %rest
end:
  ret void
}

; Calls ``function(ports, first, last[, plan])`` on ranges that cover all rows, on this thread and
; on up to so many in all. Ranges are multiples of `grain` rows, except the last. There are several
; for each thread, and whoever is free takes the next: a thread that wakes late, or is held up,
; costs little. Returns zero if all calls did. There is no way out in between, so that an interrupt
; comes before or after.
define i32 @share_rows(
  ptr %desk, ptr %function, ptr %ports, ptr %plan, i64 %rows, i64 %grain, i64 %threads
) nounwind {
entry:
  %job = alloca [WORDS x i64], align 64
  %mailboxes = alloca [MOST x ptr], align 8
  %less = sub i64 %grain, 1
  %raised = add i64 %rows, %less
  %pieces = sdiv i64 %raised, %grain
  %few = icmp slt i64 %pieces, %threads
  %useful = select i1 %few, i64 %pieces, i64 %threads
  %many = icmp sgt i64 %useful, MOST
  %wanted = select i1 %many, i64 MOST, i64 %useful
  %helpers_wanted = sub i64 %wanted, 1
  %helpers = call i64 @choose(ptr %desk, i64 %helpers_wanted, ptr %mailboxes)
  %none = icmp eq i64 %helpers, 0
  br i1 %none, label %alone, label %several
alone:
  %code = call i32 @work(ptr %function, ptr %ports, ptr %plan, i64 0, i64 %rows)
  ret i32 %code
several:
  %all = add i64 %helpers, 1
  store i64 %all, ptr %job
  %function_at = getelementptr i64, ptr %job, i64 1
  store ptr %function, ptr %function_at
  %ports_at = getelementptr i64, ptr %job, i64 2
  store ptr %ports, ptr %ports_at
  %plan_at = getelementptr i64, ptr %job, i64 3
  store ptr %plan, ptr %plan_at
  %failures_at = getelementptr i64, ptr %job, i64 4
  store i64 0, ptr %failures_at
  %shares = getelementptr i64, ptr %job, i64 5
  %twice = mul i64 %all, 2
  %bounds = getelementptr i64, ptr %shares, i64 %twice
  %fine = mul i64 %all, SHARES
  %coarse = icmp slt i64 %pieces, %fine
  %ranges = select i1 %coarse, i64 %pieces, i64 %fine
  br label %owner
owner:
  %k = phi i64 [ 0, %several ], [ %k_next, %owner ]
  %k_next = add i64 %k, 1
  %begin_share = mul i64 %ranges, %k
  %begin = sdiv i64 %begin_share, %all
  %end_share = mul i64 %ranges, %k_next
  %end = sdiv i64 %end_share, %all
  %pair = mul i64 %k, 2
  %begin_at = getelementptr i64, ptr %shares, i64 %pair
  store i64 %begin, ptr %begin_at
  %end_at = getelementptr i64, ptr %begin_at, i64 1
  store i64 %end, ptr %end_at
  %owners = icmp slt i64 %k_next, %all
  br i1 %owners, label %owner, label %bound
bound:
  %b = phi i64 [ 0, %owner ], [ %b_next, %bound ]
  %b_next = add i64 %b, 1
  %up_to = mul i64 %pieces, %b
  %piece = sdiv i64 %up_to, %ranges
  %row = mul i64 %piece, %grain
  %beyond = icmp sgt i64 %row, %rows
  %place = select i1 %beyond, i64 %rows, i64 %row
  %bound_at = getelementptr i64, ptr %bounds, i64 %b
  store i64 %place, ptr %bound_at
  %further = icmp sle i64 %b_next, %ranges
  br i1 %further, label %bound, label %go
go:
  call void @share(ptr %desk, ptr %job, ptr %mailboxes, i64 %helpers)
  %failures = load i64, ptr %failures_at
  %failed = icmp ne i64 %failures, 0
  %answer = zext i1 %failed to i32
  ret i32 %answer
}

; A helper: works on what comes into its mailbox, and leaves when nothing has come for so many
; looks.
define internal ptr @serve(ptr %mailbox) nounwind {
entry:
  %looks_at = getelementptr i64, ptr %mailbox, i64 3
  %looks = load i64, ptr %looks_at
  br label %look
look:
  %k = phi i64 [ 0, %entry ], [ %more, %wait ], [ 0, %work ], [ 0, %leave ]
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
  store atomic i64 5, ptr %mailbox release, align 8
  br label %look
wait:
  PAUSE
  %more = add i64 %k, 1
  %patient = icmp slt i64 %more, %looks
  br i1 %patient, label %look, label %leave
leave:
  %left_pair = cmpxchg ptr %mailbox, i64 0, i64 3 acq_rel acquire
  %gone = extractvalue { i64, i1 } %left_pair, 1
  br i1 %gone, label %end, label %look
end:
  ret ptr null
}

; Looks so often at a word, as those do who wait.
define void @idle(ptr %word, i64 %looks) nounwind {
entry:
  br label %look
look:
  %k = phi i64 [ 0, %entry ], [ %more, %look ]
  %state = load atomic i64, ptr %word acquire, align 8
  PAUSE
  %more = add i64 %k, 1
  %patient = icmp slt i64 %more, %looks
  br i1 %patient, label %look, label %end
end:
  ret void
}
"""

BEGIN = {
    "posix": """
; Begins a thread that nobody waits for; tells whether there is one.
define internal i1 @begin(ptr %desk, ptr %mailbox) nounwind {
entry:
  %identity = alloca i64, align 8
  %create_at = getelementptr i64, ptr %desk, i64 6
  %create = load ptr, ptr %create_at
  %detach_at = getelementptr i64, ptr %desk, i64 7
  %detach = load ptr, ptr %detach_at
  %code = call i32 %create(ptr %identity, ptr null, ptr @serve, ptr %mailbox)
  %begun = icmp eq i32 %code, 0
  br i1 %begun, label %free, label %end
free:
  %thread = load i64, ptr %identity
  %ignored = call i32 %detach(i64 %thread)
  br label %end
end:
  ret i1 %begun
}
""",
    "nt": """
define internal i1 @begin(ptr %desk, ptr %mailbox) nounwind {
entry:
  %create_at = getelementptr i64, ptr %desk, i64 6
  %create = load ptr, ptr %create_at
  %close_at = getelementptr i64, ptr %desk, i64 7
  %close = load ptr, ptr %close_at
  %thread = call ptr %create(
    ptr null, i64 0, ptr @serve, ptr %mailbox, i32 0, ptr null
  )
  %begun = icmp ne ptr %thread, null
  br i1 %begun, label %free, label %end
free:
  %ignored = call i32 %close(ptr %thread)
  br label %end
end:
  ret i1 %begun
}
""",
}
"""How a thread begins, by the kind of system."""

PAUSES = {
    "x86_64": ("declare void @llvm.x86.sse2.pause()", "call void @llvm.x86.sse2.pause()"),
    "aarch64": ("declare void @llvm.aarch64.hint(i32)", "call void @llvm.aarch64.hint(i32 1)"),
}
"""What spares the processor while a thread looks again and again, by the kind of processor."""
