"""Joint angles of the maximal formulation count full turns, in springs, couplings and runs."""

from dataclasses import replace

import numpy as np
import pytest
from random_machines import evaluate, random_moments, random_pose, relative_error
from test_maximal_agreement import screwed

import framefree as ff
from framefree.geometry import Moments
from framefree.machine import (
    Body,
    Continuous,
    Coupling,
    Custom,
    Cylindrical,
    Helical,
    Joint,
    Linear,
    Machine,
    Prismatic,
    Revolute,
    Universal,
)
from framefree.motion.maximal import Maximal
from framefree.motion.maximal.maximal import LOOPED
from framefree.motion.tree import Tree

KINDS = {
    "revolute": Revolute((1, 2, 3)),
    "cylindrical": Cylindrical((1, -1, 0.5)),
    "universal": Universal("x", (0.3, 1, 0)),
    "screw": Helical("y", pitch=0.2),
    "reversed": Helical("y", pitch=-0.03),
    "plain": Helical("y", pitch=0.0),
}

ALL = tuple(KINDS.values())


def wound(seed=0, kinds=ALL, stiff=True):
    """A chain of joints with angles, springs on all of them."""
    rng = np.random.default_rng(seed)
    bodies = [Body(f"b{i}", random_moments(rng)) for i in range(len(kinds))]
    joints = [
        Joint(
            f"j{i}",
            kind,
            "world" if i == 0 else f"b{i - 1}",
            f"b{i}",
            random_pose(rng),
            random_pose(rng),
            stiffness=rng.uniform(0.5, 2, kind.nv) if stiff else 0.0,
            armature=0.1 * (i % 2),
        )
        for i, kind in enumerate(kinds)
    ]
    return Machine(bodies, joints)


def turned(machine, rng, turns=9):
    """Angles of many turns in both directions; a distance stays a distance."""
    x = rng.uniform(-2 * np.pi * turns, 2 * np.pi * turns, machine.nx)
    for joint in machine.joints:
        if isinstance(joint.kind, Cylindrical):
            x[machine.x_slice[joint.name].start] = 0.4
    return x


def both(machine, x, v, force):
    """Accelerations of the bodies by maximal and by tree, and energies."""
    eom, tree = Maximal(machine), Tree(machine)
    pose, twist = (one.ravel() for one in evaluate(eom.functions["from_joints"], x, v))
    a = evaluate(eom.functions["forward:joint_force"], pose, twist, force).reshape(-1, 6)
    joint_a = evaluate(tree.functions["forward"], x, v, force).ravel()
    expected = evaluate(tree.functions["body_acceleration"], x, v, joint_a)
    energies = [
        evaluate(one.functions["energy"], *at) for one, at in ((eom, (pose, twist)), (tree, (x, v)))
    ]
    return a, expected, energies


def test_a_torsion_spring_wound_three_turns_pulls_back_three_turns():
    inertia = Moments.of_body(1.0, (0, 0, 0), np.diag([0.1, 0.2, 0.3]))
    joint = Joint("hinge", Revolute("y"), "world", "wheel", stiffness=2.0)
    machine = Machine([Body("wheel", inertia)], [joint], gravity=(0, 0, 0))
    x = np.array([6 * np.pi + 0.3])
    a, _, (energy, _) = both(machine, x, np.zeros(1), np.zeros(1))
    assert np.isclose(a[0, 4], -2.0 * x[0] / 0.2, rtol=1e-13)
    assert np.isclose(energy[1], x[0] ** 2, rtol=1e-13)


@pytest.mark.parametrize("name", KINDS)
def test_springs_feel_every_turn(name):
    rng = np.random.default_rng(3)
    machine = wound(kinds=(Revolute("z"), KINDS[name], Revolute("x")))
    x, v, force = turned(machine, rng), rng.normal(size=machine.nv), rng.normal(size=machine.nv)
    a, expected, (energy, same) = both(machine, x, v, force)
    assert relative_error(a, expected) < 1e-9
    assert np.allclose(np.ravel(energy), np.ravel(same), rtol=1e-11)


@pytest.mark.parametrize("x", [np.pi, -np.pi, 3 * np.pi, 5 * np.pi - 1e-13, 0.0, 1e4 + 0.1])
def test_states_convert_to_poses_and_back_at_any_angle(x):
    machine = wound()
    eom = Maximal(machine)
    values = np.full(machine.nx, x)
    values[machine.x_slice["j1"].start] = 0.3
    v = np.random.default_rng(1).normal(size=machine.nv)
    state = evaluate(eom.functions["from_joints"], values, v)
    found, rates = evaluate(eom.functions["joint_state"], *state)
    assert np.abs(found.ravel() - values).max() < 1e-12 * max(1.0, abs(x))
    assert relative_error(rates.ravel(), v) < 1e-11


def test_kept_angles_only_say_how_many_turns():
    """An angle that has drifted away from its pose by less than half a turn changes nothing."""
    machine = wound(kinds=(Revolute("z"), Universal("x", "y")))
    eom = Maximal(machine)
    x = np.array([7.0, -20.0, 30.0])
    pose, twist = (one.ravel() for one in evaluate(eom.functions["from_joints"], x, np.ones(3)))
    assert np.allclose(pose[14:], x)
    pose[14:] += (2.0, -3.0, 3.1)
    found, _ = evaluate(eom.functions["joint_state"], pose, twist)
    assert np.allclose(found.ravel(), x, rtol=1e-13)
    rate = evaluate(eom.functions["rate_matrix"], pose) @ twist
    assert np.allclose(rate[14:], 1.0)


def test_a_coupling_sees_angles_beyond_a_turn():
    """A nonlinear coupling, whose slope depends on how far the joints are wound."""
    rng = np.random.default_rng(2)
    machine = wound(kinds=(Revolute("z"), Revolute("x"), Revolute("y")), stiff=False)
    coupling = Coupling("cam", "j1", ("j0", "j2"), lambda p, q: 0.3 * p + 0.02 * p * q)
    machine = replace(machine, couplings=[coupling])
    x = np.array([8.0, 0.0, -14.0])
    x[1] = 0.3 * x[0] + 0.02 * x[0] * x[2]
    v = rng.normal(size=3)
    v[1] = (0.3 + 0.02 * x[2]) * v[0] + 0.02 * x[0] * v[2]
    force = rng.normal(size=3)
    eom, closed = Maximal(machine), ff.equations(machine, "constrained")
    pose, twist = (one.ravel() for one in evaluate(eom.functions["from_joints"], x, v))
    a = evaluate(eom.functions["forward:joint_force"], pose, twist, force).reshape(-1, 6)
    joint_a = evaluate(closed.functions["forward"], x, v, force).ravel()
    tree = Tree(replace(machine, couplings=()))
    assert relative_error(a, evaluate(tree.functions["body_acceleration"], x, v, joint_a)) < 1e-9


def spinning(count=1):
    """Bodies that turn freely about one another, a spring on the last joint."""
    inertia = Moments.of_body(1.0, (0, 0, 0), np.diag([0.1, 0.2, 0.3]))
    bodies = [Body(f"b{i}", inertia) for i in range(count)]
    joints = [
        Joint(f"j{i}", Revolute("z"), "world" if i == 0 else f"b{i - 1}", f"b{i}", (0.1, 0, 0.2))
        for i in range(count)
    ]
    joints[-1] = replace(joints[-1], stiffness=0.01)
    return Machine(bodies, joints)


@pytest.mark.parametrize("integrator", ["rk4", "midpoint", "euler"])
def test_a_simulated_spin_of_ten_turns(integrator):
    machine = spinning(2)
    v0 = np.array([2 * np.pi * 5.0, 2.0])
    runs = {
        name: ff.simulate(
            machine, None, None, None, v0, duration=2.0, dt=2e-3, formulation=name,
            integrator=integrator,
        )
        for name in ("tree", "maximal")
    }  # fmt: skip
    assert runs["tree"].x[-1, 0] > 2 * np.pi * 9
    assert relative_error(runs["maximal"].x, runs["tree"].x) < (
        1e-8 if integrator == "rk4" else 1e-3
    )
    assert np.abs(np.diff(runs["maximal"].x, axis=0)).max() < 0.1


def test_a_coupled_pair_is_simulated_beyond_a_turn():
    machine = spinning(2)
    machine = replace(machine, couplings=[Coupling("gear", "j1", "j0", Linear((-2.5,)))])
    v0 = np.array([15.0, -37.5])
    runs = {
        name: ff.simulate(machine, None, None, None, v0, duration=2.0, dt=2e-3, formulation=name)
        for name in ("constrained", "maximal")
    }
    x = runs["maximal"].x
    assert np.abs(x[-1]).min() > 4 * 2 * np.pi
    assert np.abs(x[:, 1] + 2.5 * x[:, 0]).max() < 1e-9
    assert relative_error(x, runs["constrained"].x) < 1e-7


def test_many_runs_at_once_count_their_own_turns():
    machine = spinning()
    v0 = np.linspace(-60, 60, 7)[:, None]
    runs = {
        name: ff.simulate(
            machine, None, None, np.zeros((7, 1)), v0, duration=1.0, dt=5e-3, formulation=name
        )
        for name in ("tree", "maximal")
    }
    assert relative_error(runs["maximal"].x, runs["tree"].x) < 1e-8


def test_custom_joints_are_simulated():
    rng = np.random.default_rng(5)
    machine = wound(1, kinds=(Revolute("z"), Custom(screwed, nx=2), Prismatic("x")), stiff=False)
    x0, v0 = 0.3 * rng.normal(size=machine.nx), 0.3 * rng.normal(size=machine.nv)
    runs = {
        name: ff.simulate(machine, None, None, x0, v0, duration=0.5, dt=1e-3, formulation=name)
        for name in ("tree", "maximal")
    }
    assert relative_error(runs["maximal"].x, runs["tree"].x) < 1e-7


def test_native_loops_over_bodies_count_turns():
    """Long machines, single states and batches: springs on every kind of joint with an angle."""
    rng = np.random.default_rng(6)
    kinds = [*KINDS.values(), Continuous("z")]
    machine = wound(2, kinds=[kinds[i % len(kinds)] for i in range(LOOPED)])
    eom, tree = Maximal(machine), Tree(machine)
    forward = eom.kernel("forward:joint_force")
    assert "looped" in vars(eom)
    x = np.array([turned(machine, rng) for _ in range(5)])
    for row in x:
        for joint in machine.joints:
            if isinstance(joint.kind, Continuous):
                row[machine.x_slice[joint.name]] = 0.6, -0.8
    v, force = 0.3 * rng.normal(size=(5, machine.nv)), rng.normal(size=machine.nv)
    states = [evaluate(eom.functions["from_joints"], *one) for one in zip(x, v, strict=True)]
    pose, twist = (np.array([one[k].ravel() for one in states]) for k in range(2))
    batch = forward(pose, twist, force)
    for k in range(5):
        single = forward(pose[k], twist[k], force)
        assert np.array_equal(batch[k], single)
        a = evaluate(tree.functions["forward"], x[k], v[k], force).ravel()
        expected = evaluate(tree.functions["body_acceleration"], x[k], v[k], a)
        assert relative_error(single.reshape(-1, 6), expected) < 1e-9
