"""The search for broken promises: found where random search is long, never claimed as proof."""

import json
from dataclasses import dataclass

import numpy as np
import pytest
from test_campaigns import framefree_command

from framefree.campaign import CampaignError, CampaignSubject, Choice, Normal, Uniform, falsify
from framefree.campaign.search import Evolution

RANGES = {key: Uniform(0.0, 1.0) for key in "abcd"}


@dataclass(frozen=True)
class Hill(CampaignSubject):
    """A promise that breaks in one corner only: at most the bound, largest at (1, 0, 1, 0)."""

    bound: float = 0.97
    deadly: bool = False
    name: str = "hill"
    keys: tuple[str, ...] = ("a", "b", "c", "d", "seed", "word")

    def run(self, settings):
        point = np.array([settings[key] for key in "abcd"])
        height = float(1 - np.abs(point - (1, 0, 1, 0)).max())
        if self.deadly and height > self.bound:
            raise ValueError("fell off")
        return {"height": height, "depth": -height, "ok": float(height <= self.bound)}

    def describe(self):
        return {"name": self.name, "bound": self.bound}


def test_a_corner_is_found_that_random_search_misses(tmp_path):
    # Random runs are in the corner once in 0.03^-4, about a million.
    found = falsify(Hill(), RANGES, metric="height", out=tmp_path / "out", runs=2000)
    assert found.search.violation is not None
    assert found.search.runs <= 1000
    assert found.random.violation is None
    assert found.random.runs == 2000
    assert found.search.settings["a"] > 0.97
    assert f"broke a promise in run {found.search.violation + 1}." in found.words()
    assert "Random search broke no promise in 2000 runs." in found.words()
    again = falsify(Hill(), RANGES, metric="height", out=tmp_path / "out", runs=2000, resume=True)
    assert again.search.settings == found.search.settings
    smallest = falsify(
        Hill(), RANGES, metric="depth", out=tmp_path / "small", runs=2000, smallest=True
    )
    assert smallest.search.settings == found.search.settings


def test_runs_that_fail_are_violations(tmp_path):
    found = falsify(Hill(deadly=True), RANGES, metric="height", out=tmp_path / "out", runs=2000)
    assert found.search.violation is not None
    assert np.isnan(found.search.worst)
    assert "fell off" in found.search.campaign.table["cause"][found.search.violation]


def test_sound_promises_are_not_called_proved(tmp_path):
    vary = {**RANGES, "seed": "0:1000", "word": Choice(("x", "y")), "a": Normal(0.5, 0.1)}
    found = falsify(Hill(1.5), vary, metric="height", out=tmp_path / "out", runs=300)
    assert found.search.violation is None
    assert found.search.runs == found.random.runs == 300
    assert "no proof" in found.words()
    assert set(found.search.campaign.settings["word"].tolist()) == {"x", "y"}


def test_the_search_goes_on_after_it_has_settled():
    search, best = Evolution(2, seed=0), []
    for _ in range(200):
        points = search.ask()
        values = -((points - 0.25) ** 2).sum(axis=1)
        search.tell(points, values)
        best.append(values.max())
    assert max(best) > -1e-8
    assert search._population > 8
    one = Evolution(1, seed=0)
    points = one.ask()
    assert points.shape[1] == 1
    one.tell(points, points[:, 0])


def test_mistakes_are_told(tmp_path):
    with pytest.raises(CampaignError, match=r"no metric `hight`; did you mean `height`\?"):
        falsify(Hill(), RANGES, metric="hight", out=tmp_path / "out")
    words = ["campaign", "crane", "--vary", "arm.mass=59.0:61.0", "--metric", "bound_used"]
    done = framefree_command(*words, "--search", "best", "--out", str(tmp_path / "no"))
    assert done.returncode == 2
    assert "must be worst" in done.stderr


def test_the_search_leaves_the_global_generator_alone():
    np.random.seed(7)  # noqa: NPY002
    before = np.random.get_state()[1].copy()  # noqa: NPY002
    Evolution(3, seed=0).ask()
    np.testing.assert_array_equal(np.random.get_state()[1], before)  # noqa: NPY002


@pytest.mark.slow
@pytest.mark.parametrize("where", [{"workers": 2}, {"local_cluster": 2}])
def test_searches_on_workers_have_the_same_bits(tmp_path, where):
    here = falsify(Hill(), RANGES, metric="height", out=tmp_path / "here", runs=60)
    there = falsify(Hill(), RANGES, metric="height", out=tmp_path / "there", runs=60, **where)
    for one, other in ((here.search, there.search), (here.random, there.random)):
        for name, column in one.campaign.table.items():
            np.testing.assert_array_equal(column, other.campaign.table[name])


@pytest.mark.slow
def test_the_command_on_the_crane(tmp_path):
    """A weak kappa is found wanting; the command repeats the run with the same bits."""
    words = ["campaign", "crane", "--set", "duration=3.0", "--set", "kappa=0.3"]
    words += ["--vary", "push.tip.fy=-25.0:25.0", "--vary", "push.tip.start=0.5:2.0"]
    words += ["--search", "worst", "--metric", "bound_used", "--runs", "128", "--json"]
    done = framefree_command(*words, "--out", str(tmp_path / "out"))
    assert done.returncode == 1, done.stderr
    summary = json.loads(done.stdout)
    assert summary["search"]["violated"]
    command = summary["search"]["command"].split()
    assert command[:2] == ["framefree", "campaign"]
    again = framefree_command(
        *[w for w in command[1:] if w != "--open"], "--json", "--out", str(tmp_path / "one")
    )
    assert again.returncode == 1, again.stderr
    assert (tmp_path / "one/report.html").exists()
    first = summary["search"]["runs_to_violation"] - 1
    from framefree.campaign import Campaign

    table = Campaign.load(tmp_path / "out/evolution").metrics
    assert json.loads(again.stdout)["bound_used"] == table["bound_used"][first]
