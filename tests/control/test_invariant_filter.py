"""The invariant filter: consistent, the same in every world frame, right about late poses."""

from dataclasses import replace
from functools import lru_cache

import casadi as ca
import numpy as np
import pytest
from scipy.linalg import expm
from scipy.stats import chi2

from framefree.control.estimation import InvariantFilter, Reading
from framefree.control.law import ControlError
from framefree.gallery import MACHINES
from framefree.gallery.machines.multicopters import quadcopter
from framefree.geometry import batch, quaternion, se3
from framefree.kernel import compile
from framefree.machine import Frame

PERIOD = 0.01
SEEDS = 200
NUMBERS = {
    "accelerometer": 0.1,
    "gyroscope": 0.01,
    "accelerometer_walk": 0.01,
    "gyroscope_walk": 0.001,
    "position": 3e-3,
    "angle": 8e-3,
    "first": (0.05, 0.1, 0.03, 0.02, 0.2),
}


def skew(w):
    K = np.zeros((*w.shape[:-1], 3, 3))
    for i, j, k in ((2, 1, 0), (0, 2, 1), (1, 0, 2)):
        K[..., i, j], K[..., j, i] = w[..., k], -w[..., k]
    return K


def rotations(w):
    """Return exp of rotation vectors (..., 3)."""
    angle, K = np.maximum(np.linalg.norm(w, axis=-1), 1e-12)[..., None, None], skew(w)
    return np.eye(3) + np.sin(angle) / angle * K + (1 - np.cos(angle)) / angle**2 * K @ K


def jacobians(w):
    """Return the left Jacobians of rotation vectors (..., 3): the integral of exp(s w)."""
    angle, K = np.maximum(np.linalg.norm(w, axis=-1), 1e-3)[..., None, None], skew(w)
    # Below 1e-3 rad the next term of either series is 1e-7.
    once, twice = (1 - np.cos(angle)) / angle**2, (angle - np.sin(angle)) / angle**3
    return np.eye(3) + once * K + twice * K @ K


def turned(wxyz, w):
    """Return quaternions turned by rotation vectors (n, 3), in their own axes."""
    angle = np.maximum(np.linalg.norm(w, axis=-1), 1e-12)[:, None]
    c, s = np.cos(angle / 2), np.sin(angle / 2) / angle * w
    q0, q = wxyz[:1], wxyz[1:]
    return np.hstack([q0 * c - (s @ q)[:, None], q0 * s + c * q + np.cross(q, s)])


@lru_cache
def flight(steps, gravity=(0.0, 0.0, -9.81)):
    """Return R, v, p and what an ideal IMU says at every period of a lively flight."""
    fine = 20
    t = np.arange(steps * fine + 1) * PERIOD / fine
    middle = t[:-1] + PERIOD / fine / 2

    def rate(t):
        return np.stack([1.5 * np.sin(2 * t), 2 * np.cos(1.3 * t), 1 + np.sin(t)], axis=-1)

    R = [np.eye(3)]
    for turn in rotations(rate(middle) * PERIOD / fine):
        R.append(R[-1] @ turn)
    R = np.array(R)[::fine]
    t = t[::fine]
    wave, phase = np.array([1.0, 0.7, 0.4]), np.array([0.0, 1.0, 2.0])
    angle = t[:, None] * (1 + wave) + phase
    p, v = wave * np.sin(angle), wave * (1 + wave) * np.cos(angle)
    a = -wave * (1 + wave) ** 2 * np.sin(angle) - np.array(gravity)
    imu = np.hstack([np.einsum("nji,nj->ni", R, a), rate(t)])
    return R, v, p, imu


@lru_cache
def kernels(delay=0, gravity=None, **numbers):
    """Return a filter, its compiled update and its compiled unpacking."""
    machine = quadcopter()
    if gravity is not None:
        machine = replace(machine, gravity=gravity)
    chosen = InvariantFilter(machine, delay=delay, **{**NUMBERS, **numbers})
    size = int(chosen.first_memory(ca.SX.sym("x", 7), ca.SX.sym("v", 6)).shape[0])
    memory, imu, pose = (ca.SX.sym(n, k) for n, k in (("m", size), ("imu", 6), ("pose", 7)))
    fresh = ca.SX.sym("fresh")
    readings = {"imu": Reading(imu), "pose": Reading(pose, fresh)}
    told = chosen.update(memory, readings, PERIOD)
    inputs = [memory, imu, pose, fresh]
    names = ["memory", "imu", "pose", "fresh"]
    outputs = [told.memory, told.x["base"], told.v["base"]]
    update = compile(ca.Function("update", inputs, outputs, names, ["next", "x", "v"]))
    state = chosen.unpacked(memory)[1]
    parts = ca.Function("parts", [memory], [ca.densify(ca.SX(part)) for part in state])
    return chosen, update, compile(parts)


def quaternion_of(R):
    return np.array(quaternion.from_rotation(ca.DM(R))).ravel()


def first(chosen, R, v, p):
    """Return the first memory of a filter at a pose and a velocity in the world."""
    x = np.concatenate([p, quaternion_of(R)])
    twist = np.concatenate([R.T @ v, np.zeros(3)])
    return np.array(ca.evalf(chosen.first_memory(ca.DM(x), ca.DM(twist)))).ravel()


def moved(R, v, p, xi):
    """Return X exp(xi) for many xi = (phi, nu, rho)."""
    J = jacobians(xi[:, :3])
    return (
        R @ rotations(xi[:, :3]),
        v + np.einsum("ij,njk,nk->ni", R, J, xi[:, 3:6]),
        p + np.einsum("ij,njk,nk->ni", R, J, xi[:, 6:9]),
    )


def errors(parts, R, v, p, gyroscope_bias, accelerometer_bias):
    """Return xi and beta (n, 15) of estimates against the truth, X = X_est exp(xi)."""
    wxyz, v_est, p_est, b_w, b_a, _ = parts
    R_est = batch.rotation(wxyz)
    E = np.einsum("nji,jk->nik", R_est, R)
    phi = np.stack([E[:, 2, 1] - E[:, 1, 2], E[:, 0, 2] - E[:, 2, 0], E[:, 1, 0] - E[:, 0, 1]], 1)
    sine = np.linalg.norm(phi, axis=1, keepdims=True) / 2
    phi = phi / 2 * np.arcsin(sine) / sine
    J = jacobians(phi)
    off = [np.einsum("nji,nj->ni", R_est, d) for d in (v - v_est, p - p_est)]
    nu, rho = (np.linalg.solve(J, d[..., None])[..., 0] for d in off)
    return np.hstack([phi, nu, rho, gyroscope_bias - b_w, accelerometer_bias - b_a])


def campaign(steps=150, every=5, delay=3, believed=1.0):
    """Fly many filters with other noise each; return their normalised squares at the end.

    `believed` is the share of the true deviations of readings that the filters are told.
    """
    told = {k: believed * NUMBERS[k] for k in ("accelerometer", "gyroscope", "position", "angle")}
    chosen, update, unpack = kernels(delay=delay, **told)
    R, v, p, imu = flight(steps)
    rng = np.random.default_rng(3)
    scale = np.repeat(NUMBERS["first"], 3)
    off = rng.normal(size=(SEEDS, 15)) * scale
    # The filter starts where X = X_est exp(xi): X_est = X exp(-xi).
    starts = zip(*moved(R[0], v[0], p[0], -off[:, :9]), strict=True)
    memory = np.stack([first(chosen, *start) for start in starts])
    bias_w, bias_a = off[:, 9:12], off[:, 12:15]
    for k in range(steps + 1):
        noise = rng.normal(size=(SEEDS, 6)) * np.repeat([0.1, 0.01], 3)
        reading = imu[k] + noise + np.hstack([bias_a, bias_w])
        late = max(k - delay, 0)
        twist = rng.normal(size=(SEEDS, 6)) * np.repeat([3e-3, 8e-3], 3)
        along = np.einsum("ij,njk,nk->ni", R[late], jacobians(twist[:, 3:]), twist[:, :3])
        pose = np.hstack([p[late] + along, turned(quaternion_of(R[late]), twist[:, 3:])])
        fresh = np.full((SEEDS, 1), float(k >= delay and late % every == 0))
        memory, _, _ = update(memory=memory, imu=reading, pose=pose, fresh=fresh)
        # Biases wander as the filter takes them to.
        walk = np.sqrt(PERIOD)
        bias_w = bias_w + 0.001 * walk * rng.normal(size=bias_w.shape)
        bias_a = bias_a + 0.01 * walk * rng.normal(size=bias_a.shape)
    parts = unpack(memory)
    at = steps - delay
    e = errors(parts, R[at], v[at], p[at], bias_w, bias_a)
    return e, np.asarray(parts[-1])


def normalised(e, P, which):
    block = P[:, which][:, :, which]
    return np.einsum("ni,nij,nj->n", e[:, which], np.linalg.inv(block), e[:, which])


@pytest.mark.parametrize(
    "which", [list(range(15)), [0, 1, 2], [3, 4, 5], [6, 7, 8], [9, 10, 11], [12, 13, 14]]
)
def test_errors_are_as_large_as_the_covariance_says(which):
    """The sum of normalised squares over 200 seeds is chi-square: within its 99.9 percent."""
    total = normalised(*flown(1.0), which).sum()
    low, high = chi2.ppf([5e-4, 1 - 5e-4], SEEDS * len(which))
    assert low < total < high


def test_a_filter_that_believes_too_much_is_found():
    total = normalised(*flown(0.5), list(range(15))).sum()
    assert total > 1.3 * chi2.ppf(1 - 5e-4, SEEDS * 15)


@lru_cache
def flown(believed):
    return campaign(believed=believed)


# ---------------------------------------------------------------------- frames and delay


def followed(chosen, update, readings, memory):
    """Return x and v of a filter over rows of (imu, pose, fresh)."""
    rows = []
    for imu, pose, fresh in readings:
        memory, x, v = update(memory=memory, imu=imu, pose=pose, fresh=[float(fresh)])
        rows.append(np.concatenate([x, v]))
    return np.array(rows), memory


def noisy_readings(steps, every, delay, seed=0):
    R, _, p, imu = flight(steps)
    rng = np.random.default_rng(seed)
    rows = []
    for k in range(steps + 1):
        late = max(k - delay, 0)
        twist = rng.normal(size=(1, 6)) * 1e-2
        pose = np.concatenate(
            [p[late] + twist[0, :3], turned(quaternion_of(R[late]), twist[:, 3:])[0]]
        )
        fresh = k >= delay and late % every == 0
        rows.append((imu[k] + 0.05 * rng.normal(size=6), pose, fresh))
    return rows


def test_a_turn_of_the_world_turns_the_estimate_and_nothing_else():
    """Start, poses and gravity seen from another frame: the same estimate, seen from there."""
    rows = noisy_readings(60, 5, 3)
    G = np.array(se3.exp(ca.DM([0.4, -1.0, 2.0, 0.7, -1.1, 1.9])))
    Q, shift = G[:3, :3], G[:3, 3]
    R, v, p, _ = flight(60)
    told = []
    for turn in (False, True):
        gravity = tuple(Q @ [0, 0, -9.81]) if turn else None
        chosen, update, unpack = kernels(delay=3, gravity=gravity)
        seen = rows
        start = R[0], v[0] + 0.1, p[0] - 0.05
        if turn:
            wxyz = quaternion_of(Q)
            seen = []
            for imu, pose, fresh in rows:
                there = np.array(quaternion.product(ca.DM(wxyz), ca.DM(pose[3:]))).ravel()
                seen.append((imu, np.concatenate([Q @ pose[:3] + shift, there]), fresh))
            start = Q @ start[0], Q @ start[1], Q @ start[2] + shift
        states, memory = followed(chosen, update, seen, first(chosen, *start))
        told.append((states, [np.asarray(part) for part in unpack(memory)]))
    (here, mine), (there, theirs) = told
    assert np.abs(here[:, :3] @ Q.T + shift - there[:, :3]).max() < 1e-10
    assert np.abs(Q @ batch.rotation(here[:, 3:7]) - batch.rotation(there[:, 3:7])).max() < 1e-10
    assert np.abs(here[:, 7:] - there[:, 7:]).max() < 1e-10  # the twist is the body's own
    for name, a, b in zip(("gyroscope", "accelerometer", "P"), mine[3:], theirs[3:], strict=True):
        assert np.abs(a - b).max() < 1e-10, name


def test_late_poses_are_used_where_they_belong():
    """When a pose has just arrived the estimate is that of a filter that got it in time.

    In between, no pose is on its way: both have moved on by the same samples.
    """
    steps, every, delay = 60, 12, 7
    rows = noisy_readings(steps, every, delay)
    R, v, p, _ = flight(steps)
    late, update_late, _ = kernels(delay=delay)
    prompt, update_prompt, _ = kernels(delay=0)
    in_time = [
        (imu, rows[min(k + delay, steps)][1], k % every == 0) for k, (imu, _, _) in enumerate(rows)
    ]
    a, _ = followed(late, update_late, rows, first(late, R[0], v[0], p[0]))
    b, _ = followed(prompt, update_prompt, in_time, first(prompt, R[0], v[0], p[0]))
    compared = [k for k in range(steps + 1) if k % every >= delay]
    assert len(compared) > 20
    assert np.abs(a[compared, :10] - b[compared, :10]).max() < 1e-9
    between = [k for k in range(12, steps + 1) if k % every < delay]
    assert np.abs(a[between, :3] - b[between, :3]).max() > 1e-3  # it did not know yet


def test_without_noise_the_flight_is_followed():
    """Exact samples and a few exact poses: what is left is the rule between two samples."""
    steps = 100
    R, v, p, imu = flight(steps)
    chosen, update, _ = kernels()
    poses = [np.concatenate([p[k], quaternion_of(R[k])]) for k in range(steps + 1)]
    rows = [(imu[k], poses[k], k % 10 == 0) for k in range(steps + 1)]
    told, _ = followed(chosen, update, rows, first(chosen, R[0], v[0], p[0]))
    assert np.abs(told[:, :3] - p).max() < 2e-4
    assert np.abs(batch.rotation(told[:, 3:7]) - R).max() < 2e-4
    world = np.einsum("nij,nj->ni", R, told[:, 7:10])
    assert np.abs(world - v).max() < 5e-3


def test_an_imu_off_the_middle_tells_the_same():
    """The same flight told by an IMU on an arm: the body's state comes out."""
    machine = quadcopter()
    machine = replace(
        machine,
        frames=(*machine.frames, Frame("arm_tip", "body", (0.1, -0.05, 0.02, 0.6, 0.8, 0, 0))),
    )
    chosen = InvariantFilter(machine, imu_frame="arm_tip", **NUMBERS)
    rng = np.random.default_rng(0)
    x, v = machine.random(rng), rng.normal(size=6)
    memory = chosen.first_memory(ca.DM(x), ca.DM(v))
    # In no time: the gyroscope in the tip's axes, and the state comes back.
    to_tip = np.array(se3.adjoint(se3.inverse(ca.DM(machine.frame("arm_tip").pose))))
    gyroscope = (to_tip @ v)[3:]
    readings = {
        "imu": Reading(ca.DM([0, 0, 0, *gyroscope])),
        "pose": Reading(ca.DM(x), ca.DM(0)),
    }
    told = chosen.update(memory, readings, PERIOD)
    for name, value in (("x", x), ("v", v)):
        found = np.array(ca.evalf(ca.densify(ca.DM(getattr(told, name)["base"])))).ravel()
        sign = np.sign(found[3] * value[3]) if name == "x" else 1.0
        assert np.allclose(found[:3], value[:3], atol=1e-12)
        assert np.allclose(sign * found[3:], value[3:], atol=1e-12)


def test_refused():
    with pytest.raises(ControlError, match="one free joint to the world, has 0"):
        InvariantFilter(MACHINES["iiwa"]())
    with pytest.raises(ControlError, match="`delay` must be a whole number"):
        InvariantFilter(quadcopter(), delay=-1)
    with pytest.raises(ControlError, match="`gyroscope` must be positive"):
        InvariantFilter(quadcopter(), gyroscope=0.0)
    with pytest.raises(ControlError, match="five deviations"):
        InvariantFilter(quadcopter(), first=(1.0,))


def test_covariance_is_that_of_the_exponential_of_the_error_equations():
    """Against expm of phi' = -w x phi - beta_w, nu' = ..., and the equations of Kalman at once."""
    chosen, update, unpack = kernels()
    rng = np.random.default_rng(8)
    root = rng.normal(size=(15, 15)) * np.repeat(NUMBERS["first"], 3)[:, None]
    P = root @ root.T
    memory = np.array(ca.evalf(chosen.first_memory(ca.DM([0, 0, 0, 1, 0, 0, 0]), ca.DM(6, 1))))
    memory = memory.ravel()
    memory[0] = 1.0
    memory[17:137] = np.concatenate([P[: k + 1, k] for k in range(15)])
    sample = np.array([1.0, -2.0, 9.0, 3.0, -2.0, 1.0])
    memory[137:143] = sample
    W, A, eye = skew(sample[3:]), skew(sample[:3]), np.eye(3)
    F = np.zeros((15, 15))
    F[:3, :3] = F[3:6, 3:6] = F[6:9, 6:9] = -W
    F[3:6, :3], F[6:9, 3:6], F[:3, 9:12], F[3:6, 12:] = -A, eye, -eye, -eye
    names = ("gyroscope", "accelerometer", "gyroscope_walk", "accelerometer_walk")
    gyroscope, accelerometer, *walks = (NUMBERS[name] for name in names)
    Q = [gyroscope * PERIOD, accelerometer * PERIOD, 0, *(np.sqrt(PERIOD) * w for w in walks)]
    Phi = expm(F * PERIOD)
    wanted = Phi @ P @ Phi.T + np.diag(np.repeat(Q, 3) ** 2)
    pose = np.array([0.01, 0.02, -0.01, 1, 0, 0, 0])
    after = unpack(update(memory, sample, pose, 0.0)[0])[-1]
    assert np.abs(after - wanted).max() < 1e-6 * np.abs(wanted).max()

    H = np.zeros((6, 15))
    H[:3, 6:9] = H[3:, :3] = eye
    noise = np.diag(np.repeat([NUMBERS["position"], NUMBERS["angle"]], 3) ** 2)
    gain = after @ H.T @ np.linalg.inv(H @ after @ H.T + noise)
    corrected = unpack(update(memory, sample, pose, 1.0)[0])[-1]
    np.testing.assert_allclose(corrected, after - gain @ H @ after, rtol=0, atol=1e-12)
