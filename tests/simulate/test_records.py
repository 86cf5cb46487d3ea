"""Runs on disk: everything comes back; what was interrupted, even by force, can be read."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest
from simulate_machines import PD, Counter, Sine, pendulum, slider

from framefree.machine import Free
from framefree.simulate import Change, Pulse, Run, SimulationError, record, simulate
from framefree.simulate.segment import Segment


@pytest.fixture(scope="module")
def run():
    machine = pendulum()
    return simulate(
        machine, PD(machine), Sine(2), [0.3, 0.1], duration=0.05, dt=1e-3, seed=4,
        disturbances=[Pulse("tip", (1.0, 0, 0, 0, 0, 0), 0.01, 0.02)],
    )  # fmt: skip


def same(a, b):
    assert np.array_equal(a.t, b.t)
    for name in "xvu":
        assert np.array_equal(getattr(a, name), getattr(b, name))
    for group in ("reference", "signals"):
        assert getattr(a, group).keys() == getattr(b, group).keys()
        for name, values in getattr(a, group).items():
            assert np.array_equal(values, getattr(b, group)[name])


@pytest.mark.parametrize("name", ["folder", "single.parquet"])
def test_a_saved_run_comes_back(run, tmp_path, name):
    path = run.save(tmp_path / name)
    assert path.exists()
    loaded = Run.load(tmp_path / name)
    same(run, loaded)
    assert loaded.machine == run.machine
    assert loaded.meta == json.loads(json.dumps(run.meta))
    assert loaded.channels == run.channels


def test_columns_have_names_and_units(run, tmp_path):
    names = pq.read_table(run.save(tmp_path)).column_names
    states = ["x.j0 [rad]", "x.j1 [rad]", "v.j0 [rad/s]", "v.j1 [rad/s]", "u.j0 [Nm]", "u.j1 [Nm]"]
    assert names[:7] == ["t [s]", *states]
    assert "reference.x.j1 [rad]" in names
    assert "signals.V [J]" in names
    assert "signals.error.0" in names
    assert "signals.joint_wrench.j1.mz [Nm]" in names
    assert run.units("kinetic") == ("J",)


def test_units_of_joints():
    machine = pendulum(2, kinds=[Free(), slider().joints[0].kind])
    run = simulate(machine, duration=0.01, dt=0.01)
    assert run.units("x") == ("m",) * 3 + ("",) * 4 + ("m",)
    assert run.units("v") == ("m/s",) * 3 + ("rad/s",) * 3 + ("m/s",)
    assert run.units("u") == ("N",) * 3 + ("Nm",) * 3 + ("N",)


def test_the_header_says_how_to_repeat_it(run):
    meta = run.meta
    assert meta["status"] == "finished"
    assert meta["law"]["name"] == "PD"
    assert meta["law"]["stiffness"] == 20.0
    assert meta["reference"] == {
        "name": "Sine",
        "type": "Sine",
        "n": 2,
        "amplitude": 0.3,
        "rate": 2.0,
    }
    assert meta["disturbances"][0]["start"] == 0.01
    assert meta["options"]["seed"] == 4
    assert meta["options"]["dt"] == 1e-3
    assert "casadi" in meta["versions"]
    json.dumps(meta)


def test_unknown_signals(run):
    with pytest.raises(SimulationError, match=r"the run has no `W`; it has: .*`V`"):
        run["W"]
    assert np.array_equal(run["V"], run.signals["V"])


def test_written_as_it_goes(tmp_path, monkeypatch):
    """Pieces appear while the run goes on, each of them readable, and one table at the end."""
    monkeypatch.setattr(record, "SECONDS", 0.0)
    machine, seen = slider(), []

    def look(t):
        parts = sorted(tmp_path.glob("run-part-*.parquet"))
        if parts:
            seen.append((t, Run.load(tmp_path)))

    run = simulate(
        machine,
        PD(machine),
        x0=[1.0],
        duration=200.0,
        dt=1e-3,
        every=10,
        progress=look,
        out=tmp_path,
    )
    assert seen
    t, partial = seen[0]
    assert partial.status == "running"
    assert abs(partial.t[-1] - t) < 0.02
    rows = len(partial)
    assert np.array_equal(partial.x, run.x[:rows])
    assert not list(tmp_path.glob("run-part-*"))
    same(run, Run.load(tmp_path))


@pytest.mark.parametrize("many", [False, True])
def test_longer_runs_than_were_reserved_for(monkeypatch, many):
    """Rows are kept when their arrays grow, channels that come later included."""
    machine = slider()
    x = np.array([[1.0], [0.5], [0.2]]) if many else np.array([1.0])
    events = [Change(0.02, law=PD(machine), reference=Sine(1))]
    options = {"x0": x, "duration": 0.05, "dt": 1e-3, "events": events}
    whole = simulate(machine, Counter(machine), **options)
    monkeypatch.setattr(record, "MEMORY", 0)
    monkeypatch.setattr(Segment, "_piece", lambda self, left: min(3, left))
    pieces = simulate(machine, Counter(machine), **options)
    assert len(whole.t) == 51
    assert np.array_equal(whole.t, pieces.t)
    for name in ("x", "v", "u"):
        assert np.array_equal(getattr(whole, name), getattr(pieces, name))
    for name, values in whole.signals.items():
        assert np.array_equal(values, pieces.signals[name], equal_nan=True)


SCRIPT = """
import sys
sys.path[:0] = {paths!r}
import numpy as np
from simulate_machines import PD, slider
from framefree.simulate import record, simulate
record.SECONDS = 0.1
machine = slider()
run = simulate(machine, PD(machine), x0=[1.0], duration=1e9, dt=1e-3, every=1000, out={out!r})
print(run.status, len(run), flush=True)
"""


def started(tmp_path):
    paths = [str(Path(__file__).parent)]
    code = SCRIPT.format(paths=paths, out=str(tmp_path))
    process = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True)
    for _ in range(600):
        if len(list(tmp_path.glob("run-part-*.parquet"))) > 1 or process.poll() is not None:
            return process
        time.sleep(0.1)
    return process


@pytest.mark.skipif(os.name == "nt", reason="signals of POSIX")
def test_control_c_ends_with_what_was_recorded(tmp_path):
    process = started(tmp_path)
    process.send_signal(signal.SIGINT)
    try:
        output, _ = process.communicate(timeout=60)
    finally:
        process.kill()  # should it not have listened
    assert process.returncode == 0
    status, rows = output.split()
    assert status == "interrupted"
    loaded = Run.load(tmp_path)
    assert loaded.status == "interrupted"
    assert len(loaded) == int(rows) > 100
    assert (np.diff(loaded.t) > 0).all()


@pytest.mark.skipif(os.name == "nt", reason="signals of POSIX")
def test_killed_runs_keep_their_pieces(tmp_path):
    process = started(tmp_path)
    process.kill()
    process.communicate(timeout=60)
    loaded = Run.load(tmp_path)
    assert loaded.status == "interrupted"
    assert len(loaded) > 100
    assert np.allclose(np.diff(loaded.t), 1.0)


def test_no_run(tmp_path):
    with pytest.raises(SimulationError, match="there is no run at"):
        Run.load(tmp_path)
    (tmp_path / "run.json").write_text("[1]")
    with pytest.raises(SimulationError, match="is no header of a run"):
        Run.load(tmp_path)


def test_progress_is_told(capsys):
    times = []
    machine = slider()
    simulate(machine, x0=[1.0], duration=1.0, dt=1e-3, progress=times.append)
    assert times[-1] == 1.0
    simulate(machine, x0=[1.0], duration=1.0, dt=1e-3, progress=True)
    assert capsys.readouterr().out == ""
