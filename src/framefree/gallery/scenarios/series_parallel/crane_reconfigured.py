"""The scenario `crane-reconfigured`."""

import warnings
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from framefree.control.robust import RobustControl, UncertaintyWarning
from framefree.errors import FramefreeError
from framefree.gallery.machines.crane import closed_form, crane, crane_model
from framefree.gallery.scenarios.series_parallel.crane_exchanges import EXCHANGES, Exchange
from framefree.gallery.scenarios.series_parallel.crane_parts import (
    COORDINATES,
    GAINS,
    UNITS,
    Tracking,
    apart,
    coordinates_at,
    first_state,
    joint_path,
    plants_agree,
)
from framefree.gallery.scenarios.series_parallel.inertia_shares import share_figures
from framefree.gallery.shared.metrics import CraneScenario
from framefree.gallery.shared.scenario import Outcome, Promise
from framefree.look.report import Animation, Figure
from framefree.machine import Machine
from framefree.motion.embedded import Embedded
from framefree.simulate import SetParameters, simulate


@dataclass(frozen=True)
class CraneReconfigured(CraneScenario):
    """The second link of the crane is exchanged half-way, with and without telling the controller.

    The crane of `crane`, without the push. At half time the second link is exchanged for one 30
    percent longer and heavier: in the plant always, in the controller's model in one of two runs.
    Only the numbers of one body in a sum over all change; nothing is derived or compiled again. The
    informed law goes on as before. For the uninformed one the weight of the new link is far above
    what its kappa withstands, and the crane sags.

    With `change=mount` it is the loop that changes: the cylinder's pin on the arm is moved by 5 cm.
    The loop is closed again, the driven joints staying where they are, so that the elbow jumps, and
    velocities with it. The proof holds between such jumps: what is promised is that V is soon below
    its level again, and stays there. With `plant=mujoco` MuJoCo is the plant, and our own runs
    beside it.

    Parameters
    ----------
    duration : float
        How long to simulate, s.
    dt : float
        Step of the integrator, s.
    change : str
        What is exchanged: "arm" or "mount".
    plant : str
        "native" or "mujoco".

    Metrics
    -------
    level_regained_s
        Time after the exchange until V is below its level again.
    untold_error_over_envelope
        Largest error of the uninformed law, by what its own uncertainty allows.
    untold_lyapunov_over_level
        Largest V of the uninformed law, by the level of its own uncertainty.
    untold_uncertainty_over_kappa
        Largest uncertainty that the uninformed law met, by kappa.
    jump_x
        By how much the configuration jumps at the exchange.
    updated_model_error
        Relative difference between the model that was updated and one made anew.
    """

    name: ClassVar[str] = "crane-reconfigured"

    duration: float = 20.0
    dt: float = 5e-4
    change: str = "arm"
    plant: str = "native"

    def run(self, progress: bool | None = None) -> Outcome:
        """Track with and without telling the controller."""
        if self.change not in EXCHANGES:
            raise FramefreeError(
                f"the setting `change` of `{self.name}` must be one of {', '.join(EXCHANGES)}, "
                f"got {self.change}"
            )
        plant, model = crane().tunable(*self.new.plant), crane_model().tunable(*self.new.law)
        form, law = closed_form(plant), RobustControl(model, **GAINS)
        informed = self._tracked(law, form, progress, informed=True)
        with warnings.catch_warnings():
            # That kappa is then too small is what is reported of this run.
            warnings.simplefilter("ignore", UncertaintyWarning)
            uninformed = self._tracked(law, form, progress, informed=False)
        metrics = self._metrics(informed, uninformed, law.embedded)
        runs, promises = {"told": informed.run, "untold": uninformed.run}, self._promises(metrics)
        if self.plant == "mujoco":
            native = replace(self, plant="native")._tracked(law, form, progress, informed=True)
            runs["native"] = native.run
            metrics["plant_difference"] = apart(informed.run, native.run)
            promises += (plants_agree(metrics),)
        after = self._values(informed.run.t, plant, self.new.plant)
        return Outcome(
            runs=runs,
            metrics=metrics,
            promises=promises,
            figures=self._figures(informed, uninformed, share_figures(form, informed.run, after)),
            animations=(
                Animation(
                    "Informed", informed.run, trails=("tip",),
                    caption="Drawn with the first machine throughout.",
                ),
                Animation("Uninformed", uninformed.run, trails=("tip",)),
            ),
            notes=(
                f"Exchanged at {self.exchange_time:g} s: {self.new.what}.",
                "Gamma is a sum of one term for each body. The figures of its shares jump at the "
                "exchange; of a link alone only its own term changes.",
                "The uncertainty of the uninformed run is measured against the model that "
                "the law still has.",
            ),
        )  # fmt: skip

    @property
    def new(self) -> Exchange:
        """What is exchanged."""
        return EXCHANGES[self.change]

    @property
    def exchange_time(self) -> float:
        """When the link is exchanged, s."""
        return self.duration / 2

    def _tracked(
        self, law: RobustControl, form: Embedded, progress: bool | None, *, informed: bool
    ) -> Tracking:
        x0, v0 = first_state(form.machine)
        told = self.new.law if informed else None
        run = simulate(
            form.machine, law, joint_path(law.machine), x0, v0, duration=self.duration, dt=self.dt,
            every=max(1, round(1e-3 / self.dt)), formulation=form, plant=self.plant,
            events=(SetParameters(self.exchange_time, plant=self.new.plant, law=told),),
            record=("energy",), progress=progress,
        )  # fmt: skip
        values = self._values(run.t, form.machine, self.new.plant)
        known = self._values(run.t, law.machine, told)
        return Tracking.of(run, law, form, parameters=(values, known))

    def _values(
        self, t: np.ndarray, machine: Machine, new: Mapping[str, float] | None
    ) -> np.ndarray:
        rows = np.tile(machine.parameters.values(), (len(t), 1))
        rows[t >= self.exchange_time - 1e-9] = machine.parameters.values(new or {})
        return rows

    # ------------------------------------------------------------------ figures and promises

    def _metrics(self, informed: Tracking, uninformed: Tracking, model: Embedded) -> dict[str, Any]:
        late = self.exchange_time + 0.75 * (self.duration - self.exchange_time)
        kept, regained = between_jumps(informed, self.exchange_time)
        metrics: dict[str, Any] = {
            **informed.rmse(),
            **uninformed.rmse("untold_"),
            "ultimate_bound": informed.robustness.bound.size,
            "steady_error_max": _norm(informed, self.exchange_time, self.duration),
            "untold_steady_error_max": _norm(uninformed, late, self.duration),
            "untold_ultimate_bound": uninformed.robustness.bound.size,
            "untold_kappa_exceeded": ", ".join(uninformed.robustness.exceeded) or "no",
            "lyapunov_over_level": kept,
            "level_regained_s": regained,
            "untold_lyapunov_over_level": uninformed.robustness.V_left,
            "untold_error_over_envelope": uninformed.robustness.e_left,
            # At the exchange V jumps with Gamma.
            "lyapunov_rate_error": informed.balance(self.exchange_time),
            "uncertainty_over_kappa": float((informed.robustness.dbar / informed.law.kappa).max()),
            "untold_uncertainty_over_kappa": float(
                (uninformed.robustness.dbar / uninformed.law.kappa).max()
            ),
        }
        for i, name in enumerate(COORDINATES):
            force = "nm" if UNITS[name] == "rad" else "n"
            metrics[f"dbar_{name}_{force}"] = float(informed.robustness.dbar[i])
            metrics[f"untold_dbar_{name}_{force}"] = float(uninformed.robustness.dbar[i])
        (event,) = informed.run.meta["events"]
        metrics["jump_x"] = event.get("jump_x", 0.0)
        return {**metrics, "updated_model_error": rebuilt_error(model, self.new)}

    def _promises(self, m: dict[str, Any]) -> tuple[Promise, ...]:
        return (
            Promise.share(
                "informed, kappa exceeds the uncertainty met", m["uncertainty_over_kappa"], 1 - 1e-9
            ),
            Promise.share(
                "informed, V stays below its level, the exchange left out",
                m["lyapunov_over_level"],
                1 + 1e-9,
            ),
            Promise("informed, V is below it again soon", m["level_regained_s"], 0.5, "s"),
            Promise(
                "informed, errors after the exchange are within the ultimate bound",
                m["steady_error_max"],
                m["ultimate_bound"],
                "rad, m",
            ),
            Promise.share(
                "uninformed, the uncertainty exceeds kappa",
                m["untold_uncertainty_over_kappa"],
                least=True,
            ),
            Promise.at_least(
                "uninformed, the error is far larger than informed",
                m["untold_steady_error_max"] / max(m["steady_error_max"], 1e-300),
                10,
                "times",
            ),
            Promise.share(
                "uninformed, the wider bound of its own uncertainty holds",
                max(m["untold_lyapunov_over_level"], m["untold_error_over_envelope"]),
                1 + 1e-9,
            ),
            Promise(
                "the updated model equals a new one, relative error",
                m["updated_model_error"],
                1e-12,
            ),
        )

    def _figures(
        self, informed: Tracking, uninformed: Tracking, shares: tuple[Figure, ...]
    ) -> tuple[Figure, ...]:
        t, wanted = informed.run.t, np.array(coordinates_at(informed.run.t))
        machine = informed.run.machine
        names = machine.x_names if machine is not None else ()
        paths = []
        for i, name in enumerate(COORDINATES):
            k = names.index(name)
            lines = {
                "informed": informed.run.x[:, k],
                "uninformed": uninformed.run.x[:, k],
                "wanted *": wanted[i],
            }
            paths.append(
                Figure.over_time(f"Coordinate {name}", f"{name} ({UNITS[name]})", t, lines)
            )
        return (
            *paths,
            informed.error_figure("Errors, informed", "The exchange does not show."),
            uninformed.error_figure("Errors, uninformed", self.new.uninformed),
            *informed.bound_figures(
                "Between events V stays below the dashed level once it is there; at the exchange "
                "it may jump."
            ),
            informed.uncertainty_figure("Uncertainty, informed"),
            uninformed.uncertainty_figure("Uncertainty, uninformed"),
            *shares,
        )


def rebuilt_error(
    model: Embedded, exchange: Exchange = EXCHANGES["arm"], count: int = 20, seed: int = 0
) -> float:
    """Return the largest relative difference of an updated model from one built from scratch.

    Mass matrix, force at zero acceleration, forward dynamics and tip Jacobian, in random states.
    """
    fresh, values = Embedded(exchange.fresh()), model.machine.parameters.values(exchange.law)
    rng = np.random.default_rng(seed)
    q = rng.uniform((-3, -0.5, 0.0), (3, 1.4, 0.2), (count, 3))
    v, force = rng.normal(size=(count, 3)), 1000 * rng.normal(size=(count, 3))
    largest = 0.0
    for name, arguments in (
        ("mass", (q,)),
        ("bias", (q, v)),
        ("forward", (q, v, force)),
        ("jacobian:tip", (q,)),
    ):
        new = np.asarray(model.kernel(name)(*arguments, values)).reshape(count, -1)
        expected = np.asarray(fresh.kernel(name)(*arguments)).reshape(count, -1)
        gap = np.abs(new - expected).max(axis=1) / np.abs(expected).max(axis=1)
        largest = max(largest, float(gap.max()))
    return largest


def between_jumps(tracking: Tracking, time: float) -> tuple[float, float]:
    """Return the largest V over its level, and how long after a jump at a time V is below it again.

    Before the jump from where V has first come below its level, after it from there on again.
    """
    t, V, level = tracking.run.t, tracking.run["V"], tracking.robustness.bound.V
    largest, regained = 0.0, np.inf
    for part in (t < time - 1e-9, t >= time - 1e-9):
        below = np.flatnonzero(V[part] <= level)
        if not len(below):
            return np.inf, np.inf
        largest = max(largest, float(V[part][below[0] :].max() / level))
        regained = float(t[part][below[0]] - time)
    return largest, regained


def _norm(tracking: Tracking, start: float, stop: float) -> float:
    """Largest norm of the error between two times."""
    t = tracking.run.t
    return float(np.linalg.norm(tracking.e[(t >= start) & (t <= stop)], axis=1).max())
