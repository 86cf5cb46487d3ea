"""`campaign`: many runs, each counted once, and what comes of them."""

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from framefree.campaign.errors import CampaignError
from framefree.campaign.statistics import success_rate
from framefree.campaign.store import CAUSE, JobPiece, Store, read_plan, read_table
from framefree.campaign.subject import CampaignSubject, Finished
from framefree.campaign.variation import Variation, parsed, sampled
from framefree.campaign.workers import WorkerPool
from framefree.simulate.describe import described, versions

PIECE = 256
"""Jobs in a piece of a compiled batch; others have one job a piece."""

Progress = Callable[[int, int, int, float], object]
"""Called with the numbers of finished, of all and of failed jobs, and the seconds so far."""


@dataclass(frozen=True)
class Campaign:
    """What came of a campaign.

    Attributes
    ----------
    folder : Path
    plan : dict
        What was run.
    table : dict of str to (jobs,)
        "job", the settings as "set.KEY", all metrics, and "cause": why a job has failed.
    """

    folder: Path
    plan: dict[str, Any]
    table: dict[str, np.ndarray]

    @classmethod
    def load(cls, folder: Any) -> "Campaign":
        """Return the campaign in a folder, complete or not."""
        return cls(Path(folder), read_plan(folder), read_table(folder))

    @property
    def complete(self) -> bool:
        """Whether all jobs have been run."""
        return len(self.table["job"]) == self.plan["jobs"]

    @cached_property
    def failed(self) -> np.ndarray:
        """Which jobs have failed, (jobs,)."""
        return np.array([bool(cause) for cause in self.table[CAUSE]], dtype=bool)

    @property
    def settings(self) -> dict[str, np.ndarray]:
        """The settings of all jobs by name."""
        return {k[4:]: v for k, v in self.table.items() if k.startswith("set.")}

    @property
    def metrics(self) -> dict[str, np.ndarray]:
        """The metrics of all jobs by name; NaN where a job has failed."""
        left_out = ("job", CAUSE)
        return {
            k: v for k, v in self.table.items() if k not in left_out and not k.startswith("set.")
        }

    def success(self, metric: str = "ok") -> tuple[float, float, float]:
        """Return the share of jobs whose metric is true, and its 95 percent interval."""
        values = self._metric(metric).astype(float)
        return success_rate(int(np.nansum(values > 0)), len(values))

    def worst(self, metric: str, count: int = 10, *, largest: bool = True) -> np.ndarray:
        """Return the numbers of the jobs with the worst values of a metric, failed ones first."""
        values = self._metric(metric).astype(float)
        order = np.where(np.isnan(values), np.inf, values if largest else -values)
        return np.argsort(-order, kind="stable")[:count]

    def broken(self, count: int = 10) -> np.ndarray:
        """Return the numbers of jobs that have failed or whose promises do not hold."""
        ok = self.metrics.get("ok", np.ones(len(self.failed)))
        return np.flatnonzero(self.failed | ~(ok.astype(float) > 0))[:count]

    def _metric(self, name: str) -> np.ndarray:
        if name not in self.metrics:
            known = ", ".join(f"`{key}`" for key in self.metrics)
            raise CampaignError(f"the campaign has no metric `{name}`; it has: {known}")
        return self.metrics[name]


def campaign(
    subject: CampaignSubject,
    vary: Mapping[str, Variation | str],
    *,
    out: Any,
    sample: str = "sobol",
    runs: int | None = None,
    seed: int = 0,
    workers: int = 1,
    resume: bool = False,
    tries: int = 3,
    patience: float = 3600.0,
    progress: Progress | None = None,
) -> Campaign:
    """Run a subject many times with settings that vary.

    Parameters
    ----------
    subject : CampaignSubject
        `Simulations`, or a scenario of the gallery as `framefree campaign` makes it.
    vary : mapping of str to Variation or str
        What varies: `Uniform`, `Normal`, `Integers`, ..., or a text such as "0.5:2" or "0:1000".
    out : path
        New folder. Every finished piece is there at once; the manifest is written last.
    sample : "sobol", "random" or "grid"
    runs : int, optional
        Number of runs; on a grid it follows from the values of each setting.
    seed : int
        Of the sample.
    workers : int
        Processes on this machine, for settings that do not vary inside one compiled batch.
    resume : bool
        Go on with what the folder has. Every job counts once.
    tries, patience : int, float
        How often a job is tried whose worker dies or does not answer in so many seconds.
    progress : callable, optional
        Called with finished, all and failed jobs, and seconds.

    Returns
    -------
    Campaign
        Ctrl-C leaves what was finished, for `resume`.

    Raises
    ------
    CampaignError
        If it cannot start, or its folder cannot be written.
    """
    variations = {k: parsed(f"{k}={v}")[1] if isinstance(v, str) else v for k, v in vary.items()}
    _check_keys(subject, variations)
    columns = sampled(variations, sample, runs, seed)
    count = len(next(iter(columns.values())))
    batch = subject.together(tuple(columns))
    pieces = _pieces(columns, count, PIECE if batch else 1)
    plan = {
        "subject": subject.describe(),
        "vary": {key: described(variation) for key, variation in variations.items()},
        "sample": sample,
        "seed": seed,
        "jobs": count,
        "piece": PIECE if batch else 1,
        "version": versions().get("framefree", ""),
    }
    store = Store(out, plan, resume=resume)
    try:
        _run(subject, store, pieces, batch, workers, tries, patience, progress)
        store.finish(count)
    finally:
        store.release()
    return Campaign.load(out)


def _check_keys(subject: CampaignSubject, variations: Mapping[str, Variation]) -> None:
    known = subject.keys
    for key in variations:
        if known is not None and key not in known:
            raise CampaignError(
                f"`{subject.name}` has nothing called `{key}` that may vary; it has: "
                + ", ".join(f"`{name}`" for name in known)
            )


def _pieces(columns: Mapping[str, np.ndarray], count: int, size: int) -> list[JobPiece]:
    rows = [
        {k: v[i].item() if isinstance(v[i], np.generic) else v[i] for k, v in columns.items()}
        for i in range(count)
    ]
    starts = range(0, count, size)
    return [JobPiece(k, first, tuple(rows[first : first + size])) for k, first in enumerate(starts)]


def _run(
    subject: CampaignSubject,
    store: Store,
    pieces: list[JobPiece],
    batch: bool,
    workers: int,
    tries: int,
    patience: float,
    progress: Progress | None,
) -> None:
    """Run the pieces that are missing."""
    missing = store.missing(pieces)
    total = sum(len(piece.rows) for piece in pieces)
    finished = total - sum(len(piece.rows) for piece in missing)
    failed, begin = 0, time.monotonic()

    def done(piece: JobPiece, results: list[Finished]) -> None:
        nonlocal finished, failed
        store.keep(piece, results)
        finished += len(results)
        failed += sum(bool(result.cause) for result in results)
        if progress is not None:
            progress(finished, total, failed, time.monotonic() - begin)

    if batch or workers <= 1:
        for piece in missing:
            done(piece, subject.run_many(piece.rows))
    else:
        WorkerPool(subject, workers, tries=tries, patience=patience).run(missing, done)
