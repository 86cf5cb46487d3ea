"""What runs the pieces of a campaign, chosen by what varies.

An engine is open within its ``with``, in which ``run(pieces, done)`` may be called several times:

1. `HereEngine`: in this process, each piece one compiled batch where that is possible;
2. `WorkerPool`: processes on this machine, for settings that change the compiled code;
3. `DaskCluster`: a cluster, for anything.

Each piece is handed to `done` once, in this process, with the same bits whichever engine ran it.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, Self

from framefree.campaign.cluster import DaskCluster
from framefree.campaign.errors import CampaignError
from framefree.campaign.records import METRICS
from framefree.campaign.store import JobPiece
from framefree.campaign.subject import CampaignSubject, Finished, cause_of
from framefree.campaign.workers import Done, WorkerPool


class Engine(Protocol):
    """Something that runs pieces of jobs, each once, and hands them on as they are finished."""

    def __enter__(self) -> Any: ...

    def __exit__(self, *what: Any) -> None: ...

    def run(self, pieces: Iterable[JobPiece], done: Done) -> None:
        """Run all pieces; `done` is called for each, in this process."""
        ...


@dataclass(frozen=True)
class HereEngine:
    """Runs pieces in this process, each as one compiled batch where that is possible."""

    subject: CampaignSubject
    keep: str
    threads: int

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *what: object) -> None:
        return None

    def run(self, pieces: Iterable[JobPiece], done: Done) -> None:
        """Run all pieces."""
        for piece in pieces:
            done(piece, self._results(piece.rows))

    def _results(self, rows: Sequence[Any]) -> list[Finished]:
        """Return what comes of rows; where something is raised, of each by itself."""
        try:
            return self.subject.run_many(rows, keep=self.keep, threads=self.threads)
        except CampaignError:
            raise
        except Exception as error:  # what one run raises must not end the others
            if len(rows) == 1:
                return [Finished({}, cause_of(error))]
        return [self._results([row])[0] for row in rows]


@dataclass(frozen=True)
class EngineChoice:
    """What the user says of how runs are made; see `campaign` for the names.

    Attributes
    ----------
    workers : int
    tries : int
    patience : float
    cluster : str or None
    local_cluster : int
    """

    workers: int = 1
    tries: int = 3
    patience: float = 3600.0
    cluster: str | None = None
    local_cluster: int = 0

    def __post_init__(self) -> None:
        for name, least in (("workers", 1), ("tries", 1), ("local_cluster", 0)):
            value = getattr(self, name)
            if not (isinstance(value, int) and value >= least):
                raise CampaignError(f"`{name}` must be a whole number from {least} on, got {value}")
        if not self.patience > 0:
            raise CampaignError(f"`patience` must be a time in s above 0, got {self.patience}")
        if self.cluster is not None and self.local_cluster:
            raise CampaignError(
                "give `cluster` (one that runs) or `local_cluster` (one to be started), not both"
            )

    @property
    def on_cluster(self) -> bool:
        """Whether a Dask cluster makes the runs."""
        return self.cluster is not None or self.local_cluster > 0

    def engine(self, subject: CampaignSubject, batch: bool, keep: str = METRICS) -> Engine:
        """Return the engine for runs that can, or cannot, be made in one compiled batch."""
        how: Any = {"keep": keep, "tries": self.tries, "patience": self.patience}
        if self.on_cluster:
            return DaskCluster(subject, self.cluster, self.local_cluster, **how)
        if batch or self.workers == 1:
            return HereEngine(subject, keep, self.workers)
        return WorkerPool(subject, self.workers, **how)
