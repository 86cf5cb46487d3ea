"""`campaign`: many runs, each counted once, and what comes of them."""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from framefree.campaign.engines import Engine, EngineChoice
from framefree.campaign.errors import CampaignError
from framefree.campaign.records import THINNED, Record
from framefree.campaign.statistics import success_rate
from framefree.campaign.store import (
    CAUSE,
    JobPiece,
    Store,
    read_plan,
    read_records,
    read_table,
)
from framefree.campaign.subject import CampaignSubject, Finished, checked_keep, unknown_metric
from framefree.campaign.variation import Choice, Integers, Variation, parsed, sampled
from framefree.simulate.describe import described, versions

PIECE = 256
"""Jobs in a piece of a compiled batch; others have one job a piece."""

Progress = Callable[[int, int, int, float, int], object]
"""Called with the numbers of finished, of all and of failed jobs, the seconds so far, and how many
jobs were finished in them."""


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

    def records(self, names: Sequence[str] | None = None) -> dict[int, Record]:
        """Return what was kept over time of each job by its number; all columns, or those named."""
        return read_records(self.folder, names)

    def settings_of(self, row: int) -> dict[str, Any]:
        """Return the settings of one job, as plain values."""
        return {
            key: values[row].item() if isinstance(values[row], np.generic) else values[row]
            for key, values in self.settings.items()
        }

    def success(self, metric: str = "ok") -> tuple[float, float, float]:
        """Return the share of jobs whose metric is true, and its 95 percent interval.

        Without promises, "ok" is that a job came to its end.
        """
        if metric == "ok" and metric not in self.metrics:
            return success_rate(int((~self.failed).sum()), len(self.failed))
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
            raise unknown_metric("the campaign", name, self.metrics)
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
    keep: str = THINNED,
    resume: bool = False,
    tries: int = 3,
    patience: float = 3600.0,
    cluster: str | None = None,
    local_cluster: int = 0,
    metric: str = "",
    progress: Progress | None = None,
) -> Campaign:
    """Run a subject many times with settings that vary.

    Parameters
    ----------
    subject : CampaignSubject
        `Simulations`, or a scenario of the gallery as `framefree campaign` makes it.
    vary : mapping of str to Variation or str
        What varies: `Uniform`, `Normal`, `Integers`, ..., or a text such as "0.5:2" or "0:1000"
        (whole numbers for seeds and settings that take whole numbers alone).
    out : path
        New folder. Every finished piece is there at once; the manifest is written last.
    sample : "sobol", "random", "grid" or "saltelli"
    runs : int, optional
        Number of runs; on a grid it follows from the values of each setting.
    seed : int
        Of the sample.
    workers : int
        Threads of a compiled batch; processes on this machine, for settings that do not vary
        inside one. With one worker runs are made in this process, which nothing replaces where one
        of them ends it or hangs.
    keep : "metrics", "thinned" or "full"
        What is kept of each run: metrics only; also a record of 101 rows, from which the report
        draws bands over time; or all that was recorded.
    resume : bool
        Go on with what the folder has. Every job counts once.
    tries, patience : int, float
        How often a job is tried whose worker dies or does not answer in so many seconds.
    cluster : str, optional
        Address of a Dask scheduler, "tcp://HOST:PORT", whose workers make the runs (extra
        `cluster`). The same campaign, the same bits.
    local_cluster : int
        Or so many workers of a Dask cluster that is started on this machine.
    metric : str, optional
        One that is asked for afterwards: a campaign whose runs do not have it ends at once.
    progress : callable, optional
        Called with finished, all and failed jobs, seconds, and jobs finished in these.

    Returns
    -------
    Campaign
        Ctrl-C leaves what was finished, for `resume`.

    Raises
    ------
    CampaignError
        If it cannot start, or its folder cannot be written.
    """
    choice = EngineChoice(workers, tries, patience, cluster, local_cluster)
    variations = variations_of(subject, vary)
    subject.check_metric(metric)
    columns = sampled(variations, sample, runs, seed)
    count = len(next(iter(columns.values())))
    batch = subject.together(tuple(columns))
    pieces = _pieces(columns, PIECE if batch else 1)
    plan = {
        "subject": subject.describe(),
        "vary": {key: described(variation) for key, variation in variations.items()},
        "sample": sample,
        "seed": seed,
        "keep": checked_keep(keep),
        "jobs": count,
        "piece": PIECE if batch else 1,
        "version": versions().get("framefree", ""),
    }
    engine = choice.engine(subject, batch, keep)
    store = Store(out, plan, resume=resume)
    try:
        _run(engine, store, pieces, progress, metric)
        store.finish(count)
    finally:
        store.release()
    return Campaign.load(out)


def variations_of(
    subject: CampaignSubject, vary: Mapping[str, Variation | str]
) -> dict[str, Variation]:
    """Return what varies, texts taken apart; refuse what a subject does not have."""
    if not isinstance(vary, Mapping):
        raise CampaignError(
            "`vary` must map what varies to a range or a variation, such as "
            f"{{'spin': '100:200'}}, got {vary!r}"
        )
    if not vary:
        raise CampaignError("a campaign needs something that varies: give `vary` (`--vary`)")
    if not isinstance(subject, CampaignSubject):
        raise CampaignError(
            "a campaign runs `Simulations(...)`, or a scenario by `framefree campaign NAME`, got "
            f"{subject!r}"
        )
    subject.check(tuple(vary))
    made: dict[str, Variation] = {}
    for key, what in vary.items():
        one = parsed(f"{key}={what}", subject.whole(key))[1] if isinstance(what, str) else what
        if not isinstance(one, Variation):
            raise CampaignError(f"`{key}` must vary by a range or a variation, got {one!r}")
        least = (one.low,) if isinstance(one, Integers) else ()
        for value in one.values if isinstance(one, Choice) else least:
            subject.check_value(key, value)
        made[key] = one
    return made


def rows_of(columns: Mapping[str, np.ndarray]) -> list[dict[str, Any]]:
    """Return settings by columns as rows of plain values."""
    count = len(next(iter(columns.values())))
    return [
        {k: v[i].item() if isinstance(v[i], np.generic) else v[i] for k, v in columns.items()}
        for i in range(count)
    ]


class ProgressCount:
    """Counts finished and failed jobs, and tells.

    Parameters
    ----------
    total : int
    progress : Progress or None
        Whom to tell.
    finished : int
        Jobs that were there before.
    """

    def __init__(self, total: int, progress: Progress | None, finished: int = 0) -> None:
        self.total, self.progress, self.finished = total, progress, finished
        self.failed, self.new, self._begin = 0, 0, time.monotonic()

    def add(self, results: Sequence[Finished]) -> None:
        """Count what has just been finished."""
        self.finished, self.new = self.finished + len(results), self.new + len(results)
        self.failed += sum(bool(result.cause) for result in results)
        if self.progress is not None:
            seconds = time.monotonic() - self._begin
            self.progress(self.finished, self.total, self.failed, seconds, self.new)


def _pieces(columns: Mapping[str, np.ndarray], size: int) -> list[JobPiece]:
    rows = rows_of(columns)
    starts = range(0, len(rows), size)
    return [JobPiece(k, first, tuple(rows[first : first + size])) for k, first in enumerate(starts)]


def _run(
    engine: Engine, store: Store, pieces: list[JobPiece], progress: Progress | None, metric: str
) -> None:
    """Run the pieces that are missing."""
    missing = store.missing(pieces)
    total = sum(len(piece.rows) for piece in pieces)
    count = ProgressCount(total, progress, total - sum(len(piece.rows) for piece in missing))

    def done(piece: JobPiece, results: list[Finished]) -> None:
        for result in results:
            result.check_metric(metric)
        store.keep(piece, results)
        count.add(results)

    if missing:
        with engine:
            engine.run(missing, done)
