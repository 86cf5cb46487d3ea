"""Scenarios as subjects of campaigns."""

from dataclasses import dataclass
from typing import Any

from framefree.campaign import CampaignSubject
from framefree.campaign.subject import Settings
from framefree.gallery.shared.results import metrics_of
from framefree.gallery.shared.scenario import Scenario
from framefree.simulate.describe import described

LEFT_OUT = ("name", "wall_seconds")


@dataclass(frozen=True)
class ScenarioRuns(CampaignSubject):
    """A scenario of the gallery, each run with settings of its own.

    Parameters
    ----------
    scenario : Scenario
        With the settings that do not vary.
    """

    scenario: Scenario

    @property
    def name(self) -> str:  # pyright: ignore[reportIncompatibleVariableOverride]
        """What the scenario is called."""
        return self.scenario.name

    @property
    def keys(self) -> tuple[str, ...]:  # pyright: ignore[reportIncompatibleVariableOverride]
        """The settings of the scenario."""
        return tuple(self.scenario.settings())

    def run(self, settings: Settings) -> dict[str, float]:
        """Return the metrics of one run, and whether all promises hold ("ok")."""
        texts = {key: str(value) for key, value in settings.items()}
        scenario = self.scenario.with_settings(texts)
        metrics = metrics_of(scenario, scenario.run(progress=False), 0.0)
        return {
            key: float(value)
            for key, value in metrics.items()
            if key not in LEFT_OUT
            and not key.startswith("setting_")
            and isinstance(value, bool | int | float)
        }

    def describe(self) -> dict[str, Any]:
        """Return the name and the settings that do not vary."""
        return {"scenario": self.name, "settings": described(self.scenario)}

    def command(self, settings: Settings) -> str:
        """Return the command that repeats one run and shows its report."""
        changed = {
            key: getattr(self.scenario, key)
            for key, default in self.scenario.settings().items()
            if getattr(self.scenario, key) != default
        } | dict(settings)
        words = " ".join(f"--set {key}={value}" for key, value in changed.items())
        return f"framefree run {self.name} {words} --open"
