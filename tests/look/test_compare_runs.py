"""Two results side by side."""

import json
from dataclasses import replace

import numpy as np
import pytest
from simulate_machines import pendulum

from framefree.gallery.shared.results import run_into
from framefree.look.report import ReportError
from framefree.look.report.compare import compare, load
from framefree.look.report.page import html
from framefree.simulate import simulate


@pytest.fixture
def results(tmp_path, swing):
    for name, duration in (("short", 0.3), ("long", 0.5)):
        run_into(swing(duration=duration), tmp_path / name)
    return tmp_path


def test_metrics_side_by_side(results):
    found = compare(load(results / "short"), load(results / "long"))
    numbers = [json.loads((results / n / "metrics.json").read_text()) for n in ("short", "long")]
    metrics = {item.name: item for item in found.metrics}
    error = metrics["last_error_rad"]
    assert (error.first, error.second) == tuple(n["last_error_rad"] for n in numbers)
    assert error.change == error.second - error.first
    assert metrics["ok"].change is None
    assert metrics["never_s"].change is None
    assert (metrics["setting_duration"].first, metrics["setting_duration"].second) == (0.3, 0.5)
    json.dumps(found.to_dict(), allow_nan=False)
    tables = {table.title: table for table in found.page.tables}
    assert [row[0] for row in tables["Settings that differ"].rows] == ["duration"]


def test_the_same_start_gives_the_same_curves(results):
    found = compare(load(results / "short"), load(results / "long"))
    assert set(found.signals.values()) == {0.0}
    assert {"x.j0 (rad)", "v.j1 (rad/s)", "u.j0 (Nm)", "kinetic (J)", "V (J)"} <= set(found.signals)
    assert found.page.figures == ()  # what is the same is folded away
    folded = {table.title: table for table in found.page.tables if table.folded}
    same = folded["Recorded quantities that are the same"].rows
    assert {"Configuration", "Velocity", "Input", "Kinetic"} <= {row[0] for row in same}
    assert sum(int(row[2]) for row in same) == len(found.signals)
    assert "<details" in html(found.page)


def test_what_differs_most_comes_first_with_both_runs_in_one_figure(tmp_path, swing_run):
    other = replace(
        swing_run,
        x=swing_run.x + np.array([0.0, 1e-3]),
        signals=swing_run.signals | {"kinetic": 3 * swing_run["kinetic"]},
    )
    for name, run in (("a", swing_run), ("b", other)):
        run.save(tmp_path / f"{name}.parquet")
    found = compare(load(tmp_path / "a.parquet"), load(tmp_path / "b.parquet"))
    titles = [figure.title for figure in found.page.figures]
    assert titles == ["Kinetic", "Configuration: j1"]
    energy, angles = found.page.figures
    assert [line.name for line in energy.lines] == ["a", "b"]
    assert [line.dashed for line in energy.lines] == [False, True]
    assert energy.y_label == "kinetic (J)"
    assert [line.name for line in angles.lines] == ["j1", "j1 b"]  # j0 is the same
    titles = [table.title for table in found.page.tables if table.rows and not table.folded]
    assert titles == ["Recorded quantities that differ"]


def test_differences_are_the_largest_ones(tmp_path, swing_run):
    swing_run.save(tmp_path / "a.parquet")
    bump = np.zeros_like(swing_run.x)
    bump[100, 1] = -0.25
    replace(swing_run, x=swing_run.x + bump).save(tmp_path / "b.parquet")
    found = compare(load(tmp_path / "a.parquet"), load(tmp_path / "b.parquet"))
    assert found.signals["x.j1 (rad)"] == pytest.approx(0.25)
    assert found.signals["x.j0 (rad)"] == 0
    assert found.labels == ("a", "b")
    assert found.metrics == ()


def test_other_times_are_met_by_interpolation(tmp_path, swing_run):
    rows = slice(None, None, 5)
    fewer = replace(
        swing_run,
        t=swing_run.t[rows],
        x=swing_run.x[rows],
        v=swing_run.v[rows],
        u=swing_run.u[rows],
        signals={name: value[rows] for name, value in swing_run.signals.items()},
    )
    fewer.save(tmp_path / "fewer")
    swing_run.save(tmp_path / "all")
    one, two = load(tmp_path / "fewer"), load(tmp_path / "all")
    assert compare(one, two).signals["x.j0 (rad)"] == pytest.approx(0, abs=1e-12)
    assert 0 < compare(two, one).signals["x.j0 (rad)"] < 1e-3


def test_folders_of_one_name_are_told_apart(tmp_path, swing_run):
    swing_run.save(tmp_path / "a" / "same")
    swing_run.save(tmp_path / "b" / "same")
    found = compare(load(tmp_path / "a" / "same"), load(tmp_path / "b" / "same"))
    assert found.labels == ("same (first)", "same (second)")


def test_what_is_no_result_is_refused(tmp_path):
    with pytest.raises(ReportError, match="neither a folder with runs nor a Parquet file"):
        load(tmp_path / "nothing")
    with pytest.raises(ReportError, match="there is no run in"):
        load(tmp_path)
    (tmp_path / "metrics.json").write_text("[1]")
    with pytest.raises(ReportError, match="holds no metrics"):
        load(tmp_path)


def test_all_trajectories_of_a_batch_are_compared(tmp_path):
    """A difference in the last of them is found, and shown."""
    machine = pendulum(2)
    run = simulate(machine, x0=[[1.0, 0.5], [0.2, 0.1], [0.3, 0.0]], duration=0.1, dt=2e-3)
    bump = np.zeros_like(run.x)
    bump[2, 20, 1] = 0.25
    for name, one in (("a", run), ("b", replace(run, x=run.x + bump))):
        one.save(tmp_path / f"{name}.parquet")
    found = compare(load(tmp_path / "a.parquet"), load(tmp_path / "b.parquet"))
    assert found.signals["x.j1 (rad)"] == pytest.approx(0.25)
    assert found.signals["x.j0 (rad)"] == 0.0
    assert [figure.title for figure in found.page.figures] == ["Configuration: j1, trajectory 2"]
    assert "all 3 are compared" in found.page.notes[0]
