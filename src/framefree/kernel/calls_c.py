"""A program of calls as C99: its functions once, and a table of calls that a loop walks.

Functions that are expressions become straight-line code, routines keep their loops. All of them
work on one array on the stack, whose size is known: nothing is allocated.
"""

import re
from collections.abc import Sequence
from typing import Any, NamedTuple

from framefree.kernel.c_source import (
    FMA,
    SOURCE,
    CSource,
    FunctionWriter,
    block,
    header_text,
    helpers,
    identifier,
    literal,
)
from framefree.kernel.graph import Port
from framefree.kernel.program import KernelProgram
from framefree.kernel.routines.procedure import Procedure

COPY = """
static void copy(double *to, const double *from, long count)
{
    long place;
    for (place = 0; place < count; ++place) {
        to[place] = from[place];
    }
}
"""
OWN = {"copy", "calls", "numbers", "row", "call", "desk", "slots"}
"""Names that the text uses itself, beside those of `c_source`."""


class CallsInC(NamedTuple):
    """What is written of a program of calls.

    Attributes
    ----------
    inputs, outputs : sequence of (Port, int)
        With their first slots.
    functions : sequence of KernelProgram or Procedure
    constant : sequence of tuples of bool
        Of every function, which inputs are constants.
    flagged : sequence of bool
        Of every function, whether the last operand of its calls is a flag that makes them idle.
    calls : sequence of (int, list of int or tuple of float)
        The function, and its operands: first slots, or numbers.
    zeros : sequence of (int, int)
        Slots that hold zeros: first and count.
    slots : int
    """

    inputs: Sequence[tuple[Port, int]]
    outputs: Sequence[tuple[Port, int]]
    functions: Sequence[KernelProgram | Procedure]
    constant: Sequence[tuple[bool, ...]]
    flagged: Sequence[bool]
    calls: Sequence[tuple[int, list[Any]]]
    zeros: Sequence[tuple[int, int]]
    slots: int


def calls_c_source(program: CallsInC, name: str) -> CSource:
    """Write a program of calls as a function in C99."""
    return _Writer(program, name).write()


class _Writer:
    """Writes a program; its names are chosen first."""

    def __init__(self, program: CallsInC, name: str) -> None:
        self.program = program
        self.routines = {one.label: one for one in program.functions if isinstance(one, Procedure)}
        taken = set(OWN)
        for one in self.routines.values():
            taken |= set(re.findall(r"^static \w+ \*?(\w+)\(", one.c_text, re.MULTILINE))
        self.name = identifier(name, taken)
        inner = set(taken)
        self.inputs = [identifier(port.name, inner) for port, _ in program.inputs]
        self.outputs = [identifier(port.name, inner) for port, _ in program.outputs]
        taken |= inner
        self.names, self.texts, self.stacks = [], [], []
        used: set[str] = set()
        for k, one in enumerate(program.functions):
            if isinstance(one, Procedure):
                self.names.append(identifier(f"{name}_{one.label}", taken))
                self.texts.append(_desk(one, self.names[-1]))
                self.stacks.append(8 * one.layout.size)
                continue
            writer = FunctionWriter(one, f"{name}_{k}", taken)
            self.names.append(writer.name)
            self.texts.append(writer.function("static "))
            self.stacks.append(8 * writer.work)
            used |= {node[0] for node in one.graph.nodes}
        self.helpers = helpers(used)
        if self.routines and FMA not in self.helpers and self._fuses():
            self.helpers = FMA + self.helpers

    def _fuses(self) -> bool:
        return any("FMA(" in one.c_text for one in self.routines.values())

    def write(self) -> CSource:
        pointers = [f"const double *{one}" for one in self.inputs]
        pointers += [f"double *{one}" for one in self.outputs]
        signature = f"void {self.name}({', '.join(pointers)})"
        parts = [SOURCE.format(name=self.name), self.helpers, COPY]
        parts += [f"\n{one.c_text}" for one in self.routines.values()]
        parts += [*self.texts, self._tables(), f"\n{signature}\n{block(self._lines())}"]
        header = header_text(
            self.name,
            [(own, port) for own, (port, _) in zip(self.inputs, self.program.inputs, strict=True)],
            [
                (own, port)
                for own, (port, _) in zip(self.outputs, self.program.outputs, strict=True)
            ],
            signature,
            stack := 8 * self.program.slots + max(self.stacks, default=0),
        )
        return CSource(self.name, "".join(parts), header, stack)

    def _lines(self) -> list[str]:
        """Return the statements of the function itself."""
        program = self.program
        lines = [f"double work[{max(program.slots, 1)}];", "long call;"]
        for own, (port, slot) in zip(self.inputs, program.inputs, strict=True):
            lines.append(f"copy(work + {slot}, {own}, {port.size});")
        for first, count in program.zeros:
            lines.append(f"for (call = 0; call < {count}; ++call) {{")
            lines += [f"    work[{first} + call] = 0.0;", "}"]
        lines.append(f"for (call = 0; call < {len(program.calls)}; ++call) {{")
        lines += ["    const long *row = calls[call];", "    switch (row[0]) {"]
        for k, own in enumerate(self.names):
            lines += [f"    case {k}:", *(f"        {one}" for one in self._case(k, own))]
        lines += ["    default:", "        break;", "    }", "}"]
        for own, (port, slot) in zip(self.outputs, program.outputs, strict=True):
            lines.append(f"copy({own}, work + {slot}, {port.size});")
        return lines

    def _case(self, k: int, own: str) -> list[str]:
        """Return one function's call, operands where the row of the table says."""
        one, constant = self.program.functions[k], self.program.constant[k]
        count = one.n_out() if isinstance(one, Procedure) else len(one.graph.outputs)
        places = [
            f"{'numbers' if fixed else 'work'} + row[{j + 1}]" for j, fixed in enumerate(constant)
        ]
        places += [f"work + row[{len(constant) + j + 1}]" for j in range(count)]
        statement = f"{own}({', '.join(places)});"
        if not self.program.flagged[k]:
            return [statement, "break;"]
        flag = f"work[row[{len(constant) + count + 1}]]"
        return [f"if ({flag} == 0.0) {{", f"    {statement}", "}", "break;"]

    def _tables(self) -> str:
        """Return the table of calls, and that of the constants."""
        width = 1 + max((len(operands) for _, operands in self.program.calls), default=0)
        known: dict[tuple[float, ...], int] = {}
        numbers: list[float] = []
        rows = []
        for which, operands in self.program.calls:
            row = [which]
            for one in operands:
                if isinstance(one, tuple) and one not in known:
                    known[one] = len(numbers)
                    numbers.extend(one)
                row.append(known[one] if isinstance(one, tuple) else one)
            row += [0] * (width - len(row))
            rows.append(f"    {{{', '.join(map(str, row))}}},")
        text = (
            f"\nstatic const long calls[{len(rows)}][{width}] = {{\n" + "\n".join(rows) + "\n};\n"
        )
        if not numbers:
            return text
        listed = "".join(f"    {literal(value)},\n" for value in numbers)
        return f"\nstatic const double numbers[{len(numbers)}] = {{\n{listed}}};\n{text}"


def _desk(procedure: Procedure, name: str) -> str:
    """Return a function that brings arrays to a routine's desk and back."""
    ports = [f"const double *{one}" for one in procedure.inputs]
    ports += [f"double *{one}_" for one in procedure.outputs]
    places = procedure.layout.places
    lines = [f"double desk[{procedure.layout.size}];"]
    lines += [
        f"copy(desk + {places[one]}, {one}, {procedure.numel_in(k)});"
        for k, one in enumerate(procedure.inputs)
    ]
    lines.append(f"{procedure.entry}(desk);")
    lines += [
        f"copy({one}_, desk + {places[one]}, {procedure.numel_out(k)});"
        for k, one in enumerate(procedure.outputs)
    ]
    return f"\nstatic void {name}({', '.join(ports)})\n{block(lines)}"
