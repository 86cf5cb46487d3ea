"""Native loops over bodies give what straight-line code gives, and keep their digits."""

import numpy as np
import pytest
from random_machines import (
    evaluate,
    random_machine,
    random_moments,
    random_pose,
    random_rotation,
    random_state,
    relative_error,
)
from test_maximal_agreement import geared_machine, traced_together

from framefree.geometry import Moments, quaternion
from framefree.machine import (
    Body,
    Damper,
    EulerSpring,
    Frame,
    Joint,
    Machine,
    Revolute,
    Spherical,
    Spring,
)
from framefree.motion.maximal.maximal import LOOPED, Maximal
from framefree.motion.maximal.sweeps import LoopedMaximal
from framefree.motion.quantities import LOADS

MACHINES = [(geared_machine, 3), *((random_machine, seed) for seed in (5, 7, 15))]


def flexible_chain(n, rng=None):
    """A chain of ball joints with springs and dampers; bodies alike, or with `rng` different."""
    bodies, joints, frames, springs, dampers = [], [], [], [], []
    for i in range(n):
        length = 0.3 if rng is None else rng.uniform(0.1, 0.5)
        inertia = (
            Moments.of_body(0.5, (0.15, 0, 0), np.diag([1e-3, 4e-3, 4e-3]))
            if rng is None
            else random_moments(rng)
        )
        bodies.append(Body(f"b{i}", inertia))
        parent = "world" if i == 0 else f"b{i - 1}"
        at_parent = (0, 0, 0) if i == 0 else (0.3, 0, 0)
        at_child = (-length * (rng is not None), 0, 0)
        joints.append(
            Joint(f"j{i}", Spherical(), parent, f"b{i}", at_parent, at_child, damping=0.01)
        )
        frames += [Frame(f"p{i}", parent, at_parent), Frame(f"c{i}", f"b{i}", at_child)]
        spring = EulerSpring if i % 2 else Spring.torsional
        springs.append(spring(f"s{i}", f"p{i}", f"c{i}", (0.1, 0.2, 0.3)))
        dampers.append(Damper.torsional(f"d{i}", f"p{i}", f"c{i}", 0.01))
    return Machine(bodies, joints, frames, springs=springs, dampers=dampers)


def moving(machine, rng, speed=1.0):
    """Poses and twists of a chain of ball joints, found by plain composition."""
    G, xi = np.eye(4), np.zeros(6)
    poses, twists = [], []
    for joint in machine.joints:
        turn = np.eye(4)
        turn[:3, :3] = random_rotation(rng)
        step = joint.parent_pose @ turn @ np.linalg.inv(joint.child_pose)
        rate = np.concatenate([np.zeros(3), speed * rng.normal(size=3)])
        xi = _into(step, xi) + _into(np.linalg.inv(joint.child_pose), rate)
        G = G @ step
        wxyz = np.array(quaternion.from_rotation(G[:3, :3])).ravel()
        poses.append(np.concatenate([G[:3, 3], wxyz]))
        twists.append(xi)
    return np.concatenate(poses), np.concatenate(twists)


def _into(G, xi):
    """Twist xi seen from a frame with pose G, in its axes."""
    R, r = G[:3, :3], G[:3, 3]
    v, w = xi[:3], xi[3:]
    return np.concatenate([R.T @ (v + np.cross(w, r)), R.T @ w])


@pytest.mark.first_cases(2)
@pytest.mark.parametrize(("make", "seed"), MACHINES)
def test_loops_over_bodies_agree_with_straight_line_code(make, seed):
    """All joint kinds, springs, dampers, fluid; as CasADi functions: nothing is compiled."""
    rng = np.random.default_rng(seed)
    machine = make(rng)
    eom = Maximal(machine)
    x, v, motors = random_state(rng, machine)
    pose, twist = (one.ravel() for one in evaluate(eom.functions["from_joints"], x, v))
    port = rng.normal(size=twist.size)
    names = ["forward", "joint_wrench"]
    found = traced_together(eom, names)(x=pose, v=twist, force=port, joint_force=motors)
    programs = {name: make_it() for name, make_it in eom.looped.programs.items()}
    for name in names:
        value = evaluate(programs[f"{name}:both"].function(), pose, twist, port, motors)
        assert relative_error(value.ravel(), found[name].ravel()) < 1e-12
    any_twist = rng.normal(size=twist.size)
    whole = traced_together(eom, ["project", "respond"])(x=pose, v=any_twist, force=port)
    for name, given in (("project", any_twist), ("respond", port)):
        value = evaluate(programs[name].function(), pose, given).ravel()
        assert relative_error(value, whole[name]) < 1e-11
    inverse = programs["joint_inverse"].function()
    value = evaluate(inverse, pose, twist, found["forward"], port).ravel()
    assert relative_error(value, motors) < 1e-9


@pytest.mark.parametrize("different", [False, True])
def test_native_loops_of_a_flexible_chain(different):
    rng = np.random.default_rng(1)
    machine = flexible_chain(12, rng if different else None)
    eom = Maximal(machine)
    pose, twist = moving(machine, rng)
    joints, _ = evaluate(eom.functions["violation"], pose)
    assert np.abs(joints).max() < 1e-12
    port, motors = rng.normal(size=twist.size), rng.normal(size=machine.nv)
    names = ["forward", "joint_wrench"]
    found = traced_together(eom, names)(x=pose, v=twist, force=port, joint_force=motors)
    for name in names:
        kernel = eom.looped.programs[f"{name}:both"]().compile()
        value = kernel(pose, twist, port, motors)
        assert value.shape == found[name].shape
        assert relative_error(value, found[name]) < 1e-12
        many = kernel(np.tile(pose, (5, 1)), twist, port, motors)
        assert np.array_equal(many[3], value)


def test_alike_bodies_share_their_code():
    few, many = (
        LoopedMaximal(Maximal(flexible_chain(n)).model).forward(LOADS["both"]) for n in (4, 40)
    )
    assert len(few._kinds) == len(many._kinds)
    rng = np.random.default_rng(0)
    different = LoopedMaximal(Maximal(flexible_chain(40, rng)).model).forward(LOADS["both"])
    bodies = [kind for kind in different._kinds if kind.function.name() == "eliminate"]
    assert len(bodies) == 3  # the first body, on the world, the last, and all others


@pytest.mark.parametrize("n", [20, 100, 300])
def test_long_chains_of_ball_joints_keep_their_digits(n):
    """`inverse` of `forward` gives back the motor forces."""
    rng = np.random.default_rng(n)
    inertia = Moments.of_body(1.0, (0, 0, -0.5), np.diag([0.1, 0.1, 0.02]))
    bodies = [Body(f"b{i}", inertia) for i in range(n)]
    joints = [
        Joint(
            f"j{i}",
            Spherical(),
            "world" if i == 0 else f"b{i - 1}",
            f"b{i}",
            parent_pose=(0, 0, -1.0 * (i > 0)),
        )
        for i in range(n)
    ]
    machine = Machine(bodies, joints)
    programs = LoopedMaximal(Maximal(machine).model).programs
    forward, inverse = (programs[name]().compile() for name in ("forward:both", "joint_inverse"))
    pose, twist = moving(machine, rng, speed=0.3)
    port, motors = rng.normal(size=6 * n), rng.normal(size=3 * n)
    a = forward(pose, twist, port, motors)
    again = inverse(pose, twist, a, port)
    assert relative_error(again, motors) < 1e-9


def test_long_machines_are_compiled_as_loops():
    long, short = (Maximal(flexible_chain(n)) for n in (LOOPED, LOOPED - 1))
    assert "looped" not in vars(short)
    kernel = long.kernel("forward:both")
    assert [port.name for port in kernel.inputs] == ["x", "v", "force", "joint_force"]
    assert kernel.outputs[0].shape == (6 * LOOPED,)
    rng = np.random.default_rng(3)
    pose, twist = moving(long.machine, rng)
    motors = rng.normal(size=3 * LOOPED)
    expected = evaluate(kernel.function, pose, twist, 0 * twist, motors).ravel()
    value = kernel(pose, twist, 0 * twist, motors)
    assert relative_error(value, expected) < 1e-12
    assert relative_error(long.kernel("forward:joint_force")(pose, twist, motors), value) < 1e-12
    port = evaluate(long.functions["motors"], pose) @ motors
    assert relative_error(long.forward(pose, twist, port), value) < 1e-9


def test_branches_add_up_at_their_parent():
    """A star of arms on one body: siblings share the place where they add what they show."""
    rng = np.random.default_rng(2)
    bodies, joints = [Body("hub", random_moments(rng))], [Joint("j", Spherical(), "world", "hub")]
    for arm in range(3):
        parent = "hub"
        for k in range(2):
            name = f"a{arm}{k}"
            bodies.append(Body(name, random_moments(rng)))
            joints.append(Joint(f"j{name}", Revolute("x"), parent, name, random_pose(rng)))
            parent = name
    machine = Machine(bodies, joints)
    eom = Maximal(machine)
    x, v, motors = random_state(rng, machine)
    pose, twist = (one.ravel() for one in evaluate(eom.functions["from_joints"], x, v))
    expected = evaluate(eom.functions["forward:joint_force"], pose, twist, motors).ravel()
    kernel = eom.looped.programs["forward:joint_force"]().compile()
    assert relative_error(kernel(pose, twist, motors), expected) < 1e-12
