"""The scenario `quad-flip`."""

from dataclasses import dataclass
from functools import partial
from typing import ClassVar

from framefree.gallery.scenarios.prototypes.flight_scenario import FlightScenario, Flown, Published
from framefree.gallery.scenarios.prototypes.flights import Craft, flips, quadcopter_craft
from framefree.gallery.shared.scenario import Outcome

EXCESS = 0.4
"""N by which the reference as it was flown asks for less than no thrust."""


@dataclass(frozen=True)
class QuadFlip(FlightScenario):
    """A quadcopter flips in six directions, at more than 700 degrees per second.

    Within a metre of height the craft jumps up, turns over and catches itself. The reference is the
    one that was flown. At the fastest moment of each flip it asks one propeller to push downwards
    by up to 0.4 N, for about 0.15 s, which it cannot: what it asks for beyond the
    limits is promised to be no more than that, and the law gets over it. `slower` stretches time by
    a factor and the way by its square, at the same accelerations: from 1.15 on all thrusts are
    within their limits, and that is promised then.

    Parameters
    ----------
    slower : float
        Factor by which time is stretched.
    """

    name: ClassVar[str] = "quad-flip"
    published: ClassVar[Published] = Published((0.026, 2.1, 0.8), (0.0259, 2.087, 0.78))

    slower: float = 1.0

    @property
    def craft(self) -> Craft:
        """What is flown."""
        return quadcopter_craft(partial(flips, slower=self.slower), 4.7)

    def run(self, progress: bool | None = None) -> Outcome:
        """Fly the flips with observer, without, and by sensors."""
        excess = EXCESS if self.slower < 1.15 else 0.0
        flown = Flown(self.craft, self.published, self, progress, excess=excess)
        return self.outcome(
            flown,
            figures=(flown.path(0, 2, "The flips, from the side"),),
            animations=(flown.animation("Flips", "Six flips, each in another direction."),),
        )
