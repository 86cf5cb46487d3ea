"""The form in Euler angles and the form as printed: what each loses."""

import casadi as ca
import numpy as np
import pytest
from random_machines import evaluate, random_machine, random_state, relative_error, without_forces

from framefree.geometry import Moments, euler, quaternion
from framefree.machine import Body, Joint, Machine, MachineError
from framefree.machine.joints import Custom, Free
from framefree.motion.tree import Tree
from framefree.motion.tree.euler import configuration, from_angles, velocity_map


def angles(rng, machine):
    """Coordinates with pitch well away from 90 degrees."""
    return rng.uniform(-1.0, 1.0, machine.nv), rng.normal(size=machine.nv)


@pytest.fixture(params=range(10))
def bare(request):
    rng = np.random.default_rng(request.param)
    machine = without_forces(random_machine(rng, bodies=4, passive=False, fluid=False))
    return rng, machine, Tree(machine)


def test_from_angles_is_roll_pitch_yaw():
    given = np.array([0.3, -1.1, 2.0])
    R = quaternion.to_rotation(ca.DM(from_angles(ca.DM(given)))).full()
    np.testing.assert_allclose(R, euler.to_rotation(given), atol=1e-15)


def test_velocity_map_is_that_of_the_motion(bare):
    rng, machine, _ = bare
    eta, rate = angles(rng, machine)
    s = ca.SX.sym("eta", machine.nv)
    x = configuration(machine, s)
    x_dot = ca.Function("x_dot", [s], [ca.jtimes(x, s, ca.DM(rate))])(eta).full().ravel()
    T = ca.Function("T", [s], [velocity_map(machine, s)])(eta).full()
    x = ca.Function("x", [s], [x])(eta)
    A = ca.DM(machine.rate_matrix(x)).full()
    np.testing.assert_allclose(A @ T @ rate, x_dot, atol=1e-13)


def test_skew_and_right_away_from_pitch_90(bare):
    rng, machine, eom = bare
    eta, rate = angles(rng, machine)
    s, r = ca.SX.sym("eta", machine.nv), ca.SX.sym("rate", machine.nv)
    mass = eom.functions["mass:euler"](s)
    M_dot = ca.Function("M_dot", [s, r], [ca.jtimes(ca.vec(mass), s, r)])
    C = evaluate(eom.functions["coriolis:euler"], eta, rate)
    assert relative_error(C + C.T, M_dot(eta, rate).full().reshape(C.shape)) < 1e-12
    # d/dt dL/d(eta_rate) - dL/d(eta) at constant rate, L the kinetic energy
    kinetic = r.T @ mass @ r / 2
    lagrange = ca.jtimes(ca.gradient(kinetic, r), s, r) - ca.gradient(kinetic, s)
    expected = ca.Function("c", [s, r], [lagrange])(eta, rate).full().ravel()
    assert relative_error(C @ rate, expected) < 1e-11


def test_mass_in_angles_loses_rank_at_pitch_90():
    body = Body("b", Moments.of_body(2.0, (0.1, 0, 0.2), np.diag([0.3, 0.4, 0.5])))
    eom = Tree(Machine([body], [Joint("base", Free(), "world", "b")]))
    smallest = []
    for gap in (1e-1, 1e-2, 1e-3, 0.0):
        M = evaluate(eom.functions["mass:euler"], np.array([1, 2, 3, 0.4, np.pi / 2 - gap, 0.7]))
        smallest.append(np.linalg.eigvalsh(M)[0])
    assert smallest[0] > 1e-4
    np.testing.assert_allclose(smallest[1] / smallest[2], 100, rtol=0.05)
    assert abs(smallest[3]) < 1e-15
    upright = quaternion.from_rotation(euler.to_rotation([0.4, np.pi / 2, 0.7]))
    x = np.concatenate([[1, 2, 3], np.array(upright).ravel()])
    assert np.linalg.eigvalsh(evaluate(eom.functions["mass"], x))[0] > 0.1


def test_the_printed_matrix_is_skew_but_wrong(bare):
    rng, machine, eom = bare
    x, v, _ = random_state(rng, machine)
    C = evaluate(eom.functions["coriolis:printed"], x, v)
    xs = ca.SX.sym("x", machine.nx)
    mass = eom.functions["mass"](xs)
    M_dot = ca.Function("M_dot", [xs], [ca.jtimes(ca.vec(mass), xs, machine.rate_matrix(xs) @ v)])
    assert np.abs(C + C.T - M_dot(x).full().reshape(C.shape)).max() < 1e-11 * (1 + np.abs(C).max())


def test_the_printed_matrix_gives_a_wrong_bias():
    worst = 0.0
    for seed in range(6):
        rng = np.random.default_rng(seed)
        machine = without_forces(random_machine(rng, bodies=4, passive=False, fluid=False))
        eom = Tree(machine)
        x, v, _ = random_state(rng, machine)
        C = evaluate(eom.functions["coriolis:printed"], x, v)
        worst = max(worst, relative_error(C @ v, evaluate(eom.functions["bias"], x, v).ravel()))
    assert worst > 0.5


def slide(x):
    return ca.blockcat([[1, 0, 0, x], [0, 1, 0, 0], [0, 0, 1, 0], [0, 0, 0, 1]])


def test_joints_without_angles_are_refused():
    kind = Custom(slide, 1, rate_map=lambda x: ca.SX(2.0))
    body = Body("b", Moments.of_body(1.0, (0, 0, 0), np.eye(3)))
    machine = Machine([body], [Joint("odd", kind, "world", "b")])
    with pytest.raises(MachineError, match="`odd` has no form in Euler angles"):
        Tree(machine).functions["mass:euler"]
