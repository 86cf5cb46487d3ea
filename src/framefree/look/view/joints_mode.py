"""A machine whose joints are moved by sliders; loops and couplings stay closed."""

import threading
from typing import Any

import numpy as np

from framefree.look.view.closing import ClosedJoints
from framefree.look.view.page import ShownMoment, View, ViewMode
from framefree.machine import Free, Machine, Spherical
from framefree.machine.units import translations

MANY = 60
"""Sliders that a page has at most."""
TURN, SLIDE = np.pi, 1.0
"""Half the way of a slider where a joint has no limits: rad, m."""


class JointsMode(ViewMode):
    """Sliders for all coordinates of joints that are plain numbers.

    Parameters
    ----------
    machine : Machine
    x : (nx,)
        Closed.
    """

    def __init__(self, machine: Machine, x: np.ndarray) -> None:
        self.machine, self.first = machine.numeric, np.array(x, float)
        self.joints = ClosedJoints(self.machine, self.first)
        self.sliders: dict[int, Any] = {}
        self._lock, self._changed, self._busy = threading.Lock(), True, False

    @property
    def x(self) -> np.ndarray:
        """Configuration that is shown (nx,)."""
        return self.joints.x

    def coordinates(self) -> list[tuple[int, str, float, float, str]]:
        """Return index, name, least and largest value and unit of what sliders move."""
        found, lengths = [], translations(self.machine)
        for joint in self.machine.joints:
            if isinstance(joint.kind, Free | Spherical):
                continue
            first = self.machine.x_slice[joint.name].start
            for k, name in enumerate(joint.x_names):
                slides = bool(lengths[first + k])
                low, high = float(joint.lower[k]), float(joint.upper[k])
                way = SLIDE if slides else TURN
                now = self.first[first + k]
                low = low if np.isfinite(low) else min(-way, now)
                high = high if np.isfinite(high) else max(way, now)
                found.append((first + k, name, low, high, "m" if slides else "rad"))
        return found[:MANY]

    def panel(self, page: View) -> None:
        """Add a slider for each coordinate."""
        gui, rows = page.server.gui, self.coordinates()
        if not rows:
            return
        with gui.add_folder("Joints", expand_by_default=True):
            for index, name, low, high, unit in rows:
                now = float(np.clip(self.first[index], low, high))
                slider = gui.add_slider(f"{name} ({unit})", low, high, 1e-3, now)
                self.sliders[index] = slider
                slider.on_update(lambda event, index=index: self._moved(index, event))
            reset = gui.add_button("Back to the start")

            @reset.on_click
            def _(_: Any) -> None:
                with self._lock:
                    self.joints.x = self.first.copy()
                    self._changed = True
                    self._follow()

    def set(self, index: int, value: float) -> np.ndarray:
        """Move one coordinate, and all that follow it; return x."""
        with self._lock:
            x = self.joints.set(index, float(value))
            self._changed = True
            self._follow()
        return x

    def _moved(self, index: int, event: Any) -> None:
        # Values that we write ourselves come without a client.
        if event.client_id is not None:
            self.set(index, event.target.value)

    def _follow(self) -> None:
        """Let the sliders of other joints show where these are."""
        for index, slider in self.sliders.items():
            now = float(np.clip(self.x[index], slider.min, slider.max))
            if abs(now - slider.value) > 5e-4:
                slider.value = now

    def moment(self) -> ShownMoment | None:
        """Return the configuration where a slider has moved it."""
        with self._lock:
            if not self._changed:
                return None
            self._changed = False
            x, gap = self.x.copy(), self.joints.gap
        words = f"loops and couplings are closed to {gap:.1e}" if self.machine.closed else ""
        return ShownMoment(x, 0.0, {}, words, {"gap": f"{gap:.3e}"})
