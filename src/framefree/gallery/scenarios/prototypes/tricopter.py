"""The scenario `tricopter`."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from framefree.gallery.scenarios.prototypes.flight_scenario import (
    ERROR,
    FlightScenario,
    Flown,
    Published,
)
from framefree.gallery.scenarios.prototypes.flights import Craft, tricopter_craft
from framefree.gallery.shared.scenario import Outcome, Promise
from framefree.look.report import Figure
from framefree.simulate.measures import rate_error


@dataclass(frozen=True)
class Tricopter(FlightScenario):
    """A tricopter with tilting arms moves level, leans, and tilts at a place.

    Six inputs for six velocities: attitude is independent of position. The moves are those of a
    recorded flight. With ideal actuators the error energy falls exactly by what the prototype's
    dampers take, for the energy approach and, a single body, for the body approach.

    Metrics
    -------
    *_energy_rate_error
        By how much the rate of W misses what the dampers take, for each approach, ideal
        actuators.
    """

    name: ClassVar[str] = "tricopter"
    published: ClassVar[Published] = Published((0.013, 1.1, 0.95), (0.0132, 1.1, 0.968))

    approach: str = "energy"

    @property
    def craft(self) -> Craft:
        """What is flown."""
        return tricopter_craft()

    def run(self, progress: bool | None = None) -> Outcome:
        """Fly the moves; measure the rate of the error energy for all approaches."""
        craft = self.craft
        flown = Flown(craft, self.published, self, progress)
        others = {
            approach: craft.ideal(approach, ERROR, progress=progress)
            for approach in ("particle", "body", "energy")
        }
        wrong = {name: rate_error(run.t, run["W"], -run["W_loss"]) for name, run in others.items()}
        return self.outcome(
            flown,
            runs={f"ideal_{name}": run for name, run in others.items()},
            metrics={
                "energy_rate_error": wrong["energy"],
                **{f"{name}_energy_rate_error": value for name, value in wrong.items()},
            },
            promises=tuple(
                Promise(
                    f"the error energy falls by what the dampers take ({name} approach), "
                    "relative error",
                    wrong[name],
                    1e-6,
                )
                for name in ("energy", "body")
            ),
            figures=(
                flown.path(0, 2, "The moves, from the side"),
                Figure.over_time(
                    "Error energy of the three approaches, ideal actuators",
                    "energy (J)",
                    others["energy"].t,
                    {name: np.maximum(run["W"], 1e-12) for name, run in others.items()},
                    logarithmic=True,
                ),
            ),
            animations=(
                flown.animation("Transitions", "Level moves, leaning moves, tilts at a place."),
            ),
        )
