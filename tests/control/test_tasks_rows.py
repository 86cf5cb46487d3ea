"""Rows of tasks: d/dt(velocity error) = A a - b0 along any motion, and errors that mean a pose."""

import casadi as ca
import numpy as np
import pytest

from framefree.control.law import ControlError
from framefree.control.references.frames import FramePath
from framefree.control.shared.frames import Frames
from framefree.control.tasks import (
    FrameControl,
    HeldBodyControl,
    JointControl,
    RigidCoupling,
    critical,
)
from framefree.gallery.machines.dual_arm import dual_arm, seven_joint_arm
from framefree.geometry import se3, so3
from framefree.machine import Body, Frame, Free, Joint, Machine, MachineError
from framefree.motion.tree import Tree

STENCIL = ((-2, 1 / 12), (-1, -8 / 12), (1, 8 / 12), (2, -1 / 12))


def random_pose(rng):
    G = np.eye(4)
    G[:3, :3] = so3.exp(rng.normal(size=3)).full()
    G[:3, 3] = rng.normal(size=3)
    return G


def floating_arm():
    """Return an arm on a body that floats, with a further frame."""
    arm = seven_joint_arm()
    base = Machine(
        (Body("base", arm.bodies[0].moments),), (Joint("base", Free(), "world", "base"),)
    )
    joined = base.merge(arm, at="base", pose=(0.1, 0, 0.2))
    return joined.attach(Frame("tip", "link_7_l", random_pose(np.random.default_rng(1))))


def moving_target(rng):
    """Return a target that turns and moves in all directions."""
    w, p, start = rng.normal(size=3), rng.normal(size=(2, 3)), random_pose(rng)

    def path(t):
        turned = so3.exp(ca.DM(w) * ca.sin(1.3 * t)) @ ca.DM(start[:3, :3])
        return se3.pose(turned, ca.DM(p[0]) * ca.cos(t) + ca.DM(p[1]) * t)

    return FramePath("target", path)


MACHINES = {"dual arm": dual_arm(), "floating": floating_arm()}
HANDS = {"dual arm": ("link_7_l", "link_7_r"), "floating": ("tip", "base")}


def tasks(name, rng):
    """Return one task of each kind, and a coupling to the world."""
    one, other = HANDS[name]
    return (
        RigidCoupling(one, other, random_pose(rng)),
        RigidCoupling(one, "world", random_pose(rng)),
        RigidCoupling("world", one, random_pose(rng)),
        FrameControl(one, "target"),
        HeldBodyControl(one, random_pose(rng), "target"),
        JointControl(MACHINES[name], MACHINES[name].random(rng)),
    )


def rows_function(machine, task, reference):
    t, x, v = ca.SX.sym("t"), ca.SX.sym("x", machine.nx), ca.SX.sym("v", machine.nv)
    rows = task.rows(Frames(Tree(machine).at(x, v)), reference.at(t))
    outputs = [ca.densify(ca.SX(part)) for part in (*rows, task.b(rows))]
    return ca.Function("rows", [t, x, v], outputs)


@pytest.mark.parametrize("kind", range(6))
@pytest.mark.parametrize("name", MACHINES)
def test_rate_of_the_velocity_error(name, kind):
    """d/dt s = A a - b0 by differences, and d/dt e_linear = s_linear."""
    rng, machine, h = np.random.default_rng(kind), MACHINES[name], 1e-3
    reference = moving_target(rng)
    task = tasks(name, rng)[kind]
    rows = rows_function(machine, task, reference)
    for _ in range(5):
        t, x = rng.normal(), machine.random(rng)
        v, a = rng.normal(size=(2, machine.nv))

        def at(s, t=t, x=x, v=v, a=a):
            return rows(t + s, machine.integrate(x, v * s + a * s * s / 2), v + a * s)

        samples = [(c / h, at(k * h)) for k, c in STENCIL]
        A, rate, s, *_ = (np.array(part) for part in rows(t, x, v))
        measured = sum(c * np.array(found[2]) for c, found in samples)[:, 0]
        expected = A @ a + rate[:, 0]
        assert np.abs(measured - expected).max() < 1e-7 * (1 + np.abs(expected).max())
        if kind < 5:
            moving = sum(c * np.array(found[3]) for c, found in samples)[:3, 0]
            np.testing.assert_allclose(moving, s[:3, 0], atol=1e-7 * (1 + np.abs(s).max()))


@pytest.mark.parametrize("kind", range(6))
def test_right_side(kind):
    """b = b0 - Kd s - Kp e; with zero gains b is minus the rate."""
    rng, machine = np.random.default_rng(kind), MACHINES["dual arm"]
    task = tasks("dual arm", rng)[kind]
    _, rate, s, e, b = (
        np.array(p)
        for p in rows_function(machine, task, moving_target(rng))(
            0.3, machine.random(rng), rng.normal(size=14)
        )
    )
    np.testing.assert_allclose(b, -rate - task.Kd * s - task.Kp * e, atol=1e-9)


def test_errors_vanish_where_the_pose_is_right():
    """The pose error is zero exactly at the wanted pose, and the right turn away from it."""
    rng, machine = np.random.default_rng(5), MACHINES["dual arm"]
    x, v = machine.random(rng), np.zeros(14)
    frames = Frames(Tree(machine).at(ca.SX(x), ca.SX(v)))
    poses = []
    for hand in HANDS["dual arm"]:
        motion = frames.at(hand)
        poses.append(np.array(ca.DM(se3.pose(motion.R, motion.p))))
    relative = np.linalg.inv(poses[0]) @ poses[1]
    rows = RigidCoupling(*HANDS["dual arm"], relative).rows(frames, {})
    assert np.abs(np.array(ca.DM(rows.pose_error))).max() < 1e-12
    turned = relative.copy()
    turned[:3, :3] = relative[:3, :3] @ so3.exp([-0.3, 0.0, 0.0]).full()
    rows = RigidCoupling(*HANDS["dual arm"], turned).rows(frames, {})
    np.testing.assert_allclose(
        np.array(ca.DM(rows.pose_error)).ravel(), [0, 0, 0, 0.3, 0, 0], atol=1e-12
    )


def test_equal_errors_of_frame_and_place():
    """A place on the held body at the holder itself is the holder."""
    rng, machine = np.random.default_rng(7), MACHINES["floating"]
    reference = moving_target(rng)
    state = 0.2, machine.random(rng), rng.normal(size=machine.nv)
    one = rows_function(machine, FrameControl("tip", "target"), reference)(*state)
    place = machine.frame("tip").pose
    other = rows_function(machine, HeldBodyControl("link_7_l", place, "target"), reference)(*state)
    for a, b in zip(one, other, strict=True):
        np.testing.assert_allclose(np.array(a), np.array(b), atol=1e-9)


def test_gains():
    assert FrameControl("hand", Kp=400.0).Kd == critical(400.0) == 40.0
    with pytest.raises(ControlError, match="`Kp` of task `control` must be a number from 0 on"):
        FrameControl("hand", Kp=-1.0)
    with pytest.raises(ControlError, match="6 of them"):
        RigidCoupling("a", "b", Kd=(1.0, 2.0))
    with pytest.raises(MachineError, match="pose of task `coupling`"):
        RigidCoupling("a", "b", 2 * np.eye(4))
