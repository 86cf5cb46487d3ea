"""Learning from what a real machine would give: poses with noise, inputs that act late."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from framefree.gallery.scenarios.learned.closed_loop import FluidTracking
from framefree.gallery.scenarios.learned.fluid_chain import LENGTH, Swimming, swimmer
from framefree.gallery.scenarios.learned.open_loop import FEATURES
from framefree.identify import Recording
from framefree.learn import Learned, RodLibrary, Training, learn
from framefree.learn.measured import estimate_delay, measured_samples

PLACE, ANGLE = 2e-4, 1e-3
"""Noise of measured positions (m) and angles (rad)."""
PERIOD, LATE = 5e-3, 4
"""s from row to row, and rows by which inputs act late: 20 ms."""
WINDOW, EVERY = 0.2, 20
"""Local polynomials, s, and rows from sample to sample."""
FIRST = 300
"""Seed of the first motion."""


@dataclass(frozen=True)
class MeasuredChain:
    """Recorded runs of a law that knows nothing of the fluid.

    Parameters
    ----------
    motions : int
    seed : int
    progress : bool or None
    """

    motions: int = 6
    seed: int = 0
    progress: bool | None = None

    @cached_property
    def recordings(self) -> list[Recording]:
        """Runs of 20 s at 200 Hz, with noise; inputs recorded 20 ms before they act."""
        machine, rng = swimmer(), np.random.default_rng(self.seed)
        recordings = []
        for k in range(self.motions):
            tracking = FluidTracking(
                Swimming(), 20.0, PERIOD / 5, progress=self.progress, motion=FIRST + k
            )
            run = tracking.run(None)
            rows = len(run.t) - LATE
            noise = rng.normal(size=(rows, machine.nv))
            noise[:, :3] *= PLACE
            noise[:, 3:] *= ANGLE
            x = machine.integrate(run.x[:rows], noise)
            recordings.append(Recording(run.t[:rows], x, u=run.u[LATE:]))
        return recordings

    @cached_property
    def delay(self) -> float:
        """The delay as found, s."""
        library = RodLibrary(LENGTH)
        return estimate_delay(swimmer(), self.recordings, library, window=WINDOW, every=EVERY)

    def learned(self, delay: float) -> Learned:
        """Return what is learned with inputs taken to act so late."""
        samples = measured_samples(
            swimmer(), self.recordings, window=WINDOW, delay=delay, every=EVERY
        )
        training = Training(decay=1e-5, seed=self.seed)
        return learn(samples, library=RodLibrary(LENGTH), training=training, features=FEATURES)
