"""Programs made of calls: natively, and as a CasADi function, they do what the list says."""

import casadi as ca
import numpy as np
import pytest

from framefree.kernel import CompileError
from framefree.kernel.loops import Calls, Constant


def small(name, function, *sizes):
    symbols = [ca.SX.sym(f"a{k}", size) for k, size in enumerate(sizes)]
    results = function(*symbols)
    return ca.Function(name, symbols, list(results) if isinstance(results, tuple) else [results])


def filtered(n):
    """A chain of different calls: a recursive filter over n inputs, forward and back."""
    calls = Calls("filtered")
    x = calls.input("x", (n,))
    gain = calls.input("gain", (2,))
    y = calls.output("y", (n,))
    last = calls.output("last", (2,))
    mix = small("mix", lambda s, u, g: (ca.tanh(g[0] * s[0] + u + g[1] * s[1]), s[0]), 2, 1, 2)
    scale = small("scale", lambda s, c: (c[0] * s[0] + c[1], ca.SX(3.0)), 1, 2)
    state, kept = calls.zeros(2), []
    for k in range(n):
        following = calls.block(2)
        calls.call(mix, [state, x[k : k + 1], gain], [following[:1], following[1:]])
        kept.append(following)
        state = following
    for k in reversed(range(n)):
        spare = calls.block(1)
        factors = Constant((1.0 + k % 3, 0.5))
        calls.call(scale, [kept[k][:1], factors], [y[k : k + 1], spare])
        calls.release(spare)
    copy = small("copy", lambda s: 1.0 * s, 2)
    calls.call(copy, [state], [last])
    return calls


def expected(x, gain):
    n = x.shape[-1]
    state, found = np.zeros((*x.shape[:-1], 2)), []
    for k in range(n):
        now = np.tanh(gain[..., 0] * state[..., 0] + x[..., k] + gain[..., 1] * state[..., 1])
        state = np.stack([now, state[..., 0]], axis=-1)
        found.append((1.0 + k % 3) * now + 0.5)
    return np.stack(found, axis=-1), state


@pytest.fixture(scope="module")
def calls():
    return filtered(40)


@pytest.fixture(scope="module")
def kernel(calls):
    return calls.compile(use_cache=False)


def test_single_states_and_batches(kernel):
    rng = np.random.default_rng(0)
    for batch in (1, 2, 3, 7, 64, 129):
        x, gain = rng.normal(size=(batch, 40)), rng.normal(size=(batch, 2))
        y, last = kernel(x, gain)
        np.testing.assert_allclose(y, expected(x, gain)[0], rtol=1e-12, atol=1e-13)
        np.testing.assert_allclose(last, expected(x, gain)[1], rtol=1e-12, atol=1e-13)
        alone = kernel(x[-1], gain[-1])
        assert np.array_equal(alone[0], y[-1])
        assert np.array_equal(alone[1], last[-1])


def test_bits_do_not_depend_on_lanes_or_threads(calls, kernel):
    rng = np.random.default_rng(1)
    x, gain = rng.normal(size=(50, 40)), rng.normal(size=2)
    reference = kernel(x, gain)[0]
    for lanes in (1, 2):
        assert np.array_equal(calls.compile(use_cache=False, lanes=lanes)(x, gain)[0], reference)
    assert np.array_equal(kernel(x, gain, threads=2)[0], reference)


def test_same_as_a_casadi_function(calls, kernel):
    rng = np.random.default_rng(2)
    x, gain = rng.normal(size=40), rng.normal(size=2)
    for one, other in zip(kernel.function(x, gain), kernel(x, gain), strict=True):
        np.testing.assert_allclose(np.array(one).ravel(), other, rtol=1e-12, atol=1e-13)
    assert kernel.inputs[0].name == "x"
    assert "filtered" in repr(kernel)


def test_cached_code_is_the_same(calls, kernel, tmp_path, monkeypatch):
    monkeypatch.setenv("FRAMEFREE_CACHE_DIR", str(tmp_path))
    rng = np.random.default_rng(3)
    x, gain = rng.normal(size=(9, 40)), rng.normal(size=2)
    for _ in range(2):
        assert np.array_equal(calls.compile()(x, gain)[0], kernel(x, gain)[0])
    assert len(list(tmp_path.rglob("*.kernel"))) == 2  # one for many states, one for a single one
    other = filtered(41).compile()
    assert other(np.zeros(41), gain)[0].shape == (41,)


def test_a_large_function_is_cut_into_stages():
    """More than fits one stage: what one stage hands to the next lies in a common place."""
    n = 40
    A = np.random.default_rng(4).normal(size=(n, n)) / n
    matrix = small("matrix", lambda s: ca.sin(ca.DM(A) @ ca.tanh(ca.DM(A) @ s)), n)
    calls = Calls("powers")
    state = calls.input("x", (n,))
    y = calls.output("y", (n,))
    for k in range(3):
        following = y if k == 2 else calls.block(n)
        calls.call(matrix, [state], [following])
        state = following
    x = np.random.default_rng(5).normal(size=(5, n))
    found = calls.compile(use_cache=False)(x)
    for _ in range(3):
        x = np.sin(np.tanh(x @ A.T) @ A.T)
    np.testing.assert_allclose(found, x, rtol=1e-11, atol=1e-14)


def test_roll_out_steps_a_program_in_time():
    calls = Calls("step")
    x = calls.input("x", (3,))
    following = calls.output("x_next", (3,))
    decay = small("decay", lambda s, c: c * s, 1, 1)
    for k in range(3):
        calls.call(decay, [x[k : k + 1], Constant((0.5 + 0.1 * k,))], [following[k : k + 1]])
    run = calls.compile(use_cache=False).rollout(np.ones(3), steps=10)
    np.testing.assert_allclose(run["x"][-1], np.array([0.5, 0.6, 0.7]) ** 10)


def test_errors_name_what_is_wrong():
    add = small("add", lambda a, b: a + b, 2, 2)
    calls = Calls("wrong")
    x, y = calls.input("x", (2,)), calls.output("y", (4,))
    with pytest.raises(CompileError, match=r"`add` takes blocks of sizes \[2, 2\], but got \[2\]"):
        calls.call(add, [x], [y[:2]])
    with pytest.raises(CompileError, match=r"`add` gives blocks of sizes \[2\], but got \[4\]"):
        calls.call(add, [x, x], [y])
    block = calls.block(2)
    with pytest.raises(CompileError, match="would read what no call has written"):
        calls.call(add, [x, block], [y[:2]])
    calls.call(add, [x, x], [block])
    with pytest.raises(CompileError, match="would write where it reads"):
        calls.call(add, [x, block], [block])
    with pytest.raises(CompileError, match="would write over inputs or zeros"):
        calls.call(add, [block, block], [x])
    calls.call(add, [x, block], [y[:2]])
    with pytest.raises(CompileError, match="no call writes all of the output `y`"):
        calls.compile()
    with pytest.raises(CompileError, match="consecutive"):
        x[::2]


def test_zeros_stay_zero_when_more_are_asked_for():
    calls = Calls("zeros")
    x, y = calls.input("x", (40,)), calls.output("y", (40,))
    one = small("one", lambda a, b: a + b, 1, 1)
    few = calls.zeros(1)
    many = calls.zeros(39)
    rest = small("rest", lambda a, b: a + b, 39, 39)
    calls.call(one, [x[:1], few], [y[:1]])
    calls.call(rest, [x[1:], many], [y[1:]])
    x = np.random.default_rng(6).normal(size=(3, 40))
    assert np.array_equal(calls.compile(use_cache=False)(x), x)


def test_flagged_calls_are_left_out():
    """Halve until below one, each state as often as it needs, whoever runs beside it."""
    x, done = ca.SX.sym("x"), ca.SX.sym("done")
    halved = ca.if_else(done, x, x / 2)
    halve = ca.Function("halve", [x, done], [halved, halved < 1])
    copy = ca.Function("copy", [x, done], [x, done])
    calls = Calls("halving")
    value, flag = calls.block(1), calls.block(1)
    moved = [calls.block(1), calls.block(1)]
    begin = ca.Function("begin", [x], [x, x < 1])
    calls.call(begin, [calls.input("x", ())], [value, flag])
    for _ in range(30):
        calls.call(halve, [value, flag], moved, unless=flag)
        calls.call(copy, moved, [value, flag], unless=flag)
    calls.call(ca.Function("end", [x], [x]), [value], [calls.output("y", ())])
    kernel = calls.compile()
    values = np.geomspace(0.1, 1e6, 37)
    expected = values / 2.0 ** np.maximum(np.floor(np.log2(values)) + 1, 0)
    assert np.array_equal(kernel(values), expected)
    assert all(kernel(one) == half for one, half in zip(values, expected, strict=True))
    assert np.array_equal([float(kernel.function(one)) for one in values], expected)
    with pytest.raises(CompileError, match="must be one slot"):
        calls.call(copy, moved, [value, flag], unless=calls.zeros(2))
