"""What the scenarios of the multicopters' flights share: runs, metrics, promises, figures."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from framefree.control.prototype.feasible import feasibility
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


@dataclass(frozen=True)
class Published:
    """Figures of a flight: rms of position (m), attitude and heading (deg).

    `bars` are those printed, `raw` those of the recorded data without any correction.
    """

    bars: tuple[float, float, float]
    raw: tuple[float, float, float]


class Flown:
    """A flight, once under the plain law and once predicted over the known lag.

    Where another approach was chosen, both are also flown with that of the recorded flights.
    """

    def __init__(self, craft: Craft, published: Published, settings: Any, progress: Any) -> None:
        self.craft, self.published = craft, published
        self.approach = settings.approach
        options = {
            "seed": settings.seed,
            "plant": settings.plant,
            "duration": settings.duration,
            "bias": settings.bias,
            "progress": progress,
        }
        self.lead = settings.lead or craft.lead
        self.plain = craft.fly(self.approach, lead=0.0, **options)
        self.predicted = craft.fly(self.approach, lead=self.lead, **options)
        self.as_recorded: dict[str, Run] = {}
        if self.approach != RECORDED:
            self.as_recorded = {
                f"{RECORDED}_predicted": craft.fly(RECORDED, lead=self.lead, **options),
                f"{RECORDED}_plain": craft.fly(RECORDED, lead=0.0, **options),
            }
        self.ideal = craft.ideal(self.approach, ERROR, progress=progress)
        times = np.linspace(0, settings.duration, 701)
        self.feasible = feasibility(craft.machine, craft.reference, times)

    def rms(self, run: Run) -> dict[str, float]:
        """Return the rms of all errors over the run."""
        return {key: rms(e) for key, e in errors(run.x, run.reference["x"]).items()}

    def metrics(self) -> dict[str, Any]:
        """Return the figures of both runs, of the recorded flight, and of the ideal run."""
        metrics: dict[str, Any] = {}
        flown = {"": self.predicted, "plain_": self.plain}
        for name, run in self.as_recorded.items():
            flown[f"{name.removesuffix('_predicted')}_"] = run
        for prefix, run in flown.items():
            values = self.rms(run)
            metrics |= {f"{prefix}rms_{key}_{UNITS[key]}": value for key, value in values.items()}
        for key, value in zip(UNITS, self.published.raw, strict=True):
            metrics[f"flight_rms_{key}_{UNITS[key]}"] = value
        off = errors(self.ideal.x, self.ideal.reference["x"])["position"]
        t = self.ideal.t
        metrics |= {
            "settling_s": settling_time(t, off, 0.05 * off[0]),
            "energy_rate_error": rate_error(t, self.ideal["W"], -self.ideal["W_loss"]),
            "model_energy_rate_error": rate_error(t, self.ideal["W"], self.ideal["W_rate"]),
            "reference_missing_force_n": self.feasible.largest_force,
            "reference_input_margin_n": float(self.feasible.margin.min()),
        }
        return metrics

    def promises(self) -> tuple[Promise, ...]:
        """Return the printed figures of the flight as bounds."""
        values = self.rms(self.predicted)
        return tuple(
            Promise(f"rms {key} error within {bar:g} {UNITS[key]}", values[key], bar)
            for key, bar in zip(UNITS, self.published.bars, strict=True)
        )

    def figures(self) -> tuple[Figure, ...]:
        """Return errors, inputs and error energy over time."""
        t = self.predicted.t
        plain, ahead = (errors(r.x, r.reference["x"]) for r in (self.plain, self.predicted))
        shown = [
            Figure.over_time(
                f"Error of {key}",
                f"error ({UNITS[key]})",
                t,
                {"predicted over the lag": ahead[key], "plain law": plain[key][: len(t)]},
                caption=f"rms: {rms(ahead[key]):.3g} {UNITS[key]} predicted, "
                f"{rms(plain[key]):.3g} {UNITS[key]} plain; the flight had "
                f"{dict(zip(UNITS, self.published.raw, strict=True))[key]:g} {UNITS[key]}.",
            )
            for key in UNITS
        ]
        inputs = dict(zip(self.craft.machine.u_names, self.predicted.u.T, strict=True))
        shown.append(Figure.over_time("Inputs", "thrust (N)", t, inputs))
        shown.append(
            Figure.over_time(
                "Error energy with ideal actuators",
                "energy (J)",
                self.ideal.t,
                {"W": self.ideal["W"]},
                logarithmic=True,
                caption="From an error of 0.3 m and 25 degrees, without noise, delay or lag.",
            )
        )
        return tuple(shown)

    def path(self, first: int, second: int, title: str) -> Figure:
        """Return the path in a plane of the world."""
        labels = ("x (m)", "y (m)", "z (m)")
        x, x_R = self.predicted.x, self.predicted.reference["x"]
        lines = (
            Line("flown", x[:, first], x[:, second]),
            Line("reference", x_R[:, first], x_R[:, second], dashed=True),
        )
        return Figure(title, labels[first], labels[second], lines, equal=True)

    def animation(self, title: str, caption: str) -> Animation:
        """Return the predicted run in motion, with the path to follow."""
        path = self.predicted.reference["x"][::10, :3]
        return Animation(
            title, self.predicted, trails=("body",), paths={"reference": path}, caption=caption
        )

    def runs(self) -> dict[str, Run]:
        """Return all runs by name."""
        own = {"predicted": self.predicted, "plain": self.plain, "ideal": self.ideal}
        return {**own, **self.as_recorded}

    def choice(self) -> str:
        """Return how approach and lead came to be, and what the recorded flights' own gives."""
        lead = 1e3 * self.lead
        if not self.as_recorded:
            return f"The law is that of the recorded flights, predicted {lead:g} ms ahead."
        runs = {"chosen": self.predicted, **self.as_recorded}
        errors_of = {name: self.rms(run) for name, run in runs.items()}
        shown = {
            name: ", ".join(f"{value:.3g} {UNITS[key]}" for key, value in values.items())
            for name, values in errors_of.items()
        }
        return (
            f"The {self.approach} approach and the {lead:g} ms of prediction were "
            "chosen by comparison, on these same flights in simulation. The recorded flights had "
            f"the {RECORDED} approach: predicted over the same lag it gives rms errors of "
            f"{shown[f'{RECORDED}_predicted']} (position, attitude, heading), plainly "
            f"{shown[f'{RECORDED}_plain']}; the chosen one, predicted, {shown['chosen']}."
        )


@dataclass(frozen=True)
class FlightScenario(Scenario):
    """Base of the flights: their settings.

    `approach` is that of the law; `lead` (s) replaces the known lag over which state and reference
    are predicted; `bias` is the share of the identified bias wrench that pushes the craft unknown
    to the law (the vehicles had observers for it; all of it at once makes the flips fail).
    """

    approach: str = "particle"
    plant: str = "native"
    seed: int = 0
    duration: float = WINDOW
    lead: float = 0.0
    bias: float = 0.0

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
    "The law gets the state at 200 Hz with white noise (3 mm, 0.02 m/s, 0.3 deg, 0.02 rad/s), "
    "and its commands act one period, 5 ms, later, through the drives and within the limits of the "
    "vehicle. Errors are those of the true state. The plain law knows nothing of delay and lag; "
    "the other gets state and reference as they will be when its command acts.",
    "With fewer inputs than velocities the error energy need not fall: the signal `W_rate` is what "
    "the model has it do under the inputs, `W_loss` what the prototype's dampers would take.",
)
