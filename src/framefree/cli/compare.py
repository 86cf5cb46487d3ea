"""The command `framefree compare`."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import typer

from framefree.cli.arguments import AsJson
from framefree.cli.printing import out, rows_of


def compare(
    first: Annotated[Path, typer.Argument(help="A folder of results, or a Parquet file.")],
    second: Annotated[Path, typer.Argument(help="Another.")],
    page: Annotated[Path, typer.Option("--out", help="HTML file to write.")] = Path("compare.html"),
    as_json: AsJson = False,
) -> None:
    """Compare two results: metrics side by side, and figures of what both recorded."""
    from framefree.files import check_place
    from framefree.look.report import write
    from framefree.look.report.compare import compare as compared
    from framefree.look.report.compare import load

    check_place(page, guard=True)
    pair = load(first), load(second)
    comparison = compared(*pair, _meanings(*(record.metrics for record in pair)))
    path = write(comparison.page, page)
    if as_json:
        print(json.dumps(comparison.to_dict(), indent=2))
        return
    for table in comparison.page.tables:
        if table.rows and not table.folded:
            out.print(rows_of(table.without("meaning")))
    out.print(f"figures: {path}", highlight=False, soft_wrap=True)


def _meanings(*found: Mapping[str, Any]) -> dict[str, str]:
    """Return what scenarios of the gallery say of their metrics and settings, by key."""
    from framefree.gallery.scenarios import SCENARIOS
    from framefree.gallery.shared.results import meanings_of

    words: dict[str, str] = {}
    for metrics in found:
        if metrics.get("name") in SCENARIOS:
            words = {**meanings_of(SCENARIOS[metrics["name"]], metrics), **words}
    return words
