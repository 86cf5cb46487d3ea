"""From LLVM assembly to an object file, in this process."""

import ctypes
import functools

import llvmlite.binding as llvm

from framefree.kernel.agreed import PORT
from framefree.kernel.target import Target

OPTIMISATION = 1  # of the code generator; 2 and 3 give the same speed, no other pass runs
HUGE = 200_000  # lines of assembly beyond which it is 0: a tenth of the time, with the same bits


def emit(text: str, target: Target, routines: str = "") -> bytes:
    """Compile LLVM assembly here."""
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


@functools.cache
def initialise() -> None:
    """Prepare LLVM for the processor that runs this; raise where kernels cannot be."""
    if ctypes.sizeof(ctypes.c_ssize_t) * 3 != PORT:
        raise NotImplementedError("kernels need a 64-bit interpreter")
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()


def new_machine(target: Target, level: int = OPTIMISATION) -> llvm.TargetMachine:
    """Return LLVM's code generator for a target, at a level of optimisation."""
    initialise()
    return llvm.Target.from_triple(target.triple).create_target_machine(
        cpu=target.cpu,
        features=target.features,
        opt=level,
        reloc="pic",
        codemodel="small",
        jit=True,
    )


_machine = functools.cache(new_machine)
