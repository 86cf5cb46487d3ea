"""What a scenario is: a worked experiment that runs by name and says what it promises.

To add one, write a file with a frozen dataclass that subclasses `Scenario` and list the class in
`framefree.gallery.scenarios.SCENARIOS`:

1. ``name``: what `framefree run` calls it, as in "heavy-top";
2. its docstring: the first line is what `framefree list` prints, the rest opens the report;
3. its fields: the settings, each with a default, which `--set key=value` replaces. A scenario that
   runs on several plants has ``plant: str = "native"``;
4. ``run(progress)``: simulates and returns an `Outcome`;
5. ``extras``: names of the extras of this package that it needs, as in "models";
6. ``simulations()``, where it has one closed loop that can be run many times: what a campaign
   varies beside the settings, with metrics and promises of one run;
7. ``learning()``, where something is to be learned in rounds: what `framefree learn` learns;
8. ``judged``: name of the run that its promises judge, where it is not the first of its outcome:
   what `framefree export` takes.

Metrics are flat, in snake_case, with the unit as suffix (``_m``, ``_rad``, ``_deg``, ``_s``). The
section Metrics of the docstring has a sentence on each, under its name or a pattern such as
"*_rms_m"; the report shows it. Promises are sentences without the bound: the report and the command
line add what was measured and how large it may be, with the unit.
"""

import re
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, ClassVar, Self

from framefree.errors import FramefreeError, near
from framefree.look.report import Animation, Figure, Promise
from framefree.simulate import Run
from framefree.simulate.run import RECORDED

if TYPE_CHECKING:
    from framefree.campaign import Simulations
    from framefree.learn import LearningTask

__all__ = ["Outcome", "Promise", "Scenario"]

EXTRAS = {"models": "mujoco", "learn": "jax", "identify": "clarabel", "qp": "proxsuite"}
"""Extras of this package that scenarios need, and the module by which each is known."""
RESERVED_METRICS = ("name", "ok", "failed_promises", "wall_seconds")
RESERVED_RUNS = ("metrics", "report", "manifest")


@dataclass(frozen=True)
class Outcome:
    """What a scenario gives.

    Attributes
    ----------
    runs : dict of str to Run
        By short names, which become names of files.
    metrics : dict of str to number
    promises : tuple of Promise
    figures : tuple of Figure
    animations : tuple of Animation
    notes : tuple of str
        Paragraphs for the reader of the report.
    """

    runs: Mapping[str, Run]
    metrics: Mapping[str, float | int | bool | str]
    promises: tuple[Promise, ...]
    figures: tuple[Figure, ...] = ()
    animations: tuple[Animation, ...] = ()
    notes: tuple[str, ...] = field(default=())

    def __post_init__(self) -> None:
        for key in self.metrics:
            taken = key in RESERVED_METRICS or key.startswith("setting_")
            if taken or not re.fullmatch(r"[a-z][a-z0-9_]*", key):
                raise FramefreeError(
                    f"the metric `{key}` needs a name in snake_case other than setting_..., "
                    + ", ".join(RESERVED_METRICS)
                )
        for name in self.runs:
            taken = name in RESERVED_RUNS or name.startswith(RECORDED)
            if taken or not re.fullmatch(r"[A-Za-z0-9][\w.-]*", name):
                raise FramefreeError(
                    f"the run `{name}` needs a name that a file may have, other than "
                    + ", ".join((*RESERVED_RUNS, f"{RECORDED}..."))
                )

    @property
    def ok(self) -> bool:
        """Whether all promises hold."""
        return all(promise.holds for promise in self.promises)

    def run_named(self, key: str) -> Run:
        """Return a run by its name; without one, the first."""
        if not self.runs:
            raise FramefreeError("the scenario has made no run")
        if key and key not in self.runs:
            raise FramefreeError(f"there is no run `{key}`; there are: {', '.join(self.runs)}")
        return self.runs[key] if key else next(iter(self.runs.values()))


@dataclass(frozen=True)
class Scenario(ABC):
    """Base of all scenarios; see the contract at the top of this file.

    Metrics
    -------
    wall_seconds
        Time that all of it took on this computer, compilation included.
    settling_s
        Time after which the error stays small: below a few percent of where it began, or
        below a fixed size.
    rms_position_m
        Error of position, root of the mean square.
    rms_attitude_deg
        Error of attitude, root of the mean square.
    rms_heading_deg
        Error of heading, root of the mean square.
    energy_rate_error
        By how much the rate of the error energy W misses what the prototype's dampers take,
        relative.
    model_energy_rate_error
        By how much the rate of W misses the rate `W_rate` that the model has for the inputs
        given.
    reference_missing_force_n
        Largest force that no input can give and that the reference would need.
    matching_error
        By how much the matching conditions are missed: 0 means that small errors move as
        those of the prototype.
    lyapunov_rate_error
        By how much the rate of the Lyapunov function V misses the one that the proof
        states, relative.
    """

    name: ClassVar[str]
    extras: ClassVar[tuple[str, ...]] = ()
    judged: ClassVar[str] = ""

    @abstractmethod
    def run(self, progress: bool | None = None) -> Outcome:
        """Simulate, and return what came of it."""

    def simulations(self) -> "Simulations | None":
        """Return the closed loop that campaigns run in batches; None where there is none."""
        return None

    def learning(self) -> "LearningTask | None":
        """Return what `framefree learn` learns in rounds; None where there is nothing."""
        return None

    @classmethod
    def missing(cls) -> tuple[str, ...]:
        """Return the extras that it needs and that are not installed."""
        return tuple(extra for extra in cls.extras if find_spec(EXTRAS[extra]) is None)

    @classmethod
    def settings(cls) -> dict[str, Any]:
        """Return the settings by name, with their defaults."""
        return {f.name: f.default for f in fields(cls)}

    @classmethod
    def summary(cls) -> str:
        """Return the first line of the docstring."""
        return (cls.__doc__ or "").strip().splitlines()[0]

    def with_settings(self, texts: Mapping[str, str]) -> Self:
        """Return this scenario with settings replaced, given as text, as on a command line."""
        return replace(self, **{key: self._parsed(key, text) for key, text in texts.items()})

    def _parsed(self, key: str, text: str) -> Any:
        known = {f.name: getattr(self, f.name) for f in fields(self)}
        if key not in known:
            have = ", ".join(f"`{name}`" for name in known) or "none"
            hint = near(key, known)
            raise FramefreeError(f"`{self.name}` has no setting `{key}`; {hint}it has: {have}")
        kind = type(known[key])
        if kind is bool and text.lower() in ("true", "false"):
            return text.lower() == "true"
        try:
            if kind in (int, float, str) and text.lower() != "nan":
                return kind(text)
        except ValueError:
            pass
        kinds = {bool: "true or false", int: "an integer", float: "a number"}
        expected = kinds.get(kind, kind.__name__)
        raise FramefreeError(f"the setting `{key}` of `{self.name}` must be {expected}, got {text}")
