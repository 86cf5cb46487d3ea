"""Campaigns: every job once, the same bits everywhere, and nothing lost."""

import json
import multiprocessing
import os
import signal
import subprocess
import sys
import time

import numpy as np
import pytest
from campaign_subjects import Square, lines, swings

from framefree.campaign import Campaign, CampaignError, Uniform, campaign, success_rate
from framefree.simulate import simulate

GRID = {"x": Uniform(0.0, 9.0, 10)}


def test_every_job_once(tmp_path):
    log = tmp_path / "log"
    seen = []
    result = campaign(
        Square(str(log)), GRID, sample="grid", out=tmp_path / "out",
        progress=lambda *told: seen.append(told[:3]),
    )  # fmt: skip
    assert result.complete
    np.testing.assert_array_equal(result.metrics["square"], np.arange(10.0) ** 2)
    np.testing.assert_array_equal(result.settings["x"], np.arange(10.0))
    assert lines(log) == list(range(10))
    assert seen[-1] == (10, 10, 0)
    assert (tmp_path / "out/manifest.json").exists()
    assert result.success()[0] == 0.7
    assert result.worst("square", 2).tolist() == [9, 8]
    loaded = Campaign.load(tmp_path / "out")
    np.testing.assert_array_equal(loaded.metrics["square"], result.metrics["square"])


def test_a_job_that_fails_ends_only_itself(tmp_path):
    result = campaign(Square(broken=4.0), GRID, sample="grid", out=tmp_path / "out")
    assert np.flatnonzero(result.failed).tolist() == [4]
    assert result.table["cause"][4] == "ValueError: x is broken"
    assert result.worst("square", 1).tolist() == [4]
    assert result.success()[0] == 0.6


@pytest.mark.slow
def test_workers_that_die_or_hang_are_replaced(tmp_path):
    result = campaign(
        Square(deadly=3.0, sleepy=5.0), GRID, sample="grid", out=tmp_path / "out",
        workers=2, tries=2, patience=8.0,
    )  # fmt: skip
    assert result.complete
    assert np.flatnonzero(result.failed).tolist() == [3, 5]
    assert "its process ended (-9), 2 times" in result.table["cause"][3]
    assert "no answer in 8 s, 2 times" in result.table["cause"][5]
    whole = campaign(Square(), GRID, sample="grid", out=tmp_path / "whole")
    good = ~result.failed
    np.testing.assert_array_equal(result.metrics["square"][good], whole.metrics["square"][good])


def _killed(folder, log):
    campaign(Slow(str(log)), GRID, sample="grid", out=folder)


class Slow(Square):
    def run(self, settings):
        time.sleep(0.1)
        return super().run(settings)


def test_resume_after_a_kill(tmp_path):
    log, folder = tmp_path / "log", tmp_path / "out"
    process = multiprocessing.get_context("spawn").Process(target=_killed, args=(folder, log))
    process.start()
    while not list(folder.glob("piece-*")):
        assert process.is_alive(), "the campaign ended before its first piece"
        time.sleep(0.02)
    os.kill(process.pid, signal.SIGKILL)
    process.join()
    kept = len(Campaign.load(folder).table["job"])
    assert 1 <= kept < 10
    assert not Campaign.load(folder).complete
    with pytest.raises(CampaignError, match="continue it with `resume`"):
        campaign(Slow(str(log)), GRID, sample="grid", out=folder)
    result = campaign(Slow(str(log)), GRID, sample="grid", out=folder, resume=True)
    assert result.table["job"].tolist() == list(range(10))
    assert len(lines(log)) <= 11  # the one that was killed may have run twice, but counts once


def test_another_campaign_is_not_continued(tmp_path):
    campaign(Square(), GRID, sample="grid", out=tmp_path / "out")
    with pytest.raises(CampaignError, match="another campaign: jobs, vary differ"):
        campaign(
            Square(), {"x": Uniform(0.0, 9.0, 5)}, sample="grid", out=tmp_path / "out", resume=True
        )
    (tmp_path / "full").mkdir()
    (tmp_path / "full/mine.txt").write_text("mine")
    with pytest.raises(CampaignError, match="is not empty and holds no campaign"):
        campaign(Square(), GRID, sample="grid", out=tmp_path / "full")


def test_a_damaged_piece_is_run_again(tmp_path):
    campaign(Square(), GRID, sample="grid", out=tmp_path / "out")
    (tmp_path / "out/piece-000003.parquet").write_bytes(b"torn")
    result = campaign(Square(), GRID, sample="grid", out=tmp_path / "out", resume=True)
    np.testing.assert_array_equal(result.metrics["square"], np.arange(10.0) ** 2)


def test_unknown_settings_are_refused(tmp_path):
    with pytest.raises(CampaignError, match=r"nothing called `z`.*it has: `x`, `y`"):
        campaign(Square(), {"z": "0:1"}, runs=3, out=tmp_path / "out")


def test_a_batch_has_the_bits_of_single_runs(tmp_path):
    """Noise by seed, delay and first states: as `simulate` gives them one by one."""
    subject = swings()
    first = subject.machine.x_names[0]
    vary = {f"x0.{first}": Uniform(-0.5, 0.5), "seed": "0:1000"}
    result = campaign(subject, vary, runs=7, out=tmp_path / "out")
    for k in (0, 4):
        x0 = subject.machine.neutral()
        x0[0] = result.settings[f"x0.{first}"][k]
        seed = int(result.settings["seed"][k])
        run = simulate(subject.machine, subject.law, x0=x0, seed=seed, **subject.options)
        assert run.x[-1, 0] == result.metrics["last"][k]
    assert len(set(result.metrics["last"].tolist())) == 7


def test_shares_lie_in_their_intervals():
    """The interval covers the true share in about 95 of 100 cases."""
    rng, hits = np.random.default_rng(0), 0
    for _ in range(2000):
        _, low, high = success_rate(int(rng.binomial(50, 0.9)), 50)
        hits += low <= 0.9 <= high
    assert 0.93 < hits / 2000 < 0.985
    assert success_rate(0, 10)[1] == 0.0
    assert success_rate(10, 10)[2] == 1.0


def framefree_command(*arguments):
    return subprocess.run(
        [sys.executable, "-m", "framefree.cli", *arguments],
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )


@pytest.mark.slow
def test_the_command(tmp_path):
    out = str(tmp_path / "out")
    words = ["campaign", "heavy-top", "--set", "duration=0.01", "--set", "long_steps=1000"]
    words += ["--vary", "spin=149.9:150.1", "--runs", "3", "--workers", "1", "--out", out]
    words += ["--metric", "ok"]
    done = framefree_command(*words, "--json")
    assert done.returncode == 0, done.stderr
    summary = json.loads(done.stdout)
    assert summary["runs"] == 3
    assert all(
        "framefree run heavy-top --set duration=0.01" in c for c in summary["worst"].values()
    )
    again = framefree_command(*words)
    assert again.returncode == 2
    assert "--resume" in again.stderr
    assert json.loads(framefree_command(*words, "--json", "--resume").stdout) == summary
    wrong = framefree_command("campaign", "heavy-top", "--vary", "spn=0:1", "--runs", "2",
                              "--out", str(tmp_path / "new"))  # fmt: skip
    assert "nothing called `spn`" in " ".join(wrong.stderr.split())
