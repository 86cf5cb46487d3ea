"""The search for a broken promise against random search: how many runs each needs.

On the crane and on the quadcopter, with gains that random sampling rarely finds wanting, and with
sound ones. Runs of the search are counted by whole populations, those of random search up to the
very run that breaks a promise.
"""

import statistics
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from framefree.benchmarks.timing import circumstances, tell
from framefree.campaign import CampaignSubject
from framefree.campaign.campaigns import variations_of
from framefree.campaign.search import (
    Evolution,
    RandomSearch,
    WorstSearch,
    badness,
    broken,
    drawn_evenly,
    settings_at,
)
from framefree.gallery.scenarios import SCENARIOS
from framefree.gallery.shared.campaigns import ScenarioRuns

SEEDS = 10
LIMIT = 5_000
"""Runs after which a search is given up; it then counts with these."""
SOUND = 20_000
"""Runs of the search with sound gains."""
METRIC = "bound_used"
THREADS = 2


class FalsifyCase(NamedTuple):
    """A scenario with weak and with sound gains, and what varies."""

    scenario: str
    weak: Mapping[str, Any]
    sound: Mapping[str, Any]
    vary: Mapping[str, str]

    def subject(self, gains: Mapping[str, Any]) -> CampaignSubject:
        """Return the scenario with gains as a subject of campaigns."""
        return ScenarioRuns(SCENARIOS[self.scenario](**gains))


CASES = {
    "crane": FalsifyCase(
        "crane",
        {"duration": 3.0, "kappa": 0.48},
        {"duration": 3.0},
        {
            "push.tip.fx": "-4.0:4.0",
            "push.tip.fy": "-22.0:22.0",
            "push.tip.fz": "-4.0:4.0",
            "push.tip.start": "0.5:2.0",
            "arm.mass": "59.5:60.5",
            "boom.mass": "59.5:60.5",
        },
    ),
    "quadcopter": FalsifyCase(
        "quad-loop",
        {"duration": 3.0, "stiffness": 0.6},
        {"duration": 3.0},
        {
            "push.body.fx": "-0.105:0.105",
            "push.body.fy": "-0.105:0.105",
            "push.body.mx": "-0.026:0.026",
            "push.body.my": "-0.026:0.026",
            "body.mass": "0.9915:1.0085",
            "e0.base.vx": "-0.026:0.026",
            "e0.base.vy": "-0.026:0.026",
        },
    ),
}


def run() -> dict[str, object]:
    """Return the figures of `framefree bench falsify`."""
    figures: dict[str, object] = {"seeds": SEEDS}
    ratios = []
    for name, case in CASES.items():
        tell(f"{name}, weak gains: {SEEDS} searches of up to {LIMIT} runs, and as many at random")
        found = compare(case)
        ratios.append(found["ratio"])
        tell(f"{name}, sound gains: a search of {SOUND} runs")
        figures |= {f"{name}_{key}": value for key, value in found.items()}
        figures |= {f"{name}_{key}": value for key, value in sound(case).items()}
    return {**figures, "ratio": max(ratios), **circumstances("cma")}


def compare(case: FalsifyCase, seeds: int = SEEDS, limit: int = LIMIT) -> dict[str, float]:
    """Return how many runs both searches take to break a promise with weak gains.

    Random search that is given up counts with the limit, which is in its favour.
    """
    subject = case.subject(case.weak)
    keys = len(case.vary)
    searched = [until_violation(subject, case, Evolution(keys, k), limit) for k in range(seeds)]
    drawn = [until_violation(subject, case, RandomSearch(keys, k), limit) for k in range(seeds)]
    search, random = (statistics.median(one.runs for one in some) for some in (searched, drawn))
    return {
        "search_median_runs": search,
        "search_most_runs": max(one.runs for one in searched),
        "search_violations": sum(one.violated for one in searched),
        "random_median_runs": random,
        "random_runs": sum(one.runs for one in drawn),
        "random_violations": sum(one.violated for one in drawn),
        "random_broken_one_in": sum(one.runs for one in drawn)
        / max(sum(one.violated for one in drawn), 1),
        "ratio": search / random,
    }


def sound(case: FalsifyCase, budget: int = SOUND) -> dict[str, float]:
    """Return what the search finds with sound gains: runs made, violations, and the worst share."""
    found = until_violation(case.subject(case.sound), case, Evolution(len(case.vary), 0), budget)
    return {
        "sound_runs": found.runs,
        "sound_violations": int(found.violated),
        "sound_worst": found.worst,
    }


class SearchEnd(NamedTuple):
    """How a search ended: runs made, whether a promise broke, and the worst value of the metric."""

    runs: int
    violated: bool
    worst: float


def until_violation(
    subject: CampaignSubject, case: FalsifyCase, search: WorstSearch, limit: int
) -> SearchEnd:
    """Return what a search comes to: the first broken promise, or its limit."""
    variations = variations_of(subject, case.vary)
    made, worst = 0, 0.0
    while made < limit:
        points = drawn_evenly(search.ask(), variations, search.rng)
        results = subject.run_many(settings_at(points, variations), threads=THREADS)
        bad = np.array([badness(one, METRIC, False) for one in results])
        worst = max(worst, float(bad.max()))
        hits = [k for k, one in enumerate(results) if broken(one)]
        if hits:
            whole = isinstance(search, Evolution)
            return SearchEnd(made + (len(points) if whole else hits[0] + 1), True, worst)
        search.tell(points, bad)
        made += len(points)
    return SearchEnd(made, False, worst)
