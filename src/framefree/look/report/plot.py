"""A figure as plain data for the page's script, which hands it to Plotly."""

import re
from dataclasses import replace
from typing import Any

import numpy as np

from framefree.look.report.content import TIME_LABEL, Figure, Line
from framefree.look.report.packing import packed, plain
from framefree.look.report.thin import thinned

POINTS = 30_000
"""Most points of all lines of a figure together."""
PAGE_POINTS = 240_000
"""Most points of all figures of a page together: some 4 MB."""
COARSE = 1e-3
"""Share of the largest value that a line must change by for single precision to serve."""
LINE_POINTS = (600, 5000)
"""Most points of a line: in a figure of very many lines, and in one of few."""


def plot(figure: Figure, points: int = POINTS) -> dict[str, Any]:
    """Return traces and axes of a figure, with so many points in all."""
    most = int(np.clip(min(points, POINTS) // max(len(figure.lines), 1), *LINE_POINTS))
    logarithmic = figure.logarithmic and any((line.y > 0).any() for line in figure.lines)
    colors = _colors(figure.lines)
    x_axis: dict[str, Any] = {"title": {"text": plain(figure.x_label)}}
    y_axis: dict[str, Any] = {"title": {"text": plain(figure.y_label)}}
    if logarithmic:
        y_axis["type"] = "log"
    if figure.equal:
        y_axis |= {"scaleanchor": "x", "scaleratio": 1}
    return {
        "traces": [
            _trace(_positive(line) if logarithmic else line, k, most)
            for line, k in zip(figure.lines, colors, strict=True)
        ],
        "layout": {"xaxis": x_axis, "yaxis": y_axis, "showlegend": len(figure.lines) > 1},
        "over_time": figure.x_label == TIME_LABEL,
    }


def _colors(lines: tuple[Line, ...]) -> list[int]:
    """Return the number of the colour of each line.

    Dashed lines, markers and areas have the colour of what they go with, where their name begins
    with that one's: "x" and "x reference". Other areas have that of the first line.
    """
    own: dict[str, int] = {}
    for line in lines:
        if not (line.dashed or line.markers or line.area):
            own.setdefault(line.name, len(own))
    colors, more = [], len(own)
    for line in lines:
        names = [name for name in own if re.match(re.escape(name) + r"(\W|$)", line.name)]
        first = 0 if line.area and own else more
        colors.append(own[max(names, key=len)] if names else first)
        more += not names and first == more
    return colors


def _positive(line: Line) -> Line:
    """Return a line for a logarithmic axis: what is zero or less, an exact zero too, is a gap."""
    return replace(line, y=np.where(line.y > 0, line.y, np.nan))


def _precision(values: np.ndarray) -> str:
    """Return how numbers are kept: in half the room where that cannot be seen."""
    finite = values[np.isfinite(values)]
    if not len(finite) or np.ptp(finite) > COARSE * np.abs(finite).max():
        return "f4"
    return "f8"


def _trace(line: Line, color: int, most: int) -> dict[str, Any]:
    x, y = (line.x, line.y) if line.area else thinned(line.x, line.y, most)
    return {
        "name": plain(line.name),
        "x": packed(x, "f8"),
        "y": packed(y, _precision(y)),
        "mode": "markers" if line.markers else "lines",
        "dashed": line.dashed,
        "area": line.area,
        "color": color,
    }
