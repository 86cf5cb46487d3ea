"""The command `framefree`."""

import json
import sys
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.table import Table

from framefree import __version__
from framefree.benchmarks import BENCHMARKS
from framefree.errors import FramefreeError

app = typer.Typer(
    name="framefree",
    help="Rigid-body machines: equations of motion, control and simulation in every frame.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)
out = Console()
err = Console(stderr=True)


def _print_version(wanted: bool) -> None:
    if wanted:
        out.print(f"framefree {__version__}", highlight=False)
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool,
        typer.Option(
            "--version", callback=_print_version, is_eager=True, help="Print the version."
        ),
    ] = False,
) -> None:
    pass


@app.command()
def bench(
    name: Annotated[str, typer.Argument(help=f"One of: {', '.join(BENCHMARKS)}.")],
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON for scripts.")] = False,
) -> None:
    """Measure speed as ratios against a peer library, in one run."""
    if name not in BENCHMARKS:
        raise FramefreeError(
            f"there is no benchmark `{name}`; choose one of: {', '.join(BENCHMARKS)}"
        )
    figures = BENCHMARKS[name]()
    if as_json:
        print(json.dumps(figures, indent=2))
    else:
        out.print(_table(f"framefree bench {name}", figures))


def _table(title: str, figures: dict[str, Any]) -> Table:
    table = Table(title=title, title_justify="left")
    table.add_column("figure")
    table.add_column("value", justify="right")
    for key, value in figures.items():
        table.add_row(key, f"{value:.4g}" if isinstance(value, float) else str(value))
    return table


def main() -> None:
    """Run the command line; mistakes end with a message and exit code 2, never a traceback."""
    try:
        app()
    except FramefreeError as error:
        err.print(f"[bold red]error:[/] {error}", highlight=False, soft_wrap=True)
        sys.exit(2)


if __name__ == "__main__":
    main()
