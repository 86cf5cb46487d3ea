"""Worker processes on this machine: pieces of jobs, each once, whatever becomes of a worker.

A worker that dies, hangs or runs out of memory is replaced, and its piece is tried again, job by
job, so that only the job that did it is counted as failed.
"""

import multiprocessing
import signal
import time
from collections import deque
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass, field
from multiprocessing.connection import Connection, wait
from typing import Any, NamedTuple, Self

from framefree.campaign.errors import CampaignError
from framefree.campaign.made import sendable
from framefree.campaign.records import METRICS
from framefree.campaign.store import JobPiece
from framefree.campaign.subject import CampaignSubject, Finished, cause_of

TICK = 0.5
"""Seconds between two looks at the clock."""

Done = Callable[[JobPiece, list[Finished]], None]


@dataclass
class _Task:
    """A piece, or one job of it, and how often it was tried."""

    piece: JobPiece
    tries: int = 0
    cause: str = ""


class _Raised(NamedTuple):
    """What running a piece raised, in words, and whether it is a mistake of the whole campaign."""

    words: str
    mistake: bool


@dataclass
class _Worker:
    """A process and what it is doing."""

    process: Any
    pipe: Connection
    ready: bool = False
    task: _Task | None = None
    since: float = field(default_factory=time.monotonic)


def _work(subject: CampaignSubject, keep: str, pipe: Connection) -> None:
    """Say that all is loaded, and run what comes through the pipe, until it is closed.

    Ctrl-C is for the process that started this one, which then ends it. What is raised goes through
    the pipe, after which another process takes over: this one may be out of memory.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    pipe.send(None)
    while True:
        try:
            piece = pipe.recv()
        except EOFError:
            return
        try:
            results = subject.run_many(piece.rows, keep=keep)
        except Exception as error:  # whatever the subject raises
            mistake = isinstance(error, CampaignError)
            pipe.send(_Raised(str(error) if mistake else cause_of(error), mistake))
            return
        pipe.send(results)


class SplitPieces:
    """Hands finished pieces on; jobs of one that was split are put together first."""

    def __init__(self, done: Done) -> None:
        self._done = done
        self._whole: dict[int, JobPiece] = {}
        self._parts: dict[int, dict[int, Finished]] = {}

    def split(self, piece: JobPiece) -> list[JobPiece]:
        """Return the jobs of a piece as pieces of their own."""
        self._whole[piece.index], self._parts[piece.index] = piece, {}
        return [JobPiece(piece.index, piece.first + k, (r,)) for k, r in enumerate(piece.rows)]

    def finish(self, piece: JobPiece, results: list[Finished]) -> None:
        """Hand a piece on, or keep it until all jobs of its whole are there."""
        whole = self._whole.get(piece.index)
        if whole is None:
            self._done(piece, results)
            return
        parts = self._parts[piece.index]
        parts[piece.first - whole.first] = results[0]
        if len(parts) == len(whole.rows):
            self._done(whole, [parts[k] for k in range(len(whole.rows))])
            del self._whole[piece.index], self._parts[piece.index]


class WorkerPool:
    """Worker processes that run pieces; see the top of this file.

    Parameters
    ----------
    subject : CampaignSubject
    count : int
        Number of processes.
    keep : str
        What is kept of each run.
    tries : int
        How often a job is tried before it counts as failed.
    patience : float
        Seconds after which a worker that has not answered counts as hanging.
    """

    def __init__(
        self,
        subject: CampaignSubject,
        count: int,
        *,
        keep: str = METRICS,
        tries: int = 3,
        patience: float = 3600.0,
    ) -> None:
        if count < 1:
            raise CampaignError(f"`workers` must be a whole number from 1 on, got {count}")
        sendable(subject)
        self.subject, self.keep = subject, keep
        self.tries, self.patience = tries, patience
        self.replaced = 0
        self._context = multiprocessing.get_context("spawn")
        self._count = count
        self._workers: list[_Worker] = []

    def run(self, pieces: Iterable[JobPiece], done: Done) -> None:
        """Run all pieces; `done` is called for each in this process as it is finished."""
        waiting, whole = deque(_Task(piece) for piece in pieces), SplitPieces(done)
        needed = min(self._count, len(waiting)) - len(self._workers)
        self._workers += [self._new() for _ in range(needed)]
        while waiting or any(worker.task for worker in self._workers):
            for worker in self._workers:
                if worker.ready and worker.task is None and waiting:
                    self._give(worker, waiting.popleft())
            ready: Any = wait([worker.pipe for worker in self._workers], TICK)
            for worker in list(self._workers):
                if worker.pipe in ready:
                    self._receive(worker, waiting, whole)
                elif worker.task and time.monotonic() - worker.since > self.patience:
                    self._lose(worker, waiting, whole, f"no answer in {self.patience:g} s")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *what: object) -> None:
        """End all processes."""
        for worker in self._workers:
            worker.process.kill()
            worker.process.join()
            worker.pipe.close()
        self._workers = []

    def _new(self) -> _Worker:
        ours, theirs = self._context.Pipe()
        process = self._context.Process(
            target=_work, args=(self.subject, self.keep, theirs), daemon=True
        )
        process.start()
        theirs.close()
        return _Worker(process, ours)

    def _give(self, worker: _Worker, task: _Task) -> None:
        worker.task, worker.since = task, time.monotonic()
        task.tries += 1
        with suppress(OSError):  # where it has died, the wait will tell
            worker.pipe.send(task.piece)

    def _receive(self, worker: _Worker, waiting: deque[_Task], whole: SplitPieces) -> None:
        try:
            results = worker.pipe.recv()
        except (EOFError, OSError):
            worker.process.join()
            if worker.task is None:
                raise CampaignError(
                    f"a worker ended ({worker.process.exitcode}) before it was ready: can its "
                    "process import the subject? A script must guard its call with "
                    '`if __name__ == "__main__":`'
                ) from None
            self._lose(worker, waiting, whole, f"its process ended ({worker.process.exitcode})")
            return
        if results is None:
            worker.ready = True
            return
        if isinstance(results, _Raised):
            if results.mistake:
                raise CampaignError(results.words)
            self._lose(worker, waiting, whole, results.words)
            return
        task: Any = worker.task
        worker.task = None
        whole.finish(task.piece, results)

    def _lose(self, worker: _Worker, waiting: deque[_Task], whole: SplitPieces, cause: str) -> None:
        """Replace a worker; try its piece again, one job at a time."""
        task: Any = worker.task
        worker.process.kill()
        worker.process.join()
        worker.pipe.close()
        self._workers[self._workers.index(worker)] = self._new()
        self.replaced += 1
        piece = task.piece
        if len(piece.rows) > 1:
            waiting.extend(_Task(one) for one in whole.split(piece))
        elif task.tries < self.tries:
            task.cause = cause
            waiting.append(task)
        else:
            whole.finish(piece, [Finished({}, f"{cause}, {task.tries} times")])
