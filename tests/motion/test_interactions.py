"""Interactions in the equations of motion: every formulation, derivatives, energy, regressors."""

from dataclasses import replace

import casadi as ca
import numpy as np
import pytest
from constrained_machines import closed_state, random_closed
from interaction_samples import field, with_fields
from random_machines import evaluate, random_machine, random_state, relative_error

from framefree import linearise
from framefree.certify.frames import redescribe
from framefree.gallery.machines.arms import revolute_chain
from framefree.geometry import Moments
from framefree.machine import Body, Interaction, Joint, Machine, MachineError, Prismatic, Spring
from framefree.motion.constrained import Constrained
from framefree.motion.embedded import Embedded
from framefree.motion.maximal import Maximal
from framefree.motion.redundant import Redundant
from framefree.motion.tree import Tree

T = 0.37


def answers(eom, x, v, force, version=""):
    inputs = (x, v, force, T)
    a = evaluate(eom.functions[f"forward{version}"], *inputs)
    return (
        evaluate(eom.functions["body_acceleration"], x, v, np.ravel(a)),
        evaluate(eom.functions[f"joint_wrench{version}"], *inputs),
        evaluate(eom.functions[f"power{version}"], *inputs),
        np.ravel(evaluate(eom.functions["energy"], x, v, T)),
        evaluate(eom.functions["dissipation"], x, v, T),
    )


def assert_agree(found, expected, bar=1e-9):
    for one, other in zip(found, expected, strict=True):
        assert relative_error(one, other) < bar


@pytest.mark.parametrize("seed", range(12))
def test_trees_agree_in_every_formulation(seed):
    rng = np.random.default_rng(seed)
    machine = with_fields(random_machine(rng, int(rng.integers(1, 5))), rng)
    x, v, _ = random_state(rng, machine)
    force = rng.normal(size=machine.nv)
    expected = answers(Tree(machine), x, v, force)
    for kind in (Constrained, Redundant, Embedded):
        assert_agree(answers(kind(machine), x, v, force), expected)
    maximal = Maximal(machine)
    pose, twist = (np.ravel(a) for a in evaluate(maximal.functions["from_joints"], x, v))
    assert_agree(answers(maximal, pose, twist, force, ":joint_force"), expected)


@pytest.mark.parametrize("seed", range(40, 46))
def test_closed_machines_agree(seed):
    rng = np.random.default_rng(seed)
    machine, x = random_closed(rng)
    machine = with_fields(machine, rng)
    constrained = Constrained(machine)
    x, v = closed_state(rng, constrained, x)
    force = rng.normal(size=machine.nv)
    expected = answers(constrained, x, v, force)
    maximal = Maximal(machine)
    pose, twist = (np.ravel(a) for a in evaluate(maximal.functions["from_joints"], x, v))
    assert_agree(answers(maximal, pose, twist, force, ":joint_force"), expected, 1e-7)


def test_it_is_the_spring_that_it_writes_down():
    rng = np.random.default_rng(3)
    machine = random_machine(rng, 4)
    spring = Spring(
        "s",
        "world",
        machine.bodies[-1].name,
        Moments.of_points(rng.normal(size=(5, 3)), np.full(5, 3.0)),
    )
    same = Interaction(
        "s",
        "world",
        machine.bodies[-1].name,
        lambda pose: -spring.wrench(pose),
        energy=lambda pose: spring.potential(pose),
    )
    x, v, _ = random_state(rng, machine)
    zero = np.zeros(machine.nv)
    one, other = (Tree(machine.attach(part)) for part in (spring, same))
    for name in ("forward", "joint_wrench", "power"):
        found, expected = (evaluate(eom.functions[name], x, v, zero) for eom in (one, other))
        assert relative_error(found, expected) < 1e-12
    found, expected = (evaluate(eom.functions["energy"], x, v) for eom in (one, other))
    assert relative_error(found, expected) < 1e-12


@pytest.mark.parametrize("kind", [Tree, Maximal, Embedded, Constrained, Redundant])
def test_power_is_the_rate_of_the_energy(kind):
    rng = np.random.default_rng(7)
    machine = with_fields(random_machine(rng, 3, massless=False), rng)
    eom = kind(machine)
    x, v = eom.start(*random_state(rng, machine)[:2])
    force = rng.normal(size=eom.sizes["v"])
    a = np.ravel(evaluate(eom.functions["forward"], x, v, force, T))
    power = evaluate(eom.functions["power"], x, v, force, T).item()
    h = 1e-5

    def energy(s):
        moved = eom.integrate(x, s * v + s * s / 2 * a)
        return float(np.sum(evaluate(eom.functions["energy"], moved, v + s * a, T + s)))

    rates = [(energy(step) - energy(-step)) / (2 * step) for step in (h, 2 * h)]
    assert abs((4 * rates[0] - rates[1]) / 3 - power) < 1e-6 * (1 + abs(power))


@pytest.mark.parametrize("kind", [Tree, Maximal, Embedded, Constrained, Redundant])
def test_slopes_are_those_of_differences(kind):
    rng = np.random.default_rng(11)
    machine = with_fields(random_machine(rng, 3, massless=False), rng)
    eom = kind(machine)
    x, v = eom.start(*random_state(rng, machine)[:2])
    force = rng.normal(size=eom.sizes["v"])
    by_x, by_v, by_force = evaluate(eom.functions["forward_derivatives"], x, v, force, T)

    def forward(x, v, force):
        return np.ravel(evaluate(eom.functions["forward"], x, v, force, T))

    h, one = 1e-6, np.eye(len(v))
    moved = [
        (forward(eom.integrate(x, h * e), v, force) - forward(eom.integrate(x, -h * e), v, force))
        / (2 * h)
        for e in one
    ]
    assert relative_error(by_x, np.array(moved).T) < 1e-5
    pushed = [(forward(x, v + h * e, force) - forward(x, v - h * e, force)) / (2 * h) for e in one]
    assert relative_error(by_v, np.array(pushed).T) < 1e-5
    driven = [(forward(x, v, force + e) - forward(x, v, force - e)) / 2 for e in one]
    assert relative_error(by_force, np.array(driven).T) < 1e-8


def test_tunable_numbers_enter():
    rng = np.random.default_rng(5)
    machine = random_machine(rng, 3, massless=False)
    part = field("f", "world", machine.bodies[-1].name, rng)
    paths = ("f.k", "f.drag", "f.push.1", "f.at.0")
    machine = machine.attach(part).tunable(*paths)
    x, v, _ = random_state(rng, machine)
    a = rng.normal(size=machine.nv)
    eom, values = Tree(machine), machine.parameters.defaults * 1.3
    numbers = Tree(machine.with_parameters(values))
    found = evaluate(eom.functions["inverse"], x, v, a, T, values)
    assert relative_error(found, evaluate(numbers.functions["inverse"], x, v, a, T)) < 1e-12
    slopes = evaluate(eom.functions["inverse_sensitivity"], x, v, a, T, values)
    h = 1e-6
    for k in range(4):
        step = h * np.eye(4)[k]
        ends = [
            np.ravel(evaluate(eom.functions["inverse"], x, v, a, T, values + s * step))
            for s in (1, -1)
        ]
        assert np.abs((ends[0] - ends[1]) / (2 * h) - slopes[:, k]).max() < 1e-6


def test_regressors_of_numbers_that_enter_linearly():
    rng = np.random.default_rng(6)
    machine = random_machine(rng, 3, massless=False)
    part = field("f", "world", machine.bodies[-1].name, rng)
    machine = machine.attach(part).tunable(
        "f.k", "f.drag", "f.push.1", f"{machine.bodies[0].name}.mass"
    )
    x, v, _ = random_state(rng, machine)
    a, values = rng.normal(size=machine.nv), machine.parameters.defaults
    eom = Tree(machine)
    Y, offset = evaluate(eom.functions["regressor"], x, v, a, T, values)
    expected = np.ravel(evaluate(eom.functions["inverse"], x, v, a, T, values))
    assert relative_error(Y @ values + np.ravel(offset), expected) < 1e-10
    with pytest.raises(MachineError, match=r"not linear in.*`f.at.0`"):
        Tree(machine.tunable("f.at.0")).functions["regressor"]


def test_other_frames_leave_the_motion_as_it_is():
    rng = np.random.default_rng(8)
    machine = with_fields(random_machine(rng, 4, massless=False), rng)
    other = redescribe(machine, rng)
    x, v, _ = random_state(rng, machine)
    force = rng.normal(size=machine.nv)
    a = np.ravel(evaluate(Tree(machine).functions["forward"], x, v, force, T))
    there = evaluate(
        Tree(other.machine).functions["forward"],
        other.x(x[None])[0],
        other.v(v[None])[0],
        other.force(force[None])[0],
        T,
    )
    assert relative_error(np.ravel(there), other.v(a[None])[0]) < 1e-9


def test_long_chains_run_as_loops():
    rng = np.random.default_rng(2)
    machine = revolute_chain(40)
    names = [body.name for body in machine.bodies]
    parts = [
        replace(field("f", "world", "b", np.random.default_rng(1), timed=False), name=n, frame_b=n)
        for n in names[::3]
    ]
    parts.append(field("between", names[3], names[20], rng, timed=False))
    machine = machine.attach(*parts)
    x, v, _ = random_state(rng, machine)
    force = rng.normal(size=machine.nv)
    maximal, tree = Maximal(machine), Tree(machine)
    assert "forward:joint_force" in maximal.looped.programs
    X, V = maximal.start(x, v)
    found = maximal.kernel("forward:joint_force")(X, V, force)
    expected = tree.body_acceleration(x, v, tree.forward(x, v, force))
    assert relative_error(found.reshape(-1, 6), expected) < 1e-8


def test_linearise_sees_it():
    """A mass on a spring and damper that are an interaction: the known eigenvalues."""
    body = Body("mass", Moments.of_body(2.0, (0, 0, 0), np.eye(3)))
    joint = Joint("rail", Prismatic("x"), "world", "mass")
    part = Interaction(
        "post",
        "world",
        "mass",
        lambda pose, twist: ca.vertcat(-50 * pose[0, 3] - 4 * twist[0], 0, 0, 0, 0, 0),
    )
    machine = Machine([body], [joint], gravity=(0, 0, 0), interactions=[part])
    values = np.linalg.eigvals(linearise(machine, np.zeros(1)).A)
    expected = np.roots([2.0, 4.0, 50.0])
    assert np.abs(np.sort_complex(values) - np.sort_complex(expected)).max() < 1e-12
