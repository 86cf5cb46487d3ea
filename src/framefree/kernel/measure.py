"""Measure the speed of the processor, and the share of it that a kernel uses."""

import ctypes
import functools
from collections import Counter
from time import perf_counter

from framefree.kernel.code import Code, Module
from framefree.kernel.kernel import Kernel
from framefree.kernel.native import compile_object, load_engine
from framefree.kernel.optimise import optimise
from framefree.kernel.target import host

# Floating-point operations by node; those not listed count once, comparisons and signs not at all.
OPERATIONS = Counter({"fma": 2, "fms": 2, "fnma": 2, "sin": 18, "cos": 18, "exp": 34, "log": 30})
OPERATIONS.update({"tanh": 31, "atan": 35, "atan2": 40, "asin": 40, "acos": 42})
FREE = frozenset({"const", "input", "neg", "abs", "sign", "copysign", "select", "not", "and", "or"})
CHAINS = 12  # independent sums: enough to fill all units, and they fit the registers
TURNS, TRIES = 50_000, 200  # short runs and many: one of them is undisturbed


def operations(kernel: Kernel) -> int:
    """Count the floating-point operations of one evaluation; a fused multiply-add counts twice."""
    graph = optimise(kernel.graph, fma=host().fma)
    kinds = Counter(node[0] for node in graph.nodes if node[0] not in FREE)
    return sum(count * OPERATIONS.get(kind, 1) for kind, count in kinds.items())


def peak_share(kernel: Kernel, evaluations: float, seconds: float) -> float:
    """Return the share of `peak_flops` at which a kernel of doubles runs, on one thread."""
    return operations(kernel) * evaluations / seconds / peak_flops()


@functools.cache
def peak_flops() -> float:
    """Measure a plain loop of fused multiply-adds on one core, operations per second."""
    target = host()
    module = Module(target)
    code = Code(module)
    code.jump("turn")
    code.label("turn")
    chains = [(f"%old{k}", f"%new{k}") for k in range(CHAINS)]
    for old, new in chains:
        code.do(f"{old} = phi {code.vector} [ zeroinitializer, %entry ], [ {new}, %turn ]")
    code.do("%count = phi i64 [ 0, %entry ], [ %more, %turn ]")
    for old, new in chains:
        value = code.fma(old, "splat (double 0.5)", "splat (double 1.0)")
        code.do(f"{new} = select i1 true, {code.vector} {value}, {code.vector} {value}")
    code.do("%more = add i64 %count, 1")
    code.do(f"br i1 {code.put('icmp slt i64 %more, %turns')}, label %turn, label %end")
    code.label("end")
    total = chains[0][1]
    for _, new in chains[1:]:
        total = code.add(total, new)
    code.do(f"ret double {code.put(f'extractelement {code.vector} {total}, i64 0')}")
    module.define("peak", "double @peak(i64 %turns)", code)
    engine = load_engine(compile_object(module.text(), target), target)
    peak = ctypes.CFUNCTYPE(ctypes.c_double, ctypes.c_ssize_t)(engine.get_function_address("peak"))
    return 2 * CHAINS * target.lanes * TURNS / min(_seconds(peak) for _ in range(TRIES))


def _seconds(function) -> float:
    start = perf_counter()
    function(TURNS)
    return perf_counter() - start
