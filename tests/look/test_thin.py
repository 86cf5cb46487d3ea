"""Thinned lines keep every peak and every long gap."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from framefree.look.report.thin import thinned


@given(st.integers(1, 4000), st.integers(5, 400), st.integers(0, 2**32 - 1))
@settings(max_examples=60, deadline=None)
def test_extremes_stay_and_the_order_too(n, most, seed):
    rng = np.random.default_rng(seed)
    x, y = np.sort(rng.normal(size=n)), rng.standard_cauchy(n)
    a, b = thinned(x, y, most)
    assert len(a) == len(b) <= max(most, 5)
    assert {x.min(), x.max()} <= set(a)
    assert {y.min(), y.max()} <= set(b)
    rows = np.searchsorted(x, a)
    assert (np.diff(rows) > 0).all()
    assert (y[rows] == b).all()


def test_a_single_spike_among_a_million_points_stays():
    y = np.zeros(1_000_000)
    y[123_456] = 1.0
    t = np.arange(len(y)) * 1e-3
    a, b = thinned(t, y)
    assert len(a) <= 5000
    assert a[b.argmax()] == t[123_456]


def test_paths_in_a_plane_keep_their_outline():
    angle = np.linspace(0, 200 * np.pi, 200_000)
    x, y = np.cos(angle), np.sin(angle)
    a, b = thinned(x, y, 2000)
    assert [a.min(), a.max(), b.min(), b.max()] == [x.min(), x.max(), y.min(), y.max()]


def test_gaps_stay():
    t = np.linspace(0, 1, 100_000)
    y = np.where((t > 0.4) & (t < 0.6), np.nan, t)
    a, b = thinned(t, y, 1000)
    inside = (a > 0.41) & (a < 0.59)
    assert inside.any()
    assert np.isnan(b[inside]).all()


def test_short_lines_are_left_alone():
    t = np.arange(10.0)
    assert thinned(t, t, 10)[0] is t


def test_a_smooth_line_stays_smooth():
    """Chords of what is left are close to the line, where it bends most too."""
    t = np.linspace(0, 10, 100_001)
    y = np.exp(-t) * np.sin(40 * t)
    x, kept = thinned(t, y, 600)
    assert len(x) <= 600
    assert np.abs(np.interp(t, x, kept) - y).max() < 0.02
