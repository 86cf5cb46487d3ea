"""Figures of chosen signals beside the machine, in step with its motion."""

from itertools import cycle
from typing import Any

import numpy as np

from framefree.look.colors import COLORS
from framefree.simulate.columns import Channel

MOST = 8
"""Curves in one figure."""
POINTS = 600
"""Points of a curve."""
FAINT = "rgba(120,120,120,0.35)"
ROUNDING = 1e-9
"""Values below are shown as zero."""
STILL = {"range": (-1.0, 1.0)}
"""Ends of an axis over values that are zero."""
UNNAMED = "framefree-unnamed"
"""Class of curves that a legend leaves out; see `LEGEND_STYLE`."""
LEGEND_STYLE = f"<style>.u-legend .{UNNAMED} {{ display: none; }}</style>"
"""What a page with such figures needs."""


class SignalFigure:
    """A figure whose signal is chosen on the page.

    Parameters
    ----------
    gui : viser.GuiApi
    channels : dict of str to Channel
        By the name under which they are offered.
    chosen : str
    """

    def __init__(self, gui: Any, channels: dict[str, Channel], chosen: str, number: int) -> None:
        self.gui, self.channels = gui, channels
        names = tuple(channels)
        self._folder = gui.add_folder(f"Figure {number}", expand_by_default=True)
        with self._folder:
            self.menu = gui.add_dropdown("signal", names, initial_value=chosen)
        self._plot: Any = None
        self._made: tuple[str, int, bool] | None = None

    @property
    def channel(self) -> Channel:
        """What it shows."""
        return self.channels[self.menu.value]

    def show(self, t: np.ndarray, rows: np.ndarray, now: float | None = None) -> None:
        """Draw curves over time (rows, n) in colour.

        With a time `now`, as a whole faint, and in colour until then.
        """
        rows = rows.reshape(len(t), -1)[:, :MOST]
        keep = np.unique(np.linspace(0, len(t) - 1, min(len(t), POINTS)).astype(int))
        t, rows = t[keep], rows[keep]
        past = rows if now is None else np.where((t <= now + 1e-9)[:, None], rows, np.nan)
        faint = rows[:, :0] if now is None else rows
        power, still = power_of(rows), not any_size(rows)
        data = (t, *(faint * 10.0**-power).T, *(past * 10.0**-power).T)
        style = (self.menu.value, power, still)
        if self._made != style or self._plot is None:
            self._make(data, rows.shape[1], faint.shape[1], power, still)
            self._made = style
        else:
            self._plot.data = tuple(np.asarray(part, float) for part in data)

    def _make(self, data: Any, count: int, faint: int, power: int, still: bool) -> None:
        channel = self.channel
        names = [_legend(channel, name) for name in channel.entry_names[:count]]
        title = self.menu.value + in_units(channel.units[:count])
        title += f", × 1e{power}" if power else ""
        if count < channel.size:
            title += f", {count} of {channel.size}"
        series: list[dict[str, Any]] = [{"label": "t (s)"}]
        whole = {"label": "", "class": UNNAMED, "stroke": FAINT, "width": 1}
        series += [whole | {"points": {"show": False}}] * faint
        series += [
            {
                "label": name,
                "stroke": color,
                "width": 2,
                "points": {"show": False},
            }
            for name, color in zip(names, cycle(COLORS), strict=False)
        ]
        arrays = tuple(np.asarray(part, float) for part in data)
        scales = {"x": {"time": False}, **({"y": STILL} if still else {})}
        if self._plot is None:
            with self._folder:
                self._plot = self.gui.add_uplot(
                    arrays, tuple(series), title=title, scales=scales, aspect=1.6
                )
            return
        # One that is removed may still be sent data, which is an error in the page.
        plot = self._plot
        plot.series, plot.title, plot.scales, plot.data = tuple(series), title, scales, arrays


def power_of(rows: np.ndarray) -> int:
    """Return the power of ten in which values are shown: labels have three digits after the point.

    Zero where that serves, and for rounding about zero; else a multiple of three.
    """
    finite = np.abs(rows[np.isfinite(rows)])
    size = float(finite.max(initial=0.0))
    if size < ROUNDING or 0.03 <= size < 1e5:
        return 0
    return 3 * int(np.floor(np.log10(size) / 3))


def any_size(rows: np.ndarray) -> bool:
    """Whether values are more than rounding about zero."""
    return bool((np.abs(rows[np.isfinite(rows)]) >= ROUNDING).any())


def _legend(channel: Channel, name: Any) -> str:
    """Return what a legend calls an entry: "e[2]" where it has no name of its own."""
    name = str(name)
    return f"{channel.name}[{name}]" if name[:1].isdigit() else name or channel.name


def in_units(units: tuple[str, ...]) -> str:
    """Return units for a title: " (m, rad)"; what has none beside what has one is in " (m, 1)"."""
    several = list(dict.fromkeys(units))
    return f" ({', '.join(unit or '1' for unit in several)})" if any(several) else ""


def offered(channels: Any) -> dict[str, Channel]:
    """Return channels by the names that a menu shows."""
    words = {"x": "configuration x", "v": "velocity v", "u": "inputs u"}
    named = {}
    for channel in channels:
        if channel.group == "":
            continue
        name = words.get(channel.name, channel.name) if channel.group == "state" else channel.name
        name = f"reference {name}" if channel.group == "reference" else name
        if channel.size:
            named[name] = channel
    return named
