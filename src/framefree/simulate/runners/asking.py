"""A loop whose law is evaluated in Python, at the beginning of every control period."""

import numpy as np

from framefree.kernel import compile
from framefree.simulate.numeric import Told
from framefree.simulate.runners.base import Rows, Runner, States


class AskingRunner(Runner):
    """Asks a `NumericLaw` where a control period begins, and lets another runner make the steps.

    Parameters
    ----------
    runner : Runner
        What makes the steps.
    told : Told
        How the law's command is handed over.
    """

    def __init__(self, runner: Runner, told: Told) -> None:
        super().__init__(runner.loop, runner.clock, runner.constants, runner.noise)
        self.runner, self.told, self.batches = runner, told, runner.batches
        self._names = tuple(self.loop.references(0.0))
        self._question = compile(self.loop.question(), shapes={"time": (), "h": (), "t": ()})

    def set_constants(self, constants: States) -> None:
        """Take other values of the parameters."""
        super().set_constants(constants)
        self.runner.set_constants(constants)

    def advance(self, state: States, first: int, count: int, every: int) -> Rows:
        """Move on by `count` steps of the loop from its step `first`."""
        kept: list[States] = []
        for step in range(first, first + count):
            state = self.ready(state, step)
            if (step - first) % every == 0:
                kept.append(state)
            state = self.runner.advance(state, step, 1, 1).final
        return Rows({name: np.stack([row[name] for row in kept], axis=-2) for name in state}, state)

    def ready(self, state: States, step: int) -> States:
        """Return the state with what the law says, where a control period begins."""
        if "count" in state and np.any(state["count"] > 0.5):
            return state
        varying = self.varying(step, 1)
        inputs = {**state, **self.constants, "time": varying["time"][0], "h": self.clock.dt}
        if "noise" in varying:
            inputs["noise"] = varying["noise"][..., 0, :]
        seen = self._question(**{name: inputs[name] for name in self.loop.symbols})
        memory = state.get("memory", np.zeros((*state["x"].shape[:-1], 0)))
        if state["x"].ndim == 1:
            return {**state, "told": self._answer(seen, memory)}
        answers = [self._answer(row[:-1], row[-1]) for row in zip(*seen, memory, strict=True)]
        return {**state, "told": np.stack(answers)}

    def _answer(self, seen: tuple[np.ndarray, ...], memory: np.ndarray) -> np.ndarray:
        t, x, v, *references = seen
        named = dict(zip(self._names, references, strict=True))
        command = self.told.law.command(float(t), x, v, named, memory)
        return self.told.column(command, memory)
