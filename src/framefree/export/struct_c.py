"""A block in C: structs for what goes in, what comes out and what it remembers; init and step."""

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property

from framefree.export.block import BlockPort, StepBlock
from framefree.export.errors import ExportError
from framefree.kernel.c_source import CSource, identifier, literal
from framefree.kernel.single_c import in_single

HEADER = """\
/* {name}, made by framefree: {about}.
 *
 * One step is {period} s. C99, no allocation; loops are bounded; memory is the struct {name}_memory
 * and nothing else. Workspaces take {name_upper}_STACK_BYTES bytes of stack, beside the compiler's
 * temporaries.
 */
#ifndef {guard}
#define {guard}

#define {name_upper}_PERIOD {period}
#define {name_upper}_STACK_BYTES {stack}

typedef double {name}_real;

{structs}
#ifdef __cplusplus
extern "C" {{
#endif

/* Set the memory to that at the start of the recorded run. */
void {name}_start({name}_memory *memory);

/* One step: all that happens in a period, with a memory of the caller's. */
void {name}_advance({name}_memory *memory{arguments}, {name}_output *out);
{more}
/* The same with one memory that this file keeps: init once, then step in every period. */
void {name}_init(void);
void {name}_step({plain}{name}_output *out);

#ifdef __cplusplus
}}
#endif

#endif
"""
SOURCE = """\
/* {name}, made by framefree. */
#include "{name}.h"

{includes}

static {name}_memory kept;

void {name}_start({name}_memory *memory)
{{
    static const {name}_memory first = {{
{first}
    }};
    *memory = first;
}}

void {name}_advance({name}_memory *memory{arguments}, {name}_output *out)
{{
{unused}    {core}({operands});
}}
{more}
void {name}_init(void)
{{
    {name}_start(&kept);
}}

void {name}_step({plain}{name}_output *out)
{{
    {name}_advance(&kept{passed}, out);
}}
"""


@dataclass(frozen=True)
class BlockInC:
    """The files of a block in C.

    Attributes
    ----------
    block : StepBlock
    single : bool
        Whether numbers are floats.
    """

    block: StepBlock
    single: bool = False

    def __post_init__(self) -> None:
        check_name(self.block.name)

    @cached_property
    def sources(self) -> dict[str, CSource]:
        """The functions that the wrapper calls."""
        made = self.block.sources()
        return {key: one.single() if self.single else one for key, one in made.items()}

    @property
    def stack(self) -> int:
        """Bytes of the largest workspace."""
        return max(one.stack for one in self.sources.values())

    def files(self) -> dict[str, str]:
        """Return all texts by the names of their files."""
        name = self.block.name
        texts = {f"{name}.h": self._own(self.header()), f"{name}.c": self._own(self.source())}
        for one in self.sources.values():
            texts |= {f"{one.name}.c": one.source, f"{one.name}.h": one.header}
        return texts

    def _own(self, text: str) -> str:
        return in_single(text) if self.single else text

    # ------------------------------------------------------------------ header

    def header(self) -> str:
        """Return the header with all structs."""
        block, name = self.block, self.block.name
        parts = [self._struct(group, ports) for group, ports in block.groups.items()]
        parts += [self._struct("output", block.outputs), self._struct("memory", block.memory)]
        more = ""
        if block.signal_ports:
            parts.append(self._struct("signals", block.signal_ports))
            more += (
                "\n/* What is worth recording, at the same inputs, before the step. */\n"
                f"void {name}_tell(const {name}_memory *memory{self._arguments}, "
                f"{name}_signals *signals);\n"
            )
        if block.reference is not None:
            more += (
                "\n/* The reference of the recorded run at a time. */\n"
                f"void {name}_follow({name}_real t, {name}_reference *reference);\n"
            )
        if block.now is not None:
            more += (
                "\n/* The state as it is before a step, in the outputs that tell of it. */\n"
                f"void {name}_show(const {name}_memory *memory{self._arguments}, "
                f"{name}_output *out);\n"
            )
        if block.rates is not None:
            parts.append(self._struct("rate", self._continuous))
            more += (
                "\n/* The rates of the continuous memory. */\n"
                f"void {name}_rates({name}_real t, const {name}_memory *memory{self._arguments}, "
                f"{name}_rate *rate);\n"
            )
        return HEADER.format(
            name=name,
            name_upper=name.upper(),
            guard=f"FRAMEFREE_{name.upper()}_H",
            about=_plain(block.about),
            period=repr(float(block.period)),
            stack=self.stack,
            structs="\n".join(parts),
            arguments=self._arguments,
            plain=self._plain_arguments,
            more=more,
        )

    @property
    def _continuous(self) -> tuple[BlockPort, ...]:
        form = self.block.rates
        names = () if form is None else form.states
        return tuple(port for port in self.block.memory if port.name in names)

    def _struct(self, kind: str, ports: Iterable[BlockPort]) -> str:
        """Return a struct of real numbers; one without any has a member, since C wants one."""
        name, lines = self.block.name, []
        for port in ports:
            size = "" if port.size == 1 else f"[{port.size}]"
            words = port.about
            if port.entries and len(port.entries) == port.size:
                listed = ", ".join(port.entries[:12]) + (", ..." if port.size > 12 else "")
                words += f": {listed}"
            lines.append(f"    {name}_real {port.name}{size}; /* {_plain(words)} */")
        if not lines:
            lines.append(f"    {name}_real none;")
        return "\n".join([f"typedef struct {name}_{kind} {{", *lines, f"}} {name}_{kind};", ""])

    # ------------------------------------------------------------------ source

    @property
    def _pointers(self) -> list[tuple[str, str]]:
        name = self.block.name
        return [(f"const {name}_{group} *", group) for group in self.block.groups]

    @property
    def _arguments(self) -> str:
        return "".join(f", {kind}{own}" for kind, own in self._pointers)

    @property
    def _plain_arguments(self) -> str:
        return "".join(f"{kind}{own}, " for kind, own in self._pointers)

    def _inputs(self, pointer: str = "memory") -> list[str]:
        places = [_place(group, port) for group, port in self.block.inputs]
        return [*places, *(_place(pointer, port) for port in self.block.memory)]

    def _unused(self, members: str = "") -> str:
        """Return statements for pointers that nothing is read from."""
        empty = [group for group, ports in self.block.groups.items() if not ports]
        if not self.block.memory:
            empty.append("memory")
        if not self.block.outputs and members == "out":
            empty.append("out")
        return "".join(f"    (void){group};\n" for group in empty)

    def source(self) -> str:
        """Return the functions."""
        block, name = self.block, self.block.name
        operands = self._inputs()
        operands += [_place("out", port) for port in block.outputs]
        operands += [_place("memory", port) for port in block.moving]
        first = [
            f"        {_braced([float(v) for v in block.start[port.name]])},"
            for port in block.memory
        ]
        includes = [f'#include "{one.name}.h"' for one in self.sources.values()]
        return SOURCE.format(
            name=name,
            includes="\n".join(includes),
            first="\n".join(first or ["        0.0,"]),
            arguments=self._arguments,
            unused=self._unused("out"),
            core=self.sources["core"].name,
            operands=", ".join(operands),
            more=self._more(),
            plain=self._plain_arguments,
            passed="".join(f", {own}" for _, own in self._pointers),
        )

    def _more(self) -> str:
        block, name, text = self.block, self.block.name, ""
        if block.signal_ports:
            operands = [*self._inputs(), *(_place("signals", port) for port in block.signal_ports)]
            text += (
                f"\nvoid {name}_tell(const {name}_memory *memory{self._arguments}, "
                f"{name}_signals *signals)\n{{\n{self._unused()}"
                f"    {self.sources['signals'].name}({', '.join(operands)});\n}}\n"
            )
        if block.reference is not None:
            operands = ["&t", *(_place("reference", port) for port in block.groups["reference"])]
            text += (
                f"\nvoid {name}_follow({name}_real t, {name}_reference *reference)\n{{\n"
                f"    {self.sources['reference'].name}({', '.join(operands)});\n}}\n"
            )
        if block.now is not None:
            count = len(block.now.function().name_out())
            operands = [*self._inputs(), *(_place("out", p) for p in block.outputs[:count])]
            text += (
                f"\nvoid {name}_show(const {name}_memory *memory{self._arguments}, "
                f"{name}_output *out)\n{{\n{self._unused()}"
                f"    {self.sources['now'].name}({', '.join(operands)});\n}}\n"
            )
        if block.rates is not None:
            operands = ["&t", *self._inputs(), *(_place("rate", p) for p in self._continuous)]
            text += (
                f"\nvoid {name}_rates({name}_real t, const {name}_memory *memory"
                f"{self._arguments}, {name}_rate *rate)\n{{\n{self._unused()}"
                f"    {self.sources['rates'].name}({', '.join(operands)});\n}}\n"
            )
        return text


def check_name(name: str) -> None:
    """Refuse a name that functions in C cannot have."""
    if not isinstance(name, str) or identifier(name, set()) != name:
        raise ExportError(
            f"`{name}` is no name for functions in C: it must consist of letters, digits and "
            "underscores, begin with a letter, and be no word that C or <math.h> keeps"
        )


def _place(pointer: str, port: BlockPort) -> str:
    return f"{'&' if port.size == 1 else ''}{pointer}->{port.name}"


def _braced(values: list[float]) -> str:
    """Return first values of a member, some to a line."""
    if len(values) == 1:
        return literal(values[0])
    lines = [", ".join(map(literal, values[k : k + 4])) for k in range(0, len(values), 4)]
    return "{" + ",\n         ".join(lines) + "}"


def _plain(text: str) -> str:
    """Return text that can stand in a comment."""
    return text.replace("*/", "* /").encode("ascii", "replace").decode()
