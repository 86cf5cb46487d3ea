"""Rotors with an inertia for every velocity of a joint, in the derivatives of the motion.

A rotor turns with its joint and with nothing else: its force is armature times acceleration,
whatever the configuration. A free base with rotors is therefore not free to be turned as a whole.
"""

from dataclasses import replace

import casadi as ca
import numpy as np
import pytest
from random_machines import (
    evaluate,
    random_moments,
    random_pose,
    random_state,
    relative_error,
)

from framefree.machine import (
    Body,
    Cylindrical,
    Fluid,
    Frame,
    Free,
    Immersed,
    Joint,
    Machine,
    Planar,
    Revolute,
    Spherical,
    Spring,
    Universal,
)
from framefree.motion.redundant import Redundant
from framefree.motion.tree import Tree
from framefree.motion.tree.derivatives import TreeSlopes

KINDS = {
    "ball": Spherical(),
    "free": Free(),
    "planar": Planar((0.3, -0.5, 0.8)),
    "cylindrical": Cylindrical((0.6, 0.0, 0.8)),
    "universal": Universal((0.0, 0.6, 0.8), (1.0, 0.2, 0.0)),
}
WEIGHTS = (4 / 5, -1 / 5, 4 / 105, -1 / 280)


def machine_with(kind, place, around):
    """Return three bodies; the joint at `place` has rotors, and `around` acts on the bodies."""
    rng = np.random.default_rng(place)
    kinds = [Free(), Revolute((0.8, 0.0, 0.6)), Revolute((0.0, 1.0, 0.0))]
    kinds[place] = kind
    bodies = [Body(f"b{i}", random_moments(rng)) for i in range(3)]
    joints = [
        Joint(
            f"j{i}",
            kinds[i],
            f"b{i - 1}" if i else "world",
            f"b{i}",
            random_pose(rng),
            random_pose(rng),
            armature=rng.uniform(0.5, 3.0, kinds[i].nv) if i == place else 0.0,
        )
        for i in range(3)
    ]
    frames = [Frame("f", "b2", random_pose(rng)), Frame("g", "world", random_pose(rng))]
    parts = {}
    if around == "spring":
        parts["springs"] = (Spring("s", "g", "f", random_moments(rng, 20.0)),)
    if around == "fluid":
        immersed = Immersed("f", 1e-3, added_mass=rng.uniform(0.1, 1, 6), linear_drag=0.3)
        parts["fluid"] = Fluid((immersed,), current=(0.1, -0.2, 0.3))
    return Machine(bodies, joints, frames, gravity=(1.0, -2.0, -9.0), **parts)


@pytest.fixture(
    scope="module",
    params=[
        pytest.param((name, place, around), id=f"{name}-{place}-{around}")
        for name in KINDS
        for place, around in ((0, "nothing"), (0, "spring"), (1, "nothing"), (1, "fluid"))
    ],
)
def case(request):
    name, place, around = request.param
    machine = machine_with(KINDS[name], place, around)
    return np.random.default_rng(7), machine, Tree(machine)


def slope(function, arguments, which, direction, h, move=np.add):
    """Return the slope of a function along a direction of one argument, of eighth order."""

    def value(size):
        moved = list(arguments)
        moved[which] = move(moved[which], size * direction)
        return evaluate(function, *moved).ravel()

    return sum(w * (value(k * h) - value(-k * h)) for k, w in enumerate(WEIGHTS, 1)) / h


@pytest.mark.parametrize("name", ["forward", "inverse"])
def test_derivatives_are_the_limits_of_differences(case, name):
    rng, machine, tree = case
    state = random_state(rng, machine)
    found = evaluate(tree.functions[f"{name}_derivatives"], *state)
    for e in np.eye(machine.nv):
        for which, (derivative, h) in enumerate(zip(found, (2e-3, 2e-3, 0.1), strict=True)):
            move = machine.integrate if which == 0 else np.add
            expected = slope(tree.functions[name], state, which, e, h, move)
            scale = max(np.abs(derivative).max(), 1.0)
            np.testing.assert_allclose(derivative @ e, expected, atol=1e-8 * scale)


def test_closed_forms_are_the_derivatives_of_the_graph(case):
    rng, machine, tree = case
    redundant = Redundant(machine)
    for name in ("inverse_derivatives", "forward_derivatives", "linearisation"):
        state = random_state(rng, machine)
        found = evaluate(tree.functions[name], *state)
        expected = evaluate(redundant.functions[name], *state)
        for mine, other in zip(found, expected, strict=True):
            assert relative_error(mine, other) < 1e-10, name


def test_a_rotor_adds_its_inertia_and_nothing_else(case):
    """Mass and force differ from those without rotors by armature and armature times a."""
    rng, machine, tree = case
    bare = Tree(replace(machine, joints=[replace(j, armature=0.0) for j in machine.joints]))
    armature = np.concatenate([j.armature for j in machine.joints])
    x, v, a = random_state(rng, machine)
    masses = [evaluate(eom.functions["mass"], x) for eom in (tree, bare)]
    np.testing.assert_allclose(masses[0] - masses[1], np.diag(armature), atol=1e-12)
    forces = [evaluate(eom.functions["inverse"], x, v, a).ravel() for eom in (tree, bare)]
    np.testing.assert_allclose(forces[0] - forces[1], armature * a, atol=1e-11)


def test_force_and_acceleration_are_those_of_the_recursions(case):
    rng, machine, tree = case
    sizes = {"x": machine.nx, "v": machine.nv, "u": machine.nv}
    x, v, u = (ca.SX.sym(name, size) for name, size in sizes.items())
    slopes = TreeSlopes(tree.at(x, v))
    function = ca.Function("slopes", [x, v, u], [slopes.force(u), slopes.acceleration(u)])
    state = random_state(rng, machine)
    force, a = evaluate(function, *state)
    assert relative_error(force, evaluate(tree.functions["inverse"], *state)) < 1e-12
    assert relative_error(a, evaluate(tree.functions["forward"], *state)) < 1e-10
