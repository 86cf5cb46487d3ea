"""Counting operations, and the rate of the processor."""

import casadi as ca

from framefree.kernel import compile
from framefree.kernel.measure import operations, peak_flops
from framefree.kernel.target import host


def test_operations_are_counted():
    x, y = ca.SX.sym("x", 4), ca.SX.sym("y", 4)
    assert operations(compile(ca.Function("f", [x, y], [x + y]))) == 4
    dot = compile(ca.Function("f", [x, y], [ca.dot(x, y)]))
    assert operations(dot) == 7  # four products, three sums, fused or not
    assert operations(compile(ca.Function("f", [x], [-x]))) == 0


def test_peak_is_plausible():
    """More than one and less than a hundred operations a nanosecond and lane."""
    assert 1e8 < peak_flops() / host().lanes < 1e11
