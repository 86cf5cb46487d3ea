"""Tasks within limits: strict order, limits kept, the strict law where none is active."""

import casadi as ca
import numpy as np
import pytest

from framefree.control.law import Timing
from framefree.control.references.frames import FramePath
from framefree.control.tasks import (
    FrameControl,
    JointControl,
    LimitedTaskControl,
    ProxQp,
    StrictPriority,
    TaskControl,
)
from framefree.control.tasks.bounds import EDGE, RESERVE, JointLimits
from framefree.gallery.machines.dual_arm import START_HELD, seven_joint_arm
from framefree.gallery.scenarios.cooperation.dual_arm_limits import robot, task_levels
from framefree.gallery.scenarios.cooperation.dual_arm_parts import CIRCLE
from framefree.geometry import Moments
from framefree.machine import Body, Continuous, Joint, Machine
from framefree.machine.actuators import motors
from framefree.motion.tree import Tree
from framefree.simulate import simulate


def at(reference, t):
    values = {name: np.array(ca.DM(value)) for name, value in reference.at(ca.SX(t)).items()}
    return {k: a.ravel() if a.shape[1] == 1 else a for k, a in values.items()}


def states(count, spread):
    rng = np.random.default_rng(2)
    for _ in range(count):
        yield START_HELD + spread * rng.normal(size=14), spread * rng.normal(size=14)


def strict_inputs(machine, levels, t):
    law = TaskControl(machine, levels, StrictPriority())
    x, v = ca.SX.sym("x", machine.nx), ca.SX.sym("v", machine.nv)
    u = law.control(ca.SX(t), x, v, CIRCLE.at(ca.SX(t)), ca.SX(0, 1)).u
    return ca.Function("strict", [x, v], [u])


@pytest.fixture(scope="module")
def strong():
    machine = robot(300.0)
    levels = task_levels(machine, 1000.0)
    return machine, levels, LimitedTaskControl(machine, levels, approach=1e3)


def test_without_active_limits_it_is_the_strict_law(strong):
    machine, levels, law = strong
    closed = strict_inputs(machine, levels, 0.1)
    for x, v in states(4, 1e-3):
        found = law.command(0.1, x, v, at(CIRCLE, 0.1), law.memory)
        u = np.array(closed(x, v)).ravel()
        assert np.abs(found.u - u).max() < 1e-8 * np.abs(u).max()
        assert found.signals["certificate"][0] < 1e-9
        assert found.signals["relaxed"][0] == 0
        assert np.all(found.signals["multiplier"][:28] == 0)


def test_levels_are_those_of_a_cascade():
    """With limits active: the same inputs, and each level misses as much, as ProxQP finds."""
    machine = robot(30.0)
    levels = task_levels(machine, 1000.0)
    law = LimitedTaskControl(machine, levels)
    other = LimitedTaskControl(machine, levels, ProxQp(1e-9))
    for x, v in states(4, 1e-2):
        one = law.command(0.1, x, v, at(CIRCLE, 0.1), law.memory)
        two = other.command(0.1, x, v, at(CIRCLE, 0.1), law.memory)
        if not two.signals["solved"][0]:
            continue
        assert np.abs(one.u - two.u).max() < 1e-4 * 30.0
        np.testing.assert_allclose(one.signals["missed"], two.signals["missed"], 1e-5, 1e-5)
        assert np.abs(one.u).max() <= 30.0 * (1 + 1e-9)
        assert one.signals["missed"][3] > 0.1, "the test must have something to limit"


def test_memory_changes_nothing_but_steps(strong):
    _, _, law = strong
    for x, v in states(3, 1e-2):
        cold = law.command(0.1, x, v, at(CIRCLE, 0.1), law.memory)
        warm = law.command(0.1, x, v, at(CIRCLE, 0.1), cold.memory)
        np.testing.assert_allclose(warm.u, cold.u, rtol=0, atol=1e-8 * np.abs(cold.u).max())
        assert warm.signals["steps"][0] <= cold.signals["steps"][0]


def test_limits_of_joints_are_kept():
    """Joints within their limits stay there, though the target is beyond; velocities too."""
    arm = seven_joint_arm(effort=np.inf)
    far = np.eye(4)
    far[:3, 3] = 0.2, -0.3, 0.2
    goal = FramePath("target", lambda t: ca.DM(far))
    x0 = np.array([0.0, -1.0, 0.0, 0.3, 0.0, 0.5, 0.0])
    lower, upper, speed = (
        np.array([getattr(joint, name)[0] for joint in arm.joints])
        for name in ("lower", "upper", "velocity_limit")
    )
    tasks = [[FrameControl("link_7_l", "target", 100.0)], [JointControl(arm, x0, Kp=100.0)]]
    found = {}
    for limits in (True, False):
        law = LimitedTaskControl(arm, tasks, joint_limits=limits)
        found[limits] = simulate(arm, law, goal, x0, duration=3.0, dt=0.005, control_dt=0.005)
    kept, free = found[True], found[False]
    margin = 1e-3
    assert (kept.x > lower - margin).all()
    assert (kept.x < upper + margin).all()
    assert (np.abs(kept.v) <= speed).all()
    outside = (free.x < lower).any() or (free.x > upper).any() or (np.abs(free.v) > speed).any()
    assert outside, "the test must have something to limit"
    assert kept["solved"].all()


def test_joints_outside_of_their_limits_come_back():
    """No faster than they may move, to where a joint stops: a share of a period's way inside."""
    arm, period = seven_joint_arm(effort=np.inf), 0.005
    x0 = np.array([0.0, 1.4, 0.0, 0.3, 0.0, 0.5, 0.0])
    law = LimitedTaskControl(arm, [[JointControl(arm, x0, Kp=100.0)]])
    run = simulate(arm, law, x0=x0, duration=2.0, dt=period, control_dt=period)
    upper, speed = arm.joints[1].upper[0], arm.joints[1].velocity_limit[0]
    stop = upper - EDGE * speed * period
    assert run.x[-1, 1] == pytest.approx(stop, abs=1e-3)
    assert run.x[:, 1].min() > stop - 1e-3
    assert -1.001 * speed < run.v[:, 1].min() < -0.9 * speed
    assert run["solved"].all()


def test_what_a_held_torque_adds_to_speeds_does_not_add_up():
    """A joint that is too fast is slowed down at once; one within its limit is approached."""
    arm = seven_joint_arm(effort=np.inf)
    law = LimitedTaskControl(arm, [[JointControl(arm, np.zeros(7), Kp=100.0)]])
    fast = law.timed(Timing(1e-3))
    speed = np.array([joint.velocity_limit[0] for joint in arm.joints])
    x, within, beyond = np.zeros(7), 0.9 * speed, 1.01 * speed
    for v, rates in ((within, (20.0, 20.0)), (beyond, (20.0, 500.0))):
        for one, rate in zip((law, fast), rates, strict=True):
            limits = JointLimits(one.approach, period=one.period)
            state = Tree(arm).at(ca.SX(x), ca.SX(v))
            most = np.array(ca.DM(limits.rows(arm, state)[2])).ravel()
            np.testing.assert_allclose(most, rate * ((1 - RESERVE) * speed - v), rtol=1e-9)


def test_one_continuous_joint():
    """A machine of one joint that turns on and on keeps its velocity limit, and its torque."""
    joint = Joint("hinge", Continuous("y"), "world", "rod", velocity_limit=0.628, effort_limit=5.0)
    rod = Body("rod", Moments.of_body(1.0, (0.1, 0, 0), 0.01 * np.eye(3)))
    machine = Machine((rod,), (joint,), actuators=motors((joint,)))
    law = LimitedTaskControl(
        machine, [[JointControl(machine, machine.neutral(), Kp=100.0, Kd=20.0)]]
    )
    x0 = machine.integrate(machine.neutral(), np.array([2.0]))
    run = simulate(machine, law, x0=x0, duration=5.0, dt=1e-3, control_dt=1e-3)
    assert 0.62 < np.abs(run.v).max() < 0.628 * (1 + 1e-3)
    assert np.abs(run.u).max() <= 5.0 * (1 + 1e-9)
    assert np.abs(machine.difference(machine.neutral(), run.x[-1])).max() < 1e-3
