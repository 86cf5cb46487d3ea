"""Kill runs and scenarios at random times, and look at what is left; a script of its own.

Children are forked from one process that has compiled everything, so that a kill costs no more than
the time it waits for. What is wrong is raised; at the end the kinds of what was found are printed.

    PYTHONPATH=tests/simulate python tests/look/kill_results.py FOLDER KILLS SEED
"""

import contextlib
import json
import os
import random
import signal
import sys
import time
import warnings
from collections import Counter
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
from simulate_machines import PD, slider

from conftest import Swing
from framefree import cli
from framefree.gallery.scenarios import SCENARIOS
from framefree.simulate import Run, record, segment, simulate
from framefree.simulate.folder import status_of

record.SECONDS, segment.SECONDS = 0.01, 0.005
MACHINE = slider()
LAW = PD(MACHINE)
STARTS = (1.0, 2.0)


def run_from(start, **options):
    """Simulate; the two starts tell an old run from a new one."""
    return simulate(
        MACHINE, LAW, x0=[start], duration=200.0, dt=1e-3, every=4, progress=False, **options
    )


def command(*arguments):
    """Run the command line, silently."""
    sys.argv = ["framefree", *arguments]
    with open(os.devnull, "w") as nothing, contextlib.redirect_stdout(nothing):
        cli.err.file = cli.out.file = nothing
        try:
            cli.main()
        except SystemExit as end:
            return end.code


def scenario(duration, folder, *more):
    """Run a scenario of two runs by the command line; the duration tells old from new."""
    settings = ("--set", f"duration={duration}", "--set", "count=2")
    return command("run", "swing", *settings, "--json", "--out", str(folder), *more)


def killed(action, after):
    """Fork, and kill the child some time after it has begun."""
    child = os.fork()
    if child == 0:
        try:
            warnings.simplefilter("ignore")
            action()
        finally:
            os._exit(0)
    time.sleep(after)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)


def prefix(part, whole):
    """Raise unless one run is the beginning of another."""
    for name in ("t", "x", "v", "u"):
        few, all_ = getattr(part, name), getattr(whole, name)
        assert np.array_equal(few, all_[: len(few)]), f"{name} is not of one run"


def everything_is_whole(folder):
    """Raise if there is half a file."""
    for file in folder.rglob("*"):
        if file.name.startswith("."):
            continue
        if file.suffix == ".json":
            json.loads(file.read_text())
        elif file.suffix == ".parquet":
            pq.read_table(file)
        elif file.suffix == ".html":
            assert file.read_text().endswith("</html>\n"), "half a page"


def one_run(path, references, found):
    """Look at a place: nothing, the beginning of one run, or all of it."""
    if not path.with_suffix(".json").exists() and not path.exists():
        found["nothing"] += 1
        return
    run = Run.load(path)
    if not len(run):
        found["no rows"] += 1
        assert run.status == "interrupted"
        return
    (reference,) = [other for other in references if other.x[0, 0] == run.x[0, 0]]
    prefix(run, reference)
    assert run.status == ("finished" if len(run) == len(reference) else "interrupted")
    found[run.status] += 1


def kill_run(folder, kind, wait, references, found):
    """Kill a run into a new folder, or one that would replace a finished run."""
    place = folder / "run"
    if kind == "replace":
        references[0].save(place)
    killed(lambda: run_from(STARTS[1], out=place, replace=kind == "replace"), wait)
    everything_is_whole(folder)
    one_run(place / "run.parquet", references, found)
    if kind == "replace":
        assert Run.load(place).status == "finished", "a finished run is lost"
        one_run(place / "run.unfinished.parquet", references[1:], found)
    # A claim of the dead is no claim.
    references[0].save(place, replace=True)
    assert np.array_equal(Run.load(place).x, references[0].x)


def kill_scenario(folder, kind, wait, model, found):
    """Kill a scenario into a new folder, or one that would replace results."""
    place = folder / "results"
    if kind == "replace":
        # As a copy, since a link would share what is changed.
        place.mkdir()
        for file in model.iterdir():
            (place / file.name).write_bytes(file.read_bytes())
    more = ("--replace",) if kind == "replace" else ()
    killed(lambda: scenario(0.3, place, *more), wait)
    everything_is_whole(folder)
    status = status_of(place)
    assert status in ("", "interrupted", "finished"), status
    if kind == "replace":
        assert status == "finished", "finished results are lost"
    if status == "finished":
        one_result(place, model)
    beside = place.with_name("results.unfinished")
    if beside.exists() and status_of(beside) == "finished":
        one_result(beside, model)
    for file in (*place.glob("recorded-*.parquet"), *beside.glob("recorded-*.parquet")):
        if "-part-" not in file.name:
            assert Run.load(file).status == "finished"
    found[f"results {status}"] += 1
    assert scenario(0.3, place, "--replace") == 0, "a claim of the dead"
    assert status_of(place) == "finished"


def one_result(place, model):
    """Raise unless report, metrics and runs are of one and the same scenario."""
    duration = json.loads((place / "metrics.json").read_text())["setting_duration"]
    names = {file.name for file in model.iterdir()}
    assert {f.name for f in place.iterdir() if not f.name.startswith(".")} == names
    for file in place.glob("*.parquet"):
        assert Run.load(file).t[-1] == duration, "old beside new"


def main():
    """Kill as often as was asked for."""
    folder, kills, seed = Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
    SCENARIOS["swing"] = Swing
    rng, found = random.Random(seed), Counter()
    references = [run_from(start, out=folder / f"{start}") for start in STARTS]
    assert scenario(0.5, folder / "model") == 0
    begin = time.monotonic()
    run_from(STARTS[0], out=folder / "timed")
    run_time = time.monotonic() - begin
    assert scenario(0.3, folder / "again") == 0
    scenario_time = time.monotonic() - begin - run_time
    k = 0
    # What is rarely met depends on how fast the machine is: kill a little longer for its sake.
    while k < kills or (k < 3 * kills and not found["interrupted"]):
        place = folder / f"kill {k}"
        place.mkdir()
        kind = ("new", "replace")[k // 2 % 2]
        if k % 2:
            kill_run(place, kind, rng.uniform(0, 1.2 * run_time), references, found)
        else:
            kill_scenario(place, kind, rng.uniform(0, 1.2 * scenario_time), folder / "model", found)
        k += 1
    print(json.dumps(found))


if __name__ == "__main__":
    main()
