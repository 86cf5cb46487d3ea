"""A loop whose law is evaluated in Python, at the beginning of every control period."""

from typing import Any

import numpy as np

from framefree.kernel import compile
from framefree.simulate.law_output import LawOutput
from framefree.simulate.runners.base import KeptRows, LoopStates, Runner
from framefree.simulate.storage import Arrays


class PythonLawRunner(Runner):
    """Evaluates a `NumericLaw` where a control period begins; another runner makes the steps.

    Parameters
    ----------
    runner : Runner
        What makes the steps.
    output : LawOutput
        How the law's command is handed over.
    """

    def __init__(self, runner: Runner, output: LawOutput) -> None:
        super().__init__(runner.loop, runner.clock, runner.constants, runner.noise)
        self.runner, self.output, self.batches = runner, output, runner.batches
        self.channels = runner.channels
        self._names = self.loop.reference_names
        self._law_inputs = compile(self.loop.law_inputs(), shapes={"time": (), "h": (), "t": ()})

    def set_constants(self, constants: LoopStates) -> None:
        """Take other values of the parameters."""
        super().set_constants(constants)
        self.runner.set_constants(constants)

    def advance(self, state: LoopStates, first: int, count: int, every: int) -> KeptRows:
        """Move on by `count` steps of the loop from its step `first`."""
        kept: list[LoopStates] = []
        for step in range(first, first + count):
            state = self.ready(state, step)
            if (step - first) % every == 0:
                kept.append(state)
            state = self.runner.advance(state, step, 1, 1).final
        return KeptRows(
            {name: np.stack([row[name] for row in kept], axis=-2) for name in state}, state
        )

    def observed(self, kept: LoopStates, first: int, count: int, every: int) -> Arrays:
        """Return what the other runner records itself."""
        return self.runner.observed(kept, first, count, every)

    def ready(self, state: LoopStates, step: int) -> LoopStates:
        """Return the state with what the law says, where a control period begins."""
        if "count" in state and np.any(state["count"] > 0.5):
            return state
        varying = self.varying(step, 1)
        inputs = {**state, **self.constants, "time": varying["time"][0], "h": self.clock.dt}
        if "noise" in varying:
            inputs["noise"] = varying["noise"][..., 0, :]
        law_inputs = self._law_inputs(**{name: inputs[name] for name in self.loop.symbols})
        memory = state.get("memory", np.zeros((*state["x"].shape[:-1], 0)))
        values = self._parameters
        if state["x"].ndim == 1:
            return {**state, "law_output": self._evaluated(law_inputs, memory, values)}
        numbers = np.broadcast_to(values, (len(memory), values.shape[-1]))
        rows = zip(*law_inputs, memory, numbers, strict=True)
        columns = [self._evaluated(row[:-2], *row[-2:]) for row in rows]
        return {**state, "law_output": np.stack(columns)}

    @property
    def _parameters(self) -> np.ndarray:
        """Values of the tunable numbers of the law's machine, where it has any."""
        own, plant = self.output.law.machine.parameters, self.loop.machine.parameters
        name = "parameters" if own is plant else "law_parameters"
        return self.constants[name] if len(own) else np.zeros(0)

    def _evaluated(
        self, law_inputs: tuple[np.ndarray, ...], memory: np.ndarray, parameters: np.ndarray
    ) -> np.ndarray:
        t, x, v, *references = law_inputs
        named = dict(zip(self._names, references, strict=True))
        more: dict[str, Any] = {"parameters": parameters} if parameters.size else {}
        command = self.output.law.command(float(t), x, v, named, memory, **more)
        return self.output.column(command, memory)
