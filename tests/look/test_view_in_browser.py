"""The live view in a real browser: handles are dragged, bodies pulled, joints moved, runs played.

Needs Chromium and Playwright; without them these tests are skipped, unless FRAMEFREE_CI is set.
"""

import time
from urllib.parse import urlsplit

import numpy as np
import pytest

from framefree.gallery import MACHINES
from framefree.geometry import batch
from framefree.look.view import view
from framefree.machine import Shape
from framefree.motion.constrained import Constrained
from framefree.simulate import Run

pytest.importorskip("viser")

LONG = 120_000
"""Milliseconds: a machine without graphics draws slowly."""
PORTS = iter(range(18700, 18800))
STATUS = ".framefree-status"
OF_VISER = "Unable to preventDefault inside passive event listener invocation."
"""What Chromium says of viser 1.1 itself where the press on a body that can be grabbed begins."""


class Looking:
    """A view and a page that looks at it."""

    def __init__(self, browser, shown, width=1000, height=560):
        self.shown = shown
        self.context = browser.new_context(viewport={"width": width, "height": height})
        self.page = self.context.new_page()
        self.page.set_default_timeout(LONG)
        self.asked, self.errors = [], []
        self.page.on("request", lambda request: self.asked.append(request.url))
        self.page.on("websocket", lambda socket: self.asked.append(socket.url))
        self.page.on("pageerror", lambda error: self.errors.append(str(error)))
        self.page.on("console", lambda m: self.errors.append(m.text) if m.type == "error" else None)
        self.page.goto(shown.url)
        self.page.wait_for_selector(STATUS, state="attached")
        end = time.monotonic() + 60
        while not shown.server.get_clients() and time.monotonic() < end:
            self.page.wait_for_timeout(100)
        self.page.wait_for_timeout(500)

    @property
    def camera(self):
        return next(iter(self.shown.server.get_clients().values())).camera

    def data(self, name):
        return float(self.page.locator(STATUS).get_attribute(f"data-{name}"))

    def pixel(self, point):
        """Return where a point of the world is on the page."""
        camera, size = self.camera, self.page.viewport_size
        local = batch.rotation(camera.wxyz).T @ (np.asarray(point) - camera.position)
        f = size["height"] / 2 / np.tan(camera.fov / 2)
        return size["width"] / 2 + f * local[0] / local[2], size["height"] / 2 + f * local[
            1
        ] / local[2]

    def drag(self, start, end, steps=12):
        mouse = self.page.mouse
        a, b = np.array(self.pixel(start)), np.array(self.pixel(end))
        mouse.move(*a)
        self.page.wait_for_timeout(300)
        mouse.down()
        for share in np.linspace(0, 1, steps + 1)[1:]:
            mouse.move(*(a + share * (b - a)))
            self.page.wait_for_timeout(60)
        return lambda: mouse.up()

    def until(self, true, seconds=60.0):
        """Wait until something is true, which is looked at from here."""
        end = time.monotonic() + seconds
        while not true() and time.monotonic() < end:
            self.page.wait_for_timeout(50)
        assert true()

    def wait_simulated(self, seconds):
        begin = self.data("time")
        self.page.wait_for_function(
            "([s, t]) => Number(document.querySelector(s).dataset.time) >= t",
            arg=[STATUS, begin + seconds],
        )

    def close(self):
        outside = [u for u in self.asked if not u.startswith(("data:", "blob:"))]
        hosts = {urlsplit(url).hostname for url in outside}
        self.context.close()
        assert hosts <= {"127.0.0.1"}
        assert [words for words in self.errors if words != OF_VISER] == []


@pytest.fixture
def looking(browser):
    """A function from a machine or a run to a page that shows it; all is closed at the end."""
    opened = []

    def look(subject, *, width=1000, height=560, **options):
        shown = view(subject, port=next(PORTS), **options)
        opened.append(shown)
        opened.append(Looking(browser, shown, width, height))
        return opened[-1]

    yield look
    for one in reversed(opened):
        one.close() if isinstance(one, Looking) else one.stop()


def handle_axis(shown):
    """Return the place of the handle, and the axis of it that is best seen across the page."""
    gizmo = shown.mode.gizmo
    R = batch.rotation(np.asarray(gizmo.wxyz))
    return np.asarray(gizmo.position), R, 0.35 * shown.drawing.reach


@pytest.mark.slow
def test_the_gripper_follows_a_handle_that_is_dragged(looking):
    at = looking(MACHINES["seven-joint-arm"](), live=True)
    place, R, size = handle_axis(at.shown)
    across = [np.linalg.norm(np.subtract(at.pixel(place + a), at.pixel(place))) for a in R.T]
    axis = R[:, int(np.argmax(across))]
    up = at.drag(place + 0.7 * size * axis, place + (0.7 * size + 0.2) * axis)
    up()
    at.page.wait_for_timeout(300)
    moved = np.asarray(at.shown.mode.gizmo.position) - place
    assert np.linalg.norm(moved) == pytest.approx(0.2, abs=0.03)
    at.wait_simulated(2.0)
    assert at.data("distance") < 5.0
    x = at.shown.mode.moment().x
    reached = at.shown.machine.forward_kinematics(x, at.shown.mode.following.frame)[:3, 3]
    assert np.linalg.norm(reached - place - moved) < 5e-3


@pytest.mark.slow
def test_a_quadcopter_that_is_pulled_comes_back(looking):
    at = looking(MACHINES["quadcopter"](), live=True)
    home = np.asarray(at.shown.mode.gizmo.position)
    # Beside the handle: on an arm of the craft.
    arm, away = home - [0.0, 0.22, 0.0], np.array([0.0, -0.5, 0.2])
    up = at.drag(arm, arm + away)
    at.wait_simulated(0.5)
    apart = at.data("distance")
    assert apart > 30.0
    up()
    at.wait_simulated(6.0)
    assert at.data("distance") < 10.0
    run = at.shown.mode.run()
    assert run["grab.body"].max() == 0.0
    assert run["grab.body"][-1] == -1.0


def test_sliders_move_a_four_bar_that_stays_closed(looking):
    machine = MACHINES["four-bars"]()
    at = looking(machine)
    boxes = at.page.locator("input[type=text], input[inputmode=decimal]")
    before = at.shown.mode.x.copy()
    box, moved = boxes.first, []
    for value in ("0.7", "-0.4", "1.1"):
        box.fill(value)
        box.press("Enter")
        index = next(iter(at.shown.mode.sliders))
        at.until(lambda: abs(at.shown.mode.x[index] - float(value)) < 1e-9)  # noqa: B023
        at.page.wait_for_timeout(300)
        x = at.shown.mode.x
        moved.append(np.abs(x - before).max())
        assert at.data("gap") < 1e-9
        errors = Constrained(machine.numeric).project(x, limits=False, tries=0)
        assert np.abs(machine.difference(x, errors.x)).max() < 1e-9
    assert max(moved) > 0.2


@pytest.mark.slow
def test_a_run_plays_in_step_with_its_figures(looking, swing_run):
    at = looking(swing_run, signals=("configuration x",))
    assert at.page.locator("canvas").count() >= 2
    at.page.get_by_role("button", name="Play").click()
    at.page.wait_for_function(
        "([s, t]) => Number(document.querySelector(s).dataset.time) >= t",
        arg=[STATUS, float(swing_run.t[-1]) - 1e-3],
    )
    at.page.wait_for_timeout(500)
    np.testing.assert_allclose(at.shown._latest.x, swing_run.x[-1], atol=1e-9)
    figure = at.shown.mode.figures[0]
    past = np.array(figure._plot.data[-1])
    assert np.isfinite(past).all()


@pytest.mark.slow
def test_a_session_is_saved_as_a_run_from_the_page(looking, tmp_path):
    at = looking(MACHINES["double-pendulum"](), live=True)
    at.page.wait_for_timeout(500)
    at.page.get_by_role("button", name="Pause").click()
    at.page.wait_for_timeout(300)
    held = at.data("time")
    at.page.get_by_role("button", name="Single step").click()
    at.page.wait_for_timeout(500)
    session = at.shown.mode.session
    step = session.options.dt * session.segment.clock.stride  # a control period, where there is one
    assert at.data("time") == pytest.approx(held + step, abs=1e-6)
    place = tmp_path / "session"
    at.shown.mode.folder = tmp_path
    for name in ("../elsewhere", "/etc/x", ""):
        assert at.shown.mode.save_named(name).startswith("not saved")
    assert "rows are saved" in at.shown.mode.save_named("session")
    run = Run.load(place)
    assert run.status == "finished"
    assert len(run) > 10
    again = looking(run)
    assert again.data("time") == pytest.approx(run.t[0])


@pytest.mark.slow
def test_a_missing_mesh_is_told_on_the_page(looking):
    machine = MACHINES["double-pendulum"]()
    shape = Shape(machine.bodies[0].name, "mesh", (1, 1, 1), file="package://nowhere/arm.dae")
    at = looking(machine.attach(shape))
    text = at.page.inner_text("body")
    assert "package://nowhere/arm.dae" in text
    assert "--packages" in text
