"""`framefree bench`: speed against a peer in the same run, printed, or kept for a page."""

import json
import platform
import sys
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from statistics import median
from typing import Annotated, Any

import typer
from rich.table import Table

from framefree import __version__
from framefree.cli.arguments import AsJson
from framefree.cli.printing import first_line, out
from framefree.errors import FramefreeError, near

Figures = Mapping[str, Any]


def bench(
    name: Annotated[str, typer.Argument(help="kernel, dynamics, ...")],
    as_json: AsJson = False,
    repeat: Annotated[
        int, typer.Option(min=1, help="Measure several times: medians and their spread.")
    ] = 1,
    folder: Annotated[
        Path | None,
        typer.Option(
            "--out", help="Keep the figures in FOLDER/NAME.json, with machine, versions and date."
        ),
    ] = None,
) -> None:
    """Measure speed as ratios against a peer library, in one run."""
    from framefree.benchmarks import BENCHMARKS

    if name not in BENCHMARKS:
        raise FramefreeError(
            f"there is no benchmark `{name}`; {near(name, BENCHMARKS)}choose one of: "
            + ", ".join(BENCHMARKS)
        )
    measure = BENCHMARKS[name]
    runs = [_measured(measure) for _ in range(repeat)]
    figures, spread = medians(runs), spreads(runs)
    about = first_line(sys.modules[measure.__module__].__doc__)
    if folder is not None:
        _keep(folder / f"{name}.json", name, about, runs)
    if as_json:
        print(json.dumps({**figures, **({"spread": spread} if repeat > 1 else {})}, indent=2))
    else:
        out.print(about, highlight=False, markup=False)
        out.print(_table(name, figures, spread if repeat > 1 else {}))


def _measured(measure: Callable[[], Figures]) -> Figures:
    """Return the figures of one run, and on which machine it was."""
    from framefree.benchmarks.timing import circumstances

    return {**circumstances(), **measure()}


def medians(runs: Sequence[Figures]) -> dict[str, Any]:
    """Return the median of every figure; of words those of the first run."""
    return {
        key: median(run[key] for run in runs) if _is_number(value) else value
        for key, value in runs[0].items()
    }


def spreads(runs: Sequence[Figures]) -> dict[str, tuple[float, float]]:
    """Return the least and the largest value of every figure over the runs."""
    return {
        key: (min(run[key] for run in runs), max(run[key] for run in runs))
        for key, value in runs[0].items()
        if _is_number(value)
    }


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _table(name: str, figures: Figures, spread: Mapping[str, tuple[float, float]]) -> Table:
    table = Table(title=f"framefree bench {name}", title_justify="left")
    table.add_column("figure", overflow="fold")
    table.add_column("value", justify="right")
    if spread:
        table.add_column("from", justify="right")
        table.add_column("to", justify="right")
    for key, value in figures.items():
        ends = [f"{end:.4g}" for end in spread[key]] if key in spread else ["", ""]
        shown = f"{value:.4g}" if isinstance(value, float) else str(value)
        table.add_row(key, shown, *(ends if spread else []))
    return table


def _keep(path: Path, name: str, about: str, runs: Sequence[Figures]) -> None:
    """Write what was measured, where and when, and the command that repeats it."""
    from framefree.files.whole import write_file

    repeat = f" --repeat {len(runs)}" if len(runs) > 1 else ""
    record = {
        "benchmark": name,
        "about": about,
        "command": f"framefree bench {name}{repeat}",
        "date": datetime.now(UTC).date().isoformat(),
        "framefree": __version__,
        "python": platform.python_version(),
        "runs": list(runs),
    }
    write_file(path, json.dumps(record, indent=1) + "\n")
