"""Results do not depend on the lanes, the batch size, the place in the batch, the threads or the
cache: bit for bit."""

import casadi as ca
import numpy as np
import pytest

from framefree.kernel import CompileError, compile, llvm_code
from framefree.kernel import program as program_module
from framefree.kernel.target import host


def everything(size: int = 6) -> ca.Function:
    """A function of every kind of operation, with shared divisors, fused products and branches."""
    x, y = ca.SX.sym("x", size), ca.SX.sym("y", size)
    parts = [ca.sin(x) * ca.cos(y) + x * y - y, ca.exp(-x * x) / (1 + y * y), ca.atan2(x, y)]
    parts += [ca.tanh(x) + ca.log(1 + y * y), ca.asin(ca.sin(x)) + ca.acos(ca.cos(y)), ca.tan(x)]
    parts += [ca.if_else(x > y, ca.sqrt(x - y), x / y), ca.fmin(x, y) * ca.floor(x), x**1.5]
    parts += [x / (y + 3), y / (y + 3), ca.fmod(x, y), ca.sign(x) * ca.erf(y), ca.hypot(x, y)]
    total = ca.sum1(ca.vertcat(*parts))
    return ca.Function("everything", [x, y], [ca.vertcat(*parts), total], ["x", "y"], ["p", "s"])


def states(batch: int, size: int = 6) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(batch)
    x, y = rng.normal(size=(2, batch, size)) * 10.0 ** rng.uniform(-2, 2, size=(2, batch, 1))
    rare = rng.random(size=x.shape)
    x = np.where(rare < 0.03, rng.choice([np.nan, np.inf, 1e7, -0.0, 1e-310], size=x.shape), x)
    return x, y


@pytest.fixture(scope="module")
def reference():
    """One state at a time, one lane."""
    kernel = compile(everything(), lanes=1, cache=False)

    def evaluate(x, y):
        results = [kernel(a, b) for a, b in zip(x, y, strict=True)]
        return [np.array(column) for column in zip(*results, strict=True)]

    return evaluate


@pytest.mark.parametrize("lanes", [None, 1, 2, 4, 8])
def test_lanes_and_batch_sizes(lanes, reference, same_bits):
    kernel = compile(everything(), lanes=lanes, cache=False)
    for batch in [*range(1, 21), 67]:
        x, y = states(batch)
        for got, expected in zip(kernel(x, y), reference(x, y), strict=True):
            assert same_bits(got, expected)


def test_place_in_the_batch(same_bits):
    kernel = compile(everything(), cache=False)
    x, y = states(200)
    whole = kernel(x, y)
    for first in range(11):
        for last in (first + 1, 77, 200):
            part = kernel(x[first:last], y[first:last])
            assert all(same_bits(a, b[first:last]) for a, b in zip(part, whole, strict=True))


@pytest.mark.parametrize("threads", [2, 3, 7])
def test_threads(threads, same_bits):
    kernel = compile(everything(), cache=False)
    for batch in (1, 31, 33, 500):
        x, y = states(batch)
        pairs = zip(kernel(x, y), kernel(x, y, threads=threads), strict=True)
        assert all(same_bits(a, b) for a, b in pairs)


def test_cache(same_bits):
    x, y = states(50)
    fresh, stored, loaded = (compile(everything(), cache=c) for c in (False, True, True))
    for one in (stored, loaded):
        assert all(same_bits(a, b) for a, b in zip(fresh(x, y), one(x, y), strict=True))


@pytest.mark.parametrize("piece", [10, 40, 200])
def test_stages(piece, reference, same_bits, monkeypatch):
    """Cutting the program into stages changes nothing."""
    monkeypatch.setattr(program_module, "WHOLE", piece)
    monkeypatch.setattr(program_module, "PIECE", piece)
    kernel = compile(everything(), cache=False)
    for batch in (1, 5, 70):
        x, y = states(batch)
        for got, expected in zip(kernel(x, y), reference(x, y), strict=True):
            assert same_bits(got, expected)


def test_single_and_batched_arguments_mix(same_bits):
    kernel = compile(everything(), cache=False)
    x, y = states(45)
    got = kernel(x, y[3])
    expected = kernel(x, np.repeat(y[3:4], 45, axis=0))
    assert all(same_bits(a, b) for a, b in zip(got, expected, strict=True))


def test_huge_functions_compiled_in_haste(reference, same_bits, monkeypatch):
    monkeypatch.setattr(llvm_code, "HUGE", 0)
    kernel = compile(everything(), cache=False)
    for batch in (1, 7, 67):
        x, y = states(batch)
        for got, expected in zip(kernel(x, y), reference(x, y), strict=True):
            assert same_bits(got, expected)


@pytest.mark.parametrize("single", [False, True])
def test_quick_compilation_keeps_the_bits(monkeypatch, single):
    precision = "single" if single else "double"
    x, y = (a.astype(np.float32) if single else a for a in states(67))
    results = []
    for how in ("full", "quick"):
        monkeypatch.setenv("FRAMEFREE_COMPILE", how)
        assert host(single=single).quick == (how == "quick")
        results.append(compile(everything(), cache=False, precision=precision)(x, y))
    for full, quick in zip(*results, strict=True):
        assert np.array_equal(full, quick, equal_nan=True)


def test_other_ways_of_compiling_are_refused(monkeypatch):
    monkeypatch.setenv("FRAMEFREE_COMPILE", "fast")
    with pytest.raises(CompileError, match="FRAMEFREE_COMPILE must be `full` or `quick`"):
        compile(everything(), cache=False)
