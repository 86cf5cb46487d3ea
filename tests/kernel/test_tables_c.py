"""Long functions in C are loops over tables: the same bits as statements, and little code."""

import casadi as ca
import numpy as np
import pytest
import test_c_source
from test_c_source import Library, arithmetic, needs_gcc

from framefree.kernel import c_source as writing
from framefree.kernel import compile
from framefree.kernel.c_source import c_source
from framefree.kernel.graph import Port
from framefree.kernel.optimise import optimise
from framefree.kernel.reading import read
from framefree.kernel.tables_c import OperationTable


@pytest.fixture
def tabled(monkeypatch):
    """Write every function as a table."""
    monkeypatch.setattr(writing, "LONG", 0)


@needs_gcc
def test_every_operation(tabled, tmp_path):
    test_c_source.test_every_operation_equals_the_native_kernel_also_for_special_values(tmp_path)


@needs_gcc
@pytest.mark.parametrize("pieces", [100, 1500])
def test_values_keep_their_places_as_long_as_they_are_needed(pieces, tabled, tmp_path):
    kernel = compile(arithmetic(pieces), cache=False)
    library = Library(kernel, tmp_path, "-fsanitize=undefined")
    assert "_table_run" in library.text.source
    rng = np.random.default_rng(4)
    for _ in range(20):
        state = rng.normal(size=5), rng.normal(size=(2, 3))
        for got, wanted in zip(library(*state), kernel(*state), strict=True):
            np.testing.assert_array_equal(got, wanted)


@needs_gcc
def test_outputs_may_replace_inputs(tabled, tmp_path):
    test_c_source.test_outputs_may_replace_inputs(100, tmp_path)


def product(n: int) -> ca.Function:
    """A product of three matrices: sums of products."""
    a, b = ca.SX.sym("a", n, n), ca.SX.sym("b", n, n)
    return ca.Function("product", [a, b], [a @ b @ a.T])


def test_a_sum_of_products_is_two_numbers_a_product_and_places_are_used_again():
    n = 20
    function = product(n)
    ports = [Port("a", (n, n)), Port("b", (n, n))], [Port("c", (n, n))]
    graph = optimise(read(function, *ports), fma=True)
    table = OperationTable(graph)
    length = sum(map(len, table.rows))
    assert length < 2.6 * len(graph.nodes)
    assert table.slots <= 4 * n * n
    text = c_source(graph, "product").source
    assert "_table_run" in text
    assert len(text) < 20 * len(graph.nodes)  # a statement has some 60 characters


def test_short_functions_stay_statements():
    assert "_table_run" not in compile(arithmetic(1500), cache=False).c_source().source
