"""Large results whose elements repeat, are constant, or are handed on from inputs and calls."""

import casadi as ca
import numpy as np
import pytest

import framefree as ff
from framefree.kernel import compile
from framefree.kernel.emission import LARGE
from framefree.kernel.kernel import function_graph
from framefree.kernel.optimise import optimise
from framefree.kernel.program import lay_out


def repeated(seed):
    """A function of two outputs that share values; both are large, and a third is small."""
    rng = np.random.default_rng(seed)
    a, b = ca.SX.sym("a", 9), ca.SX.sym("b", 4)
    # Far more than one stage, so that values are handed from one to another.
    chain = [ca.sin(a[0]) + b[1]]
    for k in range(int(rng.choice([3, 900]))):
        chain.append(chain[-1] * a[k % 9] + ca.cos(b[k % 4]) * 0.1 / (1 + chain[k // 2] ** 2))
    constants = [0.0, -0.0, 1.5, np.inf, np.nan]
    known = [*chain[-3:], *chain[:2], *ca.vertsplit(a), *ca.vertsplit(b), *constants]
    m = [known[k] for k in rng.integers(len(known), size=(LARGE + int(rng.integers(9))))]
    n = [known[k] for k in rng.integers(len(known), size=3 * LARGE)]
    n[::3] = [0.0] * LARGE
    sparse = ca.reshape(ca.sparsify(ca.vertcat(*n)), 3, LARGE)
    outputs = [ca.vertcat(*m), sparse, ca.vertcat(chain[-1], a[0])]
    return ca.Function("f", [a, b], outputs, ["a", "b"], ["m", "n", "few"])


@pytest.mark.first_cases(8)
@pytest.mark.parametrize("lanes", [1, 2, 4, 8])
@pytest.mark.parametrize("seed", range(4))
def test_every_element_is_where_it_belongs(seed, lanes):
    f = repeated(seed)
    kernel = ff.compile(f, cache=False, lanes=lanes)
    rng = np.random.default_rng(seed)
    for batch in (1, 7, 8, 13, 150):
        a, b = 0.3 * rng.normal(size=(batch, 9)), rng.normal(size=(batch, 4))
        results = kernel(a, b)
        for k in range(batch):
            for result, expected in zip(results, f(a[k], b[k]), strict=True):
                expected = np.array(expected).reshape(result.shape[1:])
                np.testing.assert_allclose(result[k], expected, rtol=1e-11, atol=1e-300)
                same = [np.signbit(x) for x in (result[k], expected)]
                np.testing.assert_array_equal(*same)
            for result, alone in zip(results, kernel(a[k], b[k]), strict=True):
                np.testing.assert_array_equal(result[k], alone)


def test_single_precision():
    f = repeated(0)
    double, single = (
        ff.compile(f, cache=False, precision=precision) for precision in ("double", "single")
    )
    rng = np.random.default_rng(5)
    a, b = 0.3 * rng.normal(size=(37, 9)), rng.normal(size=(37, 4))
    for one, other in zip(double(a, b), single(a, b), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-4, atol=1e-5)


def test_results_leave_one_after_another():
    """The second matrix takes the slots of the first, also where both share elements."""
    x = ca.SX.sym("x", 40)
    first = ca.sin(x @ x.T) * ca.cos(x)
    second = ca.exp(-(x @ x.T)) + ca.tanh(x - 1) * first[0, 0]
    second[3, :] = first[5, :]
    function = ca.Function("two", [x], [first, second, ca.sin(x[0])], ["x"], ["a", "b", "c"])
    graph = optimise(function_graph(function), fma=True)
    program = lay_out(graph, 64)
    assert program.finished[0] < program.finished[1]
    assert program.slots < lay_out(graph).slots
    assert set(program.tables[0]) & set(program.tables[1])
    kernel, rows = compile(function, cache=False), np.random.default_rng(0).normal(size=(21, 40))
    for a, b in zip(kernel(rows), zip(*(function(row) for row in rows), strict=True), strict=True):
        expected = np.array([np.asarray(one.full()) for one in b]).reshape(a.shape)
        np.testing.assert_allclose(a, expected, rtol=1e-12, atol=1e-14)
