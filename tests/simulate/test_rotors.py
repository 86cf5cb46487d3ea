"""Drives of rotors and servos of any craft: closed forms, wrenches by hand, and flights."""

import casadi as ca
import numpy as np
import pytest

from framefree.control.prototype import PrototypeControl
from framefree.control.prototype.tuning import characteristic, thrust_borne
from framefree.control.references import Hold
from framefree.geometry import Moments
from framefree.machine import (
    Body,
    Frame,
    Free,
    Joint,
    JointForce,
    Machine,
    Propeller,
    Revolute,
    TiltingPropeller,
)
from framefree.simulate import Rotor, RotorDrive, SimulationError, TiltServo, simulate

SQUARE = Rotor((0.0, 0.0, 2e-5), rate=40.0)
MEASURED = Rotor((-0.1, 2e-3, 1.5e-5), rate=30.0, speeds=(80.0, 700.0))


def craft(places, spins, axes=None, tail=False, arm=False, ratio=0.02):
    """Propellers at places; the last one tilted about x if it is a tail."""
    axes = [(0, 0, 1)] * len(places) if axes is None else axes
    frames = [Frame(f"r{k}", "body", tuple(place)) for k, place in enumerate(places)]
    actuators = [
        Propeller(f"p{k}", f"r{k}", axis, ratio, spin, upper=15.0)
        for k, (axis, spin) in enumerate(zip(axes, spins, strict=True))
    ]
    if tail:
        last = len(places) - 1
        actuators[-1] = TiltingPropeller(
            f"p{last}", f"r{last}", torque_ratio=ratio, spin=spins[-1], force=(0.1, 15.0)
        )
    bodies = [Body("body", Moments.of_body(2.0, (0, 0, 0), np.diag([0.03, 0.03, 0.05])))]
    joints = [Joint("base", Free(), "world", "body")]
    if arm:
        bodies.append(Body("link", Moments.of_body(0.2, (0, 0, -0.1), 1e-3 * np.eye(3))))
        joints.append(Joint("shoulder", Revolute("y"), "body", "link"))
        actuators.insert(1, JointForce("motor", "shoulder"))
    return Machine(
        tuple(bodies), tuple(joints), tuple(frames), actuators=tuple(actuators), name="craft"
    )


def ring(count, height=0.0):
    angles = 2 * np.pi * np.arange(count) / count
    return 0.3 * np.column_stack([np.cos(angles), np.sin(angles), 0 * angles + height / 0.3])


def hexacopter(**options):
    return craft(ring(6), [1, -1, 1, -1, 1, -1], **options)


def coaxial():
    """Four arms with two propellers each, one above the other, that turn against each other."""
    return craft(np.vstack([ring(4, 0.03), ring(4, -0.03)]), [1, -1, 1, -1, -1, 1, -1, 1])


def tailed():
    """Two propellers in front, and one at the tail that a servo tilts about x."""
    return craft([(0.2, 0.2, 0), (0.2, -0.2, 0), (-0.3, 0, 0)], [1, -1, 1], tail=True)


def functions(drive):
    sizes = len(drive.start(np.ones(drive.machine.nu))), drive.machine.nu
    z, c = ca.SX.sym("z", sizes[0]), ca.SX.sym("c", sizes[1])
    return ca.Function("drive", [z, c], [drive.rate(z, c), drive.u(z, c)])


@pytest.mark.parametrize("make", [hexacopter, coaxial, tailed, lambda: hexacopter(arm=True)])
def test_inputs_that_were_given_for_long_stay(make):
    machine = make()
    u = np.random.default_rng(0).uniform(1.0, 5.0, machine.nu)
    for rotor in (SQUARE, MEASURED):
        drive = RotorDrive(machine, rotor)
        rate, given = (np.array(v).ravel() for v in functions(drive)(drive.start(u), u))
        assert np.abs(rate).max() < 1e-9
        assert np.allclose(given, u, rtol=1e-12)


def stepped(drive, before, command, steps, dt):
    function, z, given = functions(drive), drive.start(before), []
    for _ in range(steps):
        k1, u = function(z, command)
        k2 = function(np.array(z) + dt / 2 * np.array(k1).ravel(), command)[0]
        given.append(np.array(u).ravel())
        z = np.array(z) + dt * np.array(k2).ravel()
    return np.array(given)


@pytest.mark.parametrize("rotor", [SQUARE, MEASURED])
def test_speeds_follow_by_their_rate_and_thrusts_by_their_curve(rotor):
    """F(t) = c0 + c1 w + c2 w^2 with w an exponential, the speeds by numpy's roots."""
    dt, drive = 5e-4, RotorDrive(hexacopter(), rotor)
    given = stepped(drive, np.full(6, 2.0), np.full(6, 4.0), 200, dt)

    def speed(thrust):
        c0, c1, c2 = rotor.thrust
        return max(np.roots([c2, c1, c0 - thrust]).real)

    t = dt * np.arange(200)
    w = speed(4.0) + (speed(2.0) - speed(4.0)) * np.exp(-rotor.rate * t)
    expected = np.polyval(rotor.thrust[::-1], w)
    assert np.allclose(given, expected[:, None], atol=1e-4)


def test_speeds_stay_within_their_limits():
    drive = RotorDrive(hexacopter(), MEASURED)
    command = np.array([20.0, -3.0, 4.0, 4.0, 4.0, 4.0])
    last = stepped(drive, np.full(6, 4.0), command, 400, 1e-3)[-1]
    low, high = (np.polyval(MEASURED.thrust[::-1], w) for w in MEASURED.speeds)
    assert np.allclose(last, [high, low, 4.0, 4.0, 4.0, 4.0], rtol=1e-4)


def test_the_tail_is_tilted_by_its_servo_of_second_order():
    servo, dt = TiltServo(30.0, 0.6, range=(-0.5, 0.5)), 2e-4
    drive = RotorDrive(tailed(), SQUARE, servo)
    tilt = 0.4
    command = np.array([4.0, 4.0, 5 * np.sin(tilt), 5 * np.cos(tilt)])
    given = stepped(drive, np.array([4.0, 4.0, 0.0, 5.0]), command, 600, dt)
    t, damped = dt * np.arange(600), 30.0 * 0.8
    swing = np.cos(damped * t) + 0.6 * 30.0 / damped * np.sin(damped * t)
    expected = tilt * (1 - np.exp(-0.6 * 30.0 * t) * swing)
    assert np.allclose(np.arctan2(given[:, 2], given[:, 3]), expected, atol=1e-4)
    assert np.allclose(np.hypot(given[:, 2], given[:, 3]), 5.0)
    beyond = np.array([4.0, 4.0, 5 * np.sin(0.9), 5 * np.cos(0.9)])
    last = stepped(drive, np.array([4.0, 4.0, 0.0, 5.0]), beyond, 2000, 5e-4)[-1]
    assert np.arctan2(last[2], last[3]) == pytest.approx(0.5, abs=1e-6)


@pytest.mark.parametrize("make", [hexacopter, coaxial])
def test_rotors_that_speed_up_turn_the_craft_back(make):
    """Moment about z of air and rotors by hand, and torques of motors within their limits."""
    rotor = Rotor((0.0, 0.0, 2e-5), rate=60.0, inertia=4e-5, torques=(-0.05, 0.12))
    machine = make()
    drive, rng = RotorDrive(machine, rotor), np.random.default_rng(1)
    count, function = machine.nu, functions(drive)
    spins = np.array([a.spin for a in machine.actuators])
    for _ in range(5):
        w, command = rng.uniform(300, 500, count), rng.uniform(0, 12, count)
        rate, u = (np.array(v).ravel() for v in function(w, command))
        torque = 4e-5 * rate + 0.02 * 2e-5 * w**2
        assert torque.max() <= 0.12 + 1e-12
        assert torque.min() >= -0.05 - 1e-12
        air = -(spins * 0.02 * 2e-5 * w**2).sum()
        assert -(spins * 0.02 * u).sum() == pytest.approx(air - (4e-5 * spins * rate).sum())
        assert u.sum() == pytest.approx((2e-5 * w**2).sum())


def test_other_actuators_follow_at_once():
    machine = hexacopter(arm=True)
    drive = RotorDrive(machine, SQUARE)
    command = np.full(7, 3.0)
    command[machine.u_slice["motor"]] = -0.7
    given = stepped(drive, np.full(7, 2.0), command, 1, 1e-3)[0]
    assert given[machine.u_slice["motor"]] == pytest.approx(-0.7)
    assert given[0] == pytest.approx(2.0)


def test_a_coaxial_craft_hovers_through_its_drive():
    machine = coaxial()
    gains = thrust_borne(2.0, characteristic((1.5, 0.9), (5, 0.9)), (2, 0.9), 0.05)
    law = PrototypeControl(machine, **gains.on("body"), approach="body")
    x0 = machine.neutral()
    x0[:3] = [0.3, -0.2, 0.1]
    rotors = {f"p{k}": MEASURED if k < 4 else Rotor((0, 0, 2e-5), rate=40.0) for k in range(8)}
    run = simulate(
        machine,
        law,
        Hold(machine, machine.neutral()),
        x0,
        np.zeros(6),
        duration=6.0,
        dt=2e-3,
        lag=RotorDrive(machine, rotors),
        u0=np.full(8, 2.0 * 9.81 / 8),
        progress=False,
    )
    assert np.abs(run.x[-1, :3]).max() < 5e-3


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Rotor((0.0, 0.0, -1e-5)), "must rise"),
        (lambda: Rotor((1.0,)), "two or three"),
        (lambda: Rotor((0, 0, 1e-5), torques=(-1, 1)), "need its `inertia`"),
        (lambda: Rotor((0, 0, 1e-5), speeds=(500, 100)), "increasing"),
        (lambda: TiltServo(rate=-1.0), "positive"),
        (lambda: RotorDrive(hexacopter(), {"p0": SQUARE}), "Rotor for `p1`.*given are p0"),
        (lambda: RotorDrive(tailed(), SQUARE, {}), "TiltServo for `p2`"),
        (
            lambda: RotorDrive(tailed(), Rotor((0, 0, 1e-5), inertia=4e-5)),
            "cannot give the reaction",
        ),
        (
            lambda: simulate(
                tailed(), None, lag=RotorDrive(hexacopter(), SQUARE), duration=0.1, dt=1e-3
            ),
            "does not fit",
        ),
        (
            lambda: simulate(
                tailed(), None, lag=RotorDrive(tailed(), SQUARE), duration=0.1, dt=0.05
            ),
            "longer than 1/rate",
        ),
    ],
)
def test_what_cannot_be_is_refused(make, message):
    with pytest.raises(SimulationError, match=message):
        make()
