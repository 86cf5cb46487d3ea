"""Running a scenario into a folder: its report, its metrics, its runs."""

import json
import math
import os
from collections.abc import Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from time import monotonic
from typing import Any

import numpy as np

from framefree.errors import FramefreeError
from framefree.gallery.shared.scenario import Outcome, Scenario
from framefree.look.report import Page, Setting, default_animation, default_figures, write
from framefree.look.report.prose import meanings
from framefree.look.report.scene import one_trajectory
from framefree.simulate import Run, SimulationError
from framefree.simulate.progress import finishing
from framefree.simulate.run import watching


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
    trouble : str
        Why it broke off.
    interrupted : bool
        Whether it was Ctrl-C.
    """

    metrics: dict[str, Any]
    outcome: Outcome | None
    report: Path | None
    trouble: str = ""
    interrupted: bool = False

    @property
    def ok(self) -> bool:
        """Whether the scenario came to its end and all its promises hold."""
        return self.outcome is not None and self.outcome.ok


def run_into(scenario: Scenario, folder: Path, progress: bool | None = None) -> Result:
    """Run a scenario and write report.html, metrics.json, and each run as NAME.parquet and .json.

    A scenario that Ctrl-C ends, in which a value is no longer finite, or that cannot evaluate its
    runs with the settings it was given, leaves what was recorded, and a report of that.
    """
    _check_place(folder)
    seen: list[Run] = []

    def keep(run: Run) -> None:
        seen.append(run)
        if run.status == "interrupted":
            raise KeyboardInterrupt

    begin = monotonic()
    outcome, trouble, interrupted = None, "", False
    try:
        with watching(keep):
            outcome = scenario.run(progress)
    except KeyboardInterrupt:
        trouble, interrupted = "Interrupted: this is what was recorded until then.", True
    except SimulationError as error:
        if error.time is None:
            raise
        trouble = str(error)
    except (ArithmeticError, LookupError, ValueError) as error:
        changed = _changed(scenario)
        if not changed:
            raise
        trouble = f"`{scenario.name}` cannot be evaluated with {changed}: {error}"
        if not seen:
            raise FramefreeError(trouble) from error
    with finishing():
        return _written(scenario, folder, outcome, seen, trouble, interrupted, monotonic() - begin)


def _written(
    scenario: Scenario,
    folder: Path,
    outcome: Outcome | None,
    seen: list[Run],
    trouble: str,
    interrupted: bool,
    seconds: float,
) -> Result:
    """Write what a scenario gave, or the runs seen until it broke off."""
    seconds = round(seconds, 6)
    if outcome is None:
        runs = {"run" if len(seen) == 1 else f"run-{i}": run for i, run in enumerate(seen)}
        page = _page_of_runs(scenario, runs, trouble)
    else:
        runs, page = outcome.runs, page_of(scenario, outcome, seconds)
    metrics = metrics_of(scenario, outcome, seconds)
    folder.mkdir(parents=True, exist_ok=True)
    for name, run in runs.items():
        run.save(folder / f"{name}.parquet")
    text = json.dumps(metrics, indent=2, allow_nan=False)
    (folder / "metrics.json").write_text(text + "\n", encoding="utf-8")
    report = write(page, folder / "report.html") if outcome is not None or runs else None
    return Result(metrics, outcome, report, trouble, interrupted)


def _check_place(folder: Path) -> None:
    """Refuse a folder that cannot be written before anything is computed for it."""
    there = next(place for place in (folder, *folder.absolute().parents) if place.exists())
    if not there.is_dir():
        raise FramefreeError(f"results cannot be written to `{folder}`: `{there}` is a file")
    if not os.access(there, os.W_OK | os.X_OK):
        raise FramefreeError(f"results cannot be written to `{folder}`: `{there}` is read-only")


def _changed(scenario: Scenario) -> str:
    """Return the settings that are not the scenario's own, in words."""
    settings = {f.name: (getattr(scenario, f.name), f.default) for f in fields(scenario)}
    return ", ".join(
        f"{name}={value}" for name, (value, usual) in settings.items() if value != usual
    )


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
    words = meanings(type(scenario).__doc__ or "")
    return tuple(
        Setting(f.name, getattr(scenario, f.name), words.get(f.name, "")) for f in fields(scenario)
    )


def page_of(scenario: Scenario, outcome: Outcome, seconds: float) -> Page:
    """Return the report of a scenario."""
    return Page(
        title=scenario.name,
        text=type(scenario).__doc__ or "",
        runs=outcome.runs,
        promises=outcome.promises,
        metrics={**outcome.metrics, "wall_seconds": seconds},
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
    return tuple(figure for run in last for figure in default_figures(one_trajectory(run)))


def _plain(value: Any) -> Any:
    """Return a value that JSON can hold."""
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if isinstance(value, tuple | list):
        return [_plain(item) for item in value]
    return value if value is None or isinstance(value, bool | int | float | str) else str(value)
