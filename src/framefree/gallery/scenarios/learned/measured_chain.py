"""Learning from what a real machine would give: poses with noise, inputs that act late.

It is recorded in two rounds. The law that knows nothing of the fluid lags far behind its motions,
and so never meets the speeds at which it is to follow them later. What is learned from its runs is
good enough for the law of the second round to reach those speeds; all runs together are learned
from in the end.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from framefree.gallery.scenarios.learned.closed_loop import FluidTracking
from framefree.gallery.scenarios.learned.fluid_chain import LENGTH, Swimming, swimmer
from framefree.gallery.scenarios.learned.open_loop import FEATURES
from framefree.identify import Recording
from framefree.learn import Learned, RodLibrary, Training, WrenchModel, learn
from framefree.learn.measured import estimate_delay, measured_samples
from framefree.simulate import Run

PLACE, ANGLE = 2e-4, 1e-3
"""Noise of measured positions (m) and angles (rad)."""
PERIOD, LATE = 5e-3, 4
"""s from row to row, and rows by which inputs act late: 20 ms."""
STEPS = 3
"""Of the simulation from row to row."""
DURATION = 20.0
"""s, of a run."""
WINDOW, EVERY = 0.2, 20
"""Local polynomials, s, and rows from sample to sample."""
FIRST = 300
"""Seed of the first motion."""


@dataclass(frozen=True)
class MeasuredChain:
    """Recorded runs: the first half of a law that knows nothing of the fluid.

    Parameters
    ----------
    motions : int
        Runs of 20 s, two or more.
    seed : int
        Of the noise and of the motions.
    progress : bool or None
    """

    motions: int = 6
    seed: int = 0
    progress: bool | None = None

    @cached_property
    def recordings(self) -> list[Recording]:
        """All runs at 200 Hz, with noise; inputs recorded 20 ms before they act."""
        first = self.first_recordings
        known = self.first_learned.model
        return [*first, *(self._recorded(k, known) for k in range(len(first), self.motions))]

    @cached_property
    def first_recordings(self) -> list[Recording]:
        """Those of the law that knows nothing of the fluid."""
        return [self._recorded(k, None) for k in range(self.motions // 2)]

    def _recorded(self, k: int, model: WrenchModel | None) -> Recording:
        """Return motion k as a law with a model of the fluid follows it."""
        run = FluidTracking(
            Swimming(), DURATION, PERIOD / STEPS, progress=self.progress, every=STEPS,
            motion=FIRST + 100 * self.seed + k,
        ).run(model)  # fmt: skip
        return with_noise(run, np.random.default_rng([self.seed, k]))

    @cached_property
    def first_learned(self) -> Learned:
        """What the first round tells."""
        return self._learned(self.first_recordings, delay_of(self.first_recordings))

    @cached_property
    def delay(self) -> float:
        """The delay as found from all runs, s."""
        return delay_of(self.recordings)

    def learned(self, delay: float) -> Learned:
        """Return what all runs tell with inputs taken to act so late."""
        return self._learned(self.recordings, delay)

    def _learned(self, recordings: Sequence[Recording], delay: float) -> Learned:
        samples = measured_samples(swimmer(), recordings, window=WINDOW, delay=delay, every=EVERY)
        training = Training(decay=1e-5, seed=self.seed)
        return learn(samples, library=RodLibrary(LENGTH), training=training, features=FEATURES)


def with_noise(run: Run, rng: np.random.Generator) -> Recording:
    """Return a run as sensors of a real machine would give it."""
    machine, rows = swimmer(), len(run.t) - LATE
    noise = rng.normal(size=(rows, machine.nv))
    noise[:, :3] *= PLACE
    noise[:, 3:] *= ANGLE
    return Recording(run.t[:rows], machine.integrate(run.x[:rows], noise), u=run.u[LATE:])


def delay_of(recordings: Sequence[Recording]) -> float:
    """Return the delay (s) that explains recordings best."""
    library = RodLibrary(LENGTH)
    return estimate_delay(swimmer(), recordings, library, window=WINDOW, every=EVERY)
