"""What is written as URDF is read back as a machine that moves the same."""

from dataclasses import replace

import numpy as np
import pytest
from model_kinematics import Chain, Inertia, example_urdfs
from test_urdf import ARM
from test_write_mjcf import random_machine, state

from framefree.geometry import Moments
from framefree.machine import (
    Body,
    Continuous,
    Fixed,
    Frame,
    Free,
    Helical,
    Joint,
    Machine,
    Planar,
    Prismatic,
    Revolute,
    Spherical,
)
from framefree.machine.actuators import JointForce, motors
from framefree.machine.coupling import Coupling, Polynomial
from framefree.machine.formats.poses import pose_of_rpy, rpy_of_rotation
from framefree.machine.formats.write_urdf import to_urdf
from framefree.machine.formats.writing import WriteError
from framefree.machine.keyframe import Keyframe
from framefree.machine.loop import Loop
from framefree.machine.read import read
from framefree.machine.spring import Spring
from framefree.motion import equations

SOLID = Moments.of_body(1.0, [0.1, 0, 0], np.eye(3))


def gap(ours, theirs):
    return np.abs(ours - theirs).max(initial=0.0) / max(1.0, np.abs(theirs).max(initial=0.0))


@pytest.mark.parametrize("pitch", [0.0, 1.0, np.pi / 2, -np.pi / 2, np.pi / 2 - 1e-9, 1.5707])
def test_roll_pitch_yaw_meet_the_rotation_everywhere(pitch):
    rng = np.random.default_rng(0)
    for roll, yaw in rng.uniform(-np.pi, np.pi, (50, 2)):
        R = pose_of_rpy([0, 0, 0], [roll, pitch, yaw])[:3, :3]
        again = pose_of_rpy([0, 0, 0], rpy_of_rotation(R))[:3, :3]
        assert np.abs(again - R).max() <= 1e-15


@pytest.mark.parametrize("seed", range(10))
def test_random_machines_come_back(seed):
    axis = np.random.default_rng(seed).normal(size=3)
    kinds = [Revolute(axis), Continuous(axis), Prismatic(axis), Planar(axis), Free(), Fixed()]
    first = random_machine(seed, kinds)
    plain = [replace(j, armature=0.0, stiffness=0.0) for j in first.joints]
    first = replace(first, joints=tuple(plain), gravity=(0, 0, -9.81))
    again = read(to_urdf(first), motors=False)
    assert again.x_names == first.x_names
    chains = Chain(first), Chain(again)
    masses = Inertia(first), Inertia(again)
    runs = [equations(machine, "tree").functions["forward"] for machine in (first, again)]
    rng = np.random.default_rng(seed)
    for _ in range(5):
        x, v = state(first, rng)
        poses, others = chains[0](x), chains[1](x)
        for name, pose in poses.items():
            assert gap(others[name], pose) <= 1e-12
        assert gap(masses[1](x), masses[0](x)) <= 1e-12
        force = rng.normal(size=first.nv)
        a, b = (run(x, v, force).full().ravel() for run in runs)
        assert gap(b, a) <= 1e-9


def test_joints_limits_mimics_motors_and_shapes_come_back():
    first = read(ARM.replace("</robot>", MIMIC + "</robot>"))
    again = read(to_urdf(first))
    assert again.name == first.name
    assert [b.name for b in again.bodies] == [b.name for b in first.bodies]
    for one, other in zip(first.joints, again.joints, strict=True):
        assert type(one.kind) is type(other.kind)
        for field in ("lower", "upper", "damping", "friction", "effort_limit", "velocity_limit"):
            np.testing.assert_array_equal(getattr(one, field), getattr(other, field))
    assert again.couplings == first.couplings
    assert again.actuators == first.actuators
    assert {frame.name for frame in again.frames} == {frame.name for frame in first.frames}
    shapes = [(s.frame, s.kind, s.size.tolist(), s.color.tolist(), s.role) for s in again.geometry]
    assert shapes == [("grip", "box", [1, 2, 3], [1, 0, 0, 1], "visual")]


MIMIC = """
<link name="grip"><visual><geometry><box size="1 2 3"/></geometry>
<material name="red"><color rgba="1 0 0 1"/></material></visual></link>
<joint name="close" type="revolute"><parent link="tool"/><child link="grip"/>
<mimic joint="bend" multiplier="0.5" offset="-0.1"/><limit effort="7" velocity="1"/></joint>
"""


@pytest.mark.parametrize("base", [None, "free"])
@pytest.mark.first_cases(1)
def test_every_example_robot_comes_back(base):
    files = example_urdfs()
    if not files:
        pytest.skip("example-robot-data is not installed")
    names = list(files)[:: 4 if base is None else 5]
    for name in names:
        if name == "ur_description/ur3.urdf":
            continue
        first = read(files[name], base=base)
        again = read(to_urdf(first))
        assert again.x_names == first.x_names
        assert again.u_names == first.u_names
        for body, other in zip(first.bodies, again.bodies, strict=True):
            assert body.name == other.name
            assert gap(other.moments.matrix6, body.moments.matrix6) <= 1e-12
        x, _ = state(first, np.random.default_rng(0))
        poses, others = Chain(first)(x), Chain(again)(x)
        for frame, pose in poses.items():
            assert gap(others[frame], pose) <= 1e-12


def test_pinocchio_reads_what_was_written():
    pin = pytest.importorskip("pinocchio")
    axis = [0.3, -1.0, 0.2]
    machine = random_machine(1, [Revolute(axis), Continuous(axis), Prismatic(axis), Revolute("z")])
    plain = [replace(j, armature=0.0, stiffness=0.0) for j in machine.joints]
    machine = replace(machine, joints=tuple(plain), gravity=(0, 0, -9.81))
    model = pin.buildModelFromXML(to_urdf(machine))
    data, inertia = model.createData(), Inertia(machine)
    x, _ = state(machine, np.random.default_rng(3))
    order = [name for name in model.names if name != "universe"]
    layout = machine.layout("pinocchio", order)
    M = pin.crba(model, data, layout.x_to(x))
    M = np.triu(M) + np.triu(M, 1).T
    T = np.array([layout.v_to(x, row) for row in np.eye(machine.nv)]).T
    assert gap(T.T @ M @ T, inertia(x)) <= 1e-12


def test_everything_that_cannot_be_said_is_named():
    machine = Machine(
        tuple(Body(name, SOLID) for name in "abcd"),
        (
            Joint("ja", Helical("z", 0.1), "world", "a"),
            Joint("jb", Revolute("x"), "a", "b", armature=0.1, stiffness=1.0),
            Joint("jc", Spherical(), "b", "c"),
            Joint("jd", Prismatic("x"), "b", "d", friction=1.0, friction_width=0.5),
        ),
        springs=(Spring("s", "a", "b", SOLID),),
        loops=(Loop("l", "weld", "a", "b"),),
        couplings=(Coupling("k", "jd", ("jb",), Polynomial([1.0, 2, 3])),),
        actuators=(JointForce("m", "jb", gear=3.0),),
        gravity=(0, 0, -1.6),
    )
    with pytest.raises(WriteError) as caught:
        to_urdf(machine)
    assert caught.value.problems == (
        "coupling `k`: URDF has only mimic joints, linear in one other",
        "spring `s`: URDF has none",
        "loop `l`: URDF has none",
        "gravity [0.0, 0.0, -1.6]: URDF does not say it, and readers take (0, 0, -9.81); "
        '`without="gravity"` leaves it out',
        "the actuators are not one motor on each joint, limited by its effort limits, and URDF has "
        'no actuators; `without="actuator"` leaves them out',
        "joint `ja`: URDF has no helical joint",
        'joint `jb`: URDF has no armature; `without="armature"` leaves it out',
        "joint `jb`: URDF has no joint springs",
        "joint `jc`: URDF has no spherical joint",
        "joint `jd`: `friction_width` 0.5 cannot be written; only the default, 0.01",
    )


def test_what_moves_nothing_is_left_out():
    joint = Joint("j", Revolute("z"), "world", "a", lower=-1, upper=1)
    machine = Machine(
        (Body("a", SOLID),),
        (joint,),
        (Frame("tip", "a", [0, 0, 1]), Frame("mark", "world", [1, 0, 0])),
        actuators=motors([joint]),
        keyframes=(Keyframe("up", {"j": [1.0]}),),
    )
    text = to_urdf(machine, without="keyframe")
    again = read(text)
    assert again.actuators == machine.actuators
    assert again.frame("mark").body == "world"
    assert again.joint("j").effort_limit[0] == np.inf
    left = to_urdf(replace(machine, gravity=(0, 0, 0)), without=("gravity", "keyframe"))
    assert read(left).gravity.tolist() == [0, 0, -9.81]
