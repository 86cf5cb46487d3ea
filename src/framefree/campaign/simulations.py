"""Simulations that differ in first states, numbers of the machine, pushes, seeds and gains."""

import dataclasses
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from framefree.campaign.errors import CampaignError
from framefree.campaign.records import METRICS, record_of
from framefree.campaign.subject import CampaignSubject, Finished, Settings, unknown_metric
from framefree.campaign.varied import GAIN, SEED, VariedNumbers, with_gains
from framefree.control.law import AnyLaw
from framefree.errors import FramefreeWarning
from framefree.simulate import RepeatedSimulation, Run, SimulationError
from framefree.simulate.arguments import checked_law
from framefree.simulate.describe import described, machine_data
from framefree.simulate.options import checked_options, named

OK, USED = "ok", "bound_used"
"""Metrics that follow from promises: whether all hold, and the largest share of a bound used."""
Metric = Callable[[Run], Any]
"""From a run of many trajectories to one number for each of them, (batch,)."""


@dataclass(frozen=True)
class Simulations(CampaignSubject):
    """Runs of one machine under one law.

    Settings that may vary, all of them but gains inside one compiled batch:

    - "seed" of the noise;
    - "x0.NAME" and "v0.NAME", by names of coordinates and velocities; "e0.NAME", by which the first
      configuration is off x0 along a velocity (m, rad);
    - any tunable number of the machine by its path, such as "arm.mass"; the law's own machine keeps
      its own, which is "law.arm.mass";
    - "push.TARGET.fx" (fy, fz, mx, my, mz; or 0, 1, ... of a joint), "push.TARGET.start" and
      "push.TARGET.duration" of a `Pulse` among the disturbances;
    - "gain.NAME" of a number of the law, "gain.NAME.0" of an entry: each value is compiled anew.

    Parameters
    ----------
    metrics : mapping of str to callable
        From a run of many trajectories, whose arrays are (batch, rows, ...), to numbers (batch,).
        To be run on worker processes they must be functions of a module.
    machine, law, reference, x0, v0 : as in `simulate`
    options : mapping
        Other arguments of `simulate`; `duration` and `dt` among them.
    promises : mapping of str to number
        Metrics that must be at most so large. They add the metrics "ok" and "bound_used", the
        largest share of a bound that is used: a promise breaks where it exceeds 1.
    name : str
    """

    metrics: Mapping[str, Metric]
    machine: Any
    law: Any = None
    reference: Any = None
    x0: Any = None
    v0: Any = None
    options: Mapping[str, Any] = field(default_factory=dict)
    promises: Mapping[str, float] = field(default_factory=dict)
    name: str = "simulations"
    _made: dict[Any, Any] = field(default_factory=dict, init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        if not self.metrics:
            raise CampaignError("`metrics` must name at least one metric")
        for name in ("duration", "dt"):
            if name not in self.options:
                raise CampaignError(f"`options` must have `{name}`")
        if self.law is not None and not isinstance(self.law, AnyLaw):  # a plain function
            period = self.options.get("control_dt") or self.options["dt"]
            object.__setattr__(self, "law", checked_law(self.machine, self.law, self.reference))
            object.__setattr__(self, "options", {**self.options, "control_dt": period})
        for name, bound in self.promises.items():
            if name not in self.metrics:
                raise CampaignError(f"there is no metric `{name}` for the promise of that name")
            if not bound > 0:
                raise CampaignError(f"the bound of `{name}` must be positive, got {bound}")

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_made": {}}  # what is compiled stays in its process

    @property
    def keys(self) -> tuple[str, ...]:  # pyright: ignore[reportIncompatibleVariableOverride]
        """All settings that may vary, but for numbers of the machines beside those tunable now."""
        return self._numbers(()).names

    def check(self, keys: Sequence[str]) -> None:
        """Refuse settings that cannot vary."""
        self._numbers(tuple(keys))

    def whole(self, key: str) -> bool:
        """Only seeds are whole numbers."""
        return key == SEED

    def check_value(self, key: str, value: Any) -> None:
        """Refuse what is no number, and seeds that are no whole numbers from 0 on."""
        kinds = int | np.integer if self.whole(key) else int | float | np.number
        number = isinstance(value, kinds) and not isinstance(value, bool) and np.isfinite(value)
        if not number or (self.whole(key) and value < 0):
            what = "a whole number from 0 on" if self.whole(key) else "a number"
            raise CampaignError(f"`{key}` of `{self.name}` must be {what}, got `{value}`")

    def check_metric(self, name: str) -> None:
        """Refuse a metric that is not among those of the runs."""
        known = (*self.metrics, *((OK, USED) if self.promises else ()))
        if name and name not in known:
            raise unknown_metric(f"`{self.name}`", name, known)

    def _numbers(self, keys: tuple[str, ...]) -> VariedNumbers:
        disturbances = self.options.get("disturbances", ())
        several = disturbances if isinstance(disturbances, list | tuple) else (disturbances,)
        return VariedNumbers(self.machine, self.law, self.x0, self.v0, tuple(several), keys)

    def together(self, keys: Sequence[str]) -> bool:
        """All but gains varies in one batch, on the native plant with steps of fixed length."""
        return not self._stepwise and not any(key.startswith(GAIN) for key in keys)

    @property
    def _stepwise(self) -> bool:
        """Whether a simulation takes one trajectory at a time."""
        if "stepwise" not in self._made:
            self._made["stepwise"] = checked_options(**self._plain_options).stepwise
        return self._made["stepwise"]

    @property
    def _plain_options(self) -> dict[str, Any]:
        return {k: v for k, v in self.options.items() if k != "progress"}

    def run(self, settings: Settings) -> Finished:
        """Return the metrics of one run."""
        (result,) = self.run_many([settings], keep="full")
        if result.cause:
            raise SimulationError(result.cause)
        return result

    def run_many(
        self, rows: Sequence[Settings], *, keep: str = METRICS, threads: int = 1
    ) -> list[Finished]:
        """Return the metrics of many runs; one that breaks off says why."""
        if not rows:
            return []
        if not self.together(tuple(rows[0])) and len(rows) > 1:
            return [self.run_many([row], keep=keep)[0] for row in rows]
        try:
            run = self.simulated(rows, threads)
        except SimulationError as error:
            if len(rows) == 1:
                return [Finished({}, str(error))]
            # All have broken off: each tells its own story.
            return [self.run_many([row], keep=keep)[0] for row in rows]
        causes = {told["trajectory"]: told["message"] for told in run.failures}
        values = self.measured(run, len(rows))
        return [
            Finished({}, causes[k], record_of(run, k, keep))
            if k in causes
            else Finished({n: float(a[k]) for n, a in values.items()}, "", record_of(run, k, keep))
            for k in range(len(rows))
        ]

    def measured(self, run: Run, count: int) -> dict[str, np.ndarray]:
        """Return the metrics of a run of many trajectories, (count,) each."""
        values = {name: self._metric(name, run, count) for name in self.metrics}
        if self.promises:
            used = np.max([values[n] / bound for n, bound in self.promises.items()], axis=0)
            values |= {USED: used, OK: (used <= 1).astype(float)}
        return values

    def simulated(self, rows: Sequence[Settings], threads: int = 1) -> Run:
        """Return the run of many trajectories; where there is one at a time, as one of many.

        Parameters
        ----------
        rows : sequence of mapping
            Settings of each trajectory.
        threads : int
        """
        keys = tuple(rows[0])
        gains = {key: rows[0][key] for key in keys if key.startswith(GAIN)}
        numbers = self._numbers(keys)
        repeated, single = self._repeated(numbers, keys, gains)
        given = numbers.arguments(rows, repeated.machine, repeated.law, self.options.get(SEED, 0))
        with warnings.catch_warnings():
            # Those that end early are counted, and told of in the results.
            warnings.filterwarnings("ignore", ".*trajectories ended early", FramefreeWarning)
            if single:
                one = {name: _first(value) for name, value in given.items()}
                run = _as_many(repeated.run(**one, progress=False))
            else:
                run = repeated.run(**given, threads=threads, progress=False)
        if run.status == "interrupted":  # Ctrl-C: what there is of it must not count
            raise KeyboardInterrupt
        return run

    def _repeated(
        self, numbers: VariedNumbers, keys: tuple[str, ...], gains: Mapping[str, float]
    ) -> tuple[RepeatedSimulation, bool]:
        """Return the simulation for these keys and gains, and whether it takes one run at a time.

        That of the latest ones is kept, since it holds compiled code.
        """
        which = (keys, tuple(gains.items()))
        if self._made.get("which") != which:
            machine, law = numbers.machines(with_gains(self.law, gains))
            made = RepeatedSimulation(machine, law, self.reference, **self._plain_options)
            self._made.update(which=which, made=made)
        return self._made["made"], self._stepwise

    def _metric(self, name: str, run: Run, count: int) -> np.ndarray:
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
            "promises": described(dict(self.promises)),
        }


def _first(value: Any) -> Any:
    """Return what belongs to the first of many trajectories."""
    if isinstance(value, tuple):  # disturbances
        return tuple(one.of_trajectory(0) for one in value)
    return None if value is None else value[0]


def _as_many(run: Run) -> Run:
    """Return a run of one trajectory as a run of many."""
    return dataclasses.replace(
        run,
        x=run.x[None],
        v=run.v[None],
        u=run.u[None],
        reference={name: value[None] for name, value in run.reference.items()},
        signals={name: value[None] for name, value in run.signals.items()},
    )
