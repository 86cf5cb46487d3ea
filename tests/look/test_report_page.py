"""The page: complete, escaped, one file."""

import base64
import gzip
import json
import re
from dataclasses import replace

import numpy as np
import pytest
from simulate_machines import PD, free_body, pendulum

from framefree.gallery.shared.results import page_of
from framefree.look.report import Animation, Figure, Line, Page, Promise, ReportError, Setting
from framefree.look.report.content import Table
from framefree.look.report.page import html
from framefree.look.report.plot import plot
from framefree.machine import Frame
from framefree.simulate import Pulse, Run, simulate


def without_plotly(text):
    """The page without the library, which is one script of some megabytes."""
    (packed,) = re.findall(r'<script type="text/plain" id="plotly">(.*?)</script>', text)
    assert "plotly.js v" in gzip.decompress(base64.b64decode(packed)).decode()[:2000]
    return text.replace(packed, "")


def stored(text):
    found = re.findall(r'<script type="application/json" id="data-\d+">(.*?)</script>', text)
    return [json.loads(data) for data in found]


def visible(text):
    """The text that a reader sees."""
    text = re.sub(r"<(script|style)\b.*?</\1>", "", text, flags=re.DOTALL)
    return " ".join(re.sub(r"<[^>]+>", " ", text).split())


def test_a_scenario_tells_all_there_is(swing):
    scenario = swing(count=2)
    text = without_plotly(html(page_of(scenario, scenario.run(), 1.5)))
    words = visible(text)
    for expected in (
        "Two rods &lt;swing&gt; &amp; settle under a PD law.",
        "What opens the report: a paragraph with two lines.",
        "V = 1/2 x^T K x",
        "the promise holds",
        "the last error is &lt;small&gt;",
        "last error",
        "never inf s",
        "time on the clock 1.5 s",
        "duration 0.5 How long to swing, s.",
        "Run swing-1",
        "PD (stiffness 20, damping 3)",
        "native, tree formulation",
        "rk4, steps of 0.002 s for 0.5 s",
        "casadi",
        "two &lt;rods&gt;: 2 bodies, 2 coordinates, 2 velocities, 2 inputs",
        "A note with code .",
    ):
        assert expected in words, expected
    assert "Parameters" not in words
    assert len(stored(text)) == 2


def test_nothing_is_asked_from_elsewhere(swing):
    scenario = swing()
    text = without_plotly(html(page_of(scenario, scenario.run(), 1.5)))
    assert not re.findall(r"""(?:src|href|url)\s*[=(]\s*["']?(?!data:)[\w/.]""", text)
    assert "http" not in re.sub(r"http-equiv", "", text)


def test_names_cannot_become_markup(swing):
    evil = '</script><script>alert("&x")</script><b>'
    machine = pendulum(1).attach(Frame(evil, "rod0"))
    run = simulate(machine, duration=0.01, dt=1e-2)
    motion = Animation(evil, run, trails=(evil,), paths={evil: np.zeros((2, 3))}, caption=evil)
    line = Line(evil, np.arange(3.0), np.arange(3.0))
    page = Page(
        evil,
        f"{evil}\n\n{evil} `{evil}`\n\n    {evil}\n\n- {evil}",
        promises=(Promise(evil, 1, 2),),
        metrics={evil: evil},
        settings=(Setting(evil, evil, evil),),
        tables=(Table(evil, (evil, evil), ((evil, evil),)),),
        figures=(Figure(evil, evil, evil, (line,), evil),),
        animations=(motion,),
        runs={evil: run},
        notes=(evil,),
        trouble=evil,
    )
    text = without_plotly(html(page))
    assert "alert(" in text
    assert not re.findall(r"<script>alert|<b>", text)
    motion_data, figure_data = stored(text)
    assert motion_data["trails"][0]["name"] == evil
    assert "<" not in json.dumps(figure_data)


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ((), ""),
        ((1.0,), "the promise holds"),
        ((1.0, 2.0), "all 2 promises hold"),
        ((1.0, 3.0), "1 of 2 promises does not hold"),
        ((np.nan, 3.0), "2 of 2 promises do not hold"),
    ],
)
def test_verdicts(values, words):
    page = Page("p", promises=tuple(Promise("value small", value, 2.0) for value in values))
    text = visible(without_plotly(html(page)))
    assert words in text
    assert ("hold" in text) == bool(words)


def test_any_run_can_be_reported_also_from_disk(tmp_path, swing_run):
    first = swing_run.report(tmp_path / "a.html")
    swing_run.save(tmp_path)
    second = Run.load(tmp_path).report(tmp_path / "again")
    assert second == tmp_path / "again" / "report.html"
    pages = [without_plotly(path.read_text(encoding="utf-8")) for path in (first, second)]
    assert stored(pages[0]) == stored(pages[1])
    assert len(stored(pages[0])) > 6
    for title in ("Energy", "Configuration", "Velocity", "Input", "Lyapunov function", "Motion"):
        assert f"<h3>{title}</h3>" in pages[0]
    assert "<title>two &lt;rods&gt;</title>" in pages[0]


def test_a_run_without_its_machine_is_reported_without_animation(tmp_path, swing_run):
    path = replace(swing_run, machine=None).report(tmp_path)
    text = without_plotly(path.read_text(encoding="utf-8"))
    assert "no animation, because the machine" in visible(text)
    assert "<h3>Energy</h3>" in text


def test_many_trajectories_are_shown_one_at_a_time(tmp_path):
    machine = free_body()
    run = simulate(machine, v0=np.ones((3, 6)), duration=0.02, dt=1e-2)
    text = without_plotly(run.report(tmp_path, trajectory=2).read_text(encoding="utf-8"))
    assert "The motion is that of trajectory 2, counted from 0." in visible(text)
    with pytest.raises(ReportError, match="there is no trajectory 3; the run has 3"):
        run.report(tmp_path, trajectory=3)


def test_what_framefree_computes_for_mujoco_is_listed(tmp_path):
    pytest.importorskip("mujoco")
    machine = pendulum(2)
    pulse = Pulse("j0", 1.0, 0.0, 0.01)
    run = simulate(
        machine, PD(machine), duration=0.02, dt=1e-2, plant="mujoco", disturbances=[pulse]
    )
    text = visible(without_plotly(run.report(tmp_path).read_text(encoding="utf-8")))
    assert "forces computed by framefree and applied to MuJoCo disturbance of j0" in text
    assert re.search(r"plant MuJoCo \d", text)


def test_events_and_failures_are_told(tmp_path, swing_run):
    meta = swing_run.meta | {
        "status": "failed",
        "failure": "`v` is no longer finite",
        "events": [{"at": 0.25, "type": "Release", "time": 0.25, "loop": "grasp"}],
    }
    path = replace(swing_run, meta=meta).report(tmp_path)
    text = visible(without_plotly(path.read_text(encoding="utf-8")))
    assert "at 0.25 s: Release (loop grasp)" in text
    assert "failed at 0.5 s, 251 rows: v is no longer finite" in text


def test_promises_read_as_sentences():
    few = Promise("the end follows", 4e-4, 1e-3, "m")
    many = Promise.at_least("the law loses power", 255.0, 1.0, "W")
    fact = Promise.that("it stands", True)
    assert (few.measured, few.limit) == ("0.0004 m", "at most 0.001 m")
    assert (many.measured, many.limit) == ("255 W", "at least 1 W")
    assert (fact.measured, fact.limit) == ("yes", "")
    assert few.holds
    assert many.holds
    assert fact.holds


@pytest.mark.parametrize(
    "promise",
    [
        Promise("too large", 2.0, 1.0),
        Promise.at_least("too small", 0.5, 1.0),
        Promise.that("not so", False),
        Promise("no number", float("nan"), 1.0),
        Promise.at_least("no number", float("nan"), 1.0),
    ],
)
def test_promises_can_fail(promise):
    assert not promise.holds


def test_a_simple_page_is_below_three_megabytes(swing):
    scenario = swing()
    assert len(html(page_of(scenario, scenario.run(), 1.5)).encode()) < 3e6


def test_lines_in_space_keep_their_gaps_and_ends():
    path = np.stack([np.linspace(0, 1, 9001), np.zeros(9001), np.ones(9001)], 1)
    drawn = np.array([[0.0, 0, 0], [1, 0, 0], [np.nan] * 3, [0, 1, 0], [1, 1, 0]])
    lines = (
        Line.in_space("body1", path),
        Line.in_space("body1 desired", path, dashed=True),
        Line.in_space("machine", drawn, faint=True),
    )
    data = plot(Figure("Trace", "x (m)", "y (m)", lines, z_label="z (m)"))
    assert data["layout"]["zaxis"]["title"]["text"] == "z (m)"
    packed = [trace["x"] for trace in data["traces"]]
    x = [np.frombuffer(base64.b64decode(one["bdata"]), one["dtype"]) for one in packed]
    assert len(x[0]) <= 5001
    assert (x[0][0], x[0][-1]) == (0.0, 1.0)
    assert np.array_equal(x[2], drawn[:, 0], equal_nan=True)
    assert data["traces"][1]["color"] == data["traces"][0]["color"]
    with pytest.raises(ReportError, match="needs z"):
        Figure("Trace", "x (m)", "y (m)", (Line("flat", [0, 1], [0, 1]),), z_label="z (m)")
    with pytest.raises(ReportError, match="needs a `z_label`"):
        Figure("Trace", "x (m)", "y (m)", lines)
    with pytest.raises(ReportError, match="z of the length of x"):
        Line("bent", [0, 1], [0, 1], z=[0, 1, 2])


@pytest.mark.slow
def test_a_page_of_a_million_rows_is_small(tmp_path, swing_run):
    """Below 8 MB, with noise in every curve, which no thinning makes smaller."""
    rows, rng = 1_000_000, np.random.default_rng(0)

    def long(array):
        return rng.normal(size=(rows, *array.shape[1:]))

    run = replace(
        swing_run,
        t=np.arange(rows) * 1e-3,
        x=long(swing_run.x),
        v=long(swing_run.v),
        u=long(swing_run.u),
        reference={name: long(value) for name, value in swing_run.reference.items()},
        signals={name: long(value) for name, value in swing_run.signals.items()},
    )
    assert run.report(tmp_path / "long.html").stat().st_size < 8e6


def test_a_bound_has_the_colour_of_its_line_whatever_the_unit():
    t = np.linspace(0, 1, 5)
    lines = [Line("phi (rad)", t, t), Line("delta (m)", t, t), Line("phi bound", t, t, dashed=True)]
    data = plot(Figure("Errors", "time (s)", "error (rad, m)", tuple(lines)))
    first, second, bound = (trace["color"] for trace in data["traces"])
    assert bound == first != second


@pytest.mark.parametrize(("count", "beside"), [(12, True), (13, False)])
def test_many_promises_stand_below_the_motion_in_columns(swing_run, count, beside):
    promises = tuple(Promise(f"part {k} is small", k, 100) for k in range(count))
    page = Page("p", promises=promises, animations=(Animation("motion", swing_run),))
    text = without_plotly(html(page))
    assert ('class="top split"' in text) == beside
    assert ('class="card promises many"' in text) == (not beside)


def test_promises_are_written_on_their_natural_side():
    share = Promise.share("within limits", 0.9987)
    tight = Promise.share("below its level", 1 + 1e-10, 1 + 1e-9)
    of = Promise.of({"rise_w": 255.0}, "rise_w", "it rises", 1.0, least=True)
    assert (share.measured, share.limit) == ("99.87 %", "at most 100 %")
    assert tight.measured != tight.limit.removeprefix("at most ")
    assert (of.measured, of.limit) == ("255 W", "at least 1 W")
    none, some = Promise("failures", 0, 0), Promise("failures", 3, 0)
    assert (none.measured, none.limit, some.measured, some.limit) == (
        "none",
        "none may be",
        "3",
        "none may be",
    )
    assert Promise("never positive", -2.0, 0.0, "W").limit == "at most 0 W"


def test_metrics_have_a_sentence_and_terms_an_explanation():
    page = Page("p", text="The strict law.", metrics={"a_m": 1.0}, meanings={"a_m": "How far."})
    text = visible(html(page))
    assert "How far." in text
    assert "strict a task of lower rank" in text
    assert "kappa" not in text


def test_machines_of_one_name_are_told_apart(swing_run):
    other = replace(swing_run, machine=replace(swing_run.machine, gravity=(0.0, 0.0, -1.0)))
    text = visible(html(Page("p", runs={"one": swing_run, "two": other})))
    assert "(run one ): bodies, joints, masses" in text
    assert "(run two ): bodies, joints, masses" in text
    text = visible(html(Page("p", runs={"one": swing_run})))
    assert "two &lt;rods&gt;: bodies, joints, masses" in text
