"""From LLVM assembly to running machine code."""

import ctypes
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

import llvmlite.binding as llvm

from framefree.kernel import elsewhere
from framefree.kernel.agreed import PLAN
from framefree.kernel.interpreter import addresses
from framefree.kernel.llvm_code import emit, initialise, new_machine
from framefree.kernel.target import Target


class Plan(ctypes.Structure):
    """From which step to which a roll-out goes, and what it records."""

    _fields_ = tuple(
        (name, ctypes.c_double if name in ("t0", "dt") else ctypes.c_ssize_t) for name in PLAN
    )


Work: TypeAlias = tuple[str, Target, str]
"""A module, its target, and routines: what `emit` takes."""


@dataclass(frozen=True)
class Native:
    """Loaded machine code.

    Attributes
    ----------
    entry : int
        Address of the function that the interpreter calls.
    run : callable
        ``run(records, first, last)`` evaluates rows; it returns non-zero when out of memory. The
        interpreter lock is released meanwhile.
    rollout : callable or None
        ``rollout(records, first, last, plan)`` advances rows in time.
    """

    entry: int
    run: Callable[..., int]
    rollout: Callable[..., int] | None
    engine: llvm.ExecutionEngine = field(repr=False)  # owns the code

    def tell_names(self, names: Sequence[str]) -> tuple[str, ...]:
        """Tell the code the names of its inputs, for calls by keyword.

        They are compared by identity, as the interpreter itself does first, so the caller must hold
        on to what is returned.
        """
        interned = tuple(map(sys.intern, names))
        place = ctypes.CFUNCTYPE(ctypes.c_void_p)(self.engine.get_function_address("names_address"))
        (ctypes.c_void_p * len(names)).from_address(place())[:] = [id(name) for name in interned]
        return interned


@dataclass(frozen=True)
class TileLayout:
    """The sizes of compiled code that callers need: rows of a tile and cost.

    Attributes
    ----------
    rows : int
        Rows of a full tile.
    weight : int
        About how many instructions one group of lanes costs.
    """

    rows: int
    weight: int


SEVERAL = b"several"
"""Begins what `compile_object` gives where it is more than one object file."""


def compile_object(text: str, target: Target, routines: str = "") -> bytes:
    """Compile LLVM assembly to an object file; `routines` get LLVM's own passes before.

    What is long is compiled by two processes, if a processor is free, to two files in one.
    """
    cut = None
    if not routines and elsewhere.worthwhile(text.count("\n")):
        cut = elsewhere.halves(text)
    if cut is None:
        return emit(text, target, routines)
    return _joined(compile_both((cut[0], target, ""), (cut[1], target, "")))


def compile_both(one: Work, other: Work) -> tuple[bytes, bytes]:
    """Compile two modules, the second in another process if that is worthwhile."""
    lines = sum(text.count("\n") + routines.count("\n") for text, _, routines in (one, other))
    if not elsewhere.worthwhile(lines):
        return emit(*one), emit(*other)
    try:
        compilation = elsewhere.Compilation(*other)
    except OSError:  # no process, or no place for its files
        return emit(*one), emit(*other)
    with compilation:
        first = emit(*one)
        second = compilation.object_file()
    return first, emit(*other) if second is None else second


def _joined(binaries: tuple[bytes, bytes]) -> bytes:
    first, second = binaries
    return SEVERAL + len(first).to_bytes(8, "little") + first + second


def _object_files(binary: bytes) -> list[bytes]:
    if not binary.startswith(SEVERAL):
        return [binary]
    start = len(SEVERAL) + 8
    end = start + int.from_bytes(binary[len(SEVERAL) : start], "little")
    return [binary[start:end], binary[end:]]


def load_engine(binary: bytes, target: Target) -> llvm.ExecutionEngine:
    """Load an object file into this process."""
    initialise()
    # One memory block for code and constants: they address each other by short offsets.
    engine = llvm.create_mcjit_compiler(llvm.parse_assembly(""), new_machine(target), use_lmm=True)
    for one in _object_files(binary):
        engine.add_object_file(llvm.ObjectFileRef.from_data(one))
    engine.finalize_object()
    return engine


def load_object(binary: bytes, target: Target) -> Native:
    """Make an object file callable."""
    engine = load_engine(binary, target)
    table = addresses()
    place = ctypes.CFUNCTYPE(ctypes.c_void_p)(engine.get_function_address("table_address"))()
    ctypes.memmove(place, table, ctypes.sizeof(table))
    arguments = (ctypes.c_void_p, ctypes.c_ssize_t, ctypes.c_ssize_t)
    run = ctypes.CFUNCTYPE(ctypes.c_int, *arguments)(engine.get_function_address("run"))
    rollout = None
    if address := engine.get_function_address("rollout"):
        rollout = ctypes.CFUNCTYPE(ctypes.c_int, *arguments, ctypes.c_void_p)(address)
    return Native(engine.get_function_address("entry"), run, rollout, engine)
