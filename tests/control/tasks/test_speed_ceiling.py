"""Joints without any limits keep below a speed, singular, out of reach or in conflict."""

import casadi as ca
import numpy as np
import pytest

from framefree.control import ControlError
from framefree.control.law import Timing
from framefree.control.references.frames import FramePath
from framefree.control.tasks import (
    FrameControl,
    JointControl,
    Kkt,
    LimitedTaskControl,
    StrictPriority,
    TaskControl,
    UdwadiaKalaba,
    Weighted,
)
from framefree.control.tasks.ceiling import BRAKING, FASTEST
from framefree.control.tasks.report import numbers
from framefree.geometry import Moments
from framefree.machine import Body, Frame, Joint, Machine, Revolute
from framefree.machine.actuators import motors
from framefree.simulate import simulate

TIP = "tip"


def random_arm(seed, axes=None):
    """An arm with random axes and inertias, without limits."""
    rng = np.random.default_rng(seed)
    bodies, joints, before = [], [], "world"
    for k in range(3):
        inertia = np.diag(rng.uniform(0.02, 0.03, 3))
        bodies.append(Body(f"link{k}", Moments.of_body(rng.uniform(0.5, 3), (0, 0, 0.1), inertia)))
        axis = rng.normal(size=3) if axes is None else axes[k]
        pose = np.eye(4)
        pose[:3, 3] = (0, 0, 0.3) if k else (0, 0, 0)
        joints.append(Joint(f"joint{k}", Revolute(axis), before, f"link{k}", pose))
        before = f"link{k}"
    arm = Machine(tuple(bodies), tuple(joints), (Frame("tip", before, (0, 0, 0.3)),))
    return arm.attach(*motors(arm.joints))


def still(*position):
    pose = np.eye(4)
    pose[:3, 3] = position
    return FramePath("target", lambda t: ca.DM(pose))


def beyond_and_back(t):
    """A target that goes through the stretched arm and comes back."""
    pose = ca.SX.eye(4)
    pose[0, 3], pose[2, 3] = 0.2 + 0.8 * ca.sin(3 * t), 0.3
    return pose


CASES = {
    "out of reach": (still(3.0, 0.5, 0.2), [FrameControl(TIP, "target", 50.0, only="position")]),
    "through": (
        FramePath("target", beyond_and_back),
        [FrameControl(TIP, "target", 100.0, only="position")],
    ),
    "six rows of three joints": (still(0.3, 0.1, 0.3), [FrameControl(TIP, "target", 50.0)]),
    "conflict": (
        still(0.5, 0.1, 0.3),
        [
            FrameControl(TIP, "target", 50.0, only="position"),
            FrameControl("link1", "target", 50.0, only="position", name="other"),
        ],
    ),
}
LAWS = {
    "limited": lambda arm, levels: LimitedTaskControl(arm, levels, joint_limits=False),
    "strict": lambda arm, levels: TaskControl(arm, levels, StrictPriority()),
    "equal": lambda arm, levels: TaskControl(arm, levels, UdwadiaKalaba()),
    "kkt": lambda arm, levels: TaskControl(arm, levels, Kkt()),
    "weighted": lambda arm, levels: TaskControl(arm, levels, Weighted()),
}


def keeps_below(case, law, seed, duration):
    arm = random_arm(seed)
    goal, tasks = CASES[case]
    levels = [[task] for task in tasks] + [[JointControl(arm, Kd=2.0)]]
    run = simulate(
        arm,
        LAWS[law](arm, levels),
        goal,
        np.full(3, 0.2),
        duration=duration,
        dt=2e-3,
        control_dt=2e-3,
    )
    assert np.isfinite(run.x).all()
    # Torques are held over a control period, so that speeds may pass by a little.
    assert np.abs(run.v).max() < 1.2 * FASTEST
    assert run["damped"].min() >= 0
    assert run["damped"].max() <= 1
    return run


@pytest.mark.parametrize("law", ["limited", "strict"])
def test_out_of_reach_without_any_limits(law):
    run = keeps_below("out of reach", law, 0, 2.0)
    assert run["damped"].max() > 0


@pytest.mark.slow
@pytest.mark.parametrize("law", LAWS)
@pytest.mark.parametrize("case", CASES)
def test_bounded_on_random_machines(case, law):
    for seed in range(4):
        keeps_below(case, law, seed, 3.0)


def commands(law, x, v, goal):
    """Return u, signals and the acceleration at a state."""
    made = law.control(ca.SX(0), ca.DM(x), ca.DM(v), goal.at(ca.SX(0)), ca.SX(0, 1))
    values = {"u": made.u, **made.signals}
    return {name: np.array(ca.evalf(ca.SX(value))).ravel() for name, value in values.items()}


@pytest.mark.slow
def test_away_from_singular_positions_nothing_changes():
    arm, goal = random_arm(1), still(0.2, 0.1, 0.5)
    levels = [[FrameControl(TIP, "target", 50.0, only="position")], [JointControl(arm, Kd=2.0)]]
    exact = TaskControl(arm, levels, StrictPriority())
    run_law = exact.timed(Timing(1e-3))
    assert run_law.fastest == FASTEST
    rng, seen = np.random.default_rng(0), 0
    for _ in range(12):
        x, v = rng.uniform(-2, 2, 3), rng.normal(size=3)
        a, b = commands(exact, x, v, goal), commands(run_law, x, v, goal)
        if np.all(b["damped"] == 0):
            assert np.array_equal(a["u"], b["u"])
            seen += 1
    assert seen >= 9


def test_the_stated_share_bounds_what_is_missed():
    """Near a stretched arm, and for tasks below others."""
    arm, goal = random_arm(2, "zyy"), still(4.0, 1.0, 0.5)
    levels = [
        [FrameControl(TIP, "target", 50.0, only="position")],
        [FrameControl("link1", "target", 50.0, only="position", name="other")],
    ]
    law = TaskControl(arm, levels, StrictPriority(), period=1e-3)
    rng, worst = np.random.default_rng(0), 0.0
    for bend in (0.1, 1e-2, 1e-3, 1e-5):
        x, v = np.array([0.2, 0.7, bend]), 0.1 * rng.normal(size=3)
        made = commands(law, x, v, goal)
        missed = np.linalg.norm(made["control.residual"])
        A, b = numbers(law, x, v, goal, 0.0).levels[0]
        # What is asked for where joints come to rest, at the slowest and at the fastest rate.
        asked = max(np.linalg.norm(b + k * A @ v) for k in (BRAKING, 500.0))
        strict = commands(TaskControl(arm, levels, StrictPriority()), x, v, goal)
        least = np.linalg.norm(strict["control.residual"])
        assert missed <= made["damped"][0] * asked * (1 + 1e-9) + least + 1e-6
        worst = max(worst, made["damped"][0])
    assert worst > 0.5


def test_refusals():
    arm = random_arm(0)
    for make in (TaskControl, LimitedTaskControl):
        for value in (0.0, -1.0, np.nan):
            with pytest.raises(ControlError, match="`fastest` must be positive"):
                make(arm, [[JointControl(arm, Kd=1.0)]], fastest=value)
