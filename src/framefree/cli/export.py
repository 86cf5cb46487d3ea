"""The command `framefree export`."""

from pathlib import Path
from typing import Annotated, Any

import typer

from framefree.cli.arguments import (
    Base,
    LeftOut,
    PackageFolders,
    machine_of,
    scenario_of,
)
from framefree.cli.printing import err, out
from framefree.errors import FramefreeError, near

BLOCKS = ("law", "plant", "loop")
FORMATS = ("c", "fmu")


def export(
    name: Annotated[
        str, typer.Argument(help="A scenario (for law, plant, loop), a machine or a model file.")
    ],
    what: Annotated[
        str, typer.Argument(help="law, plant or loop; or a quantity: forward, inverse, mass, ...")
    ],
    folder: Annotated[
        Path | None,
        typer.Option("--out", help="Folder to write to; default here, or NAME-WHAT."),
    ] = None,
    form: Annotated[str, typer.Option("--format", help="c or fmu.")] = "c",
    key: Annotated[
        str, typer.Option("--run", help="Which run; default the one that the promises judge.")
    ] = "",
    single: Annotated[
        bool, typer.Option("--single", help="Single precision; the report says what is lost.")
    ] = False,
    steps: Annotated[
        int | None,
        typer.Option(help="Of the test-bench; default those of the run, at most 10,000.", min=1),
    ] = None,
    own_name: Annotated[
        str | None,
        typer.Option("--name", help="Of the functions in C; default controller, mass, ..."),
    ] = None,
    settings: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="KEY=VALUE", help="Change a setting; may be repeated."),
    ] = None,
    plant: Annotated[str | None, typer.Option(help="native or mujoco.")] = None,
    base: Base = None,
    formulation: Annotated[str, typer.Option(help="tree, maximal, ...")] = "tree",
    packages: PackageFolders = None,
    without: LeftOut = None,
) -> None:
    """Write law, plant or loop of a scenario, or a quantity of a machine, as C source or an FMU."""
    if form not in FORMATS:
        raise FramefreeError(f"`--format` must be one of {', '.join(FORMATS)}, got `{form}`")
    if what in BLOCKS:
        others: dict[str, Any] = {"--base": base, "--formulation": formulation != "tree"}
        others |= {"--packages": packages, "--without": without}
        _refuse(others, f"for quantities of a machine, not for `{what}`")
        target = folder or Path(f"{name}-{what}")
        options = {"key": key, "single": single, "own_name": own_name, "steps": steps}
        _export_scenario(scenario_of(name, settings or [], plant), what, target, form, **options)
        return
    if asked := near(what, BLOCKS):
        raise FramefreeError(f"there is nothing called `{what}` to export; {asked}".rstrip())
    others = {"--format fmu": form != "c", "--run": key, "--single": single, "--steps": steps}
    others |= {"--set": settings, "--plant": plant}
    _refuse(others, f"for law, plant and loop of a scenario, not for `{what}`")
    machine = machine_of(name, base, packages, without)
    _export_quantity(machine, what, formulation, folder or Path(), own_name)


def _refuse(options: dict[str, Any], words: str) -> None:
    """Refuse options that are for something else."""
    for option, used in options.items():
        if used:
            raise FramefreeError(f"`{option}` is {words}")


def _export_quantity(
    machine: Any, quantity: str, formulation: str, folder: Path, own_name: str | None
) -> None:
    from framefree.export.struct_c import check_name
    from framefree.files import check_place
    from framefree.motion import equations

    if own_name is not None:
        check_name(own_name)
    check_place(folder / f"{own_name or quantity}.c", guard=True)
    eom = equations(machine, formulation)
    for path in eom.kernel(quantity).c_source(own_name).write(folder):
        out.print(f"written: {path}", highlight=False, soft_wrap=True)


def _export_scenario(
    scenario: Any,
    what: str,
    folder: Path,
    form: str,
    *,
    key: str,
    single: bool,
    own_name: str | None,
    steps: int | None,
) -> None:
    from framefree.export import PARTS, export_c, export_fmu
    from framefree.export.compiler import compiler, missing_compiler, needed_compiler
    from framefree.export.project import SHARED
    from framefree.export.struct_c import check_name
    from framefree.files import check_place
    from framefree.gallery.shared.results import outcome_of

    in_c = PARTS[what][1] if own_name is None else own_name
    check_name(in_c)
    for option, used in (("--single", single), ("--steps", steps)):
        if form == "fmu" and used:
            raise FramefreeError(f"FMUs have doubles and no test-bench: leave out `{option}`")
    if single:
        needed_compiler("`--single`, which is measured,")
    title = f"{scenario.name}-{what}"
    written = (f"{in_c}.c", *SHARED) if form == "c" else (f"{title}.fmu", f"{title}-fmi2.fmu")
    for own in written:
        check_place(folder / own, guard=True)
    err.print(f"running {scenario.name} ...", style="dim", highlight=False)
    run = outcome_of(scenario).run_named(key or scenario.judged)
    if form == "fmu":
        paths = export_fmu(run, what, folder, name=own_name, title=title)
        if compiler() is None:
            words = f"{missing_compiler()} not installed: the FMUs hold sources and no binary"
            err.print(words, highlight=False, markup=False, soft_wrap=True)
    else:
        result = export_c(run, what, folder, name=own_name, single=single, steps=steps)
        paths = result.paths
        if result.report is not None:
            out.print(result.report.text(), highlight=False, markup=False)
    for path in paths:
        out.print(f"written: {path}", highlight=False, soft_wrap=True)
