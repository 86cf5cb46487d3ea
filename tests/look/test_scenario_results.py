"""A scenario run into a folder: report, metrics, records; also when it breaks off."""

import json
import os
import signal

import pytest

from framefree.cli.view import _in_order
from framefree.errors import FramefreeError
from framefree.gallery.shared import results
from framefree.gallery.shared.results import run_into
from framefree.gallery.shared.scenario import Outcome
from framefree.simulate import Run
from framefree.simulate.folder import status_of


def test_everything_is_written(tmp_path, swing):
    result = run_into(swing(count=2), tmp_path)
    assert {path.name for path in tmp_path.iterdir()} == {
        "manifest.json", "report.html", "metrics.json",
        "swing-0.parquet", "swing-0.json", "swing-1.parquet", "swing-1.json",
    }  # fmt: skip
    metrics = json.loads((tmp_path / "metrics.json").read_text())
    assert metrics == result.metrics
    assert metrics["name"] == "swing"
    assert metrics["ok"] is True
    assert metrics["failed_promises"] == ""
    assert metrics["steps"] == 251
    assert metrics["never_s"] is None
    assert metrics["wall_seconds"] > 0
    assert metrics["setting_count"] == 2
    assert not any(isinstance(value, list | dict) for value in metrics.values())
    assert Run.load(tmp_path / "swing-1.parquet").x[0, 1] == 1.5


def test_a_broken_promise_is_named(tmp_path, swing):
    result = run_into(swing(bound=-1.0), tmp_path)
    assert not result.ok
    assert result.metrics["failed_promises"] == "the last error is <small>"
    assert "the promise" not in result.trouble


def test_an_interrupted_scenario_leaves_what_it_had(tmp_path, swing):
    # The first run is long enough to be interrupted, and there would be two more.
    result = run_into(swing(duration=100.0, count=3, stop_at=0.01), tmp_path)
    assert result.interrupted
    assert not result.ok
    assert json.loads((tmp_path / "metrics.json").read_text())["ok"] is False
    run = Run.load(tmp_path / "run.parquet")
    assert run.status == "interrupted"
    assert 0 < run.t[-1] < 100
    assert not list(tmp_path.glob("run-*"))
    text = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert "Interrupted: this is what was recorded until then." in text
    assert "<h3>Energy</h3>" in text


def test_values_that_are_not_finite_end_in_a_report(tmp_path, swing):
    result = run_into(swing(explode=True, duration=10.0), tmp_path)
    assert not result.ok
    assert not result.interrupted
    assert "not finite" in result.trouble or "finite" in result.trouble
    assert result.report.exists()
    assert Run.load(tmp_path / "run.parquet").status == "failed"


def test_mistakes_are_not_results(tmp_path, swing):
    with pytest.raises(FramefreeError, match="duration"):
        run_into(swing(duration=-1.0), tmp_path / "out")
    assert not (tmp_path / "out").exists()


def failing(swing, error):
    """Return a scenario that simulates, and then cannot make sense of its run."""

    class Failing(swing):
        def run(self, progress=None):
            super().run(progress)
            raise error

    return Failing


def test_settings_that_cannot_be_evaluated_leave_what_was_recorded(tmp_path, swing):
    kind = failing(swing, ValueError("no rows after 1.5 s"))
    result = run_into(kind(duration=0.1), tmp_path / "a")
    words = "`swing` cannot be evaluated with duration=0.1: no rows after 1.5 s"
    assert result.trouble == words
    assert not result.ok
    assert not result.interrupted
    assert Run.load(tmp_path / "a/run.parquet").t[-1] == 0.1
    assert "no rows after 1.5 s" in result.report.read_text(encoding="utf-8")
    # With its own settings it is a mistake of the scenario, and not of who runs it.
    with pytest.raises(ValueError, match="no rows"):
        run_into(kind(), tmp_path / "b")
    assert status_of(tmp_path / "b") == "failed"
    assert Run.load(tmp_path / "b/recorded-0.parquet").status == "finished"


def test_settings_that_do_not_even_start_are_mistakes(tmp_path, swing):
    class Dividing(swing):
        def run(self, progress=None):
            return super().run(1 / self.count)

    with pytest.raises(FramefreeError, match="`swing` cannot be evaluated with count=0: "):
        run_into(Dividing(count=0), tmp_path / "out")


def test_places_that_cannot_be_written_are_refused_at_once(tmp_path, swing, monkeypatch):
    (tmp_path / "file").write_text("")
    monkeypatch.setattr(swing, "run", lambda *_: pytest.fail("it was run"))
    for place in ("file", "file/below"):
        with pytest.raises(FramefreeError, match=r"cannot be written to .* is a file"):
            run_into(swing(), tmp_path / place)
    monkeypatch.setattr("os.access", lambda *_: False)
    with pytest.raises(FramefreeError, match="is read-only"):
        run_into(swing(), tmp_path / "new" / "folder")


def test_control_c_while_results_are_written_does_not_lose_them(tmp_path, swing, monkeypatch):
    write = results.write

    def pressed(page, path):
        os.kill(os.getpid(), signal.SIGINT)
        return write(page, path)

    monkeypatch.setattr(results, "write", pressed)
    result = run_into(swing(), tmp_path)
    assert result.ok
    assert {"report.html", "metrics.json", "swing-0.parquet"} <= {
        p.name for p in tmp_path.iterdir()
    }
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


@pytest.mark.parametrize(
    "name", ["Upper_m", "with space", "ok", "wall_seconds", "setting_dt", "1_m", ""]
)
def test_names_of_metrics_are_checked(name):
    with pytest.raises(FramefreeError, match="snake_case"):
        Outcome({}, {name: 1.0}, ())


@pytest.mark.parametrize(
    "name", ["metrics", "report", "manifest", "recorded-0", "a/b", "..", "", "a b"]
)
def test_names_of_runs_are_checked(name, swing_run):
    with pytest.raises(FramefreeError, match="name that a file may have"):
        Outcome({name: swing_run}, {}, ())


@pytest.mark.parametrize(
    ("texts", "words"),
    [
        ({"durations": "1"}, "has no setting `durations`; did you mean `duration`? it has: `dur"),
        ({"duration": "long"}, "the setting `duration` of `swing` must be a number, got long"),
        ({"duration": "nan"}, "must be a number, got nan"),
        ({"count": "1.5"}, "must be an integer, got 1.5"),
        ({"spin": "1"}, "must be true or false, got 1"),
    ],
)
def test_settings_from_text_are_checked(swing, texts, words):
    with pytest.raises(FramefreeError) as caught:
        swing().with_settings(texts)
    assert words in str(caught.value)


def test_settings_from_text(swing):
    found = swing().with_settings(
        {"duration": "2", "count": "3", "spin": "TRUE", "plant": "mujoco", "bound": "inf"}
    )
    assert found == swing(2.0, float("inf"), 3, True, plant="mujoco")


def test_the_first_run_of_a_scenario_is_the_one_that_is_viewed(tmp_path, swing):
    """Not the first in the alphabet; a folder without that record still has an order."""
    run_into(swing(count=2), tmp_path / "out")
    manifest = tmp_path / "out" / "manifest.json"
    data = json.loads(manifest.read_text())
    assert data["runs"] == ["swing-0", "swing-1"]
    for names in (["swing-1", "swing-0"], ["swing-1"]):
        manifest.write_text(json.dumps(data | {"runs": names}))
        assert [table.stem for table in _in_order(tmp_path / "out")] == ["swing-1", "swing-0"]
    for broken in ("{", "[]", "{}", '{"runs": 3}'):
        manifest.write_text(broken)
        assert [table.stem for table in _in_order(tmp_path / "out")] == ["swing-0", "swing-1"]
