"""The scenario `quad-loop`."""

from dataclasses import dataclass
from typing import ClassVar

from framefree.gallery.scenarios.prototypes.flight_scenario import FlightScenario, Flown, Published
from framefree.gallery.scenarios.prototypes.flights import Craft, loops, quadcopter_craft
from framefree.gallery.shared.scenario import Outcome


@dataclass(frozen=True)
class QuadLoop(FlightScenario):
    """A quadcopter flies four vertical loops of 2 m, upside down at the top.

    The reference is that of a recorded flight. Attitude follows from the path: thrust and drag
    leave no choice but the heading. Near the top nothing of roll, pitch and yaw would be left to
    compute with; here nothing happens.
    """

    name: ClassVar[str] = "quad-loop"
    published: ClassVar[Published] = Published((0.027, 2.5, 1.2), (0.0388, 2.467, 1.158))
    """The recorded flight's printed 0.027 m leave out its mean offset and 15 percent of the rest;
    0.0388 m is what the record says."""

    @property
    def craft(self) -> Craft:
        """What is flown."""
        return quadcopter_craft(loops, 3.4)

    def run(self, progress: bool | None = None) -> Outcome:
        """Fly the loops with observer, without, and by sensors."""
        flown = Flown(self.craft, self.published, self, progress)
        caption = "Four loops, two to either side."
        return self.outcome(
            flown,
            figures=(flown.path(0, 2, "The loops"),),
            animations=(flown.animation("Vertical loops", caption),),
        )
