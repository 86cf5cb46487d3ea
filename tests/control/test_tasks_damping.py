"""Damping acts only where nothing else bounds what dependent rows ask for, and says by how much."""

import casadi as ca
import numpy as np
import pytest

from framefree.control import ControlError
from framefree.control.qp import HierarchyKernel
from framefree.control.references.frames import FramePath
from framefree.control.tasks import (
    FrameControl,
    JointControl,
    LimitedTaskControl,
    StrictPriority,
    TaskControl,
)
from framefree.gallery.machines.arms import revolute_chain
from framefree.gallery.machines.dual_arm import seven_joint_arm
from framefree.machine.actuators import motors
from framefree.simulate import simulate

THRESHOLD = 0.02


@pytest.fixture(scope="module")
def kernel():
    return HierarchyKernel(5, (3, 4), threshold=THRESHOLD)


def nearly_dependent(sigma, seed=3):
    """Three rows, the least singular value of which is `sigma`, and one below them."""
    rng = np.random.default_rng(seed)
    U, V = (np.linalg.qr(rng.normal(size=(k, k)))[0] for k in (3, 5))
    Y = np.vstack([U @ np.diag([1.5, 1.0, sigma]) @ V[:3], rng.normal(size=5)])
    return Y, rng.normal(size=4), 0.3 * rng.normal(size=5)


def test_what_leads_not_far_from_rest_is_exact(kernel):
    for sigma in (1.0, 1e-2, 1e-4, 1e-6):
        Y, b, rest = nearly_dependent(sigma)
        strict = kernel(Y, b, b, rest=rest, farthest=1e100)
        far = np.linalg.norm(np.linalg.lstsq(Y[:3], b[:3] - Y[:3] @ rest)[0])
        kept = kernel(Y, b, b, rest=rest, farthest=1.001 * far)
        assert np.array_equal(kept.z, strict.z)
        assert np.all(kept.damped == 0)
        assert np.abs(Y @ strict.z - b).max() < 1e-12 / sigma


@pytest.mark.parametrize("sigma", [1e-2, 1e-3, 1e-5, 1e-9])
def test_the_stated_error_bounds_what_damping_adds(kernel, sigma):
    worst = 0.0
    for seed in range(20):
        Y, b, rest = nearly_dependent(sigma, seed)
        found = kernel(Y, b, b, rest=rest, farthest=1.0)
        asked = np.linalg.norm(Y[:3] @ rest - b[:3])
        assert 0 < found.damped[0] <= 1
        missed = np.linalg.norm(Y[:3] @ found.z - b[:3])
        assert missed == pytest.approx(found.lengths[0], rel=1e-9)
        assert missed <= found.damped[0] * asked * (1 + 1e-9)
        worst = max(worst, missed / (found.damped[0] * asked))
        assert found.errors.max() < 1e-9
        # Without it z would be about asked / sigma; the part along the lost direction is bounded.
        along = np.linalg.svd(Y[:3])[2][2]
        assert abs(along @ (found.z - rest)) <= max(1.0, asked / (THRESHOLD * 0.5))
    assert worst > 0.1, "the bound must mean something"


def test_damping_fades_in(kernel):
    """From nothing at the stated distance, without a jump."""
    Y, b, rest = nearly_dependent(1e-2)
    far = np.linalg.norm(np.linalg.lstsq(Y[:3], b[:3] - Y[:3] @ rest)[0])
    strict = kernel(Y, b, b, rest=rest, farthest=2 * far)
    steps = [kernel(Y, b, b, rest=rest, farthest=far * (1 - e)).z for e in (1e-4, 1e-3, 1e-2)]
    away = [np.linalg.norm(z - strict.z) for z in steps]
    assert 0 < away[0] < away[1] < away[2]
    assert away[0] < 1e-5 * far


def test_no_frame_and_no_unit_is_preferred(kernel):
    """Turned rows, turned variables and rows in other units have the turned solution."""
    rng = np.random.default_rng(0)
    Y, b, rest = nearly_dependent(1e-3)
    plain = kernel(Y, b, b, rest=rest, farthest=1.0)
    assert plain.damped[0] > 0.5
    R, S = (np.linalg.qr(rng.normal(size=(k, k)))[0] for k in (3, 5))
    turned, wanted = Y.copy(), b.copy()
    turned[:3], wanted[:3] = R @ Y[:3], R @ b[:3]
    for scale in (1.0, 1e3):
        result = kernel(
            scale * turned @ S, scale * wanted, scale * wanted, rest=rest @ S, farthest=1.0
        )
        np.testing.assert_allclose(S @ result.z, plain.z, rtol=1e-9, atol=1e-9)
        assert result.damped[0] == pytest.approx(plain.damped[0], rel=1e-6)


def stretched(bend):
    """An arm without any limits, nearly stretched."""
    chain = revolute_chain(3)
    arm = chain.attach(*motors(chain.joints))
    return arm, np.full(3, bend)


def at(reference, t):
    values = {name: np.array(ca.DM(value)) for name, value in reference.at(ca.SX(t)).items()}
    return {k: a.ravel() if a.shape[1] == 1 else a for k, a in values.items()}


@pytest.mark.parametrize("bend", [0.1, 1e-2, 1e-3])
@pytest.mark.parametrize("limited", [False, True])
def test_near_singular_positions_it_is_the_strict_law(bend, limited):
    """The seven joints of an arm nearly stretched, asked for an acceleration along the arm."""
    arm = seven_joint_arm(effort=np.inf)
    x = np.array([0.1, 0.5, 0.2, bend, 0.1, bend, 0.3])
    v = 0.01 * np.arange(7)
    pose = np.eye(4)
    pose[:3, 3] = 0.3, 0.2, 0.9
    goal = FramePath("target", lambda t: ca.DM(pose))
    tasks = [[FrameControl("link_7_l", "target", 1e-2)], [JointControl(arm, x, Kp=1.0)]]
    law = LimitedTaskControl(arm, tasks, joint_limits=limited, approach=1e3)
    found = law.command(0.0, x, v, at(goal, 0.0), law.memory)
    strict = TaskControl(arm, tasks, StrictPriority())
    s_x, s_v = ca.SX.sym("x", 7), ca.SX.sym("v", 7)
    u = strict.control(ca.SX(0), s_x, s_v, goal.at(ca.SX(0)), ca.SX(0, 1)).u
    u = np.array(ca.Function("u", [s_x, s_v], [u])(x, v)).ravel()
    assert np.abs(found.u - u).max() < 1e-8 * np.abs(u).max()
    assert np.all(found.signals["damped"] == 0)


def reach(arm):
    pose = np.eye(4)
    pose[:3, 3] = 10.0, 0.0, 1.0
    tip = arm.bodies[-1].name
    goal = FramePath("target", lambda t: ca.DM(pose))
    rows = [FrameControl(tip, "target", 25.0, only="position")]
    return goal, [rows, [JointControl(arm, Kd=2.0)]]


def test_out_of_reach_without_limits_joints_come_to_rest():
    arm, x0 = stretched(0.3)
    goal, levels = reach(arm)
    law = LimitedTaskControl(arm, levels)
    run = simulate(arm, law, goal, x0, duration=4.0, dt=1e-3, control_dt=1e-3)
    assert np.isfinite(run.v).all()
    assert run["solved"].all()
    assert np.abs(run.v).max() < 100.0
    assert np.abs(run.v[run.t > 3.0]).max() < 1e-2


def test_exactly_singular():
    arm, x0 = stretched(0.0)
    goal, levels = reach(arm)
    law = LimitedTaskControl(arm, levels)
    found = law.command(0.0, x0, np.zeros(3), at(goal, 0.0), law.memory)
    assert np.isfinite(found.u).all()
    assert found.signals["solved"][0] == 1
    assert found.signals["certificate"][0] < 1e-9


def test_bad_thresholds_are_refused():
    arm, _ = stretched(0.1)
    for value in (-1.0, np.nan):
        with pytest.raises(ControlError, match="`damped_above` must not be negative"):
            LimitedTaskControl(arm, [[JointControl(arm, Kd=1.0)]], damped_above=value)
