"""The live view: how soon the page follows a pointer, how well time is kept, how much moves.

Chromium, driven by Playwright, looks at a seven-joint arm that runs live. From a pointer event that
drags the handle to the first state in the page that was computed with it: event, raycast, message,
loop, message, scene. What is drawn into the picture is left out (calls of WebGL that draw or clear
are switched off, and the page is put together without it), as a machine without a graphics
processor draws in software, which is not what is measured. Then three pages look on while the loop
keeps time; then a chain of a thousand bodies moves.
"""

import shutil
from time import monotonic, sleep
from typing import Any

import numpy as np

from framefree.benchmarks.timing import circumstances
from framefree.errors import FramefreeError
from framefree.gallery.machines.arms import revolute_chain
from framefree.gallery.machines.dual_arm import seven_joint_arm
from framefree.geometry import batch
from framefree.look.view import View, view
from framefree.machine import Machine
from framefree.simulate import Run
from framefree.simulate.columns import state_channels

FLAGS = (
    "--no-sandbox",
    "--use-angle=swiftshader",
    "--enable-unsafe-swiftshader",
    "--disable-gpu-compositing",
    "--disable-background-networking",
    "--host-resolver-rules=MAP * ~NOTFOUND , EXCLUDE 127.0.0.1",
)
NAMES = ("chromium", "chromium-browser", "google-chrome", "chrome")
SIZE = {"width": 1000, "height": 560}
EVENTS = 60
PAUSE = 120
"""Milliseconds from one pointer event to the next."""
PAGES, WATCHED = 3, 10.0
"""Pages that look on, and for how long, s."""
BODIES, MOVED = 1000, 8.0
LONG = 180_000

NO_DRAWING = """
const names = ["drawArrays", "drawElements", "drawArraysInstanced", "drawElementsInstanced",
  "drawRangeElements", "clear", "clearBufferfv", "clearBufferfi", "blitFramebuffer"];
for (const kind of [WebGLRenderingContext, WebGL2RenderingContext])
  for (const name of names)
    if (name in kind.prototype) kind.prototype[name] = function () {};
"""
WATCH = """
window.pointed = 0; window.delays = []; window.times = [];
// An event that was not answered yet keeps its time: a late answer is not credited to a later one.
addEventListener("pointermove", () => { window.pointed ||= performance.now(); }, true);
let last = null;
new MutationObserver(() => {
  const status = document.querySelector(".framefree-status");
  if (!status) return;
  const count = Number(status.dataset.count), now = performance.now();
  if (last !== null && count > last && window.pointed) {
    window.delays.push(now - window.pointed); window.pointed = 0;
  }
  last = count;
  if (status.dataset.time !== window.seen) {
    window.seen = status.dataset.time; window.times.push(now);
  }
}).observe(document, {subtree: true, childList: true, attributes: true, characterData: true});
"""


def run() -> dict[str, object]:
    """Return the figures."""
    program = next(filter(None, map(shutil.which, NAMES)), None)
    try:
        from playwright.sync_api import sync_playwright
    except ImportError:
        sync_playwright = None
    if program is None or sync_playwright is None:
        raise FramefreeError(
            "the view is measured in a browser: install Chromium, and playwright "
            "(pip install playwright)"
        )
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program, args=list(FLAGS))
        try:
            return {**_arm(browser), **_many(browser), **circumstances("viser", "playwright")}
        finally:
            browser.close()


def _arm(browser: Any) -> dict[str, object]:
    with view(seven_joint_arm(), live=True, port=18900) as shown:
        page = _opened(browser, shown)
        delays = _dragged(page, shown)
        pages = [page, *(_opened(browser, shown) for _ in range(PAGES - 1))]
        session = shown.mode.session  # type: ignore[attr-defined]
        slipped = session.pace.slipped
        session.pace.restart(session.time)
        sleep(WATCHED)
        kept = session.pace.report(session.time)
        for one in pages:
            one.context.close()
    return {
        "pointer_events": EVENTS,
        "pointer_events_answered": len(delays),
        "pointer_to_pose_p50_ms": _quantile(delays, 0.5),
        "pointer_to_pose_p95_ms": _quantile(delays, 0.95),
        "pages": PAGES,
        "real_time_factor": kept["real_time_factor"],
        "real_time_error_percent": 100 * abs(kept["real_time_factor"] - 1),
        "slipped_s": kept["slipped_s"] - slipped,
        **{name: value for name, value in kept.items() if name.startswith("jitter")},
    }


def _dragged(page: Any, shown: View) -> np.ndarray:
    """Drag the handle to and fro by single pointer events; return the delays, ms."""
    gizmo = shown.mode.gizmo  # type: ignore[attr-defined]
    place, R = np.asarray(gizmo.position), batch.rotation(np.asarray(gizmo.wxyz))
    size = 0.35 * shown.drawing.reach
    ends = [(place + 0.7 * size * axis, place + (0.7 * size + 0.1) * axis) for axis in R.T]
    pixels = [[_pixel(shown, point) for point in pair] for pair in ends]
    a, b = max(pixels, key=lambda pair: float(np.linalg.norm(pair[1] - pair[0])))
    page.mouse.move(*a)
    page.wait_for_timeout(500)
    page.mouse.down()
    page.mouse.move(*(a + 0.05 * (b - a)))
    page.wait_for_timeout(500)
    page.evaluate("window.delays = []; window.pointed = 0")
    for k in range(EVENTS):
        share = 0.5 - 0.45 * np.cos(2 * np.pi * k / 20)
        page.mouse.move(*(a + share * (b - a)))
        page.wait_for_timeout(PAUSE)
    page.wait_for_timeout(1000)
    page.mouse.up()
    return np.array(page.evaluate("window.delays"), float)


def _many(browser: Any) -> dict[str, object]:
    """Play a run of a thousand bodies; return how often their poses came into the page."""
    with view(_waving(revolute_chain(BODIES, length=0.05)), port=18900) as shown:
        page = _opened(browser, shown)
        shown.mode.play(True)  # type: ignore[attr-defined]
        sleep(1.0)
        page.evaluate("window.times = []")
        begin = monotonic()
        sleep(MOVED)
        times = np.array(page.evaluate("window.times"), float)
        wall = monotonic() - begin
        page.context.close()
    return {
        "bodies": BODIES,
        "bodies_pictures_per_s": len(times) / wall,
        "bodies_interval_p95_ms": _quantile(np.diff(times), 0.95),
    }


def _waving(machine: Machine) -> Run:
    """Return a run made up for the purpose: all joints swing."""
    t = np.linspace(0, 20, 401)
    k = np.arange(machine.nx)
    x = 0.05 * np.sin(2 * np.pi * (0.3 * t[:, None] - k / 200))
    channels = state_channels(machine)
    v, u = np.gradient(x, t, axis=0), np.zeros((len(t), machine.nu))
    return Run(machine, t, x, v, u, {}, {}, {"status": "finished"}, tuple(channels))


def _opened(browser: Any, shown: View) -> Any:
    context = browser.new_context(viewport=SIZE)
    page = context.new_page()
    page.set_default_timeout(LONG)
    page.add_init_script(NO_DRAWING)
    page.add_init_script(WATCH)
    known = len(shown.server.get_clients())
    page.goto(shown.url)
    page.wait_for_selector(".framefree-status", state="attached")
    while len(shown.server.get_clients()) <= known:
        page.wait_for_timeout(100)
    page.wait_for_timeout(1000)
    return page


def _pixel(shown: View, point: np.ndarray) -> np.ndarray:
    """Return where a point of the world is on the page of the first viewer."""
    camera = next(iter(shown.server.get_clients().values())).camera
    local = batch.rotation(np.asarray(camera.wxyz)).T @ (point - camera.position)
    f = SIZE["height"] / 2 / np.tan(camera.fov / 2)
    return np.array([SIZE["width"], SIZE["height"]]) / 2 + f * local[:2] / local[2]


def _quantile(values: np.ndarray, share: float) -> float:
    return float(np.quantile(values, share)) if len(values) else float("nan")
