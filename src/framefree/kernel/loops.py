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

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace

import casadi as ca

from framefree.kernel.c_source import CSource
from framefree.kernel.call import Caller
from framefree.kernel.call_list import Block, Call, CallList, Constant, Variant, places
from framefree.kernel.calls_c import CallsInC, calls_c_source
from framefree.kernel.calls_native import NativeCalls, column_graph, join_single
from framefree.kernel.emission import fused_object
from framefree.kernel.graph import CompileError, Port
from framefree.kernel.kernel import Kernel, make_kernel
from framefree.kernel.native import load_object
from framefree.kernel.optimise import optimise
from framefree.kernel.program import lay_out
from framefree.kernel.routines.procedure import Procedure
from framefree.kernel.target import host
from framefree.kernel.written_out import written_out

__all__ = ["Block", "Calls", "Constant"]


class Calls:
    """A program that is a list of calls; see the top of the file."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.inputs: list[tuple[Port, Block]] = []
        self.outputs: list[tuple[Port, Block]] = []
        self._calls: list[Call] = []
        self._variants: dict[tuple[int, tuple[bool, ...], bool], int] = {}
        self._kinds: list[Variant] = []
        self._free: dict[int, list[Block]] = {}
        self._zeros: list[Block] = []
        self._written = bytearray()
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
            self._kinds.append(Variant(_as_columns(function), constant, bool(flag), function))
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
    def listed(self) -> CallList:
        """The program as it is now."""
        ports = tuple(self.inputs), tuple(self.outputs)
        calls, kinds, zeros = tuple(self._calls), tuple(self._kinds), tuple(self._zeros)
        return CallList(self.name, *ports, calls, kinds, zeros, self._slots)

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
        calls = [(call.variant, places(call.operands)) for call in self._calls]
        functions = [
            one if isinstance(one, Procedure) else lay_out(optimise(column_graph(one), fma=True))
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
        target, native = host(lanes), NativeCalls(self.listed)
        targets = [target] if target.lanes == 1 else [target, replace(target, lanes=1)]
        code, *single = map(load_object, native.object_files(targets, use_cache), targets)
        caller = Caller(self.name, *self.listed.ports, code, native.layout(target))
        if single:
            (caller.single,) = single
            join_single(code, caller.single)
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
        graphs = [program.graph for program in NativeCalls(self.listed).laid_out]
        calls = (
            (graphs[call.variant], places(call.inputs), [one.start for one in call.outputs])
            for call in self._calls
        )
        inputs, outputs = (
            [(port, block.start) for port, block in ports] for ports in (self.inputs, self.outputs)
        )
        target = host(lanes)
        binary, layout = fused_object(written_out(inputs, outputs, calls), target)
        code = load_object(binary, target)
        return self._kernel(Caller(self.name, *self.listed.ports, code, layout))

    def _kernel(self, caller: Caller) -> Kernel:
        return make_kernel(caller, self.function, c_source=lambda _, name=None: self.c_source(name))


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
