"""The command `framefree`.

Each command imports what it needs when it runs, so that `framefree --help` answers at once.
"""

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console
from rich.table import Table

from framefree import __version__
from framefree.errors import FramefreeError

if TYPE_CHECKING:
    from framefree.machine import Machine

app = typer.Typer(
    name="framefree",
    help="Rigid-body machines: equations of motion, control and simulation in every frame.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)
out = Console()
err = Console(stderr=True)

AsJson = Annotated[bool, typer.Option("--json", help="Print JSON for scripts.")]
Base = Annotated[str | None, typer.Option(help="What holds the root link: fixed or free.")]
MachineName = Annotated[
    str, typer.Argument(help="A URDF or MJCF file, or a machine of the gallery such as iiwa.")
]


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
def show(
    machine: MachineName,
    base: Base = None,
    picture: Annotated[
        Path | None, typer.Option(help="Where to draw it; default its name with .svg.")
    ] = None,
    packages: Annotated[
        list[Path] | None, typer.Option(help="Folders that hold packages of meshes.")
    ] = None,
) -> None:
    """Print a machine as a tree and draw it."""
    from framefree.machine import show as shown

    found = _machine(machine, base, packages)
    out.print(shown.describe(found))
    path = picture or Path(f"{Path(machine).stem}.svg")
    shown.draw(found, path)
    out.print(f"drawn in {path}", highlight=False)


@app.command()
def check(
    machine: MachineName,
    base: Base = None,
    thorough: Annotated[
        bool, typer.Option(help="Compare also what takes minutes for a large machine.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Measure what control proofs rest on; exit code 1 when something fails."""
    from framefree.certify import check as examine

    subject = machine if Path(machine).exists() else _machine(machine, base)
    reading: dict[str, Any] = {"base": base} if subject is machine else {}
    report = examine(subject, thorough=thorough, progress=not as_json, **reading)
    if as_json:
        print(json.dumps(report.to_dict(), indent=2))
    else:
        out.print(report.table())
    raise typer.Exit(0 if report.ok else 1)


@app.command()
def export(
    machine: MachineName,
    quantity: Annotated[str, typer.Argument(help="forward, inverse, mass, coriolis, ...")],
    base: Base = None,
    formulation: Annotated[str, typer.Option(help="tree, maximal, ...")] = "tree",
    folder: Annotated[Path, typer.Option("--out", help="Folder for the C files.")] = Path(),
) -> None:
    """Write a quantity of a machine's equations as C source with a header."""
    from framefree.motion import equations

    eom = equations(_machine(machine, base), formulation)
    for path in eom.kernel(quantity).c_source().write(folder):
        out.print(f"written: {path}", highlight=False)


@app.command()
def bench(
    name: Annotated[str, typer.Argument(help="kernel, dynamics, ...")],
    as_json: AsJson = False,
) -> None:
    """Measure speed as ratios against a peer library, in one run."""
    from framefree.benchmarks import BENCHMARKS

    if name not in BENCHMARKS:
        raise FramefreeError(
            f"there is no benchmark `{name}`; choose one of: {', '.join(BENCHMARKS)}"
        )
    figures = BENCHMARKS[name]()
    if as_json:
        print(json.dumps(figures, indent=2))
    else:
        out.print(_table(f"framefree bench {name}", figures))


def _machine(name: str, base: str | None, packages: list[Path] | None = None) -> "Machine":
    """Read a file, or take a machine of the gallery by its name."""
    from framefree.gallery import MACHINES
    from framefree.machine.read import read

    if name in MACHINES and not Path(name).exists():
        return MACHINES[name]()
    if not Path(name).exists() and not Path(name).suffix:
        raise FramefreeError(
            f"`{name}` is neither a file nor a machine of the gallery, which has: "
            + ", ".join(MACHINES)
        )
    return read(name, base=base, packages=packages)


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
        err.print("error:", style="bold red", end=" ")
        err.print(str(error), highlight=False, markup=False, soft_wrap=True)
        sys.exit(2)
    except FileNotFoundError as error:
        err.print(f"error: no such file: {error.filename}", style="bold red", highlight=False)
        sys.exit(2)


if __name__ == "__main__":
    main()
