"""The command `framefree`.

Each command imports what it needs when it runs, so that `framefree --help` answers at once.
"""

import json
import sys
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.table import Table
from rich.text import Text

from framefree import __version__
from framefree.cli.arguments import (
    AsJson,
    Base,
    LeftOut,
    MachineName,
    PackageFolders,
    ScenarioCommand,
    is_model,
    is_python,
    machine_of,
    own_machine,
    scenario_of,
    task_of,
)
from framefree.cli.bench import bench
from framefree.cli.campaign import campaign
from framefree.cli.compare import compare
from framefree.cli.export import export
from framefree.cli.printing import err, first_line, out, print_result, rows_of
from framefree.cli.view import view
from framefree.errors import FramefreeError, FramefreeWarning

if TYPE_CHECKING:
    from framefree.identify import Fit

app = typer.Typer(
    name="framefree",
    help="Rigid-body machines: equations of motion, control and simulation in every frame.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)


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


app.command(cls=ScenarioCommand)(campaign)
app.command(cls=ScenarioCommand)(export)


def _marked(scenario: Any) -> str:
    """Return what a scenario is, and the extras that it needs."""
    extras = "".join(f" [{extra}]" for extra in scenario.extras)
    return scenario.summary() + extras


@app.command("list")
def list_(as_json: AsJson = False) -> None:
    """List the gallery: scenarios that `run` takes, and machines."""
    from framefree.gallery import MACHINES
    from framefree.gallery.scenarios import SCENARIOS

    scenarios = {name: _marked(scenario) for name, scenario in SCENARIOS.items()}
    machines = {name: first_line(make.__doc__) for name, make in MACHINES.items()}
    if as_json:
        print(json.dumps({"scenarios": scenarios, "machines": machines}, indent=2))
        return
    for title, entries in (("scenarios", scenarios), ("machines", machines)):
        table = Table(title=title, title_justify="left", box=None, show_header=False)
        table.add_column(style="bold", no_wrap=True)
        table.add_column()
        for name, words in entries.items():
            table.add_row(Text(name), Text(words))
        out.print(table)
        out.print()
    out.print(
        "framefree run NAME runs a scenario; one with [EXTRA] needs: "
        'pip install "framefree[EXTRA]"',
        markup=False,
    )
    out.print("framefree show NAME draws a machine; check and export take the same names.")


@app.command(cls=ScenarioCommand)
def run(
    name: Annotated[str, typer.Argument(help="A scenario of the gallery: see `framefree list`.")],
    settings: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="KEY=VALUE", help="Change a setting; may be repeated."),
    ] = None,
    plant: Annotated[str | None, typer.Option(help="native or mujoco.")] = None,
    folder: Annotated[
        Path | None,
        typer.Option(
            "--out", help="New folder for the results; default runs/NAME, then runs/NAME-2, ..."
        ),
    ] = None,
    replace: Annotated[
        bool,
        typer.Option("--replace", help="Replace results in that folder once the new are complete."),
    ] = False,
    as_json: AsJson = False,
    show_report: Annotated[
        bool, typer.Option("--open/--no-open", help="Open the report in a browser.")
    ] = False,
) -> None:
    """Run a scenario; write its report, metrics and records; exit code 1 if it fails."""
    from framefree.gallery.shared.results import run_into

    scenario = scenario_of(name, settings or [], plant)
    if not as_json:
        err.print(f"running {name} ...", style="dim", highlight=False)
    wanted = folder or Path("runs") / name
    result = run_into(
        scenario,
        wanted,
        progress=False if as_json else None,
        replace=replace,
        number=folder is None and not replace,
    )
    if result.folder is not None and result.folder != wanted:
        err.print(f"results: {result.folder}", highlight=False, markup=False, soft_wrap=True)
    if as_json:
        print(json.dumps(result.metrics, indent=2))
    else:
        print_result(result)
    if result.report is not None and show_report:
        import webbrowser

        webbrowser.open(result.report.resolve().as_uri())
    raise typer.Exit(130 if result.interrupted else 0 if result.ok else 1)


app.command()(compare)


@app.command()
def show(
    machine: MachineName,
    base: Base = None,
    picture: Annotated[
        Path | None, typer.Option(help="Where to draw it; default its name with .svg.")
    ] = None,
    packages: PackageFolders = None,
    without: LeftOut = None,
) -> None:
    """Print a machine as a tree and draw it."""
    from framefree.files import check_place
    from framefree.look import describe, draw

    path = picture or Path(f"{Path(machine).stem}.svg")
    check_place(path, guard=True)
    subject = machine_of(machine, base, packages, without)
    out.print(describe(subject))
    draw(subject, path)
    out.print(f"drawn in {path}", highlight=False)


app.command()(view)


@app.command()
def check(
    machine: MachineName,
    base: Base = None,
    thorough: Annotated[
        bool, typer.Option(help="Compare also what takes minutes for a large machine.")
    ] = False,
    parametrisation: Annotated[
        list[str] | None,
        typer.Option(
            help="Compare Coriolis matrices and coordinates: skew, kirchhoff, adjoint, quasi, "
            "christoffel, euler, printed, quaternion, task, task_euler, or all; may be repeated."
        ),
    ] = None,
    frame: Annotated[
        str | None, typer.Option(help="End frame of the parametrisations task and task_euler.")
    ] = None,
    delta: Annotated[
        float | None,
        typer.Option(help="Bounds of M in Euler angles, this far (rad) from pitch 90 degrees."),
    ] = None,
    length: Annotated[
        float | None,
        typer.Option(help="Unit of length (m) for linear velocities: M is then all in kg m^2."),
    ] = None,
    packages: PackageFolders = None,
    without: LeftOut = None,
    page: Annotated[
        Path | None, typer.Option("--report", help="Write the findings as an HTML file.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Measure what control proofs rest on; exit code 1 when something fails."""
    from framefree.certify import check as examine
    from framefree.files import check_place

    if page is not None:
        check_place(page, guard=True)
    subject: Any = machine
    more: dict[str, Any] = {}
    if is_python(machine):
        own = own_machine(machine, base, packages, without)
        subject, more = own.machine, own.matrices
    elif is_model(machine):
        more = {"base": base, "packages": packages, "without": without or ()}
    else:
        subject = machine_of(machine, base, packages, without)
    report = examine(
        subject,
        thorough=thorough,
        parametrisations=parametrisation or (),
        frame=frame,
        delta=delta,
        length=length,
        progress=not as_json,
        **more,
    )
    if page is not None:
        from framefree.look.report import write
        from framefree.look.report.checked import check_page

        shown = subject if is_python(machine) else machine_of(machine, base, packages, without)
        write(check_page(report, shown), page)
    if as_json:
        print(json.dumps(report.to_dict(), indent=2))
    else:
        out.print(report.table())
        if page is not None:
            out.print(f"report: {page}", highlight=False)
    raise typer.Exit(0 if report.ok else 1)


@app.command()
def identify(
    machine: MachineName,
    data: Annotated[
        list[Path], typer.Argument(help="CSV or Parquet files, or folders of saved runs.")
    ],
    folder: Annotated[Path, typer.Option("--out", help="Folder for the results.")],
    unknown: Annotated[
        list[str] | None,
        typer.Option(
            help="What is not known: bodies, friction, damping, armature, a body, or a path such "
            "as link3.mass; may be repeated. Default: all of a driven arm."
        ),
    ] = None,
    cutoff: Annotated[
        float | None,
        typer.Option(help="Of the filter on both sides, Hz; default a tenth of the rate, or 10."),
    ] = None,
    delay: Annotated[bool, typer.Option(help="Whether forces may act later than recorded.")] = True,
    column: Annotated[
        list[str] | None,
        typer.Option(metavar="OURS=THEIRS", help="A column's name in the file; may be repeated."),
    ] = None,
    held_back: Annotated[
        float, typer.Option(help="Share at the end of each file that only judges the fit.")
    ] = 0.2,
    base: Base = None,
    packages: PackageFolders = None,
    without: LeftOut = None,
    as_json: AsJson = False,
) -> None:
    """Fit what is not known of a machine to recorded motions; exit code 1 when in doubt."""
    from framefree.identify import fit, results
    from framefree.identify.files import recordings
    from framefree.identify.fitting import UNKNOWN
    from framefree.look.report import write
    from framefree.look.report.identified import fit_page

    subject = machine_of(machine, base, packages, without)
    used, tests, chosen = recordings(data, subject, column or [], held_back, cutoff)
    found = fit(subject, used, unknown or UNKNOWN, cutoff=chosen, delay=delay, test=tests)
    results.write(found, folder)
    page = write(fit_page(found), folder / "report.html")
    if as_json:
        print(json.dumps(results.to_dict(found), indent=2))
    else:
        _print_fit(found)
        out.print(f"report: {page}", highlight=False, markup=False, soft_wrap=True)
    raise typer.Exit(1 if found.doubts else 0)


def _print_fit(found: "Fit") -> None:
    from framefree.look.report.identified import base_table, residual_table

    out.print(rows_of(residual_table({"used": found.training, "not used": found.test})))
    out.print(rows_of(base_table(found)))
    delay = f"{1e3 * found.delay:.4g} ms (deviation {1e3 * found.delay_deviation:.2g} ms)"
    out.print(f"delay of the forces: {delay}", highlight=False)
    for doubt in found.doubts:
        err.print(doubt, style="bold red", highlight=False, markup=False, soft_wrap=True)


@app.command()
def learn(
    name: Annotated[str, typer.Argument(help="A scenario that declares what is to be learned.")],
    folder: Annotated[
        Path, typer.Option("--out", help="Folder for the rounds; one with rounds is continued.")
    ],
    rounds: Annotated[int, typer.Option(help="How many rounds there are to be in all.")] = 6,
    settings: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="KEY=VALUE", help="Change a setting; may be repeated."),
    ] = None,
    plant: Annotated[str | None, typer.Option(help="native or mujoco.")] = None,
    as_json: AsJson = False,
) -> None:
    """Learn what the equations lack: run, collect, learn, run again where least is known."""
    from framefree.learn import learn_in_rounds
    from framefree.look.report import write
    from framefree.look.report.learned import learning_page, rounds_table

    task = task_of(name, settings or [], plant)
    history = learn_in_rounds(
        task,
        folder,
        rounds=rounds,
        progress=False if as_json else None,
        tell=lambda words: err.print(words, style="dim", highlight=False, markup=False),
    )
    page = write(learning_page(history), folder / "report.html") if history.rounds else None
    if as_json:
        print(json.dumps(history.to_dict(), indent=2))
    elif page is not None:
        out.print(rows_of(rounds_table(history.rounds)))
        if history.model is not None:
            out.print(f"model: {folder / 'model.npz'}", highlight=False, soft_wrap=True)
        out.print(f"report: {page}", highlight=False, markup=False, soft_wrap=True)
    if history.interrupted:
        err.print("interrupted; the same command continues after the last round", style="bold red")
    raise typer.Exit(130 if history.interrupted else 0)


app.command()(bench)


def _one_line(message: Any, category: type[Warning], *place: Any) -> str:
    """Return a warning of ours without the place in the code from which it came."""
    if issubclass(category, FramefreeWarning):
        return f"warning: {message}\n"
    return _USUAL_FORMAT(message, category, *place)


_USUAL_FORMAT = warnings.formatwarning


def main() -> None:
    """Run the command line; mistakes end with a message and exit code 2, never a traceback."""
    warnings.formatwarning = _one_line
    try:
        app()
    except FramefreeError as error:
        err.print("error:", style="bold red", end=" ")
        err.print(str(error), highlight=False, markup=False, soft_wrap=True)
        sys.exit(2)
    except KeyboardInterrupt:
        err.print("interrupted", style="bold red")
        sys.exit(130)
    except OSError as error:
        words = "no such file" if isinstance(error, FileNotFoundError) else error.strerror or error
        err.print(f"error: {words}: {error.filename}", style="bold red", highlight=False)
        sys.exit(2)
