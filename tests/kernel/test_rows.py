"""Rows of any length come into the lanes and back, each number to its place."""

import casadi as ca
import numpy as np
import pytest

from framefree.kernel import compile

LENGTHS = (1, 2, 3, 5, 6, 7, 8, 9, 11, 13, 16, 17, 23, 41)


@pytest.mark.parametrize(
    ("precision", "lanes"),
    [("double", 1), ("double", 2), ("double", 4), ("double", 8), ("single", 2), ("single", 16)],
)
def test_rows_of_all_lengths(precision, lanes):
    for n in LENGTHS:
        x, y = ca.SX.sym("x", n), ca.SX.sym("y", n)
        function = ca.Function("f", [x, y], [x + 2 * y])
        kernel = compile(function, precision=precision, lanes=lanes, cache=False)
        rows = np.arange(37.0 * n).reshape(37, n)  # whole numbers: exact in both precisions
        for count in (1, 2, 16, 37):
            result = kernel(rows[:count], rows[:count] + 1)
            np.testing.assert_array_equal(result, 3 * rows[:count] + 2, err_msg=f"length {n}")
