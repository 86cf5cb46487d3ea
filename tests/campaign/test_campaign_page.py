"""The report of a campaign, its bands and its sensitivities."""

from dataclasses import dataclass

import numpy as np
import pytest
from simulate_machines import pendulum

from framefree.campaign import (
    Campaign,
    CampaignError,
    CampaignSubject,
    Finished,
    Uniform,
    campaign,
    sampled,
    sensitivity,
)
from framefree.campaign.records import ROWS, quantiles
from framefree.look.report.campaign_page import campaign_page
from framefree.look.report.page import html
from framefree.simulate import simulate

SIDES = {key: Uniform(-np.pi, np.pi) for key in "abc"}


@dataclass(frozen=True)
class Waves(CampaignSubject):
    """A sine whose height is the setting; heights above 0.9 break the promise, 0.5 fails."""

    name: str = "waves"
    keys: tuple[str, ...] = ("height",)

    def run(self, settings):
        height = settings["height"]
        if height == 0.5:
            raise ValueError("half")
        t = np.linspace(0.0, 1.0, 501)
        record = {"t": t, "x.wave [m]": height * np.sin(t), "signals.W [J]": height * t}
        return Finished({"height_m": height, "ok": float(height <= 0.9)}, "", record)

    def describe(self):
        return {"name": self.name}

    def command(self, settings):
        return f"wave --height {settings['height']!r}"


def waves(folder, **options):
    vary = {"height": Uniform(0.0, 1.0, 11)}
    return campaign(Waves(), vary, sample="grid", out=folder, **options)


def test_the_page_tells_rates_worst_runs_and_bands(tmp_path):
    result = waves(tmp_path / "out")
    page = campaign_page(result, Waves(), metric="height_m")
    tables = {table.title: table.rows for table in page.tables}
    assert [row[1:4] for row in tables["Success"]] == [(10, 11, "90.91 %"), (9, 11, "81.82 %")]
    worst = tables["The 10 worst runs by height (m)"]
    assert worst[0][0] == "run 5"  # failed ones first
    assert worst[1] == ("run 10", 1.0, "wave --height 1.0")
    assert tables["Failed runs"] == (("run 5", "ValueError: half", "wave --height 0.5"),)
    bands = next(figure for figure in page.figures if figure.title.startswith("Over time"))
    t = bands.lines[0].x
    heights = np.delete(np.linspace(0, 1, 11), 5)
    np.testing.assert_allclose(bands.lines[0].y, np.median(heights) * np.sin(t), atol=1e-12)
    everything = bands.lines[2]
    assert everything.area
    np.testing.assert_allclose(everything.y.max(), np.sin(1.0))
    titles = [figure.title for figure in page.figures]
    assert {"Over time: wave", "Over time: W"} <= set(titles)
    assert len(set(titles)) == len(titles)
    text = html(page)
    assert "wave --height 1.0" in text
    assert "http" not in text.split('<script type="text/plain"')[0].replace("http-equiv", "")


@pytest.mark.parametrize(("keep", "rows"), [("metrics", 0), ("thinned", ROWS), ("full", 501)])
def test_what_is_kept_of_each_run(tmp_path, keep, rows):
    records = waves(tmp_path / "out", keep=keep).records()
    assert len(records) == (10 if rows else 0)
    assert all(len(record["t"]) == rows for record in records.values())
    if rows:
        np.testing.assert_array_equal(records[10]["x.wave [m]"][-1], np.sin(1.0))


def test_other_words_for_keep_are_refused(tmp_path):
    with pytest.raises(CampaignError, match="one of metrics, thinned, full"):
        waves(tmp_path / "out", keep="all")


def test_runs_that_end_early_count_until_then():
    t = np.linspace(0, 1, 5)
    found = quantiles(t, [(t, np.ones(5)), (t[:3], np.zeros(3))], (0.0, 1.0))
    np.testing.assert_array_equal(found, [[0, 0, 0, 1, 1], [1, 1, 1, 1, 1]])


@pytest.mark.parametrize(
    ("sample", "runs", "near"), [("saltelli", 5 * 1024, 0.03), ("sobol", 1000, 0.1)]
)
def test_sobol_indices_of_ishigami(sample, runs, near):
    """Known in closed form: [Saltelli2010] and many others."""
    columns = sampled(SIDES, sample, runs)
    a, b, c = columns.values()
    table = {f"set.{key}": values for key, values in columns.items()}
    table |= {"job": np.arange(len(a)), "cause": np.full(len(a), "", dtype=object)}
    table["y"] = np.sin(a) + 7 * np.sin(b) ** 2 + 0.1 * c**4 * np.sin(a)
    found = sensitivity(Campaign(".", {"sample": sample, "jobs": len(a)}, table), "y")
    again = sensitivity(Campaign(".", {"sample": sample, "jobs": len(a)}, table), "y")
    np.testing.assert_array_equal(found.total_deviation, again.total_deviation)
    np.testing.assert_allclose(found.first, [0.3139, 0.4424, 0.0], atol=near)
    np.testing.assert_allclose(found.total, [0.5576, 0.4424, 0.2437], atol=near)


def test_the_report_of_many_trajectories_shows_bands(tmp_path):
    machine = pendulum(1)
    x0 = np.linspace(-1.0, 1.0, 21)[:, None]
    run = simulate(machine, x0=x0, duration=0.2, dt=1e-3, progress=False)
    from framefree.look.report import run_page

    page = run_page(run)
    figure = next(f for f in page.figures if f.title.startswith("Configuration"))
    np.testing.assert_allclose(figure.lines[0].y, 0.0, atol=1e-12)  # symmetric about zero
    assert figure.lines[2].y[0] == 1.0
    assert "all 21 trajectories" in page.notes[0]
    assert run.report(tmp_path / "report.html").exists()
