"""Campaigns on a Dask cluster: the same bits, nothing lost, nothing twice, whatever is killed."""

import errno
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from campaign_subjects import Noisy, Square, lines

from framefree.campaign import Campaign, CampaignError, Uniform, campaign, cluster, store

pytest.importorskip("distributed")
GRID = {"x": Uniform(0.0, 9.0, 10)}
HERE = Path(__file__).parent


def equal(first, second):
    assert first.table.keys() == second.table.keys()
    for name, column in first.table.items():
        np.testing.assert_array_equal(column, second.table[name], err_msg=name)


def test_a_local_cluster_gives_the_same_bits(tmp_path):
    log = tmp_path / "log"
    there = campaign(
        Square(str(log), broken=4.0, deadly=3.0), GRID, sample="grid", out=tmp_path / "there",
        local_cluster=2, tries=1,
    )  # fmt: skip
    here = campaign(Square(broken=4.0), GRID, sample="grid", out=tmp_path / "here")
    assert there.complete
    assert np.flatnonzero(there.failed).tolist() == [3, 4]
    assert "its workers ended, 1 times" in there.table["cause"][3]
    assert there.table["cause"][4] == here.table["cause"][4]
    good = ~there.failed
    np.testing.assert_array_equal(there.metrics["square"][good], here.metrics["square"][good])
    assert set(lines(log)) == set(range(10))


def test_no_scheduler_is_told(tmp_path, monkeypatch):
    monkeypatch.setattr(cluster, "CONNECT", 1.0)
    with pytest.raises(CampaignError, match=r"no Dask scheduler at `tcp://127.0.0.1:9`"):
        campaign(Square(), GRID, sample="grid", out=tmp_path / "out", cluster="tcp://127.0.0.1:9")
    with pytest.raises(CampaignError, match="`local_cluster` must be a whole number"):
        campaign(Square(), GRID, sample="grid", out=tmp_path / "no", local_cluster=-1)


def test_addresses_without_a_port_are_refused(tmp_path):
    with pytest.raises(CampaignError, match=r"tcp://HOST:PORT, got `foo`"):
        campaign(Square(), GRID, sample="grid", out=tmp_path / "out", cluster="foo")


class Versions:
    """A client whose workers have other versions."""

    def nthreads(self):
        return {"tcp://127.0.0.1:1": 1}

    def run(self, function):
        return {"tcp://127.0.0.1:1": {**function(), "numpy": "0.1", "casadi": "2.0"}}


def test_other_versions_are_refused():
    engine = cluster.DaskCluster(Square(), None, 1)
    with pytest.raises(CampaignError, match=r"numpy 0.1 there, .* here; casadi 2.0 there"):
        engine._check_versions(Versions())


def test_a_full_disk_leaves_what_was_finished(tmp_path, monkeypatch):
    written, plain = [], store.write_file

    def full(path, content, **options):
        if path.name.startswith("piece") and len(written) == 4:
            raise OSError(errno.ENOSPC, "No space left on device")
        written.extend([path] if path.name.startswith("piece") else [])
        return plain(path, content, **options)

    monkeypatch.setattr(store, "write_file", full)
    with pytest.raises(CampaignError, match=r"No space left.*finished are there"):
        campaign(Square(), GRID, sample="grid", out=tmp_path / "out")
    assert len(Campaign.load(tmp_path / "out").table["job"]) == 4
    monkeypatch.undo()
    result = campaign(Square(), GRID, sample="grid", out=tmp_path / "out", resume=True)
    assert result.complete
    assert result.table["job"].tolist() == list(range(10))


def test_a_folder_that_cannot_be_made_is_told(tmp_path):
    (tmp_path / "file").write_text("mine")
    with pytest.raises(CampaignError, match="cannot be made"):
        campaign(Square(), GRID, sample="grid", out=tmp_path / "file/out")


# ---------------------------------------------------------------------- whatever is killed


class Processes:
    """A scheduler and two workers on this machine, which can be killed and started again."""

    def __init__(self, folder):
        self.folder, self.workers, self.scheduler, self.address = folder, [], None, ""
        tests = HERE.parent
        paths = [HERE, tests / "simulate", tests / "machine", *sys.path]
        self.environment = {**os.environ, "PYTHONPATH": os.pathsep.join(map(str, paths))}

    def _start(self, *words):
        return subprocess.Popen(
            [sys.executable, "-m", *words], env=self.environment, cwd=self.folder,
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )  # fmt: skip

    def start(self):
        file = self.folder / f"scheduler-{time.monotonic_ns()}.json"
        self.scheduler = self._start(
            "distributed.cli.dask_scheduler", "--host", "127.0.0.1", "--port", "0",
            "--no-dashboard", "--scheduler-file", str(file),
        )  # fmt: skip
        while not file.exists():
            time.sleep(0.1)
        time.sleep(0.5)
        import json

        self.address = json.loads(file.read_text())["address"]
        self.workers = [self.worker() for _ in range(2)]

    def worker(self):
        return self._start(
            "distributed.cli.dask_worker", self.address, "--nthreads", "1", "--no-nanny",
            "--no-dashboard", "--host", "127.0.0.1",
        )  # fmt: skip

    def kill_worker(self):
        process = self.workers.pop(0)
        kill(process)
        self.workers.append(self.worker())

    def stop(self):
        for process in (*self.workers, self.scheduler):
            kill(process)

    def client(self, jobs, out, *words):
        code = (
            "import sys; from campaign_subjects import Noisy\n"
            "from framefree.campaign import CampaignError, Uniform, campaign\n"
            "jobs, out, address, resume = sys.argv[1:5]\n"
            "try:\n"
            "    campaign(Noisy(), {'x': Uniform(0.0, 1.0, int(jobs))}, sample='grid', out=out,\n"
            "             cluster=address, resume=resume == 'resume')\n"
            "except CampaignError as error:\n"
            "    print(error); sys.exit(2)\n"
        )
        return subprocess.Popen(
            [sys.executable, "-c", code, str(jobs), str(out), self.address, *words],
            env=self.environment, stdout=subprocess.PIPE, text=True,
        )  # fmt: skip


def kill(process):
    os.kill(process.pid, signal.SIGKILL)
    process.wait()


def pieces(out):
    return len(list(out.glob("piece-*")))


def wait_for(out, count, process, seconds=600):
    end = time.monotonic() + seconds
    while pieces(out) < count and process.poll() is None:
        assert time.monotonic() < end, f"{pieces(out)} of {count} pieces"
        time.sleep(0.05)


@pytest.mark.slow
@pytest.mark.parametrize("jobs", [2000])
def test_kills_of_workers_scheduler_and_client(tmp_path, jobs):
    """Five workers, the scheduler and the client are killed (-9) at random times."""
    rng, out, processes = random.Random(0), tmp_path / "out", Processes(tmp_path)
    try:
        processes.start()
        client = processes.client(jobs, out, "new")
        marks = sorted(rng.sample(range(jobs // 20, jobs * 9 // 10), 7))
        kinds = ["worker"] * 5 + ["scheduler", "client"]
        rng.shuffle(kinds)
        for mark, kind in zip(marks, kinds, strict=True):
            wait_for(out, mark, client)
            if kind == "worker":
                processes.kill_worker()
            elif kind == "client":
                kill(client)
                client = processes.client(jobs, out, "resume")
            else:
                kill(processes.scheduler)
                told, _ = client.communicate(timeout=300)
                assert client.returncode == 2
                assert "went away" in told
                assert pieces(out) >= mark
                for worker in processes.workers:
                    kill(worker)
                processes.start()
                client = processes.client(jobs, out, "resume")
        told, _ = client.communicate(timeout=900)
        assert client.returncode == 0, told
    finally:
        processes.stop()
    result = Campaign.load(out)
    assert result.table["job"].tolist() == list(range(jobs))
    assert not result.failed.any()
    vary = {"x": Uniform(0.0, 1.0, jobs)}
    equal(result, campaign(Noisy(0.0), vary, sample="grid", out=tmp_path / "here"))
