"""A list of calls as native code: its functions, and a loop that walks a table of the calls."""

import ctypes
import hashlib
import struct
from collections.abc import Sequence
from functools import cached_property

import casadi as ca

from framefree.kernel import cache
from framefree.kernel.batch import define_outer
from framefree.kernel.build import VERSIONS
from framefree.kernel.call_list import Block, CallList
from framefree.kernel.code import Module, bits
from framefree.kernel.entry import define_entry
from framefree.kernel.graph import Graph, Port
from framefree.kernel.interpreter import HEADER
from framefree.kernel.llvm_code import emit
from framefree.kernel.loopcode import define_run, define_tiles, define_variant, define_walk
from framefree.kernel.native import Native, TileLayout, compile_both
from framefree.kernel.optimise import optimise
from framefree.kernel.program import KernelProgram, Stage, lay_out
from framefree.kernel.reading import read
from framefree.kernel.routines.embed import as_program, define_procedure, procedure_module
from framefree.kernel.routines.procedure import Procedure
from framefree.kernel.target import Target, host
from framefree.kernel.timeloop import define_rollout

NEAR = 256 * 1024  # bytes of workspace that should stay in the cache nearest but one
MOST_GROUPS = 8


class NativeCalls:
    """Writes a list of calls as native code."""

    def __init__(self, calls: CallList) -> None:
        self.list = calls

    @cached_property
    def laid_out(self) -> list[KernelProgram]:
        """The functions as programs of their own."""
        fma = host().fma
        return [
            as_program(one)
            if isinstance(one, Procedure)
            else lay_out(optimise(column_graph(one), fma=fma))
            for one in (variant.function for variant in self.list.variants)
        ]

    @cached_property
    def program(self) -> KernelProgram:
        """Return what the loops over rows and time need to know: ports, slots and weight."""
        zeros = [
            k for block in self.list.zeros for k in range(block.start, block.start + block.size)
        ]
        scratch = max((_temporaries(variant) for variant in self.laid_out), default=0)
        return KernelProgram(
            Graph(*self.list.ports, (), ()),
            tuple(block.start for _, block in self.list.inputs),
            tuple(block.start for _, block in self.list.outputs),
            dict.fromkeys(zeros, 0.0),
            (Stage(0, 0, {}, {}),),
            slots=max(self.list.slots + scratch, 1),
            weight=sum(self.laid_out[call.variant].weight for call in self.list.calls),
        )

    def layout(self, target: Target) -> TileLayout:
        """Choose how many rows go through the list of calls together."""
        fitting = NEAR // (self.program.slots * target.lanes * 8)
        groups = max(1, min(fitting, MOST_GROUPS))
        return TileLayout(rows=target.lanes * groups, weight=self.program.weight)

    def object_files(self, targets: Sequence[Target], use_cache: bool) -> list[bytes]:
        """Return an object file for every target, from the cache where it is there."""
        keys = [self._key(one) if use_cache and cache.enabled() else None for one in targets]
        found = [None if key is None else cache.load(key) for key in keys]
        missing = [k for k, binary in enumerate(found) if binary is None]
        work = [
            (self._assembly(targets[k]), targets[k], self._routines(targets[k])) for k in missing
        ]
        made = compile_both(work[0], work[1]) if len(work) == 2 else [emit(*one) for one in work]
        for k, binary in zip(missing, made, strict=True):
            found[k], key = binary, keys[k]
            if key is not None:
                cache.store(key, binary)
        return [one for one in found if one is not None]

    def _assembly(self, target: Target) -> str:
        """Return functions, the walk over the table of calls, and what callers ask for."""
        program = self.program
        module = Module(target)
        scratch = self.list.slots
        for index, (variant, kind) in enumerate(
            zip(self.laid_out, self.list.variants, strict=True)
        ):
            name, flagged = f"variant{index}", kind.flagged
            if isinstance(kind.function, Procedure):
                one = kind.function
                define_procedure(module, name, program, one, kind.constant, scratch, flagged)
            else:
                define_variant(module, name, program, variant, kind.constant, scratch, flagged)
        width = 1 + max((len(call.operands) for call in self.list.calls), default=0)
        define_walk(module, len(self.list.variants), len(self.list.calls), width)
        define_tiles(module, program)
        # A few rows at a time, so that the workspace stays near.
        groups = self.layout(target).rows // target.lanes
        define_outer(module, program, "part", "tiles", "", groups)
        define_run(module)
        define_rollout(module, program)
        define_entry(module, program, HEADER)
        table, numbers = self._tables(width, target)
        single = "@single = internal global ptr null\n"
        return module.text() + table + numbers + single

    def _routines(self, target: Target) -> str:
        """Return the routines that are called, as LLVM assembly."""
        found = {id(k.function): k.function for k in self.list.variants}
        procedures = [one for one in found.values() if isinstance(one, Procedure)]
        return procedure_module(procedures, target) if procedures else ""

    def _tables(self, width: int, target: Target) -> tuple[str, str]:
        """Return the table of calls and that of the constants, as LLVM globals."""
        size = target.lanes * 8
        numbers: dict[tuple[float, ...], int] = {}
        stored: list[float] = []
        rows: list[int] = []
        for call in self.list.calls:
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
        parts = [
            VERSIONS,
            repr((self.list.inputs, self.list.outputs, target, self.list.slots)).encode(),
        ]
        parts += [
            repr((kind.constant, kind.flagged, kind.function.serialize())).encode()
            for kind in self.list.variants
        ]
        table = hashlib.sha256()
        for call in self.list.calls:
            for one in call.operands:
                if isinstance(one, Block):
                    table.update(struct.pack("<qqq", call.variant, one.start, one.size))
                else:
                    table.update(struct.pack(f"<q{one.size}d", call.variant, *one.values))
        digests = [hashlib.sha256(part).digest() for part in (*parts, table.digest())]
        return hashlib.sha256(b"calls" + b"".join(digests)).digest()


def column_graph(function: ca.Function) -> Graph:
    """Return the expression graph of a function whose inputs and outputs are columns."""
    inputs = [Port(n, (function.numel_in(k),)) for k, n in enumerate(function.name_in())]
    outputs = [Port(n, (function.numel_out(k),)) for k, n in enumerate(function.name_out())]
    return read(function, inputs, outputs)


def join_single(native: Native, single: Native) -> None:
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
