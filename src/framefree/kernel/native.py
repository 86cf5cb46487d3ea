"""From LLVM assembly to running machine code, in this process."""

import ctypes
import functools
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import llvmlite.binding as llvm

from framefree.kernel.agreed import PLAN, PORT
from framefree.kernel.interpreter import addresses
from framefree.kernel.target import Target

OPTIMISATION = 1  # of the code generator; 2 and 3 give the same speed, no other pass runs
HUGE = 200_000  # lines of assembly beyond which it is 0: a tenth of the time, with the same bits


class Plan(ctypes.Structure):
    """From which step to which a roll-out goes, and what it records."""

    _fields_ = tuple(
        (name, ctypes.c_double if name in ("t0", "dt") else ctypes.c_ssize_t) for name in PLAN
    )


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


def compile_object(text: str, target: Target, routines: str = "") -> bytes:
    """Compile LLVM assembly to an object file; `routines` get LLVM's own passes before."""
    module = llvm.parse_assembly(text)
    module.triple = target.triple
    if routines:
        module.data_layout = str(_machine(target).target_data)
        module.link_in(_optimised(routines, target))
    hasty = target.quick or text.count("\n") > HUGE
    return _machine(target, 0 if hasty else OPTIMISATION).emit_object(module)


def _optimised(text: str, target: Target) -> llvm.ModuleRef:
    """Return a module with LLVM's usual passes done: registers, inlining, vectors."""
    module, machine = llvm.parse_assembly(text), _machine(target)
    module.triple, module.data_layout = target.triple, str(machine.target_data)
    options = llvm.create_pipeline_tuning_options(speed_level=2)
    options.loop_vectorization = options.slp_vectorization = True
    builder = llvm.create_pass_builder(machine, options)
    builder.getModulePassManager().run(module, builder)
    return module


def load_engine(binary: bytes, target: Target) -> llvm.ExecutionEngine:
    """Load an object file into this process."""
    _initialise()
    # One memory block for code and constants: they address each other by short offsets.
    engine = llvm.create_mcjit_compiler(llvm.parse_assembly(""), _new_machine(target), use_lmm=True)
    engine.add_object_file(llvm.ObjectFileRef.from_data(binary))
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


@functools.cache
def _initialise() -> None:
    if ctypes.sizeof(ctypes.c_ssize_t) * 3 != PORT:
        raise NotImplementedError("kernels need a 64-bit interpreter")
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()


def _new_machine(target: Target, level: int = OPTIMISATION) -> llvm.TargetMachine:
    _initialise()
    return llvm.Target.from_triple(target.triple).create_target_machine(
        cpu=target.cpu,
        features=target.features,
        opt=level,
        reloc="pic",
        codemodel="small",
        jit=True,
    )


_machine = functools.cache(_new_machine)
