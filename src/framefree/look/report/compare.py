"""Two runs, or two results of scenarios, side by side."""

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from framefree.look.report.content import Figure, Line, Page, ReportError, Table
from framefree.look.report.prose import number
from framefree.look.report.scene import one_trajectory
from framefree.simulate.columns import Channel
from framefree.simulate.folder import status_of
from framefree.simulate.place import UNFINISHED, is_header
from framefree.simulate.run import Run

MOST = 12
"""Most entries of an array that get figures of their own."""


@dataclass(frozen=True)
class Record:
    """What is found at a place: runs by name, and metrics if a scenario wrote them."""

    label: str
    runs: Mapping[str, Run]
    metrics: Mapping[str, Any]


@dataclass(frozen=True)
class Difference:
    """A number of both, or of one of them, and how far they are apart."""

    name: str
    first: Any
    second: Any

    @property
    def change(self) -> float | None:
        """Second minus first, where both are numbers."""
        numbers = [_number(value) for value in (self.first, self.second)]
        return None if None in numbers else numbers[1] - numbers[0]  # type: ignore[operator]


@dataclass(frozen=True)
class Comparison:
    """What two records have in common and where they differ.

    Attributes
    ----------
    labels : (str, str)
    metrics : tuple of Difference
    signals : dict of str to float
        Largest difference of every recorded column that both have, at the times of the first.
    page : Page
    """

    labels: tuple[str, str]
    metrics: tuple[Difference, ...]
    signals: Mapping[str, float]
    page: Page

    def to_dict(self) -> dict[str, Any]:
        """Return plain data for scripts; what is not finite is None."""
        return {
            "labels": list(self.labels),
            "metrics": {
                d.name: {"first": d.first, "second": d.second, "difference": d.change}
                for d in self.metrics
            },
            "largest_differences": {
                name: value if math.isfinite(value) else None
                for name, value in self.signals.items()
            },
        }


def load(path: Any) -> Record:
    """Return what is in a folder, or the run of one Parquet file."""
    path = Path(path)
    if path.suffix == ".parquet":
        return Record(path.stem, {"run": Run.load(path)}, {})
    if not path.is_dir():
        raise ReportError(f"`{path}` is neither a folder with runs nor a Parquet file of one")
    metrics_file = path / "metrics.json"
    metrics = _metrics(metrics_file) if metrics_file.exists() else {}
    names = {file.stem for file in path.glob("*.parquet") if "-part-" not in file.stem}
    names |= {file.stem for file in path.glob("*.json") if is_header(file)}
    names = {name for name in names if not name.endswith(UNFINISHED)}
    runs = {name: Run.load(path / f"{name}.parquet") for name in sorted(names)}
    if not runs and not metrics:
        raise ReportError(f"there is no run in `{path}`")
    status = status_of(path)
    mark = f" ({status})" if status not in ("", "finished") else ""
    return Record(path.resolve().name + mark, runs, metrics)


def compare(first: Record, second: Record) -> Comparison:
    """Return two records side by side, with figures of what both have."""
    labels = _labels(first, second)
    differences = tuple(
        Difference(name, first.metrics.get(name), second.metrics.get(name))
        for name in dict.fromkeys((*first.metrics, *second.metrics))
    )
    figures: list[Figure] = []
    signals: dict[str, float] = {}
    pairs = _pairs(first, second)
    for name, (a, b) in pairs.items():
        lead = f"{name}: " if len(pairs) > 1 else ""
        for channel in _shared(a, b):
            for column, values in _columns(channel, a, b).items():
                figure = _overlay(f"{lead}{column}", labels, (a.t, b.t), values)
                signals[figure.y_label] = _apart(a.t, b.t, values)
                figures += [figure] if channel.size <= MOST else []
    runs = {
        f"{label}: {name}" if len(pairs) > 1 else label: run
        for name, pair in pairs.items()
        for label, run in zip(labels, pair, strict=True)
    }
    page = Page(
        title=f"{labels[0]} and {labels[1]}",
        text="Two results side by side: the second one dashed.",
        runs=runs,
        tables=_tables(labels, differences, signals),
        figures=tuple(figures),
    )
    return Comparison(labels, differences, signals, page)


# ---------------------------------------------------------------------- parts


def _metrics(file: Path) -> dict[str, Any]:
    """Return the flat numbers of metrics.json, settings among them."""
    try:
        metrics = dict(json.loads(file.read_text(encoding="utf-8")))
    except (ValueError, TypeError) as error:
        raise ReportError(f"`{file}` holds no metrics: {error}") from None
    return {key: value for key, value in metrics.items() if value != ""}


def _labels(first: Record, second: Record) -> tuple[str, str]:
    if first.label != second.label:
        return first.label, second.label
    return f"{first.label} (first)", f"{second.label} (second)"


def _pairs(first: Record, second: Record) -> dict[str, tuple[Run, Run]]:
    """Return the runs of one name in both; or the only run of each."""
    names = [name for name in first.runs if name in second.runs]
    if not names and len(first.runs) == len(second.runs) == 1:
        pair = next(iter(first.runs.values())), next(iter(second.runs.values()))
        return {"run": (one_trajectory(pair[0]), one_trajectory(pair[1]))}
    return {n: (one_trajectory(first.runs[n]), one_trajectory(second.runs[n])) for n in names}


def _shared(a: Run, b: Run) -> list[Channel]:
    shapes = {channel.key: channel.columns for channel in b.channels}
    return [
        channel
        for channel in a.channels
        if channel.group != "reference" and shapes.get(channel.key) == channel.columns
    ]


def _columns(channel: Channel, a: Run, b: Run) -> dict[str, tuple[np.ndarray, np.ndarray]]:
    arrays = [_array(channel, run).reshape(len(run), -1) for run in (a, b)]
    return {column: (arrays[0][:, i], arrays[1][:, i]) for i, column in enumerate(channel.columns)}


def _array(channel: Channel, run: Run) -> np.ndarray:
    if channel.group == "state":
        return {"x": run.x, "v": run.v, "u": run.u}[channel.name]
    return run.signals[channel.name]


def _overlay(
    title: str,
    labels: tuple[str, str],
    times: tuple[np.ndarray, np.ndarray],
    values: tuple[np.ndarray, np.ndarray],
) -> Figure:
    name, _, unit = title.removeprefix("signals.").replace("signals.", "").partition(" [")
    label = f"{name} ({unit.rstrip(']')})" if unit else name
    lines = (
        Line(labels[0], times[0], values[0]),
        Line(labels[1], times[1], values[1], dashed=True),
    )
    return Figure(name, "time (s)", label, lines)


def _apart(t: np.ndarray, s: np.ndarray, values: tuple[np.ndarray, np.ndarray]) -> float:
    """Return the largest difference at times of the first that lie within the second."""
    common = (t >= s[0]) & (t <= s[-1]) if len(s) else np.zeros(len(t), bool)
    if not common.any():
        return float("nan")
    difference = values[0][common] - np.interp(t[common], s, values[1])
    finite = np.abs(difference[np.isfinite(difference)])
    return float(finite.max()) if len(finite) else float("nan")


def _tables(
    labels: tuple[str, str], differences: tuple[Difference, ...], signals: Mapping[str, float]
) -> tuple[Table, ...]:
    metrics = tuple(
        (d.name, _text(d.first), _text(d.second), "" if d.change is None else f"{d.change:+.4g}")
        for d in differences
    )
    return (
        Table("Metrics", ("", *labels, "difference"), metrics),
        Table("Recorded columns", ("", "largest difference"), tuple(signals.items())),
    )


def _text(value: Any) -> str:
    return "–" if value is None else number(value)


def _number(value: Any) -> float | None:
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else None
