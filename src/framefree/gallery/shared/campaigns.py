"""Scenarios as subjects of campaigns."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from framefree.campaign import CampaignError, CampaignSubject, Finished, Simulations
from framefree.campaign.records import FULL, METRICS, record_of
from framefree.campaign.subject import Settings
from framefree.errors import near
from framefree.gallery.shared.first_loop import first_loop
from framefree.gallery.shared.results import metrics_of
from framefree.gallery.shared.scenario import Outcome, Scenario
from framefree.look.report.scene import one_trajectory
from framefree.simulate import Run, SimulationError
from framefree.simulate.describe import described

LEFT_OUT = ("name", "wall_seconds")


@dataclass(frozen=True)
class ScenarioRuns(CampaignSubject):
    """A scenario of the gallery, each run with settings of its own.

    Its settings may vary, and also what `Simulations` lists of its closed loop: first states,
    numbers of the machine, pushes, gains, seeds. The loop is the one that the scenario declares
    (`Scenario.simulations`), or the first simulation that it makes (`first_loop`). Where only such
    numbers vary, runs are those of the loop, in one compiled batch.

    Parameters
    ----------
    scenario : Scenario
        With the settings that do not vary.
    """

    scenario: Scenario
    _made: dict[Any, Any] = field(default_factory=dict, init=False, repr=False, compare=False)

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_made": {}}

    @property
    def name(self) -> str:  # pyright: ignore[reportIncompatibleVariableOverride]
        """What the scenario is called."""
        return self.scenario.name

    @property
    def keys(self) -> tuple[str, ...]:  # pyright: ignore[reportIncompatibleVariableOverride]
        """The settings of the scenario, and the numbers of its closed loop."""
        loop = self._loop({})
        return (*self.scenario.settings(), *(() if loop is None else loop.keys))

    def check(self, keys: Sequence[str]) -> None:
        """Refuse what is neither a setting nor a number of the closed loop."""
        others = [key for key in keys if key not in self.scenario.settings()]
        loop = self._loop({}) if others else None
        if loop is None:
            super().check(keys)
            return
        try:
            loop.check(others)
        except CampaignError as error:
            settings = self.scenario.settings()
            hint = "".join(near(key, settings) for key in others[:1])
            listed = ", ".join(f"`{name}`" for name in settings)
            raise CampaignError(f"{hint}{error}. Settings of `{self.name}`: {listed}") from None

    def whole(self, key: str) -> bool | None:
        """Whether a setting takes whole numbers, by its default; numbers of the loop as it says."""
        own = self.scenario.settings()
        if key in own:
            return {int: True, float: False}.get(type(own[key]))
        loop = self._loop({})
        return None if loop is None else loop.whole(key)

    def check_value(self, key: str, value: Any) -> None:
        """Refuse what the setting, or the number of the closed loop, cannot be."""
        loop = None if key in self.scenario.settings() else self._loop({})
        if loop is None:
            self._with({key: value})
        else:
            loop.check_value(key, value)

    def together(self, keys: Sequence[str]) -> bool:
        """Whether these are all numbers of the closed loop that vary in one batch."""
        loop = self._loop({}) if self._inside(keys) == tuple(keys) else None
        return loop is not None and loop.together(keys)

    def run(self, settings: Settings) -> Finished:
        """Return the metrics of one run, and whether all promises hold ("ok")."""
        inner = self._inside(tuple(settings))
        outer = {key: value for key, value in settings.items() if key not in inner}
        loop = self._loop(outer) if inner else None
        if loop is not None:
            return loop.run({key: settings[key] for key in inner})
        scenario = self._with(outer)
        outcome = scenario.run(progress=False)
        if any(run.status == "interrupted" for run in outcome.runs.values()):
            raise KeyboardInterrupt  # what there is of it must not count
        metrics = metrics_of(scenario, outcome, 0.0)
        numbers = {
            key: float(value)
            for key, value in metrics.items()
            if key not in LEFT_OUT
            and not key.startswith("setting_")
            and isinstance(value, bool | int | float)
        }
        return Finished(numbers, "", _record(outcome))

    def run_many(
        self, rows: Sequence[Settings], *, keep: str = METRICS, threads: int = 1
    ) -> list[Finished]:
        """Return what comes of many runs, in one batch where that is possible."""
        loop = self._loop({}) if rows and self.together(tuple(rows[0])) else None
        if loop is None:
            return super().run_many(rows, keep=keep)
        return loop.run_many(rows, keep=keep, threads=threads)

    def _inside(self, keys: Sequence[str]) -> tuple[str, ...]:
        """Return the keys that belong to the closed loop.

        The scenario's own setting goes before a number of that name, but for the seed of the noise,
        where nothing else than numbers of the loop varies.
        """
        own = self.scenario.settings()
        others = tuple(key for key in keys if key not in own)
        if set(keys) - set(others) == {"seed"} and (others or self._declared is not None):
            return tuple(keys)
        return others

    def _with(self, settings: Mapping[str, Any]) -> Scenario:
        return self.scenario.with_settings({k: str(v) for k, v in settings.items()})

    @property
    def _declared(self) -> Simulations | None:
        """The closed loop that the scenario declares."""
        return self._kept((), "declared", lambda: self.scenario.simulations())

    def _loop(self, outer: Mapping[str, Any]) -> Simulations | None:
        """Return the closed loop of the scenario with other settings."""
        return self._kept(tuple(outer.items()), "loop", lambda: _loop_of(self._with(outer)))

    def _kept(self, which: Any, name: str, make: Callable[[], Any]) -> Any:
        """Return what was made for some settings; that of the latest is kept."""
        if self._made.get("which", ...) != which:
            self._made.clear()
            self._made["which"] = which
        if name not in self._made:
            self._made[name] = make()
        return self._made[name]

    def repeat(self, settings: Settings) -> "RepeatedRun":
        """Return one run of a campaign again, the same bits, with its record as a `Run`."""
        self.check(tuple(settings))
        inner = self._inside(tuple(settings))
        outer = {key: value for key, value in settings.items() if key not in inner}
        loop = self._loop(outer) if inner else None
        if loop is None:
            raise CampaignError(
                f"`--at` takes numbers of the closed loop of `{self.name}`, and it has none of "
                f"{', '.join(settings)}: repeat the run by `framefree run {self.name} --set ...`"
            )
        try:
            run = loop.simulated([{key: settings[key] for key in inner}])
        except SimulationError as error:
            if error.run is None:
                raise
            return RepeatedRun(one_trajectory(error.run), {}, str(error))
        metrics = {name: float(value[0]) for name, value in loop.measured(run, 1).items()}
        return RepeatedRun(one_trajectory(run), metrics)

    def describe(self) -> dict[str, Any]:
        """Return the name and the settings that do not vary."""
        return {"scenario": self.name, "settings": described(self.scenario)}

    def command(self, settings: Settings) -> str:
        """Return the command that repeats one run and shows its report."""
        inner = self._inside(tuple(settings))
        changed = {
            key: getattr(self.scenario, key)
            for key, default in self.scenario.settings().items()
            if getattr(self.scenario, key) != default and key not in inner
        } | {key: value for key, value in settings.items() if key not in inner}
        words = [f"--set {key}={_text(value)}" for key, value in changed.items()]
        if not inner:
            return " ".join(["framefree run", self.name, *words, "--open"])
        words += [f"--at {key}={_text(settings[key])}" for key in inner]
        return " ".join(["framefree campaign", self.name, *words, "--open"])


def _loop_of(scenario: Scenario) -> Simulations | None:
    """Return the closed loop that a scenario declares, or the first simulation that it makes."""
    declared = scenario.simulations()
    return first_loop(scenario) if declared is None else declared


@dataclass(frozen=True)
class RepeatedRun:
    """One run of a campaign: its record, its metrics, and why it has failed if it has."""

    run: Run
    metrics: dict[str, float]
    cause: str = ""


def _text(value: Any) -> str:
    """Return a setting as text that reads as the very same number."""
    return repr(float(value)) if isinstance(value, float) else str(value)


def _record(outcome: Outcome) -> Any:
    """Return the record of the first run of an outcome; of many trajectories, of the first."""
    for run in outcome.runs.values():
        return record_of(run, None if run.batch is None else 0, FULL)
    return None
