"""The expression graph: reading it, its rewrites, and random expressions against CasADi itself."""

import math
from collections import Counter

import casadi as ca
import numpy as np
import pytest
from graph_values import evaluate
from hypothesis import given, settings
from hypothesis import strategies as st

from framefree.kernel import compile
from framefree.kernel import program as program_module
from framefree.kernel.graph import Builder, Graph, Port, operands
from framefree.kernel.optimise import fuse, optimise, pair_sin_cos, share_reciprocals
from framefree.kernel.program import lay_out
from framefree.kernel.reading import read
from framefree.kernel.target import host


def graph_of(function: ca.Function) -> Graph:
    def shape(size):
        return (size[0],) if size[1] == 1 else size

    inputs = [Port(n, shape(function.size_in(k))) for k, n in enumerate(function.name_in())]
    outputs = [Port(n, shape(function.size_out(k))) for k, n in enumerate(function.name_out())]
    return read(function, inputs, outputs)


def kinds(graph: Graph) -> Counter:
    return Counter(node[0] for node in graph.nodes if node[0] not in ("const", "input"))


def scalar(expression, *symbols) -> Graph:
    return graph_of(ca.Function("f", list(symbols), [expression]))


A, B, C, D = (ca.SX.sym(name) for name in "abcd")


def test_equal_expressions_are_one_node():
    graph = scalar(ca.sin(A + B) * ca.sin(B + A) + ca.sqrt(A + B), A, B)
    assert kinds(graph) == {"add": 2, "sin": 1, "mul": 1, "sqrt": 1}


def test_unused_nodes_vanish():
    x = ca.SX.sym("x", 3)
    f = ca.Function("f", [x], [x[0] * x[1], ca.sin(x[2])])
    g = ca.Function("g", [x], [f(x)[0]])
    assert kinds(graph_of(g)) == {"mul": 1}


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        (A - (-B), {"add": 1}),
        (A + (-B) * C, {"mul": 1, "sub": 1}),
        ((-A) * (-B), {"mul": 1}),
        ((-A) / B, {"div": 1, "neg": 1}),
        (A / (-1.0), {"neg": 1}),
        (ca.if_else(A < B, C, D), {"lt": 1, "select": 1}),
        (ca.if_else(ca.logic_not(A), C, D), {"not": 1, "select": 1}),
        (A**0.5, {"sqrt": 1}),
        (A**1.5, {"sqrt": 1, "mul": 1}),
        (A**-0.5, {"sqrt": 1, "div": 1}),
    ],
)
def test_rewrites(expression, expected):
    assert kinds(scalar(expression, A, B, C, D)) == expected


def test_signed_zeros_and_nan_are_constants_of_their_own():
    builder = Builder()
    numbers = [builder.add("const", value) for value in (0.0, -0.0, math.nan, math.nan, 0.0)]
    assert numbers[0] == numbers[4]
    assert numbers[2] == numbers[3]
    assert len(set(numbers)) == 3


def test_shared_divisors_are_inverted_once():
    graph = scalar(ca.vertcat(A / D, B / D, C / D, A / B), A, B, C, D)
    shared = share_reciprocals(graph)
    assert kinds(shared) == {"div": 2, "mul": 3}
    np.testing.assert_allclose(
        evaluate(shared, 1.0, 2.0, 3.0, 7.0)[0], [1 / 7, 2 / 7, 3 / 7, 1 / 2], rtol=1e-15
    )


def test_single_use_products_fuse():
    graph = scalar(ca.vertcat(A * B + C, C - A * D, B * D - A, (A * C) * (A * C + D)), A, B, C, D)
    fused = fuse(graph)
    assert kinds(fused) == {"fma": 1, "fnma": 1, "fms": 1, "mul": 2, "add": 1}
    np.testing.assert_array_equal(
        evaluate(fused, 2.0, 3.0, 5.0, 7.0)[0], evaluate(graph, 2.0, 3.0, 5.0, 7.0)[0]
    )


def test_a_product_that_is_a_result_is_not_fused():
    fused = fuse(scalar(ca.vertcat(A * B, A * B + C), A, B, C))
    assert kinds(fused) == {"mul": 1, "add": 1}


def test_sine_and_cosine_of_one_argument_are_neighbours():
    x = ca.SX.sym("x", 3)
    f = ca.sum1(ca.sin(x)) * ca.exp(x[0]) + ca.sum1(ca.cos(x))
    paired = pair_sin_cos(graph_of(ca.Function("f", [x], [f])))
    for number, node in enumerate(paired.nodes):
        if node[0] == "sin":
            near = paired.nodes[number - 1 : number + 2]
            assert ("cos", node[1]) in near
        assert all(operand < number for operand in operands(node))


def test_fused_products_round_once():
    """a*b - c with c the rounded product leaves exactly what the rounding lost."""
    a, b = np.random.default_rng(0).normal(size=(2, 100, 1))
    for expression, c in ((A * B - C, a * b), (C - A * B, a * b), (A * B + C, -(a * b))):
        lost = compile(ca.Function("f", [A, B, C], [expression]))(a, b, c)
        assert bool(np.any(lost != 0)) == host().fma


@st.composite
def functions(draw):
    """Random functions of two vectors, deep and with shared parts."""
    count = draw(st.integers(1, 4))
    x, y = ca.SX.sym("x", count), ca.SX.sym("y", 2, 2)
    pool = [*ca.vertsplit(x), *ca.vertsplit(ca.vec(y)), ca.SX(draw(st.floats(-3, 3)))]
    for _ in range(draw(st.integers(1, 60))):
        a, b, c = (pool[draw(st.integers(0, len(pool) - 1))] for _ in range(3))
        make = draw(st.sampled_from(range(11)))
        pool.append(
            [
                lambda a, b, c: a + b,
                lambda a, b, c: a - b * c,
                lambda a, b, c: a * b,
                lambda a, b, c: -a,
                lambda a, b, c: a / (2 + b * b),
                lambda a, b, c: ca.sin(a) * ca.cos(b),
                lambda a, b, c: ca.if_else(a < b, b, c),
                lambda a, b, c: ca.sqrt(1 + a * a),
                lambda a, b, c: ca.fmin(a, ca.fmax(b, c)),
                lambda a, b, c: ca.fabs(a) * b + c,
                lambda a, b, c: ca.exp(-a * a) - b,
            ][make](a, b, c)
        )
        pool[-1] = ca.fmin(ca.fmax(pool[-1], -10), 10)  # so that errors do not grow
    outputs = [ca.vertcat(*pool[-5:]), ca.reshape(ca.vertcat(*pool[-4:]), 2, 2)]
    return ca.Function("f", [x, y], outputs)


@settings(max_examples=25, deadline=None)
@given(function=functions(), seed=st.integers(0, 2**32), piece=st.sampled_from([10, 40, 10000]))
def test_random_functions_agree_with_casadi(function, seed, piece):
    rng = np.random.default_rng(seed)
    x, y = rng.normal(size=(7, function.size_in(0)[0])), rng.normal(size=(7, 2, 2))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(program_module, "WHOLE", piece)
        patch.setattr(program_module, "PIECE", piece)
        got = compile(function, cache=False)(x, y)
    graph = graph_of(function)
    optimised = optimise(graph, fma=True)
    for i in range(7):
        expected = [np.array(one) for one in function(x[i], y[i])]
        plain, best = evaluate(graph, x[i], y[i]), evaluate(optimised, x[i], y[i])
        for one, right, mine, better in zip(got, expected, plain, best, strict=True):
            right = right.reshape(one[i].shape)
            np.testing.assert_allclose(mine, right, rtol=1e-9, atol=1e-9)
            np.testing.assert_allclose(better, right, rtol=1e-9, atol=1e-9)
            np.testing.assert_allclose(one[i], right, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("piece", [5, 30, 100, 10**6])
def test_stages_cover_all_nodes_and_share_no_slot(piece, monkeypatch):
    """Every value that a stage loads was stored before, and nothing overwrote it since."""
    monkeypatch.setattr(program_module, "WHOLE", piece)
    monkeypatch.setattr(program_module, "PIECE", piece)
    x = ca.SX.sym("x", 6)
    y = x
    for k in range(8):
        y = ca.vertcat(*[y[i] * ca.sin(y[(i + k) % 6]) + x[i] for i in range(6)])
    program = lay_out(optimise(graph_of(ca.Function("f", [x], [y])), fma=True))
    assert [stage.start for stage in program.stages[1:]] == [s.stop for s in program.stages[:-1]]
    assert (program.stages[0].start, program.stages[-1].stop) == (0, len(program.graph.nodes))
    held = {
        slot: number
        for number, node in enumerate(program.graph.nodes)
        if node[0] == "input"
        for slot in [program.input_slots[node[1]] + node[2]]
    }
    for stage in program.stages:
        for number, slot in stage.loads.items():
            assert held[slot] == number
        for number, slots in stage.stores.items():
            assert stage.start <= number < stage.stop
            held.update(dict.fromkeys(slots, number))
    assert max(held) < program.slots
