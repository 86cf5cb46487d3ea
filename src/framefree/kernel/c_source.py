"""A graph as C99: one function of pointers, for the machine's own controller board.

The text needs no library but libm, allocates nothing and keeps no state. It does the operations of
the native kernel in the same order, its elementary functions written out, so that the two agree to
the bit. Each operation is a statement; long functions are loops over tables of operations
(`framefree.kernel.tables_c`).
"""

import math
import re
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

from framefree.files import write_files
from framefree.kernel.elementary_c import elementary_c
from framefree.kernel.graph import TRUTHS, Graph, Node, Port
from framefree.kernel.operations_c import FUSED, LOGIC, literal, operation_text
from framefree.kernel.optimise import optimise
from framefree.kernel.program import KernelProgram, Stage, lay_out
from framefree.kernel.single_c import in_single
from framefree.kernel.tables_c import LONG, OperationTable

# Words that a compiler of C or C++ keeps for itself, and names that <math.h> takes.
KEYWORDS = """
    alignas alignof and asm auto bitand bitor bool break case catch char class compl const constexpr
    const_cast continue decltype default delete do double dynamic_cast else enum explicit export
    extern false float for friend goto if inline int long main mutable namespace new noexcept not
    nullptr operator or private protected public register reinterpret_cast requires restrict return
    short signed sizeof static static_assert static_cast struct switch template this thread_local
    throw true try typedef typeid typename typeof union unsigned using virtual void volatile wchar_t
    while xor
"""
MATH = """
    acos acosh asin asinh atan atan2 atanh cbrt ceil copysign cos cosh erf erfc exp exp2 expm1 fabs
    fdim floor fma fmax fmin fmod fpclassify frexp gamma hypot ilogb isfinite isgreater isinf isless
    isnan isnormal j0 j1 jn ldexp lgamma llrint llround log log10 log1p log2 logb lrint lround modf
    nan nearbyint nextafter nexttoward pow remainder remquo rint round scalbln scalbn signbit
    signgam sin sinh sqrt tan tanh tgamma trunc y0 y1 yn
    abs abort calloc conj div exit free index labs malloc realloc INFINITY NAN HUGE_VAL
"""
RESERVED = frozenset(f"{KEYWORDS} {MATH}".split())
OWN = re.compile(r"n\d+|work|place|FMA|minimum|maximum|signum|inverse_erf|desk_\w+")  # used below

HEADER = """\
/* {name}, made by framefree.
 *
{ports}
 *
 * Arrays are row-major. An output may be the same array as an input, since all inputs are read
 * before the first output is written; outputs must not overlap one another. No allocation and no
 * state: safe to call from several tasks. Besides the compiler's temporaries it needs {bytes} bytes
 * of stack.
 */
#ifndef {guard}
#define {guard}

{sizes}

#ifdef __cplusplus
extern "C" {{
#endif

{signature};

#ifdef __cplusplus
}}
#endif

#endif
"""
SOURCE = """\
/* {name}, made by framefree. It counts on NaN, infinities and the order of roundings: compile
 * without -ffast-math, and with -std=c99 or -ffp-contract=off where the compiler is gcc.
 */
#include "{name}.h"

#include <math.h>

#if defined(__clang__) || !defined(__GNUC__)
#pragma STDC FP_CONTRACT OFF
#endif
"""
FMA = """
/* Fused where the kernel on the desk fuses: then both agree to the bit. Where the processor has no
 * such instruction, -DUNFUSED is faster and differs by roundings.
 */
#ifdef UNFUSED
#define FMA(a, b, c) ((a) * (b) + (c))
#else
#define FMA(a, b, c) fma(a, b, c)
#endif
"""
DEFINITIONS = {
    "min": """
static double minimum(double a, double b)
{
    return b != b || a < b ? a : b;
}
""",
    "max": """
static double maximum(double a, double b)
{
    return b != b || a > b ? a : b;
}
""",
    "sign": """
static double signum(double x)
{
    return x > 0.0 ? 1.0 : x < 0.0 ? -1.0 : x + 0.0;
}
""",
    "erfinv": f"""
static double inverse_erf(double x)
{{
    const double size = fabs(x), rest = 1.0 - size;
    double y;
    int step;
    if (!(size < 1.0)) {{
        return size == 1.0 ? copysign(INFINITY, x) : NAN;
    }}
    if (size < 0.1) {{
        y = size * {math.sqrt(math.pi) / 2!r} * FMA(size * size, {math.pi / 12!r}, 1.0);
    }} else {{
        const double l = log(rest * (1.0 + size)), b = FMA(l, 0.5, {2 / (math.pi * 0.147)!r});
        y = sqrt(sqrt(b * b - l * {1 / 0.147!r}) - b);
    }}
    for (step = 0; step < 3; ++step) {{
        const double miss = size < 0.5 ? erf(y) - size : rest - erfc(y);
        const double u = miss / (exp(-(y * y)) * {2 / math.sqrt(math.pi)!r});
        y -= u / FMA(y, u, 1.0);
    }}
    return copysign(y, x);
}}
""",
}


class CSource(NamedTuple):
    """The two files of a function in C.

    Attributes
    ----------
    name : str
        Name of the function, and of the files without their endings.
    source, header : str
        Their texts.
    stack : int
        Bytes of stack that its workspace takes.
    """

    name: str
    source: str
    header: str
    stack: int = 0

    def single(self) -> "CSource":
        """Return the function in single precision; see `framefree.kernel.single_c`."""
        words = f"needs {self.stack} bytes"
        header = self.header.replace(words, f"needs {self.stack // 2} bytes")
        texts = in_single(self.source), in_single(header)
        return CSource(self.name, *texts, self.stack // 2)

    def write(self, folder: str | Path) -> tuple[Path, Path]:
        """Write `<name>.c` and `<name>.h` into a folder, made if missing; return their paths.

        Files that framefree has made are replaced, any other refused.
        """
        paths = Path(folder, f"{self.name}.c"), Path(folder, f"{self.name}.h")
        write_files(dict(zip(paths, (self.source, self.header), strict=True)), guard=True)
        return paths


def c_source(graph: Graph, name: str) -> CSource:
    """Write a graph as a function in C99.

    The function is ``void name(const double *input, ..., double *output, ...)``: the inputs in
    order, then the outputs, each an array in C order. All inputs are read before the first output
    is written, so that a state may be replaced in place.

    Parameters
    ----------
    graph : Graph
        Before `optimise`.
    name : str
        Name of the function. Names that are not valid in C are changed: characters other than
        letters and digits become underscores, and a name that is taken gets a suffix.
    """
    program = lay_out(optimise(graph, fma=True))
    return FunctionWriter(program, name).write()


def header_text(
    name: str,
    inputs: Iterable[tuple[str, Port]],
    outputs: Iterable[tuple[str, Port]],
    signature: str,
    stack: int,
) -> str:
    """Return the header of a function whose ports have these names in C; `stack` is in bytes."""
    guard = f"FRAMEFREE_{name.upper()}_H"
    rows = [("in ", *pair) for pair in inputs] + [("out", *pair) for pair in outputs]
    width, taken = max(len(own) for _, own, _ in rows), {guard}
    lines, sizes = [], []
    for way, own, port in rows:
        shape = " x ".join(map(str, port.shape)) or "1"
        origin = "" if own == port.name else f" (`{port.name}`)"
        lines.append(f" *   {way} {own:{width}}  {shape}{origin}")
        macro = identifier(f"{name}_{own}_SIZE".upper(), taken)
        sizes.append(f"#define {macro} {port.size}")
    return HEADER.format(
        name=name,
        ports="\n".join(lines),
        sizes="\n".join(sizes),
        bytes=stack,
        guard=guard,
        signature=signature,
    )


def helpers(used: set[str]) -> str:
    """Return what operations need that C does not have."""
    text = FMA if used & {*FUSED, "erfinv"} else ""
    text += "".join(body for name, body in DEFINITIONS.items() if name in used)
    return text + elementary_c(used)


class FunctionWriter:
    """Writes a program as a function; its names are chosen first, other than those taken."""

    def __init__(self, program: KernelProgram, name: str, taken: set[str] | None = None) -> None:
        self.program, self.graph = program, program.graph
        taken = set() if taken is None else taken
        self.name = identifier(name, taken)
        self.inputs = [identifier(port.name, taken) for port in self.graph.inputs]
        self.outputs = [identifier(port.name, taken) for port in self.graph.outputs]
        self.pieces = [identifier(f"{name}_{k}", taken) for k in range(len(program.stages))]
        self.inputs_end = sum(port.size for port in self.graph.inputs)
        self.split = len(program.stages) > 1
        self.table = OperationTable(self.graph) if len(self.graph.nodes) > LONG else None
        self.table_name = identifier(f"{name}_table", taken)
        self.work = program.slots - self.inputs_end if self.split else 0
        if self.table is not None:
            self.work = self.table.slots

    def write(self) -> CSource:
        """Return the two files."""
        header = header_text(
            self.name,
            zip(self.inputs, self.graph.inputs, strict=True),
            zip(self.outputs, self.graph.outputs, strict=True),
            self.signature,
            8 * self.work,
        )
        used = {node[0] for node in self.graph.nodes}
        text = SOURCE.format(name=self.name) + helpers(used)
        return CSource(self.name, text + self.function(), header, 8 * self.work)

    @property
    def signature(self) -> str:
        """The head of the function."""
        pointers = [f"const double *{one}" for one in self.inputs]
        pointers += [f"double *{one}" for one in self.outputs]
        return f"void {self.name}({', '.join(pointers)})"

    def place(self, slot: int) -> str:
        """Return where a slot of the program is: outputs of a split program wait in the work."""
        if self.split and slot >= self.inputs_end:
            return f"work[{slot - self.inputs_end}]"
        names = (*self.inputs, *self.outputs)
        firsts = (*self.program.input_slots, *self.program.output_slots)
        ports = (*self.graph.inputs, *self.graph.outputs)
        for name, first, port in zip(names, firsts, ports, strict=True):
            if first <= slot < first + port.size:
                return f"{name}[{slot - first}]"
        raise IndexError(slot)

    def function(self, kind: str = "") -> str:
        """Return the function and its pieces; `kind` may be "static "."""
        text, head = "", f"{kind}{self.signature}"
        if self.table is not None:
            return f"{self.table.text(self.table_name)}\n{head}\n{block(self._tabled(self.table))}"
        fixed = [f"{self.place(slot)} = {literal(v)};" for slot, v in self.program.fixed.items()]
        bodies = [_CStage(self, stage).lines() for stage in self.program.stages]
        if not self.split:
            return f"\n{head}\n{block([*bodies[0], *fixed, *self._unused(bodies)])}"
        calls = []
        for name, body in zip(self.pieces, bodies, strict=True):
            inputs = [one for one in self.inputs if one in words(body)]
            pointers = [*(f"const double *{one}" for one in inputs), "double *work"]
            text += f"\nstatic void {name}({', '.join(pointers)})\n{block(body)}"
            calls.append(f"{name}({', '.join([*inputs, 'work'])});")
        lines = [f"double work[{self.work}];", "int place;", *calls, *fixed]
        lines += [*self._copies(), *self._unused(bodies)]
        return f"{text}\n{head}\n{block(lines)}"

    def _tabled(self, table: OperationTable) -> list[str]:
        """Return the statements of a function that is a table."""
        lines, at = [f"double work[{table.slots}];", "int place;"], 0
        for name, port in zip(self.inputs, self.graph.inputs, strict=True):
            lines += [
                f"for (place = 0; place < {port.size}; ++place) {{",
                f"    work[{at} + place] = {name}[place];",
                "}",
            ]
            at += port.size
        lines.append(f"{self.table_name}_run(work);")
        for k, name in enumerate(self.outputs):
            lines += table.results(k, name)
        return [*lines, *self._unused([lines])]

    def _copies(self) -> list[str]:
        """Take the outputs from the work."""
        lines = []
        ports = zip(self.outputs, self.graph.outputs, self.program.output_slots, strict=True)
        for name, port, slot in ports:
            lines += [
                f"for (place = 0; place < {port.size}; ++place) {{",
                f"    {name}[place] = work[{slot - self.inputs_end} + place];",
                "}",
            ]
        return lines

    def _unused(self, bodies: Iterable[Iterable[str]]) -> list[str]:
        known = set().union(*map(words, bodies))
        unused = [name for name in self.inputs if name not in known]
        empty = [
            name
            for name, port in zip(self.outputs, self.graph.outputs, strict=True)
            if not self.split and port.size == 0
        ]
        return [f"(void){name};" for name in (*unused, *empty)]


class _CStage:
    """The statements of one stage."""

    def __init__(self, writer: FunctionWriter, stage: Stage) -> None:
        self.writer, self.stage = writer, stage
        self.nodes = writer.graph.nodes

    def lines(self) -> list[str]:
        """Return all statements: what is stored is stored last."""
        lines, stores = [], []
        for number in range(self.stage.start, self.stage.stop):
            node = self.nodes[number]
            if node[0] not in ("const", "input"):
                kind = "int" if node[0] in TRUTHS else "double"
                lines.append(f"const {kind} n{number} = {self.expression(node)};")
            for slot in self.stage.stores.get(number, ()):
                stores.append(f"{self.writer.place(slot)} = {self.value(number)};")
        return [*lines, *stores]

    def expression(self, node: Node) -> str:
        """Write one operation."""
        operation, *operands = node
        conditions = operands[:1] if operation == "select" else operands
        logical = operation in ("select", "not", *LOGIC)
        truths = [self.truth(one) for one in conditions] if logical else []
        return operation_text(operation, [self.value(one) for one in operands], truths)

    def value(self, number: int) -> str:
        """Write a node as a number."""
        node = self.nodes[number]
        if node[0] == "const":
            return literal(node[1])
        if number in self.stage.loads:
            return self.writer.place(self.stage.loads[number])
        return f"(double)n{number}" if node[0] in TRUTHS else f"n{number}"

    def truth(self, number: int) -> str:
        """Write a node as a condition: whether it is not zero."""
        if self.nodes[number][0] in TRUTHS and number not in self.stage.loads:
            return f"n{number}"
        return f"({self.value(number)} != 0.0)"


def identifier(name: str, taken: set[str]) -> str:
    """Turn a name into one that C allows and that is not taken, and take it."""
    text = re.sub(r"\W", "_", name, flags=re.ASCII)
    if not re.match(r"[A-Za-z]", text):
        text = f"f{text}"
    while text in RESERVED or OWN.fullmatch(text) or text in taken:
        text += "_"
    taken.add(text)
    return text


def words(lines: Iterable[str]) -> set[str]:
    """Return all names and numbers in a text."""
    return set(re.findall(r"\w+", " ".join(lines)))


def block(lines: Iterable[str]) -> str:
    """Return statements in braces."""
    return "{\n" + "".join(f"    {line}\n" for line in lines) + "}\n"
