"""The learned model where it has no data: a guard fades it out, and what may go wrong is stated.

On body b with trust w_b the guarded model leaves  w_b (tau_b - tau_hat_b) + (1 - w_b) tau_b  of the
true wrench: what the model itself leaves, what the law without learning leaves, or something in
between. The first is bounded by the conformal bound q on motions that were not learned from. So it
leaves at most q more than the law without learning, s falls into a ball that is larger by q / k at
most, and as poses follow s at `RATE`, the rods are at most q / (k RATE) farther off.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from framefree.control.port import PoseControl
from framefree.gallery.scenarios.learned.closed_loop import DAMPING, RATE
from framefree.gallery.scenarios.learned.fluid_chain import Swimming, TrueFluid, swimmer
from framefree.gallery.scenarios.learned.fluid_chain import swimming_samples as samples_of
from framefree.gallery.scenarios.learned.open_loop import FluidLessons
from framefree.learn import GuardedModel, Samples, ball_radius, conformal_bound

FAR = Swimming(space=True, slowest=0.25, fastest=0.75)
"""Motions half as fast again as those that were learned from."""
TRIED = 400
"""Samples of them."""


@dataclass(frozen=True)
class GuardedLessons:
    """What was learned, with a guard, and the bound that it states.

    Parameters
    ----------
    lessons : FluidLessons
    """

    lessons: FluidLessons

    @cached_property
    def model(self) -> GuardedModel:
        """The model, trusted as far as its samples reach."""
        return GuardedModel.of(self.lessons.full.model, self.lessons.data(self.lessons.samples))

    @cached_property
    def bound(self) -> float:
        """q, N: nine of ten unseen motions in space have no larger misfit anywhere."""
        return conformal_bound(self.lessons.full.model, self.lessons.tests["space"])

    @property
    def distance(self) -> float:
        """By how much the rods may be farther off than without learning, m."""
        law = PoseControl(swimmer(), DAMPING, rate=RATE, floor=1.0)
        names = [body.name for body in law.machine.bodies]
        dampings = dict(zip(names, law.dampings, strict=True))  # type: ignore[attr-defined]
        return ball_radius(self.bound, law.machine, dampings) / RATE

    @cached_property
    def far(self) -> Samples:
        """States that the model has not been near to."""
        seed = self.lessons.seed + 200
        return samples_of(swimmer(), FAR, TrueFluid(), count=TRIED, seed=seed)

    def excess(self, guarded: bool = True) -> float:
        """Return how much more is left of T' tau, at worst, than without any model, N."""
        model = self.model if guarded else self.lessons.full.model
        left = self.far.whiten(self.far.predicted(model) - self.far.labels)
        without = self.far.whiten(self.far.labels)
        return float(np.max(np.linalg.norm(left, axis=1) - np.linalg.norm(without, axis=1)))
