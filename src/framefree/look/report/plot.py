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
STEADY = 1e-9
"""Share of their size by which values differ that are drawn as one."""
LINE_POINTS = (600, 2500)
"""Most points of a line: in a figure of very many lines, and in one of few."""
LEGEND = 40
"""Most lines that a legend names."""


def plot(figure: Figure, points: int = POINTS) -> dict[str, Any]:
    """Return traces and axes of a figure, with so many points in all."""
    most = int(np.clip(min(points, POINTS) // max(len(figure.lines), 1), *LINE_POINTS))
    logarithmic = figure.logarithmic and any((line.y > 0).any() for line in figure.lines)
    colors = _colors(figure.lines)
    x_axis: dict[str, Any] = {"title": {"text": plain(figure.x_label)}}
    y_axis: dict[str, Any] = {"title": {"text": plain(figure.y_label)}}
    if logarithmic:
        y_axis |= {"type": "log", **_decades(figure.lines)}
    else:
        y_axis |= _steady(figure.lines)
    if figure.equal:
        y_axis |= {"scaleanchor": "x", "scaleratio": 1}
    layout = {"xaxis": x_axis, "yaxis": y_axis, "showlegend": 1 < len(figure.lines) <= LEGEND}
    if figure.z_label:
        layout["zaxis"] = {"title": {"text": plain(figure.z_label)}}
    return {
        "traces": [
            _trace(_positive(line) if logarithmic else line, k, most)
            for line, k in zip(figure.lines, colors, strict=True)
        ],
        "layout": layout,
        "over_time": figure.x_label == TIME_LABEL,
    }


def _colors(lines: tuple[Line, ...]) -> list[int]:
    """Return the number of the colour of each line.

    Dashed lines, markers and areas have the colour of what they go with, where their name begins
    with that one's: "x" and "x reference", "y (m)" and "y bound". Other areas have that of the
    first line.
    """
    own: dict[str, int] = {}
    for line in lines:
        if not (line.dashed or line.markers or line.area or line.faint):
            own.setdefault(line.name, len(own))
    colors, more = [], len(own)
    for line in lines:
        names = [name for name in own if re.match(_bare(name) + r"(\W|$)", line.name)]
        first = 0 if line.area and own else more
        colors.append(own[max(names, key=len)] if names else first)
        more += not names and first == more
    return colors


def _bare(name: str) -> str:
    """Return the pattern of a name without a unit in brackets."""
    return re.escape(re.sub(r" \([^()]*\)$", "", name))


def _decades(lines: tuple[Line, ...]) -> dict[str, Any]:
    """Return where a logarithmic axis has labels: so few that they do not touch each other.

    Powers of ten over many decades; 1, 2 and 5 over few; all digits where there is less than one.
    """
    values = np.concatenate([line.y for line in lines])
    values = values[np.isfinite(values) & (values > 0)]
    span = float(np.ptp(np.log10(values))) if len(values) else 0.0
    if span < 0.7:
        return {}
    return {"dtick": "D2" if span < 2.5 else max(int(np.ceil(span / 8)), 1)}


def _steady(lines: tuple[Line, ...]) -> dict[str, Any]:
    """Return ends of an axis over values that differ by rounding alone, else nothing.

    Labels with all digits of such values would have no room.
    """
    values = np.concatenate([np.zeros(0), *(line.y[np.isfinite(line.y)] for line in lines)])
    size = float(np.abs(values).max(initial=0.0))
    if not size or float(np.ptp(values)) > STEADY * size:
        return {}
    middle = float(values.mean())
    return {"range": [middle - 0.1 * size, middle + 0.1 * size]}


def _positive(line: Line) -> Line:
    """Return a line for a logarithmic axis: what is zero or less, an exact zero too, is a gap.

    The name of a line that is a gap as a whole says so: who reads it would look for the line.
    """
    positive, values = line.y > 0, line.y[np.isfinite(line.y)]
    gone = len(values) and not positive.any()
    why = "" if not gone else " (zero)" if not values.any() else " (zero or less)"
    return replace(line, name=line.name + why, y=np.where(positive, line.y, np.nan))


def _precision(values: np.ndarray) -> str:
    """Return how numbers are kept: in half the room where that cannot be seen."""
    finite = values[np.isfinite(values)]
    if not len(finite) or np.ptp(finite) > COARSE * np.abs(finite).max():
        return "f4"
    return "f8"


def _apart(x: np.ndarray) -> bool:
    """Whether steps between points are the same in single precision, to a percent.

    Where a figure is magnified, steps of rounding are not seen then.
    """
    steps, rounded = np.diff(x), np.diff(x.astype(np.float32).astype(float))
    steps, rounded = (values[np.isfinite(steps)] for values in (steps, rounded))
    return bool((np.abs(rounded - steps) <= 1e-2 * np.abs(steps)).all())


def _trace(line: Line, color: int, most: int) -> dict[str, Any]:
    trace: dict[str, Any] = {
        "name": plain(line.name),
        "mode": "markers" if line.markers else "lines",
        "dashed": line.dashed,
        "area": line.area,
        "faint": line.faint,
        "color": color,
    }
    if line.z is None:
        flat = (line.x, line.y) if line.area else thinned(line.x, line.y, most)
        points = dict(zip("xy", flat, strict=True))
    else:
        # Gaps of drawings of machines are part of their points: these are few, and all are kept.
        step = 1 if line.faint else -(-len(line.x) // most)
        rows = np.unique(np.r_[0 : len(line.x) : step, len(line.x) - 1])
        points = {"x": line.x[rows], "y": line.y[rows], "z": line.z[rows]}
    kept = {axis: _precision(values) for axis, values in points.items()}
    if line.z is None and not _apart(points["x"]):
        kept["x"] = "f8"
    return trace | {axis: packed(values, kept[axis]) for axis, values in points.items()}
