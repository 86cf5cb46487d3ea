"""Campaigns: every job once, the same bits everywhere, and nothing lost."""

import dataclasses
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

from framefree.campaign import (
    Campaign,
    CampaignError,
    Integers,
    Uniform,
    campaign,
    success_rate,
)
from framefree.campaign.campaigns import variations_of
from framefree.simulate import RepeatedSimulation, simulate

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
def test_workers_without_memory_are_replaced_and_their_causes_told(tmp_path):
    result = campaign(
        Square(str(tmp_path / "log"), hungry=3.0), GRID, sample="grid", out=tmp_path / "out",
        workers=2, tries=2,
    )  # fmt: skip
    assert np.flatnonzero(result.failed).tolist() == [3]
    assert result.table["cause"][3] == "MemoryError: too much, 2 times"
    assert lines(tmp_path / "log").count(3.0) == 2


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
    with pytest.raises(
        CampaignError, match=r"another campaign: `jobs` was 10, is 5; `vary.x.count` was 10, is 5"
    ):
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


def test_a_plan_without_a_finished_piece_is_begun_anew(tmp_path):
    with pytest.raises(CampaignError, match=r"no metric `sqare`; did you mean `square`"):
        campaign(Square(), GRID, sample="grid", out=tmp_path / "out", metric="sqare")
    assert campaign(Square(), GRID, sample="grid", out=tmp_path / "out").complete


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"workers": 0}, "`workers` must be a whole number from 1 on, got 0"),
        ({"tries": 0}, "`tries` must be a whole number from 1 on"),
        ({"patience": -1.0}, "`patience` must be a time"),
        ({"patience": float("nan")}, "`patience` must be a time"),
        ({"cluster": "tcp://a:1", "local_cluster": 2}, "not both"),
        ({"runs": 0}, "`runs` must be a whole number from 1 on, got 0"),
    ],
)
def test_options_that_make_no_sense_are_refused(tmp_path, options, words):
    with pytest.raises(CampaignError, match=words):
        campaign(Square(), GRID, sample="grid", out=tmp_path / "out", **options)
    assert not (tmp_path / "out").exists()


def test_a_campaign_in_which_all_fails_is_told(tmp_path):
    result = campaign(Square(broken=1.0), {"x": "1,1"}, runs=2, out=tmp_path / "out")
    assert result.failed.all()
    assert result.success()[0] == 0.0


def test_what_a_metric_raises_ends_one_run_only(tmp_path):
    def picky(run):
        if (run.x[:, -1, 0] > 0).any():
            raise ZeroDivisionError("of a metric")
        return run.x[:, -1, 0]

    subject = dataclasses.replace(swings(), metrics={"picky": picky})
    first = subject.machine.x_names[0]
    vary = {f"x0.{first}": Uniform(-1.0, 1.0, 4)}
    result = campaign(subject, vary, sample="grid", out=tmp_path / "out")
    assert result.failed.tolist() == [False, False, True, True]
    assert result.table["cause"][3] == "ZeroDivisionError: of a metric"


def test_an_interrupted_run_does_not_count(tmp_path, monkeypatch):
    """Ctrl-C ends a simulation early without an error; its numbers are not those of the run."""
    subject = swings()
    plain = RepeatedSimulation.run

    def interrupted(self, *given, **options):
        run = plain(self, *given, **options)
        run.meta["status"] = "interrupted"
        return run

    monkeypatch.setattr(RepeatedSimulation, "run", interrupted)
    with pytest.raises(KeyboardInterrupt):
        campaign(subject, {"seed": "0:9"}, runs=3, out=tmp_path / "out")
    assert not list((tmp_path / "out").glob("piece-*"))


def test_ranges_follow_what_a_setting_takes(tmp_path):
    """Whole numbers for seeds, any number for masses, however the range is written."""
    subject = swings()
    mass = f"{subject.machine.bodies[0].name}.mass"
    vary = variations_of(subject, {"seed": "0:9", mass: "1:2"})
    assert vary == {"seed": Integers(0, 9), mass: Uniform(1.0, 2.0)}
    with pytest.raises(CampaignError, match="`seed` takes whole numbers"):
        variations_of(subject, {"seed": "0.5:9"})
    with pytest.raises(CampaignError, match="must be a number, got `heavy`"):
        variations_of(subject, {mass: "1,heavy"})
    with pytest.raises(CampaignError, match="must be a whole number from 0 on, got `-3`"):
        variations_of(subject, {"seed": "-3:9"})
    with pytest.raises(CampaignError, match="must vary by a range or a variation"):
        variations_of(subject, {mass: 3.0})


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
