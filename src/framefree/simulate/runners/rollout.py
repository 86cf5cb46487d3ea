"""The native loop in time: one compiled step, applied again and again."""

from typing import Any

import numpy as np

from framefree.kernel import Precision, compile
from framefree.simulate.errors import SimulationError
from framefree.simulate.implicit import implicit_step
from framefree.simulate.integrators import ExplicitIntegrator, ImplicitIntegrator, Integrator
from framefree.simulate.loop import ControlLoop
from framefree.simulate.native_law import LAW_OUTPUT_NOW, native_step
from framefree.simulate.noise import NoiseSource
from framefree.simulate.runners.base import Clock, KeptRows, LoopStates, Runner
from framefree.simulate.staged import is_long, staged_step

HALVINGS = 12
"""How often a step that cannot be made is halved to find one that can."""


class RolloutRunner(Runner):
    """Runs a loop with an integrator of fixed step, one trajectory or many."""

    batches = True
    repeatable = True

    def __init__(
        self,
        loop: ControlLoop,
        clock: Clock,
        constants: LoopStates,
        noise: NoiseSource | None,
        integrator: Integrator,
        threads: int = 1,
        precision: Precision = "double",
    ) -> None:
        super().__init__(loop, clock, constants, noise)
        self.threads, self.integrator = threads, integrator
        output = loop.law_side.output
        self._native_law = output is not None and output.law.native
        if precision == "single" and output is not None and output.law.native:
            raise SimulationError(
                f'the law {output.law.name} is solved by iterations, which `precision="single"` '
                "does not have"
            )
        if isinstance(integrator, ImplicitIntegrator):
            self.kernel = implicit_step(loop, integrator).compile()
        elif isinstance(integrator, ExplicitIntegrator) and self._native_law:
            self.kernel = native_step(loop, integrator).compile()
        elif isinstance(integrator, ExplicitIntegrator) and self._is_long(precision):
            self.kernel = staged_step(loop, integrator).compile()
        elif isinstance(integrator, ExplicitIntegrator):
            shapes: dict[str, tuple[int, ...]] = {"time": (), "h": ()}
            self.kernel = compile(loop.step(integrator), shapes=shapes, precision=precision)
        else:
            raise SimulationError(f"`{integrator!r}` is neither explicit nor implicit")

    def _is_long(self, precision: Precision) -> bool:
        """Tell whether a step by an explicit integrator is a program of calls."""
        integrator = self.integrator
        if not isinstance(integrator, ExplicitIntegrator) or precision != "double":
            return False
        return is_long(self.loop, integrator)

    def advance(self, state: LoopStates, first: int, count: int, every: int) -> KeptRows:
        """Move on by `count` steps of the loop from its step `first`."""
        whole = count - count % every
        parts: list[LoopStates] = []
        for begin, steps in ((first, whole), (first + whole, count - whole)):
            if steps:
                kept, state = self._roll(state, begin, steps, every)
                parts.append(kept)
        if len(parts) == 1:
            return KeptRows(parts[0], state)
        return KeptRows({k: np.concatenate([p[k] for p in parts], axis=-2) for k in state}, state)

    def _roll(
        self, state: LoopStates, first: int, steps: int, every: int
    ) -> tuple[LoopStates, LoopStates]:
        inputs: dict[str, Any] = {**state, **self.constants, "h": self.clock.dt}
        record = self.kernel.rollout(
            **inputs,
            steps=steps,
            every=min(every, steps),
            sequences=self.varying(first, steps),
            threads=self.threads,
        )
        kept = {name: record.states[name][..., :-1, :] for name in state}
        if self._native_law:
            kept["law_output"] = record.signals[LAW_OUTPUT_NOW]
        return kept, record.final

    def ready(self, state: LoopStates, step: int) -> LoopStates:
        """Return the state with what the law says."""
        if not self._native_law:
            return state
        varying = self.varying(step, 1)
        inputs: dict[str, Any] = {**state, **self.constants, "h": self.clock.dt}
        inputs["time"] = varying["time"][0]
        if "noise" in varying:
            inputs["noise"] = varying["noise"][..., 0, :]
        results = self.kernel(**inputs)
        names = [port.name for port in self.kernel.outputs]
        return {**state, "law_output": results[names.index(LAW_OUTPUT_NOW)]}

    def shorter_step(self, state: LoopStates, step: int, trajectory: int | None) -> float | None:
        """Return the longest half, quarter, ... of a step that leads where a whole one fails."""
        if not isinstance(self.integrator, ImplicitIntegrator):
            return None
        varying = self.varying(step, 1)
        inputs: dict[str, Any] = {**state, **self.constants}
        for k in range(1, HALVINGS + 1):
            parts, h = 2**k, self.clock.dt / 2**k
            sequences = {"time": varying["time"] + np.arange(parts) * h * self.clock.stride}
            if "noise" in varying:
                sequences["noise"] = np.repeat(varying["noise"], parts, axis=-2)
            inputs["h"] = h
            moved = self.kernel.rollout(
                **inputs, steps=parts, every=parts, sequences=sequences
            ).final["x"]
            if np.isfinite(moved if trajectory is None else moved[trajectory]).all():
                return h
        return None
