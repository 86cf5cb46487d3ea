"""A routine with its sizes: what a program of calls can call, like a casadi function."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from framefree.kernel.routines.language import Layout, Routine
from framefree.kernel.routines.to_c import routine_c
from framefree.kernel.routines.to_lanes import lanes_text
from framefree.kernel.routines.to_llvm import routine_text
from framefree.kernel.target import Target


@dataclass(frozen=True, eq=False)
class Procedure:
    """A routine of one desk, some arrays of which are inputs, some outputs.

    Parameters
    ----------
    label : str
        A name that C allows.
    routine : Routine
        Of one argument, a `Desk`.
    layout : Layout
    inputs, outputs : sequence of str
        Names of arrays of the desk. Others hold anything when the routine begins.
    """

    label: str
    routine: Routine
    layout: Layout
    inputs: Sequence[str]
    outputs: Sequence[str]

    def __call__(self, *values: np.ndarray) -> tuple[np.ndarray, ...]:
        """Run as Python, slowly."""
        desk = self.layout.desk()
        for name, value in zip(self.inputs, values, strict=True):
            getattr(desk, name)[:] = np.ravel(value)
        self.routine(desk)
        return tuple(getattr(desk, name) for name in self.outputs)

    # What a program of calls asks of a function.

    def name(self) -> str:
        """Return the name."""
        return self.label

    def n_in(self) -> int:
        """Return the number of inputs."""
        return len(self.inputs)

    def n_out(self) -> int:
        """Return the number of outputs."""
        return len(self.outputs)

    def numel_in(self, k: int) -> int:
        """Return the size of an input."""
        return self.layout.parts[self.inputs[k]]

    def numel_out(self, k: int) -> int:
        """Return the size of an output."""
        return self.layout.parts[self.outputs[k]]

    def serialize(self) -> str:
        """Return a text that changes with what the routine does."""
        return self.c_text + repr((self.layout.places, self.inputs, self.outputs))

    @property
    def entry(self) -> str:
        """Name of the compiled function, ``void entry(double *desk)``."""
        return f"{self.label}_{self.routine.name}"

    def llvm_text(self, target: Target) -> str:
        """Return the routine as LLVM assembly, for as many states at once as there are lanes."""
        write = routine_text if target.lanes == 1 else lanes_text
        return write(self.routine, self.layout, f"{self.label}_", self.table(target), target)

    def table(self, target: Target) -> dict[str, int]:
        """Return where on the desk the addresses of inputs and outputs are, in bytes."""
        start = self.layout.size * target.lanes
        return {name: 8 * (start + k) for k, name in enumerate((*self.inputs, *self.outputs))}

    @property
    def slots(self) -> int:
        """Size of the desk with its table of addresses."""
        return self.layout.size + self.n_in() + self.n_out()

    @cached_property
    def c_text(self) -> str:
        """The routine as C."""
        return routine_c(self.routine, self.layout, f"{self.label}_")
