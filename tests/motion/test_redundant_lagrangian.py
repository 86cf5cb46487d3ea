"""Equations from a Lagrangian with time-dependent and velocity-linear terms."""

import casadi as ca
import numpy as np
import pytest
from random_machines import evaluate, random_moments, random_rotation, relative_error
from test_redundant_examples import attitude, circle, rotation_of

from framefree.machine import MachineError
from framefree.machine.parameters import Parameters
from framefree.motion.equations import EquationsError
from framefree.motion.redundant import Redundant, redundant
from framefree.motion.redundant.coordinates import Coordinates
from framefree.motion.redundant.lagrange import Lagrange, LagrangianSystem

PLANE = Coordinates(2, 2, lambda x: ca.SX.eye(2))
RATES = attitude(random_moments(np.random.default_rng(0))).coordinates


def turning_frame(m=1.3, k=2.0):
    """A mass on a spring seen from a frame that turns by angle(t) = sin t + t^2 / 2."""

    def lagrangian(x, v, t):
        speed = ca.cos(t) + t
        inertial = v + speed * ca.vertcat(-x[1], x[0])
        return m * ca.sumsqr(inertial) / 2 - k * ca.sumsqr(x) / 2

    return LagrangianSystem("turning", PLANE, lagrangian)


def test_a_turning_frame_gives_coriolis_centrifugal_and_euler_forces():
    m, k = 1.3, 2.0
    eom = Lagrange(turning_frame(m, k))
    rng = np.random.default_rng(1)
    for t in (0.0, 0.4, 2.0):
        x, v, force = rng.normal(size=(3, 2))
        w, dw = np.cos(t) + t, 1 - np.sin(t)
        turn = np.array([[0, -1], [1, 0]])
        expected = (force - k * x) / m - 2 * w * turn @ v + w**2 * x - dw * turn @ x
        found = evaluate(eom.functions["forward"], x, v, force, t).ravel()
        np.testing.assert_allclose(found, expected, atol=1e-12)


def attitude_with_everything():
    """L = 1/2 w'M(R,t)w + b(R,t)'w + c(R,t) on the rotations, with nothing left out."""
    rng = np.random.default_rng(2)
    root, P, B, C = rng.normal(size=(3, 3)), *rng.normal(size=(3, 3, 3))
    S = ca.DM(root @ root.T + np.eye(3))

    def M(x, t):
        R = rotation_of(x)
        down = R.T @ ca.DM(P[0])
        return S + (2 + ca.sin(t)) * down @ down.T

    def b(x, t):
        return (
            ca.cos(2 * t) * (rotation_of(x).T @ ca.DM(B[1])) + ca.DM(B) @ rotation_of(x)[:, 0] ** 2
        )

    def c(x, t):
        return ca.trace(ca.DM(C) @ rotation_of(x)) * (1 + t**2)

    def lagrangian(x, v, t):
        return ca.dot(v, M(x, t) @ v) / 2 + ca.dot(b(x, t), v) + c(x, t)

    def rayleigh(x, v, t):
        return ca.exp(-t) * ca.sumsqr(v) / 2

    return LagrangianSystem("attitude", RATES, lagrangian, rayleigh), M, b, c


def random_attitude_state(rng):
    return (random_rotation(rng).T.ravel(), *rng.normal(size=(2, 3)), rng.uniform(0, 2))


def test_terms_linear_in_the_velocity():
    """Errata E4-6: (dM/dt + d_j b_i - d_i b_j + gamma^k_ij b_k) v^j, the magnetic term included."""
    system, M, b, c = attitude_with_everything()
    eom = redundant(system)
    assert isinstance(eom, Lagrange)
    xs, ts = ca.SX.sym("x", 9), ca.SX.sym("t")
    along = RATES.at(xs)
    parts = [M(xs, ts), b(xs, ts), along.along(b(xs, ts)), along.gradient(c(xs, ts))]
    parts += [
        ca.reshape(ca.jacobian(ca.vec(parts[0]), ts), 3, 3),
        ca.jacobian(parts[1], ts),
    ]
    terms = ca.Function("terms", [xs, ts], [ca.densify(part) for part in parts])
    rng = np.random.default_rng(3)
    for _ in range(4):
        x, v, a, t = random_attitude_state(rng)
        mass, linear, slope, pull, mass_rate, linear_rate = (p.full() for p in terms(x, t))
        Gamma = evaluate(eom.functions["connection"], x, t).reshape(3, 3, 3)
        gamma = evaluate(eom.functions["commutation"], x).reshape(3, 3, 3)
        magnetic = slope - slope.T + np.einsum("kij,k->ij", gamma, linear.ravel())
        expected = mass @ a + (Gamma @ v) @ v + (mass_rate + magnetic) @ v
        expected += linear_rate.ravel() - pull.ravel() + np.exp(-t) * v
        found = evaluate(eom.functions["inverse"], x, v, a, t).ravel()
        assert relative_error(found, expected) < 1e-11
        C = evaluate(eom.functions["coriolis"], x, v, t)
        np.testing.assert_allclose(C, Gamma @ v, atol=1e-10)


def test_hamilton_of_a_lagrangian_is_the_same_motion():
    """With p = M v + b, dx/dt = A v and dp/dt agree with forward; H is p v - L (errata E4-5)."""
    system = attitude_with_everything()[0]
    eom = Lagrange(system)
    x, v, a, t = (ca.SX.sym(n, k) for n, k in (("x", 9), ("v", 3), ("a", 3), ("t", 1)))
    p = eom.functions["momentum"](x, v, t)
    rate = ca.jtimes(p, x, RATES.rate(x) @ v) + ca.jtimes(p, v, a) + ca.jacobian(p, t)
    energy = ca.dot(p, v) - system.lagrangian(x, v, t)
    function = ca.Function("p", [x, v, a, t], [p, rate, energy, RATES.rate(x) @ v])
    rng = np.random.default_rng(4)
    for _ in range(4):
        x0, v0, force, t0 = random_attitude_state(rng)
        a0 = evaluate(eom.functions["forward"], x0, v0, force, t0)
        p0, p_rate, H, x_rate = (o.full() for o in function(x0, v0, a0, t0))
        found = evaluate(eom.functions["hamilton"], x0, p0, force, t0)
        assert relative_error(found[0], x_rate) < 1e-11
        assert relative_error(found[1], p_rate) < 1e-10
        assert relative_error(evaluate(eom.functions["hamiltonian"], x0, p0, t0), H) < 1e-11


def test_energy_changes_by_the_power():
    eom = Lagrange(attitude_with_everything()[0])
    x, v, a, t = (ca.SX.sym(n, k) for n, k in (("x", 9), ("v", 3), ("a", 3), ("t", 1)))
    energy = sum(eom.functions["energy"](x, v, t))
    rate = ca.jtimes(energy, x, RATES.rate(x) @ v) + ca.jtimes(energy, v, a)
    function = ca.Function("rate", [x, v, a, t], [rate + ca.jacobian(energy, t)])
    rng = np.random.default_rng(5)
    for _ in range(4):
        x0, v0, force, t0 = random_attitude_state(rng)
        a0 = evaluate(eom.functions["forward"], x0, v0, force, t0)
        power = evaluate(eom.functions["power"], x0, v0, force, t0)
        np.testing.assert_allclose(evaluate(function, x0, v0, a0, t0), power, rtol=1e-9)


def test_derivatives_of_forward_invert_those_of_inverse():
    eom = Lagrange(attitude_with_everything()[0])
    rng = np.random.default_rng(6)
    x, v, force, t = random_attitude_state(rng)
    a = evaluate(eom.functions["forward"], x, v, force, t)
    by_x, by_v, by_force = evaluate(eom.functions["forward_derivatives"], x, v, force, t)
    f_x, f_v, f_a = evaluate(eom.functions["inverse_derivatives"], x, v, a, t)
    np.testing.assert_allclose(by_force @ f_a, np.eye(3), atol=1e-11)
    np.testing.assert_allclose(f_a @ by_x, -f_x, atol=1e-9)
    np.testing.assert_allclose(f_a @ by_v, -f_v, atol=1e-9)


def test_a_lagrangian_of_bodies_gives_the_bodies_equations():
    system = circle()
    bodies = Redundant(system)
    x, v = ca.SX.sym("x", 2), ca.SX.sym("v", 1)
    kinetic, potential = bodies.functions["energy"](x, v)
    L = ca.Function("L", [x, v], [kinetic - potential])
    eom = Lagrange(LagrangianSystem("circle", system.coordinates, lambda x, v, t: L(x, v)))
    at, speed, force = 0.7 * np.array([0.6, 0.8]), np.array([1.1]), np.array([0.2])
    for name, given in (
        ("forward", (at, speed, force)),
        ("inverse", (at, speed, force)),
        ("bias", (at, speed)),
        ("hamiltonian", (at, force)),
        ("hessian", (at,)),
        ("linearisation", (at, speed, force)),
    ):
        found = np.vstack(evaluate(eom.functions[name], *given))
        expected = np.vstack(evaluate(bodies.functions[name], *given))
        np.testing.assert_allclose(found, expected, atol=1e-11, err_msg=name)


def test_parameters_are_the_last_input():
    p = Parameters(("stiffness",), defaults=(2.0,))
    system = LagrangianSystem(
        "spring", PLANE, lambda x, v, t: (ca.sumsqr(v) - p.symbols * ca.sumsqr(x)) / 2, parameters=p
    )
    a = evaluate(Lagrange(system).functions["forward"], [1, 2], [0, 0], [0, 0], [3.0])
    np.testing.assert_allclose(a.ravel(), [-3, -6])


def test_fast_particle_has_forward_but_no_closed_hamiltonian():
    """L = -m c^2 sqrt(1 - v^2/c^2) is not quadratic: gamma^3 m along the velocity."""
    system = LagrangianSystem("fast", PLANE, lambda x, v, t: -9 * ca.sqrt(1 - ca.sumsqr(v) / 9))
    eom = Lagrange(system)
    v, force = np.array([1.8, 0.0]), np.array([1.0, 1.0])
    gamma = 1 / np.sqrt(1 - 0.36)
    a = evaluate(eom.functions["forward"], np.zeros(2), v, force).ravel()
    np.testing.assert_allclose(a, [gamma**-3, gamma**-1], rtol=1e-12)
    with pytest.raises(EquationsError, match="not quadratic"):
        eom.functions["hamiltonian"]
    with pytest.raises(MachineError, match="scalar"):
        LagrangianSystem("wrong", PLANE, lambda x, v, t: v)
