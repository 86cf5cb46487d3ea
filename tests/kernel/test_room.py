"""Memory of large results is used again only once nobody holds it."""

import casadi as ca
import numpy as np

from framefree.kernel import compile
from framefree.kernel.call import address
from framefree.kernel.room import LARGE, empty

ROWS = LARGE // 8 // 100 + 1


def kernel_of_rows():
    x = ca.SX.sym("x", 1)
    return compile(ca.Function("rows", [x], [x * ca.DM(range(100))], ["x"], ["y"]))


def test_results_that_are_held_keep_their_values():
    kernel = kernel_of_rows()
    first = kernel(np.full((ROWS, 1), 1.0))
    part = kernel(np.full((ROWS, 1), 2.0))[-1:]  # a view alone holds all of it
    third = kernel(np.full((ROWS, 1), 3.0))
    for factor, result in ((1, first), (2, part), (3, third)):
        assert np.array_equal(result, np.tile(factor * np.arange(100.0), (len(result), 1)))


def test_memory_that_nobody_holds_is_used_again():
    kernel, x = kernel_of_rows(), np.ones((ROWS, 1))
    before = address(kernel(x))
    assert address(kernel(x)) == before


def test_pieces_fit_and_small_ones_are_new():
    large = empty((LARGE // 8,))
    assert not np.may_share_memory(large, empty((LARGE // 8,)))
    assert empty((3, 2)).base is None
    assert empty((LARGE // 16, 3)).shape == (LARGE // 16, 3)


def test_large_results_begin_with_a_line_of_the_cache():
    for size in (LARGE // 8, LARGE // 8 + 3, LARGE // 4):
        assert address(empty((size,))) % 64 == 0
