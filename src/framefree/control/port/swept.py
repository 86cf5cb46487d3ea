"""A port law of a long machine as native loops over its bodies, for runs.

As one expression a law grows with the machine, and with it the time to compile it: 47 s for 40
bodies. Written as calls it has one function for all bodies that are alike. Runs take this form by
themselves from `LONG` bodies on, see `PortLaw.timed`.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from math import prod
from typing import Any

import casadi as ca
import numpy as np

from framefree.control.law import LawBlocks, NumericCommand, NumericLaw
from framefree.control.port.sweeps import BodyChain
from framefree.kernel.loops import Block, Calls
from framefree.machine import Machine
from framefree.machine.part import set_field
from framefree.motion.loops import LoopTape
from framefree.motion.spatial import Matrix
from framefree.motion.tree import Tree

LONG = 16
"""Number of bodies from which on a law is written as loops."""


@dataclass(frozen=True, eq=False)
class SweptPortLaw(NumericLaw):
    """A port law made of native calls; it gives what the law itself gives.

    Parameters
    ----------
    law : PortLaw
        Of a machine without tunable numbers, without a correction (`unknown`).
    """

    law: Any

    def __post_init__(self) -> None:
        set_field(self, "machine", self.law.machine)
        set_field(self, "needs", self.law.needs)
        set_field(self, "units", self.law.units)

    @property
    def name(self) -> str:
        """What the law is called in records."""
        return self.law.name

    @property
    def native(self) -> bool:
        """Whether the law can `write` itself as native calls."""
        return True

    @cached_property
    def shapes(self) -> Mapping[str, tuple[int, int]]:
        """Shapes of the reference signals."""
        return self.law.shapes

    @property
    def signals(self) -> Mapping[str, tuple[int, ...]]:
        """Shapes of all signals by name."""
        return self.law.signal_shapes

    @cached_property
    def _tape(self) -> LoopTape:
        law = self.law
        keys = [law.body_key(body.name) for body in law.machine.bodies]
        return LoopTape("port_law", Tree(law.machine), law.dampings, keys)

    def write(
        self, calls: Calls, inputs: LawBlocks, column: Block, *, signals: bool = True
    ) -> None:
        """Append calls that write u, all signals in order, row by row, and memory to a block."""
        law, machine, tape = self.law, self.machine, self._tape.onto(calls)
        reference = {name: self._matrix(tape, name, inputs.reference[name]) for name in self.needs}
        parts = [
            [tape.value(block[places[joint.name]], size(joint), 1) for joint in machine.joints]
            for block, places, size in (
                (inputs.x, machine.x_slice, _nx),
                (inputs.v, machine.v_slice, _nv),
            )
        ]
        chain = BodyChain(tape, *parts)
        asked = law.command(chain, reference)
        written = {"V": [asked.V], "s": asked.s}
        written |= {name: [value] for name, value in law.signals(chain, asked).items()}
        u, rate, unrealised = law.write_inputs(calls, chain, inputs, asked)
        copies = {"V_rate": rate, "unrealised": unrealised}
        self._copy(calls, u, column[: machine.nu])
        start = machine.nu
        for name, shape in self.signals.items() if signals else ():
            into = column[start : start + prod(shape)]
            start += prod(shape)
            if name in copies:
                self._copy(calls, copies[name], into)
            else:
                tape.write_into(into, written[name])

    def _matrix(self, tape: LoopTape, name: str, block: Block) -> Any:
        """Return a reference signal, of which the block has the rows."""
        rows, columns = self.shapes[name]
        value = tape.value(block)
        if columns == 1:
            return value
        return tape.shared(("rows", rows, columns), _from_rows(rows, columns), value)

    def _copy(self, calls: Calls, block: Block, into: Block) -> None:
        if into.size not in self._copies:
            x = ca.SX.sym("x", into.size)
            self._copies[into.size] = ca.Function("copied", [x], [x])
        calls.call(self._copies[into.size], [block], [into])

    @cached_property
    def _copies(self) -> dict[int, ca.Function]:
        return {}

    def command(
        self,
        t: float,
        x: np.ndarray,
        v: np.ndarray,
        reference: Mapping[str, np.ndarray],
        memory: np.ndarray,
    ) -> NumericCommand:
        """Return the inputs, and what is to be recorded, at a state."""
        values = [np.asarray(reference[name], float).ravel() for name in self.needs]
        column = self._kernel(x, v, *values)
        ends = np.cumsum([self.machine.nu, *map(prod, self.signals.values())])
        parts = np.split(np.atleast_1d(column), ends[:-1])
        pairs = zip(self.signals.items(), parts[1:], strict=True)
        return NumericCommand(parts[0], {n: part.reshape(shape) for (n, shape), part in pairs})

    @cached_property
    def _kernel(self) -> Any:
        calls = Calls("port_law")
        x, v = calls.input("x", (self.machine.nx,)), calls.input("v", (self.machine.nv,))
        named = {
            name: calls.input(name.replace(".", "_"), (prod(self.shapes[name]),))
            for name in self.needs
        }
        size = self.machine.nu + sum(map(prod, self.signals.values()))
        blocks = LawBlocks(calls.zeros(1), x, v, calls.zeros(0), named)
        self.write(calls, blocks, calls.output("column", (size,)))
        return calls.compile()


def sweepable(machine: Machine) -> bool:
    """Tell whether a law of a machine can be loops, and gains by it."""
    return len(machine.bodies) >= LONG and not len(machine.parameters) and not machine.closed


def _nx(joint: Any) -> int:
    return joint.nx


def _nv(joint: Any) -> int:
    return joint.nv


def _from_rows(rows: int, columns: int) -> Any:
    def from_rows(entries: Matrix) -> Matrix:
        return ca.reshape(entries, columns, rows).T

    return from_rows
