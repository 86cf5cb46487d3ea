"""No run is lost, changed or mixed with another: mistakes, other runs, full disks, interrupts."""

import contextlib
import json
import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from simulate_machines import PD, pendulum, slider

from framefree.errors import FramefreeError, FramefreeWarning
from framefree.look.report import ReportError
from framefree.simulate import Change, Run, SimulationError, record, simulate, storage
from framefree.simulate.folder import MANIFEST
from framefree.simulate.place import RunPlace
from framefree.simulate.segment import Segment

MACHINE = slider()
LAW = PD(MACHINE)
OPTIONS = {"x0": [1.0], "duration": 0.05, "dt": 1e-3}


def content(folder):
    """Everything in a folder, with the times of the last changes."""
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    return {path: (path.read_bytes(), path.stat().st_mtime_ns) for path in files}


def prefix(part, whole):
    """Whether one run is the beginning of another."""
    rows = len(part)
    return rows <= len(whole) and all(
        np.array_equal(getattr(part, name), getattr(whole, name)[:rows]) for name in "txvu"
    )


@pytest.fixture(params=["folder", "single.parquet"])
def out(request, tmp_path):
    """A place with a finished run."""
    place = tmp_path / request.param
    simulate(MACHINE, LAW, out=place, **OPTIONS)
    return place


@pytest.mark.parametrize("replace", [False, True])
@pytest.mark.parametrize(
    "mistake",
    [
        {"duration": -1.0},
        {"dt": 0.0},
        {"integrator": "rk5"},
        {"plant": "moon"},
        {"formulation": "treee"},
        {"x0": [1.0, 2.0]},
        {"x0": [np.nan]},
        {"control_dt": 1.5e-3},
        {"delay": 1},
        {"record": ("enrgy",)},
        {"u0": [1.0, 2.0], "lag": 0.1},
        {"parameters": [1.0]},
        {"dration": 1.0},
        {"law": PD(pendulum())},
    ],
)  # fmt: skip
def test_mistakes_change_nothing(out, mistake, replace):
    before = content(out.parent)
    with pytest.raises((FramefreeError, TypeError)):
        simulate(**{"machine": MACHINE, "law": LAW, **OPTIONS, **mistake}, out=out, replace=replace)
    assert content(out.parent) == before


def test_a_run_is_not_overwritten(out):
    before = content(out.parent)
    run = Run.load(out)
    for write in (lambda: simulate(MACHINE, LAW, out=out, **OPTIONS), lambda: run.save(out)):
        with pytest.raises(SimulationError, match=r"there is a run in .* already: choose another"):
            write()
    assert content(out.parent) == before


def test_a_run_is_replaced_when_the_new_one_is_finished(out, monkeypatch):
    monkeypatch.setattr(record, "SECONDS", 0.0)
    monkeypatch.setattr(Segment, "_piece", lambda self, left: min(4, left))
    old, seen = Run.load(out), []
    beside = str(RunPlace.at(out).unfinished)

    def look(time):
        seen.append((Run.load(out), Run.load(beside)))

    options = {**OPTIONS, "x0": [2.0]}
    new = simulate(MACHINE, LAW, out=out, replace=True, progress=look, **options)
    assert len(seen) > 2
    for before, growing in seen:
        assert before.status == "finished"
        assert np.array_equal(before.x, old.x)
        assert growing.status == "running"
        assert prefix(growing, new)
    assert np.array_equal(Run.load(out).x, new.x)
    assert sorted(p.name for p in RunPlace.at(out).folder.iterdir()) == sorted(
        [RunPlace.at(out).table.name, RunPlace.at(out).header.name]
    )
    old.save(out, replace=True)
    assert np.array_equal(Run.load(out).x, old.x)


@pytest.mark.parametrize("end", ["interrupted", "failed", "error"])
def test_what_is_not_finished_replaces_nothing(out, end):
    before = content(out.parent)
    law, options = LAW, {**OPTIONS, "duration": 1e6, "every": 1000}
    if end == "failed":
        law = PD(MACHINE, stiffness=-1e6)

    def stop(time):
        if end == "interrupted":
            os.kill(os.getpid(), signal.SIGINT)
        if end == "error":
            raise ZeroDivisionError("of the user")

    error = {"failed": SimulationError, "error": ZeroDivisionError}.get(end)
    expected = contextlib.nullcontext() if error is None else pytest.raises(error)
    with pytest.warns(FramefreeWarning, match="is not replaced, since the new one is"), expected:
        simulate(MACHINE, law, out=out, replace=True, progress=stop, **options)
    beside = Run.load(str(RunPlace.at(out).unfinished))
    assert beside.status == ("interrupted" if end == "interrupted" else "failed")
    assert len(beside) > 0
    now = content(out.parent)
    assert {path: now[path] for path in before} == before
    # And the next one is free to try again.
    simulate(MACHINE, LAW, out=out, replace=True, **OPTIONS)
    assert len(content(out.parent)) == 2


@pytest.mark.parametrize("name", ["cfg.json", "cfg.parquet"])
def test_files_that_belong_to_no_run_are_never_touched(tmp_path, name):
    (tmp_path / name).write_text('{"mine": 1}')
    before = content(tmp_path)
    run = simulate(MACHINE, LAW, **OPTIONS)
    for replace in (False, True):
        with pytest.raises(SimulationError, match=f"`.*{name}` exists and belongs to no run"):
            run.save(tmp_path / "cfg.parquet", replace=replace)
        with pytest.raises(SimulationError, match="belongs to no run"):
            simulate(MACHINE, LAW, out=tmp_path / "cfg.parquet", replace=replace, **OPTIONS)
    assert content(tmp_path) == before


def test_foreign_tables_are_never_touched(tmp_path):
    pq.write_table(pa.table({"a": [1.0]}), tmp_path / "cfg.parquet")
    before = content(tmp_path)
    run = simulate(MACHINE, LAW, **OPTIONS)
    for place in (tmp_path / "cfg.parquet", tmp_path):
        with pytest.raises(SimulationError, match=r"cfg\.parquet"):
            run.save(place, replace=True)
    (tmp_path / "results").mkdir()
    (tmp_path / "results" / MANIFEST).write_text("{}")
    with pytest.raises(SimulationError, match="holds the results of a scenario"):
        run.save(tmp_path / "results", replace=True)
    assert content(tmp_path).items() >= before.items()


@pytest.mark.parametrize("place", ["", None, 5, "file", "file/below", "file/run.parquet"])
def test_places_that_cannot_be_written_are_refused(tmp_path, monkeypatch, place):
    monkeypatch.chdir(tmp_path)
    Path("file").write_text("")
    run = simulate(MACHINE, LAW, **OPTIONS)
    with pytest.raises(SimulationError, match=r"written to"):
        run.save(place)
    if place is not None:
        with pytest.raises(SimulationError, match=r"written to"):
            simulate(MACHINE, LAW, out=place, **OPTIONS)
    assert os.listdir() == ["file"]


def test_odd_names_are_names(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name in ("a b/ü", "re.sults", "x[1].parquet", "*.parquet", "-part-00001.parquet"):
        run = simulate(MACHINE, LAW, out=name, **OPTIONS)
        assert prefix(Run.load(name), run)


def test_whoever_changes_folders_meanwhile_finds_the_run(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "elsewhere").mkdir()
    run = simulate(MACHINE, LAW, out="here", progress=lambda _: os.chdir("/"), **OPTIONS)
    assert prefix(run, Run.load(tmp_path / "here"))


# ---------------------------------------------------------------------- two at once


def test_two_runs_at_once_do_not_meet(tmp_path, monkeypatch):
    monkeypatch.setattr(record, "SECONDS", 0.0)
    errors = []

    def second(time):
        if not errors:
            with pytest.raises(SimulationError) as caught:
                simulate(MACHINE, LAW, out=tmp_path, replace=True, **OPTIONS)
            errors.append(str(caught.value))

    run = simulate(MACHINE, LAW, out=tmp_path, progress=second, **OPTIONS)
    assert f"is being written by process {os.getpid()} " in errors[0]
    assert prefix(Run.load(tmp_path), run)
    assert len(Run.load(tmp_path)) == len(run)


def test_of_many_that_start_together_one_writes(tmp_path):
    ends, barrier = [], threading.Barrier(4)

    def one(k):
        barrier.wait()
        try:
            ends.append(simulate(MACHINE, LAW, out=tmp_path / "a", **{**OPTIONS, "x0": [k]}))
        except SimulationError as error:
            ends.append(str(error))

    threads = [threading.Thread(target=one, args=(k,)) for k in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    (run,) = [end for end in ends if isinstance(end, Run)]
    assert len(ends) == 4
    loaded = Run.load(tmp_path / "a")
    assert np.array_equal(loaded.x, run.x)
    assert loaded.meta["id"] == run.meta["id"]


# ---------------------------------------------------------------------- what is loaded is one run


def pieces(folder, count=3, **marks):
    """Write pieces of a run that goes on, as `simulate` does."""
    run = simulate(MACHINE, LAW, **OPTIONS)
    meta = {**run.meta, "status": "running", **marks}
    place = RunPlace.at(folder)
    storage.write_header(place, meta, run.channels, None)
    for k in range(count):
        rows = {key: array[10 * k : 10 * (k + 1)] for key, array in run.arrays().items()}
        storage.write_part(place, k, rows, meta["id"], run.channels, None)
    return run, place


def test_pieces_of_another_run_are_left_out(tmp_path):
    pieces(tmp_path, 3)
    run, _ = pieces(tmp_path, 2, id="other")
    loaded = Run.load(tmp_path)
    assert loaded.status == "interrupted"
    assert len(loaded) == 20
    assert prefix(loaded, run)


def test_what_was_loaded_while_it_ran_is_saved_as_interrupted(tmp_path, monkeypatch):
    monkeypatch.setattr(record, "SECONDS", 0.0)

    def copy(time):
        growing = Run.load(tmp_path / "a")
        assert growing.status == "running"
        growing.save(tmp_path / "b", replace=True)

    simulate(MACHINE, LAW, out=tmp_path / "a", progress=copy, **OPTIONS)
    assert Run.load(tmp_path / "b").status == "interrupted"


def test_a_missing_piece_ends_what_is_read(tmp_path):
    run, place = pieces(tmp_path)
    place.part(1).unlink()
    with pytest.warns(FramefreeWarning, match=r"`run-part-00001.parquet` is missing"):
        loaded = Run.load(tmp_path)
    assert len(loaded) == 10
    assert prefix(loaded, run)


def test_before_its_first_piece_a_run_has_no_rows(tmp_path):
    pieces(tmp_path, 0)
    assert len(Run.load(tmp_path)) == 0
    assert Run.load(tmp_path).status == "interrupted"
    with pytest.raises(SimulationError, match="there is a run"):
        simulate(MACHINE, LAW, out=tmp_path, **OPTIONS)


def test_a_table_brings_its_own_header(tmp_path):
    """Killed after the new table was there and before its header was, a run is the new one."""
    old = simulate(MACHINE, LAW, out=tmp_path, **OPTIONS)
    header = (tmp_path / "run.json").read_bytes()
    new = simulate(MACHINE, LAW, out=tmp_path, replace=True, **{**OPTIONS, "duration": 0.02})
    (tmp_path / "run.json").write_bytes(header)
    assert Run.load(tmp_path).meta["id"] == new.meta["id"] != old.meta["id"]
    (tmp_path / "run.json").unlink()
    assert len(Run.load(tmp_path)) == len(new)


def test_runs_of_before_can_be_read(out):
    """Tables without a header of their own, beside one."""
    place, run = RunPlace.at(out), Run.load(out)
    pq.write_table(pq.read_table(place.table).replace_schema_metadata(None), place.table)
    assert prefix(Run.load(out), run)
    place.header.unlink()
    with pytest.raises(SimulationError, match="there is no run at"):
        Run.load(out)


def test_damaged_tables_are_refused(out):
    place = RunPlace.at(out)
    place.table.write_bytes(place.table.read_bytes()[:-100])
    with pytest.raises(SimulationError, match="is no table of a run"):
        Run.load(out)


def test_errors_at_events_leave_what_was_recorded(tmp_path):
    """An event that cannot happen is found in the middle of a run."""
    other = pendulum()
    with pytest.raises(FramefreeError) as caught:
        simulate(
            MACHINE, LAW, out=tmp_path, **OPTIONS, formulation="tree",
            events=[Change(0.02, law=PD(other))],
        )  # fmt: skip
    loaded = Run.load(tmp_path)
    assert loaded.status == "failed"
    assert loaded.meta["failure"] == str(caught.value)
    assert loaded.t[-1] == pytest.approx(0.019)


# ---------------------------------------------------------------------- full disks


@pytest.mark.parametrize("lasting", [False, True])
def test_a_full_disk_loses_no_rows(tmp_path, monkeypatch, lasting):
    monkeypatch.setattr(record, "SECONDS", 0.0)
    monkeypatch.setattr(Segment, "_piece", lambda self, left: min(4, left))
    fsync, full = os.fsync, []

    def sync(descriptor):
        if full:
            raise OSError(28, "No space left on device")
        fsync(descriptor)

    monkeypatch.setattr(os, "fsync", sync)

    def look(time):
        if 0.02 < time < 0.04 or (lasting and time > 0.02):
            full.append(time)
        else:
            full.clear()

    options = {**OPTIONS, "progress": look, "out": tmp_path}
    warned = pytest.warns(FramefreeWarning, match=r"No space left on device\): the run goes on")
    if lasting:
        with warned, pytest.raises(SimulationError, match="No space left") as caught:
            simulate(MACHINE, LAW, **options)
        run = caught.value.run
    else:
        with warned:
            run = simulate(MACHINE, LAW, **options)
    assert run.status == "finished"
    assert len(run) == 51
    full.clear()
    loaded = Run.load(tmp_path)
    assert loaded.status == ("interrupted" if lasting else "finished")
    assert prefix(loaded, run)
    assert len(loaded) > 20 if lasting else len(loaded) == 51
    assert not [path for path in tmp_path.iterdir() if path.name.startswith(".")]
    run.save(tmp_path / "again")
    assert len(Run.load(tmp_path / "again")) == 51


def test_a_place_that_is_full_at_the_start_is_refused(tmp_path, monkeypatch):
    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(SimulationError, match=r"cannot be written to .*: No space left"):
        simulate(MACHINE, LAW, out=tmp_path, **OPTIONS)
    assert list(tmp_path.iterdir()) == []


LIMITED = """
import json, resource, sys
sys.path[:0] = {paths!r}
from simulate_machines import PD, slider
from framefree.simulate import SimulationError, record, simulate
record.SECONDS = 0.0
machine = slider()
options = {{"x0": [1.0], "duration": 20.0, "dt": 1e-3, "out": sys.argv[1]}}
limit = lambda time: resource.setrlimit(resource.RLIMIT_FSIZE, (40_000, 40_000))
try:
    simulate(machine, PD(machine), progress=limit, **options)
except SimulationError as error:
    print(json.dumps([str(error), len(error.run), error.run.x[-1, 0]]))
"""


@pytest.mark.skipif(os.name != "posix", reason="limits of POSIX")
def test_a_limit_of_the_system_loses_no_rows(tmp_path):
    """Files may not grow beyond 40 kB: pieces fit, the whole table does not."""
    code = LIMITED.format(paths=[str(Path(__file__).parent)])
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", code, str(tmp_path)],
        capture_output=True, text=True, check=True, timeout=120,
    )  # fmt: skip
    words, rows, last = json.loads(done.stdout)
    assert "cannot be written" in words
    assert "File too large" in words
    assert rows == 20001
    loaded = Run.load(tmp_path)
    assert loaded.status == "interrupted"
    assert 0 < len(loaded) <= rows
    assert (np.diff(loaded.t) > 0).all()
    assert len(loaded) < rows or loaded.x[-1, 0] == last


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() != 0, reason="only root mounts")
def test_a_small_disk_loses_no_rows(tmp_path):
    disk = tmp_path / "disk"
    disk.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=400k", "tmpfs", str(disk)]
    try:
        if subprocess.run(mount, capture_output=True, check=False).returncode != 0:
            pytest.skip("nothing may be mounted here")
    except FileNotFoundError:
        pytest.skip("there is no `mount`")
    try:
        old = simulate(MACHINE, LAW, out=disk / "a", **OPTIONS)
        options = {**OPTIONS, "duration": 20.0, "x0": [2.0]}
        with pytest.raises(SimulationError, match="No space left") as caught:
            simulate(MACHINE, LAW, out=disk / "a", replace=True, **options)
        assert len(caught.value.run) == 20001
        with pytest.raises(ReportError, match="No space left"):
            old.report(disk / "a")
        assert np.array_equal(Run.load(disk / "a").x, old.x)
        beside = Run.load(disk / "a/run.unfinished.parquet")
        assert beside.status == "interrupted"
        assert prefix(beside, caught.value.run)
        assert not (disk / "a/report.html").exists()
    finally:
        subprocess.run(["umount", str(disk)], check=True)
