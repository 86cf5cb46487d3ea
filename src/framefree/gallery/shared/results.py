"""Running a scenario into a folder: its report, its metrics, its runs."""

import json
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from time import monotonic
from typing import Any

import numpy as np

from framefree.errors import FramefreeError
from framefree.files import write_file
from framefree.gallery.shared.scenario import Outcome, Scenario
from framefree.look.report import Page, Setting, default_animation, default_figures, write
from framefree.look.report.prose import metric_meanings, said_of
from framefree.look.report.scene import one_trajectory
from framefree.simulate import Run, SimulationError
from framefree.simulate.folder import ResultFolder, new_folder
from framefree.simulate.place import RunPlace
from framefree.simulate.progress import finishing
from framefree.simulate.run import watching

Recorded = list[tuple[Run, RunPlace | None]]
"""Runs in the order in which they ended, and where they were written."""
UNEVALUATED = (ArithmeticError, LookupError, ValueError)
"""What metrics raise where there is nothing to evaluate."""


@dataclass(frozen=True)
class Result:
    """What came of a scenario.

    Attributes
    ----------
    metrics : dict
        As in metrics.json.
    outcome : Outcome or None
        None if the scenario broke off.
    report : Path or None
        None if nothing was recorded.
    folder : Path or None
        Where the results are; None if nothing was recorded.
    trouble : str
        Why it broke off.
    interrupted : bool
        Whether it was Ctrl-C.
    """

    metrics: dict[str, Any]
    outcome: Outcome | None
    report: Path | None
    folder: Path | None = None
    trouble: str = ""
    interrupted: bool = False

    @property
    def ok(self) -> bool:
        """Whether the scenario came to its end and all its promises hold."""
        return self.outcome is not None and self.outcome.ok


def run_into(
    scenario: Scenario,
    folder: Path,
    progress: bool | None = None,
    *,
    replace: bool = False,
    number: bool = False,
) -> Result:
    """Run a scenario and write report.html, metrics.json, and each run as NAME.parquet and .json.

    Runs are written as they go. A scenario that Ctrl-C ends, in which a value is no longer finite,
    or that cannot evaluate its runs with the settings it was given, leaves what was recorded, and a
    report of that. The manifest is written last and says how it ended.

    Parameters
    ----------
    scenario : Scenario
    folder : Path
        A folder that is new or empty.
    progress : bool, optional
        As in `simulate`.
    replace : bool
        Replace results that are in the folder, as soon as the new ones are complete.
    number : bool
        Take NAME-2, NAME-3, ... where the folder has results.
    """
    about = {"scenario": scenario.name}
    about |= {f"setting_{s.name.lower()}": _plain(s.value) for s in settings_of(scenario)}
    place = new_folder(folder, about) if number else ResultFolder(folder, replace, about)
    try:
        return _run(scenario, place, progress)
    finally:
        place.give_up()


def _run(scenario: Scenario, place: ResultFolder, progress: bool | None) -> Result:
    """Run a scenario in a folder that was taken for it."""
    seen: Recorded = []

    def keep(run: Run, at: RunPlace | None) -> None:
        seen.append((run, at))
        if run.status == "interrupted":
            raise KeyboardInterrupt

    begin = monotonic()
    outcome, trouble, interrupted = None, "", False
    try:
        with watching(keep, place.work):
            outcome = scenario.run(progress)
    except KeyboardInterrupt:
        trouble, interrupted = "Interrupted: this is what was recorded until then.", True
    except SimulationError as error:
        if error.run is None:
            raise
        trouble = str(error)
    except UNEVALUATED as error:
        trouble = _cannot_evaluate(scenario, error)
        if not seen:
            raise FramefreeError(trouble) from error
    seconds = round(monotonic() - begin, 6)
    metrics = metrics_of(scenario, outcome, seconds)
    if outcome is None and not seen:
        return Result(metrics, None, None, None, trouble, interrupted)
    with finishing():
        page = _write(scenario, place, outcome, seen, trouble, metrics)
        status = "finished" if outcome is not None else "interrupted" if interrupted else "failed"
        final = place.finish(status)
    return Result(metrics, outcome, final / page.name, final, trouble, interrupted)


def _write(
    scenario: Scenario,
    place: ResultFolder,
    outcome: Outcome | None,
    seen: Recorded,
    trouble: str,
    metrics: dict[str, Any],
) -> Path:
    """Write what a scenario gave, or the runs seen until it broke off; return its page."""
    if outcome is None:
        names = ["run"] if len(seen) == 1 else [f"run-{i}" for i in range(len(seen))]
        runs = {name: run for name, (run, _) in zip(names, seen, strict=True)}
        page = _page_of_runs(scenario, runs, trouble)
    else:
        runs, page = outcome.runs, page_of(scenario, outcome, metrics["wall_seconds"])
    _name_runs(place.work, runs, seen)
    place.about = {**place.about, "runs": list(runs)}
    text = json.dumps(metrics, indent=2, allow_nan=False)
    write_file(place.work / "metrics.json", text + "\n")
    return write(page, place.work / "report.html")


def _name_runs(folder: Path, runs: Mapping[str, Run], seen: Recorded) -> None:
    """Give the runs that were written as they went their names; remove those that have none."""
    recorded = {id(run): at for run, at in seen if at is not None}
    for name, run in runs.items():
        at = recorded.pop(id(run), None)
        if at is None:
            run.save(folder / f"{name}.parquet")
        else:
            at.rename(name)
    for at in recorded.values():
        at.clear()


def outcome_of(scenario: Scenario, progress: bool | None = None) -> Outcome:
    """Run a scenario for the sake of its runs; nothing is written.

    Ctrl-C ends it, since a run that was interrupted must not be taken for a whole one. Settings
    with which it cannot be evaluated are refused.
    """

    def keep(run: Run, at: RunPlace | None) -> None:
        if run.status == "interrupted":
            raise KeyboardInterrupt

    try:
        with watching(keep, None):
            return scenario.run(progress)
    except UNEVALUATED as error:
        raise FramefreeError(_cannot_evaluate(scenario, error)) from error


def _cannot_evaluate(scenario: Scenario, error: Exception) -> str:
    """Return in words that settings do not suit a scenario; raise the error where it has its own.

    A run that is too short, for instance, has no times that a metric looks at.
    """
    settings = {f.name: (getattr(scenario, f.name), f.default) for f in fields(scenario)}
    changed = ", ".join(
        f"{name}={value}" for name, (value, usual) in settings.items() if value != usual
    )
    if not changed:
        raise error
    return f"`{scenario.name}` cannot be evaluated with {changed}: {error}"


def metrics_of(scenario: Scenario, outcome: Outcome | None, seconds: float) -> dict[str, Any]:
    """Return the content of metrics.json: JSON has no infinities, which become null."""
    metrics: dict[str, Any] = {"name": scenario.name, "ok": outcome is not None and outcome.ok}
    if outcome is not None:
        metrics |= {key: _plain(value) for key, value in outcome.metrics.items()}
        metrics["failed_promises"] = "; ".join(p.text for p in outcome.promises if not p.holds)
    settings = {f"setting_{s.name.lower()}": _plain(s.value) for s in settings_of(scenario)}
    return {**metrics, "wall_seconds": seconds, **settings}


def settings_of(scenario: Scenario) -> tuple[Setting, ...]:
    """Return the settings with what the docstring says of them."""
    words = said_of(type(scenario), "Parameters")
    return tuple(
        Setting(f.name, getattr(scenario, f.name), words.get(f.name, "")) for f in fields(scenario)
    )


def meanings_of(kind: type[Scenario], keys: Iterable[str]) -> dict[str, str]:
    """Return a sentence on each key of metrics.json, settings among them, of a class."""
    words = said_of(kind, "Parameters")
    settings = {f"setting_{name.lower()}": meaning for name, meaning in words.items()}
    return {key: settings[key] for key in keys if key in settings} | metric_meanings(kind, keys)


def page_of(scenario: Scenario, outcome: Outcome, seconds: float) -> Page:
    """Return the report of a scenario."""
    return Page(
        title=scenario.name,
        text=type(scenario).__doc__ or "",
        runs=outcome.runs,
        promises=outcome.promises,
        metrics={**outcome.metrics, "wall_seconds": seconds},
        meanings=metric_meanings(type(scenario), (*outcome.metrics, "wall_seconds")),
        settings=settings_of(scenario),
        figures=outcome.figures or _figures(outcome.runs),
        animations=outcome.animations,
        notes=outcome.notes,
    )


def _page_of_runs(scenario: Scenario, runs: Mapping[str, Run], trouble: str) -> Page:
    last = [run for run in runs.values() if run.machine is not None and len(run)][-1:]
    return Page(
        title=scenario.name,
        text=type(scenario).__doc__ or "",
        runs=runs,
        settings=settings_of(scenario),
        figures=_figures(runs),
        animations=tuple(default_animation(one_trajectory(run)) for run in last),
        trouble=trouble,
    )


def _figures(runs: Mapping[str, Run]) -> tuple:
    """Return the default figures of the last run that has rows."""
    last = [run for run in runs.values() if len(run)][-1:]
    return tuple(figure for run in last for figure in default_figures(run))


def _plain(value: Any) -> Any:
    """Return a value that JSON can hold."""
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if isinstance(value, tuple | list):
        return [_plain(item) for item in value]
    return value if value is None or isinstance(value, bool | int | float | str) else str(value)
