"""From a run to what can be taken elsewhere: the blocks of a run, and their recorded steps."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from framefree.export.bench_c import RecordedSteps
from framefree.export.block import StepBlock
from framefree.export.controller import Controller
from framefree.export.errors import ExportError
from framefree.export.plant import Plant, WholeLoop
from framefree.export.recording import STEPS, RecordedLoop
from framefree.export.struct_c import check_name
from framefree.simulate import Run

PARTS = {"law": (Controller, "controller"), "plant": (Plant, "plant"), "loop": (WholeLoop, "loop")}
"""What can be exported of a run, and what it is called in C."""


class ExportedPart:
    """Law, plant or loop of a run as a block, with its steps along the run.

    Parameters
    ----------
    run : Run
        One that was made in this process.
    what : "law", "plant" or "loop"
    name : str, optional
        Of functions and files in C; by default "controller", "plant" or "loop".
    steps : int, optional
        Of the test-bench. Without, those of the run, at most 10,000; a run that is shorter goes on
        beyond its end.
    """

    def __init__(
        self, run: Run, what: str, name: str | None = None, steps: int | None = None
    ) -> None:
        if what not in PARTS:
            raise ExportError(f"`what` must be one of {', '.join(PARTS)}, got {what!r}")
        kind, usual = PARTS[what]
        name = usual if name is None else name
        check_name(name)
        if steps is not None and (not isinstance(steps, int | np.integer) or steps < 1):
            raise ExportError(f"`steps` must be a number of steps from 1 on, got {steps}")
        if not isinstance(run, Run):
            raise ExportError(f"`run` must be a run that `simulate` has made, got {run!r}")
        self.run, self.what = run, what
        self.recorded = RecordedLoop(run)
        self.made: Any = kind(self.recorded, name)
        self.block: StepBlock = self.made.block()
        self.steps = self._steps(steps)

    def _steps(self, wanted: int | None) -> RecordedSteps:
        """Return the steps of the block along the run, as the kernel on the desk makes them."""
        block, most = self.block, wanted or STEPS
        record = self.recorded.record(most, on=wanted is not None)
        inputs = {
            name: rows[:most] for name, rows in self.made.recorded_inputs(record).items()
        }  # a plant makes several steps in each period of its law
        values = named_results(block.program, inputs)
        told = {} if block.signals is None else named_results(block.signals, inputs)
        rows = len(next(iter(inputs.values())))
        names = [f"{group}_{port.name}" for group, port in block.inputs]
        memory = [f"memory_{port.name}" for port in block.memory]
        after = {
            port.name: inputs[f"memory_{port.name}"]
            if port.name in block.held
            else values[f"memory_{port.name}_next"]
            for port in block.memory
        }
        return RecordedSteps(
            block,
            stacked(rows, [inputs[name] for name in names]),
            stacked(rows, [inputs[name] for name in memory]),
            stacked(rows, [values[f"out_{port.name}"] for port in block.outputs]),
            stacked(rows, list(after.values())),
            stacked(rows, [told[f"signal_{port.name}"] for port in block.signal_ports]),
        )


def named_results(program: Any, inputs: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Return what a program gives for many steps at once, by name."""
    kernel = program.compile()
    given = {port.name: np.ascontiguousarray(inputs[port.name]) for port in kernel.inputs}
    values = kernel(**given)
    values = values if isinstance(values, tuple) else (values,)
    return {port.name: np.asarray(v) for port, v in zip(kernel.outputs, values, strict=True)}


def stacked(rows: int, arrays: list[np.ndarray]) -> np.ndarray:
    """Return arrays side by side, (rows, n)."""
    return np.hstack([np.zeros((rows, 0)), *(array.reshape(rows, -1) for array in arrays)])
