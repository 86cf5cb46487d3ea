"""Inverse kinematics: reachable targets are reached, others get a clear answer."""

import re
from dataclasses import replace

import casadi as ca
import numpy as np
import pytest
from constrained_machines import n_four_bar, random_closed, random_couplings
from model_kinematics import example_urdfs
from random_machines import random_machine

import framefree as ff
from framefree.geometry import Moments
from framefree.machine import Body, Frame, Free, Joint, Machine, MachineError, Planar, Prismatic
from framefree.machine.joints import Revolute
from framefree.motion.tree import Tree
from framefree.solve import SolveError, inverse_kinematics, reach
from framefree.solve.kinematics import FrameErrors, constrained


def forward(machine, x, frame):
    symbol = ca.SX.sym("x", machine.nx)
    f = ca.Function("f", [symbol], [Tree(machine.tree).at(symbol).frame_pose(frame)])
    return np.array([f(one).full() for one in np.atleast_2d(x)])


def pose_error(G, target):
    position = np.linalg.norm(G[:3, 3] - target[:3, 3])
    turn = G[:3, :3].T @ target[:3, :3]
    sine = np.linalg.norm(
        [turn[2, 1] - turn[1, 2], turn[0, 2] - turn[2, 0], turn[1, 0] - turn[0, 1]]
    )
    return position, np.arctan2(sine / 2, (np.trace(turn) - 1) / 2)


def arm(lengths=(0.5, 0.4, 0.3), **joint):
    """Links in a row, turning about x, y, z in turn; frame `tool` at the end."""
    bodies, joints = [], []
    for i in range(len(lengths)):
        bodies.append(Body(f"b{i}", Moments.of_body(1.0, (0, 0, 0.1), np.eye(3))))
        at = (0, 0, lengths[i - 1]) if i else (0, 0, 0)
        joints.append(
            Joint(
                f"j{i}", Revolute("xyz"[i % 3]), f"b{i - 1}" if i else "world", f"b{i}", at, **joint
            )
        )
    tool = Frame("tool", f"b{len(lengths) - 1}", (0, 0, lengths[-1]))
    return Machine(bodies, joints, [tool], name="arm")


# ------------------------------------------------------------------------------ laws


@pytest.mark.parametrize("seed", range(3))
def test_slopes_of_errors_are_their_derivatives(seed):
    rng = np.random.default_rng(seed)
    machine, x = random_closed(rng, passive=False, fluid=False)
    frames = [frame.name for frame in machine.frames[:3]]
    kinds = tuple(zip(frames, ("pose", "attitude", "position"), strict=True))
    G = forward(machine, machine.random(rng), frames[0])[0]
    targets = [G, G[:3, :3], G[:3, 3]]
    kernel = FrameErrors(machine, kinds).kernel
    e, J = kernel(x, *targets)
    h = 1e-5
    for j, direction in enumerate(np.eye(machine.nv)):
        ends = [kernel(machine.integrate(x, s * h * direction), *targets)[0] for s in (1, -1)]
        slope = (ends[0] - ends[1]) / (2 * h)
        assert np.abs(slope - J[:, j]).max() < 1e-7 * (1 + np.abs(J[:, j]).max())
    assert len(e) == 12 + sum(loop.size for loop in machine.loops)


@pytest.mark.parametrize("seed", range(6))
def test_random_machines_reach_what_they_can(seed):
    """Trees with all kinds of joints, ball and free ones too; two frames at once."""
    rng = np.random.default_rng(seed)
    machine = random_machine(rng, bodies=6, passive=False, fluid=False)
    x = machine.random(rng)
    poses = {frame: forward(machine, x, frame)[0] for frame in ("f5", "f2")}
    found = inverse_kinematics(machine, {"f5": poses["f5"], "f2": poses["f2"][:3, 3]})
    assert found.reached
    assert found.message == "reached"
    machine.validate(found.x)
    position, angle = pose_error(forward(machine, found.x, "f5")[0], poses["f5"])
    assert max(position, angle) < 2e-10
    assert pose_error(forward(machine, found.x, "f2")[0], poses["f2"])[0] < 2e-10
    assert max(found.residuals["f5"].max(), found.residuals["f2"].max()) <= 1e-10
    assert found.residuals["f2"][1] == 0.0


ROBOTS = {
    "panda_description/urdf/panda.urdf": "panda_link8",
    "ur_description/ur5_joint_limited_robot.urdf": "tool0",
    "talos_left_arm.urdf": "gripper_left_base_link",
    "kinova.urdf": "j2s6s200_end_effector",
}


@pytest.mark.parametrize("name", ROBOTS)
def test_robots_reach_random_reachable_poses(name):
    files = [path for path in example_urdfs().values() if str(path).endswith(name.split("/")[-1])]
    if not files:
        pytest.skip("example-robot-data is not installed")
    machine, frame = ff.read(files[0]), ROBOTS[name]
    targets = forward(machine, machine.random(np.random.default_rng(0), 100), frame)
    found = inverse_kinematics(machine, {frame: targets})
    assert found.reached.sum() >= 99
    machine.validate(found.x, limits=True)
    reached = forward(machine, found.x, frame)
    for G, target, met in zip(reached, targets, found.reached, strict=True):
        assert not met or max(pose_error(G, target)) < 2e-10


def test_same_answer_alone_and_in_a_batch():
    machine = arm((0.5, 0.4, 0.3, 0.2, 0.2, 0.2))
    x0 = machine.random(np.random.default_rng(1))
    targets = forward(machine, machine.integrate(x0, 0.1 * np.ones(6)), "tool")
    alone = inverse_kinematics(machine, {"tool": targets[0]}, x0)
    many = inverse_kinematics(machine, {"tool": np.repeat(targets, 3, axis=0)}, x0)
    assert many.x.shape == (3, 6)
    assert many.reached.tolist() == [True] * 3
    assert many.message == "all 3 targets reached"
    assert np.abs(many.x - alone.x).max() < 1e-12
    assert alone.attempts == 1
    assert np.linalg.norm(alone.x - x0) < 1.0


def test_limits_are_kept_and_can_be_ignored():
    machine = arm((0.5, 0.4, 0.3), lower=-0.3, upper=0.3)
    x = np.array([0.9, 0.2, 0.1])
    target = forward(machine, x, "tool")[0]
    free = inverse_kinematics(machine, {"tool": target}, limits=False)
    assert free.reached
    assert not inverse_kinematics(machine, {"tool": target}).reached
    kept = inverse_kinematics(machine, {"tool": target[:3, 3]})
    assert not kept.reached
    machine.validate(kept.x, limits=True)
    assert "at their limits: `j0`" in kept.message
    # Among all configurations within the limits none is nearer.
    tries = machine.random(np.random.default_rng(0), 1000)
    nearest = np.linalg.norm(
        forward(machine, tries, "tool")[:, :3, 3] - target[:3, 3], axis=1
    ).min()
    assert kept.residuals["tool"][0] <= nearest


def test_limits_of_a_position_that_turns_with_its_joint():
    body = Body("b", Moments.of_body(1.0, (0, 0, 0), np.eye(3)))
    upper = (0.5, 0.5, np.inf, np.inf)
    machine = Machine([body], [Joint("j", Planar(), "world", "b", upper=upper)])
    x0 = [0.0, 0.0, np.cos(1.0), np.sin(1.0)]
    assert inverse_kinematics(machine, {"b": [0.4, 0.3, 0.0]}, x0).reached
    far = inverse_kinematics(machine, {"b": [0.7, 0.3, 0.0]}, x0)
    assert not far.reached


def test_held_joints_do_not_move():
    machine = arm((0.5, 0.4, 0.3, 0.2, 0.2, 0.2, 0.1))
    rng = np.random.default_rng(0)
    x = machine.random(rng)
    target = forward(machine, x, "tool")[0]
    start = machine.random(rng)
    start[[1, 4]] = x[[1, 4]]
    found = inverse_kinematics(machine, {"tool": target[:3, 3]}, start, hold=("j1", "j4"))
    assert found.reached
    assert (found.x[[1, 4]] == x[[1, 4]]).all()
    flying = machine.replace("j0", kind=Free())
    still = inverse_kinematics(flying, {"tool": [5.0, 0, 0]}, hold=("j0",))
    assert not still.reached
    assert (still.x[:7] == flying.neutral()[:7]).all()
    assert inverse_kinematics(flying, {"tool": [5.0, 0, 0]}).reached


# ------------------------------------------------------------------------------ closed machines


def open_by(machine, x):
    found = constrained(machine).functions["constraint"](x, np.zeros(machine.nv))
    return np.abs(found[2].full()).max()


def test_four_bar_goes_where_its_loop_lets_it():
    machine = n_four_bar(1).attach(Frame("tool", "h0", (0.5, 0, 0)))
    angle = 0.7
    position = np.array([0.5 + np.cos(angle), np.sin(angle), 0.0])
    found = inverse_kinematics(machine, {"tool": position}, [0.5, 0.5, -0.5])
    assert found.reached
    assert open_by(machine, found.x) <= 1e-10
    # Off the coupler's circle of radius 1 m about (0.5, 0): the nearest point of it is the answer.
    away = inverse_kinematics(machine, {"tool": [0.5, 1.3, 0.0]}, [1.2, 1.2, -1.2])
    assert not away.reached
    assert open_by(machine, away.x) <= 1e-10
    assert abs(away.residuals["tool"][0] - 0.3) < 1e-4
    assert "`tool` is 0.3 m away at best" in away.message


@pytest.mark.parametrize("seed", range(3))
def test_random_closed_machines(seed):
    rng = np.random.default_rng(seed)
    machine, x = random_closed(rng, passive=False, fluid=False)
    if seed == 2:
        machine = random_couplings(rng)
        x = constrained(machine).assemble(machine.random(rng))
    frame = machine.frames[-2].name
    target = forward(machine, x, frame)[0]
    start = machine.integrate(x, 0.2 * rng.normal(size=machine.nv))
    found = inverse_kinematics(machine, {frame: target}, start)
    assert found.reached
    assert open_by(machine, found.x) <= 1e-10


# ------------------------------------------------------------------------------ answers


def test_out_of_reach_is_said_and_proved():
    machine = arm()
    found = inverse_kinematics(machine, {"tool": [0.0, 0.0, 2.0]})
    assert not found.reached
    # The arm is straight: three lengths up.
    assert abs(found.residuals["tool"][0] - 0.8) < 1e-6
    assert found.message == (
        "`tool` is 0.8 m away at best, after 9 attempts; its target is out of reach: 2 m from "
        "joint `j0`, of which `tool` stays within 1.2 m"
    )
    batch = inverse_kinematics(machine, {"tool": [[0, 0, 1.2], [0, 0, 2.0]]})
    assert batch.reached.tolist() == [True, False]
    assert batch.message.startswith("1 of 2 targets reached; target 1: `tool` is 0.8 m away")


def test_reach_bounds_all_positions():
    for seed in range(8):
        rng = np.random.default_rng(seed)
        machine = random_machine(rng, bodies=5, passive=False, fluid=False)
        joints = [
            replace(j, lower=-1.0, upper=1.0) if isinstance(j.kind, Prismatic) else j
            for j in machine.joints
        ]
        machine = replace(machine, joints=joints)
        for frame in machine.frames:
            ball = reach(machine, frame.name)
            positions = forward(machine, machine.random(rng, 10), frame.name)[:, :3, 3]
            if ball is None:
                assert np.ptp(positions, axis=0).max() < 1e-12
            else:
                away = np.linalg.norm(positions - ball.center, axis=1)
                assert (away <= ball.radius + 1e-12).all()
    straight = reach(arm(), "tool")
    assert (straight.joint, straight.radius) == ("j0", pytest.approx(1.2))


def test_weights_choose_between_targets():
    machine = arm((0.5, 0.5))
    both = {"b1": [0.0, 0.0, -0.5], "tool": [0.0, 0.0, 1.0]}
    upper = inverse_kinematics(machine, both, weights={"tool": 100.0}).residuals
    lower = inverse_kinematics(machine, both, weights={"b1": (100.0, 1.0)}).residuals
    assert upper["tool"][0] < 1e-3 < 0.5 < upper["b1"][0]
    assert lower["b1"][0] < 1e-3 < 0.5 < lower["tool"][0]


def test_frames_that_no_joint_moves():
    machine = arm().attach(Frame("post", "world", (1, 0, 0)))
    assert inverse_kinematics(machine, {"post": [1.0, 0, 0]}).reached
    message = inverse_kinematics(machine, {"post": [2.0, 0, 0]}).message
    assert message == "`post` is 1 m away at best, after 100 attempts; no joint moves `post`"


def test_tunable_lengths_are_taken_as_given():
    machine = arm().tunable("b0.length")
    far = {"tool": [0.0, 0.0, 1.7]}
    assert not inverse_kinematics(machine, far).reached
    assert inverse_kinematics(machine, far, parameters={"b0.length": 1.0}).reached


@pytest.mark.parametrize(
    ("targets", "options", "message"),
    [
        ({}, {}, "`targets` must map frames"),
        ({"tool": np.eye(2)}, {}, "the target of `tool` must be a pose (4, 4)"),
        ({"tool": "there"}, {}, "the target of `tool` must be numbers"),
        ({"tool": 2 * np.eye(4)}, {}, "the target: `tool`"),
        ({"tool": [0.0, np.nan, 0.0]}, {}, "the target: `tool`"),
        ({"tool": np.zeros((2, 3)), "b0": np.zeros((3, 3, 3))}, {}, "must have one size"),
        ({"tool": [0, 0, 1]}, {"hold": ["elbow"]}, "`elbow`"),
        ({"tool": [0, 0, 1]}, {"weights": {"hand": 1.0}}, "`hand`"),
        ({"tool": [0, 0, 1]}, {"weights": {"tool": -1.0}}, "must be one or two positive numbers"),
        (
            {"tool": np.zeros((2, 3))},
            {"x0": np.zeros((3, 3))},
            "`x0` must be one configuration or 2",
        ),
    ],
)
def test_problems_that_are_not_stated_as_they_should_be(targets, options, message):
    with pytest.raises(SolveError, match=re.escape(message)):
        inverse_kinematics(arm(), targets, **options)


def test_unknown_frames_are_refused():
    with pytest.raises(MachineError, match="`hand`"):
        inverse_kinematics(arm(), {"hand": [0, 0, 1]})
