"""What differs by rounding alone is told apart from what differs, and names are for people."""

import json
from dataclasses import replace

import numpy as np
import pytest
from typer.testing import CliRunner

from framefree.cli import app
from framefree.look.report.compare import compare, load
from framefree.look.report.page import html


@pytest.fixture
def compared(tmp_path, swing_run):
    """Return the comparison of a run with itself changed."""

    def compared(**signals):
        first = replace(swing_run, signals=swing_run.signals | signals.pop("first", {}))
        second = replace(
            first,
            x=first.x + signals.pop("x", 0.0),
            signals=first.signals | {name: f(first[name]) for name, f in signals.items()},
        )
        for name, run in (("a", first), ("b", second)):
            run.save(tmp_path / f"{name}.parquet", replace=True)
        return compare(load(tmp_path / "a.parquet"), load(tmp_path / "b.parquet"))

    return compared


def names(found, title):
    return [row[0] for table in found.page.tables if table.title == title for row in table.rows]


DIFFER = "Recorded quantities that differ"
ROUNDING = "Recorded quantities that are equal but for rounding"


@pytest.mark.parametrize(("size", "title"), [(1e-10, ROUNDING), (1e-8, DIFFER)])
def test_differences_below_1e_9_of_the_span_are_rounding(compared, size, title):
    found = compared(kinetic=lambda e: e + size * np.ptp(e) * np.sin(np.arange(len(e))))
    assert names(found, title) == ["Kinetic"]
    assert [figure.title for figure in found.page.figures] == (["Kinetic"] * (title == DIFFER))
    (table,) = [table for table in found.page.tables if table.title == title]
    assert table.folded == (title == ROUNDING)
    assert "1e-9 of the span" in html(found.page)


def test_what_is_rounding_itself_does_not_come_first(compared, swing_run):
    """An error of a constraint is 1e-16 in one run and 2e-16 in the other."""
    noise = 1e-16 * np.sin(np.arange(len(swing_run)))
    found = compared(
        first={"kinetic": noise}, kinetic=lambda e: 2 * e, potential=lambda e: e + 1e-3 * np.ptp(e)
    )
    assert names(found, DIFFER) == ["Potential"]
    assert names(found, ROUNDING) == ["Kinetic"]


def test_what_stands_still_differs_by_more_than_its_last_digits_or_not(compared, swing_run):
    still = np.full(len(swing_run), 300.0)
    near = compared(first={"kinetic": still}, kinetic=lambda e: e * (1 + 3e-16))
    assert names(near, ROUNDING) == ["Kinetic"]
    far = compared(first={"potential": still}, potential=lambda e: e + 0.5)
    assert names(far, DIFFER) == ["Potential"]
    (figure,) = far.page.figures
    assert figure.title == "Potential"


def test_quantities_are_ordered_by_their_span_not_by_their_size(compared, swing_run):
    """Large numbers that hardly change come before a small share of a large span."""
    t = swing_run.t
    found = compared(
        first={"kinetic": 1e4 + np.sin(t), "potential": 1e4 * np.sin(t)},
        kinetic=lambda e: e + 0.1,
        potential=lambda e: e + 0.2,
    )
    assert names(found, DIFFER) == ["Kinetic", "Potential"]


@pytest.fixture
def scenarios(tmp_path, swing_run):
    """Return folders of a scenario of the gallery, with metrics that differ."""
    common = {"name": "pvtol", "ok": True, "rms_position_m": 0.25, "energy_rate_error": 1e-13}
    common |= {"settling_s": 2.0, "setting_plant": "native", "wall_seconds": 2.0}
    other = common | {"rms_position_m": 0.5, "energy_rate_error": 3e-13, "wall_seconds": 9.0}
    other |= {"settling_s": 2.0 + 1e-12}
    folders = []
    for name, metrics in (("one", common), ("two", other)):
        swing_run.save(tmp_path / name / "run.parquet")
        (tmp_path / name / "metrics.json").write_text(json.dumps(metrics))
        folders.append(str(tmp_path / name))
    return folders


def test_metrics_have_names_units_and_sentences(scenarios, tmp_path):
    page = tmp_path / "page.html"
    result = CliRunner().invoke(app, ["compare", *scenarios, "--out", str(page)])
    assert result.exit_code == 0, result.output
    text = page.read_text(encoding="utf-8")
    for words in ("rms position", "0.25 m", "+0.25 m", "all promises hold", "time on the clock"):
        assert words in text
    assert "Error of position, root of the mean square." in text
    assert "rms_position_m" not in text
    assert "setting_plant" not in text
    assert "root of the mean square" not in result.output  # the page has room for sentences


def test_metrics_that_differ_by_rounding_are_folded_away(scenarios):
    found = compare(*map(load, scenarios))
    assert names(found, "Metrics that differ") == ["rms position", "time on the clock"]
    near = names(found, "Metrics that are equal but for rounding")
    assert sorted(near) == ["energy rate error", "settling"]
    same = names(found, "Metrics that are the same")
    assert same == ["scenario", "all promises hold"]
    assert names(found, "Settings that are the same") == ["plant"]
