"""The report in a real browser: it renders, plays, asks nothing from elsewhere, has no errors.

Needs Chromium and Playwright; without them these tests are skipped, unless FRAMEFREE_CI is set.
"""

import base64
import json
import re

import numpy as np
import pytest
from browser_pages import FAULTS, LONG, opened

from framefree.gallery.shared.results import run_into
from framefree.look.report.content import Page, Table
from framefree.look.report.page import html
from framefree.look.report.scene import body_poses
from framefree.simulate import Run


@pytest.fixture(scope="module")
def folder(tmp_path_factory, swing):
    folder = tmp_path_factory.mktemp("result")
    run_into(swing(), folder)
    return folder


@pytest.fixture(scope="module")
def page(browser, folder):
    page = opened(browser, folder / "report.html")
    yield page
    page.close()


def set_time(page, share):
    """Move the slider to a share of the time, and wait for the picture."""
    before = page.locator(".scene").get_attribute("data-shown")
    page.locator(".controls input").evaluate(
        "(e, v) => { e.value = v; e.dispatchEvent(new Event('input')); }", share
    )
    page.wait_for_function("b => document.querySelector('.scene').dataset.shown !== b", arg=before)


def picture(page):
    page.mouse.move(5, 5)
    page.wait_for_timeout(300)
    return page.locator(".scene").screenshot()


def test_everything_is_drawn(page):
    assert page.locator(".scene canvas").count() >= 1
    assert page.evaluate("[...document.querySelectorAll('.scene canvas')].some(c => c.width > 100)")
    assert page.locator(".figure").count() == 1
    assert page.locator(".figure .scatterlayer .trace").count() == 2
    assert "angle (rad)" in page.locator(".figure").inner_text()
    assert page.locator(".promises .good").count() == 1
    assert "WebGL is not supported" not in page.inner_text("body")


def test_dashes_are_seen_on_the_line_that_they_lie_on(page):
    """A reference that is met exactly would vanish under its line, or into its colour."""
    dashed, full = page.locator(".figure").evaluate(
        "e => [true, false].map((dashed) => e._fullData.filter("
        "  (t) => (t.line.dash === 'dash') === dashed).map((t) => [t.line.color, t.index]))"
    )
    assert dashed
    assert not {color for color, _ in dashed} & {color for color, _ in full}
    assert min(order for _, order in dashed) > max(order for _, order in full)


def test_curves_are_drawn_with_all_their_points(page):
    """Plotly would leave out points of a smooth curve, until its corners are seen."""
    counts = page.locator(".figure").evaluate(
        "e => [[...e.querySelectorAll('.scatterlayer path.js-line')].map("
        "  (p) => p.getAttribute('d').match(/[ML]/g).length), e._fullData.map((t) => t.x.length)]"
    )
    drawn, given = map(sorted, counts)
    assert drawn == given
    assert drawn[0] > 100


@pytest.mark.parametrize("size", [(1280, 900), (700, 900), (390, 800)])
def test_the_motion_fills_its_picture_and_none_of_it_is_cut_off(browser, folder, size):
    page = opened(browser, folder / "report.html", *size)
    # The corners of the box around everything, in shares of the picture from its middle.
    corners = page.locator(".scene").evaluate(
        """e => {
          const {model, view, projection} = e._fullLayout.scene._scene.glplot.cameraParams;
          const by = (m, p) => [0, 1, 2, 3].map((i) =>
            m[i] * p[0] + m[4 + i] * p[1] + m[8 + i] * p[2] + m[12 + i] * p[3]);
          const {xaxis, yaxis, zaxis} = e._fullLayout.scene;
          return [...Array(8).keys()].map((k) => {
            const p = [xaxis, yaxis, zaxis].map((axis, i) => axis.range[k >> i & 1]);
            const q = by(projection, by(view, by(model, [...p, 1])));
            return [q[0] / q[3], q[1] / q[3]];
          });
        }"""
    )
    furthest = np.abs(corners).max(axis=0)
    assert (furthest < 0.95).all()
    assert (furthest > 0.65).any()
    page.close()


def test_nothing_is_cut_off_and_no_label_covers_another(page):
    assert page.evaluate(FAULTS) == []


def test_the_check_of_a_page_can_fail(page):
    """A long word in a narrow cell, and a figure whose lines are gone."""
    page.evaluate(
        "() => { const td = document.querySelector('.promises td:nth-child(2)');"
        "  window.kept = td.innerHTML; td.style.cssText = 'display:block;width:20px;white-space:"
        "nowrap;overflow:hidden'; const trace = document.querySelector('.scatterlayer');"
        "  window.trace = trace.innerHTML; trace.innerHTML = ''; }"
    )
    kinds = {fault[0] for fault in page.evaluate(FAULTS)}
    page.evaluate(
        "() => { const td = document.querySelector('.promises td:nth-child(2)');"
        "  td.style.cssText = ''; document.querySelector('.scatterlayer').innerHTML ="
        "  window.trace; }"
    )
    assert {"cut", "empty"} <= kinds


def test_keys_move_the_machine(page):
    set_time(page, 0.0)
    before = page.locator(".scene").get_attribute("data-shown")
    page.locator(".scene").focus()
    page.keyboard.press("ArrowRight")
    page.wait_for_function("b => document.querySelector('.scene').dataset.shown !== b", arg=before)
    assert page.locator(".controls output").inner_text().startswith("0.010")
    set_time(page, 0.0)


def test_no_button_uploads_data(page):
    """Plotly offers to share charts by its own server: the report knows neither."""
    buttons = page.evaluate(
        """[...document.querySelectorAll(".modebar-btn")].map(b => b.dataset.title)"""
    )
    assert buttons
    assert not [words for words in buttons if re.search("share|cloud|studio", words, re.I)]
    assert page.locator(".figure").first.evaluate("e => e._context.plotlyServerURL") == ""


def test_the_slider_moves_the_machine(page):
    set_time(page, 0.0)
    start = picture(page)
    set_time(page, 0.5)
    middle = picture(page)
    set_time(page, 0.0)
    assert start != middle
    assert picture(page) == start
    assert page.locator(".controls output").inner_text().startswith("0.000")


def test_it_plays(page):
    set_time(page, 0.0)
    before = int(page.locator(".scene").get_attribute("data-shown"))
    page.click(".controls button")
    page.wait_for_function(
        "b => Number(document.querySelector('.scene').dataset.shown) > b + 3 && "
        "Number(document.querySelector('.controls input').value) > 0.02",
        arg=before,
    )
    page.click(".controls button")
    page.wait_for_timeout(300)
    stopped = page.locator(".controls output").inner_text()
    page.wait_for_timeout(500)
    assert page.locator(".controls output").inner_text() == stopped


def test_bodies_are_where_the_machine_has_them(page, folder):
    run = Run.load(folder / "swing-0.parquet")
    text = (folder / "report.html").read_text(encoding="utf-8")
    blocks = re.findall(r'<script type="application/json" id="data-\d+">(.*?)</script>', text)
    data = json.loads(blocks[0])
    mesh = data["meshes"][0]
    points = np.frombuffer(base64.b64decode(mesh["points"]["bdata"]), "<f4").reshape(-1, 3)
    owner = np.frombuffer(base64.b64decode(mesh["owner"]["bdata"]), "<i2")
    for row in (0, 100, len(run) - 1):
        set_time(page, (run.t[row] - run.t[0]) / (run.t[-1] - run.t[0]))
        shown = page.locator(".scene").evaluate(
            "e => ['x', 'y', 'z'].map(c => Array.from(e.data[0][c]))"
        )
        poses = np.concatenate([body_poses(run.machine, run.x[[row]])[0], [np.eye(4)]])
        G = poses[owner]  # the world, -1, is the last one
        expected = np.einsum("nij,nj->ni", G[:, :3, :3], points) + G[:, :3, 3]
        np.testing.assert_allclose(np.array(shown).T, expected, atol=1e-3)


def test_figures_follow_the_time(page):
    set_time(page, 0.0)
    left = page.locator(".now").evaluate("e => parseFloat(e.style.left)")
    set_time(page, 1.0)
    right = page.locator(".now").evaluate("e => parseFloat(e.style.left)")
    width = page.locator(".figure").evaluate("e => e._fullLayout._size.w")
    assert right - left == pytest.approx(width, rel=0.15)


def test_nothing_comes_from_elsewhere_and_there_is_no_error(page, folder):
    # The last test of this page: whatever the others did counts.
    assert page.errors == []
    outside = [url for url in page.asked if not url.startswith(("file:", "data:", "blob:"))]
    assert outside == []
    assert [url for url in page.asked if url.startswith("file:")] == [
        (folder / "report.html").as_uri()
    ]


def test_it_fits_a_phone(browser, folder):
    page = opened(browser, folder / "report.html", 390, 800)
    sizes = page.evaluate("[document.documentElement.scrollWidth, innerWidth]")
    assert sizes[0] <= sizes[1]
    assert page.locator(".controls button").is_visible()
    assert page.evaluate(FAULTS) == []
    page.set_viewport_size({"width": 1100, "height": 800})
    page.wait_for_timeout(500)
    assert page.evaluate(FAULTS) == []
    assert page.errors == []
    page.close()


def test_on_a_touch_screen_no_toolbar_hides_the_legend(browser, folder):
    context = browser.new_context(
        viewport={"width": 900, "height": 900}, is_mobile=True, has_touch=True
    )
    page = context.new_page()
    page.set_default_timeout(LONG)
    page.goto((folder / "report.html").as_uri())
    page.wait_for_selector("html[data-ready]", state="attached")
    assert page.evaluate("matchMedia('(hover: none)').matches")
    assert page.locator(".figure .modebar").count() == 1
    assert not page.locator(".figure .modebar").is_visible()
    context.close()


def test_on_paper_pictures_fit_the_page_and_controls_are_gone(browser, folder):
    """Pictures are of one width, at most that of the page, whatever the window was."""
    page = opened(browser, folder / "report.html", 1400)
    page.evaluate("dispatchEvent(new Event('beforeprint'))")
    page.emulate_media(media="print")
    page.set_viewport_size({"width": 688, "height": 900})
    widths = page.evaluate(
        "() => [...document.querySelectorAll('.scene .plot-container, .figure .plot-container')]"
        "  .map((e) => e.getBoundingClientRect().width)"
    )
    assert widths == pytest.approx([600.0] * 2, abs=1.0)
    assert not page.locator(".controls").is_visible()
    assert not page.locator(".modebar").first.is_visible()
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    # What a graphics card draws is blank on paper: there is a copy, and it is not blank.
    colors = page.locator(".scene canvas.paper").evaluate(
        "e => { const {width, height} = e;"
        "  const d = e.getContext('2d').getImageData(0, 0, width, height).data;"
        "  const seen = new Set(); for (let i = 0; i < d.length; i += 4)"
        "    seen.add(`${d[i]},${d[i + 1]},${d[i + 2]},${d[i + 3]}`); return seen.size; }"
    )
    assert colors > 50
    page.evaluate("dispatchEvent(new Event('afterprint'))")
    assert page.locator("canvas.paper").count() == 0
    page.close()


def test_tables_are_not_cut_off_on_paper(browser, tmp_path):
    words = "A sentence on what a number is, which is longer than its column is wide on paper."
    row = ("a_rather_long_name_of_a_metric", "7.15765e-08 rad", "1.47031e-08 rad", "-5.687", words)
    columns = ("", "first-of-the-two", "second-of-the-two", "difference", "meaning")
    path = tmp_path / "report.html"
    path.write_text(html(Page("Tables", tables=(Table("What differs", columns, (row,) * 3),))))
    page = opened(browser, path, 1400)
    page.emulate_media(media="print")
    page.set_viewport_size({"width": 688, "height": 900})
    card, table, cells = (
        page.locator(where).evaluate_all("l => l.map((e) => e.getBoundingClientRect().right)")
        for where in (".card.scroll", ".card.scroll table", ".card.scroll td")
    )
    assert max(*table, *cells) <= max(card)
    inner = page.locator(".card.scroll td").evaluate_all(
        "l => l.map((e) => e.scrollWidth - e.clientWidth)"
    )
    assert max(inner) <= 1
    page.close()
