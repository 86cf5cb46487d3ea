"""The search for settings that break a promise, and random search beside it.

A search makes points of the unit cube, a population at a time, which variations take to settings:

1. ``ask()``: the next points (n, keys);
2. ``tell(points, badness)``: how bad each was, larger is worse; infinite where a run failed.

`Evolution` is CMA-ES [Hansen2016]: it draws from a normal distribution whose mean and covariance
follow the worst of each population. Where it has settled it begins anew from a random point with
twice the population. `RandomSearch` draws evenly. Seeds of noise and choices of values have no
order to search in; both draw them.
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from framefree.campaign.campaigns import Campaign, Progress, ProgressCount, rows_of, variations_of
from framefree.campaign.engines import Engine, EngineChoice
from framefree.campaign.errors import CampaignError
from framefree.campaign.extras import needed
from framefree.campaign.records import METRICS
from framefree.campaign.store import JobPiece, Store
from framefree.campaign.subject import CampaignSubject, Finished, checked_keep
from framefree.campaign.variation import Choice, Variation
from framefree.campaign.varied import SEED
from framefree.simulate.describe import described, versions

POPULATION = 8
"""Points of a population, at least. More need less time by the clock and more runs: 16 took about
twice the runs of 9 on the quadcopter."""
SPREAD = 0.3
"""Standard deviation of the first population, in the unit cube."""
SETTLED = 2e-4
"""Spread of a population, in the unit cube, at which a search has settled and begins elsewhere:
closer to a worst case that keeps its promise there is nothing to find."""
SEARCHES = ("evolution", "random")


class WorstSearch(ABC):
    """Base of searches; see the contract at the top of this file."""

    def __init__(self, keys: int, seed: int) -> None:
        self.keys, self.rng = keys, np.random.default_rng(seed)

    @abstractmethod
    def ask(self) -> np.ndarray:
        """Return the next points, (n, keys)."""

    @abstractmethod
    def tell(self, points: np.ndarray, badness: np.ndarray) -> None:
        """Learn how bad points were."""


class RandomSearch(WorstSearch):
    """Points that are drawn evenly, so many at a time."""

    population = 256

    def ask(self) -> np.ndarray:
        """Return the next points."""
        return self.rng.random((self.population, self.keys))

    def tell(self, points: np.ndarray, badness: np.ndarray) -> None:
        """Learn nothing."""


class Evolution(WorstSearch):
    """CMA-ES within the unit cube, with restarts of growing population."""

    def __init__(self, keys: int, seed: int) -> None:
        super().__init__(keys, seed)
        self._population = max(POPULATION, 4 + int(3 * math.log(max(keys, 1))))
        self._strategy: Any = self._begun(np.full(keys, 0.5))

    def _begun(self, middle: np.ndarray) -> Any:
        cma = needed("cma", "the search for the worst case")
        options = {
            "bounds": [0.0, 1.0],
            "popsize": self._population,
            "tolx": SETTLED,
            "seed": np.nan,  # NumPy's global generator is the user's
            "randn": lambda *shape: self.rng.standard_normal(shape),
            "verbose": -9,
            "verb_log": 0,
        }
        # With one key alone its covariance has nothing to learn; cma wants two.
        start = middle if self.keys > 1 else np.array([middle[0], 0.5])
        return cma.CMAEvolutionStrategy(start, SPREAD, options)

    def ask(self) -> np.ndarray:
        """Return the next population."""
        if self._strategy.stop():
            self._population *= 2
            self._strategy = self._begun(self.rng.random(self.keys))
        self._asked = self._strategy.ask()
        return np.clip(np.array(self._asked)[:, : self.keys], 0.0, 1.0)

    def tell(self, points: np.ndarray, badness: np.ndarray) -> None:
        """Move towards the worst."""
        finite = badness[np.isfinite(badness)]
        scale = float(np.abs(finite).max(initial=1.0))
        # A run that failed is worse than all others, by something that a mean can be taken of.
        worst = float(finite.max(initial=0.0)) + scale
        self._strategy.tell(self._asked, (-np.where(np.isfinite(badness), badness, worst)).tolist())


@dataclass(frozen=True)
class Searched:
    """What a search came to.

    Attributes
    ----------
    campaign : Campaign
        All runs that it made, in their order.
    metric : str
    worst : float
        Of the metric; NaN where the worst run failed.
    job : int
        The worst run.
    violation : int or None
        The first run that failed or broke a promise; None where there was none.
    """

    campaign: Campaign
    metric: str
    worst: float
    job: int
    violation: int | None

    @property
    def runs(self) -> int:
        """How many runs were made."""
        return len(self.campaign.table["job"])

    @property
    def settings(self) -> dict[str, Any]:
        """Settings of the first violation, or of the worst run."""
        return self.campaign.settings_of(self.job if self.violation is None else self.violation)


@dataclass(frozen=True)
class Falsification:
    """A search for a broken promise, and random search with the same budget.

    Attributes
    ----------
    search, random : Searched
    budget : int
        Runs that each might make.
    """

    search: Searched
    random: Searched
    budget: int

    def words(self) -> str:
        """Return what was found, in sentences that claim no more than that."""
        found = {"The search": self.search, "Random search": self.random}
        told = []
        for name, one in found.items():
            if one.violation is not None:
                told.append(f"{name} broke a promise in run {one.violation + 1}.")
            else:
                told.append(f"{name} broke no promise in {one.runs} runs.")
        if self.search.violation is None:
            told.append(
                "That is no proof that there is no violation within the ranges: worst cases may be "
                "narrower than what was looked at."
            )
        return " ".join(told)


def falsify(
    subject: CampaignSubject,
    vary: Mapping[str, Variation | str],
    *,
    metric: str,
    out: Any,
    runs: int = 2000,
    seed: int = 0,
    workers: int = 1,
    smallest: bool = False,
    keep: str = METRICS,
    resume: bool = False,
    tries: int = 3,
    patience: float = 3600.0,
    cluster: str | None = None,
    local_cluster: int = 0,
    progress: Progress | None = None,
) -> Falsification:
    """Look for settings within their ranges that break a promise.

    Each search ends with the population in which a run fails or breaks a promise (its metric "ok"
    is not 1), or with its budget.

    Parameters
    ----------
    subject, vary, seed, workers, keep, resume, tries, patience, cluster, local_cluster, progress
        As in `campaign`.
    metric : str
        What the search makes as bad as it can: as large, or with `smallest` as small. "bound_used"
        of `Simulations` is the largest share of a promise's bound.
    out : path
        New folder: "evolution" and "random" in it are campaigns of their own.
    runs : int
        Budget of each search.

    Returns
    -------
    Falsification
    """
    choice = EngineChoice(workers, tries, patience, cluster, local_cluster)
    variations = variations_of(subject, vary)
    subject.check_metric(metric)
    if not (isinstance(runs, int) and runs >= 1):
        raise CampaignError(f"`runs` must be a whole number from 1 on, got {runs}")
    batch = subject.together(tuple(variations))
    engine = choice.engine(subject, batch, checked_keep(keep))
    one_piece = batch and not choice.on_cluster
    makers: dict[str, type[WorstSearch]] = {"evolution": Evolution, "random": RandomSearch}
    results = []
    with engine:
        for name in SEARCHES:
            search = makers[name](len(variations), seed)
            plan = {
                "subject": subject.describe(),
                "vary": {key: described(one) for key, one in variations.items()},
                "search": name,
                "metric": metric,
                "smallest": smallest,
                "seed": seed,
                "keep": keep,
                "jobs": runs,
                "version": versions().get("framefree", ""),
            }
            store = Store(Path(out) / name, plan, resume=resume)
            try:
                made = PopulationRuns(engine, one_piece, store, metric, smallest)
                _search(search, variations, made, runs, progress)
            finally:
                store.release()
            results.append(_result(Campaign.load(store.folder), metric, smallest))
    search, random = results
    return Falsification(search, random, runs)


@dataclass(frozen=True)
class PopulationRuns:
    """Makes the runs of populations, or takes them from the store where they are there.

    Attributes
    ----------
    engine : Engine
    one_piece : bool
        Whether a population is one compiled batch; else its runs are spread over workers.
    store : Store
    metric : str
    smallest : bool
    """

    engine: Engine
    one_piece: bool
    store: Store
    metric: str
    smallest: bool

    def results(self, piece: JobPiece) -> list[Finished]:
        """Return what comes of a population."""
        there = self.store.read(piece)
        if there is not None:
            return there
        made: dict[int, list[Finished]] = {}
        singles = [JobPiece(k, piece.first + k, (row,)) for k, row in enumerate(piece.rows)]
        parts = [piece] if self.one_piece else singles
        self.engine.run(parts, lambda part, results: made.update({part.first: results}))
        results = [one for first in sorted(made) for one in made[first]]
        for one in results:
            one.check_metric(self.metric)
        self.store.keep(piece, results)
        return results

    def badness(self, results: Sequence[Finished]) -> np.ndarray:
        """Return how bad each run was."""
        return np.array([badness(one, self.metric, self.smallest) for one in results])


def _search(
    search: WorstSearch,
    variations: Mapping[str, Variation],
    runs: PopulationRuns,
    budget: int,
    progress: Progress | None,
) -> None:
    """Run population after population, until a promise breaks or the budget is spent."""
    count, made, found = ProgressCount(budget, progress), 0, False
    index = 0
    while made < budget and not found:
        points = drawn_evenly(search.ask()[: budget - made], variations, search.rng)
        piece = JobPiece(index, made, tuple(settings_at(points, variations)))
        results = runs.results(piece)
        made, index = made + len(results), index + 1
        if made < budget:
            search.tell(points, runs.badness(results))
        found = any(broken(one) for one in results)
        count.add(results)
    runs.store.finish(made)


def drawn_evenly(
    points: np.ndarray, variations: Mapping[str, Variation], rng: np.random.Generator
) -> np.ndarray:
    """Return points with what has no order to search in, seeds and choices, drawn anew."""
    drawn = np.array([key == SEED or isinstance(v, Choice) for key, v in variations.items()])
    points = points.copy()
    points[:, drawn] = rng.random((len(points), int(drawn.sum())))
    return points


def settings_at(points: np.ndarray, variations: Mapping[str, Variation]) -> list[dict[str, Any]]:
    """Return the settings at points of the unit cube."""
    columns = zip(variations.items(), points.T, strict=True)
    return rows_of({key: one.within(p) for (key, one), p in columns})


def badness(result: Finished, metric: str, smallest: bool) -> float:
    """Return how bad a run was: larger is worse, infinite where it failed."""
    if result.cause:
        return math.inf
    result.check_metric(metric)
    value = float(result.metrics[metric])
    return math.inf if math.isnan(value) else -value if smallest else value


def broken(result: Finished) -> bool:
    """Tell whether a run has failed or broken a promise."""
    return bool(result.cause) or not result.metrics.get("ok", 1.0) > 0


def _result(campaign: Campaign, metric: str, smallest: bool) -> Searched:
    job = int(campaign.worst(metric, 1, largest=not smallest)[0])
    first = campaign.broken(1)
    value = float(campaign.metrics[metric][job]) if metric in campaign.metrics else math.nan
    return Searched(campaign, metric, value, job, int(first[0]) if len(first) else None)
