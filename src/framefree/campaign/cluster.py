"""Pieces of jobs on a Dask cluster: one that runs, or workers on this machine.

The cluster only computes. What is finished is written here, piece by piece, as with the other
engines: whatever becomes of workers, scheduler or this process, pieces that are there count, each
once, and `resume` runs the others. Runs have the same bits wherever they are made, which holds
between the same versions only; workers that have others are refused.
"""

import logging
import pickle
import re
import signal
import tempfile
import threading
import time
from collections import deque
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Any, Self

from framefree.campaign.errors import CampaignError
from framefree.campaign.extras import needed
from framefree.campaign.made import sendable
from framefree.campaign.records import METRICS
from framefree.campaign.store import JobPiece
from framefree.campaign.subject import CampaignSubject, Finished, cause_of
from framefree.campaign.workers import Done, SplitPieces
from framefree.simulate.describe import versions

TICK = 1.0
"""Seconds between two looks at the clock and at the cluster."""
POLL = 0.002
"""Seconds between two looks at what is finished."""
CONNECT = 20.0
"""Seconds in which a scheduler must answer, and a cluster must have a worker."""
SAME = ("framefree", "python", "numpy", "scipy", "casadi", "llvmlite", "mujoco", "machine")
"""What must be the same on all workers, for results to have the same bits."""

_subjects: dict[str, CampaignSubject] = {}
"""On a worker: the latest subject, with what it has compiled."""


def worker_versions() -> dict[str, str]:
    """Return the versions of what results depend on, on a worker."""
    return versions()


def run_piece(name: str, subject: bytes, rows: Any, keep: str) -> list[Finished]:
    """Run a piece on a worker; the subject, which is pickled, is kept for the next."""
    if name not in _subjects:
        _subjects.clear()
        _subjects[name] = pickle.loads(subject)
    return _subjects[name].run_many(rows, keep=keep)


@contextmanager
def _quiet() -> Iterator[None]:
    """Keep Dask's tracebacks of lost connections off the screen: we say what became of them."""
    logger = logging.getLogger("distributed")
    names = [name for name in logging.root.manager.loggerDict if name.startswith("distributed.")]
    loggers = [logger, *(logging.getLogger(name) for name in names)]
    levels = [one.level for one in loggers]
    for one in loggers:
        one.setLevel(logging.CRITICAL)
    try:
        yield
    finally:
        for one, level in zip(loggers, levels, strict=True):
            one.setLevel(level)


@contextmanager
def _sigint_ignored() -> Iterator[None]:
    """Have processes that are started meanwhile leave Ctrl-C to this one, which then ends them."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    usual = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, usual)


@dataclass
class _Sent:
    """A piece, or one job of it, that is on a worker."""

    piece: JobPiece
    tries: int = 1
    since: float = field(default_factory=time.monotonic)


class DaskCluster:
    """Runs pieces on a Dask cluster; see the top of this file.

    Parameters
    ----------
    subject : CampaignSubject
    address : str or None
        Of a scheduler, "tcp://HOST:PORT".
    local : int
        Without an address: worker processes that are started on this machine, on its loopback
        address alone.
    keep, tries, patience
        As those of `WorkerPool`.
    """

    def __init__(
        self,
        subject: CampaignSubject,
        address: str | None,
        local: int = 0,
        *,
        keep: str = METRICS,
        tries: int = 3,
        patience: float = 3600.0,
    ) -> None:
        if address is None and local < 1:
            raise CampaignError(f"`local_cluster` must be a whole number from 1 on, got {local}")
        if address is not None and not re.fullmatch(r"\w+://.+:\d+", address):
            raise CampaignError(
                "`cluster` must be the address of a Dask scheduler, tcp://HOST:PORT, got "
                f"`{address}`"
            )
        self.address, self.local = address, local
        self.keep, self.tries, self.patience = keep, tries, patience
        self._dask = needed("distributed", "a campaign on a cluster")
        dumps = needed("cloudpickle", "a campaign on a cluster").dumps
        self._subject = sendable(subject, dumps)
        self._name = sha256(self._subject).hexdigest()

    def run(self, pieces: Iterable[JobPiece], done: Done) -> None:
        """Run all pieces; `done` is called for each in this process as it is finished."""
        waiting, client = deque(_Sent(piece, 0) for piece in pieces), self._client
        whole, sent = SplitPieces(done), {}
        while waiting or sent:
            for _ in range(self._room(client) - len(sent)):
                if waiting:
                    task = waiting.popleft()
                    sent[self._submit(client, task)] = task
            for future in self._finished(list(sent)):
                self._take(client, future, sent.pop(future), waiting, whole)
            for future, task in list(sent.items()):
                if time.monotonic() - task.since > self.patience:
                    self._end(client, future)
                    cause = f"no answer in {self.patience:g} s"
                    self._lost(sent.pop(future), cause, waiting, whole)

    def __enter__(self) -> Self:
        """Connect, and refuse workers of other versions."""
        with ExitStack() as stack:
            self._client = stack.enter_context(self._connected())
            self._check_versions(self._client)
            self._open = stack.pop_all()
        return self

    def __exit__(self, *what: object) -> None:
        self._open.close()

    # ------------------------------------------------------------------ the cluster

    @contextmanager
    def _connected(self) -> Iterator[Any]:
        """Give a client of the cluster; start workers here where no address is given."""
        with _quiet(), tempfile.TemporaryDirectory(prefix="framefree-dask-") as scratch:
            cluster = None
            try:
                if self.address is None:
                    cluster = self._local_cluster(scratch)
                try:
                    client = self._dask.Client(
                        cluster or self.address, timeout=CONNECT, set_as_default=False
                    )
                except (OSError, TimeoutError, ValueError) as error:
                    raise CampaignError(
                        f"there is no Dask scheduler at `{self.address}`: {error}"
                    ) from None
                try:
                    yield client
                finally:
                    with suppress(TimeoutError):  # whatever had to be finished is finished
                        client.close(timeout=2)
            finally:
                if cluster is not None:
                    with suppress(TimeoutError):
                        cluster.close(timeout=CONNECT)

    def _local_cluster(self, scratch: str) -> Any:
        # We count how often a job was tried; Dask need not.
        settings = {"distributed.scheduler.allowed-failures": 0}
        with needed("dask", "a cluster").config.set(settings), _sigint_ignored():
            return self._dask.LocalCluster(
                n_workers=self.local, threads_per_worker=1, processes=True, host="127.0.0.1",
                dashboard_address=None, local_directory=scratch, silence_logs=50,
            )  # fmt: skip

    def _room(self, client: Any) -> int:
        """Return how many pieces the cluster can work at; wait for a first worker."""
        end = time.monotonic() + CONNECT
        while True:
            try:
                threads = sum(client.nthreads().values())
            except (OSError, TimeoutError, RuntimeError, ValueError) as error:
                raise self._gone(str(error)) from None
            if threads:
                return threads
            if time.monotonic() > end:
                raise self._gone(f"it has had no worker for {CONNECT:g} s")
            time.sleep(TICK / 4)

    def _gone(self, why: str) -> CampaignError:
        where = f" at `{self.address}`" if self.address else ""
        return CampaignError(
            f"the cluster{where} went away ({why}); the pieces that were finished are there, and "
            "`resume` (`--resume`) continues with a cluster that runs"
        )

    def _check_versions(self, client: Any) -> None:
        """Refuse workers whose results might have other bits than ours."""
        self._room(client)
        try:
            told = client.run(worker_versions)
        except (ImportError, AttributeError) as error:
            raise CampaignError(
                f"workers of the cluster cannot import framefree as it is here: {error}"
            ) from None
        except (OSError, TimeoutError) as error:
            raise self._gone(str(error)) from None
        ours = versions()
        for worker, theirs in told.items():
            apart = [
                f"{name} {theirs.get(name, 'none')} there, {ours.get(name, 'none')} here"
                for name in SAME
                if theirs.get(name) != ours.get(name)
            ]
            if apart:
                raise CampaignError(
                    f"the worker {worker} has other versions, with which results may differ: "
                    + "; ".join(apart)
                )

    # ------------------------------------------------------------------ pieces

    def _submit(self, client: Any, task: _Sent) -> Any:
        task.tries, task.since = task.tries + 1, time.monotonic()
        try:
            return client.submit(
                run_piece, self._name, self._subject, task.piece.rows, self.keep, pure=False,
                key=f"{self._name[:8]}-{task.piece.first}-{task.tries}-{time.monotonic_ns()}",
            )  # fmt: skip
        except Exception as error:  # Dask has no one class for a client that is closed
            raise self._gone(str(error)) from None

    def _finished(self, futures: list[Any]) -> list[Any]:
        """Wait a little; return what is finished, failed or lost."""
        end = time.monotonic() + TICK
        while True:
            ready = [future for future in futures if future.status != "pending"]
            if ready or time.monotonic() > end:
                return ready
            time.sleep(POLL)

    def _take(
        self, client: Any, future: Any, task: _Sent, waiting: deque[_Sent], whole: "SplitPieces"
    ) -> None:
        """Take what came of a piece: results, or why there are none."""
        if future.status == "finished":
            try:
                results = future.result(timeout=CONNECT)
            except Exception:  # the worker that had them has gone meanwhile, by various classes
                self._again(client, task, waiting)
                return
            whole.finish(task.piece, results)
            return
        if future.status == "error":
            error = future.exception()
            killed = isinstance(error, self._dask.scheduler.KilledWorker)
            if isinstance(error, CampaignError):
                raise error
            cause = "its workers ended" if killed else cause_of(error)
            self._lost(task, cause, waiting, whole)
            return
        self._again(client, task, waiting)

    def _again(self, client: Any, task: _Sent, waiting: deque[_Sent]) -> None:
        """Send a piece again that was lost with its worker or scheduler: not the job's fault."""
        if client.status != "running":
            raise self._gone("the connection is lost")
        task.tries -= 1
        waiting.append(task)

    def _lost(self, task: _Sent, cause: str, waiting: deque[_Sent], whole: "SplitPieces") -> None:
        """Try a piece again, one job at a time; after so many tries it has failed."""
        piece = task.piece
        if len(piece.rows) > 1:
            waiting.extend(_Sent(one, 0) for one in whole.split(piece))
        elif task.tries < self.tries:
            waiting.append(task)
        else:
            whole.finish(piece, [Finished({}, f"{cause}, {task.tries} times")])

    def _end(self, client: Any, future: Any) -> None:
        """End the worker on which a piece hangs; its nanny starts another."""
        busy = [worker for worker, keys in client.processing().items() if future.key in keys]
        future.cancel(force=True)
        if busy:
            client.restart_workers(busy, timeout=CONNECT, raise_for_error=False)
