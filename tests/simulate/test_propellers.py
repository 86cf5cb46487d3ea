"""Drives of any number of propellers: the wrench by hand, motor limits, and rotors as bodies."""

import casadi as ca
import numpy as np
import pytest

from framefree.control import OpenLoop
from framefree.geometry import Moments
from framefree.machine import (
    Body,
    Continuous,
    Frame,
    Free,
    Joint,
    JointForce,
    Machine,
    Propeller,
    SpinningPropeller,
)
from framefree.simulate import PropellerDrive, SimulationError, simulate

THRUST, RATIO, ROTOR = 2e-5, 0.02, 4e-5
MASS, INERTIA = 2.0, np.diag([0.03, 0.03, 0.05])


def places(count):
    angles = 2 * np.pi * np.arange(count) / count
    return 0.3 * np.column_stack([np.cos(angles), np.sin(angles), 0 * angles])


def copter(count, ratio=RATIO, tilted=0.0, spins=None):
    """A craft with propellers around it that turn by turns."""
    spins = [(-1) ** k for k in range(count)] if spins is None else spins
    return Machine(
        (Body("body", Moments.of_body(MASS, (0, 0, 0), INERTIA)),),
        (Joint("base", Free(), "world", "body"),),
        tuple(Frame(f"r{k}", "body", place) for k, place in enumerate(places(count))),
        actuators=tuple(
            Propeller(f"p{k}", f"r{k}", (tilted * (-1) ** k, 0, 1), ratio, spin, upper=20.0)
            for k, spin in enumerate(spins)
        ),
        name="copter",
    )


@pytest.mark.parametrize("count", [4, 6, 8])
def test_the_wrench_is_that_of_air_and_rotors(count):
    """Thrust and drag torque of every propeller, and -J spin w' of every rotor, by hand."""
    machine, rng = copter(count), np.random.default_rng(count)
    drive = PropellerDrive(machine, THRUST, ROTOR)
    z, c = ca.SX.sym("z", 2 * count), ca.SX.sym("c", count)
    function = ca.Function("drive", [z, c], [drive.rate(z, c), drive.u(z, c)])
    for _ in range(5):
        speeds = rng.uniform(200, 600, count)
        state = np.concatenate([speeds, rng.normal(size=count) * 50])
        rate, u = (np.array(value).ravel() for value in function(state, rng.uniform(2, 6, count)))
        forces, moments = np.zeros(3), np.zeros(3)
        given, turned = np.zeros(3), np.zeros(3)
        for k, place in enumerate(places(count)):
            spin, thrust = (-1) ** k, THRUST * speeds[k] ** 2
            forces += [0, 0, thrust]
            moments += np.cross(place, [0, 0, thrust]) - [0, 0, spin * RATIO * thrust]
            moments -= [0, 0, ROTOR * spin * rate[k]]
            given += [0, 0, u[k]]
            turned += np.cross(place, [0, 0, u[k]]) - [0, 0, spin * RATIO * u[k]]
        assert np.allclose(given, forces, atol=1e-9)
        assert np.allclose(turned, moments, atol=1e-9)


def followed(drive, first, command, steps=2000, dt=5e-5):
    """Thrusts (steps, nu) that a drive gives, and the largest motor torque."""
    n = len(first)
    z, c = ca.SX.sym("z", 2 * n), ca.SX.sym("c", n)
    function = ca.Function("drive", [z, c], [drive.rate(z, c), drive.u(z, c)])
    state, given, most = drive.start(first), [], 0.0
    for _ in range(steps):
        rate, u = (np.array(value).ravel() for value in function(state, command))
        torque = ROTOR * rate[:n] + THRUST * RATIO * np.maximum(state[:n], 40.0) ** 2
        given.append(u)
        most = max(most, torque.max())
        state = state + dt * rate
    return np.array(given), most


def test_thrusts_follow_as_a_filter_of_second_order():
    """All six together, so that rotors react on each other; the step response by hand."""
    rate, ratio, dt = 80.0, 0.6, 5e-5
    hover = np.full(6, MASS * 9.81 / 6)
    drive = PropellerDrive(copter(6), THRUST, ROTOR, rates=rate, ratios=ratio)
    given, _ = followed(drive, hover, hover + 0.4, dt=dt)
    t, damped = dt * np.arange(len(given)), rate * np.sqrt(1 - ratio**2)
    swing = np.cos(damped * t) + ratio * rate / damped * np.sin(damped * t)
    expected = hover[0] + 0.4 * (1 - np.exp(-ratio * rate * t) * swing)
    assert np.abs(given - expected[:, None]).max() < 2e-3


def test_motors_stay_within_their_torques():
    hover = np.full(6, MASS * 9.81 / 6)
    free, limited = (
        PropellerDrive(copter(6), THRUST, ROTOR, torques=torques)
        for torques in ((-np.inf, np.inf), (-0.05, 0.3))
    )
    fast, most = followed(free, hover, 3 * hover)
    slow, less = followed(limited, hover, 3 * hover)
    assert most > 0.5
    assert less <= 0.3 + 1e-12
    assert slow[400].max() < fast[400].min()


def test_turning_is_that_of_a_craft_whose_rotors_are_bodies():
    """Yaw by speeding rotors up: one drive against six spinning bodies with motor torques."""
    count = 6
    flat = np.diag([0.5, 0.5, 1.0]) * ROTOR
    rotor = Moments.of_body(1e-6, (0, 0, 0), flat)
    bodies = [Body("body", Moments.of_body(MASS, (0, 0, 0), INERTIA))]
    joints, frames, actuators = [Joint("base", Free(), "world", "body")], [], []
    for k, place in enumerate(places(count)):
        bodies.append(Body(f"w{k}", rotor))
        joints.append(Joint(f"s{k}", Continuous("z"), "body", f"w{k}", parent_pose=place))
        actuators.append(JointForce(f"m{k}", f"s{k}"))
        actuators.append(
            SpinningPropeller(
                f"a{k}",
                f"w{k}",
                f"s{k}",
                thrust_coefficient=THRUST,
                torque_coefficient=THRUST * RATIO,
                spin=(-1) ** k,
            )
        )
    whole = Machine(tuple(bodies), tuple(joints), tuple(frames), actuators=tuple(actuators))
    spins = np.array([(-1) ** k for k in range(count)])
    hover = np.full(count, MASS * 9.81 / count)
    speed = np.sqrt(hover / THRUST)
    extra = 0.02 * np.array([1.0, 0.0] * 3)
    torque = spins * (THRUST * RATIO * speed**2 + extra)
    v0 = np.concatenate([np.zeros(6), spins * speed])
    run = simulate(
        whole,
        OpenLoop(whole, lambda t: torque),
        None,
        None,
        v0,
        duration=0.05,
        dt=1e-4,
        progress=False,
    )
    # The same speeds through the drive: its thrusts on the single body, step by step.
    craft, w = copter(count), run.v[:, 6:] * spins
    drive = PropellerDrive(craft, THRUST, ROTOR)
    rates = np.gradient(w, run.t, axis=0)
    state = np.hstack([w, 2 * THRUST * w * rates])
    z, c = ca.SX.sym("z", 2 * count), ca.SX.sym("c", count)
    given = ca.Function("u", [z, c], [drive.u(z, c)]).map(len(run.t))
    u = np.array(given(state.T, np.zeros((count, len(run.t))))).T
    moment = -(spins * RATIO * u).sum(axis=1)
    turned = np.concatenate([[0], np.cumsum((moment[1:] + moment[:-1]) / 2 * 1e-4)])
    # The craft of one body carries its rotors along.
    inertia = INERTIA[2, 2] + count * ROTOR
    assert np.abs(run.v[:, 5] - turned / inertia).max() < 1e-4 * np.abs(run.v[:, 5]).max()
    assert np.abs(run.v[:, 5]).max() > 0.01


def test_what_does_not_fit_is_refused():
    with pytest.raises(SimulationError, match="cannot give the reaction of their rotors"):
        PropellerDrive(copter(4, ratio=0.0), THRUST, ROTOR)
    with pytest.raises(SimulationError, match=r"`thrust_coefficient`.*positive"):
        PropellerDrive(copter(4), -1.0, ROTOR)
    with pytest.raises(SimulationError, match="regular matrix"):
        PropellerDrive(copter(4), THRUST, ROTOR, modes=np.zeros((4, 4)))
    with pytest.raises(SimulationError, match="one below and one above"):
        PropellerDrive(copter(4), THRUST, ROTOR, torques=(0.0, 1.0))
    drive = PropellerDrive(copter(4), THRUST, ROTOR)
    with pytest.raises(SimulationError, match="does not fit"):
        simulate(copter(6), None, lag=drive, duration=0.01, dt=1e-3, progress=False)
