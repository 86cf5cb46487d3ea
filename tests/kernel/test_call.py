"""Calling a kernel: one state or many, the same numbers as CasADi's own evaluation."""

import pickle

import casadi as ca
import numpy as np
import pytest

from framefree.kernel import CompileError, compile


def pendulum() -> ca.Function:
    x, v, p = ca.SX.sym("x", 3), ca.SX.sym("v", 3), ca.SX.sym("p", 2, 3)
    a = ca.sin(x) * v + ca.mtimes(p.T, ca.vertcat(ca.cos(x[0]), v[1] / (2 + ca.cos(x[2]))))
    return ca.Function("pendulum", [x, v, p], [a, ca.mtimes(a, v.T)], ["x", "v", "p"], ["a", "b"])


@pytest.mark.parametrize("lanes", [None, 1, 2, 4, 8])
def test_equals_casadi_for_every_batch_size(lanes):
    function = pendulum()
    kernel = compile(function, lanes=lanes)
    rng = np.random.default_rng(0)
    for batch in range(21):
        x, v, p = (rng.normal(size=(batch, *shape)) for shape in [(3,), (3,), (2, 3)])
        a, b = kernel(x, v, p)
        assert a.shape == (batch, 3)
        assert b.shape == (batch, 3, 3)
        for i in range(batch):
            expected_a, expected_b = function(x[i], v[i], p[i])
            np.testing.assert_allclose(a[i], np.array(expected_a)[:, 0], rtol=1e-13, atol=1e-14)
            np.testing.assert_allclose(b[i], np.array(expected_b), rtol=1e-13, atol=1e-14)


@pytest.fixture(scope="module")
def kernel():
    return compile(pendulum())


def good(batch=4):
    rng = np.random.default_rng(batch)
    return rng.normal(size=(batch, 3)), rng.normal(size=(batch, 3)), rng.normal(size=(batch, 2, 3))


def test_one_state(kernel):
    x, v, p = good()
    a, b = kernel(x[0], v[0], p[0])
    whole_a, whole_b = kernel(x, v, p)
    assert a.shape == (3,)
    assert b.shape == (3, 3)
    np.testing.assert_array_equal(a, whole_a[0])
    np.testing.assert_array_equal(b, whole_b[0])


def test_arguments_by_name(kernel):
    x, v, p = good()
    expected = kernel(x, v, p)
    for got in (kernel(x, p=p, v=v), kernel(p=p, v=v, x=x), kernel(x, v, p=p)):
        np.testing.assert_array_equal(got[0], expected[0])


@pytest.mark.parametrize(
    "convert",
    [
        lambda a: a.tolist(),
        lambda a: tuple(a.tolist()),
        lambda a: a.astype(np.float32).astype(float).astype(np.float32),
        np.asfortranarray,
        lambda a: np.repeat(a, 2, axis=0)[::2],
        lambda a: np.repeat(a, 2, axis=-1)[..., ::2],
        lambda a: a[::-1][::-1],
        lambda a: np.ascontiguousarray(a[::-1])[::-1],
        lambda a: a.astype(">f8"),
        lambda a: np.frombuffer(b"\0" + a.tobytes(), np.uint8)[1:].view(float).reshape(a.shape),
        lambda a: a.view(type("Sub", (np.ndarray,), {})),
        lambda a: np.lib.stride_tricks.as_strided(a, writeable=False),
    ],
)
def test_any_array_of_real_numbers_will_do(kernel, convert):
    arguments = good(6)
    for position in range(3):
        given = list(arguments)
        given[position] = convert(given[position])
        plain = [np.array(one, dtype=float) for one in given]
        for got, expected in zip(kernel(*given), kernel(*plain), strict=True):
            np.testing.assert_array_equal(got, expected)
            assert type(got) is np.ndarray


def test_integers_and_truth_values(kernel):
    x, v = np.array([1, 2, 3]), np.array([True, False, True])
    p = np.arange(6, dtype=np.uint8).reshape(2, 3)
    expected = kernel(x.astype(float), v.astype(float), p.astype(float))
    np.testing.assert_array_equal(kernel(x, v, p)[0], expected[0])


def test_a_batch_of_one_repeats(kernel):
    x, v, p = good(5)
    np.testing.assert_array_equal(kernel(x[:1], v, p)[0], kernel(x[0], v, p)[0])


def test_rows_of_a_larger_array_are_not_copied(kernel):
    rng = np.random.default_rng(0)
    whole, p = rng.normal(size=(50, 9)), rng.normal(size=(2, 3))
    got = kernel(whole[:, :3], whole[:, 4:7], p)
    expected = kernel(whole[:, :3].copy(), whole[:, 4:7].copy(), p)
    np.testing.assert_array_equal(got[1], expected[1])


def test_scalars():
    x, y = ca.SX.sym("x"), ca.SX.sym("y")
    function = ca.Function("f", [x, y], [x * y, x + y], ["x", "y"], ["product", "sum"])
    kernel = compile(function, shapes={"x": (), "product": ()})
    product, total = kernel(2.0, 3.0)
    assert product.shape == ()
    assert total.shape == (1,)
    assert product == 6
    product, total = kernel(np.arange(5.0), 3)
    np.testing.assert_array_equal(product, 3 * np.arange(5.0))
    assert total.shape == (5, 1)
    assert kernel(2, np.ones((7, 1)))[0].shape == (7,)


def test_function_without_arguments():
    kernel = compile(ca.Function("f", [], [ca.SX([1.0, 2.0])]))
    np.testing.assert_array_equal(kernel(), [1, 2])


def test_constants_and_copies_among_the_outputs():
    x = ca.SX.sym("x", 2, 2)
    outputs = [x, x.T, ca.SX.eye(2), ca.SX(2, 2), ca.vertcat(3, x[0, 0], -0.0)]
    kernel = compile(ca.Function("f", [x], outputs))
    for batch in (1, 3, 40):
        given = np.random.default_rng(batch).normal(size=(batch, 2, 2))
        same, turned, eye, zero, mixed = kernel(given)
        np.testing.assert_array_equal(same, given)
        np.testing.assert_array_equal(turned, given.swapaxes(1, 2))
        np.testing.assert_array_equal(eye, np.broadcast_to(np.eye(2), (batch, 2, 2)))
        np.testing.assert_array_equal(zero, 0)
        np.testing.assert_array_equal(mixed[:, 1], given[:, 0, 0])


def test_sparse_arguments_and_results():
    x = ca.SX.sym("x", ca.Sparsity.lower(3))
    function = ca.Function("f", [x], [ca.sparsify(x.T + ca.diag(ca.SX([1, 2, 3])))])
    given = np.tril(np.random.default_rng(0).normal(size=(5, 3, 3)))
    expected = given.swapaxes(1, 2) + np.diag([1, 2, 3])
    np.testing.assert_array_equal(compile(function)(given), expected)


def test_matrix_functions_expand():
    x, y = ca.MX.sym("x", 3, 2), ca.MX.sym("y", 2)
    function = ca.Function("f", [x, y], [x @ y, ca.norm_2(y), ca.solve(x.T @ x, y, "symbolicqr")])
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(10, 3, 2)), rng.normal(size=(10, 2))
    product, norm, solution = compile(function)(x, y)
    np.testing.assert_allclose(product, np.einsum("bij,bj->bi", x, y), rtol=1e-12)
    np.testing.assert_allclose(norm[:, 0], np.linalg.norm(y, axis=1), rtol=1e-12)
    expected = np.linalg.solve(x.swapaxes(1, 2) @ x, y[..., None])[..., 0]
    np.testing.assert_allclose(solution, expected, rtol=1e-9)


@pytest.mark.parametrize("batch", [None, 3, 40])
def test_out(kernel, batch):
    arguments = good(batch or 1)
    if batch is None:
        arguments = [one[0] for one in arguments]
    expected = kernel(*arguments)
    out = tuple(np.full_like(one, np.nan) for one in expected)
    got = kernel(*arguments, out=out)
    assert all(a is b for a, b in zip(got, out, strict=True))
    for a, b in zip(out, expected, strict=True):
        np.testing.assert_array_equal(a, b)
    strided = np.full((*expected[1].shape, 2), np.nan)[..., 1]
    a, b = kernel(*arguments, out=(None, strided))
    assert b is strided
    np.testing.assert_array_equal(b, expected[1])
    np.testing.assert_array_equal(a, expected[0])


def test_out_may_overlap_the_arguments():
    x, y = ca.SX.sym("x", 3), ca.SX.sym("y", 3)
    turn = ca.vertcat(x[2], x[0], x[1]) * y
    kernel = compile(ca.Function("f", [x, y], [turn, x + y]))
    for batch in (1, 5, 33, 100):
        for shift in (0, 1, 2, 7):
            memory = np.random.default_rng(batch).normal(size=(batch + 7, 3))
            other = np.random.default_rng(shift).normal(size=(batch, 3))
            given, out = memory[:batch], memory[shift : shift + batch]
            expected = kernel(given.copy(), other)
            kernel(given, other, out=(out, None))
            np.testing.assert_array_equal(out, expected[0])
            other_copy = other.copy()
            got = kernel(other_copy, other_copy, out=(other_copy, other_copy))
            np.testing.assert_array_equal(got[1], other + other)


MESSAGES = [
    (lambda x, v, p: (x, v), {}, "`pendulum` misses `p`"),
    (lambda x, v, p: (x, v, p, p), {}, "`pendulum` takes 3 arrays .`x`, `v`, `p`., but 4"),
    (lambda x, v, p: (x, v, p), {"x": 1}, "`pendulum` got argument `x` twice"),
    (lambda x, v, p: (x, v, p), {"w": 1}, "has no argument `w`; it takes `x`, `v`, `p`"),
    (
        lambda x, v, p: (x[:, :2], v, p),
        {},
        r"`x` must have shape \(3,\) or \(batch, 3\), not \(4, 2",
    ),
    (lambda x, v, p: (x, v, p[..., None]), {}, r"`p` must have shape \(2, 3\) or \(batch, 2, 3\)"),
    (lambda x, v, p: (x, v, p.swapaxes(1, 2)), {}, r"not \(4, 3, 2\)"),
    (lambda x, v, p: (x, v[:3], p), {}, "differ in batch size: `x` 4, `v` 3, `p` 4"),
    (lambda x, v, p: (1.0, v, p), {}, r"`x` must have shape .* not \(\)"),
    (lambda x, v, p: (x + 0j, v, p), {}, "`x` must hold real numbers, not .*complex128"),
    (lambda x, v, p: (["a", "b", "c"], v, p), {}, "`x` must hold real numbers"),
    (lambda x, v, p: (None, v, p), {}, "`x` must hold real numbers, not .*object"),
    (lambda x, v, p: ([[1, 2, 3], [1]], v, p), {}, "`x` is not an array of numbers"),
    (lambda x, v, p: (x, v, p), {"threads": 0}, "`threads` must be a positive whole number, not 0"),
    (lambda x, v, p: (x, v, p), {"threads": 1.5}, "`threads` must be"),
    (lambda x, v, p: (x, v, p), {"out": np.zeros(3)}, "`out` of `pendulum` must hold 2 arrays"),
    (
        lambda x, v, p: (x, v, p),
        {"out": (np.zeros((3, 3)), None)},
        r"`out` for `a` must have shape",
    ),
    (lambda x, v, p: (x, v, p), {"out": ([1], None)}, "`out` for `a` must be an array of float64"),
    (
        lambda x, v, p: (x, v, p),
        {"out": (np.zeros((4, 3), np.float32), None)},
        "array of float64, not an array of float32",
    ),
    (
        lambda x, v, p: (x, v, p),
        {"out": (np.broadcast_to(0.0, (4, 3)), None)},
        "`out` for `a` is read-only",
    ),
]


@pytest.mark.parametrize(("arguments", "named", "message"), MESSAGES)
def test_says_what_is_wrong(kernel, arguments, named, message):
    with pytest.raises(ValueError, match=message):
        kernel(*arguments(*good()), **named)


def test_refused_functions():
    x = ca.SX.sym("x", 2)
    with pytest.raises(CompileError, match="must be a casadi"):
        compile(lambda x: x)
    with pytest.raises(CompileError, match="`f` has free variables: `y`"):
        compile(ca.Function("f", [x], [x * ca.SX.sym("y")], {"allow_free": True}))
    with pytest.raises(CompileError, match=r"`f` has no input or output .*'z'"):
        compile(ca.Function("f", [x], [x]), shapes={"z": ()})
    with pytest.raises(CompileError, match=r"`i0` of `f` is 2 x 1 and cannot have shape \(3,\)"):
        compile(ca.Function("f", [x], [x]), shapes={"i0": (3,)})
    with pytest.raises(CompileError, match="has no outputs"):
        compile(ca.Function("f", [x], []))
    with pytest.raises(CompileError, match="`lanes` must be one of"):
        compile(ca.Function("f", [x], [x]), lanes=3)

    class Outside(ca.Callback):
        def __init__(self):
            ca.Callback.__init__(self)
            self.construct("outside", {})

        def eval(self, arguments):
            return arguments

    outside, y = Outside(), ca.MX.sym("y")
    with pytest.raises(CompileError, match="`g` calls `outside`, a "):
        compile(ca.Function("g", [y], [outside(y)]))
    z = ca.MX.sym("z", 3, 3)
    with pytest.raises(CompileError, match="`h` cannot be compiled: CasADi cannot expand it"):
        compile(ca.Function("h", [z], [ca.inv(z)]))


def test_shows_itself(kernel):
    assert repr(kernel) == "<kernel pendulum: (x[3], v[3], p[2, 3]) -> (a[3], b[3, 3])>"
    assert [port.name for port in kernel.inputs] == ["x", "v", "p"]
    assert [port.shape for port in kernel.outputs] == [(3,), (3, 3)]


def test_pickles(kernel):
    again = pickle.loads(pickle.dumps(kernel))
    arguments = good()
    assert repr(again) == repr(kernel)
    np.testing.assert_array_equal(again(*arguments)[0], kernel(*arguments)[0])


def test_any_number_of_empty_rows():
    x = ca.SX.sym("x", 0, 3)
    kernel = compile(ca.Function("f", [x], [x]))
    assert kernel(np.empty((2**40, 0, 3))).shape == (2**40, 0, 3)
