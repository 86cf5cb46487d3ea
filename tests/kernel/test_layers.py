"""Functions of matrices stay calls that native code makes as loops: they give what scalar
operations give, bit for bit whatever runs beside them, in derivatives, C and JAX too."""

import itertools
import pickle
import subprocess

import casadi as ca
import numpy as np
import pytest

from framefree.kernel import CompileError, compile
from framefree.kernel.graph import CallElement, Port
from framefree.kernel.layers import layers
from framefree.kernel.matrices import MatrixProgram, read_matrices
from framefree.kernel.reading import read

RNG = np.random.default_rng(5)


def random_weights(*sizes):
    return [
        (RNG.normal(size=(rows, columns)) / np.sqrt(columns), RNG.normal(size=rows) / 3)
        for columns, rows in itertools.pairwise(sizes)
    ]


def numpy_layers(x, weights):
    for W, b in weights[:-1]:
        x = np.tanh(x @ W.T + b)
    W, b = weights[-1]
    return x @ W.T + b


def five_bodies(weights):
    """A law of five bodies that share a network, with scalar work before, between and after."""
    x = ca.SX.sym("x", 10)
    total, outputs = ca.SX(0), []
    for k in range(5):
        speed = ca.sqrt(1 + ca.sumsqr(x[2 * k : 2 * k + 2]))
        features = ca.vertcat(x[2 * k] / speed, ca.sin(x[2 * k + 1] + total), speed, 0.5)
        y = layers(features, weights)
        total = total + y[0] * y[1]
        outputs.append(y * speed)
    return ca.Function("five", [x], [ca.vertcat(*outputs), total], ["x"], ["y", "total"])


def numpy_five(x, weights):
    total, outputs = np.zeros(len(x)), []
    for k in range(5):
        speed = np.sqrt(1 + x[:, 2 * k] ** 2 + x[:, 2 * k + 1] ** 2)
        angle = np.sin(x[:, 2 * k + 1] + total)
        features = np.stack([x[:, 2 * k] / speed, angle, speed, 0.5 + 0 * speed], axis=1)
        y = numpy_layers(features, weights)
        total = total + y[:, 0] * y[:, 1]
        outputs.append(y * speed[:, None])
    return np.concatenate(outputs, axis=1), total


def calls_in(function):
    inputs = [Port(n, (function.numel_in(k),)) for k, n in enumerate(function.name_in())]
    outputs = [Port(n, (function.numel_out(k),)) for k, n in enumerate(function.name_out())]
    nodes = read(function, inputs, outputs, calls=True).nodes
    return [node[0] for node in nodes if isinstance(node[0], MatrixProgram)]


@pytest.mark.parametrize(
    "sizes", [(1, 1), (3, 8, 1), (5, 7, 6), (8, 32, 32, 6), (2, 17, 3, 20, 9), (40, 5), (1, 16, 16)]
)
def test_layers_of_any_size(sizes):
    weights, x = random_weights(*sizes), RNG.normal(size=(29, sizes[0]))
    z = ca.SX.sym("z", sizes[0])
    function = ca.Function("net", [z], [layers(z, weights)])
    assert len(calls_in(function)) == 1
    np.testing.assert_allclose(
        compile(function, cache=False)(x), numpy_layers(x, weights), rtol=1e-13, atol=1e-14
    )


@pytest.mark.parametrize("lanes", [None, 1, 2, 4, 8])
def test_same_bits_whatever_runs_beside(lanes, same_bits):
    weights = random_weights(4, 32, 13, 3)
    one = compile(five_bodies(weights), lanes=1, cache=False)
    kernel = compile(five_bodies(weights), lanes=lanes, cache=False)
    for batch in [*range(1, 20), 67, 300]:
        x = RNG.normal(size=(batch, 10)) * 10.0 ** RNG.uniform(-2, 2, size=(batch, 1))
        x[RNG.random(size=x.shape) < 0.01] = np.nan
        expected = [np.array(column) for column in zip(*map(one, x), strict=True)]
        for got, right in zip(kernel(x), expected, strict=True):
            assert same_bits(got, right)
        threaded = kernel(x, threads=2)
        assert all(same_bits(a, b) for a, b in zip(threaded, kernel(x), strict=True))


def test_equal_layers_share_one_program():
    weights = random_weights(4, 9, 3)
    calls = calls_in(five_bodies(weights))
    assert len(calls) == 5
    assert len(set(calls)) == 1
    x = RNG.normal(size=(33, 10))
    for got, right in zip(
        compile(five_bodies(weights), cache=False)(x), numpy_five(x, weights), strict=True
    ):
        np.testing.assert_allclose(got.reshape(right.shape), right, rtol=1e-12, atol=1e-12)


def test_derivatives_through_calls_against_differences():
    weights = random_weights(4, 12, 10, 3)
    function = five_bodies(weights)
    x = ca.SX.sym("x", 10)
    y, _ = function(x)
    slopes = ca.Function("slopes", [x], [ca.jacobian(y, x)])
    seed = ca.SX.sym("seed", 15)
    back = ca.Function("back", [x, seed], [ca.jtimes(y, x, seed, True)])
    assert calls_in(slopes)
    assert calls_in(back)
    value = RNG.normal(size=10)
    J = compile(slopes, cache=False)(value)
    differences = np.empty((15, 10))
    for k in range(10):
        step = 1e-30 * np.eye(10)[k]  # of the complex plane: exact
        differences[:, k] = numpy_five_complex(value + 1j * step, weights).imag / 1e-30
    np.testing.assert_allclose(J, differences, rtol=1e-11, atol=1e-12)
    bar = RNG.normal(size=15)
    np.testing.assert_allclose(
        compile(back, cache=False)(value, bar), bar @ differences, rtol=1e-11, atol=1e-12
    )


def numpy_five_complex(x, weights):
    total, outputs = 0.0, []
    for k in range(5):
        speed = np.sqrt(1 + x[2 * k] ** 2 + x[2 * k + 1] ** 2)
        features = np.array([x[2 * k] / speed, np.sin(x[2 * k + 1] + total), speed, 0.5])
        y = numpy_layers(features, weights)
        total = total + y[0] * y[1]
        outputs.append(y * speed)
    return np.concatenate(outputs)


def test_weights_as_inputs_need_no_compilation():
    sizes = (4, 11, 16, 3)
    z, flat = (
        ca.SX.sym("z", 4),
        ca.SX.sym("w", sum(b * a + b for a, b in itertools.pairwise(sizes))),
    )
    pairs, first = [], 0
    for columns, rows in itertools.pairwise(sizes):
        W = ca.reshape(flat[first : first + rows * columns], rows, columns)
        first += rows * columns
        pairs.append((W, flat[first : first + rows]))
        first += rows
    function = ca.Function("net", [z, flat], [layers(z, pairs)])
    assert len(calls_in(function)) == 1
    kernel = compile(function, cache=False)
    for _ in range(3):
        weights = random_weights(*sizes)
        numbers = np.concatenate([np.r_[W.ravel(order="F"), b] for W, b in weights])
        x = RNG.normal(size=(21, 4))
        right = numpy_layers(x, weights)
        np.testing.assert_allclose(kernel(x, numbers), right, rtol=1e-13, atol=1e-14)
        single = np.array([kernel(row, numbers) for row in x])
        np.testing.assert_array_equal(single, kernel(x, numbers))


def test_other_activations():
    def sigmoid(a):
        return 1 / (1 + ca.exp(-a))

    for f, reference in [
        (sigmoid, lambda a: 1 / (1 + np.exp(-a))),
        (ca.sin, np.sin),
        (lambda a: ca.fmax(a, 0), lambda a: np.maximum(a, 0)),
        (lambda a: a * a + 2 * a, lambda a: a * a + 2 * a),
        (ca.atan, np.arctan),
        (ca.erf, None),
    ]:
        weights, z = random_weights(3, 9, 2), ca.SX.sym("z", 3)
        function = ca.Function("net", [z], [layers(z, weights, f)])
        assert calls_in(function)
        x = RNG.normal(size=(9, 3))
        if reference is None:
            right = np.array([function(row).full().ravel() for row in x])
        else:
            hidden = reference(x @ weights[0][0].T + weights[0][1])
            right = hidden @ weights[1][0].T + weights[1][1]
        np.testing.assert_allclose(compile(function, cache=False)(x), right, rtol=1e-12)


def test_what_is_no_loop_is_expanded():
    """Products of matrices, slices and comparisons inside a marked function still compile."""
    a = ca.MX.sym("a", 4)
    square = ca.reshape(a, 2, 2)
    for expression, right in [
        (square @ square, lambda v: v.reshape(2, 2).T @ v.reshape(2, 2).T),
        (ca.vertcat(a[1:3], a[0]), lambda v: v[[1, 2, 0]]),
        (ca.if_else(a[0] > 0, a, -a), lambda v: v if v[0] > 0 else -v),
    ]:
        marked = ca.Function("marked", [a], [expression], {"never_inline": True})
        assert read_matrices(marked) is None
        x = ca.SX.sym("x", 4)
        function = ca.Function("outer", [x], [2 * marked(ca.sin(x))])
        assert function.find_functions()
        value = RNG.normal(size=4)
        np.testing.assert_allclose(
            compile(function, cache=False)(value).reshape(expression.shape),
            2 * right(np.sin(value)).reshape(expression.shape),
            rtol=1e-14,
        )


def test_the_function_itself_keeps_its_mark():
    weights, z = random_weights(3, 5, 2), ca.SX.sym("z", 3)
    kernel = compile(ca.Function("net", [z], [layers(z, weights)]), cache=False)
    kernel.c_source()
    assert calls_in(ca.Function("net", [z], [layers(z, weights)]))


def test_scalar_operations_have_no_calls():
    weights = random_weights(4, 6, 3)
    kernel = compile(five_bodies(weights), cache=False)
    operations = {node[0] for node in kernel.graph.nodes}
    assert not any(isinstance(one, MatrixProgram | CallElement) for one in operations)


def test_jax_agrees():
    pytest.importorskip("jax")
    import jax

    weights = random_weights(4, 32, 32, 3)
    kernel = compile(five_bodies(weights), cache=False)
    x = RNG.normal(size=(7, 10))
    with jax.enable_x64(True):
        results = jax.vmap(kernel.jax())(x)
    for got, right in zip(results, kernel(x), strict=True):
        np.testing.assert_allclose(np.asarray(got), right, rtol=1e-12, atol=1e-12)


def test_c_agrees(tmp_path):
    import ctypes
    import shutil

    compiler = shutil.which("gcc") or shutil.which("clang")
    if compiler is None:
        pytest.skip("no C compiler")
    weights = random_weights(4, 10, 3)
    kernel = compile(five_bodies(weights), cache=False)
    source, _ = kernel.c_source().write(tmp_path)
    library = tmp_path / "five.so"
    subprocess.run(
        [compiler, "-std=c99", "-O1", "-shared", "-fPIC", source, "-o", library, "-lm"], check=True
    )
    x, y, total = RNG.normal(size=10), np.empty(15), np.empty(1)
    pointers = [one.ctypes.data_as(ctypes.c_void_p) for one in (x, y, total)]
    ctypes.CDLL(str(library)).five(*pointers)
    right = kernel(x)
    np.testing.assert_allclose(y, right[0], rtol=1e-12, atol=1e-13)
    np.testing.assert_allclose(total, right[1], rtol=1e-12, atol=1e-13)


def test_rollout_and_pickle(same_bits):
    weights = random_weights(4, 8, 4)
    x = ca.SX.sym("x", 4)
    step = ca.Function("step", [x], [x + 0.1 * layers(ca.tanh(x), weights)], ["x"], ["x_next"])
    kernel = compile(step, cache=False)
    start = RNG.normal(size=(11, 4))
    run = kernel.rollout(start, steps=20)
    state = start
    for _ in range(20):
        state = kernel(state)
    assert same_bits(run.states["x"][:, -1], state)
    again = pickle.loads(pickle.dumps(kernel))
    assert same_bits(again(start), kernel(start))


@pytest.mark.parametrize(
    ("weights", "message"),
    [
        ([], "at least one layer"),
        ([(np.ones((2, 4)), np.ones(2))], "layer 0 gets 3 numbers, but its W is 2 x 4"),
        ([(np.ones((2, 3)), np.ones(3))], "its b has 3"),
        ([(np.ones((2, 3)), np.full(2, np.nan))], "`b` of layer 0 must be 1-dimensional and fini"),
        ([(np.ones(3), np.ones(1))], "`W` of layer 0 must be 2-dimensional"),
    ],
)
def test_layers_that_do_not_fit(weights, message):
    with pytest.raises(CompileError, match=message):
        layers(ca.SX.sym("x", 3), weights)
