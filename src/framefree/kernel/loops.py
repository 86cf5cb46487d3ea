"""Programs made of calls: a few small functions run natively over blocks of one workspace.

Straight-line code grows with the machine. A long chain of bodies does the same few things for each
body, so its program is a list of calls: which function, on which blocks of the workspace. The code
is that of the functions alone, however long the list; the list is a table that a native loop walks.

    calls = Calls("sums")
    x, total = calls.input("x", (100,)), calls.output("total", (1,))
    sofar = calls.zeros(1)
    for k in range(99):
        following = calls.block(1)
        calls.call(add, [sofar, x[k : k + 1]], [following])
        sofar = following
    calls.call(add, [sofar, x[99:]], [total])
    kernel = calls.compile()          # called like any other kernel
    text = calls.c_source()           # the same for a board

A function may not write where it reads: give it another block. A call with a flag (`unless`) is
left out where the flag is set in all states that run together; so that results do not depend on
which these are, it must then write what is there already.
"""

import ctypes
import hashlib
import struct
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace

import casadi as ca

from framefree.kernel import cache
from framefree.kernel.batch import define_outer
from framefree.kernel.build import VERSIONS
from framefree.kernel.c_source import CSource
from framefree.kernel.call import Caller
from framefree.kernel.calls_c import CallsInC, calls_c_source
from framefree.kernel.code import Module, bits
from framefree.kernel.emission import fused_object
from framefree.kernel.entry import define_entry
from framefree.kernel.graph import CompileError, Graph, Port
from framefree.kernel.interpreter import HEADER
from framefree.kernel.kernel import Kernel, make_kernel
from framefree.kernel.llvm_code import emit
from framefree.kernel.loopcode import define_run, define_tiles, define_variant, define_walk
from framefree.kernel.native import Native, TileLayout, compile_both, load_object
from framefree.kernel.optimise import optimise
from framefree.kernel.program import KernelProgram, Stage, lay_out
from framefree.kernel.reading import read
from framefree.kernel.routines.embed import as_program, define_procedure, procedure_module
from framefree.kernel.routines.procedure import Procedure
from framefree.kernel.target import Target, host
from framefree.kernel.timeloop import define_rollout
from framefree.kernel.written_out import written_out

NEAR = 256 * 1024  # bytes of workspace that should stay in the cache nearest but one
MOST_GROUPS = 8


@dataclass(frozen=True)
class Block:
    """Consecutive slots of the workspace."""

    start: int
    size: int

    def __getitem__(self, part: slice) -> "Block":
        first, last, step = part.indices(self.size)
        if step != 1:
            raise CompileError("a block can only be cut in consecutive pieces")
        return Block(self.start + first, max(last - first, 0))

    def overlaps(self, other: "Block") -> bool:
        """Tell whether two blocks share slots."""
        return max(self.start, other.start) < min(self.start + self.size, other.start + other.size)


@dataclass(frozen=True)
class Constant:
    """Numbers that a call reads besides its blocks, the same in every state."""

    values: tuple[float, ...]

    @property
    def size(self) -> int:
        """Number of values."""
        return len(self.values)


@dataclass(frozen=True)
class Call:
    """One call of a function."""

    variant: int
    inputs: tuple[Block | Constant, ...]
    outputs: tuple[Block, ...]
    unless: tuple[Block, ...] = ()

    @property
    def operands(self) -> tuple[Block | Constant, ...]:
        """All that a row of the table points to."""
        return (*self.inputs, *self.outputs, *self.unless)


@dataclass
class _Variant:
    """A function, which of its inputs are constants, and whether a flag can make it idle."""

    function: ca.Function | Procedure
    constant: tuple[bool, ...]
    flagged: bool
    original: ca.Function | Procedure  # kept, for its identity is the key


class Calls:
    """A program that is a list of calls; see the top of the file."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.inputs: list[tuple[Port, Block]] = []
        self.outputs: list[tuple[Port, Block]] = []
        self._calls: list[Call] = []
        self._variants: dict[tuple[int, tuple[bool, ...], bool], int] = {}
        self._kinds: list[_Variant] = []
        self._free: dict[int, list[Block]] = {}
        self._zeros: list[Block] = []
        self._written = bytearray()
        self._programs: list[KernelProgram] = []
        self._flag: Block | None = None

    # ------------------------------------------------------------------ blocks

    def input(self, name: str, shape: tuple[int, ...]) -> Block:
        """Return the block of a new input."""
        return self._port(self.inputs, name, shape)

    def output(self, name: str, shape: tuple[int, ...]) -> Block:
        """Return the block of a new output; every element must be written by some call."""
        return self._port(self.outputs, name, shape)

    def block(self, size: int) -> Block:
        """Return slots for what one call hands to another."""
        pool = self._free.get(size)
        if pool:
            return pool.pop()
        return self._more(size)

    def release(self, block: Block) -> None:
        """Let the slots of `block` be used again by calls that come later."""
        self._free.setdefault(block.size, []).append(block)

    def zeros(self, size: int) -> Block:
        """Return slots that hold zeros; nobody may write to them."""
        if not self._zeros or size > self._zeros[-1].size:
            self._zeros.append(self._more(max(size, 32)))
            self._mark(self._zeros[-1])
        return self._zeros[-1][:size]

    def _port(self, ports: list[tuple[Port, Block]], name: str, shape: tuple[int, ...]) -> Block:
        port = Port(name, shape)
        ports.append((port, self._more(port.size)))
        if ports is self.inputs:
            self._mark(ports[-1][1])
        return ports[-1][1]

    def _more(self, size: int) -> Block:
        self._written.extend(bytes(size))
        return Block(len(self._written) - size, size)

    def _mark(self, block: Block) -> None:
        self._written[block.start : block.start + block.size] = b"\1" * block.size

    @property
    def _slots(self) -> int:
        return len(self._written)

    # ------------------------------------------------------------------ calls

    def call(
        self,
        function: ca.Function | Procedure,
        inputs: Sequence[Block | Constant],
        outputs: Sequence[Block],
        *,
        unless: Block | None = None,
    ) -> None:
        """Append a call; blocks in the order of the function's inputs and outputs.

        `unless` is a flag (one slot): the call may be left out for states in which it is not zero.
        """
        self._check(function, inputs, outputs)
        unless = self._flag if unless is None else unless
        constant = tuple(isinstance(one, Constant) for one in inputs)
        flag = () if unless is None else (unless,)
        if any(block.size != 1 for block in flag):
            raise CompileError(f"the flag of a call of `{function.name()}` must be one slot")
        key = (id(function), constant, bool(flag))
        if key not in self._variants:
            self._variants[key] = len(self._kinds)
            self._kinds.append(_Variant(_as_columns(function), constant, bool(flag), function))
        variant = self._variants[key]
        self._calls.append(Call(variant, tuple(inputs), tuple(outputs), flag))
        for block in outputs:
            self._mark(block)

    @contextmanager
    def all_unless(self, flag: Block | None) -> Iterator[None]:
        """Give all calls made in the body this flag, but for those with one of their own."""
        before, self._flag = self._flag, flag
        yield
        self._flag = before

    def _check(
        self,
        function: ca.Function | Procedure,
        inputs: Sequence[Block | Constant],
        outputs: Sequence[Block],
    ) -> None:
        sizes = [function.numel_in(k) for k in range(function.n_in())]
        actual = [one.size for one in inputs]
        if sizes != actual:
            raise CompileError(
                f"`{function.name()}` takes blocks of sizes {sizes}, but got {actual}"
            )
        sizes = [function.numel_out(k) for k in range(function.n_out())]
        actual = [one.size for one in outputs]
        if sizes != actual:
            raise CompileError(
                f"`{function.name()}` gives blocks of sizes {sizes}, but got {actual}"
            )
        blocks = [one for one in inputs if isinstance(one, Block)]
        for block in blocks:
            if not all(self._written[block.start : block.start + block.size]):
                raise CompileError(f"`{function.name()}` would read what no call has written")
        constant = [block for _, block in self.inputs] + self._zeros
        for written in outputs:
            if any(map(written.overlaps, blocks)):
                raise CompileError(f"`{function.name()}` would write where it reads")
            if any(map(written.overlaps, constant)):
                raise CompileError(f"`{function.name()}` would write over inputs or zeros")

    def _check_outputs(self) -> None:
        for port, block in self.outputs:
            if not all(self._written[block.start : block.start + block.size]):
                raise CompileError(f"no call writes all of the output `{port.name}`")

    @property
    def functions(self) -> tuple[ca.Function | Procedure, ...]:
        """The functions that are called: all the code there is."""
        return tuple(kind.function for kind in self._kinds)

    @property
    def latest(self) -> tuple[Block, ...]:
        """The outputs of the latest call."""
        return self._calls[-1].outputs

    # ------------------------------------------------------------------ as a CasADi function

    def function(self) -> ca.Function:
        """Return the same program as a `casadi.Function`, for derivatives and for checking."""
        symbols = [ca.MX.sym(port.name, port.size) for port, _ in self.inputs]
        slots: list[tuple[ca.MX, int]] = [(ca.MX(0.0), 0)] * self._slots
        for symbol, (_, block) in zip(symbols, self.inputs, strict=True):
            slots[block.start : block.start + block.size] = [(symbol, k) for k in range(block.size)]
        for call in self._calls:
            function = self._kinds[call.variant].function
            if isinstance(function, Procedure):
                raise CompileError(f"`{function.name()}` has loops, which CasADi cannot express")
            arguments = [
                ca.DM(one.values) if isinstance(one, Constant) else _collect(slots, one)
                for one in call.inputs
            ]
            for block, result in zip(call.outputs, function.call(arguments), strict=True):
                slots[block.start : block.start + block.size] = [
                    (result, k) for k in range(block.size)
                ]
        results = [_collect(slots, block) for _, block in self.outputs]
        names = [port.name for port, _ in self.inputs], [port.name for port, _ in self.outputs]
        return ca.Function(self.name, symbols, results, *names)

    # ------------------------------------------------------------------ as C

    def c_source(self, name: str | None = None) -> CSource:
        """Return the program as C99 with a header: loops stay loops, nothing is allocated."""
        self._check_outputs()
        calls = [(call.variant, _places(call.operands)) for call in self._calls]
        functions = [
            one if isinstance(one, Procedure) else lay_out(optimise(_graph(one), fma=True))
            for one in (kind.function for kind in self._kinds)
        ]
        program = CallsInC(
            [(port, block.start) for port, block in self.inputs],
            [(port, block.start) for port, block in self.outputs],
            functions,
            [kind.constant for kind in self._kinds],
            [kind.flagged for kind in self._kinds],
            calls,
            [(block.start, block.size) for block in self._zeros],
            self._slots,
        )
        return calls_c_source(program, name or self.name)

    # ------------------------------------------------------------------ as native code

    def compile(self, *, use_cache: bool = True, lanes: int | None = None) -> Kernel:
        """Compile to native code; the result is called like any other kernel.

        A single state has code of its own, with one lane: it needs a fraction of the memory.
        """
        self._check_outputs()
        target, program = host(lanes), self._program()
        targets = [target] if target.lanes == 1 else [target, replace(target, lanes=1)]
        binaries = self._objects(program, targets, use_cache)
        native, *single = map(load_object, binaries, targets)
        caller = Caller(self.name, *self._ports, native, _layout(program, target))
        if single:
            (caller.single,) = single
            _join(native, caller.single)
        return self._kernel(caller)

    def compile_straight(self, *, lanes: int | None = None) -> Kernel:
        """Compile to straight-line code, one call written out after another: with the same bits.

        For checking, and for programs of few calls. Procedures are loops in any form.
        """
        self._check_outputs()
        for kind in self._kinds:
            if isinstance(kind.function, Procedure):
                name = kind.function.name()
                raise CompileError(f"`{name}` is a routine, whose loops cannot be written out")
        calls = (
            (self._laid_out[call.variant].graph, _places(call.inputs), _places(call.outputs))
            for call in self._calls
        )
        ports = [
            [(port, block.start) for port, block in ports] for ports in (self.inputs, self.outputs)
        ]
        target = host(lanes)
        binary, layout = fused_object(written_out(*ports, calls), target)
        return self._kernel(Caller(self.name, *self._ports, load_object(binary, target), layout))

    def _kernel(self, caller: Caller) -> Kernel:
        return make_kernel(caller, self.function, c_source=lambda _, name=None: self.c_source(name))

    @property
    def _ports(self) -> tuple[tuple[Port, ...], tuple[Port, ...]]:
        return tuple(port for port, _ in self.inputs), tuple(port for port, _ in self.outputs)

    def _objects(
        self, program: KernelProgram, targets: Sequence[Target], use_cache: bool
    ) -> list[bytes]:
        """Return an object file for every target, from the cache where it is there."""
        keys = [self._key(one) if use_cache and cache.enabled() else None for one in targets]
        found = [None if key is None else cache.load(key) for key in keys]
        missing = [k for k, binary in enumerate(found) if binary is None]
        work = [
            (self._assembly(program, targets[k]), targets[k], self._routines(targets[k]))
            for k in missing
        ]
        made = compile_both(work[0], work[1]) if len(work) == 2 else [emit(*one) for one in work]
        for k, binary in zip(missing, made, strict=True):
            found[k], key = binary, keys[k]
            if key is not None:
                cache.store(key, binary)
        return [one for one in found if one is not None]

    def _program(self) -> KernelProgram:
        """Return what the loops over rows and time need to know: ports, slots and weight."""
        zeros = [k for block in self._zeros for k in range(block.start, block.start + block.size)]
        scratch = max((_temporaries(variant) for variant in self._laid_out), default=0)
        return KernelProgram(
            Graph(*self._ports, (), ()),
            tuple(block.start for _, block in self.inputs),
            tuple(block.start for _, block in self.outputs),
            dict.fromkeys(zeros, 0.0),
            (Stage(0, 0, {}, {}),),
            slots=max(self._slots + scratch, 1),
            weight=sum(self._laid_out[call.variant].weight for call in self._calls),
        )

    @property
    def _laid_out(self) -> list[KernelProgram]:
        """The functions as programs of their own."""
        programs = self._programs
        for variant in self._kinds[len(programs) :]:
            function = variant.function
            if isinstance(function, Procedure):
                programs.append(as_program(function))
                continue
            programs.append(lay_out(optimise(_graph(function), fma=host().fma)))
        return programs

    def _assembly(self, program: KernelProgram, target: Target) -> str:
        module = Module(target)
        scratch = self._slots
        for index, (variant, kind) in enumerate(zip(self._laid_out, self._kinds, strict=True)):
            name, flagged = f"variant{index}", kind.flagged
            if isinstance(kind.function, Procedure):
                one = kind.function
                define_procedure(module, name, program, one, kind.constant, scratch, flagged)
            else:
                define_variant(module, name, program, variant, kind.constant, scratch, flagged)
        width = 1 + max((len(call.operands) for call in self._calls), default=0)
        define_walk(module, len(self._kinds), len(self._calls), width)
        define_tiles(module, program)
        # A few rows at a time, so that the workspace stays near.
        groups = _layout(program, target).rows // target.lanes
        define_outer(module, program, "part", "tiles", "", groups)
        define_run(module)
        define_rollout(module, program)
        define_entry(module, program, HEADER)
        table, numbers = self._tables(width, target)
        single = "@single = internal global ptr null\n"
        return module.text() + table + numbers + single

    def _routines(self, target: Target) -> str:
        """Return the routines that are called, as LLVM assembly."""
        found = {id(k.function): k.function for k in self._kinds}
        procedures = [one for one in found.values() if isinstance(one, Procedure)]
        return procedure_module(procedures, target) if procedures else ""

    def _tables(self, width: int, target: Target) -> tuple[str, str]:
        """Return the table of calls and that of the constants, as LLVM globals."""
        size = target.lanes * 8
        numbers: dict[tuple[float, ...], int] = {}
        stored: list[float] = []
        rows: list[int] = []
        for call in self._calls:
            row = [call.variant]
            for one in call.operands:
                if isinstance(one, Block):
                    row.append(one.start * size)
                    continue
                if one.values not in numbers:
                    numbers[one.values] = len(stored)
                    stored.extend(one.values)
                row.append(numbers[one.values] * 8)
            rows.extend(row + [0] * (width - len(row)))
        return (
            _global("calls", "i64", [str(value) for value in rows], 8),
            _global("numbers", "double", [bits(value) for value in stored], 64),
        )

    def _key(self, target: Target) -> bytes | None:
        """Return what the object file depends on, as a digest; None if that is unknown."""
        if VERSIONS is None:
            return None
        parts = [VERSIONS, repr((self.inputs, self.outputs, target, self._slots)).encode()]
        parts += [
            repr((kind.constant, kind.flagged, kind.function.serialize())).encode()
            for kind in self._kinds
        ]
        table = hashlib.sha256()
        for call in self._calls:
            for one in call.operands:
                if isinstance(one, Block):
                    table.update(struct.pack("<qqq", call.variant, one.start, one.size))
                else:
                    table.update(struct.pack(f"<q{one.size}d", call.variant, *one.values))
        digests = [hashlib.sha256(part).digest() for part in (*parts, table.digest())]
        return hashlib.sha256(b"calls" + b"".join(digests)).digest()


def _graph(function: ca.Function) -> Graph:
    """Return the expression graph of a function whose inputs and outputs are columns."""
    inputs = [Port(n, (function.numel_in(k),)) for k, n in enumerate(function.name_in())]
    outputs = [Port(n, (function.numel_out(k),)) for k, n in enumerate(function.name_out())]
    return read(function, inputs, outputs)


def _places(operands: Sequence[Block | Constant]) -> list[int | tuple[float, ...]]:
    """Return the first slot of every operand, or its values."""
    return [one.start if isinstance(one, Block) else one.values for one in operands]


def _collect(slots: list[tuple[ca.MX, int]], block: Block) -> ca.MX:
    """Return the value of a block, put together from what was written there."""
    parts: list[ca.MX] = []
    k = block.start
    while k < block.start + block.size:
        value, first = slots[k]
        count = 1
        while k + count < block.start + block.size:
            other, index = slots[k + count]
            if other is not value or index != first + count:
                break
            count += 1
        whole = first == 0 and count == value.shape[0]
        parts.append(value if whole else value[first : first + count])
        k += count
    return parts[0] if len(parts) == 1 else ca.vertcat(*parts)


def _as_columns(function: ca.Function | Procedure) -> ca.Function | Procedure:
    """Return the function with every input and output as a column, in CasADi's order."""
    if isinstance(function, Procedure):
        return function
    if all(function.size_in(k)[1] == 1 for k in range(function.n_in())) and all(
        function.size_out(k)[1] == 1 for k in range(function.n_out())
    ):
        return function
    symbols = [ca.SX.sym(name, function.numel_in(k)) for k, name in enumerate(function.name_in())]
    shaped = [ca.reshape(one, *function.size_in(k)) for k, one in enumerate(symbols)]
    results = [ca.vec(ca.densify(one)) for one in function.call(shaped)]
    return ca.Function(function.name(), symbols, results, function.name_in(), function.name_out())


def _layout(program: KernelProgram, target: Target) -> TileLayout:
    """Choose how many rows go through the list of calls together."""
    fitting = NEAR // (program.slots * target.lanes * 8)
    groups = max(1, min(fitting, MOST_GROUPS))
    return TileLayout(rows=target.lanes * groups, weight=program.weight)


def _join(native: Native, single: Native) -> None:
    """Let the code for many states hand single ones to that with one lane."""
    place = ctypes.CFUNCTYPE(ctypes.c_void_p)(native.engine.get_function_address("single_place"))()
    address = ctypes.c_void_p(single.engine.get_function_address("run"))
    ctypes.memmove(place, ctypes.byref(address), ctypes.sizeof(address))


def _temporaries(variant: KernelProgram) -> int:
    ports = (*variant.graph.inputs, *variant.graph.outputs)
    return max(variant.slots - sum(port.size for port in ports), 0)


def _global(name: str, kind: str, values: list[str], align: int) -> str:
    items = ", ".join(f"{kind} {value}" for value in values or ["0" if kind == "i64" else "0.0"])
    return (
        f"@{name} = internal constant [{max(len(values), 1)} x {kind}] [{items}], align {align}\n"
    )
