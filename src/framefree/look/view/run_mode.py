"""A recorded run: its states over time, played at any speed, and figures of its signals."""

import threading
from time import perf_counter
from typing import Any

import numpy as np

from framefree.look.report.scene import drawn_machine, one_trajectory
from framefree.look.view.errors import ViewError
from framefree.look.view.figures import LEGEND_STYLE, SignalFigure, offered
from framefree.look.view.page import ShownMoment, View, ViewMode
from framefree.simulate.run import Run

SPEEDS = ("0.1", "0.25", "0.5", "1", "2", "5", "10")
FIGURE_PERIOD = 0.15
"""Wall time from one picture of the figures to the next, s."""
SEEN = 60
"""Rows that the camera has in its picture at first."""
FIRST_FIGURES = ("V", "W", "kinetic")
"""What is shown beside the configuration at first, if the run has it."""


class RunMode(ViewMode):
    """The states of a run.

    Parameters
    ----------
    run : Run
    signals : sequence of str
        Shown in figures at first.
    trajectory : int
        Which one, in a run of many.
    """

    def __init__(self, run: Run, signals: Any = (), trajectory: int = 0) -> None:
        run = one_trajectory(run, trajectory)
        if run.machine is None:
            raise ViewError(
                "the run cannot be shown: its machine has parts that live only in Python"
            )
        self.machine = drawn_machine(run)
        good = np.isfinite(run.x).all(axis=1)
        if not good.any():
            raise ViewError("the run has no finite state that could be shown")
        self.rows = np.flatnonzero(good)
        self.run, self.t = run, run.t[self.rows]
        self.first = run.x[self.rows[0]]
        self.channels = offered(run.channels)
        self._wanted = self._first_signals(signals)
        self._lock = threading.Lock()
        self.now, self.speed, self.playing = float(self.t[0]), 1.0, False
        self._wall, self._changed, self._figured = perf_counter(), True, 0.0
        self._arrays = run.arrays()

    def _first_signals(self, signals: Any) -> list[str]:
        wanted = [signals] if isinstance(signals, str) else list(signals)
        for name in wanted:
            if name not in self.channels:
                known = ", ".join(f"`{one}`" for one in self.channels)
                raise ViewError(f"the run has no signal `{name}`; it has: {known}")
        if not wanted:
            wanted = [name for name in ("configuration x", *FIRST_FIGURES) if name in self.channels]
        return wanted[:2] if not signals else wanted

    # ------------------------------------------------------------------ controls

    def panel(self, page: View) -> None:
        """Add play, time and speed, and the figures."""
        gui = page.server.gui
        begin, end = float(self.t[0]), float(self.t[-1])
        with gui.add_folder("Run", expand_by_default=True):
            self._play = gui.add_button("Play")
            step = max((end - begin) / 1000, 1e-6)
            self._time = gui.add_slider("time (s)", begin, max(end, begin + step), step, begin)
            speed = gui.add_dropdown("speed", SPEEDS, initial_value="1")
        gui.add_html(LEGEND_STYLE)
        self.figures = [
            SignalFigure(gui, self.channels, name, k)
            for k, name in enumerate(self._wanted, start=1)
        ]
        self._play.on_click(lambda _: self.play(not self.playing))
        self._time.on_update(self._seek)
        speed.on_update(lambda _: self.set_speed(float(speed.value)))
        for figure in self.figures:
            figure.menu.on_update(lambda _: self._touch())

    def play(self, playing: bool) -> None:
        """Begin or stop to play."""
        with self._lock:
            self.now = self._current()
            if playing and self.now >= self.t[-1]:
                self.now = float(self.t[0])
            self._wall, self.playing, self._changed = perf_counter(), playing, True
        self._play.label = "Pause" if playing else "Play"

    def seek(self, time: float) -> None:
        """Go to a time, s."""
        with self._lock:
            self.now = float(np.clip(time, self.t[0], self.t[-1]))
            self._wall, self._changed = perf_counter(), True
        if abs(self._time.value - self.now) > 1e-9:
            self._time.value = self.now

    def set_speed(self, speed: float) -> None:
        """Play so many times as fast as the clock."""
        with self._lock:
            self.now, self._wall, self.speed = self._current(), perf_counter(), speed

    def _seek(self, event: Any) -> None:
        if event.client_id is not None:
            self.seek(event.target.value)

    def _touch(self) -> None:
        self._changed, self._figured = True, 0.0

    def _current(self) -> float:
        if not self.playing:
            return self.now
        return min(self.now + self.speed * (perf_counter() - self._wall), float(self.t[-1]))

    def told(self) -> set[str]:
        """Return what was recorded."""
        return set(self.run.signals)

    def shown_before(self) -> np.ndarray:
        """Return rows of the run, evenly."""
        rows = np.linspace(0, len(self.rows) - 1, min(len(self.rows), SEEN)).astype(int)
        return self.run.x[self.rows[rows]]

    # ------------------------------------------------------------------ pictures

    def moment(self) -> ShownMoment | None:
        """Return the state at the current time, between rows along the group."""
        with self._lock:
            if not (self.playing or self._changed):
                return None
            now, self._changed = self._current(), False
            ended = self.playing and now >= self.t[-1]
        if ended:
            self.play(False)
            self.now = now
        k = int(np.clip(np.searchsorted(self.t, now, side="right") - 1, 0, len(self.t) - 1))
        row, x = self.rows[k], self.run.x[self.rows[k]]
        if k + 1 < len(self.t):
            share = (now - self.t[k]) / max(self.t[k + 1] - self.t[k], 1e-12)
            ahead = self.machine.difference(x, self.run.x[self.rows[k + 1]])
            x = self.machine.integrate(x, np.clip(share, 0, 1) * np.asarray(ahead))
        signals = {key: array[row] for key, array in self._arrays.items() if key[0] == "signals"}
        words = f"t = {now:.3f} s of {self.t[-1]:.3f} s"
        return ShownMoment(np.asarray(x, float), now, signals, words, {"time": f"{now:.4f}"})

    def drawn(self, page: View, moment: ShownMoment) -> None:
        """Move the slider and draw the figures up to now."""
        if abs(self._time.value - moment.t) > 1e-9 and self.playing:
            self._time.value = float(moment.t)
        if perf_counter() - self._figured < FIGURE_PERIOD and self.playing:
            return
        self._figured = perf_counter()
        for figure in self.figures:
            rows = self._arrays[figure.channel.key][self.rows]
            figure.show(self.t, np.where(np.isfinite(rows), rows, np.nan), moment.t)
