"""Laws together of which some are in numbers.

Each is called with its part of the state, references and memory. Where all laws in numbers can be
made of native calls so can the whole: a call takes the parts of the state, each law writes a column
of its own, and a last call puts these together.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import pairwise
from math import prod
from typing import Any

import casadi as ca
import numpy as np

from framefree.control.law import (
    AnyLaw,
    ControlError,
    Law,
    LawBlocks,
    NumericCommand,
    NumericLaw,
    Timing,
)
from framefree.control.law_group import LawGroup
from framefree.control.law_program import READING
from framefree.kernel import Kernel, compile
from framefree.machine import Machine

Matrix = Any


class LawInColumns:
    """A law that is an expression, as a function of columns: matrices are in them row by row.

        t, x, v, references and readings in order, memory -> u, signals in order, memory_next

    Parameters
    ----------
    law : Law
    period : float
        Control period, s, over which its memory moves.
    """

    def __init__(self, law: Law, period: float) -> None:
        machine = law.machine
        t, x, v = ca.SX.sym("t"), ca.SX.sym("x", machine.nx), ca.SX.sym("v", machine.nv)
        shapes = {**{n: law.shapes[n] for n in law.needs}, **dict.fromkeys(law.measures, READING)}
        read = {name: ca.SX.sym("read", a * b) for name, (a, b) in shapes.items()}
        named = {n: ca.reshape(read[n], b, a).T for n, (a, b) in shapes.items()}
        memory = ca.SX.sym("memory", len(law.memory))
        command = law.control(t, x, v, named, memory)
        values = {name: ca.SX(value) for name, value in command.signals.items()}
        self.signals = {name: _plain_shape(value.shape) for name, value in values.items()}
        outputs = [ca.SX(command.u), *(ca.vec(value.T) for value in values.values())]
        outputs.append(command.memory_after(memory, period))
        self.function = ca.Function(
            "law", [t, x, v, *read.values(), memory], [ca.densify(value) for value in outputs]
        )

    @cached_property
    def kernel(self) -> Kernel:
        """The function, compiled."""
        return compile(self.function)


@dataclass(frozen=True, eq=False)
class NumericLawsTogether(LawGroup, NumericLaw):
    """Laws that act on one machine at the same time, some of them in numbers.

    See `framefree.control.LawsTogether`, which makes it. Estimates of unknown forces are not handed
    to the laws, and their machines must not have tunable numbers.

    Parameters
    ----------
    machine : Machine
    laws : mapping of str to Law or NumericLaw
    uses : mapping of str to sequence of str
    period : float
        Control period, s, over which memories of laws that are expressions move; `simulate` sets
        it.
    """

    machine: Machine
    laws: Mapping[str, Any]
    uses: Mapping[str, Sequence[str]] = field(default_factory=dict)
    period: float = field(default=0.0, repr=False)

    def __post_init__(self) -> None:
        super().__post_init__()
        for name, law in self.laws.items():
            if len(law.machine.parameters):
                raise ControlError(
                    f"the machine of law `{name}` has tunable numbers, which laws together do not "
                    "take where one of them is in numbers; give it `machine.numeric`"
                )

    @property
    def native(self) -> bool:
        """Whether all laws in numbers are."""
        return all(law.native for law in self.laws.values() if isinstance(law, NumericLaw))

    @property
    def instead(self) -> str:
        """Say which law keeps the whole from being compiled."""
        slow = [
            name
            for name, law in self.laws.items()
            if isinstance(law, NumericLaw) and not law.native
        ]
        return f"`{slow[0]}` is the one; {self.laws[slow[0]].instead}" if slow else ""

    @property
    def signals(self) -> Mapping[str, tuple[int, ...]]:
        """Shapes of all signals, each with the name of its law."""
        return {
            f"{name}.{key}": shape
            for name in self.laws
            for key, shape in self._signals(name).items()
        }

    def timed(self, timing: Timing) -> AnyLaw:
        """Return the laws as they must be for a control period and a delay."""
        laws = {name: law.timed(timing) for name, law in self.laws.items()}
        same = all(laws[name] is law for name, law in self.laws.items())
        if same and timing.period == self.period:
            return self
        return replace(self, laws=laws, period=timing.period)

    @cached_property
    def _columns(self) -> dict[str, LawInColumns]:
        """The laws that are expressions."""
        laws = self.laws.items()
        return {name: LawInColumns(law, self.period) for name, law in laws if isinstance(law, Law)}

    def _signals(self, name: str) -> Mapping[str, tuple[int, ...]]:
        return self._columns[name].signals if name in self._columns else self.laws[name].signals

    @property
    def _memory_ends(self) -> list[int]:
        return np.cumsum([0, *(len(law.memory) for law in self.laws.values())]).tolist()

    # ------------------------------------------------------------------ calls from Python

    def command(
        self,
        t: float,
        x: np.ndarray,
        v: np.ndarray,
        reference: Mapping[str, np.ndarray],
        memory: np.ndarray,
    ) -> NumericCommand:
        """Return the inputs of all laws, and what each of them records."""
        u, signals, after = np.zeros(self.machine.nu), {}, []
        for (name, law), (a, b) in zip(self.laws.items(), pairwise(self._memory_ends), strict=True):
            read = {key: reference[f"{name}.{key}"] for key in (*law.needs, *law.measures)}
            state = x[self._places[name][0]], v[self._places[name][1]]
            made = self._ask(name, t, state, read, memory[a:b])
            for actuator in self._used(name):
                own = np.ravel(made.u)[law.machine.u_slice[actuator]]
                u[self.machine.u_slice[actuator]] = own
            signals |= {f"{name}.{key}": value for key, value in made.signals.items()}
            after.append(memory[a:b] if made.memory is None else made.memory)
        return NumericCommand(u, signals, np.concatenate([np.zeros(0), *after]))

    def _ask(
        self, name: str, t: float, state: Any, read: dict[str, np.ndarray], memory: np.ndarray
    ) -> NumericCommand:
        """Return the command of one law."""
        if name not in self._columns:
            return self.laws[name].command(t, *state, read, memory)
        one = self._columns[name]
        columns = [np.ravel(value) for value in read.values()]
        u, *signals, after = one.kernel(np.full(1, t), *state, *columns, memory)
        pairs = zip(one.signals.items(), signals, strict=True)
        return NumericCommand(u, {key: np.reshape(s, shape) for (key, shape), s in pairs}, after)

    @cached_property
    def _places(self) -> dict[str, tuple[list[int], list[int]]]:
        """Where each law's x and v are among those of the machine."""
        places = {}
        for name, known in self._known.items():
            x = known.x(ca.DM(range(self.machine.nx)))
            v = known.v(ca.DM(range(self.machine.nv)))
            places[name] = tuple(
                [int(k) for k in ca.DM(ca.evalf(ca.SX(part))).full().ravel()] for part in (x, v)
            )
        return places

    # ------------------------------------------------------------------ native calls

    def write(self, calls: Any, inputs: LawBlocks, column: Any, *, signals: bool = True) -> None:
        """Append calls that write u, all signals in order and memory to a block."""
        blocks = []
        for (name, law), (a, b) in zip(self.laws.items(), pairwise(self._memory_ends), strict=True):
            x, v = calls.block(law.machine.nx), calls.block(law.machine.nv)
            calls.call(self._parts(name), [inputs.x, inputs.v], [x, v])
            read = {k: inputs.reference[f"{name}.{k}"] for k in (*law.needs, *law.measures)}
            own = LawBlocks(inputs.t, x, v, inputs.memory[a:b], read)
            sizes = self._sizes(name, signals)
            block = calls.block(sum(sizes))
            if name in self._columns:
                self._write_expression(calls, name, own, block, signals)
            else:
                law.write(calls, own, block, signals=signals)
            blocks.append(block)
        calls.call(self._joined(signals), blocks, [column])

    def _sizes(self, name: str, signals: bool) -> tuple[int, ...]:
        """Return the sizes of u, all signals and memory in the column of a law."""
        law = self.laws[name]
        told = [prod(shape) for shape in self._signals(name).values()] if signals else []
        return (law.machine.nu, *told, len(law.memory))

    def _write_expression(
        self, calls: Any, name: str, own: LawBlocks, block: Any, signals: bool
    ) -> None:
        function = self._columns[name].function
        values = [own.t, own.x, own.v, *own.reference.values(), own.memory]
        symbols = [ca.SX.sym("i", function.size1_in(k)) for k in range(function.n_in())]
        outputs = function(*symbols)
        kept = outputs if signals else [outputs[0], outputs[-1]]
        # What is empty has no block to be in.
        used = [k for k in range(len(values)) if symbols[k].numel()]
        one = ca.Function("law", [symbols[k] for k in used], [ca.vertcat(*kept)])
        calls.call(one, [values[k] for k in used], [block])

    def _parts(self, name: str) -> ca.Function:
        """Return the law's state from that of the machine."""
        x, v = ca.SX.sym("x", self.machine.nx), ca.SX.sym("v", self.machine.nv)
        places = self._places[name]
        return ca.Function("parts", [x, v], [x[places[0]], v[places[1]]])

    def _joined(self, signals: bool) -> ca.Function:
        """Return u of the machine, all signals and memories, from the columns of the laws."""
        u, told, kept, columns = ca.SX(self.machine.nu, 1), [], [], []
        for name, law in self.laws.items():
            ends = np.cumsum((0, *self._sizes(name, signals))).tolist()
            one = ca.SX.sym("column", ends[-1])
            own, *parts, memory = (one[a:b] for a, b in pairwise(ends))
            for actuator in self._used(name):
                places = law.machine.u_slice[actuator]
                u[self.machine.u_slice[actuator]] = own[places]
            told += parts
            kept.append(memory)
            columns.append(one)
        return ca.Function("joined", columns, [ca.densify(ca.vertcat(u, *told, *kept))])


def _plain_shape(shape: tuple[int, int]) -> tuple[int, ...]:
    return shape if shape[1] > 1 else shape[:1]
