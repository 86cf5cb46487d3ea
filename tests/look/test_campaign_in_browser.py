"""The report of a campaign in a real browser: nothing is cut off, no label covers another."""

from dataclasses import dataclass

import numpy as np
import pytest
from browser_pages import FAULTS, opened

from framefree.campaign import CampaignSubject, Finished, Uniform, campaign
from framefree.look.report.campaign_page import campaign_page
from framefree.look.report.page import html


@dataclass(frozen=True)
class Waves(CampaignSubject):
    """A small sine, whose ticks are long numbers; long commands repeat its runs."""

    name: str = "waves"
    keys: tuple[str, ...] = ("height", "width")

    def run(self, settings):
        t = np.linspace(0.0, 1.0, 50)
        wave = -1.2345 + 1e-3 * settings["height"] * np.sin(6 * t) * settings["width"]
        metrics = {"height_m": settings["height"], "ok": float(settings["height"] < 0.9)}
        return Finished(metrics, "", {"t": t, "x.wave_of_the_sea [rad/s]": wave, "signals.W": wave})

    def describe(self):
        return {"name": self.name}

    def command(self, settings):
        return "framefree campaign waves " + " ".join(
            f"--at {key}={value!r}" for key, value in settings.items()
        )


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    folder = tmp_path_factory.mktemp("campaign")
    vary = {"height": Uniform(0.0, 1.0), "width": Uniform(0.0, 1.0)}
    result = campaign(Waves(), vary, runs=32, out=folder / "out")
    path = folder / "report.html"
    path.write_text(html(campaign_page(result, Waves(), metric="height_m")))
    return path


@pytest.mark.parametrize("width", [1400, 400])
def test_everything_can_be_read(browser, path, width):
    page = opened(browser, path, width)
    assert page.evaluate(FAULTS) == []
    assert page.errors == []
    page.close()


def test_the_inner_band_is_the_darker_one(browser, path):
    page = opened(browser, path)
    fills = page.evaluate(
        "() => { const f = [...document.querySelectorAll('.figure')].find("
        "  (e) => e._fullData && e._fullData.some((t) => t.fill === 'toself'));"
        "  return f._fullData.filter((t) => t.fill === 'toself').map((t) => t.fillcolor); }"
    )
    assert len(fills) == 2
    assert int(fills[0][-2:], 16) > 1.5 * int(fills[1][-2:], 16)  # the last two digits are opacity
    page.close()
