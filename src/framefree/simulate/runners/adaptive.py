"""Steps whose length follows from their error."""

from collections.abc import Iterable
from dataclasses import dataclass
from operator import itemgetter

import numpy as np

from framefree.kernel import Kernel, compile
from framefree.simulate.errors import SimulationError
from framefree.simulate.integrators import DormandPrince
from framefree.simulate.loop import ControlLoop
from framefree.simulate.noise import NoiseSource
from framefree.simulate.runners.base import Clock, KeptRows, LoopInputs, LoopStates, Runner


@dataclass(frozen=True)
class Adaptive:
    """An adaptive integrator: Dormand and Prince's pair with control of the error of every step.

    Parameters
    ----------
    tolerance : float
        Largest error of a step: of coordinates in m and rad, of velocities relative to 1 + |v|.
    smallest : float
        Shortest step in s; where even this has too large an error the run stops.
    """

    tolerance: float = 1e-9
    smallest: float = 1e-12

    def __post_init__(self) -> None:
        if not (self.tolerance > 0 and self.smallest > 0):
            raise SimulationError(
                f"`tolerance` and `smallest` must be positive, got {self.tolerance} and "
                f"{self.smallest}"
            )


class AdaptiveRunner(Runner):
    """Runs a loop with steps of varying length that end at every multiple of dt.

    They also end wherever a disturbance or the reference jumps.
    """

    def __init__(
        self,
        loop: ControlLoop,
        clock: Clock,
        constants: LoopStates,
        noise: NoiseSource | None,
        method: Adaptive,
        jumps: Iterable[float] = (),
    ) -> None:
        super().__init__(loop, clock, constants, noise)
        self.method, self.jumps = method, np.unique(np.asarray(list(jumps), float))
        shapes: dict[str, tuple[int, ...]] = {"time": (), "h": ()}
        self.trial = compile(loop.trial(DormandPrince()), shapes={**shapes, "error": ()})
        self.control = HeldCommand(loop)
        self.steps = 0
        self._length = clock.dt
        self._last_error = 1.0

    def advance(self, state: LoopStates, first: int, count: int, every: int) -> KeptRows:
        """Move on by `count` steps of dt from step `first`."""
        kept: list[LoopStates] = []
        inputs = self.varying(first, count)
        end = self.clock.times(first + count, 1)[0]
        times = np.append(inputs["time"], end)
        for k in range(count):
            if k % every == 0:
                kept.append(state)
            noise = {name: values[k] for name, values in inputs.items() if name != "time"}
            try:
                state = self._period(state, times[k], times[k + 1], noise)
            except StepTooSmall as error:
                error.rows = kept
                raise
        return KeptRows({name: np.stack([row[name] for row in kept]) for name in state}, state)

    def _period(self, state: LoopStates, begin: float, end: float, noise: LoopStates) -> LoopStates:
        fixed = {**self.constants, **noise}
        if self.loop.ratio:
            now = {**fixed, "time": float(begin), "h": self.clock.dt}
            state = self.control(state, now)
        inside = self.jumps[(self.jumps > begin) & (self.jumps < end)]
        for stop in (*inside, end):
            state = self._integrate(state, begin, float(stop), fixed)
            begin = float(stop)
        return state

    def _integrate(self, state: LoopStates, t: float, end: float, fixed: LoopStates) -> LoopStates:
        # What is left after the last step is a rounding error, not a step.
        while end - t > 1e-13 * max(abs(end), 1.0):
            h = min(self._length, end - t)
            if h > 0.9 * (end - t):
                h = end - t
            moved, error = self._attempt(state, t, h, fixed)
            if not np.isfinite(error):
                error = 1e9
            scaled = max(error / self.method.tolerance, 1e-10)
            if scaled <= 1:
                state, t = moved, end if h == end - t else t + h
                self.steps += 1
                # Proportional-integral control of the step [Hairer1996, IV.2].
                factor = 0.9 * scaled**-0.17 * self._last_error**0.04
                self._last_error = max(scaled, 1e-4)
                grown = h * float(np.clip(factor, 0.2, 5.0))
                # A step cut short by the end says little about the one that follows.
                self._length = min(
                    max(grown, self._length if h < self._length else 0), self.longest
                )
            else:
                self._length = h * max(0.9 * scaled**-0.2, 0.1)
                if self._length < self.method.smallest:
                    raise StepTooSmall(t, state)
        return state

    @property
    def longest(self) -> float:
        """Longest step: dt."""
        return self.clock.dt

    def _attempt(
        self, state: LoopStates, t: float, h: float, fixed: LoopStates
    ) -> tuple[LoopStates, float]:
        inputs = {**state, **fixed, "time": float(t), "h": float(h)}
        values = self.trial(*[inputs[name] for name in self.loop.symbols])
        names = [port.name for port in self.trial.outputs]
        moved = dict(zip(names, values, strict=True))
        error = float(moved.pop("error"))
        return {**state, **{k.removesuffix("_next"): v for k, v in moved.items()}}, error


class StepTooSmall(SimulationError):
    """No step is short enough for the tolerance."""

    def __init__(self, time: float, state: LoopStates) -> None:
        super().__init__(f"no step is short enough at {time:.9g} s", time=time, state=state)
        self.rows: list[LoopStates] = []


class HeldCommand:
    """What happens where a control period begins: a new command, which is held until the next.

    Parameters
    ----------
    loop : ControlLoop
        One whose steps count those of a control period, or that has none.
    """

    def __init__(self, loop: ControlLoop) -> None:
        function = loop.control() if loop.ratio else None
        self.kernel: Kernel | None = None
        if function is not None and function.n_out():
            self.kernel = compile(function, shapes={"time": (), "h": ()})
            self._names = [name.removesuffix("_next") for name in function.name_out()]
        self._inputs = itemgetter(*loop.symbols)
        self._counts = [np.array([float(k)]) for k in range(loop.ratio)]

    def __call__(self, state: LoopStates, fixed: LoopInputs) -> LoopStates:
        """Return the state at the beginning of a step; `fixed` are all inputs but the states."""
        count = int(state["count"].flat[0])  # of many trajectories all count together
        following_count = self._counts[(count + 1) % len(self._counts)]
        if state["count"].ndim > 1:
            following_count = np.broadcast_to(following_count, state["count"].shape)
        following = {**state, "count": following_count}
        if count or self.kernel is None:
            return following
        values = self.kernel(*self._inputs({**state, **fixed}))
        values = values if isinstance(values, tuple) else (values,)
        following.update(zip(self._names, values, strict=True))
        return following
