"""What a runner is: it moves the states of a loop over many of its steps, and keeps some of them.

To add one, subclass `Runner` and give ``advance(state, first, count, every)``, from all states of
the loop at its step `first` to those at the steps first, first + every, ... before first + count,
and the final ones. What it gives must not depend on how a run is cut into calls.
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from framefree.simulate.columns import Channel
from framefree.simulate.loop import ControlLoop
from framefree.simulate.noise import NoiseSource
from framefree.simulate.storage import Arrays

LoopStates = dict[str, np.ndarray]
"""Values of the states of a loop, or of its inputs, by name."""

LoopInputs = Mapping[str, np.ndarray | float]
"""Values of inputs of a loop: arrays, and floats for the time and the step."""


class KeptRows(NamedTuple):
    """LoopStates at some steps of a loop, and the final ones.

    `kept` arrays have an axis for the rows before their last one: (rows, n) or (batch, rows, n).
    """

    kept: LoopStates
    final: LoopStates


@dataclass(frozen=True)
class Clock:
    """Times of the steps of a loop.

    Attributes
    ----------
    dt : float
        Step of the integrator, s.
    stride : int
        Steps of the integrator in one of the loop.
    ratio : int
        Steps of the integrator in a control period; 0 where the law is always evaluated.
    """

    dt: float
    stride: int = 1
    ratio: int = 0

    def time(self, step: int) -> float:
        """Return the time of a step of the loop."""
        return float(self.times(step, 1)[0])

    def times(self, first: int, count: int, every: int = 1) -> np.ndarray:
        """Return the times of steps first, first + every, ... before first + count."""
        return np.arange(first, first + count, every) * self.stride * self.dt

    def periods(self, first: int, count: int, every: int = 1) -> np.ndarray:
        """Return the control periods that these steps are in."""
        return np.arange(first, first + count, every) * self.stride // max(self.ratio, 1)


class Runner(ABC):
    """Base of all runners; see the contract at the top of this file.

    Parameters
    ----------
    loop : ControlLoop
    clock : Clock
    constants : dict of arrays
        Values of the loop's parameters.
    noise : NoiseSource or None
    """

    batches: bool = False
    """Whether many trajectories can run at once."""

    repeatable: bool = False
    """Whether another run may begin with it: all that it remembers is in the states."""

    threads: int = 1
    """Among which many trajectories are split."""

    channels: tuple[Channel, ...] = ()
    """What a runner itself records beside what follows from our own equations; see `observed`."""

    def __init__(
        self, loop: ControlLoop, clock: Clock, constants: LoopStates, noise: NoiseSource | None
    ) -> None:
        self.loop, self.clock, self.constants, self.noise = loop, clock, constants, noise

    def set_constants(self, constants: LoopStates) -> None:
        """Take other values of the parameters."""
        self.constants = constants

    @abstractmethod
    def advance(self, state: LoopStates, first: int, count: int, every: int) -> KeptRows:
        """Move on by `count` steps of the loop from its step `first`."""

    def ready(self, state: LoopStates, step: int) -> LoopStates:
        """Return the state at a step with all that is needed to record it."""
        return state

    def observed(self, kept: LoopStates, first: int, count: int, every: int) -> Arrays:
        """Return the values of `channels` at rows of states that `advance` has kept."""
        return {}

    def shorter_step(self, state: LoopStates, step: int, trajectory: int | None) -> float | None:
        """Return a step (s) by which a loop moves on from a state where that of the clock fails.

        None where no shorter step helps, or where the length of a step is not the reason.
        """
        return None

    def varying(self, first: int, count: int, every: int = 1) -> LoopStates:
        """Return the time, and the noise, at steps first, first + every, ...."""
        varying = {"time": self.clock.times(first, count, every)}
        if self.noise is not None:
            periods = self.clock.periods(first, count, every)
            begin = int(periods[0])
            drawn = self.noise.periods(begin, int(periods[-1]) - begin + 1)
            varying["noise"] = np.ascontiguousarray(drawn[..., periods - begin, :])
        return varying
