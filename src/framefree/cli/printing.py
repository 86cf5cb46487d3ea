"""What commands print: results, tables and figures."""

import inspect
import re
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

if TYPE_CHECKING:
    from framefree.gallery.shared.results import Result
    from framefree.look.report.content import Table as Rows

_SECTION = re.compile(r"\w+\n-+\n")
"""The title of a section of a docstring."""

out = Console()
err = Console(stderr=True)


def print_result(result: "Result") -> None:
    """Print promises, figures, trouble and the place of the report of a scenario."""
    if result.outcome is not None:
        for promise in result.outcome.promises:
            mark, style = ("✓", "green") if promise.holds else ("✗", "bold red")
            limit = f" ({promise.limit})" if promise.limit else ""
            words = f" {promise.text}: {promise.measured}{limit}"
            out.print(Text(mark, style=style).append(words, style="default"), soft_wrap=True)
        out.print(table_of("metrics", {**result.outcome.metrics, **wall(result)}))
    if result.trouble:
        err.print(result.trouble, style="bold red", highlight=False, markup=False, soft_wrap=True)
    if result.report is not None:
        out.print(f"report: {result.report}", highlight=False, markup=False, soft_wrap=True)


def print_scenario(name: str) -> None:
    """Print what a scenario shows, and its settings with their defaults."""
    from framefree.gallery.scenarios import SCENARIOS
    from framefree.gallery.shared.scenario import Scenario
    from framefree.look.report.prose import said_of

    scenario = SCENARIOS[name]
    for paragraph in inspect.cleandoc(scenario.__doc__ or "").split("\n\n"):
        if _SECTION.match(paragraph):
            break
        out.print(Text(" ".join(paragraph.split())))
        out.print()
    out.print(f"settings of {name}, changed by --set KEY=VALUE:", highlight=False)
    words, columns = said_of(scenario, "Parameters"), ("setting", "default", "meaning")
    table = Table(*columns, box=None)
    for key, default in scenario.settings().items():
        table.add_row(Text(key, style="bold"), Text(repr(default)), Text(words.get(key, "")))
    out.print(table)
    out.print()
    table = Table("metric", "meaning", box=None, title=f"metrics of {name}", title_justify="left")
    for key, meaning in said_of(scenario, "Metrics", below=Scenario).items():
        table.add_row(Text(key, style="bold"), Text(meaning))
    out.print(table)


def wall(result: "Result") -> dict[str, Any]:
    """Return the time that a scenario took, as a figure."""
    return {"wall_seconds": result.metrics["wall_seconds"]}


def first_line(text: str | None) -> str:
    """Return what a docstring says is returned, as a sentence that begins with a capital."""
    words = (text or "").strip().partition("\n")[0].removeprefix("Return ")
    return words[:1].upper() + words[1:]


def rows_of(content: "Rows") -> Table:
    """Return a table of a report for the terminal."""
    table = Table(title=content.title, title_justify="left")
    for i, column in enumerate(content.columns):
        table.add_column(column, justify="right" if i else "left", overflow="fold")
    for row in content.rows:
        table.add_row(*(Text(f"{v:.4g}" if isinstance(v, float) else str(v)) for v in row))
    return table


def table_of(title: str, figures: dict[str, Any]) -> Table:
    """Return figures by name as a table."""
    table = Table(title=title, title_justify="left")
    table.add_column("figure")
    table.add_column("value", justify="right")
    for key, value in figures.items():
        table.add_row(key, f"{value:.4g}" if isinstance(value, float) else str(value))
    return table
