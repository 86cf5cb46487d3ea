"""A small scenario, for tests of reports and of the command line, and a real browser."""

import os
import shutil
import signal
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pytest
from simulate_machines import PD, pendulum

from framefree.gallery.shared.scenario import Outcome, Promise, Scenario
from framefree.look.report import Animation, Figure
from framefree.simulate import simulate

FLAGS = (
    "--no-sandbox",
    "--use-angle=swiftshader",
    "--enable-unsafe-swiftshader",
    "--disable-gpu-compositing",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-default-apps",
    "--no-first-run",
    "--no-default-browser-check",
    "--host-resolver-rules=MAP * ~NOTFOUND , EXCLUDE 127.0.0.1",
)
NAMES = ("chromium", "chromium-browser", "google-chrome", "chrome")


def missing(what):
    if os.environ.get("FRAMEFREE_CI"):
        pytest.fail(f"{what} is needed here")
    pytest.skip(f"{what} is not installed")


@pytest.fixture(scope="session")
def browser():
    program = next(filter(None, map(shutil.which, NAMES)), None)
    if program is None:
        missing("Chromium")
    try:
        from playwright.sync_api import sync_playwright
    except ImportError:
        missing("Playwright")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program, args=list(FLAGS))
        yield browser
        browser.close()


@dataclass(frozen=True)
class Swing(Scenario):
    """Two rods <swing> & settle under a `PD` law.

    What opens the report: a paragraph with
    two lines.

        V = 1/2 x^T K x

    Parameters
    ----------
    duration : float
        How long to swing, s.
    bound : float
        What the last error may be, rad.
    stop_at : float
        When to press Ctrl-C, s; never if negative.
    """

    name: ClassVar[str] = "swing"

    duration: float = 0.5
    bound: float = 100.0
    count: int = 1
    spin: bool = False
    stop_at: float = -1.0
    explode: bool = False
    plant: str = "native"

    def run(self, progress=None):
        machine = pendulum(2, name="two <rods>")
        law = PD(machine, stiffness=-1e6 if self.explode else 20.0)
        runs = {}
        for k in range(self.count):
            options = {"progress": self._stop if self.stop_at >= 0 else progress}
            runs[f"swing-{k}"] = simulate(
                machine,
                law,
                x0=[1.0, 0.5 + k],
                duration=self.duration,
                dt=2e-3,
                plant=self.plant,
                limits=False,
                **options,
            )
        run = runs["swing-0"]
        error = float(np.abs(run.x[-1]).max())
        return Outcome(
            runs,
            {"last_error_rad": error, "never_s": float("inf"), "steps": np.int64(len(run))},
            (Promise("the last error is <small>", error, self.bound),),
            (Figure.over_time("Joints", "angle (rad)", run.t, {"x": run.x[:, 0], "x d*": run.t}),),
            (Animation("Rods", run, trails=("tip",), spheres=(((0.5, 0, 0), 0.1),)),),
            ("A note with `code`.",),
        )

    def _stop(self, time):
        if time >= self.stop_at:
            os.kill(os.getpid(), signal.SIGINT)


@pytest.fixture(scope="session")
def swing():
    return Swing


@pytest.fixture(scope="session")
def swing_run():
    return Swing().run().runs["swing-0"]
