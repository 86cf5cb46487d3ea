"""What is written as MJCF moves in MuJoCo as it does here, and is read back as the same machine."""

from dataclasses import replace

import numpy as np
import pytest
from mjcf_samples import EVERYTHING, LINKAGE, random_mjcf
from model_kinematics import Chain, Inertia, example_urdfs, mujoco_mass

from framefree.geometry import Moments
from framefree.machine import (
    Body,
    Continuous,
    Cylindrical,
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
    Universal,
)
from framefree.machine.actuators import JointForce, Propeller, TiltingPropeller, Wrench
from framefree.machine.coupling import Coupling, Linear, Polynomial
from framefree.machine.formats.poses import pose_of_quaternion
from framefree.machine.formats.write_mjcf import to_mjcf
from framefree.machine.formats.writing import WriteError
from framefree.machine.keyframe import Keyframe
from framefree.machine.loop import Loop
from framefree.machine.read import read
from framefree.machine.shape import Shape
from framefree.machine.spring import Spring
from framefree.motion import equations

mujoco = pytest.importorskip("mujoco")


def random_pose(rng):
    return pose_of_quaternion(rng.normal(size=3) * 0.3, rng.normal(size=4))


def random_machine(seed, kinds=None):
    """A tree over all kinds that MJCF has, with poses on both sides of every joint."""
    rng = np.random.default_rng(seed)
    axis = rng.normal(size=3)
    kinds = kinds or [
        Revolute(axis),
        Continuous(axis),
        Prismatic(axis),
        Cylindrical(axis),
        Universal(axis, np.cross(axis, rng.normal(size=3))),
        Planar(axis),
        Spherical(),
        Free(),
        Fixed(),
    ]
    order = rng.permutation(len(kinds))
    bodies, joints, frames = [], [], []
    for i, k in enumerate(order):
        points = rng.normal(size=(6, 3)) * 0.2
        bodies.append(Body(f"b{i}", Moments.of_points(points, rng.uniform(0.2, 1, 6))))
        parent = "world" if i == 0 else f"b{rng.integers(i)}"
        kind = kinds[k]
        springy = isinstance(kind, Revolute | Prismatic | Cylindrical | Universal | Spherical)
        one = kind.nv and not isinstance(kind, Free | Spherical | Planar)
        joint = Joint(
            f"j{i}",
            kind,
            parent,
            f"b{i}",
            random_pose(rng),
            random_pose(rng),
            damping=rng.uniform(0, 1),
            armature=rng.uniform(0, 0.2, kind.nv) if one else 0.0,
            stiffness=3.0 if springy else 0.0,
            rest=rng.normal(size=kind.nx) if springy and kind.nx == kind.nv else None,
        )
        joints.append(joint)
        frames.append(Frame(f"f{i}", f"b{i}", random_pose(rng)))
    return Machine(tuple(bodies), tuple(joints), tuple(frames), gravity=(0.1, 0.2, -9.0))


class Written:
    """A machine, and MuJoCo's model of what was written."""

    def __init__(self, machine):
        self.machine = machine
        self.text = to_mjcf(machine, without="velocity_limit")
        self.model = mujoco.MjModel.from_xml_string(self.text)
        self.data = mujoco.MjData(self.model)
        self.layout = machine.layout("mujoco")

    def set(self, x, v=None):
        self.data.qpos[:] = self.layout.x_to(x)
        self.data.qvel[:] = 0 if v is None else self.layout.v_to(x, v)
        mujoco.mj_forward(self.model, self.data)

    def pose(self, name):
        pose = np.eye(4)
        body = mujoco.mj_name2id(self.model, mujoco.mjtObj.mjOBJ_BODY, name)
        site = mujoco.mj_name2id(self.model, mujoco.mjtObj.mjOBJ_SITE, name)
        at = self.data.body(body) if body >= 0 else self.data.site(site)
        pose[:3, :3] = at.xmat.reshape(3, 3)
        pose[:3, 3] = at.xpos
        return pose


def gap(ours, theirs):
    return np.abs(ours - theirs).max(initial=0.0) / max(1.0, np.abs(theirs).max(initial=0.0))


def state(machine, rng):
    parts = (joint.kind.random(rng) for joint in machine.joints)
    return np.concatenate([np.zeros(0), *parts]), rng.normal(size=machine.nv)


@pytest.mark.parametrize("seed", range(12))
def test_moves_in_mujoco_as_here(seed):
    machine = random_machine(seed)
    written, chain, rng = Written(machine), Chain(machine), np.random.default_rng(seed)
    forward = equations(machine, "tree").functions["forward"]
    inertia = Inertia(machine)
    for _ in range(5):
        x, v = state(machine, rng)
        written.set(x, v)
        poses = chain(x)
        for name in chain.names:
            assert gap(poses[name], written.pose(name)) <= 1e-12
        M = mujoco_mass(written.model, written.data)
        T = np.array([written.layout.v_to(x, row) for row in np.eye(machine.nv)]).T
        assert gap(inertia(x), T.T @ M @ T) <= 1e-12
        a = forward(x, v, np.zeros(machine.nv)).full().ravel()
        assert gap(written.layout.a_to(x, v, a), written.data.qacc) <= 1e-8


@pytest.mark.parametrize("text", [EVERYTHING, LINKAGE, *map(random_mjcf, range(4))])
def test_read_written_and_read_again_is_the_same(text):
    first = read(text)
    again = read(to_mjcf(first))
    assert [body.name for body in again.bodies] == [body.name for body in first.bodies]
    assert again.x_names == first.x_names
    assert [loop.name for loop in again.loops] == [loop.name for loop in first.loops]
    rng = np.random.default_rng(0)
    massless = {body.name for body in first.bodies if body.massless}
    for body, other in zip(first.bodies, again.bodies, strict=True):
        assert body.massless == other.massless
        assert gap(other.moments.matrix6, body.moments.matrix6) <= 1e-12
    bare = [replace(m, loops=(), couplings=(), actuators=(), keyframes=()) for m in (first, again)]
    runs = [equations(machine, "tree").functions["forward"] for machine in bare]
    chains = [Chain(machine) for machine in (first, again)]
    for _ in range(5):
        x, v = state(first, rng)
        poses, others = chains[0](x), chains[1](x)
        for name in set(poses) - massless:
            assert gap(others[name], poses[name]) <= 1e-12
        force = rng.normal(size=first.nv)
        a, b = (run(x, v, force).full().ravel() for run in runs)
        assert gap(b, a) <= 1e-9
    for one, other in zip(first.joints, again.joints, strict=True):
        for field in ("lower", "upper", "damping", "friction", "stiffness", "armature", "rest"):
            ours, theirs = np.asarray(getattr(one, field)), np.asarray(getattr(other, field))
            if field != "rest" or one.has_spring:
                np.testing.assert_allclose(theirs, ours, rtol=1e-15)


def test_actuators_loops_couplings_and_keyframes_come_back():
    first = read(EVERYTHING)
    again = read(to_mjcf(first))
    for one, other in zip(first.actuators, again.actuators, strict=True):
        assert type(one) is type(other)
        assert one.name == other.name
        np.testing.assert_array_equal(np.array(one.columns), np.array(other.columns))
        assert (one.lower, one.upper) == (other.lower, other.upper)
        if isinstance(one, JointForce):
            np.testing.assert_array_equal(one.bias_terms, other.bias_terms)
            assert (one.force_lower, one.force_upper) == (other.force_lower, other.force_upper)
    (key, _), (other, _) = first.keyframes, again.keyframes
    assert [key.name for key in again.keyframes] == ["home", "initial"]
    for part in ("x", "v", "u"):
        for (name, ours), (named, theirs) in zip(
            getattr(key, part), getattr(other, part), strict=True
        ):
            assert name == named
            np.testing.assert_allclose(theirs, ours, rtol=1e-14, atol=1e-14)
    linkage = read(LINKAGE)
    rewritten = read(to_mjcf(linkage))
    pairs = zip(linkage.couplings, rewritten.couplings, strict=True)
    for coupling, other in pairs:
        assert coupling.coordinates == other.coordinates
        for q in (-0.7, 0.0, 1.3):
            assert float(other.value(q)) == pytest.approx(float(coupling.value(q)), rel=1e-12)
    x, _ = state(linkage, np.random.default_rng(0))
    before, after = Chain(linkage)(x), Chain(rewritten)(x)
    for loop, other in zip(linkage.loops, rewritten.loops, strict=True):
        G = np.linalg.inv(before[loop.frame_a]) @ before[loop.frame_b]
        H = np.linalg.inv(after[other.frame_a]) @ after[other.frame_b]
        np.testing.assert_allclose(
            np.array(loop.residual(G)), np.array(other.residual(H)), atol=1e-12
        )


def test_propellers_and_forces_on_a_floating_body():
    body = Body("hull", Moments.of_body(1.0, [0, 0, 0], np.eye(3)))
    machine = Machine(
        (body,),
        (Joint("fly", Free(), "world", "hull"),),
        (Frame("arm", "hull", [0.3, 0, 0.1]),),
        actuators=(
            Propeller("up", "arm", "z", torque_ratio=0.02, spin=-1, upper=9.0),
            Wrench("two", "hull", np.arange(12.0).reshape(6, 2)),
            JointForce("push", "fly", gear=np.arange(6.0), lower=-2, upper=3),
        ),
    )
    written = Written(machine)
    assert written.model.nu == machine.nu
    x, v = state(machine, np.random.default_rng(1))
    written.data.ctrl[:] = [1.0, 0.5, -0.3, 2.0]
    written.set(x, v)
    up = np.array([0, 0, 1, 0, -0.3, 0.02])
    expected = up + np.arange(12.0).reshape(6, 2) @ [0.5, -0.3] + 2.0 * np.arange(6.0)
    ours = written.layout.v_from(x, written.data.qfrc_actuator)
    np.testing.assert_allclose(ours, expected, atol=1e-12)


def test_massless_bodies_between_joints_and_locked_joints():
    first = read(EVERYTHING)
    assert [body.name for body in first.bodies if body.massless]
    machine = random_machine(3).lock("j2") if hasattr(Machine, "lock") else random_machine(3)
    written, chain = Written(machine), Chain(machine)
    x, _ = state(machine, np.random.default_rng(5))
    written.set(x)
    for name, pose in chain(x).items():
        assert gap(pose, written.pose(name)) <= 1e-12


def test_everything_that_cannot_be_said_is_named():
    solid = Moments.of_body(1.0, [0, 0, 0], np.eye(3))
    machine = Machine(
        (
            Body("a", solid),
            Body("b", solid),
            Body("c", None),
            Body("d", Moments.of_points([[0, 0, 1]], [1])),
            Body("e", solid),
        ),
        (
            Joint("ja", Helical("z", 0.1), "world", "a"),
            Joint("jb", Spherical(), "a", "b", damping=[1, 2, 3], stiffness=1.0, rest=[0, 1, 0, 0]),
            Joint("jc", Revolute("x"), "b", "c", friction=1.0, friction_width=0.1),
            Joint("jd", Continuous("x"), "b", "d", stiffness=2.0),
            Joint("je", Prismatic("x"), "a", "e"),
        ),
        springs=(Spring("s", "a", "b", solid),),
        loops=(Loop("l", "slider", "a", "b", axis="x"),),
        couplings=(
            Coupling("k", "ja", ("jc",), Polynomial([1.0, 2, 3, 4, 5, 6])),
            Coupling("m", "je", ("ja", "jc"), Linear((1.0, 2.0))),
        ),
        actuators=(
            TiltingPropeller("t", "a"),
            Wrench("w", "a", np.ones(6), A=[[1.0]], b=[2.0]),
        ),
    )
    with pytest.raises(WriteError) as caught:
        to_mjcf(machine)
    assert caught.value.problems == (
        "body `c` has no mass: MuJoCo moves none, except between two joints and without frames "
        "on it",
        'spring `s`: MJCF has none between bodies; `without="spring"` leaves it out',
        "joint `ja`: MJCF has no helical joint",
        "joint `jb`: `damping` must be one number for a ball in MJCF, got [1.0, 2.0, 3.0]",
        "joint `jb`: MJCF cannot describe its spherical spring",
        "joint `jc`: `friction_width` 0.1 cannot be written; only the default, 0.01",
        "joint `jd`: MJCF cannot describe its continuous spring",
        "body `d`: MuJoCo needs principal moments of inertia that are positive and keep the "
        "triangle inequality, got [0.0, 0.0, 0.0] kg m^2",
        'loop `l`: MJCF has no slider loop; `without="equality"` leaves out all loops and '
        "couplings",
        "coupling `k`: MJCF has only polynomials up to the fourth power",
        "coupling `m`: MJCF couples one coordinate of a slide or hinge to one other",
        'actuator `t`: MJCF has no TiltingPropeller; `without="actuator"` leaves out all',
        "actuator `w`: MJCF has limits of single inputs only, not `A u <= b`",
    )


def test_shapes_are_drawn_but_weigh_nothing():
    body = Body("a", Moments.of_body(1.0, [0, 0, 0], np.eye(3)))
    machine = Machine(
        (body,),
        (Joint("j", Revolute("z"), "world", "a"),),
        geometry=(
            Shape("a", "box", [1, 2, 3]),
            Shape("a", "capsule", [0.1, 2], role="collision"),
            Shape("a", "mesh", [1, 1, 1], file="x.stl"),
            Shape("world", "plane", [2, 2]),
        ),
        keyframes=(Keyframe("up", {"j": [1.0]}),),
    )
    text = to_mjcf(machine)
    assert "1 shapes are left out" in text
    again = read(text)
    assert again.body("a").moments.total == 1.0
    assert [(s.kind, s.size.tolist(), s.role) for s in again.geometry] == [
        ("plane", [2, 2], "visual"),
        ("box", [1, 2, 3], "visual"),
        ("capsule", [0.1, 2], "collision"),
    ]
    assert "x.stl" in to_mjcf(machine, meshes=True)


ROBOTS = [
    "panda_description/panda.urdf",
    "talos_data/talos_reduced.urdf",
    "go2_description/go2.urdf",
]


@pytest.mark.parametrize("name", ROBOTS)
def test_robots_from_urdf_move_alike_in_mujoco(name):
    files = example_urdfs()
    if not files:
        pytest.skip("example-robot-data is not installed")
    machine = read(files[name], base="free", mimic="independent")
    written, inertia = Written(machine), Inertia(machine)
    rng = np.random.default_rng(2)
    for _ in range(3):
        x, _ = state(machine, rng)
        written.set(x)
        M = mujoco_mass(written.model, written.data)
        T = np.array([written.layout.v_to(x, row) for row in np.eye(machine.nv)]).T
        assert gap(inertia(x), T.T @ M @ T) <= 1e-12
