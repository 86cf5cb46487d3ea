"""Numbers that enter nonlinearly are found by the error of predictions."""

import casadi as ca
import numpy as np
import pytest

from framefree.gallery.machines import multicopters
from framefree.identify import IdentifyError
from framefree.identify.shooting import PredictionModel, RecordedPieces, shoot
from framefree.motion import actuation
from framefree.motion.tree import Tree

DT = 0.01


def motor():
    """A propeller that lags, with a thrust curve, lifting a mass against drag: height's rate."""
    z, u, p = ca.SX.sym("z", 2), ca.SX.sym("u", 2), ca.SX.sym("p", 4)
    linear, square, lag, drag = ca.vertsplit(p)
    rate = z[1]
    voltage = u[0] * u[1]  # command times battery

    def field(z):
        thrust = linear * z[0] + square * z[0] ** 2
        return ca.vertcat((voltage - z[0]) / lag, thrust - 9.81 - drag * z[1] * ca.fabs(z[1]))

    k1 = field(z)
    k2 = field(z + DT / 2 * k1)
    step = ca.Function("step", [z, u, p], [z + DT * k2])
    return PredictionModel(step, ca.Function("output", [z, u, p], [rate])), step


def pieces(step, truth, rng, noise):
    count, steps = 30, 40
    command = 0.7 + 0.2 * rng.normal(size=(count, steps // 8)).repeat(8, axis=1)
    u = np.stack([command, np.full_like(command, 4.0) - 0.3 * rng.random((count, 1))], axis=2)
    z = np.column_stack([np.full(count, 2.8), rng.normal(size=count)])
    first, y = z.copy(), np.zeros((count, steps, 1))
    for k in range(steps):
        y[:, k, 0] = z[:, 1]
        z = np.array([step(a, b, truth).full().ravel() for a, b in zip(z, u[:, k], strict=True)])
    y += noise * rng.normal(size=y.shape)
    first = first + np.array([0.05, noise]) * rng.normal(size=first.shape)
    return RecordedPieces(first, u, y)


def test_thrust_curve_lag_and_drag_are_found():
    model, step = motor()
    truth, rng = np.array([1.5, 0.7, 0.06, 0.15]), np.random.default_rng(0)
    data = pieces(step, truth, rng, 0.01)
    found = shoot(model, data, [3.0, 0.3, 0.03, 0.02], sigma_y=[0.01], sigma_z=[0.05, 0.01],
                  bounds=([-np.inf, -np.inf, 1e-3, 0.0], np.inf))  # fmt: skip
    assert found.cost < 1e-2 * found.first_cost
    assert (np.abs(found.value - truth) < 4 * found.deviation).all()
    assert (found.deviation < 0.1 * truth).all()
    assert 0.7 < found.cost < 1.3


def test_slopes_are_exact():
    model, step = motor()
    rng, p = np.random.default_rng(1), np.array([1.5, 0.7, 0.06, 0.15])
    data = pieces(step, p, rng, 0.0)
    y, slope = model.predict(data.z, data.u, p)
    for k in range(4):
        moved = np.array(p)
        moved[k] += 1e-6
        difference = (model.predict(data.z, data.u, moved)[0] - y) / 1e-6
        assert np.abs(slope[..., k] - difference).max() < 1e-4 * max(np.abs(difference).max(), 1)
    moved = data.z + np.array([1e-6, 0.0])
    difference = (model.predict(moved, data.u, p)[0] - y) / 1e-6
    assert np.abs(slope[..., 4] - difference).max() < 1e-4 * np.abs(difference).max()


def test_numbers_at_bounds_and_held_ones_are_said_to_be():
    model, step = motor()
    truth, rng = np.array([1.5, 0.7, 0.06, 0.15]), np.random.default_rng(0)
    data = pieces(step, truth, rng, 0.01)
    # The lag is held at its true value, and the drag may not become as large as it is.
    bounds = ([-np.inf, -np.inf, 0.06, 0.0], [np.inf, np.inf, 0.06, 0.1])
    found = shoot(model, data, [3.0, 0.3, 0.06, 0.02], sigma_y=[0.01], sigma_z=[0.05, 0.01],
                  bounds=bounds)  # fmt: skip
    assert found.free.tolist() == [True, True, False, False]
    assert found.value[2:].tolist() == [0.06, 0.1]
    assert np.isinf(found.deviation).tolist() == [False, False, True, True]
    # The others are the best ones with these two: no step among them lowers the cost.
    again = shoot(model, data, found.value, sigma_y=[0.01], sigma_z=[0.05, 0.01], bounds=bounds)
    assert np.allclose(again.value, found.value, rtol=1e-5)


def test_what_does_not_fit_is_named():
    model, step = motor()
    data = pieces(step, np.array([1.5, 0.7, 0.06, 0.15]), np.random.default_rng(0), 0.01)
    sigma = {"sigma_y": [0.01], "sigma_z": [0.05, 0.01]}
    with pytest.raises(IdentifyError, match=r"number 3 begins at 0\.1, outside its bounds 0\.2"):
        shoot(model, data, [1, 1, 0.1, 0.1], **sigma, bounds=([0, 0, 0, 0.2], np.inf))
    with pytest.raises(IdentifyError, match="4 numbers"):
        shoot(model, data, [1.0, 1.0], **sigma)
    data.y[3, 5, 0] = np.nan
    with pytest.raises(IdentifyError, match=r"`y` of the pieces is not finite at \(3, 5, 0\)"):
        shoot(model, data, [1, 1, 0.1, 0.1], **sigma)


def test_geometry_is_found_from_a_flight():
    """The center of mass and the place of a propeller, from rates and attitudes of a flight."""
    paths = ("body.center.x", "body.center.y", "rotor1.pose.x")
    machine = multicopters.quadcopter(offset=False).tunable(*paths)
    tree = Tree(machine)
    z, u, p = ca.SX.sym("z", 13), ca.SX.sym("u", 4), ca.SX.sym("p", 3)

    def field(z):
        x = ca.vertcat(z[:3], z[3:7] / ca.norm_2(z[3:7]))
        state = tree.at(x, z[7:])
        a = state.accelerate(actuation.input_matrix(state) @ u)
        a = ca.substitute(ca.SX(a), machine.parameters.symbols, p)
        return ca.vertcat(machine.rate_matrix(x) @ z[7:], a)

    step = ca.Function("step", [z, u, p], [z + DT * field(z + DT / 2 * field(z))])
    model = PredictionModel(step, ca.Function("output", [z, u, p], [z[3:]]))
    truth, rng = np.array([4e-3, -3e-3, 0.25]), np.random.default_rng(2)
    count, steps, noise = 20, 30, 2e-3
    u = 2.45 + 0.1 * rng.normal(size=(count, steps // 5, 4)).repeat(5, axis=1)
    z = np.tile([0, 0, 0, 1.0, *[0.0] * 9], (count, 1))
    z[:, 7:] += 0.2 * rng.normal(size=(count, 6))
    first, y = z + noise * rng.normal(size=z.shape), np.zeros((count, steps, 10))
    for k in range(steps):
        y[:, k] = z[:, 3:]
        z = np.array([step(a, b, truth).full().ravel() for a, b in zip(z, u[:, k], strict=True)])
    y += noise * rng.normal(size=y.shape)
    found = shoot(model, RecordedPieces(first, u, y), [0.0, 0.0, 0.24], sigma_y=np.full(10, noise),
                  sigma_z=np.full(13, noise))  # fmt: skip
    assert (np.abs(found.value - truth) < 4 * found.deviation).all()
    assert (found.deviation < 5e-4).all()
    assert 0.8 < found.cost < 1.2
