"""Roll-outs: bit for bit what calling the kernel step by step gives."""

import casadi as ca
import numpy as np
import pytest

from framefree.kernel import compile
from framefree.kernel import rollout as rollout_module
from framefree.kernel.errors import ArgumentError


def step() -> ca.Function:
    """A driven, damped double pendulum of sorts, with a parameter, an input and two signals."""
    x, v = ca.SX.sym("x", 3), ca.SX.sym("v", 3)
    t, dt, u, p = ca.SX.sym("t"), ca.SX.sym("dt"), ca.SX.sym("u", 2), ca.SX.sym("p", 2, 2)
    a = -ca.sin(x) - 0.1 * v + ca.vertcat(p @ u, ca.cos(3 * t))
    v_next = v + dt * a
    return ca.Function(
        "step",
        [x, t, v, u, p, dt],
        [v_next, a, x + dt * v_next, ca.dot(v, v) / 2],
        ["x", "t", "v", "u", "p", "dt"],
        ["v_next", "a", "x_next", "energy"],
    )


SHAPES = {"t": (), "dt": (), "energy": ()}


@pytest.fixture(scope="module")
def kernel():
    return compile(step(), shapes=SHAPES)


def start(batch):
    rng = np.random.default_rng(batch)
    return rng.normal(size=(batch, 3)), rng.normal(size=(batch, 3)), rng.normal(size=(batch, 2, 2))


def by_hand(kernel, x, v, u, p, steps, dt, t0):
    """Step by step; `u` has a value for each step."""
    states, signals = [(x, v)], []
    for k in range(steps):
        v_next, a, x_next, energy = kernel(x, t0 + k * dt, v, u(k), p, dt)
        signals.append((a, energy))
        x, v = x_next, v_next
        states.append((x, v))
    return states, signals


@pytest.mark.parametrize("batch", [1, 3, 4, 17, 70])
@pytest.mark.parametrize("every", [1, 3, 10])
def test_equals_stepping(kernel, batch, every, same_bits):
    x, v, p = start(batch)
    u, steps, dt, t0 = np.array([0.3, -0.2]), 31, 0.013, 0.7
    record = kernel.rollout(x, v, u, p, steps=steps, every=every, dt=dt, t0=t0)
    states, signals = by_hand(kernel, x, v, lambda k: u, p, steps, dt, t0)
    count = steps // every
    assert record["x"].shape == (batch, count + 1, 3)
    assert record["a"].shape == (batch, count, 3)
    assert record["energy"].shape == (batch, count)
    assert same_bits(record.t, t0 + np.arange(0, steps + 1, every)[: count + 1] * dt)
    for j in range(count + 1):
        assert same_bits(record["x"][:, j], states[j * every][0])
        assert same_bits(record["v"][:, j], states[j * every][1])
    for j in range(count):
        assert same_bits(record["a"][:, j], signals[j * every][0])
        assert same_bits(record["energy"][:, j], signals[j * every][1])
    assert same_bits(record.final["x"], states[-1][0])
    assert same_bits(record.final["v"], states[-1][1])


@pytest.mark.parametrize("batched", [False, True])
def test_sequences(kernel, batched, same_bits):
    x, v, p = start(9)
    rng = np.random.default_rng(1)
    u = rng.normal(size=(9, 20, 2) if batched else (20, 2))
    record = kernel.rollout(x, v, p=p, sequences={"u": u}, steps=20, dt=0.01)
    states, _ = by_hand(kernel, x, v, lambda k: u[:, k] if batched else u[k], p, 20, 0.01, 0.0)
    assert same_bits(record.final["x"], states[-1][0])
    assert same_bits(record["v"][:, 7], states[7][1])


def test_single_trajectory_has_no_batch_axis(kernel, same_bits):
    x, v, p = start(1)
    single = kernel.rollout(x[0], v[0], [0.0, 1.0], p[0], steps=8, every=2, dt=0.1)
    batch = kernel.rollout(x, v, [0.0, 1.0], p, steps=8, every=2, dt=0.1)
    assert single["x"].shape == (5, 3)
    assert single["energy"].shape == (4,)
    assert single.final["v"].shape == (3,)
    assert same_bits(single["x"], batch["x"][0])


def test_states_broadcast_to_the_batch(kernel, same_bits):
    x, v, p = start(6)
    record = kernel.rollout(x[0], v[0], [0.0, 1.0], p, steps=5, dt=0.1)
    expected = kernel.rollout(
        np.repeat(x[:1], 6, 0), np.repeat(v[:1], 6, 0), [0.0, 1.0], p, steps=5, dt=0.1
    )
    assert same_bits(record["x"], expected["x"])


@pytest.mark.parametrize("threads", [1, 2, 3])
def test_chunks_and_threads_change_nothing(kernel, threads, same_bits, monkeypatch):
    x, v, p = start(150)
    whole = kernel.rollout(x, v, [0.1, 0.2], p, steps=40, every=7, dt=0.01)
    monkeypatch.setattr(rollout_module, "CHUNK", 1)
    seen = []
    parts = kernel.rollout(
        x, v, [0.1, 0.2], p, steps=40, every=7, dt=0.01, threads=threads, progress=seen.append
    )
    assert seen == list(range(1, 41))
    for name in ("x", "v", "a", "energy"):
        assert same_bits(whole[name], parts[name])


def test_progress_can_stop_a_run(kernel, monkeypatch):
    monkeypatch.setattr(rollout_module, "CHUNK", 1)
    x, v, p = start(2)

    def stop(done):
        if done == 3:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        kernel.rollout(x, v, [0.0, 0.0], p, steps=10, dt=0.1, progress=stop)


def test_given_arrays_are_left_alone(kernel):
    x, v, p = start(5)
    before = x.copy(), v.copy(), p.copy()
    kernel.rollout(x, v, [0.0, 0.0], p, steps=10, dt=0.1)
    for old, new in zip(before, (x, v, p), strict=True):
        np.testing.assert_array_equal(old, new)


@pytest.mark.parametrize("every", [41, 1000, 2**63, 2**64, 2**70])
def test_nothing_recorded_on_the_way(kernel, every, same_bits):
    x, v, p = start(3)
    record = kernel.rollout(x, v, [0.1, 0.2], p, steps=40, every=every, dt=0.01)
    usual = kernel.rollout(x, v, [0.1, 0.2], p, steps=40, dt=0.01)
    assert record["x"].shape == (3, 1, 3)
    assert record["energy"].shape == (3, 0)
    assert same_bits(record.final["x"], usual.final["x"])


def test_no_steps_and_no_trajectories(kernel):
    x, v, p = start(4)
    record = kernel.rollout(x, v, [0.0, 0.0], p, steps=0, dt=0.1)
    np.testing.assert_array_equal(record["x"][:, 0], x)
    assert record["energy"].shape == (4, 0)
    empty = kernel.rollout(x[:0], v[:0], [0.0, 0.0], p[:0], steps=3, dt=0.1)
    assert empty["x"].shape == (0, 4, 3)


def test_a_kernel_without_time(same_bits):
    x = ca.SX.sym("x", 2)
    kernel = compile(ca.Function("f", [x], [ca.sin(x) + 1], ["x"], ["x_next"]))
    record = kernel.rollout([0.1, 0.2], steps=3)
    np.testing.assert_array_equal(record.t, [0, 1, 2, 3])
    expected = np.array([0.1, 0.2])
    for _ in range(3):
        expected = kernel(expected)
    assert same_bits(record.final["x"], expected)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"steps": -1, "dt": 0.1}, "`steps` must be a whole number from 0 on, not -1"),
        ({"steps": 1.5, "dt": 0.1}, "`steps` must be a whole number"),
        ({"steps": 2**63, "every": 2**63, "dt": 0.1}, "`steps` must be at most"),
        ({"steps": 5, "every": 0, "dt": 0.1}, "`every` must be a whole number from 1 on"),
        ({"steps": 5}, "`dt` is needed: `step` has an input `t`"),
        ({"steps": 5, "dt": np.nan}, "`dt` must be a finite number"),
        ({"steps": 5, "dt": "1"}, "`dt` must be a finite number, not '1'"),
        ({"steps": 5, "dt": 0.1, "t0": None}, "`t0` must be a finite number"),
        ({"steps": 5, "dt": 0.1, "sequences": {"w": [1]}}, "has no input .*w.* for a sequence"),
        ({"steps": 5, "dt": 0.1, "sequences": {"x": [1]}}, "`x` is a state"),
        ({"steps": 5, "dt": 0.1, "sequences": {"p": [1]}}, r"`p` must have shape \(5, 2, 2\) or"),
        ({"steps": 5, "dt": 0.1, "threads": 0}, "`threads` must be a positive whole number"),
    ],
)
def test_refuses(kernel, options, message):
    x, v, p = start(2)
    arguments = {"x": x, "v": v, "u": [0.0, 0.0], "p": p}
    for name in options.get("sequences", {}):
        arguments.pop(name, None)
    with pytest.raises(ValueError, match=message):
        kernel.rollout(**arguments, **options)


def test_refuses_a_function_without_feedback():
    x = ca.SX.sym("x", 2)
    kernel = compile(ca.Function("plain", [x], [2 * x], ["x"], ["y"]))
    with pytest.raises(ValueError, match="nothing to feed back"):
        kernel.rollout([0.0, 0.0], steps=3)


def test_records_go_where_out_says(kernel, same_bits):
    x, v, p = start(5)
    u, options = np.array([0.3, -0.2]), {"steps": 12, "every": 2, "dt": 0.01}
    expected = kernel.rollout(x, v, u, p, **options)
    out = {"x": np.full((5, 7, 3), np.nan), "energy": np.full((5, 6), np.nan)}
    record = kernel.rollout(x, v, u, p, **options, out=out)
    assert record["x"].base is out["x"] or record["x"] is out["x"]
    for name in ("x", "v", "a", "energy"):
        assert same_bits(record[name], expected[name])
    assert same_bits(out["x"], expected["x"])
    assert same_bits(out["energy"], expected["energy"])
    again = kernel.rollout(x + 1, v, u, p, **options, out=record)
    assert np.shares_memory(again["v"], record["v"])
    assert same_bits(out["x"], kernel.rollout(x + 1, v, u, p, **options)["x"])


def test_a_single_trajectory_is_recorded_without_a_batch_axis(kernel, same_bits):
    x, v, p = (part[0] for part in start(1))
    out = {"v": np.empty((4, 3))}
    record = kernel.rollout(x, v, np.zeros(2), p, steps=3, dt=0.01, out=out)
    assert same_bits(out["v"], kernel.rollout(x, v, np.zeros(2), p, steps=3, dt=0.01)["v"])
    assert np.shares_memory(record["v"], out["v"])


@pytest.mark.parametrize(
    ("out", "message"),
    [
        ({"y": np.empty(3)}, "`out` names `y`, but the records of `step` are"),
        ({"x": np.empty((4, 2))}, r"`out` for `x` must have shape \(4, 3\), not \(4, 2\)"),
        ({"x": np.empty((4, 3), np.float32)}, "must be an array of float64"),
        ({"x": np.empty((3, 4)).T}, "must be contiguous"),
        ({"x": np.broadcast_to(0.0, (4, 3))}, "read-only"),
        ([np.empty((4, 3))], "must be an earlier one or arrays by name, not list"),
    ],
)
def test_out_that_cannot_take_a_record_is_refused(kernel, out, message):
    x, v, p = (part[0] for part in start(1))
    with pytest.raises(ArgumentError, match=message):
        kernel.rollout(x, v, np.zeros(2), p, steps=3, dt=0.01, out=out)


def test_out_may_not_share_memory(kernel):
    x, v, p = (part[0] for part in start(1))
    both = np.empty((4, 3))
    with pytest.raises(ArgumentError, match="shares memory"):
        kernel.rollout(x, v, np.zeros(2), p, steps=3, dt=0.01, out={"x": both, "v": both})
