"""The machine: its tree, its coordinates and states, its inputs."""

import pickle

import casadi
import numpy as np
import pytest
from machine_samples import ALL_KINDS, arm, body_poses, chain, some_moments

from framefree.errors import FramefreeWarning
from framefree.geometry import se3
from framefree.machine import (
    Body,
    Damper,
    Frame,
    Free,
    Joint,
    Machine,
    MachineError,
    Revolute,
    Spring,
    StateError,
)


def tree(joint_list, **fields):
    """A machine from (parent, child) pairs."""
    bodies = [Body(child, some_moments()) for _, child in joint_list]
    joints = [Joint(f"{p}-{c}", Revolute(), p, c) for p, c in joint_list]
    return Machine(bodies, joints, **fields)


def test_bodies_follow_their_parents_depth_first():
    machine = tree([("d", "e"), ("b", "d"), ("world", "a"), ("world", "b"), ("b", "c"), ("a", "f")])
    assert [body.name for body in machine.bodies] == ["a", "f", "b", "d", "e", "c"]
    assert machine.parent == (-1, 0, -1, 2, 3, 2)
    assert machine.children == ((1,), (), (3, 5), (4,), (), ())
    assert [joint.child for joint in machine.joints] == [body.name for body in machine.bodies]
    assert machine.subtree("b") == range(2, 6)
    assert machine.subtree("a") == range(2)
    assert machine.body_index["world"] == -1


def test_random_trees_keep_the_order_rules():
    rng = np.random.default_rng(0)
    for _ in range(20):
        n = 12
        names = [f"n{i}" for i in rng.permutation(n)]
        pairs = [
            (names[rng.integers(i)] if i and rng.uniform() < 0.9 else "world", names[i])
            for i in range(n)
        ]
        machine = tree([pairs[i] for i in rng.permutation(n)])
        assert all(parent < i for i, parent in enumerate(machine.parent))
        for i, body in enumerate(machine.bodies):
            inside = machine.subtree(body.name)
            for k in range(n):
                up = k
                while up > i:
                    up = machine.parent[up]
                assert (up == i) == (k in inside)


def test_sizes_names_and_slices():
    machine = chain()
    assert machine.nx == sum(kind.nx for kind in ALL_KINDS)
    assert machine.nv == sum(kind.nv for kind in ALL_KINDS)
    assert machine.x_names[:8] == (
        "j0.px",
        "j0.py",
        "j0.pz",
        "j0.qw",
        "j0.qx",
        "j0.qy",
        "j0.qz",
        "j1",
    )
    assert len(machine.x_names) == machine.nx
    assert len(set(machine.v_names)) == machine.nv
    assert machine.x_slice["j2"] == slice(8, 10)
    assert machine.v_slice["j2"] == slice(7, 8)
    assert machine.x_slice["j9"] == slice(machine.nx, machine.nx)


def test_joints_between_frames():
    """A joint between frames is the joint between their bodies, with the frames' poses taken in."""
    rng = np.random.default_rng(0)
    poses = [np.array(se3.exp(rng.normal(size=6))) for _ in range(4)]
    bodies = [Body("a", some_moments()), Body("b", some_moments())]
    frames = [Frame("out", "a", poses[0]), Frame("in", "b", poses[1])]
    joints = [
        Joint("root", Free(), "world", "a"),
        Joint("j", Revolute(), "out", "in", poses[2], poses[3]),
    ]
    machine = Machine(bodies, joints, frames)
    assert machine.joint("j").parent == "a"
    assert np.allclose(machine.joint("j").parent_pose, poses[0] @ poses[2])
    assert np.allclose(machine.joint("j").child_pose, poses[1] @ poses[3])


def test_frames_of_bodies_and_world():
    machine = arm()
    assert machine.frame("upper").body == "upper"
    assert np.array_equal(machine.frame("world").pose, np.eye(4))
    assert machine.frame("tip").body == "lower"
    with pytest.raises(MachineError, match="did you mean `tip`"):
        machine.frame("tipp")


def test_states_one_and_many():
    machine, rng = chain(), np.random.default_rng(1)
    X = machine.random(rng, 7)
    dv = rng.normal(size=(7, machine.nv))
    moved = machine.integrate(X, dv)
    assert moved.shape == (7, machine.nx)
    machine.validate(moved, dv)
    assert np.array_equal(moved[3], machine.integrate(X[3], dv[3]))
    assert np.array_equal(machine.integrate(X, dv[0])[0], moved[0])
    back = machine.integrate(X, machine.difference(X, moved))
    for one, other in zip(back, moved, strict=True):
        for name, pose in body_poses(machine, one).items():
            assert np.allclose(pose, body_poses(machine, other)[name], atol=1e-12)
    assert machine.integrate(np.zeros((0, machine.nx)), np.zeros((0, machine.nv))).shape == (
        0,
        machine.nx,
    )


def test_symbolic_states_run_the_same_code():
    machine, rng = chain(), np.random.default_rng(2)
    x, dv = machine.random(rng), rng.normal(size=machine.nv)
    xs, vs = casadi.SX.sym("x", machine.nx), casadi.SX.sym("v", machine.nv)
    traced = casadi.Function(
        "f", [xs, vs], [machine.integrate(xs, vs), machine.rate_matrix(xs) @ vs]
    )
    moved, rate = (np.array(value).ravel() for value in traced(x, dv))
    assert np.allclose(moved, machine.integrate(x, dv), atol=1e-15)
    small = 1e-6
    slope = (machine.integrate(x, small * dv) - machine.integrate(x, -small * dv)) / (2 * small)
    assert np.allclose(rate, slope, atol=1e-8)


def test_random_states_in_batches():
    machine = chain()
    one = machine.random(np.random.default_rng(0))
    assert np.array_equal(machine.random(np.random.default_rng(0), 1)[0], one)
    many = machine.random(np.random.default_rng(1), 20_000)
    machine.validate(many)
    # Uniform over rotations: the mean of a rotation matrix is zero, of |w| it is 4 / (3 pi).
    quaternions = many[:, machine.x_slice["j8"]]
    assert np.abs(quaternions[:, 0]).mean() == pytest.approx(4 / (3 * np.pi), rel=0.02)
    assert np.abs(many[:, machine.x_slice["j2"]].mean(axis=0)).max() < 0.02


def test_neutral_and_normalise():
    machine = chain()
    neutral = machine.neutral()
    machine.validate(neutral)
    skewed = neutral * 1.5
    with pytest.raises(StateError):
        machine.validate(skewed)
    assert np.allclose(machine.normalise(skewed), neutral)
    for joint in machine.joints:
        part = casadi.DM(neutral[machine.x_slice[joint.name]])
        assert np.allclose(np.array(casadi.DM(joint.kind.pose(part))), np.eye(4))


def test_validate_lists_everything():
    machine = arm()
    with pytest.raises(StateError) as caught:
        machine.validate(np.zeros(4), [0, np.nan, 0])
    assert len(caught.value.problems) == 2
    machine.validate(np.array([0.0, 3.0, 0.0]))
    with pytest.raises(StateError, match=r"`elbow` must be within \[-2, 2\], got 3"):
        machine.validate(np.array([0.0, 3.0, 0.0]), limits=True)
    with pytest.raises(StateError, match=r"\(j0.qw, j0.qx, j0.qy, j0.qz\) must have unit length"):
        chain((Free(),)).validate(np.zeros(7))
    with pytest.raises(StateError, match="expected shape"):
        machine.integrate(np.zeros(2), np.zeros(3))


def test_a_machine_without_bodies():
    machine = Machine((), ())
    assert (machine.nx, machine.nv, machine.nu) == (0, 0, 0)
    assert machine.neutral().shape == (0,)
    assert machine.integrate(np.zeros(0), np.zeros(0)).shape == (0,)


def test_inputs():
    machine = arm()
    assert machine.nu == 6
    assert machine.u_names == ("motor", "jet.0", "jet.1", "fan", "vane.sine", "vane.cosine")
    assert machine.u_slice["jet"] == slice(1, 3)
    lower, upper = machine.input_limits
    assert lower[[0, 3]].tolist() == [-5, 0]
    assert upper[[0, 3]].tolist() == [6, 9]
    A, b = machine.input_polytope
    rng = np.random.default_rng(0)
    for u in rng.uniform(-8, 10, (2000, machine.nu)):
        box = (u >= lower).all() and (u <= upper).all()
        jet = u[1] + u[2] <= 3.0
        vane_A, vane_b = machine.actuators[3].polytope
        vane = (vane_A @ u[4:6] <= vane_b).all()
        assert (A @ u <= b).all() == (box and jet and vane)


def test_keyframes():
    x, v, u = arm().keyframe("home")
    assert x.tolist() == [0, 0.3, 0]
    assert v.tolist() == [1, 0, 0]
    assert u.tolist() == [0, 0, 0, 2, 0, 0]
    with pytest.raises(MachineError, match="keyframe `hom` is unknown"):
        arm().keyframe("hom")


@pytest.mark.parametrize("make", [arm, chain])
def test_equality_hash_and_pickle(make):
    machine, again = make(), make()
    assert machine == again
    assert hash(machine) == hash(again)
    machine.integrate(machine.neutral(), np.zeros(machine.nv))  # caches must not be pickled
    copy = pickle.loads(pickle.dumps(machine))
    assert copy == machine
    with pytest.raises(ValueError, match="read-only"):
        copy.joints[0].parent_pose[0, 0] = 2.0
    changed = machine.replace(gravity=(0, 0, -1.0))
    assert changed != machine
    assert len({machine, again, changed}) == 2


def test_frozen():
    machine = arm()
    with pytest.raises(AttributeError):
        machine.name = "leg"
    with pytest.raises(TypeError):
        machine.x_slice["new"] = slice(0, 1)


def test_doubtful_things_are_listed_not_refused():
    bad = some_moments() - 2.0 * some_moments(0.6)
    with pytest.warns(FramefreeWarning, match="spring `s`") as said:
        spring = Spring("s", "world", "a", -1.0 * some_moments())
    assert ["total is negative" in str(said[0].message), len(said)] == [True, 2]
    machine = Machine(
        [Body("a", some_moments()), Body("b", None)],
        [Joint("ja", Revolute(), "world", "a"), Joint("jb", Revolute(), "a", "b")],
        springs=[spring],
        dampers=[Damper("d", "world", "a", -np.eye(6))],
    )
    assert machine.problems == (
        "spring `s` is not stable at its rest pose",
        "damper `d` feeds power into some motions",
        "joint `jb` moves no mass, and has no armature: its acceleration is undefined",
    )
    assert bad.total < 0


def test_inertia_of_files_is_kept_but_listed():
    moments = some_moments()
    odd = type(moments).of_body(1.0, (0, 0, 0), np.diag([0.1, 0.1, 0.5]))
    with pytest.raises(MachineError, match="triangle inequality"):
        Body("odd", odd)
    body = Body("odd", odd, strict=False, source="robot.urdf, line 3")
    machine = Machine([body], [Joint("j", Free(), "world", "odd")], remarks=("note",))
    assert machine.problems[0] == "note"
    assert machine.problems[1].startswith("robot.urdf, line 3: the inertia of body `odd`")


def test_closed_machines_have_a_tree():
    closed = arm()
    assert closed.loops
    assert closed.couplings
    assert closed.closed
    assert not closed.tree.loops
    assert not closed.tree.couplings
    assert not closed.tree.closed
    assert closed.tree.bodies == closed.bodies
    assert closed.tree.actuators == closed.actuators
    assert closed.tree.tree is closed.tree
    only_loops = closed.replace(couplings=())
    only_couplings = closed.replace(loops=())
    assert only_loops.closed
    assert only_couplings.closed


def test_the_tree_keeps_its_tunable_numbers():
    closed = arm().tunable("rod.length", "upper.mass")
    tree = closed.tree
    assert tree.parameters.names == ("upper.mass",)
    assert casadi.is_equal(tree.parameters.symbols, closed.parameters.symbols[1])
    heavier = tree.with_parameters({"upper.mass": 7.0})
    assert heavier.body("upper").moments.total == pytest.approx(7.0)
    assert not tree.numeric.closed
    assert tree.numeric == arm().tree
    assert pickle.loads(pickle.dumps(tree)) == tree
