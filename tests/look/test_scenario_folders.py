"""Folders of results: new ones, numbered ones, replaced ones; never two results in one."""

import dataclasses
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from framefree.errors import FramefreeError
from framefree.files import PlaceTaken, take
from framefree.gallery.shared import results
from framefree.gallery.shared.results import run_into
from framefree.look.report.compare import load
from framefree.simulate import Run, SimulationError, record
from framefree.simulate.folder import status_of
from framefree.simulate.segment import Segment


def content(folder):
    """Everything in a folder, with the times of the last changes."""
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    return {path: (path.read_bytes(), path.stat().st_mtime_ns) for path in files}


@pytest.fixture
def old(tmp_path, swing):
    """Finished results of 0.3 s."""
    folder = tmp_path / "results"
    run_into(swing(duration=0.3), folder)
    return folder


def test_the_manifest_says_what_there_is(old):
    manifest = json.loads((old / "manifest.json").read_text())
    assert manifest["scenario"] == "swing"
    assert manifest["status"] == status_of(old) == "finished"
    assert manifest["setting_duration"] == 0.3
    assert {*manifest["files"]} == {path.name for path in old.iterdir()}


def test_runs_are_written_once_whatever_they_are_called(tmp_path, swing, monkeypatch):
    """What was written as it went gets its name; a run called `run` has a claim of its own."""
    monkeypatch.setattr(Run, "save", lambda *_, **__: pytest.fail("written a second time"))
    made = swing.run

    def renamed(self, progress=None):
        outcome = made(self, progress)
        return dataclasses.replace(outcome, runs={"run": outcome.runs["swing-0"]})

    monkeypatch.setattr(swing, "run", renamed)
    result = run_into(swing(duration=0.1), tmp_path / "one")
    assert result.ok
    assert sorted(load(tmp_path / "one").runs) == ["run"]


def test_results_are_not_overwritten(old, swing):
    before = content(old)
    for place in (old, old / ".." / "results"):
        with pytest.raises(FramefreeError, match="is not empty: choose another folder, or replace"):
            run_into(swing(), place)
    assert content(old) == before


def test_the_next_folder_has_a_number(old, swing):
    (old.parent / "results-2").write_text("a file")
    places = [run_into(swing(duration=0.1), old, number=True).folder for _ in range(2)]
    assert [place.name for place in places] == ["results-3", "results-4"]
    assert load(old).metrics["setting_duration"] == 0.3


def test_results_are_replaced_as_a_whole(old, swing):
    result = run_into(swing(duration=0.2, count=2), old, replace=True)
    assert result.folder == old
    assert result.report == old / "report.html"
    record_ = load(old)
    assert {run.t[-1] for run in record_.runs.values()} == {0.2}
    assert len(record_.runs) == 2
    run_into(swing(duration=0.1), old, replace=True)
    assert list(load(old).runs) == ["swing-0"]
    assert [path.name for path in old.parent.iterdir()] == ["results"]


@pytest.mark.parametrize("at_once", [True, False])
def test_where_folders_cannot_be_exchanged_at_once(old, swing, monkeypatch, at_once):
    """Killed in the middle the old results have another name, and get theirs back."""
    monkeypatch.setattr("framefree.files.swap._at_once", lambda *_: False)
    if not at_once:
        old.rename(old.with_name("results.replaced"))
    run_into(swing(duration=0.2), old, replace=True)
    assert load(old).metrics["setting_duration"] == 0.2
    assert [path.name for path in old.parent.iterdir()] == ["results"]


@pytest.mark.parametrize(
    ("settings", "status"),
    [
        ({"duration": 100.0, "stop_at": 0.01}, "interrupted"),
        ({"duration": 10.0, "explode": True}, "failed"),
    ],
)
def test_what_is_not_finished_replaces_nothing(old, swing, settings, status):
    before = content(old)
    result = run_into(swing(**settings), old, replace=True)
    assert content(old) == before
    assert result.folder == old.with_name("results.unfinished")
    assert status_of(result.folder) == status
    assert load(result.folder).label == f"results.unfinished ({status})"
    assert Run.load(result.folder / "run.parquet").status == status
    run_into(swing(duration=0.2), old, replace=True)
    assert [path.name for path in old.parent.iterdir()] == ["results"]


def test_mistakes_change_nothing(old, swing):
    before = content(old.parent)
    with pytest.raises(FramefreeError, match="duration"):
        run_into(swing(duration=-1.0), old, replace=True)
    with pytest.raises(FramefreeError, match="duration"):
        run_into(swing(duration=-1.0), old.parent / "a" / "b")
    assert content(old.parent) == before
    assert [path.name for path in old.parent.iterdir()] == ["results"]


def test_a_file_of_the_users_keeps_results_from_being_replaced(old, swing):
    (old / "notes.txt").write_text("mine")
    before = content(old)
    with pytest.raises(FramefreeError, match=r"it has `notes.txt`, which does not belong"):
        run_into(swing(), old, replace=True)
    assert content(old) == before
    (old / "notes.txt").unlink()
    Run.load(old / "swing-0.parquet").save(old / "mine.parquet")
    with pytest.raises(FramefreeError, match=r"it has `mine.json`"):
        run_into(swing(), old, replace=True)


@pytest.mark.parametrize("name", ["metrics.json", "report.html", "thesis.tex"])
def test_folders_that_no_scenario_has_written_are_not_replaced(tmp_path, swing, name):
    (tmp_path / name).write_text("mine")
    with pytest.raises(FramefreeError, match=f"it has `{name}`"):
        run_into(swing(), tmp_path, replace=True)
    assert (tmp_path / name).read_text() == "mine"


def test_the_working_folder_is_not_replaced(old, swing, monkeypatch):
    monkeypatch.chdir(old)
    with pytest.raises(FramefreeError, match="it is a mount point or the working folder"):
        run_into(swing(), Path(), replace=True)


def test_links_to_folders_stay(old, swing):
    link = old.parent / "link"
    link.symlink_to("results")
    run_into(swing(duration=0.2), link, replace=True)
    assert link.is_symlink()
    assert load(old).metrics["setting_duration"] == 0.2


def test_two_at_once_do_not_meet(tmp_path, swing):
    """The second is refused, or takes the next number."""
    place = tmp_path / "results"
    place.mkdir()
    lock = take(place / ".run.lock", place)
    for replace in (False, True):
        with pytest.raises(PlaceTaken, match=f"is being written by process {os.getpid()} "):
            run_into(swing(), place, replace=replace)
    assert run_into(swing(duration=0.1), place, number=True).folder.name == "results-2"
    lock.release()
    run_into(swing(duration=0.1), place)


def test_runs_are_written_as_they_go(tmp_path, swing, monkeypatch):
    monkeypatch.setattr(record, "SECONDS", 0.0)
    monkeypatch.setattr(Segment, "_piece", lambda self, left: min(60, left))
    seen = []

    def look(self, time):
        seen.append({name: run.status for name, run in load(tmp_path).runs.items()})
        assert status_of(tmp_path) == "running"
        assert load(tmp_path).label.endswith("(running)")

    monkeypatch.setattr(swing, "_stop", look)
    run_into(swing(count=2, stop_at=0.0), tmp_path)
    assert seen[0] == {"recorded-0": "running"}
    assert seen[-1] == {"recorded-0": "finished", "recorded-1": "running"}
    assert set(load(tmp_path).runs) == {"swing-0", "swing-1"}


def test_a_full_disk_leaves_no_half_results(old, swing, monkeypatch):
    """The report does not fit: old results stay, new runs are there, with a status that says so."""
    before = content(old)

    def full(page, path):
        raise OSError(28, "No space left on device", str(path))

    monkeypatch.setattr(results, "write", full)
    with pytest.raises(OSError, match="No space left"):
        run_into(swing(duration=0.2), old, replace=True)
    assert content(old) == before
    beside = old.with_name("results.unfinished")
    assert status_of(beside) == "failed"
    assert Run.load(beside / "swing-0.parquet").status == "finished"


FULL = """
import resource, sys
sys.path[:0] = {paths!r}
from pathlib import Path
from conftest import Swing
from framefree.gallery.shared.results import run_into
from framefree.look.report import ReportError
resource.setrlimit(resource.RLIMIT_FSIZE, (200_000, 200_000))
try:
    run_into(Swing(), Path(sys.argv[1]), replace=True)
except ReportError as error:
    print(error)
"""


@pytest.mark.skipif(os.name != "posix", reason="limits of POSIX")
def test_a_limit_of_the_system_leaves_no_half_report(old):
    before = content(old)
    here = Path(__file__).parent
    code = FULL.format(paths=[str(here), str(here.parent / "simulate")])
    done = subprocess.run(
        [sys.executable, "-c", code, str(old)], capture_output=True, text=True, check=True
    )
    assert "report.html` cannot be written: " in done.stdout
    assert content(old) == before
    beside = old.with_name("results.unfinished")
    assert not list(beside.glob("report*"))
    assert not list(beside.glob(".*"))
    assert Run.load(beside / "swing-0.parquet").status == "finished"


def test_a_folder_of_results_is_no_run(old):
    with pytest.raises(SimulationError, match=r"there is no run at .* has `swing-0.parquet`"):
        Run.load(old)
