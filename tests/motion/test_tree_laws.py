"""Laws that the tree formulation must obey on random machines over all joint kinds."""

import casadi as ca
import numpy as np
import pytest
from random_machines import (
    evaluate,
    random_machine,
    random_state,
    relative_error,
    without_forces,
)

from framefree.geometry import Moments
from framefree.machine import Body, Joint, Machine, Spherical
from framefree.motion.forces import added_masses
from framefree.motion.tree import Tree

SEEDS = range(18)


@pytest.fixture(scope="module", params=SEEDS, ids=lambda seed: f"seed{seed}")
def case(request):
    rng = np.random.default_rng(request.param)
    machine = random_machine(rng)
    return rng, machine, Tree(machine)


def total_rate(eom, x, v, a, function):
    """d/dt of a function of (x, v) along dx/dt = A v, dv/dt = a, by the chain rule of the graph."""
    xs, vs, acc = (ca.SX.sym(n, s.shape[0]) for n, s in (("x", x), ("v", v), ("a", a)))
    value = ca.vertcat(*(ca.vec(part) for part in _tuple(function(xs, vs))))
    rate = ca.jtimes(value, xs, eom.machine.rate_matrix(xs) @ vs) + ca.jtimes(value, vs, acc)
    return evaluate(ca.Function("rate", [xs, vs, acc], [rate]), x, v, a).ravel()


def _tuple(value):
    return value if isinstance(value, tuple) else (value,)


def test_forward_inverts_inverse(case):
    rng, machine, eom = case
    for _ in range(3):
        x, v, a = random_state(rng, machine)
        force = evaluate(eom.functions["inverse"], x, v, a)
        assert relative_error(evaluate(eom.functions["forward"], x, v, force).ravel(), a) < 1e-9


def test_inverse_is_mass_times_acceleration_plus_bias(case):
    rng, machine, eom = case
    x, v, a = random_state(rng, machine)
    M, bias = evaluate(eom.functions["mass"], x), evaluate(eom.functions["bias"], x, v)
    force = evaluate(eom.functions["inverse"], x, v, a)
    assert relative_error(M @ a[:, None] + bias, force) < 1e-12


def test_mass_matrix_is_the_sum_over_bodies(case):
    rng, machine, eom = case
    x, _, _ = random_state(rng, machine)
    expected = np.diag(np.concatenate([np.zeros(0), *(j.armature for j in machine.joints)]))
    for body, added in zip(machine.bodies, added_masses(machine), strict=True):
        J = evaluate(eom.functions[f"jacobian:{body.name}"], x)
        M = body.moments.matrix6 + (0 if added is None else np.array(ca.DM(added)))
        expected = expected + J.T @ M @ J
    assert relative_error(evaluate(eom.functions["mass"], x), expected) < 1e-12


def test_energy_changes_by_the_power(case):
    rng, machine, eom = case
    x, v, force = random_state(rng, machine)
    a = evaluate(eom.functions["forward"], x, v, force).ravel()
    rate = total_rate(eom, x, v, a, eom.functions["energy"]).sum()
    power = float(evaluate(eom.functions["power"], x, v, force)[0, 0])
    scale = np.abs(total_rate(eom, x, v, a, eom.functions["energy"])).sum() + np.abs(v @ force)
    assert abs(rate - power) < 1e-9 * scale


def test_gravity_is_the_gradient_of_potential_without_springs():
    for seed in range(10):
        rng = np.random.default_rng(seed)
        machine = random_machine(rng, passive=False, fluid=False)
        eom = Tree(machine)
        x, v, _ = random_state(rng, machine)
        rate = total_rate(eom, x, v, 0 * v, eom.functions["energy"])[1]
        assert abs(rate - v @ evaluate(eom.functions["gravity"], x).ravel()) < 1e-10 * (
            1 + abs(rate)
        )


def test_jacobian_rate_is_the_derivative_of_the_jacobian(case):
    rng, machine, eom = case
    x, v, _ = random_state(rng, machine)
    frame = machine.frames[rng.integers(len(machine.frames))].name
    J = eom.functions[f"jacobian:{frame}"]
    rate = evaluate(eom.functions[f"jacobian_rate:{frame}"], x, v)
    expected = total_rate(eom, x, v, 0 * v, lambda xs, vs: J(xs)).reshape(rate.T.shape).T
    assert relative_error(rate, expected) < 1e-10


def test_body_acceleration_is_the_derivative_of_the_twist(case):
    rng, machine, eom = case
    x, v, a = random_state(rng, machine)
    twist = eom.functions["body_velocity"]
    rate = evaluate(eom.functions["body_acceleration"], x, v, a)
    expected = total_rate(eom, x, v, a, lambda xs, vs: twist(xs, vs).T).reshape(rate.shape)
    assert relative_error(rate, expected) < 1e-10


@pytest.mark.parametrize("name", ["", ":skew", ":kirchhoff"])
def test_coriolis_is_skew_and_gives_the_bias(case, name):
    rng, machine, eom = case
    x, v, _ = random_state(rng, machine)
    mass = eom.functions["mass"]
    C = evaluate(eom.functions[f"coriolis{name}"], x, v)
    M_dot = total_rate(eom, x, v, 0 * v, lambda xs, vs: mass(xs)).reshape(C.shape)
    assert np.abs(C + C.T - M_dot).max(initial=0) < 1e-12 * (1 + np.abs(C).max(initial=0))
    bare = Tree(without_forces(machine))
    assert relative_error(C @ v, evaluate(bare.functions["bias"], x, v).ravel()) < 1e-10


@pytest.mark.parametrize("name", ["adjoint", "quasi"])
def test_other_factorisations_give_the_bias_but_are_not_skew(name):
    worst = 0.0
    for seed in range(8):
        rng = np.random.default_rng(seed)
        machine = random_machine(rng, bodies=4, fluid=False)  # rotors stay: they have no C
        eom = Tree(without_forces(machine))
        x, v, _ = random_state(rng, machine)
        C = evaluate(eom.functions[f"coriolis:{name}"], x, v)
        assert relative_error(C @ v, evaluate(eom.functions["bias"], x, v).ravel()) < 1e-10
        mass = eom.functions["mass"]
        M_dot = total_rate(eom, x, v, 0 * v, lambda xs, vs, mass=mass: mass(xs)).reshape(C.shape)
        worst = max(worst, relative_error(C + C.T, M_dot))
    assert worst > 0.1


def test_momentum_changes_by_the_external_wrench():
    """Nothing but gravity acts on a floating machine: its momentum changes by its weight."""
    for seed in range(12):
        rng = np.random.default_rng(seed)
        machine = _floating(rng)
        eom = Tree(machine)
        x, v, force = random_state(rng, machine)
        force[:6] = 0
        a = evaluate(eom.functions["forward"], x, v, force).ravel()
        rate = total_rate(eom, x, v, a, eom.functions["momentum"])
        weight = sum(body.moments.total for body in machine.bodies) * machine.gravity
        scale = np.abs(rate).max() + np.abs(force).max()
        np.testing.assert_allclose(rate[:3], weight, atol=1e-10 * scale)
        np.testing.assert_allclose(rate[6:], 0, atol=1e-9 * scale)


def test_joint_wrench_holds_a_hanging_chain():
    """At rest each joint carries the weight of all that hangs on it."""
    n, mass = 4, 2.0
    inertia = Moments.of_body(mass, (0, 0, -0.5), 0.1 * np.eye(3))
    bodies = [Body(f"b{i}", inertia) for i in range(n)]
    joints = [
        Joint(
            f"j{i}",
            Spherical(),
            "world" if i == 0 else f"b{i - 1}",
            f"b{i}",
            parent_pose=(0, 0, 0.0 if i == 0 else -1.0),
        )
        for i in range(n)
    ]
    machine = Machine(bodies, joints)
    zero = np.zeros(machine.nv)
    wrench = evaluate(Tree(machine).functions["joint_wrench"], machine.neutral(), zero, zero)
    expected = np.zeros((n, 6))
    expected[:, 2] = mass * 9.81 * np.arange(n, 0, -1)
    np.testing.assert_allclose(wrench, expected, atol=1e-12)


def _floating(rng):
    while True:
        machine = random_machine(rng, passive=False, fluid=False)
        free = type(machine.joints[0].kind).__name__ == "Free"
        if free and all(parent >= 0 for parent in machine.parent[1:]):
            return machine
