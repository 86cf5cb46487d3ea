"""The search for a broken promise against random search: how many runs each needs.

On the crane and on the quadcopter, with gains that random sampling rarely finds wanting, and with
sound ones. Runs of the search are counted by whole populations, those of random search up to the
very run that breaks a promise.
"""

import statistics
from collections.abc import Mapping
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import numpy as np

from framefree.benchmarks.timing import circumstances
from framefree.campaign import CampaignSubject, falsify
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
LIMIT = 40_000
"""Runs after which random search is given up."""
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
        found = compare(case)
        ratios.append(found["ratio"])
        figures |= {f"{name}_{key}": value for key, value in found.items()}
        figures |= {f"{name}_{key}": value for key, value in sound(case).items()}
    return {**figures, "ratio": max(ratios), **circumstances("cma")}


def compare(case: FalsifyCase, seeds: int = SEEDS, limit: int = LIMIT) -> dict[str, float]:
    """Return how many runs both searches take to break a promise with weak gains.

    Random search that is given up counts with the limit, which is in its favour.
    """
    subject = case.subject(case.weak)
    keys = len(case.vary)
    searched = [runs_to_violation(subject, case, Evolution(keys, k), limit) for k in range(seeds)]
    drawn = [runs_to_violation(subject, case, RandomSearch(keys, k), limit) for k in range(seeds)]
    search, random = (statistics.median(runs) for runs in (searched, drawn))
    ended = sum(runs < limit for runs in drawn)
    return {
        "search_median_runs": search,
        "search_most_runs": max(searched),
        "random_median_runs": random,
        "random_broken_one_in": sum(drawn) / max(ended, 1),
        "ratio": search / random,
    }


def sound(case: FalsifyCase, budget: int = SOUND) -> dict[str, float]:
    """Return what the search finds with sound gains: runs made, violations, and the worst share."""
    with TemporaryDirectory() as folder:
        found = falsify(
            case.subject(case.sound), case.vary, metric=METRIC, out=folder, runs=budget,
            workers=THREADS,
        )  # fmt: skip
        return {
            "sound_runs": found.search.runs,
            "sound_violations": float(found.search.violation is not None),
            "sound_worst": found.search.worst,
            "sound_random_worst": found.random.worst,
        }


def runs_to_violation(
    subject: CampaignSubject, case: FalsifyCase, search: WorstSearch, limit: int
) -> int:
    """Return how many runs a search takes until one breaks a promise."""
    variations = variations_of(subject, case.vary)
    made = 0
    while made < limit:
        points = drawn_evenly(search.ask(), variations, search.rng)
        results = subject.run_many(settings_at(points, variations), threads=THREADS)
        bad = np.array([badness(one, METRIC, False) for one in results])
        hits = [k for k, one in enumerate(results) if broken(one)]
        if hits:
            whole = isinstance(search, Evolution)
            return made + (len(points) if whole else hits[0] + 1)
        search.tell(points, bad)
        made += len(points)
    return limit
