"""Gains of the port laws over all bodies: Kd and Lambda as numbers, blocks and whole matrices."""

import numpy as np
import pytest
from port_formulas import Closed
from random_machines import evaluate, relative_error

import framefree as ff
from framefree.control.law import ControlError, Timing
from framefree.control.port import EndEffectorControl, PoseControl, VelocityControl, looped
from framefree.gallery.machines.chains import chain

N = 3
MACHINE = chain(N, masses=[1.0, 2.0, 0.5], radius=0.1)


def positive_definite(n, seed, scale=1.0):
    A = np.random.default_rng(seed).normal(size=(n, n))
    return scale * (A @ A.T / n + np.eye(n))


def blocks(*parts):
    whole = np.zeros((6 * len(parts), 6 * len(parts)))
    for i, part in enumerate(parts):
        whole[6 * i : 6 * i + 6, 6 * i : 6 * i + 6] = part
    return whole


def test_a_whole_Kd_brakes_every_body_by_the_errors_of_all():
    Kd = positive_definite(6 * N, 1, 4.0)
    alone = blocks(*(Kd[6 * i : 6 * i + 6, 6 * i : 6 * i + 6] for i in range(N)))
    found = []
    for damping in (Kd, alone):
        closed = Closed(PoseControl(MACHINE, damping=damping))
        _, stated, true, s, tau, _ = closed(np.random.default_rng(2))
        assert true == pytest.approx(stated, rel=1e-8)
        assert stated == pytest.approx(-s.ravel() @ damping @ s.ravel(), rel=1e-10)
        found.append((s.ravel(), tau.ravel()))
    (s, tau), (_, other) = found
    assert relative_error(tau - other, (alone - Kd) @ s) < 1e-9


def test_a_whole_Lambda_draws_every_body_by_the_errors_of_all():
    Lambda = positive_definite(6 * N, 3, 2.0)
    closed = Closed(PoseControl(MACHINE, damping=4.0, gain=Lambda))
    _, stated, true, s, *_ = closed(np.random.default_rng(4))
    assert true == pytest.approx(stated, rel=1e-8)
    eom = ff.equations(MACHINE, "maximal")
    x, nu = eom.functions["from_joints"](closed.x, closed.v)
    P = evaluate(eom.functions["projector"], x)
    poses = evaluate(eom.functions["body_pose"], x).reshape(-1, 4, 4)
    desired, errors = [], []
    for body, G in zip(MACHINE.bodies, poses, strict=True):
        Gd, twist = closed.given[f"{body.name}.pose"], closed.given[f"{body.name}.twist"]
        R, turn = G[:3, :3], Gd[:3, :3].T @ G[:3, :3]
        desired += [R.T @ Gd[:3, :3] @ twist[:3], R.T @ Gd[:3, :3] @ twist[3:]]
        sine = [turn[2, 1] - turn[1, 2], turn[0, 2] - turn[2, 0], turn[1, 0] - turn[0, 1]]
        errors += [R.T @ (G[:3, 3] - Gd[:3, 3]), np.array(sine) / 2]
    nu_r = P @ (np.concatenate(desired) - Lambda @ np.concatenate(errors))
    assert relative_error(np.asarray(nu).ravel() - s.ravel(), nu_r) < 1e-9


@pytest.mark.parametrize("name", ["damping", "gain"])
def test_shapes_that_mean_the_same_are_the_same(name):
    K = np.arange(1.0, 7.0)
    same = [
        K,
        np.diag(K),
        np.stack([np.diag(K)] * N),
        np.tile(K, N),
        blocks(*[np.diag(K)] * N),
        {"": K, "body2": np.diag(K)},
    ]
    for value in same:
        law = PoseControl(MACHINE, **{name: value})
        own = law.dampings if name == "damping" else law.gains.own
        assert not law.coupled
        assert np.array_equal(own, np.stack([np.diag(K)] * N))


@pytest.mark.parametrize(
    ("law", "options", "message"),
    [
        (
            VelocityControl,
            {"damping": np.eye(4)},
            r"`damping` must be .*\(18, 18\).*shape \(4, 4\)",
        ),
        (PoseControl, {"damping": [1.0, 2.0]}, r"`damping` must be .*shape \(2,\)"),
        (PoseControl, {"damping": [[1.0], [2.0, 3.0]]}, "rows of different lengths"),
        (PoseControl, {"gain": np.zeros((N, 6, 5))}, r"`gain` must be .*shape \(3, 6, 5\)"),
        (PoseControl, {"gain": -np.eye(6)}, "must be positive in every direction"),
        (
            PoseControl,
            {"gain": np.triu(np.ones((18, 18)))},
            "symmetric, got 1 in row 0, column 1 an",
        ),
        (PoseControl, {"damping": 1j * np.eye(6)}, "must be real numbers"),
        (PoseControl, {"rate": np.ones(3)}, r"`rate` .* one number, got shape \(3,\).* `gain`"),
        (PoseControl, {"gain": {"body1": 1.0}}, "none for body `body2`"),
        (PoseControl, {"gain": 1.0, "weights": {}}, "either `gain` or `weights`"),
        (EndEffectorControl, {"gain": np.eye(5)}, r"6 x 6, got shape \(5, 5\)"),
        (
            EndEffectorControl,
            {"gain": np.full((6, 6), np.nan)},
            "finite, got nan in row 0, column 0",
        ),
        (EndEffectorControl, {"avoidance": 3}, "`avoidance` must be an Avoidance, got 3"),
        (EndEffectorControl, {"rate": np.eye(2)}, r"3 x 3, got shape \(2, 2\)"),
        (EndEffectorControl, {"damping": np.ones((2, 6, 6))}, r"shape \(2, 6, 6\)"),
    ],
)
def test_wrong_shapes_are_told_with_what_would_be_right(law, options, message):
    with pytest.raises(ControlError, match=message):
        law(MACHINE, **options)


def test_native_loops_take_gains_by_body_and_leave_others_to_one_expression():
    machine = chain(5)
    shapes = {"pose": (4, 4), "twist": (6, 1), "acceleration": (6, 1)}
    shapes = {f"{b.name}.{k}": v for b in machine.bodies for k, v in shapes.items()}
    law = PoseControl(machine, gain={"": 2.0, "body3": np.arange(1.0, 7.0)})
    kernel, closed = looped(law, shapes), Closed(law)
    V, stated, _, _, u, _ = closed(np.random.default_rng(6))
    columns = [np.asarray(value).ravel("F") for value in closed.given.values()]
    tau, V_loop, rate_loop = kernel(closed.x, closed.v, *columns)
    assert relative_error(tau, u.ravel()) < 1e-10
    assert V_loop == pytest.approx(V, rel=1e-10)
    assert rate_loop == pytest.approx(stated, rel=1e-10)
    law = PoseControl(machine, damping=positive_definite(30, 7))
    with pytest.raises(ControlError, match="without blocks between bodies"):
        looped(law, shapes)
    long, native = chain(16), Timing(native=True)
    for gain, in_loops in ((2.0, True), (positive_definite(96, 8), False)):
        law = PoseControl(long, gain=gain)
        assert (law.timed(native) is law) != in_loops
