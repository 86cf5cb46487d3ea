"""Arguments that several commands take, and what they name: machines and scenarios."""

from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer.core import TyperCommand

from framefree.cli.printing import print_scenario
from framefree.errors import FramefreeError, hint, near

if TYPE_CHECKING:
    from framefree.cli.python_file import PythonFile
    from framefree.gallery.shared.scenario import Scenario
    from framefree.learn import LearningTask
    from framefree.machine import Machine

AsJson = Annotated[bool, typer.Option("--json", help="Print JSON for scripts.")]
Base = Annotated[str | None, typer.Option(help="What holds the root link: fixed or free.")]
MachineName = Annotated[
    str,
    typer.Argument(
        help="A model file, a Python file that defines `machine`, robot_descriptions:NAME, or a "
        "machine of the gallery."
    ),
]
PackageFolders = Annotated[
    list[Path] | None,
    typer.Option("--packages", help="A folder that holds packages or models; may be repeated."),
]
LeftOut = Annotated[
    list[str] | None, typer.Option("--without", help="What to leave out; may be repeated.")
]


def is_python(name: str) -> bool:
    """Whether a name is that of a Python file."""
    return Path(name).suffix == ".py"


def is_model(name: str) -> bool:
    """Whether a name is a file, or looks like one, rather than a machine of the gallery."""
    return Path(name).is_file() or bool(Path(name).suffix) or name.startswith("robot_descriptions:")


def machine_of(
    name: str, base: str | None, packages: list[Path] | None, without: list[str] | None
) -> "Machine":
    """Read a file, or take a machine of the gallery by its name."""
    from framefree.gallery import MACHINES, gallery_machine
    from framefree.machine.read import read

    if is_python(name):
        return own_machine(name, base, packages, without).machine
    if is_model(name):
        return read(name, base=base, packages=packages, without=without or ())
    if packages or without:
        raise FramefreeError(
            f"`{name}` is no file: `--packages` and `--without` say how a file is read"
        )
    if name not in MACHINES and Path(name).is_dir():
        raise FramefreeError(f"`{name}` is a folder: give a file, or a machine of the gallery")
    if name not in MACHINES:
        raise FramefreeError(
            f"`{name}` is neither a file nor a machine of the gallery; {near(name, MACHINES)}"
            f"the gallery has: {', '.join(MACHINES)}"
        )
    return gallery_machine(name, base)


def own_machine(
    name: str, base: str | None, packages: list[Path] | None, without: list[str] | None
) -> "PythonFile":
    """Run a Python file that defines a machine."""
    from framefree.cli.python_file import python_file

    if base or packages or without:
        raise FramefreeError(
            f"`{name}` makes its machine itself: `--base`, `--packages` and `--without` say how a "
            "model file is read"
        )
    return python_file(name)


def scenario_of(name: str, settings: list[str], plant: str | None) -> "Scenario":
    """Return a scenario of the gallery with its settings."""
    from framefree.gallery import MACHINES
    from framefree.gallery.scenarios import SCENARIOS

    if name not in SCENARIOS and (name in MACHINES or is_model(name)):
        raise FramefreeError(
            f"`{name}` is a machine; this needs a scenario, which has a law and a motion too: see "
            "`framefree list`"
        )
    if name not in SCENARIOS:
        raise FramefreeError(
            f"there is no scenario `{name}`; {near(name, SCENARIOS)}the gallery has: "
            + ", ".join(SCENARIOS)
        )
    missing = SCENARIOS[name].missing()
    if missing:
        raise FramefreeError(
            f"`{name}` needs what is not installed; install it with: "
            f'pip install "framefree[{",".join(missing)}]"'
        )
    texts: dict[str, str] = {}
    for setting in settings:
        key, equals, text = setting.partition("=")
        if not equals or not key:
            raise FramefreeError(f"`--set` takes KEY=VALUE, got `{setting}`")
        texts[key.strip().replace("-", "_")] = text.strip()
    scenario = SCENARIOS[name]()
    if plant is not None:
        if "plant" not in (field.name for field in fields(scenario)):
            raise FramefreeError(f"`{name}` has no choice of plants: leave out `--plant`")
        if plant not in ("native", "mujoco"):
            question = hint(plant, ("native", "mujoco"))
            raise FramefreeError(f"`--plant` must be native or mujoco, got `{plant}`{question}")
        texts["plant"] = plant
    return scenario.with_settings(texts)


def task_of(name: str, settings: list[str], plant: str | None) -> "LearningTask":
    """Return what a scenario of the gallery has to learn in rounds."""
    from framefree.gallery.scenarios import SCENARIOS
    from framefree.gallery.shared.scenario import Scenario

    task = scenario_of(name, settings, plant).learning()
    if task is None:
        known = [k for k, kind in SCENARIOS.items() if kind.learning is not Scenario.learning]
        raise FramefreeError(
            f"`{name}` declares nothing that is to be learned; scenarios that do: "
            + ", ".join(known)
        )
    return task


class ScenarioCommand(TyperCommand):
    """A command whose first argument is a scenario: with one, `--help` lists its settings."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Look for the name of a scenario before `--help` ends everything."""
        from framefree.gallery.scenarios import SCENARIOS

        ctx.meta["scenario"] = next((word for word in args if word in SCENARIOS), None)
        return super().parse_args(ctx, args)

    def format_help(self, ctx: Any, formatter: Any) -> None:
        """Print the help of the command, and the scenario with its settings."""
        super().format_help(ctx, formatter)
        name = ctx.meta.get("scenario")
        if name is not None:
            print_scenario(name)
