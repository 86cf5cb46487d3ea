"""`framefree bench` tells the spread of its figures, and keeps them with their circumstances."""

import json

import pytest
from typer.testing import CliRunner

from framefree.benchmarks import BENCHMARKS
from framefree.cli import app


@pytest.fixture
def drifting(monkeypatch):
    """A benchmark whose figure is 1, 2, 3, ... times as fast."""
    values = iter(range(1, 10))
    monkeypatch.setitem(BENCHMARKS, "kernel", lambda: {"speedup": next(values), "peer": "a snail"})


def bench(*arguments):
    result = CliRunner().invoke(app, ["bench", "kernel", *arguments])
    assert result.exit_code == 0
    return result.stdout


def test_figures_of_one_run_name_the_machine(drifting):
    figures = json.loads(bench("--json"))
    assert figures["speedup"] == 1
    assert "cores" in figures["machine"]
    assert "spread" not in figures


def test_repeated_figures_are_medians_with_their_spread(drifting):
    figures = json.loads(bench("--json", "--repeat", "3"))
    assert figures["speedup"] == 2
    assert figures["spread"] == {"speedup": [1, 3]}
    assert figures["peer"] == "a snail"


def test_what_is_kept_can_be_repeated(drifting, tmp_path):
    bench("--repeat", "3", "--out", str(tmp_path))
    record = json.loads((tmp_path / "kernel.json").read_text("utf-8"))
    assert record["command"] == "framefree bench kernel --repeat 3"
    assert [run["speedup"] for run in record["runs"]] == [1, 2, 3]
    assert all(record[key] for key in ("date", "framefree", "python", "about"))
