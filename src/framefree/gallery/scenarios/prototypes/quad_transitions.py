"""The scenario `quad-transitions`."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from framefree.control.prototype import PrototypeControl
from framefree.control.prototype.tuning import chosen, free_body, matching
from framefree.control.references import Hold
from framefree.gallery.machines.multicopters import quadcopter
from framefree.gallery.scenarios.prototypes.flight_scenario import FlightScenario, Flown, Published
from framefree.gallery.scenarios.prototypes.flights import (
    Craft,
    quadcopter_craft,
    transitions,
)
from framefree.gallery.scenarios.prototypes.recorded import compare
from framefree.gallery.shared.scenario import Outcome, Promise
from framefree.look.report import Figure
from framefree.simulate import Run, simulate


@dataclass(frozen=True)
class QuadTransitions(FlightScenario):
    """A quadcopter moves from place to place and turns; and a lesson in matching.

    The moves are those of a recorded flight. The lesson: a prototype whose centers of inertia,
    damping and stiffness all lie in the middle would hold position by forces sideways. A quadcopter
    has none, the nearest it can do in the prototype's metric is nothing, and it drifts. With the
    centers apart, and the moments that go with that, tilting brings it back: small errors move
    exactly as those of the prototype.

    Parameters
    ----------
    recorded : str
        Path of a recorded flight to be put beside the model; see `recorded.py`.

    Metrics
    -------
    with*_offsets_end_m
        How far the pushed craft is in the end, with the prototype's centers apart or
        together.
    with*_offsets_matching_error
        By how much the matching conditions are missed.
    with*_offsets_slowest_pole
        Real part of the slowest pole, 1/s: 0 means that errors stay.
    recorded_*
        Of the recorded flight, beside the model.
    """

    name: ClassVar[str] = "quad-transitions"
    published: ClassVar[Published] = Published((0.017, 1.3, 0.3), (0.0167, 1.297, 0.3))

    recorded: str = ""
    """Path of a recorded flight to be put beside the model; see `recorded.py`."""

    @property
    def craft(self) -> Craft:
        """What is flown."""
        return quadcopter_craft(transitions, 13.5)

    def run(self, progress: bool | None = None) -> Outcome:
        """Fly the moves; push a hovering craft under matched and unmatched gains."""
        flown = Flown(self.craft, self.published, self, progress)
        lesson = _Lesson(progress)
        beside = compare(self.recorded) if self.recorded else None
        caption = "Moves of 1 to 2 m, turns of the heading, and climbs."
        return self.outcome(
            flown,
            runs=lesson.runs,
            metrics={**lesson.metrics(), **(beside.metrics() if beside else {})},
            promises=lesson.promises(),
            figures=(
                flown.path(0, 2, "The moves, from the side"),
                lesson.figure(),
                *(beside.figures() if beside else ()),
            ),
            animations=(flown.animation("Transitions", caption),),
            notes=(
                "Why the centers must be apart: with all of them in the middle the prototype's "
                "metric keeps forces and torques apart, so that no torque is spent on an error of "
                "position; the four poles of moving sideways are zero. The matched prototype has "
                "l = h, Theta = m s (h - s), Pi = m g (h - s) about its centers: then the force "
                "that the craft cannot give, the matching force, vanishes to first order.",
            ),
        )


class _Lesson:
    """A hovering quadcopter, pushed sideways, under prototypes with and without offsets."""

    def __init__(self, progress: bool | None) -> None:
        machine = quadcopter(drag=False, offset=False)
        middle = free_body(1.001, (0.0095, 0.0095, 0.0307), (2.8, 0.78), (9.0, 0.7))
        apart = chosen(1.001, 0.043, 0.255, 4.4, 8.0, (0.0307, 0.1, 0.2))
        self.laws = {
            "with offsets": PrototypeControl(machine, **apart.on("body"), approach="body"),
            "without offsets": PrototypeControl(machine, **middle.on("body"), approach="body"),
        }
        x = machine.neutral()
        self.runs: dict[str, Run] = {
            name.replace(" ", "_"): simulate(
                machine,
                law,
                Hold(machine, x),
                x,
                np.array([0.7, 0.0, 0.0, 0.0, 0.0, 0.0]),
                duration=10.0,
                dt=2e-3,
                record=(),
                progress=progress,
            )
            for name, law in self.laws.items()
        }

    def metrics(self) -> dict[str, float]:
        """Return where the two craft end, and how well they are matched."""
        metrics = {}
        for name, law in self.laws.items():
            key, linear = name.replace(" ", "_"), matching(law)
            at = self.runs[key].x[-1, :3]
            metrics[f"{key}_end_m"] = float(np.linalg.norm(at))
            metrics[f"{key}_matching_error"] = linear.error
            metrics[f"{key}_slowest_pole"] = float(np.real(linear.poles).max())
        return metrics

    def promises(self) -> tuple[Promise, ...]:
        """Return what the lesson says."""
        values = self.metrics()
        return (
            Promise.of(
                values, "with_offsets_end_m", "with offsets the pushed craft comes back", 1e-4
            ),
            Promise(
                "with offsets all matching conditions hold, error",
                values["with_offsets_matching_error"],
                1e-12,
            ),
            Promise(
                "without offsets moving sideways is not controlled: the slowest pole is zero",
                abs(values["without_offsets_slowest_pole"]),
                1e-6,
                "1/s",
            ),
            Promise.at_least(
                "without offsets the pushed craft drifts away",
                values["without_offsets_end_m"],
                5.0,
                "m",
            ),
        )

    def figure(self) -> Figure:
        """Return how far the two craft get."""
        t = next(iter(self.runs.values())).t
        values = {
            name: np.linalg.norm(self.runs[name.replace(" ", "_")].x[:, :3], axis=1)
            for name in self.laws
        }
        return Figure.over_time(
            "A hovering craft, pushed sideways",
            "distance (m)",
            t,
            values,
            caption="Without centers apart nothing pulls the craft back.",
        )
