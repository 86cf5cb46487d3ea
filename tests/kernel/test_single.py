"""Kernels in single precision: how exact they are, and that their bits depend on nothing else."""

import casadi as ca
import numpy as np
import pytest

from framefree.gallery.machines.arms import iiwa
from framefree.kernel import CompileError, compile
from framefree.motion import equations

NAMES = ("sin", "cos", "exp", "log", "tanh", "atan", "asin", "acos", "sqrt", "tan")
RANGES = {"log": (1e-3, 1e3), "sqrt": (0.0, 1e3), "asin": (-1, 1), "acos": (-1, 1), "tan": (-1, 1)}


def functions_kernel(**options):
    x = ca.SX.sym("x", len(NAMES))
    values = [getattr(ca, name)(x[k]) for k, name in enumerate(NAMES)]
    return compile(ca.Function("functions", [x], [ca.vertcat(*values)]), **options)


@pytest.fixture(scope="module")
def single():
    return functions_kernel(precision="single")


@pytest.fixture(scope="module")
def samples():
    rng = np.random.default_rng(0)
    columns = [rng.uniform(*RANGES.get(name, (-20.0, 20.0)), 2001) for name in NAMES]
    x = np.stack(columns, axis=1)
    x[:40, :2] *= 1e3  # beyond where the polynomials hold
    x[40] = np.nan
    return x.astype(np.float32).astype(float)


def test_functions_are_within_one_and_a_half_units_in_the_last_place(single, samples):
    exact = np.stack([getattr(np, _numpy(n))(samples[:, k]) for k, n in enumerate(NAMES)], axis=1)
    unit = np.spacing(np.abs(exact).astype(np.float32)).astype(float)
    off = np.abs(single(samples) - exact) / unit
    assert np.nanmax(off) < 1.5
    assert np.isnan(single(samples)[40]).all()


def _numpy(name):
    return {"atan": "arctan", "asin": "arcsin", "acos": "arccos"}.get(name, name)


def test_bits_do_not_depend_on_batch_lanes_or_threads(single, samples):
    whole = single(samples)
    assert np.array_equal(whole.astype(np.float32), whole, equal_nan=True)
    rows = np.stack([single(row) for row in samples[:50]])
    assert np.array_equal(rows, whole[:50], equal_nan=True)
    assert np.array_equal(single(samples, threads=2), whole, equal_nan=True)
    for lanes in (2, 4):
        other = functions_kernel(precision="single", lanes=lanes)
        assert np.array_equal(other(samples), whole, equal_nan=True)


def test_dynamics_to_seven_digits_less_those_of_the_condition():
    arm, rng = iiwa(), np.random.default_rng(1)
    function = equations(arm, "tree").functions["forward"]
    x, (v, force) = arm.random(rng, 100), rng.normal(size=(2, 100, 7))
    near, exact = compile(function, precision="single")(x, v, force), compile(function)(x, v, force)
    off = np.abs(near - exact).max(axis=1) / np.abs(exact).max(axis=1)
    assert 0 < off.max() < 1e-4
    assert np.median(off) < 1e-6


def test_rollout_is_calls_one_after_another():
    x, t, dt = ca.SX.sym("x", 3), ca.SX.sym("t"), ca.SX.sym("dt")
    following = x + dt * ca.vertcat(ca.sin(x[1] + t), x[2], -ca.cos(x[0]))
    function = ca.Function("f", [x, t, dt], [following], ["x", "t", "dt"], ["x_next"])
    kernel = compile(function, precision="single", shapes={"t": (), "dt": ()})
    state = np.random.default_rng(2).normal(size=(11, 3)).astype(np.float32).astype(float)
    record = kernel.rollout(x=state, steps=20, dt=0.01)
    for k in range(20):
        assert np.array_equal(record["x"][:, k], state)
        state = kernel(state, k * 0.01, 0.01)


def test_other_precisions_are_refused():
    with pytest.raises(CompileError, match='"double" or "single"'):
        functions_kernel(precision="half")
