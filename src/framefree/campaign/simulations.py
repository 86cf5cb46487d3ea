"""Simulations that differ in first states, tunable numbers and seeds, as one compiled batch."""

import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from framefree.campaign.errors import CampaignError
from framefree.campaign.subject import CampaignSubject, Finished, Settings
from framefree.errors import FramefreeWarning
from framefree.simulate import Run, SimulationError, simulate
from framefree.simulate.describe import described, machine_data
from framefree.simulate.options import named

SEED = "seed"
Metric = Callable[[Run], Any]
"""From a run of many trajectories to one number for each of them, (batch,)."""


@dataclass(frozen=True)
class Simulations(CampaignSubject):
    """Runs of one machine under one law.

    Settings that may vary, all inside one compiled batch: "x0.NAME" and "v0.NAME" with names of
    coordinates and velocities, "seed" of the noise, and the paths of the machine's tunable numbers;
    with "law." before them those of the law's machine.

    Parameters
    ----------
    metrics : mapping of str to callable
        From a run of many trajectories, whose arrays are (batch, rows, ...), to numbers (batch,).
        To be run on worker processes they must be functions of a module.
    machine, law, reference, x0, v0 : as in `simulate`
    options : mapping
        Other arguments of `simulate`; `duration` and `dt` among them.
    name : str
    """

    metrics: Mapping[str, Metric]
    machine: Any
    law: Any = None
    reference: Any = None
    x0: Any = None
    v0: Any = None
    options: Mapping[str, Any] = field(default_factory=dict)
    name: str = "simulations"

    def __post_init__(self) -> None:
        if not self.metrics:
            raise CampaignError("`metrics` must name at least one metric")
        for name in ("duration", "dt"):
            if name not in self.options:
                raise CampaignError(f"`options` must have `{name}`")

    @property
    def _law_machine(self) -> Any:
        return None if self.law is None else self.law.machine

    @property
    def keys(self) -> tuple[str, ...]:  # pyright: ignore[reportIncompatibleVariableOverride]
        """All settings that may vary."""
        machine, model = self.machine, self._law_machine
        names = [SEED, *(f"x0.{n}" for n in machine.x_names), *(f"v0.{n}" for n in machine.v_names)]
        names += machine.parameters.names
        if model is not None and model is not machine:
            names += [f"law.{name}" for name in model.parameters.names]
        return tuple(names)

    def together(self, keys: Sequence[str]) -> bool:
        """All that may vary does so in one batch, on the native plant."""
        return self.options.get("plant", "native") == "native"

    def run(self, settings: Settings) -> dict[str, float]:
        """Return the metrics of one run."""
        (result,) = self.run_many([settings])
        if result.cause:
            raise SimulationError(result.cause)
        return result.metrics

    def run_many(self, rows: Sequence[Settings]) -> list[Finished]:
        """Return the metrics of many runs; one that breaks off says why."""
        if not self.together(()):
            return super().run_many(rows)
        try:
            run = self.simulated(rows)
        except SimulationError as error:
            if len(rows) == 1:
                return [Finished({}, str(error))]
            # All have broken off: each tells its own story.
            return [self.run_many([row])[0] for row in rows]
        causes = {told["trajectory"]: told["message"] for told in run.failures}
        values = {name: self._numbers(name, run, len(rows)) for name in self.metrics}
        return [
            Finished({}, causes[k])
            if k in causes
            else Finished({name: float(array[k]) for name, array in values.items()})
            for k in range(len(rows))
        ]

    def simulated(self, rows: Sequence[Settings]) -> Run:
        """Return the run of many trajectories."""
        x0, v0 = self._states("x0", rows), self._states("v0", rows)
        parameters = self._parameters(self.machine, "", rows)
        model = self._law_machine
        other = model is not None and model is not self.machine
        options = dict(self.options)
        if other:
            options["law_parameters"] = self._parameters(model, "law.", rows)
        if any(SEED in row for row in rows):
            options[SEED] = [int(row.get(SEED, self.options.get(SEED, 0))) for row in rows]
        with warnings.catch_warnings():
            # Those that end early are counted, and told of in the results.
            warnings.filterwarnings("ignore", ".*trajectories ended early", FramefreeWarning)
            return simulate(
                self.machine, self.law, self.reference, x0, v0,
                parameters=parameters, progress=False, **options,
            )  # fmt: skip

    def _states(self, which: str, rows: Sequence[Settings]) -> np.ndarray:
        machine = self.machine
        names = machine.x_names if which == "x0" else machine.v_names
        given = getattr(self, which)
        plain = machine.neutral() if which == "x0" else np.zeros(machine.nv)
        first = np.asarray(plain if given is None else given, float)
        states = np.tile(first, (len(rows), 1))
        for k, name in enumerate(names):
            for row, settings in enumerate(rows):
                states[row, k] = settings.get(f"{which}.{name}", states[row, k])
        return machine.normalise(states) if which == "x0" else states

    def _parameters(self, machine: Any, prefix: str, rows: Sequence[Settings]) -> Any:
        if not len(machine.parameters):
            return None
        names = machine.parameters.names
        values = np.tile(machine.parameters.values(None), (len(rows), 1))
        for k, name in enumerate(names):
            for row, settings in enumerate(rows):
                values[row, k] = settings.get(prefix + name, values[row, k])
        return values

    def _numbers(self, name: str, run: Run, count: int) -> np.ndarray:
        values = np.asarray(self.metrics[name](run), float)
        if values.shape != (count,):
            raise CampaignError(
                f"the metric `{name}` must give one number for each of {count} trajectories, got "
                f"shape {values.shape}"
            )
        return values

    def describe(self) -> dict[str, Any]:
        """Return machine, law and options as data."""
        return {
            "name": self.name,
            "machine": machine_data(self.machine),
            "law": named(self.law),
            "reference": named(self.reference),
            "x0": described(self.x0),
            "v0": described(self.v0),
            "options": described(dict(self.options)),
            "metrics": sorted(self.metrics),
        }
