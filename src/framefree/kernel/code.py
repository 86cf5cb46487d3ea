"""LLVM assembly as text: the functions of a module and their bodies.

Values are strings as LLVM spells them: ``%t3`` for a result, ``splat (double 0x...)`` for a
constant. Text is both faster to write and easier to read than an object for every instruction.
"""

import math
import struct
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from framefree.kernel.agreed import EXTERNALS
from framefree.kernel.target import Target
from framefree.rounding import in_single_precision

# For code that keeps vectors on the stack: LLVM then aligns them. Otherwise half of them straddle
# two cache lines if the stack happens to lie so, which costs 8 to 12 percent.
ALIGNED = 'nounwind "stackrealign"'


def bits(value: float) -> str:
    """Write a double exactly."""
    return f"0x{struct.unpack('<Q', struct.pack('<d', value))[0]:016X}"


def rounded(value: float) -> float:
    """Return the nearest number of single precision; shares of rounding become its own."""
    value = in_single_precision(value)
    try:
        return struct.unpack("<f", struct.pack("<f", value))[0]
    except OverflowError:
        return math.copysign(math.inf, value)


class Module:
    """The functions of one compiled program."""

    def __init__(self, target: Target) -> None:
        self.target = target
        self._functions: dict[str, str] = {}
        self._intrinsics: set[str] = set()
        self._constants: dict[str, int] = {}
        self._numbers: dict[tuple[str, ...], int] = {}
        self._integers: list[str] = []
        self._names: dict[object, str] = {}

    def has(self, name: str) -> bool:
        """Tell whether the function exists or is being written."""
        return name in self._functions

    def reserve(self, name: str) -> None:
        """Claim a name before its body is written."""
        self._functions[name] = ""

    def intrinsic(self, name: str, result: str, arguments: str) -> str:
        """Declare an LLVM intrinsic."""
        self._intrinsics.add(f"declare {result} @{name}({arguments})")
        return name

    def constant(self, value: float) -> int:
        """Return the place of a constant in the table of constant vectors."""
        written = bits(rounded(value) if self.target.single else value)
        return self._constants.setdefault(written, len(self._constants))

    def numbers(self, values: tuple[float, ...]) -> str:
        """Return the address of constant doubles that follow one another."""
        key = tuple(map(bits, values))
        return f"@numbers{self._numbers.setdefault(key, len(self._numbers))}"

    def integers(self, values: Sequence[int]) -> str:
        """Return the address of constant integers of 64 bits that follow one another."""
        name, kind = f"@integers{len(self._integers)}", f"[{len(values)} x i64]"
        listed = ", ".join(f"i64 {value}" for value in values)
        self._integers.append(f"{name} = internal constant {kind} [{listed}], align 64")
        return name

    def name_of(self, key: object, prefix: str) -> str:
        """Return a name of a function that belongs to `key`."""
        return self._names.setdefault(key, f"{prefix}{len(self._names)}")

    def define(self, name: str, header: str, code: "Code", attributes: str = "nounwind") -> None:
        """Add a function whose body is `code`."""
        body = "\n".join(code.lines)
        self._functions[name] = f"define {header} {attributes} {{\nentry:\n{body}\n}}\n"

    def space(self, name: str, size: int) -> None:
        """Add room for `size` pointers that are filled in when the code is loaded."""
        room = f"@{name} = internal global [{size} x ptr] zeroinitializer\n"
        address = f"define ptr @{name}_address() nounwind {{\n  ret ptr @{name}\n}}\n"
        self._functions[f"{name}_address"] = room + address

    def text(self) -> str:
        """Return the module as LLVM assembly."""
        table = f"@table = internal global [{len(EXTERNALS)} x ptr] zeroinitializer\n"
        address = "define ptr @table_address() nounwind {\n  ret ptr @table\n}\n"
        metadata = '!0 = !{}\n!1 = !{!"branch_weights", i32 1, i32 100000}\n'
        parts = [table, self._constant_table(), *self._number_tables(), *self._integers]
        parts += [*sorted(self._intrinsics), address]
        return "\n".join([*parts, *self._functions.values(), metadata])

    def _number_tables(self) -> list[str]:
        tables = []
        for values, k in self._numbers.items():
            listed = ", ".join(f"double {value}" for value in values)
            kind = f"[{len(values)} x double]"
            tables.append(f"@numbers{k} = internal constant {kind} [{listed}], align 64")
        return tables

    def _constant_table(self) -> str:
        vector, number = f"<{self.target.lanes} x {self.target.number}>", self.target.number
        values = ", ".join(f"{vector} splat ({number} {value})" for value in self._constants)
        kind = f"[{len(self._constants)} x {vector}]"
        align = self.target.width
        return f"@constants = internal constant {kind} [{values}], align {align}\n"


class Code:
    """The body of one function, over vectors of `lanes` numbers of the target.

    With `double`, over doubles whatever the target computes with.
    """

    def __init__(self, module: Module, *, double: bool = False) -> None:
        self.module = module
        self.target = module.target
        self.single = module.target.single and not double
        self.number, self.word = ("float", "i32") if self.single else ("double", "i64")
        self.width = module.target.lanes * (4 if self.single else 8)
        self._set_lanes(module.target.lanes)
        self.lines: list[str] = []
        self.block = "entry"
        self._count = 0

    def _set_lanes(self, lanes: int) -> None:
        self.lanes = lanes
        self.vector, self.integers = f"<{lanes} x {self.number}>", f"<{lanes} x {self.word}>"
        self.mask = f"<{lanes} x i1>"

    @contextmanager
    def wider(self, times: int) -> Iterator[None]:
        """Write the body over vectors of several registers: their instructions alternate.

        Chains of instructions that each wait for the one before then run side by side, which a
        processor finds out by itself only within a few dozen instructions.
        """
        lanes = self.lanes
        self._set_lanes(lanes * times)
        try:
            yield
        finally:
            self._set_lanes(lanes)

    @contextmanager
    def narrower(self, lanes: int) -> Iterator[None]:
        """Write the body over vectors of fewer lanes."""
        before = self.lanes
        self._set_lanes(lanes)
        try:
            yield
        finally:
            self._set_lanes(before)

    def fresh(self, prefix: str = "t") -> str:
        """Return a name not used before."""
        self._count += 1
        return f"{prefix}{self._count}"

    def put(self, instruction: str) -> str:
        """Append an instruction and name its result."""
        name = "%" + self.fresh()
        self.lines.append(f"  {name} = {instruction}")
        return name

    def do(self, instruction: str) -> None:
        """Append an instruction without a result."""
        self.lines.append("  " + instruction)

    # Arithmetic on vectors

    def constant(self, value: float) -> str:
        """Return a constant, the same in every lane.

        Whole vectors in memory fold into the instruction that reads them, where LLVM by itself
        would fetch and spread a single double first. Where spreading is free it has its way.
        """
        other = self.lanes != self.target.lanes or self.single != self.target.single
        if self.target.spreads or other or self.lanes == 1:
            return f"splat ({self.number} {bits(rounded(value) if self.single else value)})"
        place = f"getelementptr ({self.vector}, ptr @constants, i64 {self.module.constant(value)})"
        return self.put(f"load {self.vector}, ptr {place}, align {self.width}, !invariant.load !0")

    def binary(self, operation: str, a: str, b: str) -> str:
        """Append ``fadd``, ``fsub``, ``fmul`` or ``fdiv``."""
        return self.put(f"{operation} {self.vector} {a}, {b}")

    def add(self, a: str, b: str) -> str:
        """Append a + b."""
        return self.binary("fadd", a, b)

    def sub(self, a: str, b: str) -> str:
        """Append a - b."""
        return self.binary("fsub", a, b)

    def mul(self, a: str, b: str) -> str:
        """Append a * b."""
        return self.binary("fmul", a, b)

    def div(self, a: str, b: str) -> str:
        """Append a / b."""
        return self.binary("fdiv", a, b)

    def neg(self, a: str) -> str:
        """Append -a."""
        return self.put(f"fneg {self.vector} {a}")

    def fma(self, a: str, b: str, c: str) -> str:
        """Append a*b + c, with one rounding where the machine can."""
        if not self.target.fma:
            return self.add(self.mul(a, b), c)
        return self.call("fma", a, b, c)

    def call(self, name: str, *arguments: str) -> str:
        """Call the vector intrinsic ``llvm.name``."""
        v = self.vector
        types = ", ".join([v] * len(arguments))
        kind = "f32" if self.single else "f64"
        name = self.module.intrinsic(f"llvm.{name}.v{self.lanes}{kind}", v, types)
        return self.put(f"call {v} @{name}({', '.join(f'{v} {one}' for one in arguments)})")

    def polynomial(self, x: str, coefficients: list[float]) -> str:
        """Evaluate a polynomial, lowest power first, by Horner's rule."""
        value = self.constant(coefficients[-1])
        for coefficient in reversed(coefficients[:-1]):
            value = self.fma(value, x, self.constant(coefficient))
        return value

    # Bits, comparisons and selection

    def to_bits(self, a: str) -> str:
        """Reinterpret numbers as integers of their size."""
        return self.put(f"bitcast {self.vector} {a} to {self.integers}")

    def from_bits(self, a: str) -> str:
        """Reinterpret integers as numbers of their size."""
        return self.put(f"bitcast {self.integers} {a} to {self.vector}")

    def integer(self, operation: str, a: str, b: str | int) -> str:
        """Append an integer operation; an `int` operand is the same in every lane."""
        b = f"splat ({self.word} {b})" if isinstance(b, int) else b
        return self.put(f"{operation} {self.integers} {a}, {b}")

    def negative(self, a: str) -> str:
        """Tell in which lanes the highest bit of an integer is set; the result is a mask."""
        return self.put(f"icmp slt {self.integers} {a}, zeroinitializer")

    def compare(self, condition: str, a: str, b: str) -> str:
        """Compare doubles; the result is a mask."""
        return self.put(f"fcmp {condition} {self.vector} {a}, {b}")

    def logic(self, operation: str, a: str, b: str) -> str:
        """Combine two masks."""
        return self.put(f"{operation} {self.mask} {a}, {b}")

    def select(self, mask: str, a: str, b: str) -> str:
        """Choose a where the mask is set, else b; never mixes the two."""
        return self.put(f"select {self.mask} {mask}, {self.vector} {a}, {self.vector} {b}")

    def any(self, mask: str) -> str:
        """Tell whether any lane of a mask is set."""
        whole = self.put(f"bitcast {self.mask} {mask} to i{self.lanes}")
        return self.put(f"icmp ne i{self.lanes} {whole}, 0")

    # From single to double precision and back

    def from_double(self, value: str, kind: str | None = None) -> str:
        """Round doubles, by default one, to the numbers of this code."""
        if not self.single:
            return value
        kind = kind or "double"
        return self.put(f"fptrunc {kind} {value} to {kind.replace('double', 'float')}")

    def to_double(self, value: str, kind: str | None = None) -> str:
        """Return numbers of this code, by default one, as doubles."""
        if not self.single:
            return value
        kind = kind or "float"
        return self.put(f"fpext {kind} {value} to {kind.replace('float', 'double')}")

    @property
    def doubles(self) -> str:
        """As many doubles as there are lanes."""
        return f"<{self.lanes} x double>"

    # Memory and control

    def external(self, name: str) -> str:
        """Load an address from the table of externals."""
        place = f"getelementptr (ptr, ptr @table, i64 {EXTERNALS.index(name)})"
        return self.put(f"load ptr, ptr {place}, !invariant.load !0")

    def offset(self, pointer: str, count: str | int, size: int = 1) -> str:
        """Advance a pointer by ``count * size`` bytes."""
        if isinstance(count, int):
            return self.put(f"getelementptr i8, ptr {pointer}, i64 {count * size}")
        return self.put(f"getelementptr [{size} x i8], ptr {pointer}, i64 {count}")

    def load(self, kind: str, pointer: str, align: int = 8) -> str:
        """Load a value."""
        return self.put(f"load {kind}, ptr {pointer}, align {align}")

    def store(self, kind: str, value: str, pointer: str, align: int = 8) -> None:
        """Store a value."""
        self.do(f"store {kind} {value}, ptr {pointer}, align {align}")

    def prefetch_to_write(self, pointer: str) -> None:
        """Ask for a line of memory that will be written; a place that does not exist is no harm."""
        self.module.intrinsic("llvm.prefetch.p0", "void", "ptr, i32, i32, i32")
        self.do(f"call void @llvm.prefetch.p0(ptr {pointer}, i32 1, i32 3, i32 1)")

    def label(self, name: str) -> None:
        """Begin a block."""
        self.lines.append(f"{name}:")
        self.block = name

    def jump(self, label: str) -> None:
        """End the block with a jump."""
        self.do(f"br label %{label}")

    @contextmanager
    def loop(self, start: str | int, stop: str, step: str | int = 1) -> Iterator[str]:
        """Run the body for ``start, start + step, ...`` while less than `stop`."""
        head, body, latch, done = (self.fresh(p) for p in ("head", "body", "latch", "done"))
        index, following, before = "%" + self.fresh("i"), "%" + self.fresh("i"), self.block
        self.jump(head)
        self.label(head)
        self.do(f"{index} = phi i64 [ {start}, %{before} ], [ {following}, %{latch} ]")
        inside = self.put(f"icmp slt i64 {index}, {stop}")
        self.do(f"br i1 {inside}, label %{body}, label %{done}")
        self.label(body)
        yield index
        self.jump(latch)
        self.label(latch)
        self.do(f"{following} = add nsw i64 {index}, {step}")
        self.jump(head)
        self.label(done)

    @contextmanager
    def when(self, condition: str, *, rare: bool = False) -> Iterator[None]:
        """Run the body if the condition (an ``i1``) holds."""
        body, done = self.fresh("then"), self.fresh("done")
        weight = ", !prof !1" if rare else ""
        self.do(f"br i1 {condition}, label %{body}, label %{done}{weight}")
        self.label(body)
        yield
        self.jump(done)
        self.label(done)

    def minimum(self, a: str, b: str) -> str:
        """Return the smaller of two ``i64``."""
        less = self.put(f"icmp slt i64 {a}, {b}")
        return self.put(f"select i1 {less}, i64 {a}, i64 {b}")


def spread(code: Code, pointer: str) -> str:
    """Load a double into every lane."""
    v = code.vector
    scalar = code.load("double", pointer)
    one = code.put(f"insertelement {v} poison, double {scalar}, i64 0")
    return code.put(f"shufflevector {v} {one}, {v} poison, <{code.lanes} x i32> zeroinitializer")
