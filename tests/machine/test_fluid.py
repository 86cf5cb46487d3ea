"""Fluid wrenches: buoyancy from its potential, added mass from Kirchhoff's equations, drag."""

import casadi
import numpy as np
import pytest

from framefree.geometry import se3
from framefree.machine import Fluid, Immersed, MachineError

GRAVITY = np.array([0.3, -0.2, -9.81])


def numeric(value):
    return np.array(casadi.DM(value))


def random_body(rng):
    A = rng.normal(size=(6, 6))
    return Immersed(
        "b", 0.02, rng.normal(size=3), A @ A.T, np.abs(rng.normal(size=6)), rng.uniform(1, 2, 6)
    )


def random_state(rng):
    G = numeric(se3.exp(rng.normal(size=6)))
    return G, rng.normal(size=6)


def test_buoyancy_is_the_gradient_of_its_potential():
    rng = np.random.default_rng(0)
    body, fluid = random_body(rng), Fluid((), density=1026.0)
    G, xi, h = casadi.SX.sym("G", 4, 4), casadi.SX.sym("xi", 6), casadi.SX.sym("h")
    rate = casadi.jacobian(fluid.buoyancy_potential(body, G @ se3.exp(h * xi), GRAVITY), h)
    wrench = fluid.buoyancy(body, G[:3, :3], GRAVITY)
    gap = casadi.Function("gap", [G, xi, h], [rate - casadi.dot(xi, wrench)])
    for _ in range(20):
        pose, twist = random_state(rng)
        assert abs(float(gap(pose, twist, 0.0))) < 1e-11


def test_buoyancy_lifts_against_gravity():
    body, fluid = Immersed("b", 2.0, (0.5, 0, 0)), Fluid((), density=1000.0)
    wrench = numeric(fluid.buoyancy(body, casadi.DM.eye(3), (0.0, 0.0, -10.0))).ravel()
    # On the left of the equations: minus the applied 20 kN upwards at x = 0.5 m.
    assert np.allclose(wrench, [0, 0, -20000.0, 0, 10000.0, 0])


def test_added_mass_coriolis_is_skew_and_gives_the_bias():
    rng = np.random.default_rng(1)
    for _ in range(50):
        body, (_, xi) = random_body(rng), random_state(rng)
        gam = numeric(body.coriolis(casadi.DM(xi)))
        expected = -numeric(se3.little_adjoint(xi)).T @ body.added_mass @ xi
        assert np.allclose(gam, -gam.T, atol=1e-12)
        assert np.allclose(gam @ xi, expected, atol=1e-11)


def test_added_mass_is_kirchhoffs_equation_in_the_moving_fluid():
    """In a frame carried by the current the fluid is at rest: d/dt momentum + ad terms, by AD."""
    rng = np.random.default_rng(2)
    body, current = random_body(rng), np.array([0.4, -0.7, 0.2])
    fluid = Fluid((body,), current=current)
    R, xi, a = casadi.SX.sym("R", 3, 3), casadi.SX.sym("xi", 6), casadi.SX.sym("a", 6)
    relative = fluid.relative_twist(se3.pose(R, casadi.DM.zeros(3)), xi)
    M = casadi.DM(body.added_mass)
    momentum = M @ relative
    R_dot = R @ se3.wed(casadi.vertcat(xi))[:3, :3]
    rate = casadi.jtimes(momentum, casadi.vec(R), casadi.vec(R_dot)) + casadi.jtimes(
        momentum, xi, a
    )
    kirchhoff = rate - se3.little_adjoint(relative).T @ momentum
    ours = M @ a + fluid.added_mass_bias(body, se3.pose(R, casadi.DM.zeros(3)), xi)
    gap = casadi.Function("gap", [R, xi, a], [kirchhoff - ours])
    for _ in range(20):
        G, twist = random_state(rng)
        assert np.abs(numeric(gap(G[:3, :3], twist, rng.normal(size=6)))).max() < 1e-11


def test_relative_twist_vanishes_when_carried_by_the_current():
    rng = np.random.default_rng(3)
    fluid = Fluid((), current=(0.4, -0.7, 0.2))
    G, _ = random_state(rng)
    xi = np.concatenate([G[:3, :3].T @ fluid.current, np.zeros(3)])
    assert np.abs(numeric(fluid.relative_twist(casadi.DM(G), casadi.DM(xi)))).max() < 1e-15


def test_drag_takes_power_and_is_odd():
    rng = np.random.default_rng(4)
    body = Immersed("b", linear_drag=(1, 2, 3, 4, 5, 6), quadratic_drag=(6, 5, 4, 3, 2, 1))
    for _ in range(20):
        xi = rng.normal(size=6)
        drag = numeric(body.drag(casadi.DM(xi), Fluid(()))).ravel()
        expected = np.arange(1, 7) * xi + np.arange(6, 0, -1) * np.abs(xi) * xi
        assert np.allclose(drag, expected, atol=1e-14)
        assert xi @ drag > 0
        assert np.allclose(numeric(body.drag(casadi.DM(-xi), Fluid(()))).ravel(), -drag)


def test_refusals_come_together():
    with pytest.raises(MachineError) as caught:
        Immersed("b", -1.0, (0, np.nan, 0), np.eye(6, k=1))
    assert len(caught.value.problems) == 3
    with pytest.raises(MachineError, match="density"):
        Fluid((), density=-1.0)
    with pytest.raises(MachineError, match="Immersed"):
        Fluid(("b",))
