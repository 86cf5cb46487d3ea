"""Figures beside the machine: they are drawn anew where their axis no longer fits."""

import numpy as np

from framefree.look.view.figures import SignalFigure
from framefree.simulate.columns import Channel


class Plot:
    """Stands for viser's: its properties may be set, and nothing of it is removed."""

    def __init__(self, data, series, title, scales, aspect):
        self.data, self.series, self.title, self.scales = data, series, title, scales
        self.aspect = aspect


class Gui:
    """Stands for viser's."""

    def __init__(self):
        self.plots = []

    def add_folder(self, *_, **__):
        return self

    def __enter__(self):
        return self

    def __exit__(self, *_):
        pass

    def add_dropdown(self, _, names, initial_value):
        self.value = initial_value
        return self

    def add_uplot(self, *args, **options):
        self.plots.append(Plot(*args, **options))
        return self.plots[-1]


def test_a_figure_of_zeros_shows_what_comes_after():
    gui = Gui()
    figure = SignalFigure(gui, {"e": Channel("signals", "e", (2,), (), ("m", "rad"))}, "e", 1)
    t, seen = np.linspace(0, 1, 20), []
    for size in (0.0, 1e-15, 1e-5, 2e-5, 0.3):
        figure.show(t, size * np.stack([t, -t], axis=1))
        (plot,) = gui.plots  # one that is removed may still be sent data: an error in the page
        assert [one["label"] for one in plot.series[1:]] == ["e[0]", "e[1]"]
        seen.append((plot.title, "y" in plot.scales))
    still, small = ("e (m, rad)", True), ("e (m, rad), × 1e-6", False)
    assert seen == [still, still, small, small, ("e (m, rad)", False)]
    np.testing.assert_allclose(plot.data[1], 0.3 * t)


def test_curves_times_the_power_in_the_title_are_the_values():
    gui = Gui()
    figure = SignalFigure(gui, {"e": Channel("signals", "e", (2,), (), ("m", "m"))}, "e", 1)
    t = np.linspace(0, 1, 20)
    rows = 2e-5 * np.stack([t, -t], axis=1)
    figure.show(t, rows, now=0.5)
    (plot,) = gui.plots
    assert plot.title == "e (m), × 1e-6"
    _, *faint, first, second = plot.data
    np.testing.assert_allclose(1e-6 * np.stack(faint, axis=1), rows)
    shown = 1e-6 * np.stack([first, second], axis=1)
    np.testing.assert_allclose(shown[t <= 0.5], rows[t <= 0.5])
    assert np.isnan(shown[t > 0.5]).all()
