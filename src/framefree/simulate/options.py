"""The arguments of `simulate`, checked, and what follows from them."""

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields, replace
from datetime import UTC, datetime
from functools import cached_property
from typing import Any

import numpy as np

from framefree.control.estimation import ForceObserver, StateEstimator
from framefree.control.law import AnyLaw
from framefree.control.references.base import Reference
from framefree.errors import hint, near
from framefree.kernel import Precision
from framefree.machine import Machine, Stops
from framefree.machine.parameters import Parameters
from framefree.motion import Constrained, Equations
from framefree.simulate.actuation import Drive, FirstOrder
from framefree.simulate.arguments import (
    checked_array,
    checked_parts,
    checked_seed,
    checked_time,
    checked_whole,
)
from framefree.simulate.describe import described, machine_data, versions
from framefree.simulate.disturbances import Disturbance
from framefree.simulate.errors import SimulationError
from framefree.simulate.events import Event, Scene
from framefree.simulate.integrators import INTEGRATORS, Integrator
from framefree.simulate.noise import Noise
from framefree.simulate.observe import FROM_ALL_FORCES, RECORDED
from framefree.simulate.runners import Adaptive, Clock
from framefree.simulate.sensors import Sensor
from framefree.simulate.stiffness import unstable_motion
from framefree.simulate.touching import without_contacts

PLANTS = ("native", "mujoco")
EXPLICIT, STIFF = "rk4", "implicit"
"""Integrators that are chosen by default: for most machines, and for those that need it."""
ROUNDING = 1e-14
"""Largest error of the unit length of a quaternion that is left as it is."""
UNROLLED = 48
"""Most evaluations of the dynamics that are written into one step of the loop."""


@dataclass(frozen=True)
class SimulationOptions:
    """The arguments of `simulate` that do not change during a run; see there."""

    duration: float
    dt: float
    plant: str
    formulation: Any
    integrator: str | Integrator | Adaptive | None
    control_dt: float | None
    disturbances: tuple[Disturbance, ...]
    limits: bool
    lag: Any
    noise: Noise | None
    sensors: tuple[Sensor, ...]
    estimator: tuple[StateEstimator, ...]
    observer: ForceObserver | None
    delay: int
    predict: bool | float
    seed: int | tuple[int, ...]
    u0: Any
    every: int | None
    events: tuple[Event, ...]
    record: tuple[str, ...]
    threads: int
    contacts: bool | dict[str, Any] = False
    stops: Stops | None = None
    choice: str = ""
    live: Parameters | None = None
    precision: Precision = "double"

    def __post_init__(self) -> None:
        if self.precision not in ("double", "single"):
            raise SimulationError(
                f'`precision` must be "double" or "single", got {self.precision!r}'
            )
        if self.plant not in PLANTS:
            raise SimulationError(
                f"`plant` must be one of {', '.join(PLANTS)}, got {self.plant!r}"
                + hint(self.plant, PLANTS)
            )
        if self.contacts:
            self._check_contacts()
        if not (self.stops is None or isinstance(self.stops, Stops)):
            raise SimulationError(f"`stops` must be True, False or Stops(...), got {self.stops!r}")
        for name in ("noise", "delay", "predict", "sensors", "estimator", "observer"):
            if getattr(self, name) and self.control_dt is None and self.plant == "native":
                raise SimulationError(f"`{name}` needs a control period: give `control_dt`")
        if self.sensors and self.noise is not None:
            raise SimulationError(
                "`sensors` have noise of their own: give them or `noise`, not both"
            )
        if self.sensors or self.observer:
            self._check_rows_of_estimates()
        if not (np.isfinite(self.predict) and self.predict >= 0):
            raise SimulationError(f"`predict` must be a time in s from 0 on, got {self.predict}")
        _ = self.method, self.ratio, self.drive

    def _check_contacts(self) -> None:
        """Refuse MuJoCo's contacts elsewhere, and records that need their forces."""
        if self.plant != "mujoco":
            raise SimulationError(
                '`contacts=True` means MuJoCo\'s own contacts and needs `plant="mujoco"`; the '
                "native plant has the `Contact` parts of its machine without it"
            )
        words = [word for word in FROM_ALL_FORCES if word in self.record]
        if words and self.record != RECORDED:
            raise SimulationError(
                f"`record` cannot be `{words[0]}` with `contacts=True`: our equations, which "
                "give it, do not know MuJoCo's contact forces"
            )

    def _check_rows_of_estimates(self) -> None:
        """Refuse rows between control periods: estimates are made where these begin."""
        if self.every is not None and self.every % max(self.ratio, 1):
            raise SimulationError(
                f"estimates are made once in a control period of {self.ratio} steps: `every` must "
                f"be a multiple of that, got {self.every}"
            )

    # ------------------------------------------------------------------ time

    @cached_property
    def method(self) -> Integrator | Adaptive:
        """The integrator; where none is chosen, the one that serves machines that are not stiff."""
        if self.integrator is None:
            return INTEGRATORS[EXPLICIT]
        if isinstance(self.integrator, Integrator | Adaptive):
            return self.integrator
        known = {**INTEGRATORS, "adaptive": Adaptive()}
        if self.integrator not in known:
            raise SimulationError(
                f"there is no integrator `{self.integrator}`; {near(self.integrator, known)}"
                f"choose one of: {', '.join(known)}"
            )
        return known[self.integrator]

    def with_integrator(self, scene: Scene) -> "SimulationOptions":
        """Return the options with an integrator, chosen where the user has not; and why."""
        if self.integrator is not None:
            return replace(self, choice="as asked for")
        plant = scene.machine if self.stops is None else self.stops.on(scene.machine)
        if self.contacts:
            plant = without_contacts(plant)  # MuJoCo has its own in their place
        motion = unstable_motion(
            plant, np.atleast_2d(scene.parameters)[0], np.atleast_2d(scene.x), self.dt
        )
        if motion is None:
            return replace(self, integrator=EXPLICIT, choice="the default")
        why = (
            f"servos, dampers, springs or stops act at {motion.rate:.3g} 1/s on `{motion.name}`, "
            f'too fast for steps of {self.dt:g} s by "{EXPLICIT}"'
        )
        return replace(self, integrator=STIFF, choice=why)

    @cached_property
    def ratio(self) -> int:
        """Steps in a control period; 0 where the law is evaluated at every stage."""
        if self.control_dt is None:
            return 1 if self.plant == "mujoco" else 0
        ratio = round(self.control_dt / self.dt)
        if ratio < 1 or abs(ratio * self.dt - self.control_dt) > 1e-9 * self.control_dt:
            raise SimulationError(
                f"`control_dt` must be a multiple of `dt`, got {self.control_dt} s and {self.dt} s"
            )
        return ratio

    @property
    def stepwise(self) -> bool:
        """Whether the loop is run from Python, step by step."""
        return self.plant == "mujoco" or isinstance(self.method, Adaptive)

    @cached_property
    def gated(self) -> bool:
        """Whether a step of the loop is one of the integrator although control is slower."""
        if self.stepwise or self.ratio <= 1:
            return self.stepwise
        stages = self.method.stages if isinstance(self.method, Integrator) else 1
        odd = self.every is not None and self.every % self.ratio
        return bool(odd) or stages * self.ratio > UNROLLED

    @cached_property
    def clock(self) -> Clock:
        """Times of the steps of the loop."""
        return Clock(self.dt, 1 if self.gated else max(self.ratio, 1), self.ratio)

    @property
    def spacing(self) -> int:
        """Steps of the loop from one recorded row to the next."""
        if self.every is None:
            return self.ratio if self.gated and self.ratio > 1 else 1
        return self.every // self.clock.stride

    @cached_property
    def steps(self) -> int:
        """Steps of the loop in the whole run."""
        return max(math.ceil(self.duration / (self.dt * self.clock.stride) - 1e-6), 1)

    @cached_property
    def deviations(self) -> tuple[str, ...]:
        """How the run differs from what its times ask for, in words."""
        end, found = self.clock.time(self.steps), []
        if abs(end - self.duration) > 1e-6 * self.dt:
            unit = "steps" if self.clock.stride == 1 else "control periods"
            found.append(
                f"`duration` {self.duration:g} s is not a whole number of {unit}: the run ends at "
                f"{end:.9g} s"
            )
        reached = {id(event) for _, events in self.schedule() for event in events}
        for event in self.events:
            if id(event) not in reached:
                found.append(
                    f"the event {type(event).__name__} at {event.time:g} s does not happen: the "
                    f"run ends at {end:.9g} s"
                )
        return tuple(found)

    @property
    def rows(self) -> int:
        """Number of rows of the whole run."""
        ends = [end for end, _ in self.schedule()]
        lengths = [b - a for a, b in zip([0, *ends], ends, strict=False)]
        return sum(math.ceil(length / self.spacing) for length in lengths) + 1

    def schedule(self) -> Iterator[tuple[int, tuple[Event, ...]]]:
        """Give the step at which each segment ends, and the events between it and the next."""
        period = self.dt * self.clock.stride * (max(self.ratio, 1) if self.gated else 1)
        loop_steps = max(self.ratio, 1) if self.gated else 1
        by_step: dict[int, list[Event]] = {}
        for event in sorted(self.events, key=lambda event: event.time):
            step = math.ceil(event.time / period - 1e-6) * loop_steps
            if step < self.steps:
                by_step.setdefault(step, []).append(event)
        for step, events in by_step.items():
            yield step, tuple(events)
        yield self.steps, ()

    @property
    def lead(self) -> float:
        """Time over which states and references are predicted for the law, s."""
        period = max(self.ratio, 1) * self.dt
        return self.delay * period if self.predict is True else float(self.predict)

    # ------------------------------------------------------------------ parts

    @cached_property
    def drive(self) -> Drive | None:
        """What lies between commands and inputs."""
        if self.lag is None or isinstance(self.lag, Drive):
            return self.lag
        return FirstOrder(self.lag) if np.any(np.asarray(self.lag, float)) else None

    def first_scene(
        self,
        machine: Machine,
        law: AnyLaw | None,
        reference: Reference | None,
        state: tuple[Any, Any],
        parameters: tuple[Any, Any],
    ) -> tuple[Scene, int | None]:
        """Return the scene at the start, and the number of trajectories if there are many."""
        own = _values(machine, parameters[0])
        model = None if law is None else law.machine
        shared = model is machine and parameters[1] is None
        of_law = np.zeros(0) if model is None else own if shared else _values(model, parameters[1])
        x, v = self._first_state(machine, own, *state)
        many = [one.numbers for one in self.disturbances if one.numbers is not None]
        sizes = {len(array) for array in (x, v, own, of_law, *many) if array.ndim == 2}
        if len(sizes) > 1:
            raise SimulationError(
                f"first states, parameters and numbers of disturbances must be equally many, got "
                f"{sorted(sizes)}"
            )
        batch = sizes.pop() if sizes else None
        if isinstance(self.seed, tuple) and len(self.seed) != batch:
            raise SimulationError(
                f"`seed` must be one whole number, or one for each of {batch or 1} trajectories, "
                f"got {len(self.seed)}"
            )
        if batch is not None:
            if isinstance(self.method, Adaptive):
                raise SimulationError("many trajectories at once need an integrator of fixed step")
            x, v = (np.broadcast_to(array, (batch, array.shape[-1])) for array in (x, v))
        if self.drive is not None:
            self.drive.check(machine, self.dt)
        if self.stops is not None:
            if not isinstance(machine, Machine):
                raise SimulationError("`stops` need a machine with joints that have limits")
            self.stops.parts(machine)  # raises where there can be none
        return Scene(machine, law, reference, own, of_law, x, v), batch

    def _first_state(
        self, machine: Machine, parameters: np.ndarray, x0: Any, v0: Any
    ) -> tuple[np.ndarray, np.ndarray]:
        if x0 is None and machine.closed and parameters.ndim == 1:
            x0 = Constrained(machine).assemble(parameters=parameters)
        x = machine.neutral() if x0 is None else checked_array("x0", x0)
        v = np.zeros(machine.nv) if v0 is None else checked_array("v0", v0)
        if isinstance(self.formulation, Equations) and x.shape[-1:] != (machine.nx,):
            return x, v if v0 is not None else np.zeros(self.formulation.sizes["v"])
        machine.validate(x, v)
        unit = machine.normalise(x)
        return (x if np.abs(unit - x).max(initial=0.0) < ROUNDING else unit), v

    def with_disturbances(self, disturbances: Any) -> "SimulationOptions":
        """Return the options with other numbers of the same disturbances."""
        parts = checked_parts("disturbances", disturbances, Disturbance)
        kinds = [[(type(one), one.target) for one in some] for some in (parts, self.disturbances)]
        if kinds[0] != kinds[1]:
            raise SimulationError("disturbances of a repeated simulation differ in numbers alone")
        return replace(self, disturbances=parts)

    def inputs_before(self, machine: Machine) -> np.ndarray:
        """Return the inputs before the run."""
        u = np.zeros(machine.nu) if self.u0 is None else np.asarray(self.u0, float)
        if u.shape != (machine.nu,) or not np.isfinite(u).all():
            raise SimulationError(f"`u0` must be {machine.nu} finite numbers, got {u.tolist()}")
        return u

    def meta(self, scene: Scene) -> dict[str, Any]:
        """Return the header of the record."""
        left_out = ("events", "disturbances", "formulation", "integrator", "choice")
        options = {
            f.name: described(getattr(self, f.name)) for f in fields(self) if f.name not in left_out
        }
        given = self.formulation
        name = (
            getattr(given, "__name__", "a function")
            if callable(given)
            else getattr(given, "name", given)
        )
        return {
            "status": "running",
            "machine": machine_data(scene.machine),
            "law": named(scene.law),
            "reference": named(scene.reference),
            "disturbances": described(self.disturbances),
            "parameters": described(scene.parameters),
            "law_parameters": described(scene.law_parameters),
            "formulation": name,
            "integrator": described(self.integrator),
            "integrator_choice": self.choice,
            "options": options,
            "warnings": list(self.deviations),
            "events": [],
            "versions": versions(),
            "started": datetime.now(UTC).isoformat(timespec="seconds"),
        }


def checked_options(**arguments: Any) -> SimulationOptions:
    """Return the options of `simulate`, each checked by itself, in the kinds that it has here."""
    given: dict[str, Any] = {
        "plant": "native", "formulation": None, "integrator": None, "limits": True, "lag": None,
        "noise": None, "observer": None, "predict": False, "u0": None, **arguments,
    }  # fmt: skip
    for name in ("duration", "dt"):
        given[name] = checked_time(name, given.get(name))
    period, every = given.get("control_dt"), given.get("every")
    given["control_dt"] = None if period is None else checked_time("control_dt", period)
    given["every"] = None if every is None else checked_whole("every", every, 1)
    kinds: dict[str, tuple[Any, Any]] = {
        "disturbances": (Disturbance, ()), "sensors": (Sensor, ()),
        "estimator": (StateEstimator, ()), "events": (Event, ()), "record": (str, RECORDED),
    }  # fmt: skip
    for name, (kind, default) in kinds.items():
        given[name] = checked_parts(name, given.get(name, default), kind)
    given["delay"] = checked_whole("delay", given.get("delay", 0), 0)
    given["threads"] = checked_whole("threads", given.get("threads", 1), 1)
    given["seed"] = checked_seed(given.get("seed", 0))
    contacts, stops = given.get("contacts", False), given.get("stops", False)
    given["contacts"] = (
        (dict(contacts) or True) if isinstance(contacts, Mapping) else bool(contacts)
    )
    given["stops"] = (Stops() if stops else None) if isinstance(stops, bool) else stops
    return SimulationOptions(**given)


def named(part: Any) -> Any:
    """Return a law or a reference as data, its own name first."""
    return None if part is None else {"name": part.name, **described(part)}


def _values(machine: Machine, parameters: Any) -> np.ndarray:
    if parameters is None or isinstance(parameters, Mapping):
        return machine.parameters.values(parameters)
    names = machine.parameters.names
    values = checked_array("parameters", parameters)
    if values.ndim not in (1, 2) or values.shape[-1] != len(names):
        raise SimulationError(
            "`parameters` must map names of tunable numbers to values, or give all of them; the "
            f"machine has {len(names)} tunable numbers ({', '.join(names)}), got values of shape "
            f"{values.shape}"
        )
    return values
