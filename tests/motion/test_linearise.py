"""Derivatives of the tree's motion: against differences, other formulations, and along motions."""

from dataclasses import replace

import casadi as ca
import numpy as np
import pytest
from random_machines import evaluate, random_machine, random_moments, random_state, relative_error

from framefree.machine import Body, Custom, Free, Joint, Machine
from framefree.motion.redundant import Redundant
from framefree.motion.tree import Tree
from framefree.motion.tree.derivatives import TreeSlopes

# Weights of central differences of eighth order.
WEIGHTS = (4 / 5, -1 / 5, 4 / 105, -1 / 280)


def pose_of_bent_rail(x):
    """A joint along a curve that turns with it: its subspace moves in its own axes."""
    c, s = ca.cos(x[0]), ca.sin(x[0])
    R = ca.vertcat(ca.horzcat(c, -s, 0), ca.horzcat(s, c, 0), ca.horzcat(0, 0, 1))
    r = ca.vertcat(x[0] ** 2, ca.sin(x[1]), x[0] * x[1])
    return ca.vertcat(ca.horzcat(R, r), ca.DM([[0, 0, 0, 1]]))


def rail_machine(rng):
    """A custom joint, with a velocity that is no rate of a coordinate, between others."""
    machine = random_machine(rng, bodies=5)
    rail = Custom(pose_of_bent_rail, 2, rate_map=lambda x: ca.blockcat([[1, 0], [x[0], 2]]))
    joints = list(machine.joints)
    joints[2] = replace(
        joints[2],
        kind=rail,
        lower=-np.inf,
        upper=np.inf,
        velocity_limit=np.inf,
        effort_limit=np.inf,
        armature=0.0,
        damping=0.0,
        friction=0.0,
        friction_asymmetry=0.0,
        stiffness=0.0,
        rest=None,
    )
    return replace(machine, joints=joints)


def machine_of(seed):
    rng = np.random.default_rng(500 + seed)
    return rng, (rail_machine(rng) if seed == 0 else random_machine(rng, bodies=2 + seed % 6))


@pytest.fixture(scope="module", params=range(10), ids=lambda seed: f"seed{seed}")
def case(request):
    rng, machine = machine_of(request.param)
    return rng, machine, Tree(machine), Redundant(machine), Tree(machine)


def difference(function, h):
    """Slope of a function of one number at zero, by differences of eighth order."""
    terms = (w * (function(k * h) - function(-k * h)) for k, w in enumerate(WEIGHTS, 1))
    return sum(terms) / h


def along(function, arguments, place, direction, h, move=np.add):
    """Slope of a casadi function along a direction of one of its arguments."""

    def value(size):
        moved = list(arguments)
        moved[place] = move(moved[place], size * direction)
        return evaluate(function, *moved).ravel()

    return difference(value, h)


def test_closed_forms_are_the_derivatives_of_the_graph(case):
    rng, machine, derivatives, redundant, _ = case
    for _ in range(3):
        x, v, a = random_state(rng, machine)
        for name in ("inverse_derivatives", "forward_derivatives", "linearisation"):
            found = evaluate(derivatives.functions[name], x, v, a)
            expected = evaluate(redundant.functions[name], x, v, a)
            for mine, other in zip(found, expected, strict=True):
                assert relative_error(mine, other) < 1e-10, name


@pytest.mark.parametrize("name", ["forward", "inverse"])
def test_derivatives_are_the_limits_of_differences(case, name):
    rng, machine, derivatives, _, tree = case
    x, v, u = random_state(rng, machine)
    by_x, by_v, by_u = evaluate(derivatives.functions[f"{name}_derivatives"], x, v, u)
    function = tree.functions[name]
    for _ in range(2):
        e = rng.normal(size=machine.nv)
        e /= np.linalg.norm(e)
        slopes = (
            along(function, (x, v, u), 0, e, 1e-3, machine.integrate),
            along(function, (x, v, u), 1, e, 1e-3),
            along(function, (x, v, u), 2, e, 1e-1),
        )
        for found, expected in zip((by_x, by_v, by_u), slopes, strict=True):
            scale = max(np.abs(found).max(initial=0), 1.0)
            np.testing.assert_allclose(found @ e, expected, atol=1e-7 * scale)


def test_force_and_acceleration_are_those_of_the_recursions(case):
    rng, machine, _, _, tree = case
    x, v, u = (
        ca.SX.sym(n, k) for n, k in (("x", machine.nx), ("v", machine.nv), ("u", machine.nv))
    )
    slopes = TreeSlopes(tree.at(x, v))
    outputs = [slopes.force(u), slopes.acceleration(u)]
    function = ca.Function("slopes", [x, v, u], outputs)
    x, v, u = random_state(rng, machine)
    force, a = evaluate(function, x, v, u)
    assert relative_error(force, evaluate(tree.functions["inverse"], x, v, u)) < 1e-11
    assert relative_error(a, evaluate(tree.functions["forward"], x, v, u)) < 1e-9


@pytest.mark.parametrize("seed", range(3))
def test_state_matrices_predict_a_neighbouring_motion(seed):
    """Two motions, one beside the other: their difference grows as A and B say."""
    rng = np.random.default_rng(600 + seed)
    machine = random_machine(rng, bodies=3)
    derivatives, tree = Tree(machine), Tree(machine)
    x, v, force = random_state(rng, machine)
    eps, dv, df = rng.normal(size=(3, machine.nv))
    A, B = evaluate(derivatives.functions["state_matrices"], x, v, force)
    forward = tree.functions["forward"]

    def rates(size):
        """Return d/dt of (x0^-1 x1, v1 - v0) at a deviation of this size."""
        moved = machine.integrate(x, size * eps)

        def gap(t):
            ahead = machine.integrate(x, t * v), machine.integrate(moved, t * (v + size * dv))
            return machine.difference(*ahead)

        a0 = evaluate(forward, x, v, force)
        a1 = evaluate(forward, moved, v + size * dv, force + size * df)
        return np.concatenate([difference(gap, 1e-2), (a1 - a0).ravel()])

    expected = difference(rates, 2e-3)
    found = A @ np.concatenate([eps, dv]) + B @ df
    assert relative_error(found, expected) < 1e-7


def test_a_free_base_feels_only_gravity_turn():
    """Shifting or turning a flying machine changes nothing but the direction of its weight."""
    rng = np.random.default_rng(7)
    bodies = [Body("base", random_moments(rng)), Body("tip", random_moments(rng))]
    joints = [Joint("free", Free(), "world", "base"), Joint("arm", Free(), "base", "tip")]
    machine = Machine(bodies, joints, gravity=(1.0, -2.0, -9.0))
    x, v, force = random_state(rng, machine)
    by_x, _, _ = evaluate(Tree(machine).functions["forward_derivatives"], x, v, force)
    assert not by_x[:, :3].any()
    assert not by_x[3:6, 3:6].any()
    w, p, q, r = x[3:7]
    R = np.eye(3) + 2 * w * _skew(p, q, r) + 2 * _skew(p, q, r) @ _skew(p, q, r)
    np.testing.assert_allclose(by_x[:3, 3:6], _skew(*(R.T @ machine.gravity)), atol=1e-13)


def _skew(x, y, z):
    return np.array([[0, -z, y], [z, 0, -x], [-y, x, 0]])
