"""Calls of procedures within a program of calls: the desk is told where inputs and outputs are.

The workspace of a program has its states side by side, lane by lane, and so has the desk.
"""

from framefree.kernel.code import Code, Module, spread
from framefree.kernel.graph import Graph, Port
from framefree.kernel.loopcode import wanted
from framefree.kernel.program import KernelProgram, Stage
from framefree.kernel.routines.procedure import Procedure
from framefree.kernel.target import Target

WEIGHT = 4000
"""About how many instructions a procedure costs; it decides on threads only."""


def as_program(procedure: Procedure) -> KernelProgram:
    """Return what a program of calls needs to know: ports, and slots for the desk."""
    inputs = tuple(Port(n, (procedure.numel_in(k),)) for k, n in enumerate(procedure.inputs))
    outputs = tuple(Port(n, (procedure.numel_out(k),)) for k, n in enumerate(procedure.outputs))
    ports = sum(port.size for port in (*inputs, *outputs))
    graph = Graph(inputs, outputs, (), ())
    slots = ports + procedure.slots
    return KernelProgram(graph, (), (), {}, (Stage(0, 0, {}, {}),), slots=slots, weight=WEIGHT)


def procedure_module(procedures: list[Procedure], target: Target) -> str:
    """Return the routines of procedures as LLVM assembly."""
    texts = [one.llvm_text(target) for one in procedures]
    declared, bodies = set(), []
    for text in texts:
        lines = text.splitlines()
        declared |= {line for line in lines if line.startswith("declare")}
        bodies += [line for line in lines if not line.startswith("declare")]
    return "\n".join([*sorted(declared), *bodies, "!0 = !{}"]) + "\n"


def define_procedure(
    module: Module,
    name: str,
    program: KernelProgram,
    procedure: Procedure,
    constant: tuple[bool, ...],
    scratch: int,
    flagged: bool,
) -> None:
    """Define ``void name(workspace, row, groups)``: one call, its operands read from the table."""
    module.intrinsic(procedure.entry, "void", "ptr")
    code = Code(module)
    size, operands = code.lanes * 8, procedure.n_in() + procedure.n_out()
    stride = program.slots * size
    stop = code.put(f"mul i64 %groups, {stride}")
    with code.loop(0, stop, str(stride)) as shift, wanted(code, operands, flagged, shift):
        moved = code.offset("%workspace", shift)
        # The desk is left behind by each call: one does for all groups.
        desk = code.offset("%workspace", scratch, size)
        for k, (label, entry) in enumerate(procedure.table(code.target).items()):
            offset = code.load("i64", code.offset("%row", k + 1, 8))
            place = code.offset(moved, offset)
            if k < len(constant) and constant[k]:
                place = code.offset(desk, procedure.layout.places[label], size)
                _spread(code, code.offset("@numbers", offset), place, procedure.numel_in(k))
            code.store("ptr", place, code.offset(desk, entry))
        code.do(f"call void @{procedure.entry}(ptr {desk})")
    code.do("ret void")
    header = f"internal void @{name}(ptr %workspace, ptr %row, i64 %groups)"
    module.define(name, header, code, "noinline nounwind")


def _spread(code: Code, source: str, target: str, count: int) -> None:
    """Write constants to slots, the same in all lanes."""
    with code.loop(0, str(count)) as k:
        value = spread(code, code.offset(source, k, 8))
        code.store(code.vector, value, code.offset(target, k, code.lanes * 8), code.lanes * 8)
