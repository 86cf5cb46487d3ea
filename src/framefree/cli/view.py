"""`framefree view`: a machine, or a run, in a page of the browser."""

import json
from pathlib import Path
from typing import Annotated, Any

import typer

from framefree.cli.arguments import Base, LeftOut, PackageFolders, is_model, machine_of
from framefree.cli.printing import err, out
from framefree.errors import FramefreeError, near


def view(
    name: Annotated[
        str,
        typer.Argument(
            help="A machine of the gallery, a model file, a Python file that defines `machine`, or "
            "the folder (or Parquet file) of a run."
        ),
    ],
    live: Annotated[
        bool,
        typer.Option(
            "--live", help="Run it in real time: drag the handle, grab bodies, set gains."
        ),
    ] = False,
    frame: Annotated[str, typer.Option(help="What follows the handle; default the end.")] = "",
    base: Base = None,
    packages: PackageFolders = None,
    without: LeftOut = None,
    host: Annotated[
        str,
        typer.Option(
            help="Address to listen at. Others than this computer can then see and move the "
            "machine: there is no password."
        ),
    ] = "127.0.0.1",
    port: Annotated[int, typer.Option(help="The next free one from here on.")] = 8080,
    seconds: Annotated[
        float | None, typer.Option(help="Close the page after so long; default on Ctrl-C.")
    ] = None,
    open_browser: Annotated[
        bool, typer.Option("--open/--no-open", help="Open the page in a browser.")
    ] = True,
) -> None:
    """Show a machine or a run in a page that moves; Ctrl-C ends it."""
    from framefree.look.view import view as show
    from framefree.look.view.page import what_host_means

    subject = _subject(name, base, packages, without)
    if frame and not live:
        raise FramefreeError("`--frame` says what follows the handle of a live view: add `--live`")
    words = what_host_means(host)
    if words:
        err.print(f"warning: {words}", style="bold yellow", highlight=False, soft_wrap=True)
    options: dict[str, Any] = {"live": live, "frame": frame} if live else {}
    page = show(subject, host=host, port=port, open_browser=open_browser, **options)
    out.print(f"{page.url}  (Ctrl-C ends it)", highlight=False, soft_wrap=True)
    page.wait(seconds)


def _subject(
    name: str, base: str | None, packages: list[Path] | None, without: list[str] | None
) -> Any:
    """Return the machine or the run that a name means."""
    from framefree.gallery import MACHINES
    from framefree.gallery.scenarios import SCENARIOS

    path = Path(name)
    if path.is_dir() or path.suffix == ".parquet":
        return _run(path)
    if name not in MACHINES and not is_model(name):
        if name in SCENARIOS:
            folder = Path("runs") / name
            if folder.is_dir():
                return _run(folder)
            raise FramefreeError(
                f"`{name}` is a scenario that has not run here: `framefree run {name}`, then "
                f"`framefree view {folder}`"
            )
        raise FramefreeError(
            f"`{name}` is neither a file, nor the folder of a run, nor a machine of the gallery; "
            f"{near(name, (*MACHINES, *SCENARIOS))}the gallery has: {', '.join(MACHINES)}"
        )
    return machine_of(name, base, packages, without)


def _run(path: Path) -> Any:
    """Return the run in a folder; the first where a scenario has written several."""
    from framefree.simulate import Run

    if not path.is_dir() or (path / "run.parquet").exists():
        return Run.load(path)
    tables = _in_order(path)
    if not tables:
        return Run.load(path)
    if len(tables) > 1:
        others = ", ".join(table.name for table in tables[1:])
        words = f"showing {tables[0].name}; for another: framefree view {path}/NAME ({others})"
        err.print(words, style="dim", highlight=False, soft_wrap=True)
    return Run.load(tables[0])


def _in_order(folder: Path) -> list[Path]:
    """Return the runs in a folder, in the order in which a scenario names them in its manifest."""
    tables = {table.stem: table for table in sorted(folder.glob("*.parquet"))}
    try:
        names = json.loads((folder / "manifest.json").read_text(encoding="utf-8"))["runs"]
        first = [name for name in names if name in tables]
    except (OSError, ValueError, LookupError, TypeError):
        first = []
    return [tables[name] for name in dict.fromkeys([*first, *tables])]
