"""From a CasADi function to an object file: graph, stages and slots, LLVM assembly, LLVM."""

import casadi as ca

from framefree.kernel.agreed import find_feedback
from framefree.kernel.batch import define_program
from framefree.kernel.code import Module
from framefree.kernel.entry import define_entry
from framefree.kernel.graph import Graph, Port
from framefree.kernel.interpreter import HEADER
from framefree.kernel.native import TileLayout, compile_object
from framefree.kernel.optimise import optimise
from framefree.kernel.program import KernelProgram, lay_out
from framefree.kernel.reading import read
from framefree.kernel.target import Target
from framefree.kernel.timeloop import define_rollout

LARGE = 64  # elements of an output from which on a table tells where they lie


def object_file(
    function: ca.Function, inputs: tuple[Port, ...], outputs: tuple[Port, ...], target: Target
) -> tuple[bytes, TileLayout]:
    """Return the compiled function, and the sizes that callers need."""
    # Functions of matrices are loops over doubles; in single precision they are written out.
    graph = read(function, inputs, outputs, calls=not target.single)
    return fused_object(optimise(graph, fma=target.fma), target)


def fused_object(graph: Graph, target: Target) -> tuple[bytes, TileLayout]:
    """Return a graph that is optimised already as compiled code."""
    # What is fed back in a roll-out is copied from slots that follow one another.
    large = None if find_feedback(graph.inputs, graph.outputs).states else LARGE
    program = lay_out(graph, large)
    binary = compile_object(assembly(program, target), target)
    groups = program.groups(target.width)
    return binary, TileLayout(rows=target.lanes * groups, weight=program.weight)


def assembly(program: KernelProgram, target: Target) -> str:
    """Write a program as LLVM assembly."""
    module = Module(target)
    define_program(module, program)
    define_rollout(module, program)
    define_entry(module, program, HEADER)
    return module.text()
