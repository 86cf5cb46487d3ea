"""How long it takes from a machine or a program to its first result when nothing is cached."""

import os
import resource
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from time import process_time

import numpy as np

from framefree.benchmarks.loops import COUNT, first_result_seconds
from framefree.benchmarks.timing import circumstances
from framefree.control.qp import qp_kernel
from framefree.gallery.machines.arms import revolute_chain
from framefree.motion import equations

VARIABLES, ROWS = 20, 40


def run() -> dict[str, object]:
    """Return the figures of `framefree bench compile`, seconds of processor time without a cache.

    `compile.derivatives_40_seconds` and `compile.coriolis_80_seconds` are for chains of so many
    revolute joints, `compile.qp_20_40_seconds` for a quadratic program of 20 variables and 40
    rows, `compile.first_result_loops_16_seconds` for sixteen four-bars: all from the machine's
    description to the numbers of the first result.
    """
    with without_cache():
        return {
            "compile.derivatives_40_seconds": _seconds(lambda: chain_result(40, DERIVATIVES)),
            "compile.coriolis_80_seconds": _seconds(lambda: chain_result(80, "coriolis")),
            f"compile.qp_{VARIABLES}_{ROWS}_seconds": _seconds(program_result),
            f"compile.first_result_loops_{COUNT}_seconds": first_result_seconds(COUNT),
            "compile.peer": "none: seconds of processor time",
            **circumstances("casadi", "llvmlite"),
        }


DERIVATIVES = "forward_derivatives"


def chain_result(joints: int, quantity: str) -> object:
    """Return a quantity of a chain of revolute joints at one state."""
    machine = revolute_chain(joints)
    eom, rng = equations(machine, "tree"), np.random.default_rng(0)
    inputs = {"x": machine.random(rng), "v": rng.normal(size=machine.nv)}
    if quantity == DERIVATIVES:
        inputs["force"] = rng.normal(size=machine.nv)
    return eom.kernel(quantity)(**inputs)


def program_result() -> object:
    """Return the solution of one quadratic program with bounds on both sides of every row."""
    rng = np.random.default_rng(0)
    root, C = rng.normal(size=(VARIABLES, VARIABLES)), rng.normal(size=(ROWS, VARIABLES))
    none = np.zeros((0, VARIABLES)), np.zeros(0)
    bound = np.ones(ROWS)
    solve = qp_kernel(VARIABLES, 0, ROWS)
    return solve(root @ root.T, rng.normal(size=VARIABLES), *none, C, -bound, bound)


def _seconds(work: Callable[[], object]) -> float:
    start = _processor_time()
    work()
    return _processor_time() - start


def _processor_time() -> float:
    """Return seconds of this process and of those that it started and that have ended."""
    children = resource.getrusage(resource.RUSAGE_CHILDREN)
    return process_time() + children.ru_utime + children.ru_stime


@contextmanager
def without_cache() -> Iterator[None]:
    """Let nothing be found on disk meanwhile, nor put there."""
    before = os.environ.get("FRAMEFREE_CACHE")
    os.environ["FRAMEFREE_CACHE"] = "off"
    try:
        yield
    finally:
        if before is None:
            del os.environ["FRAMEFREE_CACHE"]
        else:
            os.environ["FRAMEFREE_CACHE"] = before
