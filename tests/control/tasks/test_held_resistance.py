"""Motors make up for damping and friction that change while their torques are held."""

import casadi as ca
import numpy as np
import pytest

from framefree.control.references import FramePath
from framefree.control.tasks import (
    FrameControl,
    JointControl,
    LimitedTaskControl,
    TaskControl,
)
from framefree.geometry import Moments
from framefree.machine import Body, Frame, Joint, Machine, Revolute
from framefree.machine.actuators import motors
from framefree.simulate import simulate

H = 1e-3


def arm(count=1, **more):
    """An arm with links of 5e-4 kg m^2, as in the wrist of a small robot."""
    bodies, joints, before = [], [], "world"
    for k in range(count):
        bodies.append(Body(f"link{k}", Moments.of_body(0.2, (0.05, 0, 0), 1e-4 * np.eye(3))))
        pose = np.eye(4)
        pose[0, 3] = 0.1 if k else 0.0
        joint = Revolute("z" if k % 2 == 0 else "y")
        joints.append(Joint(f"joint{k}", joint, before, f"link{k}", pose, **more))
        before = f"link{k}"
    machine = Machine(tuple(bodies), tuple(joints), (Frame("tip", before, (0.1, 0, 0)),))
    return machine.attach(*motors(machine.joints))


def one_period(machine, v, posture, law=TaskControl):
    """Change of speed over one control period, and the one that is asked for."""
    task = JointControl(machine, posture, Kp=400.0, Kd=40.0)
    run = simulate(
        machine, law(machine, [[task]]), None, np.zeros(machine.nv), v, duration=H, dt=H / 200,
        control_dt=H, integrator="rk4", every=200,
    )  # fmt: skip
    asked = 400.0 * np.asarray(posture) - 40.0 * np.asarray(v)
    return run.v[-1] - run.v[0], H * asked


@pytest.mark.parametrize("damping", [0.01, 1.0, 20.0])
@pytest.mark.parametrize("law", [TaskControl, LimitedTaskControl])
def test_viscous_damping_is_made_up_for_exactly(law, damping):
    """h damping / inertia is up to 33: without it a joint gets 3 percent of what is asked for."""
    got, asked = one_period(arm(damping=damping), [0.3], [1.0], law)
    assert got[0] == pytest.approx(asked[0], rel=1e-6)


@pytest.mark.parametrize(("v", "posture"), [(0.0, 0.5), (0.0, -0.01), (0.5, 1.0), (0.2, 0.3)])
def test_dry_friction_is_made_up_for(v, posture):
    """It is 200 times as strong as inertia over a period near rest, and constant away from it."""
    got, asked = one_period(arm(friction=0.5, friction_width=0.01), [v], [posture])
    assert got[0] == pytest.approx(asked[0], rel=0.1)


def test_a_joint_that_turns_round_gets_no_more_than_is_asked_for():
    got, asked = one_period(arm(friction=0.5, friction_width=0.01), [0.2], [-1.0])
    assert 0.5 < got[0] / asked[0] <= 1.0


def test_joints_that_share_their_motion():
    got, asked = one_period(arm(3, damping=1.0, friction=0.5), [0.3, -0.2, 0.1], [1.0, 0.5, -0.3])
    np.testing.assert_allclose(got, asked, rtol=0.15, atol=0.02 * np.abs(asked).max())


@pytest.mark.parametrize("plant", ["native", "mujoco"])
def test_limits_are_kept_and_the_target_reached_again(plant):
    """Out of reach for a while: what a file of a small arm with its friction asks for."""
    machine = arm(
        3, damping=1.0, friction=0.5, lower=-1.0, upper=1.0, velocity_limit=3.0, effort_limit=30.0
    )

    def target(t):
        pose = ca.SX.eye(4)
        away = ca.logic_and(t > 0.1, t < 0.6)
        pose[:3, 3] = ca.if_else(away, ca.DM([0.0, 2.0, -2.0]), ca.DM([0.25, 0.1, -0.05]))
        return pose

    levels = [
        [FrameControl("tip", "target", 400.0, only="position")],
        [JointControl(machine, Kd=10.0)],
    ]
    run = simulate(
        machine, LimitedTaskControl(machine, levels), FramePath("target", target),
        np.array([0.3, 0.2, 0.1]), duration=1.6, dt=H, control_dt=H, plant=plant,
    )  # fmt: skip
    assert np.abs(run.v).max() <= 3.0
    assert np.abs(run.x).max() <= 1.0
    assert np.abs(run.x).max() > 0.99
    assert np.abs(run["control.error"][-1]).max() < 1e-3
