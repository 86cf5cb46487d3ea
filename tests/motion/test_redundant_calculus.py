"""Calculus in redundant coordinates: brackets, connections, Hessians, linearisation, Hamilton."""

from dataclasses import replace

import casadi as ca
import numpy as np
import pytest
from random_machines import evaluate, random_machine, random_state, relative_error

from framefree.machine import StateError
from framefree.motion.redundant import Redundant
from framefree.motion.redundant.coordinates import Coordinates


def machine_of(seed, **options):
    """Return a machine whose metric is that of its bodies: without rotors none is massless."""
    rng = np.random.default_rng(seed)
    return rng, random_machine(rng, options.pop("bodies", 3), massless=False, **options)


def symbols(machine):
    return ca.SX.sym("x", machine.nx), ca.SX.sym("v", machine.nv), ca.SX.sym("a", machine.nv)


@pytest.mark.parametrize("seed", range(6))
def test_commutator_of_derivatives(seed):
    """d_i d_j f - d_j d_i f = gamma^k_ij d_k f for any function f of x."""
    rng, machine = machine_of(seed)
    eom = Redundant(machine)
    nv = machine.nv
    x, _, _ = symbols(machine)
    tangent = eom.coordinates.at(x)
    weights = rng.normal(size=(machine.nx, machine.nx))
    f = ca.sin(ca.bilin(ca.DM(weights), x, x)) + ca.sumsqr(x) * x[0]
    first = tangent.gradient(f)
    second = tangent.along(first).T  # row i, column j: d_i d_j f
    derivatives = ca.Function("d", [x], [second, first])(at := machine.random(rng))
    second, first = (part.full() for part in derivatives)
    gamma = evaluate(eom.functions["commutation"], at).reshape(nv, nv, nv)
    expected = np.einsum("kij,k->ij", gamma, first.ravel())
    # Plain coordinates commute: what is left is the rounding of the second derivatives.
    np.testing.assert_allclose(second - second.T, expected, atol=1e-12 * np.abs(second).max())


@pytest.mark.parametrize("seed", range(4))
def test_contractions_are_those_of_the_full_coefficients(seed):
    rng, machine = machine_of(seed)
    eom = Redundant(machine)
    nv = machine.nv
    x, v, p = symbols(machine)
    tangent = eom.coordinates.at(x)
    outputs = [tangent.bracket(p), tangent.turning(v), tangent.bracket_force(v, p)]
    at, v0, p0 = random_state(rng, machine)
    B, N, f = (o.full() for o in ca.Function("c", [x, v, p], outputs)(at, v0, p0))
    gamma = evaluate(eom.functions["commutation"], at).reshape(nv, nv, nv)
    np.testing.assert_allclose(gamma, -gamma.transpose(0, 2, 1), atol=1e-12)
    np.testing.assert_allclose(B, np.einsum("kij,k->ij", gamma, p0), atol=1e-11)
    np.testing.assert_allclose(N, np.einsum("kij,j->ik", gamma, v0), atol=1e-11)
    np.testing.assert_allclose(f.ravel(), np.einsum("kij,j,k->i", gamma, v0, p0), atol=1e-11)


@pytest.mark.parametrize("seed", range(4))
def test_connection_is_metric_and_without_torsion(seed):
    """d_k M_ij = Gamma_ijk + Gamma_jik and gamma^s_ij M_sk = Gamma_kji - Gamma_kij."""
    rng, machine = machine_of(seed)
    eom = Redundant(machine)
    nv = machine.nv
    x, _, _ = symbols(machine)
    mass = eom.functions["mass"](x)
    slope = eom.coordinates.at(x).along(ca.vec(mass.T))
    at = machine.random(rng)
    dM = evaluate(ca.Function("dM", [x], [slope]), at).reshape(nv, nv, nv)
    G = evaluate(eom.functions["connection"], at).reshape(nv, nv, nv)
    gamma = evaluate(eom.functions["commutation"], at).reshape(nv, nv, nv)
    M = evaluate(eom.functions["mass"], at) - np.diag(
        np.concatenate([np.zeros(0), *(j.armature for j in machine.joints)])
    )
    np.testing.assert_allclose(dM, G + G.transpose(1, 0, 2), atol=1e-10)
    torsion = np.einsum("sij,sk->ijk", gamma, M)
    np.testing.assert_allclose(torsion, G.transpose(2, 1, 0) - G.transpose(1, 2, 0), atol=1e-10)


@pytest.mark.parametrize("seed", range(4))
def test_covariant_hessian_is_symmetric_and_the_second_derivative_along_geodesics(seed):
    rng, machine = machine_of(seed, fluid=False)
    joints = [replace(j, armature=0.0) if j.nv else j for j in machine.joints]
    machine = replace(machine, joints=joints)
    eom = Redundant(machine)
    x, v, a = symbols(machine)
    A = machine.rate_matrix(x)
    potential = eom.functions["energy"](x, v)[1]
    rate = ca.jtimes(potential, x, A @ v)
    second = ca.jtimes(rate, x, A @ v) + ca.jtimes(rate, v, a)
    at, v0, _ = random_state(rng, machine)
    M, C = evaluate(eom.functions["mass"], at), evaluate(eom.functions["coriolis"], at, v0)
    geodesic = -np.linalg.solve(M, C @ v0)
    H = evaluate(eom.functions["hessian"], at)
    scale = np.abs(H).max(initial=1)
    np.testing.assert_allclose(H, H.T, atol=1e-10 * scale)
    expected = float(ca.Function("V", [x, v, a], [second])(at, v0, geodesic))
    np.testing.assert_allclose(v0 @ H @ v0, expected, atol=1e-9 * scale * (v0 @ v0))


def deviated(machine):
    """Configuration, velocity and acceleration of x(t) (+) s eps(t), exactly, as functions."""
    x, v, a = symbols(machine)
    s = ca.SX.sym("s")
    eps, rate, curve = (ca.SX.sym(n, machine.nv) for n in ("eps", "rate", "curve"))
    moved = machine.integrate(x, s * eps)

    def dot(f):
        steps = ((x, machine.rate_matrix(x) @ v), (v, a), (eps, rate), (rate, curve))
        return sum(ca.jtimes(f, symbol, change) for symbol, change in steps)

    A = machine.rate_matrix(moved)
    velocity = ca.solve(A.T @ A, A.T @ dot(moved))
    outputs = [moved, velocity, dot(velocity)]
    return ca.Function("deviated", [x, v, a, eps, rate, curve, s], outputs)


@pytest.mark.parametrize("seed", range(4))
def test_linearisation_follows_deviated_motions(seed):
    """The force along x(t) (+) s eps(t) changes by s (f0 eps + f1 eps' + f2 eps'')."""
    rng, machine = machine_of(seed)
    eom = Redundant(machine)
    move = deviated(machine)
    x, v, a = random_state(rng, machine)
    eps, rate, curve = rng.normal(size=(3, machine.nv))

    def force(s):
        return evaluate(eom.functions["inverse"], *move(x, v, a, eps, rate, curve, s)).ravel()

    h = 2e-3  # eighth-order differences: truncation and rounding both near 1e-10
    weights = (4 / 5, -1 / 5, 4 / 105, -1 / 280)
    slope = sum(w * (force(k * h) - force(-k * h)) for k, w in enumerate(weights, 1)) / h
    f0, f1, f2 = evaluate(eom.functions["linearisation"], x, v, a)
    assert relative_error(f0 @ eps + f1 @ rate + f2 @ curve, slope) < 1e-8


@pytest.mark.parametrize("seed", range(4))
def test_hamilton_is_canonical(seed):
    """dx/dt = A dH/dp and dp_i/dt = -gamma^k_ij (dH/dp_j) p_k - d_i H + force_i without losses."""
    rng, machine = machine_of(seed, fluid=False)
    joints = [
        replace(j, damping=0.0, friction=0.0, armature=0.0) if j.nv else j for j in machine.joints
    ]
    machine = replace(machine, joints=joints, dampers=())
    eom = Redundant(machine)
    nv = machine.nv
    x, p, _ = symbols(machine)
    H = eom.functions["hamiltonian"](x, p)
    slopes = ca.Function(
        "dH",
        [x, p],
        [ca.gradient(H, p), eom.coordinates.at(x).gradient(H), eom.coordinates.rate(x)],
    )
    at, p0, force = random_state(rng, machine)
    by_p, by_x, A = (slope.full() for slope in slopes(at, p0))
    gamma = evaluate(eom.functions["commutation"], at).reshape(nv, nv, nv)
    x_rate, p_rate = evaluate(eom.functions["hamilton"], at, p0, force)
    np.testing.assert_allclose(x_rate, A @ by_p, atol=1e-10)
    expected = force - np.einsum("kij,j,k->i", gamma, by_p.ravel(), p0) - by_x.ravel()
    assert relative_error(p_rate.ravel(), expected) < 1e-9


@pytest.mark.parametrize("seed", range(4))
def test_hamilton_and_forward_are_the_same_motion(seed):
    rng, machine = machine_of(seed)
    eom = Redundant(machine)
    x, v, a = symbols(machine)
    momentum = eom.functions["mass"](x) @ v
    A = machine.rate_matrix(x)
    rate = ca.jtimes(momentum, x, A @ v) + ca.jtimes(momentum, v, a)
    function = ca.Function("p", [x, v, a], [momentum, rate])
    at, v0, force = random_state(rng, machine)
    a0 = evaluate(eom.functions["forward"], at, v0, force)
    p0, p_rate = (o.full().ravel() for o in function(at, v0, a0))
    found = evaluate(eom.functions["hamilton"], at, p0, force)[1]
    assert relative_error(found.ravel(), p_rate) < 1e-9


def test_coordinates_that_do_not_fit_are_refused():
    def circle(x):
        return ca.sumsqr(x) - 1

    good = Coordinates(2, 1, lambda x: ca.vertcat(-x[1], x[0]), circle)
    good.validate(np.array([0.6, 0.8]))
    with pytest.raises(StateError, match="phi"):
        good.validate(np.array([1.0, 1.0]))
    leaving = Coordinates(2, 1, lambda x: ca.vertcat(x[1], x[0]), circle)
    with pytest.raises(StateError, match="A must be zero"):
        leaving.validate(np.array([0.6, 0.8]))
    unbound = Coordinates(2, 1, lambda x: ca.vertcat(-x[1], x[0]))
    with pytest.raises(StateError, match="rank"):
        unbound.validate(np.array([0.6, 0.8]))
