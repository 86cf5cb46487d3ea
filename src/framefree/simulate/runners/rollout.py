"""The native loop in time: one compiled step, applied again and again."""

from typing import Any

import numpy as np

from framefree.kernel import compile
from framefree.simulate.integrators import Integrator
from framefree.simulate.loop import Loop
from framefree.simulate.noise import NoiseSource
from framefree.simulate.runners.base import Clock, Rows, Runner, States


class RolloutRunner(Runner):
    """Runs a loop with an integrator of fixed step, one trajectory or many."""

    batches = True

    def __init__(
        self,
        loop: Loop,
        clock: Clock,
        constants: States,
        noise: NoiseSource | None,
        integrator: Integrator,
        threads: int = 1,
    ) -> None:
        super().__init__(loop, clock, constants, noise)
        self.threads = threads
        self.kernel = compile(loop.step(integrator), shapes={"time": (), "h": ()})

    def advance(self, state: States, first: int, count: int, every: int) -> Rows:
        """Move on by `count` steps of the loop from its step `first`."""
        whole = count - count % every
        parts: list[States] = []
        for begin, steps in ((first, whole), (first + whole, count - whole)):
            if steps:
                kept, state = self._roll(state, begin, steps, every)
                parts.append(kept)
        if len(parts) == 1:
            return Rows(parts[0], state)
        return Rows({k: np.concatenate([p[k] for p in parts], axis=-2) for k in state}, state)

    def _roll(self, state: States, first: int, steps: int, every: int) -> tuple[States, States]:
        given: dict[str, Any] = {**state, **self.constants, "h": self.clock.dt}
        record = self.kernel.rollout(
            **given,
            steps=steps,
            every=min(every, steps),
            sequences=self.varying(first, steps),
            threads=self.threads,
        )
        return {name: record.states[name][..., :-1, :] for name in state}, record.final
