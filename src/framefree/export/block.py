"""A block: what is exported, as one step from inputs and memory to outputs and next memory.

A controller, a plant and a whole loop are blocks alike. Everything that is written of a block (C
projects, FMUs, test-benches, boards) is made of what this file says, and knows nothing of laws and
machines.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from framefree.kernel import Kernel
from framefree.kernel.c_source import CSource
from framefree.kernel.expression import ExpressionProgram
from framefree.kernel.loops import Calls


class BlockPort(NamedTuple):
    """Some numbers that go in or out together.

    Attributes
    ----------
    name : str
    size : int
    entries : tuple of str
        Names of the numbers; empty where they are only counted.
    units : tuple of str
        Of each number, or empty.
    about : str
        What it is, in words.
    """

    name: str
    size: int
    entries: tuple[str, ...] = ()
    units: tuple[str, ...] = ()
    about: str = ""

    def entry(self, k: int) -> str:
        """Return the name of a number."""
        return self.entries[k] if len(self.entries) == self.size else str(k)

    def unit(self, k: int) -> str:
        """Return the unit of a number."""
        if len(self.units) == self.size:
            return self.units[k]
        return self.units[0] if len(self.units) == 1 else ""


@dataclass(frozen=True)
class StepBlock:
    """A step that can be exported; see the top of this file.

    Attributes
    ----------
    name : str
        Of its functions and files.
    about : str
        What it is, in a sentence.
    program : ExpressionProgram or Calls
        Inputs are all numbers of `groups` in order and then all of `memory`; outputs all of
        `outputs` and then the next values of `memory`.
    groups : mapping of str to tuple of BlockPort
        What goes in, in groups: {"sensors": ..., "reference": ...}.
    outputs, memory : tuple of BlockPort
    start : mapping of str to array
        First values of the memory.
    held : tuple of str
        Names of memory that a step leaves as it is: tunable numbers.
    period : float
        Time of a step, s.
    signals : ExpressionProgram, Calls or None
        From the same inputs to what is worth recording.
    signal_ports : tuple of BlockPort
    reference : ExpressionProgram or None
        From the time to the group "reference", where there is one to follow.
    now : ExpressionProgram or None
        From the same inputs to the first outputs as they are before a step.
    rates : ContinuousForm or None
        The same as differential equations, where it is a plant.
    """

    name: str
    about: str
    program: ExpressionProgram | Calls
    groups: Mapping[str, tuple[BlockPort, ...]]
    outputs: tuple[BlockPort, ...]
    memory: tuple[BlockPort, ...]
    start: Mapping[str, np.ndarray]
    period: float
    held: tuple[str, ...] = ()
    signals: ExpressionProgram | Calls | None = None
    signal_ports: tuple[BlockPort, ...] = ()
    reference: ExpressionProgram | None = None
    now: ExpressionProgram | None = None
    rates: "ContinuousForm | None" = field(default=None, repr=False)

    @property
    def inputs(self) -> Iterator[tuple[str, BlockPort]]:
        """All inputs with their groups."""
        for group, ports in self.groups.items():
            for port in ports:
                yield group, port

    @property
    def moving(self) -> tuple[BlockPort, ...]:
        """The memory that a step changes."""
        return tuple(port for port in self.memory if port.name not in self.held)

    def kernel(self) -> Kernel:
        """Return the step as compiled code."""
        return self.program.compile()

    def sources(self) -> dict[str, CSource]:
        """Return the functions in C: "core", and others where there are any."""
        parts: dict[str, Any] = {"core": self.program, "signals": self.signals}
        parts |= {"reference": self.reference, "now": self.now}
        if self.rates is not None:
            parts["rates"] = self.rates.program
        return {
            key: part.c_source(f"{self.name}_{key}" if key == "core" else f"{self.name}_{key}_core")
            for key, part in parts.items()
            if part is not None
        }


class ContinuousForm(NamedTuple):
    """A plant as differential equations, for solvers that integrate themselves.

    Attributes
    ----------
    program : ExpressionProgram
        From time, inputs and memory to the rates of `states`.
    states : tuple of str
        Names of the memory that moves continuously.
    """

    program: ExpressionProgram
    states: tuple[str, ...]


def split_columns(ports: Sequence[BlockPort], rows: np.ndarray) -> dict[str, np.ndarray]:
    """Return columns of a table by the names of ports."""
    ends = np.cumsum([0, *(port.size for port in ports)]).tolist()
    pairs = zip(ports, ends[:-1], ends[1:], strict=True)
    return {port.name: rows[..., a:b] for port, a, b in pairs}
