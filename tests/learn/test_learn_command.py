"""`framefree learn`: rounds, figures for scripts, a page, and going on where it ended."""

import json
from dataclasses import dataclass
from typing import ClassVar

import pytest
from test_rounds import TASK
from typer.testing import CliRunner

from framefree.cli import app
from framefree.gallery import scenarios
from framefree.gallery.shared.scenario import Scenario
from framefree.learn import load


@dataclass(frozen=True)
class RodInWater(Scenario):
    """A rod that learns the water it swims in."""

    name: ClassVar[str] = "rod-in-water"

    def run(self, progress=None):
        raise NotImplementedError

    def learning(self):
        return TASK


@pytest.mark.slow
def test_rounds_from_the_command_line(tmp_path, monkeypatch):
    monkeypatch.setitem(scenarios.SCENARIOS, "rod-in-water", RodInWater)
    arguments = ["learn", "rod-in-water", "--out", str(tmp_path), "--json", "--rounds"]
    for rounds in (1, 2):
        done = CliRunner().invoke(app, [*arguments, str(rounds)])
        assert done.exit_code == 0, done.output
        figures = json.loads(done.stdout)
        assert figures["rounds_done"] == rounds
        assert not figures["interrupted"]
    assert "continuing after round 1" in done.stderr
    assert "following the held-out motions" not in done.stderr  # those of the first call serve
    assert figures["rounds"][2]["motion"] == "fast"
    assert figures["tracking_gain"] > 10
    assert load(tmp_path / "model.npz").value("across.quadratic") == pytest.approx(40, rel=0.05)
    page = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert "Error on held-out motions" in page
    assert "across.quadratic" in page
    shown = CliRunner().invoke(app, [*arguments[:-2], "--rounds", "2"])
    assert "model.npz" in shown.stdout
    assert "fast" in shown.stdout


@pytest.mark.slow
def test_the_chain_learns_the_fluid_in_two_rounds(tmp_path):
    arguments = ["learn", "learned-chain", "--out", str(tmp_path), "--rounds", "2", "--json"]
    done = CliRunner().invoke(app, [*arguments, "--set", "duration=4"])
    figures = json.loads(done.stdout)
    assert done.exit_code == 0
    assert figures["rounds"][2]["motion"].startswith("fast")
    assert figures["error_held_out"] < 0.1
    assert figures["tracking_gain"] > 10
