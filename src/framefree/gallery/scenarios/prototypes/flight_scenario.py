"""What the scenarios of the multicopters' flights share: runs, metrics, promises, figures."""

from abc import abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from framefree.campaign import Simulations
from framefree.control.prototype.feasible import feasibility
from framefree.gallery.scenarios.prototypes.flight_loop import flight_loop
from framefree.gallery.scenarios.prototypes.flights import WINDOW, Craft, errors
from framefree.gallery.shared.scenario import Outcome, Promise, Scenario
from framefree.look.report import Animation, Figure, Line
from framefree.simulate import Run
from framefree.simulate.measures import rate_error, rms, settling_time

ERROR = (0.2, -0.15, 0.2, 0.3, -0.2, 0.25)
"""First error of the runs with ideal actuators: m and rad, along the body's axes."""
RECORDED = "body"
"""Approach of the recorded flights."""
UNITS = {"position": "m", "attitude": "deg", "heading": "deg"}
SENSED = 1.5
"""How many times as much as the bars allow the errors of flights by sensors may be."""


@dataclass(frozen=True)
class Published:
    """Figures of a flight: rms of position (m), attitude and heading (deg).

    `bars` are those printed, `raw` those of the recorded data without any correction.
    """

    bars: tuple[float, float, float]
    raw: tuple[float, float, float]


class Flown:
    """A flight under an unknown wrench: with observer, without, by sensors, and as was recorded.

    All laws are predicted over the known lag. Where another approach was chosen, the flight is also
    flown, with the observer, under that of the recorded flights. `excess` (N) is by how much the
    reference may ask for thrusts beyond their limits.
    """

    def __init__(
        self,
        craft: Craft,
        published: Published,
        settings: Any,
        progress: Any,
        excess: float = 0.0,
    ) -> None:
        craft = craft.softened(settings.stiffness)
        self.craft, self.published, self.excess = craft, published, excess
        self.approach, self.bias = settings.approach, settings.bias
        self.lead = settings.lead or craft.lead
        options = {
            "lead": self.lead,
            "seed": settings.seed,
            "plant": settings.plant,
            "duration": settings.duration,
            "bias": settings.bias,
            "progress": progress,
        }
        self.observed = craft.fly(self.approach, observed=True, **options)
        self.plain = craft.fly(self.approach, **options)
        self.sensed = craft.fly(self.approach, observed=True, sensed=True, **options)
        self.as_recorded: dict[str, Run] = {}
        if self.approach != RECORDED:
            self.as_recorded = {RECORDED: craft.fly(RECORDED, observed=True, **options)}
        self.ideal = craft.ideal(self.approach, ERROR, progress=progress)
        times = np.linspace(0, settings.duration, 3501)
        self.feasible = feasibility(craft.machine, craft.reference, times)

    def rms(self, run: Run) -> dict[str, float]:
        """Return the rms of all errors over the run."""
        return {key: rms(e) for key, e in errors(run.x, run.reference["x"]).items()}

    # ------------------------------------------------------------------ numbers

    def metrics(self) -> dict[str, Any]:
        """Return the figures of all runs, of the recorded flight, and of the ideal run."""
        metrics: dict[str, Any] = {}
        flown = {"": self.observed, "plain_": self.plain, "sensed_": self.sensed}
        flown |= {f"{name}_": run for name, run in self.as_recorded.items()}
        for prefix, run in flown.items():
            values = self.rms(run)
            metrics |= {f"{prefix}rms_{key}_{UNITS[key]}": value for key, value in values.items()}
            if run.status != "finished":
                metrics[f"{prefix}lost_s"] = float(run.t[-1])
        for key, value in zip(UNITS, self.published.raw, strict=True):
            metrics[f"flight_rms_{key}_{UNITS[key]}"] = value
        return {**metrics, **self._estimates(), **self._ideal_metrics()}

    def _estimates(self) -> dict[str, float]:
        """Return by how much wrench and state were missed, over the second half of the runs."""
        metrics = {}
        for prefix, run in (("", self.observed), ("sensed_", self.sensed)):
            missed = run["unknown_force"] - self._wrench
            missed = missed[len(missed) // 2 :]
            metrics[f"{prefix}missed_force_n"] = rms(np.linalg.norm(missed[:, :3], axis=1))
            metrics[f"{prefix}missed_moment_nm"] = rms(np.linalg.norm(missed[:, 3:], axis=1))
        known = errors(self.sensed["estimated_x"], self.sensed.x)
        for key in ("position", "attitude"):
            metrics[f"sensed_estimate_rms_{key}_{UNITS[key]}"] = rms(known[key])
        return metrics

    def _ideal_metrics(self) -> dict[str, float]:
        off = errors(self.ideal.x, self.ideal.reference["x"])["position"]
        t = self.ideal.t
        return {
            "settling_s": settling_time(t, off, 0.05 * off[0]),
            "energy_rate_error": rate_error(t, self.ideal["W"], -self.ideal["W_loss"]),
            "model_energy_rate_error": rate_error(t, self.ideal["W"], self.ideal["W_rate"]),
            "reference_missing_force_n": self.feasible.largest_force,
            "reference_input_margin_n": float(self.feasible.margin.min()),
            "reference_beyond_limits_s": self._beyond,
        }

    @property
    def _beyond(self) -> float:
        """Time, s, for which the reference asks for thrusts beyond their limits."""
        step = self.feasible.t[1] - self.feasible.t[0]
        return float((self.feasible.margin < 0).sum() * step)

    @property
    def _wrench(self) -> np.ndarray:
        """The wrench that acts, in body axes."""
        return self.bias * np.asarray(self.craft.bias, float)

    def promises(self) -> tuple[Promise, ...]:
        """Return the printed figures of the flight as bounds, wider for the flight by sensors."""
        made = []
        for run, how, share in (
            (self.observed, "with the observer", 1.0),
            (self.sensed, "by sensors", SENSED),
        ):
            values = self.rms(run)
            made += [
                Promise(
                    f"the craft keeps its {key}, flown {how}, rms",
                    values[key],
                    share * bar,
                    UNITS[key].replace("deg", "°"),
                )
                for key, bar in zip(UNITS, self.published.bars, strict=True)
            ]
        asked = max(0.0, -float(self.feasible.margin.min()))
        made.append(
            Promise("the reference asks for no thrust beyond limits", asked, self.excess, "N")
            if self.excess == 0
            else Promise(
                "the reference asks for little thrust beyond limits", asked, self.excess, "N"
            )
        )
        return tuple(made)

    # ------------------------------------------------------------------ figures

    def figures(self) -> tuple[Figure, ...]:
        """Return errors, estimates, inputs and error energy over time."""
        return (
            *(self._error_figure(key) for key in UNITS),
            *self._wrench_figures(),
            self._estimate_figure(),
            Figure.over_time(
                "Inputs",
                "thrust (N)",
                self.observed.t,
                dict(zip(self.craft.machine.u_names, self.observed.u.T, strict=True)),
            ),
            Figure.over_time(
                "Error energy with ideal actuators",
                "energy (J)",
                self.ideal.t,
                {"W": self.ideal["W"]},
                logarithmic=True,
                caption="From an error of 0.3 m and 25 degrees, without noise, delay, lag or bias.",
            ),
        )

    def _error_figure(self, key: str) -> Figure:
        """Return one error of the three flights."""
        shown = {
            "with observer": self.observed,
            "by sensors, with observer": self.sensed,
            "without observer": self.plain,
        }
        values = {name: errors(r.x, r.reference["x"])[key] for name, r in shown.items()}
        lines = tuple(Line(name, shown[name].t, value) for name, value in values.items())
        unit = UNITS[key]
        told = ", ".join(f"{rms(value):.3g} {unit} {name}" for name, value in values.items())
        raw = dict(zip(UNITS, self.published.raw, strict=True))[key]
        apart = np.max(values["without observer"]) > 10 * np.max(values["with observer"])
        return Figure(
            f"Error of {key}",
            "time (s)",
            f"error ({unit})",
            lines,
            caption=f"rms: {told}; the recorded flight had {raw:g} {unit}.",
            logarithmic=bool(apart),
        )

    def _wrench_figures(self) -> tuple[Figure, ...]:
        """Return observed force and moment beside those that act."""
        run, made = self.observed, []
        for title, unit, part in (("force", "N", slice(0, 3)), ("moment", "Nm", slice(3, 6))):
            lines = {}
            for axis, value, true in zip(
                "xyz", run["unknown_force"][:, part].T, self._wrench[part], strict=True
            ):
                lines[axis] = value
                lines[f"{axis} acting*"] = np.full(len(run.t), true)
            made.append(
                Figure.over_time(
                    f"Unknown {title}, in body axes",
                    f"{title} ({unit})",
                    run.t,
                    lines,
                    caption="As observed, and dashed as it acts. The observer starts from zero.",
                )
            )
        return tuple(made)

    def _estimate_figure(self) -> Figure:
        """Return how far the filter is off in the flight by sensors."""
        run = self.sensed
        off = errors(run["estimated_x"], run.x)
        deviation = np.linalg.norm(run["deviation"][:, 6:9], axis=1)
        return Figure.over_time(
            "Position by IMU and cameras",
            "error (mm)",
            run.t,
            {
                "error of the estimate": 1e3 * off["position"],
                "as the filter has it*": 1e3 * deviation,
            },
            caption=f"rms: {1e3 * rms(off['position']):.3g} mm and {rms(off['attitude']):.2g} deg; "
            "poses come ten times a second and 35 ms late. The deviation is that at the time of "
            "the latest pose.",
        )

    def path(self, first: int, second: int, title: str) -> Figure:
        """Return the path in a plane of the world."""
        labels = ("x (m)", "y (m)", "z (m)")
        x, x_R = self.observed.x, self.observed.reference["x"]
        lines = (
            Line("flown", x[:, first], x[:, second]),
            Line("reference", x_R[:, first], x_R[:, second], dashed=True),
        )
        return Figure(title, labels[first], labels[second], lines, equal=True)

    def animation(self, title: str, caption: str) -> Animation:
        """Return the flight with observer in motion, with the path to follow."""
        path = self.observed.reference["x"][::10, :3]
        return Animation(
            title, self.observed, trails=("body",), paths={"reference": path}, caption=caption
        )

    def runs(self) -> dict[str, Run]:
        """Return all runs by name."""
        own = {"observed": self.observed, "plain": self.plain, "sensed": self.sensed}
        return {**own, "ideal": self.ideal, **self.as_recorded}

    def choice(self) -> str:
        """Return how approach and lead came to be, and what the recorded flights' own gives."""
        lead = 1e3 * self.lead
        if not self.as_recorded:
            return f"The law is that of the recorded flights, predicted {lead:g} ms ahead."
        shown = {
            name: ", ".join(f"{value:.3g} {UNITS[key]}" for key, value in self.rms(run).items())
            for name, run in {"chosen": self.observed, **self.as_recorded}.items()
        }
        return (
            f"The {self.approach} approach and the {lead:g} ms of prediction were "
            "chosen by comparison, on these same flights in simulation. The recorded flights had "
            f"the {RECORDED} approach: with the same prediction and the same observer it gives rms "
            f"errors of {shown[RECORDED]} (position, attitude, heading); the chosen one "
            f"{shown['chosen']}."
        )


@dataclass(frozen=True)
class FlightScenario(Scenario):
    """Base of the flights: their settings.

    `approach` is that of the law; `lead` (s) replaces the known lag over which state and reference
    are predicted; `bias` is the share of the wrench that was identified on the vehicle beside its
    model: constant in body axes, it pushes the craft and the law is not told. The vehicles had
    observers for it; without one, all of it makes the flips fail. `stiffness` is the share of
    the prototype's stiffness that the law has.

    Parameters
    ----------
    approach : str
        How the prototype is imitated: "particle", "body" or "energy".
    plant : str
        "native" or "mujoco".
    seed : int
        Of the noise.
    duration : float
        How long to simulate, s.
    lead : float
        Time over which state and reference are predicted, s; 0 takes the known lag.
    bias : float
        Share of the identified wrench that pushes the craft.
    stiffness : float
        Share of the prototype's stiffness that the law has.

    Metrics
    -------
    rms_*
        Error of the flight with the observer, root of the mean square.
    plain_rms_*
        The same flown without an observer of the unknown wrench.
    sensed_rms_*
        The same flown by IMU and cameras.
    body_rms_*
        The same with the approach of the recorded flights.
    flight_rms_*
        Printed error of the recorded flight.
    *lost_s
        When a flight was lost.
    *missed_force_n
        By how much the observer misses the force that acts, root of the mean square over
        the second half.
    *missed_moment_nm
        By how much the observer misses the moment that acts, root of the mean square over
        the second half.
    sensed_estimate_rms_*
        Error of the estimated state in the flight by sensors, root of the mean square.
    settling_s
        Time after which the error stays below 5 percent of the first one, with ideal
        actuators.
    reference_input_margin_n
        Least distance of a thrust from its limits along the reference; negative is beyond.
    reference_beyond_limits_s
        Time for which the reference asks for thrusts beyond their limits.
    """

    approach: str = "particle"
    plant: str = "native"
    seed: int = 0
    duration: float = WINDOW
    lead: float = 0.0
    bias: float = 1.0
    stiffness: float = 1.0

    published: ClassVar[Published]

    @property
    @abstractmethod
    def craft(self) -> Craft:
        """What is flown."""

    def simulations(self) -> Simulations:
        """Return the flight with the observer, for campaigns."""
        return flight_loop(self.craft.softened(self.stiffness), self, self.published.bars)

    def outcome(self, flown: Flown, **parts: Any) -> Outcome:
        """Return the outcome of a flight; `parts` add to what all flights have."""
        return Outcome(
            runs={**flown.runs(), **parts.get("runs", {})},
            metrics={**flown.metrics(), **parts.get("metrics", {})},
            promises=(*flown.promises(), *parts.get("promises", ())),
            figures=(*parts.get("figures", ()), *flown.figures()),
            animations=parts.get("animations", ()),
            notes=(*parts.get("notes", ()), flown.choice(), *NOTES),
        )


NOTES = (
    "On the craft acts the wrench that was identified beside its model, in body axes. The law "
    "knows nothing of it but what the observer tells, which starts from zero with the run: from "
    "the momentum that lacks under the inputs that the drives gave. The prediction counts it, the "
    "law counts it to its machine, and where no input can match it (a force across the thrust) the "
    "law's reference leans against it; errors are those from the reference as it was given.",
    "The law gets the state at 200 Hz with white noise (3 mm, 0.02 m/s, 0.3 deg, 0.02 rad/s), "
    "and its commands act one period, 5 ms, later, through the drives and within the limits of the "
    "vehicle: it gets state and reference as they will be when its command acts. Errors are those "
    "of the true state.",
    "By sensors: an IMU at 200 Hz with noise (0.05 m/s^2, 0.005 rad/s) and constant biases that "
    "nobody knows, and poses at 10 Hz with noise (2 mm, 0.3 deg) that arrive 35 ms late. An "
    "invariant Kalman filter gives the law its state.",
    "With fewer inputs than velocities the error energy need not fall: the signal `W_rate` is what "
    "the model has it do under the inputs, `W_loss` what the prototype's dampers would take.",
)
