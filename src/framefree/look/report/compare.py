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

Columns = dict[str, tuple[np.ndarray, np.ndarray]]
"""Values of both runs by column."""
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
    figures: list[tuple[float, Figure]] = []
    signals: dict[str, float] = {}
    notes: list[str] = []
    pairs = _pairs(first, second)
    for name, (a, b) in pairs.items():
        lead = f"{name}: " if len(pairs) > 1 else ""
        many = _trajectories(a, b)
        for channel in _shared(*many[0]):
            at, columns, apart = _farthest(channel, many)
            signals |= {_label(f"{lead}{key}"): value for key, value in apart.items()}
            differing = {key: columns[key] for key, value in apart.items() if value != 0.0}
            size = max((_relative(columns[key], apart[key]) for key in differing), default=0.0)
            title = f"{lead}{_title(channel)}" + (f", trajectory {at}" if len(many) > 1 else "")
            figures += [
                (size, figure) for figure in _overlays(title, channel, labels, many[at], differing)
            ]
        if a.batch is not None or b.batch is not None:
            notes.append(_of_many(lead, a, b, len(many)))
    figures.sort(key=lambda pair: -pair[0])
    runs = {
        f"{label}: {name}" if len(pairs) > 1 else label: run
        for name, pair in pairs.items()
        for label, run in zip(labels, pair, strict=True)
    }
    page = Page(
        title=f"{labels[0]} and {labels[1]}",
        text=(
            "Two results side by side, what differs most first; the second one dashed. What is the "
            "same in both has no figure."
        ),
        runs=runs,
        notes=tuple(notes),
        tables=_tables(labels, differences, signals),
        figures=tuple(figure for _, figure in figures),
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
        return {"run": pair}
    return {name: (first.runs[name], second.runs[name]) for name in names}


def _trajectories(a: Run, b: Run) -> list[tuple[Run, Run]]:
    """Return the trajectories of two runs in pairs, as many as both have."""
    count = min(a.batch or 1, b.batch or 1)
    return [(one_trajectory(a, k), one_trajectory(b, k)) for k in range(count)]


def _farthest(
    channel: Channel, many: list[tuple[Run, Run]]
) -> tuple[int, Columns, dict[str, float]]:
    """Return the pair of trajectories that differs most, its columns, and the largest differences.

    Those are the largest of all pairs.
    """
    worst, largest = (0, _columns(channel, *many[0])), -1.0
    apart: dict[str, float] = {}
    for k, (a, b) in enumerate(many):
        columns = _columns(channel, a, b)
        here = {key: _apart(a.t, b.t, values) for key, values in columns.items()}
        size = max((_relative(columns[key], d) for key, d in here.items() if d != 0.0), default=0.0)
        if size > largest:
            worst, largest = (k, columns), size
        apart = {key: float(np.fmax(apart.get(key, d), d)) for key, d in here.items()}
    return *worst, apart


def _of_many(lead: str, a: Run, b: Run, count: int) -> str:
    """Return which trajectories are compared."""
    sizes = " and ".join(str(run.batch or 1) for run in (a, b))
    first = f"the first {count}" if (a.batch or 1) != (b.batch or 1) else f"all {count}"
    return (
        f"{lead}the runs have {sizes} trajectories; {first} are compared one by one, and figures "
        "show the one that differs most."
    )


def _shared(a: Run, b: Run) -> list[Channel]:
    shapes = {channel.key: channel.columns for channel in b.channels}
    return [
        channel
        for channel in a.channels
        if channel.group != "reference" and shapes.get(channel.key) == channel.columns
    ]


def _columns(channel: Channel, a: Run, b: Run) -> Columns:
    arrays = [_array(channel, run).reshape(len(run), -1) for run in (a, b)]
    return {column: (arrays[0][:, i], arrays[1][:, i]) for i, column in enumerate(channel.columns)}


def _array(channel: Channel, run: Run) -> np.ndarray:
    if channel.group == "state":
        return {"x": run.x, "v": run.v, "u": run.u}[channel.name]
    return run.signals[channel.name]


def _title(channel: Channel) -> str:
    words = {"x": "Configuration", "v": "Velocity", "u": "Input"}
    name = channel.name.replace("_", " ")
    return words.get(channel.name, name) if channel.group == "state" else name


def _label(column: str) -> str:
    """Return a column as people read it: "e (rad)" for "signals.e [rad]"."""
    name, _, unit = column.replace("signals.", "").partition(" [")
    return f"{name} ({unit.rstrip(']')})" if unit else name


def _relative(values: tuple[np.ndarray, np.ndarray], apart: float) -> float:
    """Return a difference by the size of what differs; one that is not known counts most."""
    size = max(float(np.nanmax(np.abs(v), initial=0.0)) for v in values)
    return apart / size if np.isfinite(apart) and size > 0 else np.inf


def _overlays(
    title: str,
    channel: Channel,
    labels: tuple[str, str],
    runs: tuple[Run, Run],
    columns: Mapping[str, tuple[np.ndarray, np.ndarray]],
) -> list[Figure]:
    """Return one figure of a quantity for each of its units, with both runs in it."""
    if not columns or channel.size > MOST:
        return []
    by_unit: dict[str, list[Line]] = {}
    for column, values in columns.items():
        name, _, unit = _label(column).rpartition(" (")
        name = (name or unit).removeprefix(f"{channel.name}.")
        # The second has the colour of the first where its name begins with that one's.
        both = (name, f"{name} {labels[1]}") if channel.size > 1 else labels
        by_unit.setdefault(unit.rstrip(")") if name != unit else "", []).extend(
            Line(both[k], run.t, values[k], dashed=k == 1) for k, run in enumerate(runs)
        )
    labels_of = {unit: f"{channel.name} ({unit})" if unit else channel.name for unit in by_unit}
    return [
        Figure(title, "time (s)", labels_of[unit], tuple(lines)) for unit, lines in by_unit.items()
    ]


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
    def row(d: Difference) -> tuple[str, ...]:
        change = "" if d.change is None else f"{d.change:+.4g}"
        return d.name, _text(d.first), _text(d.second), change

    head = ("", *labels, "difference")
    apart = sorted((d for d in differences if d.first != d.second), key=_share, reverse=True)
    same = [d for d in differences if d.first == d.second]
    other = {name: value for name, value in signals.items() if value != 0.0}
    equal = tuple((name, "no difference") for name, value in signals.items() if value == 0.0)
    return (
        Table("Metrics that differ", head, tuple(map(row, apart))),
        Table("Recorded columns that differ", ("", "largest difference"), tuple(other.items())),
        Table("Metrics that are the same", head, tuple(map(row, same)), folded=True),
        Table("Recorded columns that are the same", ("", ""), equal, folded=True),
    )


def _share(difference: Difference) -> float:
    """Return a difference by the larger of both numbers; other things count most."""
    if difference.change is None:
        return np.inf
    size = max(abs(float(difference.first)), abs(float(difference.second)))
    return abs(difference.change) / size if size > 0 else 0.0


def _text(value: Any) -> str:
    return "–" if value is None else number(value)


def _number(value: Any) -> float | None:
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else None
