"""Two runs, or two results of scenarios, side by side."""

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from framefree.look.report.apart import (
    OF_SIZE,
    OF_SPAN,
    ROUNDING,
    ComparedQuantity,
    Entry,
    quantities,
    trajectories,
)
from framefree.look.report.content import TIME_LABEL, Figure, Line, Page, ReportError, Table
from framefree.look.report.prose import metric_name, number
from framefree.simulate.folder import status_of
from framefree.simulate.place import UNFINISHED, is_header
from framefree.simulate.run import Run

MOST = 12
"""Most lines of each run in a figure: those that differ most."""
SETTING = "setting_"
"""What the keys of settings begin with."""
NAMES = {"name": "scenario", "ok": "all promises hold", "failed_promises": "promises that fail"}
"""Names of what every scenario states beside its metrics."""


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

    @property
    def share(self) -> float:
        """The change by the larger of both numbers; other things count most."""
        if self.change is None:
            return math.inf
        size = max(abs(float(self.first)), abs(float(self.second)))
        return abs(self.change) / size if size > 0 else 0.0

    @property
    def rounding(self) -> bool:
        """Whether both are numbers that differ by no more than rounding."""
        return self.change is not None and (self.share < OF_SPAN or abs(self.change) < OF_SIZE)


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


def compare(first: Record, second: Record, meanings: Mapping[str, str] | None = None) -> Comparison:
    """Return two records side by side, with figures of what differs.

    Parameters
    ----------
    first, second : Record
    meanings : dict of str to str, optional
        A sentence on metrics and settings, by their key.
    """
    labels = _labels(first, second)
    differences = tuple(
        Difference(name, first.metrics.get(name), second.metrics.get(name))
        for name in dict.fromkeys((*first.metrics, *second.metrics))
    )
    found: list[tuple[str, ComparedQuantity, Figure | None]] = []
    signals: dict[str, float] = {}
    notes: list[str] = []
    pairs = _pairs(first, second)
    for name, (a, b) in pairs.items():
        lead = f"{name}: " if len(pairs) > 1 else ""
        many = trajectories(a, b)
        for quantity in quantities(many):
            signals |= {lead + _label(entry.column): entry.apart for entry in quantity.entries}
            title = f"{lead}{quantity.name}"
            figure = _overlay(title, quantity, labels, many) if quantity.differing else None
            found.append((title, quantity, figure))
        if a.batch is not None or b.batch is not None:
            notes.append(_of_many(lead, a, b, len(many)))
    found.sort(key=lambda item: -item[1].share)
    runs = {
        f"{label}: {name}" if len(pairs) > 1 else label: run
        for name, pair in pairs.items()
        for label, run in zip(labels, pair, strict=True)
    }
    page = Page(
        title=f"{labels[0]} and {labels[1]}",
        text=(
            "Two results side by side, what differs most first; the second one dashed.\n\n"
            f"A difference counts by the span of its quantity. {ROUNDING} {_summary(found)}"
        ),
        runs=runs,
        notes=tuple(notes),
        tables=(
            *_metric_tables(labels, differences, meanings or {}),
            *_quantity_tables([(title, quantity) for title, quantity, _ in found]),
        ),
        figures=tuple(figure for _, _, figure in found if figure is not None),
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


def _of_many(lead: str, a: Run, b: Run, count: int) -> str:
    """Return which trajectories are compared."""
    sizes = " and ".join(str(run.batch or 1) for run in (a, b))
    first = f"the first {count}" if (a.batch or 1) != (b.batch or 1) else f"all {count}"
    return (
        f"{lead}the runs have {sizes} trajectories; {first} are compared one by one, and figures "
        "show the one that differs most."
    )


def _summary(found: list[tuple[str, ComparedQuantity, Figure | None]]) -> str:
    """Return how many quantities differ, in a sentence."""
    if not found:
        return "Both have recorded nothing in common."
    count, differing = len(found), sum(bool(quantity.differing) for _, quantity, _ in found)
    same = sum(quantity.same for _, quantity, _ in found)
    return (
        f"Of {count} recorded quantities {_count(differing, 'differs', 'differ')}, "
        f"{_count(count - differing - same, 'is', 'are')} equal but for rounding, and "
        f"{_count(same, 'is', 'are')} the same to the last digit; those have no figure."
    )


def _count(count: int, one: str, many: str) -> str:
    return f"{count or 'none'} {one if count < 2 else many}"


def _label(column: str) -> str:
    """Return a column as people read it: "e (rad)" for "signals.e [rad]"."""
    name, _, unit = column.replace("signals.", "").partition(" [")
    return f"{name} ({unit.rstrip(']')})" if unit else name


def _overlay(
    title: str, quantity: ComparedQuantity, labels: tuple[str, str], many: list[tuple[Run, Run]]
) -> Figure:
    """Return the figure of a quantity with both runs in it: the entries that differ most."""
    pair = many[quantity.trajectory]
    most = sorted(quantity.differing, key=lambda entry: -_known(entry))[:MOST]
    names = {entry.column for entry in most}
    shown = [entry for entry in quantity.entries if entry.column in names]
    lines = []
    for entry in shown:
        # The second has the colour of the first where its name begins with that one's.
        both = (entry.name, f"{entry.name} {labels[1]}") if len(quantity.entries) > 1 else labels
        lines += [
            Line(both[k], run.t, entry.values[k], dashed=k == 1) for k, run in enumerate(pair)
        ]
    if len(quantity.entries) > 1 and len(shown) == 1:
        title += f": {shown[0].name}"
    if len(many) > 1:
        title += f", trajectory {quantity.trajectory}"
    left = len(quantity.differing) - len(shown)
    unit = f" ({quantity.unit})" if quantity.unit else ""
    caption = f"The {len(shown)} that differ most; {left} more differ." if left else ""
    return Figure(title, TIME_LABEL, f"{quantity.symbol}{unit}", tuple(lines), caption=caption)


def _known(entry: Entry) -> float:
    return math.inf if math.isnan(entry.apart) else entry.apart


# ---------------------------------------------------------------------- tables


def _metric_tables(
    labels: tuple[str, str], differences: tuple[Difference, ...], meanings: Mapping[str, str]
) -> tuple[Table, ...]:
    """Return tables of settings and metrics, those that differ first."""

    def table(title: str, rows: list[Difference], folded: bool = False) -> Table:
        content = [_row(d, meanings.get(d.name, "")) for d in rows]
        head = ("", *labels, "difference", "meaning")
        if not any(row[-1] for row in content):
            head, content = head[:-1], [row[:-1] for row in content]
        return Table(title, head, tuple(content), folded)

    settings = [d for d in differences if d.name.startswith(SETTING)]
    metrics = [d for d in differences if d not in settings]
    # What only one has follows; the time on the clock differs always and tells least.
    metrics.sort(key=lambda d: (d.name == "wall_seconds", None in (d.first, d.second), -d.share))
    settings.sort(key=lambda d: -d.share)
    apart = [d for d in metrics if d.first != d.second and not d.rounding]
    near = [d for d in metrics if d.first != d.second and d.rounding]
    return (
        table("Settings that differ", [d for d in settings if d.first != d.second]),
        table("Metrics that differ", apart),
        table("Metrics that are equal but for rounding", near, folded=True),
        table("Metrics that are the same", [d for d in metrics if d.first == d.second], True),
        table("Settings that are the same", [d for d in settings if d.first == d.second], True),
    )


def _row(d: Difference, meaning: str) -> tuple[str, ...]:
    if d.name.startswith(SETTING):
        name, unit = d.name.removeprefix(SETTING), ""
    else:
        name, unit = (NAMES[d.name], "") if d.name in NAMES else metric_name(d.name)
    change = "" if d.change is None else f"{number(d.change, 4)} {unit}".rstrip()
    sign = "+" if d.change is not None and d.change > 0 else ""
    return name, _text(d.first, unit), _text(d.second, unit), sign + change, meaning


def _quantity_tables(found: list[tuple[str, ComparedQuantity]]) -> tuple[Table, ...]:
    """Return tables of what was recorded, what differs first."""

    def row(title: str, quantity: ComparedQuantity) -> tuple[str, ...]:
        entry, unit = quantity.farthest, quantity.unit
        if math.isnan(entry.apart):
            return title, "no time in common", "–", entry.name or "–"
        share = "–" if quantity.span == 0 else f"{number(100 * quantity.share, 3)} %"
        return title, f"{number(entry.apart, 4)} {unit}".rstrip(), share, entry.name or "–"

    def folded(title: str, rows: list[tuple[str, ComparedQuantity]]) -> Table:
        return Table(title, head, tuple(row(*item) for item in rows), folded=True)

    head = ("", "largest difference", "of its span", "where")
    apart = [item for item in found if item[1].differing]
    near = [item for item in found if not item[1].differing and not item[1].same]
    same = tuple(
        (title, f"{q.unit or 'no unit'}", f"{len(q.entries)}") for title, q in found if q.same
    )
    return (
        Table("Recorded quantities that differ", head, tuple(row(*item) for item in apart)),
        folded("Recorded quantities that are equal but for rounding", near),
        Table("Recorded quantities that are the same", ("", "unit", "entries"), same, folded=True),
    )


def _text(value: Any, unit: str) -> str:
    if value is None:
        return "–"
    if isinstance(value, bool):
        return "yes" if value else "no"
    return f"{number(value)} {unit}".rstrip() if _number(value) is not None else number(value)


def _number(value: Any) -> float | None:
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else None
