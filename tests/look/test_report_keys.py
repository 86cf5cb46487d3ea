"""A report by keyboard: the Tab key meets all there is in reading order, and shows where it is."""

import pytest
from browser_pages import opened

from framefree.gallery.shared.results import run_into

STOPS = """() => [...document.querySelectorAll(
  "a[href], summary, button, input, select, [tabindex='0']")].filter((e) => e.tabIndex >= 0 &&
  e.getBoundingClientRect().width > 0)"""
HERE = """(stops) => { const e = document.activeElement, s = getComputedStyle(e);
  const box = e.getBoundingClientRect();
  return {at: eval(stops)().indexOf(e), tag: e.tagName,
    toolbar: e.classList.contains("modebar-btn"),
    outline: s.outlineStyle === "none" ? 0 : parseFloat(s.outlineWidth),
    within: box.top >= 0 && box.bottom <= innerHeight}; }"""


@pytest.fixture(scope="module")
def page(browser, swing, tmp_path_factory):
    folder = tmp_path_factory.mktemp("result")
    run_into(swing(), folder)
    page = opened(browser, folder / "report.html")
    yield page
    page.close()


def walk(page):
    """Press Tab from the top to the end; return where each press led."""
    page.evaluate("() => { document.activeElement.blur(); scrollTo(0, 0); }")
    met = []
    while True:
        page.keyboard.press("Tab")
        here = page.evaluate(HERE, STOPS)
        if here["tag"] == "BODY" or len(met) > 100:
            return met
        met.append(here)


@pytest.mark.slow
def test_tab_meets_all_in_order_and_shows_where_it_is(page):
    page.mouse.move(2, 2)  # a toolbar shows under the pointer anyway
    met = walk(page)
    count = page.evaluate(f"({STOPS})().length")
    assert [stop["at"] for stop in met] == list(range(count))
    assert all(stop["outline"] >= 2 for stop in met)
    assert all(stop["within"] for stop in met if stop["tag"] != "DIV")
    assert {"SUMMARY", "INPUT", "SELECT", "BUTTON"} <= {stop["tag"] for stop in met}
    # One stop for the toolbar of each figure and of the motion.
    pictures = page.locator(".figure, .scene").count()
    assert sum(stop["toolbar"] for stop in met) == pictures


def test_a_toolbar_is_seen_where_it_has_the_focus_and_arrows_move_in_it(page):
    page.mouse.move(2, 2)
    buttons = page.locator(".figure .modebar-btn")
    buttons.first.focus()
    page.wait_for_function(
        "() => getComputedStyle(document.activeElement.closest('.modebar-group')).opacity === '1'"
    )
    page.keyboard.press("ArrowRight")
    assert buttons.nth(1).evaluate("e => e === document.activeElement && e.tabIndex === 0")
    assert buttons.first.evaluate("e => e.tabIndex") == -1


def test_keys_of_the_toolbar_do_not_move_the_machine(page):
    page.locator(".scene .modebar-btn").nth(1).focus()
    before = page.locator(".controls output").inner_text()
    page.keyboard.press("ArrowRight")
    page.keyboard.press("Space")
    assert page.locator(".controls output").inner_text() == before
    assert page.locator(".controls button").get_attribute("aria-label") == "Play"


def test_enter_opens_and_closes_what_is_folded(page):
    fold = page.locator("details").first
    opened_before = fold.evaluate("e => e.open")
    fold.locator("summary").focus()
    page.keyboard.press("Enter")
    assert fold.evaluate("e => e.open") != opened_before
    page.keyboard.press("Enter")
    assert fold.evaluate("e => e.open") == opened_before
