"""Figures beside the machine: they are drawn anew where their axis no longer fits."""

import numpy as np

from framefree.look.view.figures import SignalFigure
from framefree.simulate.columns import Channel


class Gui:
    """Stands for viser's: keeps what a figure was last made of."""

    def __init__(self):
        self.made = []

    def add_folder(self, *_, **__):
        return self

    def __enter__(self):
        return self

    def __exit__(self, *_):
        pass

    def add_dropdown(self, _, names, initial_value):
        self.value = initial_value
        return self

    def add_uplot(self, data, series, title, scales, aspect):
        self.data = data
        self.made.append((title, [one["label"] for one in series[1:]], scales.get("y")))
        return self

    def remove(self):
        pass


def test_a_figure_of_zeros_shows_what_comes_after():
    gui = Gui()
    figure = SignalFigure(gui, {"e": Channel("signals", "e", (2,), (), ("m", "rad"))}, "e", 1)
    t = np.linspace(0, 1, 20)
    for size in (0.0, 1e-15, 1e-5, 2e-5, 0.3):
        figure.show(t, size * np.stack([t, -t], axis=1))
    titles, labels, ends = zip(*gui.made, strict=True)
    assert titles == ("e (m, rad)", "e (m, rad), × 1e-6", "e (m, rad)")
    assert set(map(tuple, labels)) == {("e[0]", "e[1]")}
    assert [end is None for end in ends] == [False, True, True]
    np.testing.assert_allclose(gui.data[1], 0.3 * t)
