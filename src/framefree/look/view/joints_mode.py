"""A machine whose joints are moved by sliders; loops and couplings stay closed."""

import threading
from typing import Any

import numpy as np

from framefree.look.view.closing import ClosedJoints
from framefree.look.view.page import ShownMoment, View, ViewMode
from framefree.look.view.sliders import JointNumber, coordinates_at, numbers_of, values_at
from framefree.machine import Free, Machine

MANY = 60
"""Sliders that a page has at most."""
SHOWN = 5e-4
"""By how much a slider may be off its joint, m or rad."""


class JointsMode(ViewMode):
    """Sliders for the joints: see `sliders`.

    Parameters
    ----------
    machine : Machine
    x : (nx,)
        Closed.
    """

    def __init__(self, machine: Machine, x: np.ndarray) -> None:
        self.machine, self.first = machine.numeric, np.array(x, float)
        self.joints = ClosedJoints(self.machine, self.first)
        self.numbers = {one.index: one for one in numbers_of(self.machine, self.first)[:MANY]}
        self.sliders: dict[int, Any] = {}
        """Sliders by a coordinate of x that they move."""
        self._values = {
            joint.name: values_at(self.machine, joint, self.first) for joint in self.machine.joints
        }
        self._lock, self._changed = threading.Lock(), True

    @property
    def x(self) -> np.ndarray:
        """Configuration that is shown (nx,)."""
        return self.joints.x

    def panel(self, page: View) -> None:
        """Add a slider for each number, those of a floating base in a folder of their own."""
        gui = page.server.gui
        free = {k for k, one in self.numbers.items() if isinstance(one.joint.kind, Free)}
        for title, keys in (("Joints", self.numbers.keys() - free), ("Floating bodies", free)):
            if keys:
                with gui.add_folder(title, expand_by_default=title == "Joints" or not keys - free):
                    for index in sorted(keys):
                        self._add_slider(gui, index)
        left = sum(joint.nv for joint in self.machine.joints) - len(self.numbers)
        if left > 0 and len(self.numbers) == MANY:
            gui.add_markdown(f"{left} more numbers of joints have no slider here.")
        if not self.numbers:
            return
        reset = gui.add_button("Back to the start")

        @reset.on_click
        def _(_: Any) -> None:
            with self._lock:
                self.joints.back()
                self._changed = True
                self._follow()

    def _add_slider(self, gui: Any, index: int) -> None:
        one = self.numbers[index]
        now = float(np.clip(self._values[one.joint.name][one.part], one.low, one.high))
        slider = gui.add_slider(f"{one.name} ({one.unit})", one.low, one.high, 1e-3, now)
        self.sliders[index] = slider
        slider.on_update(lambda event: self._moved(index, event))

    def set(self, index: int, value: float) -> np.ndarray:
        """Move one number, and all that follow it; return x."""
        with self._lock:
            self._set(self.numbers[index], float(value))
            self._changed = True
            self._follow()
        return self.x

    def _set(self, one: JointNumber, value: float) -> None:
        joint = one.joint
        if joint.nx == joint.nv:
            self.joints.set(one.index, value)
            return
        wanted = self._values[joint.name].copy()
        wanted[one.part] = value
        self._values[joint.name] = wanted
        self.joints.lead(joint, coordinates_at(joint, wanted))

    def _moved(self, index: int, event: Any) -> None:
        # Values that we write ourselves come without a client.
        if event.client_id is not None:
            self.set(index, event.target.value)

    def _follow(self) -> None:
        """Let the sliders of other joints show where these are."""
        for joint in self.machine.joints:
            # A rotation vector may be longer than half a turn: what was set is kept while it holds.
            kept = self.x.copy()
            kept[self.machine.x_slice[joint.name]] = coordinates_at(joint, self._values[joint.name])
            off = np.asarray(self.machine.difference(self.x, kept))
            if np.abs(off).max(initial=0.0) > SHOWN / 2:
                self._values[joint.name] = values_at(self.machine, joint, self.x)
        for index, slider in self.sliders.items():
            one = self.numbers[index]
            now = float(np.clip(self._values[one.joint.name][one.part], slider.min, slider.max))
            if abs(now - slider.value) > SHOWN:
                slider.value = now

    def moment(self) -> ShownMoment | None:
        """Return the configuration where a slider has moved it."""
        with self._lock:
            if not self._changed:
                return None
            self._changed = False
            x, gap = self.x.copy(), self.joints.gap
        size = f"{gap:.0e} m or rad" if gap else "0"
        words = f"error of loops and couplings: {size}" if self.machine.closed else ""
        return ShownMoment(x, 0.0, {}, words, {"gap": f"{gap:.3e}"})
