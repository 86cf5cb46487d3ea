"""Whether a machine comes to rest from many starts: what confirms a region of attraction."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from framefree.control.attraction import Attraction
from framefree.control.references import Hold
from framefree.simulate.errors import SimulationError
from framefree.simulate.run import Run
from framefree.simulate.simulation import simulate

HOME = 1e-4
"""V, as a share of the level, below which a run has come to rest."""


@dataclass(frozen=True, eq=False)
class RunsFromStarts:
    """Runs from many starts.

    Attributes
    ----------
    run : Run
        All of them, (count, times, ...).
    first, last, highest : (count,)
        V, as a share of the region's level, at the beginning, at the end, and at its highest;
        infinite where a run was lost.
    """

    run: Run
    first: np.ndarray
    last: np.ndarray
    highest: np.ndarray

    @property
    def home(self) -> np.ndarray:
        """Whether each has come to rest (count,)."""
        return self.last < HOME

    @property
    def risen(self) -> float:
        """Largest share by which V was ever above its first value; zero where it only fell."""
        return float((self.highest / self.first - 1).max())


def confirmed(
    region: Attraction,
    starts: int | tuple[Any, Any],
    *,
    duration: float,
    dt: float,
    seed: int = 1,
    limits: bool = True,
    every: int = 50,
    **options: Any,
) -> RunsFromStarts:
    """Run the machine of a region of attraction from many starts, and see where it comes to.

    Parameters
    ----------
    region : Attraction
    starts : int, or (count, nx) and (count, nv)
        How many random starts, evenly spread over the region; or the starts themselves.
    duration, dt, limits, every :
        As for `simulate`; V is looked at once in `every` steps.
    seed : int
    options
        Others of `simulate`.
    """
    machine, law = region.loop.plant, region.loop.law
    x0, v0 = region.starts(starts, seed) if isinstance(starts, int) else starts
    try:
        run = simulate(
            machine,
            law,
            Hold(law.machine, region.x),
            x0,
            v0,
            duration=duration,
            dt=dt,
            limits=limits,
            every=every,
            record=(),
            **options,
        )
    except SimulationError as error:
        # All of them are lost; what was recorded of them until then counts.
        if error.run is None:
            raise
        run = error.run
    count, times = run.x.shape[:2]
    values = region.value(run.x.reshape(count * times, -1), run.v.reshape(count * times, -1))
    values = values.reshape(count, times)
    lost = ~np.isfinite(run.x.reshape(count, -1)).all(axis=1) | (run.status != "finished")
    last = np.where(lost, np.inf, values[:, -1])
    return RunsFromStarts(run, values[:, 0], last, np.where(lost, np.inf, values.max(axis=1)))
