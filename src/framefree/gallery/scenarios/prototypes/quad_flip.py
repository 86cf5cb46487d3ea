"""The scenario `quad-flip`."""

from dataclasses import dataclass
from typing import ClassVar

from framefree.gallery.scenarios.prototypes.flight_scenario import FlightScenario, Flown, Published
from framefree.gallery.scenarios.prototypes.flights import flips, quadcopter_craft
from framefree.gallery.shared.scenario import Outcome


@dataclass(frozen=True)
class QuadFlip(FlightScenario):
    """A quadcopter flips in six directions, at more than 700 degrees per second.

    Within a metre of height the craft jumps up, turns over and catches itself. At the fastest
    moment some propellers should push downwards a little, which they cannot: the margin of the
    reference's inputs is reported, and is negative.
    """

    name: ClassVar[str] = "quad-flip"

    def run(self, progress: bool | None = None) -> Outcome:
        """Fly the flips with observer, without, and by sensors."""
        published = Published((0.026, 2.1, 0.8), (0.0259, 2.087, 0.78))
        flown = Flown(quadcopter_craft(flips, 4.7), published, self, progress)
        return self.outcome(
            flown,
            figures=(flown.path(0, 2, "The flips, from the side"),),
            animations=(flown.animation("Flips", "Six flips, each in another direction."),),
        )
