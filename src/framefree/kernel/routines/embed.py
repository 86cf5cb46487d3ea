"""Calls of procedures within a program of calls: arrays are brought to the desk and back.

The workspace of a program has its states side by side, lane by lane; a routine works on one of them
after the other, on a desk of its own.
"""

from collections.abc import Callable

from framefree.kernel.code import Code, Module
from framefree.kernel.graph import Graph, Port
from framefree.kernel.loopcode import wanted
from framefree.kernel.program import KernelProgram, Stage
from framefree.kernel.routines.procedure import Procedure
from framefree.kernel.rows import define_gather, define_scatter
from framefree.kernel.target import Target

WEIGHT = 4000
"""About how many instructions a procedure costs; it decides on threads only."""


def as_program(procedure: Procedure) -> KernelProgram:
    """Return what a program of calls needs to know: ports, and slots for the desk."""
    inputs = tuple(Port(n, (procedure.numel_in(k),)) for k, n in enumerate(procedure.inputs))
    outputs = tuple(Port(n, (procedure.numel_out(k),)) for k, n in enumerate(procedure.outputs))
    ports = sum(port.size for port in (*inputs, *outputs))
    graph = Graph(inputs, outputs, (), ())
    slots = ports + procedure.layout.size
    return KernelProgram(graph, (), (), {}, (Stage(0, 0, {}, {}),), slots=slots, weight=WEIGHT)


def procedure_module(procedures: list[Procedure], target: Target) -> str:
    """Return the routines of procedures as LLVM assembly."""
    texts = [one.llvm_text(target) for one in procedures]
    declared, bodies = set(), []
    for text in texts:
        lines = text.splitlines()
        declared |= {line for line in lines if line.startswith("declare")}
        bodies += [line for line in lines if not line.startswith("declare")]
    return "\n".join([*sorted(declared), *bodies]) + "\n"


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
    lanes, operands = code.lanes, procedure.n_in() + procedure.n_out()
    stride, step = program.slots * lanes * 8, procedure.layout.size
    stop = code.put(f"mul i64 %groups, {stride}")
    with code.loop(0, stop, str(stride)) as shift, wanted(code, operands, flagged, shift):
        moved = code.offset("%workspace", shift)
        desks = code.offset(moved, scratch * lanes * 8)

        def bring(define: Callable[[Module, int], str], k: int, part: str, size: int) -> None:
            offset = code.load("i64", code.offset("%row", k + 1, 8))
            at = code.offset(desks, procedure.layout.places[part], 8)
            if k < len(constant) and constant[k]:
                _spread(code, code.offset("@numbers", offset), at, size, step)
            elif size:
                place, function = code.offset(moved, offset), define(module, size)
                rows = f"i64 {step}, i64 0, i64 {lanes}, i64 1"
                code.do(f"call void @{function}(ptr {place}, i64 0, ptr {at}, {rows})")

        for k, part in enumerate(procedure.inputs):
            bring(define_scatter, k, part, procedure.numel_in(k))
        with code.loop(0, str(lanes)) as lane:
            code.do(f"call void @{procedure.entry}(ptr {code.offset(desks, lane, 8 * step)})")
        for k, part in enumerate(procedure.outputs):
            bring(define_gather, procedure.n_in() + k, part, procedure.numel_out(k))
    code.do("ret void")
    header = f"internal void @{name}(ptr %workspace, ptr %row, i64 %groups)"
    module.define(name, header, code, "noinline nounwind")


def _spread(code: Code, source: str, target: str, size: int, step: int) -> None:
    """Copy constants to every desk."""
    with code.loop(0, str(code.lanes)) as lane, code.loop(0, str(size)) as k:
        value = code.load("double", code.offset(source, k, 8))
        code.store("double", value, code.offset(code.offset(target, lane, 8 * step), k, 8))
