"""Massless bodies in loops: loops and couplings move them, and maximal agrees with Gauss."""

from dataclasses import replace

import numpy as np
import pytest
from random_machines import evaluate, random_machine, random_moments, random_pose, relative_error
from test_maximal_closed import (
    KINDS,
    closed_by,
    feasible,
    open_rows,
    port_of_loops,
    relative_pose,
)

from framefree.geometry import Moments
from framefree.machine import (
    Body,
    Coupling,
    Frame,
    Free,
    Joint,
    Linear,
    Loop,
    Machine,
    Prismatic,
    Revolute,
    Spherical,
    Universal,
)
from framefree.motion.maximal import Maximal
from framefree.motion.tree import Tree


def gauss(machine, x, v, force):
    """Joint accelerations by the null space of the rows; and whether they are unique."""
    tree = Tree(replace(machine, loops=(), couplings=()))
    A, b = open_rows(machine, tree, x, v)
    M = evaluate(tree.functions["mass"], x)
    right = force - evaluate(tree.functions["bias"], x, v).ravel()
    U, sizes, V = np.linalg.svd(A)
    rank = int((sizes > 1e-9 * sizes[0]).sum())
    held, free = V[:rank].T @ ((U[:, :rank].T @ b.ravel()) / sizes[:rank]), V[rank:].T
    left = free.T @ M @ free
    size = np.sqrt(np.maximum(np.diag(left), 1e-12 * max(np.trace(M), 1e-9)))
    unique = not left.size or np.linalg.eigvalsh(left / np.outer(size, size))[0] > 1e-9
    a = held + free @ np.linalg.lstsq(left, free.T @ (right - M @ held), rcond=None)[0]
    return tree, a, unique


def forward(machine, x, v, force):
    """Accelerations of the bodies in the maximal formulation, and joint wrenches."""
    eom = Maximal(machine)
    pose, twist = (one.ravel() for one in evaluate(eom.functions["from_joints"], x, v))
    state = (pose, twist, 0 * twist, force)
    a, wrench = (
        evaluate(eom.functions[name], *state) for name in ("forward:both", "joint_wrench:both")
    )
    return eom, state, a.reshape(-1, 6), wrench


def check(machine, x, seed=0):
    """Compare with Gauss, at a random feasible velocity under random forces."""
    rng = np.random.default_rng(seed)
    v, force = feasible(machine, x, rng), rng.normal(size=machine.nv)
    tree, a, unique = gauss(machine, x, v, force)
    assert unique
    eom, state, found, wrench = forward(machine, x, v, force)
    expected = evaluate(tree.functions["body_acceleration"], x, v, a)
    assert np.abs(found - expected).max() < 1e-8 * max(1.0, np.abs(expected).max())
    # Motors give what they are told, also those of joints that only the loops hold.
    resisting = evaluate(tree.functions["inverse"], x, v, a).ravel()
    A, _ = open_rows(machine, tree, x, v)
    rows = evaluate(eom.functions["kkt_multipliers"], *state).ravel()[-len(A) :]
    assert relative_error(resisting + A.T @ rows, force) < 1e-7
    # Taking the loops' wrenches as a port, the open tree needs the same motors for this motion.
    if not machine.couplings:
        wrenches = evaluate(eom.functions["loop_wrench:both"], *state)
        port = port_of_loops(machine, eom, state[0], wrenches)
        motors = evaluate(eom.functions["joint_inverse"], *state[:2], found.ravel(), port)
        assert relative_error(motors.ravel(), force) < 1e-7
    assert np.isfinite(wrench).all()


def closed(bodies, joints, frames, pairs, rng, x=None, **more):
    """A machine closed by loops (kind, a, b) in a random configuration."""
    machine = Machine(bodies, joints, frames, gravity=(1.0, 2.0, -9.0), **more)
    x = machine.random(rng) if x is None else x
    tree = Tree(replace(machine, couplings=()))
    loops = [
        closed_by(kind, f"loop{k}", a, b, relative_pose(tree, x, a, b))
        for k, (kind, a, b) in enumerate(pairs)
    ]
    return replace(machine, loops=loops), x


def pendulum_with_connector():
    """A pendulum tied to the world by a massless bar with a pin at both ends."""
    rod = Moments.of_body(1.0, (0.5, 0, 0), np.diag([0, 1 / 12, 1 / 12]))
    bodies = [Body("rod", rod), Body("bar", None)]
    joints = [
        Joint("pivot", Revolute("y"), "world", "rod"),
        Joint("pin", Revolute("y"), "rod", "bar", parent_pose=(1, 0, 0)),
    ]
    frames = [Frame("end", "bar", (0.7, 0, 0)), Frame("wall", "world", (1.0, 0, 0.2))]
    return bodies, joints, frames


def test_a_massless_bar_passes_its_motor_on_to_the_pendulum():
    """One loop row holds the bar: the closed form follows from a force along the row."""
    bodies, joints, frames = pendulum_with_connector()
    rail = [Frame("rail", "world", (0, 0, -0.9))]
    # The bar's end is to keep its distance from a point: one row for two velocities.
    x = np.array([0.4, -1.1])
    machine, x = closed(bodies, joints, [*frames, *rail], [("distance", "rail", "end")], None, x)
    force = np.array([0.0, 20.0])
    tree, a, unique = gauss(machine, x, np.zeros(2), force)
    assert unique
    _, _, found, _ = forward(machine, x, np.zeros(2), force)
    # The row's force balances the bar's motor, as nothing of the bar has inertia:
    A, _ = open_rows(machine, tree, x, np.zeros(2))
    pull = -force[1] / A[0, 1]
    weight = evaluate(tree.functions["gravity"], x).ravel()[0]
    by_hand = (force[0] + A[0, 0] * pull - weight) / (1 / 12 + 1 / 4)
    assert np.isclose(a[0], by_hand, rtol=1e-12)
    assert np.isclose(found[0, 4], by_hand, rtol=1e-10)
    assert abs(by_hand) > 10


@pytest.mark.parametrize(
    ("kind", "massless"),
    [
        *[("weld", (1,)), ("weld", (2, 3)), ("ball", (0,)), ("ball", (1, 2)), ("ball", (0, 1, 2))],
        *[("hinge", (2,)), ("hinge", (1, 3)), ("slider", (3,)), ("slider", (0, 1))],
        *[("distance", (1,)), ("distance", (3,)), ("distance", (2, 3))],
    ],
)
def test_massless_bodies_anywhere_in_a_chain_that_is_closed(kind, massless):
    """Six velocities and more, closed to the world at its last body, which may be massless too."""
    rng = np.random.default_rng(3)
    kinds = [Universal("x", (0.2, 1, 0)), Spherical(), Revolute((1, 1, 0)), Prismatic("z")]
    if kind in ("weld", "hinge", "slider"):
        kinds[0] = Free()
    bodies = [
        Body(f"b{i}", None if i in massless else random_moments(rng)) for i in range(len(kinds))
    ]
    if len(massless) == 3 and kind in ("distance", "ball"):
        kinds = [Revolute("x"), Revolute((0, 1, 1)), Revolute("z"), Spherical()]
    joints = [
        Joint(f"j{i}", one, "world" if i == 0 else f"b{i - 1}", f"b{i}", random_pose(rng))
        for i, one in enumerate(kinds)
    ]
    frames = [Frame(f"f{i}", f"b{i}", random_pose(rng)) for i in range(len(kinds))]
    frames.append(Frame("wall", "world", random_pose(rng)))
    pairs = [(kind, "wall", "f3")]
    machine, x = closed(bodies, joints, frames, pairs, rng)
    v, force = feasible(machine, x, rng), rng.normal(size=machine.nv)
    if gauss(machine, x, v, force)[2]:
        check(machine, x)
    else:  # too few rows hold the massless bodies
        assert not np.isfinite(forward(machine, x, v, force)[2]).all()


@pytest.mark.parametrize(
    "seed", [*range(6), *(pytest.param(k, marks=pytest.mark.slow) for k in range(6, 40))]
)
def test_random_machines_with_massless_bodies_and_loops(seed):
    rng = np.random.default_rng(seed)
    while True:
        machine = random_machine(rng, bodies=int(rng.integers(3, 6)), fluid=False)
        bodies = [replace(b, inertia=None) if rng.random() < 0.4 else b for b in machine.bodies]
        machine = replace(machine, bodies=bodies)
        if machine.nv >= 3 and any(body.massless for body in bodies):
            break
    x = machine.random(rng)
    tree = Tree(machine)
    loops = []
    for k in range(rng.integers(1, 4)):
        a, b = rng.permutation([frame.name for frame in machine.frames])[:2]
        kind = KINDS[rng.integers(len(KINDS))]
        loops.append(closed_by(kind, f"loop{k}", a, b, relative_pose(tree, x, a, b)))
    machine = replace(machine, loops=loops)
    v, force = feasible(machine, x, rng), rng.normal(size=machine.nv)
    if gauss(machine, x, v, force)[2]:
        check(machine, x)
    else:
        assert not np.isfinite(forward(machine, x, v, force)[2]).all()


def test_a_massless_body_that_floats_between_two_loops():
    """Its six velocities are held by a hinge on one arm and a ball on another."""
    rng = np.random.default_rng(5)
    bodies = [Body("a", random_moments(rng)), Body("b", random_moments(rng)), Body("link", None)]
    joints = [
        Joint("ja", Spherical(), "world", "a", random_pose(rng)),
        Joint("jb", Free(), "world", "b"),
        Joint("jl", Free(), "world", "link"),
    ]
    frames = [Frame(f"f{k}", body, random_pose(rng)) for k, body in enumerate(("a", "b"))]
    frames += [Frame("l0", "link", (0.3, 0, 0)), Frame("l1", "link", (-0.4, 0.1, 0))]
    machine, x = closed(bodies, joints, frames, [("hinge", "f0", "l0"), ("ball", "f1", "l1")], rng)
    check(machine, x)


def test_redundant_rows_on_massless_bodies():
    """A planar four-bar of hinges in space whose coupler has no mass."""
    bar = Moments.of_body(1.0, (0.5, 0, 0), np.diag([0.01, 0.1, 0.1]))
    bodies = [Body("crank", bar), Body("coupler", None), Body("rocker", bar)]
    joints = [
        Joint("j0", Revolute("y"), "world", "crank"),
        Joint("j1", Revolute("y"), "crank", "coupler", parent_pose=(1, 0, 0)),
        Joint("j2", Revolute("y"), "world", "rocker", parent_pose=(1, 0, 0)),
    ]
    frames = [Frame("end", "coupler", (1, 0, 0)), Frame("tip", "rocker", (1, 0, 0))]
    for kind in ("hinge", "ball"):
        axis = {"axis": "y"} if kind == "hinge" else {}
        machine = Machine(bodies, joints, frames, loops=[Loop("c", kind, "end", "tip", **axis)])
        x = np.array([0.7, -0.7, 0.7])
        check(machine, x)
        eom, state, found, _ = forward(machine, x, np.zeros(3), np.array([0.0, 3.0, 0.0]))
        # The multipliers are the shortest that give this motion.
        mu = evaluate(eom.functions["kkt_multipliers"], *state).ravel()[-machine.loops[0].size :]
        tree = Tree(replace(machine, loops=()))
        A, _ = open_rows(machine, tree, x, np.zeros(3))
        assert relative_error(np.linalg.pinv(A.T, rcond=1e-9) @ (A.T @ mu), mu) < 1e-9
        assert np.isfinite(found).all()


def test_couplings_hold_massless_bodies():
    """A massless gear wheel that a coupling drives, and a body that it carries."""
    rng = np.random.default_rng(2)
    bodies = [Body("base", random_moments(rng)), Body("wheel", None), Body("hand", None)]
    joints = [
        Joint("q0", Revolute("y"), "world", "base"),
        Joint("q1", Revolute("x"), "base", "wheel", (0.3, 0, 0)),
        Joint("q2", Prismatic("z"), "wheel", "hand", (0, 0.2, 0)),
    ]
    couplings = [
        Coupling.mimic("mimic", "q1", "q0", 2.0, 0.1),
        Coupling("both", "q2", ("q0", "q1"), Linear((0.5, -1.5))),
    ]
    machine = Machine(bodies, joints, couplings=couplings)
    x = np.array([0.3, 0.7, 0.15 - 1.05])
    check(machine, x)
    # Without the second coupling nothing holds the hand.
    v, force = np.zeros(3), np.ones(3)
    loose = replace(machine, couplings=couplings[:1])
    assert not np.isfinite(forward(loose, x, v, force)[2]).all()


def test_rotors_without_mass():
    """Bodies without mass whose rotors resist, one of several motions left to the loop."""
    rng = np.random.default_rng(4)
    bodies = [Body("a", None), Body("b", None), Body("c", None)]
    joints = [
        Joint("ja", Revolute("y"), "world", "a", armature=0.3),
        Joint("jb", Spherical(), "a", "b", (0.5, 0, 0), armature=(0.1, 0.2, 0.0)),
        Joint("jc", Prismatic("x"), "b", "c", (0.4, 0.1, 0)),
    ]
    frames = [Frame("tip", "c", (0.1, 0.2, 0.3)), Frame("wall", "world", (0.2, 0.1, 1.0))]
    machine, x = closed(bodies, joints, frames, [("ball", "wall", "tip")], rng)
    check(machine, x)


def test_parallel_axes_share_one_inertia():
    """A massless body between two joints of one axis: only the loop tells who turns."""
    rng = np.random.default_rng(6)
    bodies = [Body("ring", None), Body("disc", random_moments(rng)), Body("arm", None)]
    joints = [
        Joint("j0", Revolute((1, 2, 3)), "world", "ring"),
        Joint("j1", Revolute((1, 2, 3)), "ring", "disc"),
        Joint("j2", Revolute("x"), "ring", "arm", (0.2, 0.3, 0.1)),
    ]
    frames = [Frame("tip", "arm", (0, 0.5, 0)), Frame("wall", "world", (0.9, 0, 0))]
    machine, x = closed(bodies, joints, frames, [("ball", "wall", "tip")], rng)
    check(machine, x)
    free = replace(machine, loops=[Loop("l", "distance", "wall", "tip", length=0.7)])
    x = np.array([0.1, 0.2, 0.3])
    _, _, unique = gauss(free, x, np.zeros(3), np.ones(3))
    assert not unique
    assert not np.isfinite(forward(free, x, np.zeros(3), np.ones(3))[2]).all()


def test_a_ball_loop_on_the_axis_of_a_massless_body_does_not_hold_it():
    """What the loop sees of the turn is rounding: no number is better than any number."""
    bodies = [Body("arm", Moments.of_body(1.0, (0.3, 0.1, 0), 0.1 * np.eye(3))), Body("tip", None)]
    joints = [
        Joint("j0", Spherical(), "world", "arm", (0.1, 0.2, 0.3)),
        Joint("j1", Revolute((0.6, 0.8, 0)), "arm", "tip", (0.3, 0.7, 0.11)),
    ]
    for along in (0.0, 0.37):
        frames = [
            Frame("end", "tip", np.array((0.6, 0.8, 0)) * along),
            Frame("wall", "world", (1.1, 0.3, 0.4)),
        ]
        rng = np.random.default_rng(1)
        machine, x = closed(bodies, joints, frames, [("ball", "wall", "end")], rng)
        found = forward(machine, x, feasible(machine, x, rng), rng.normal(size=4))[2]
        assert not np.isfinite(found).all()


@pytest.mark.parametrize("scale", [1e-3, 1.0, 1e3])
def test_units_do_not_matter(scale):
    """Lengths in millimetres or kilometres: the same motion in other numbers."""
    bodies, joints, frames = pendulum_with_connector()
    x, pairs = np.array([0.4, -1.1]), [("distance", "wall", "end")]
    machine, _ = closed(bodies, joints, frames, pairs, None, x)
    force = np.array([0.3, 2.0])
    expected = forward(machine, x, np.zeros(2), force)[2]
    rod = Moments.of_body(1.0, (0.5 * scale, 0, 0), scale**2 * np.diag([0, 1 / 12, 1 / 12]))
    bodies = [Body("rod", rod), Body("bar", None)]

    def scaled(pose):
        found = np.array(pose)
        found[:3, 3] *= scale
        return found

    joints = [replace(joint, parent_pose=scaled(joint.parent_pose)) for joint in joints]
    frames = [replace(frame, pose=scaled(frame.pose)) for frame in frames]
    other = Machine(bodies, joints, frames, gravity=scale * machine.gravity)
    length = scale * machine.loops[0].length
    other = replace(other, loops=[Loop("loop0", "distance", "wall", "end", length=length)])
    found = forward(other, x, np.zeros(2), scale**2 * force)[2]
    assert relative_error(found[:, 3:], expected[:, 3:]) < 1e-10
    assert relative_error(found[:, :3], scale * expected[:, :3]) < 1e-10
