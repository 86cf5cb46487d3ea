"""The JAX function: the numbers of the native kernel, the derivatives of CasADi."""

import itertools
import math
import subprocess
import sys

import casadi as ca
import numpy as np
import pytest

jax = pytest.importorskip("jax")

import jax.numpy as jnp  # noqa: E402
from jax import export  # noqa: E402

from framefree.gallery.machines.arms import iiwa  # noqa: E402
from framefree.kernel import compile, jax_target  # noqa: E402
from framefree.kernel.derivative import guards  # noqa: E402
from framefree.kernel.jax_target import jax_function  # noqa: E402
from framefree.motion.tree import Tree  # noqa: E402

NAN, INF = np.nan, np.inf
SPECIAL = [0.0, -0.0, 1.0, -1.0, 0.5, -0.5, 0.3, -2.7, 3.0, 17.25, 1e-9, -1e9, INF, -INF, NAN]
EVERYWHERE = ("exp", "sin", "cos", "atan", "sinh", "cosh", "tanh", "asinh", "erf", "expm1", "tan")
INSIDE = ("asin", "acos", "atanh", "log1p")  # smooth within (-1, 1)
POSITIVE = ("sqrt", "log")
STEPPED = ("floor", "ceil", "sign", "fabs", "logic_not")
BINARY = {
    "add": lambda a, b: a + b,
    "sub": lambda a, b: a - b,
    "mul": lambda a, b: a * b,
    "div": lambda a, b: a / b,
    "neg": lambda a, b: -(a + b) * b,
    "fms": lambda a, b: (a + 2) * b - ca.sin(a),
    "fnma": lambda a, b: ca.sin(a) - (a + 3) * b,
    "lt": lambda a, b: a < b,
    "le": lambda a, b: a <= b,
    "eq": lambda a, b: a == b,
    "ne": lambda a, b: a != b,
    "select": lambda a, b: ca.if_else(a < b, ca.sqrt(a), ca.log(b)),
    "select_number": lambda a, b: ca.if_else(a, 1 / a, b),
    "truths": lambda a, b: (a < b) / (b < a) - (a == 1),
    "constants": lambda a, b: ca.vertcat(a * -2.5 + 1e-300, INF * b, b - 1e22, -0.0, NAN, 0),
    **{
        name: getattr(ca, name)
        for name in (
            *("fmin", "fmax", "atan2", "hypot", "copysign", "fmod", "remainder", "power"),
            *("logic_and", "logic_or"),
        )
    },
}


@pytest.fixture(autouse=True)
def _doubles():
    before = jax.config.jax_enable_x64
    jax.config.update("jax_enable_x64", True)
    yield
    jax.config.update("jax_enable_x64", before)


def from_casadi(function: ca.Function):
    kernel = compile(function, cache=False)
    return jax_function(kernel.graph, kernel.name), kernel


def test_every_operation_equals_the_native_kernel_also_for_special_values():
    a, b = ca.SX.sym("a"), ca.SX.sym("b")
    unary = (*EVERYWHERE, *INSIDE, *POSITIVE, *STEPPED, "acosh", "erfinv")
    results = {name: function(a, b) for name, function in BINARY.items()}
    results |= {name: getattr(ca, name)(a) for name in unary}
    names = [f"r_{name}" for name in results]
    function, kernel = from_casadi(
        ca.Function("operations", [a, b], list(results.values()), ["a", "b"], names)
    )
    rng = np.random.default_rng(1)
    pairs = np.array([*itertools.product(SPECIAL, SPECIAL), *rng.normal(scale=2, size=(200, 2))])
    wanted = kernel(pairs[:, :1], pairs[:, 1:])
    for name, got, one in zip(names, jax.vmap(function)(*pairs.T), wanted, strict=True):
        np.testing.assert_allclose(got, one, rtol=2e-14, atol=1e-300, err_msg=name)


def test_remainder_is_exact():
    a, b = ca.SX.sym("a"), ca.SX.sym("b")
    function, _ = from_casadi(ca.Function("remainder", [a, b], [ca.remainder(a, b)]))
    rng = np.random.default_rng(2)
    x, y = rng.normal(size=3000) * 10.0 ** rng.integers(-3, 300, 3000), rng.normal(size=3000)
    x[:100], y[:100] = rng.integers(-20, 20, 100), rng.integers(1, 9, 100) / 2  # ties
    y[100:200] *= 1e307
    wanted = [math.remainder(p, q) for p, q in zip(x, y, strict=True)]
    np.testing.assert_array_equal(jax.vmap(function)(x, y)[:, 0], wanted)


@pytest.fixture(scope="module")
def arm():
    function = Tree(iiwa()).functions["forward"]
    return function, *from_casadi(function)


def states(function: ca.Function, *batch: int, seed: int = 3) -> list[np.ndarray]:
    rng = np.random.default_rng(seed)
    return [rng.normal(size=(*batch, function.size1_in(k))) for k in range(function.n_in())]


def test_dynamics_compiled_and_mapped(arm):
    function, forward, kernel = arm
    batch = states(function, 50)
    wanted = kernel(*batch)
    np.testing.assert_allclose(jax.jit(jax.vmap(forward))(*batch), wanted, rtol=1e-9)
    one = [array[0] for array in batch]
    np.testing.assert_allclose(forward(*one), wanted[0], rtol=1e-9)
    named = dict(zip(("force", "v", "x"), one[::-1], strict=True))
    np.testing.assert_allclose(forward(**named), wanted[0], rtol=1e-9)
    x, v, force = batch
    np.testing.assert_allclose(
        jax.vmap(forward, in_axes=(None, 1, 0), out_axes=1)(x[0], v.T, force).T,
        kernel(x[0], v, force),
        rtol=1e-9,
    )
    twice = jax.vmap(jax.vmap(forward, in_axes=(0, None, None)), in_axes=(None, 0, 0))
    got = twice(x[:4], v[:3], force[:3])
    for i, j in itertools.product(range(3), range(4)):
        np.testing.assert_allclose(got[i, j], kernel(x[j], v[i], force[i]), rtol=1e-9)


def test_jacobians_of_dynamics_are_those_of_casadi(arm):
    function, forward, _ = arm
    state = states(function)
    wanted = [np.array(one) for one in function.jacobian()(*state, np.zeros(7))]
    for mode in (jax.jacfwd, jax.jacrev):
        for got, one in zip(mode(forward, argnums=(0, 1, 2))(*state), wanted, strict=True):
            np.testing.assert_allclose(got, one, rtol=1e-9, atol=1e-9 * np.abs(one).max())


def test_gradients_under_every_order_of_transformations(arm):
    function, forward, kernel = arm
    x, v, force = states(function, 5)

    def loss(x, v, force):
        return jnp.sum(forward(x, v, force) ** 2)

    each = jax.jit(jax.vmap(jax.grad(loss)))(x, v, force)
    whole = jax.grad(lambda *state: jnp.sum(jax.vmap(loss)(*state)))(x, v, force)
    np.testing.assert_allclose(whole, each, rtol=1e-12)
    for row in range(5):
        state = x[row], v[row], force[row]
        jacobian = np.array(function.jacobian()(*state, np.zeros(7))[0])
        np.testing.assert_allclose(each[row], 2 * kernel(*state) @ jacobian, rtol=1e-9, atol=1e-6)


def smooth() -> ca.Function:
    """Every differentiable operation, at arguments where it is smooth."""
    x = ca.SX.sym("x", 4)
    inside = 0.9 * ca.tanh(ca.vertcat(x[1:], x[0] * x[1]))
    positive = 0.3 + ca.vertcat(x[1], x[2] + x[3]) ** 2
    terms = [getattr(ca, name)(x[k % 4] * x[(k + 1) % 4]) for k, name in enumerate(EVERYWHERE)]
    terms += [getattr(ca, name)(inside[k]) for k, name in enumerate(INSIDE)]
    terms += [getattr(ca, name)(positive[k]) for k, name in enumerate(POSITIVE)]
    terms += [ca.acosh(1 + positive[0]), positive[0] ** inside[2], positive[1] ** 2.7]
    terms += [ca.atan2(x[0], x[1]), ca.hypot(x[2], x[3]), x[0] / positive[0] - x[1] * x[2]]
    terms += [ca.fmod(5 * x[0], positive[1]), x[3] ** 3, ca.fabs(x[2]) * x[1]]
    terms += [ca.fmin(x[0] * x[1], x[2]), ca.fmax(x[1] ** 2, x[3]), ca.floor(3 * x[0]) * x[1]]
    terms += [ca.if_else(x[0] < x[1], x[2] * x[0], ca.sin(x[3])), ca.sign(x[0]) * x[3] ** 2]
    return ca.Function("smooth", [x], [ca.vertcat(*terms)], ["x"], ["y"])


@pytest.fixture(scope="module")
def smooth_and_points():
    function = smooth()
    return function, from_casadi(function)[0], np.random.default_rng(4).normal(size=(20, 4))


@pytest.mark.parametrize("mode", [jax.jacfwd, jax.jacrev])
@pytest.mark.first_cases(1)
def test_derivative_of_every_operation(smooth_and_points, mode):
    function, got, points = smooth_and_points
    jacobian = function.jacobian()
    wanted = [np.array(jacobian(x, function(x))) for x in points]
    np.testing.assert_allclose(jax.vmap(mode(got))(points), wanted, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize(
    ("outer", "inner"),
    [(jax.jacfwd, jax.jacrev), (jax.jacrev, jax.jacfwd), (jax.jacrev, jax.jacrev)],
)
@pytest.mark.first_cases(1)
def test_second_derivative_of_every_operation(smooth_and_points, outer, inner):
    function, got, points = smooth_and_points
    s = ca.SX.sym("s", 4)
    second = ca.jacobian(ca.vec(ca.jacobian(function(s), s)), s)
    second = ca.Function("second", [s], [second])
    wanted = [np.array(second(x)).reshape(4, -1, 4).swapaxes(0, 1) for x in points]
    got = jax.vmap(outer(inner(got)))(points)
    np.testing.assert_allclose(got, wanted, rtol=1e-9, atol=1e-9)


@pytest.mark.slow
def test_third_derivative():
    x = ca.SX.sym("x")
    y = ca.sin(x) * ca.exp(x) / (1 + x**2)
    got, _ = from_casadi(ca.Function("f", [x], [y]))
    for _ in range(3):
        y = ca.gradient(y, x)
    wanted = ca.Function("third", [x], [y])
    points = np.random.default_rng(5).normal(size=20)
    third = jax.vmap(jax.grad(jax.jacfwd(jax.grad(lambda t: got(t)[0]))))
    np.testing.assert_allclose(third(points), np.array(wanted(points)).ravel(), rtol=1e-9)


def test_slope_of_erfinv():
    # CasADi's own is good to 1e-7 only.
    x = ca.SX.sym("x")
    function, kernel = from_casadi(ca.Function("f", [x], [ca.erfinv(x)]))
    for at in (-0.999, -0.6, 0.0, 0.05, 0.3, 0.9):
        wanted = np.sqrt(np.pi) / 2 * np.exp(kernel(at) ** 2)
        np.testing.assert_allclose(jax.jacrev(function)(at), wanted, rtol=1e-13)


def test_remainder_and_copysign_have_their_own_slopes():
    a, b = ca.SX.sym("a"), ca.SX.sym("b")
    function, _ = from_casadi(
        ca.Function("f", [a, b], [ca.vertcat(ca.remainder(a, b), ca.copysign(a, b))])
    )
    for p, q in [(7.3, 2.0), (-7.3, 2.0), (7.3, -2.0), (3.9, 2.0), (-0.2, -2.0)]:
        for mode in (jax.jacfwd, jax.jacrev):
            by_a, by_b = mode(function, argnums=(0, 1))(p, q)
            np.testing.assert_allclose(by_a, [1, np.copysign(1, p) * np.copysign(1, q)])
            np.testing.assert_allclose(by_b, [-round(p / q), 0], rtol=1e-14)


def branches() -> dict[str, tuple[ca.SX, ca.SX]]:
    x = ca.SX.sym("x", 2)
    a, b = x[0], x[1]
    return {
        "quotient": (x, ca.if_else(a == 0, b, ca.sin(a) / a * b)),
        "root": (x, ca.if_else(a > 0, ca.sqrt(a), b * b)),
        "inside": (x, ca.if_else(a > 0, ca.log(a) * ca.sqrt(a) / a, 0) + a),
        "nested": (x, ca.if_else(a > 0, ca.if_else(b > 0, ca.log(b) / a, ca.log(-b)), a * b)),
        "outer": (x, ca.if_else(a <= 0, a + b, ca.if_else(b > 0, ca.sqrt(a / b), 1 / a))),
        "overflow": (x, ca.if_else(a > 700, a, ca.exp(a) * b)),
        "power": (x, ca.if_else(a > 0, a**b, 0)),
    }


@pytest.mark.parametrize("name", branches())
@pytest.mark.first_cases(1)
def test_nothing_of_a_branch_not_taken_enters_a_gradient(name):
    x, y = branches()[name]
    function, _ = from_casadi(ca.Function("f", [x], [y]))
    points = np.array([(0, 0), (-1, 0), (0, 2), (1e3, -0.5), (2, 1.5), (-3, -2)])
    forward, reverse = (jax.vmap(mode(function))(points) for mode in (jax.jacfwd, jax.jacrev))
    np.testing.assert_array_equal(np.isfinite(forward), True)
    np.testing.assert_allclose(reverse, forward, rtol=1e-13)
    second = jax.vmap(jax.jacrev(jax.jacrev(function)))(points)
    np.testing.assert_array_equal(np.isfinite(second), True)


def test_guards_are_the_conditions_on_every_way():
    x = ca.SX.sym("x", 2)
    shared, alone = ca.sqrt(x[0]), ca.sqrt(x[1])
    y = ca.if_else(x[0] > 0, shared + alone, shared)
    graph = compile(ca.Function("f", [x], [y]), cache=False).graph
    found = dict(zip(graph.nodes, guards(graph), strict=True))
    roots = [found[node] for node in graph.nodes if node[0] == "sqrt"]
    assert sorted(map(len, roots)) == [0, 1]


def test_large_batches_run_in_parts():
    x = ca.SX.sym("x", 3)
    function, kernel = from_casadi(ca.Function("f", [x], [ca.cross(x, ca.sin(x)), ca.sumsqr(x)]))
    batch = np.random.default_rng(6).normal(size=(2 * jax_target.CPU_COLUMNS + 5, 3))
    for got, wanted in zip(jax.vmap(function)(batch), kernel(batch), strict=True):
        np.testing.assert_allclose(got, wanted, rtol=1e-13, atol=1e-15)


def test_types_follow_jax():
    x = ca.SX.sym("x", 2)
    function, kernel = from_casadi(ca.Function("f", [x], [ca.exp(x) / 3]))
    assert function(np.float32([1, 2])).dtype == np.float32
    assert function([1, 2]).dtype == np.float64
    jax.config.update("jax_enable_x64", False)
    for value in (np.array([1.0, 2.0]), np.array([1, 2])):
        got = function(value)
        assert got.dtype == np.float32
        np.testing.assert_allclose(got, kernel(value), rtol=1e-6)
    assert jax.grad(lambda x: function(x)[0])(np.array([1.0, 2.0])).dtype == np.float32


def test_matrices_empty_and_unused_ports():
    x, p, empty = ca.SX.sym("x", 2), ca.SX.sym("p", 2, 3), ca.SX.sym("e", 0)
    outputs = [p.T @ x, p + x[0], ca.SX(2, 2), ca.vertcat(1.5, x[1]), ca.SX(0, 1)]
    function, kernel = from_casadi(ca.Function("f", [x, p, empty], outputs))
    state = np.array([3.0, 4.0]), np.arange(6.0).reshape(2, 3), np.zeros(0)
    for got, wanted in zip(function(*state), kernel(*state), strict=True):
        assert got.shape == wanted.shape
        np.testing.assert_array_equal(got, wanted)
    constant, _ = from_casadi(ca.Function("f", [], [ca.SX([1, 2])]))
    np.testing.assert_array_equal(constant(), [1, 2])


def test_wrong_arguments_are_named(arm):
    _, forward, _ = arm
    seven = np.zeros(7)
    with pytest.raises(ValueError, match=r"`v` must have shape \(7,\), not \(6,\).*jax.vmap"):
        forward(seven, np.zeros(6), seven)
    with pytest.raises(ValueError, match="`forward` takes `x`, `v`, `force`, but got 2"):
        forward(seven, seven)
    with pytest.raises(ValueError, match="but got 2 by position, `torque`"):
        forward(seven, seven, torque=seven)
    with pytest.raises(ValueError, match="real numbers, not values of type `complex128`"):
        forward(seven, seven, seven * 1j)


@pytest.mark.parametrize("platform", ["cuda", "tpu"])
def test_lowers_for_accelerators(arm, platform):
    function, forward, _ = arm
    state = states(function)
    gradient = jax.jit(jax.grad(lambda *state: jnp.sum(forward(*state))))
    assert export.export(gradient, platforms=[platform])(*state).mlir_module()


def test_says_how_to_install_jax_and_imports_it_only_when_asked():
    code = (
        "import sys, framefree\n"
        "assert 'jax' not in sys.modules\n"
        "sys.modules['jax'] = None\n"
        "import framefree.kernel.jax_target\n"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert "FramefreeError: this needs JAX" in run.stderr
    assert "framefree[learn]" in run.stderr
