"""What default figures show of signals: what changes, together with what it belongs to."""

from dataclasses import replace

import casadi as ca
import numpy as np
import pytest
from simulate_machines import pendulum

from framefree.look.report import Figure, default_figures, run_page
from framefree.look.report.plot import plot
from framefree.look.report.prose import brief
from framefree.look.view.handle import handle_numbers
from framefree.simulate import simulate
from framefree.simulate.columns import Channel
from framefree.simulate.describe import described


@pytest.fixture(scope="module")
def run():
    """A run with numbers as of a live session: a push in x, a handle at rest, its time."""
    run = simulate(pendulum(2), x0=[1.0, 0.5], duration=0.5, dt=1e-2)
    t = run.t
    signals = {
        "push.x": np.cos(9 * t),
        "push.y": 0 * t,
        "handle.time": t,
        "handle.x": 0.3 + 0 * t,
        "handle.qw": 1.0 + 1e-16 * np.cos(40 * t),
        "wide": np.stack([t**2, 0 * t + 2.0, t], axis=1),
        "still": np.zeros((len(t), 3)),
        "broken": np.where(t < 0.2, 1.0, np.nan),
    }
    channels = [
        Channel("signals", name, value.shape[1:], (), ("N",) if "push" in name else ())
        for name, value in signals.items()
    ]
    return replace(run, signals=run.signals | signals, channels=(*run.channels, *channels))


def test_numbers_that_change_are_shown_with_those_that_they_belong_to(run):
    figures = {f.title: f for f in default_figures(run)}
    assert [line.name for line in figures["Push: x"].lines] == ["x"]
    assert figures["Push: x"].y_label == "push (N)"
    assert [line.name for line in figures["Wide"].lines] == ["0", "2"]
    assert not {"Still", "Handle", "Handle time", "Push y"} & set(figures)
    assert "Broken" in figures  # that it ends is seen


def test_numbers_that_rest_are_in_a_table_that_is_opened_by_who_wants_it(run):
    (table,) = run_page(run).tables
    assert table.folded
    rows = dict(table.rows)
    assert rows["push y"] == "0 N"
    assert rows["handle x"] == "0.3"
    assert rows["handle qw"] == "1"
    assert rows["wide 1"] == "2"
    assert not any("time" in name for name in rows)


def test_an_axis_of_values_that_differ_by_rounding_has_short_labels():
    t = np.arange(50.0)
    line = 0.38974705392938612 + 1e-16 * np.sin(t)
    low, high = plot(Figure.over_time("a", "a", t, {"a": line}))["layout"]["yaxis"]["range"]
    assert high - low == pytest.approx(0.2 * 0.3897, rel=1e-3)
    for values in (np.zeros(50), 1.0 + 1e-6 * np.sin(t), np.full(50, np.nan)):
        assert "range" not in plot(Figure.over_time("a", "a", t, {"a": values}))["layout"]["yaxis"]


def test_expressions_and_live_numbers_are_told_in_words():
    words = brief(described({"numbers": handle_numbers("handle"), "stiffness": ca.SX.sym("k", 6)}))
    assert words == "numbers live numbers, stiffness live numbers"
