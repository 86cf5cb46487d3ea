"""Waves, a floating hull and gusts: against spectra in closed form, pressures and a RAO."""

import casadi as ca
import numpy as np
import pytest
from scipy.integrate import quad

from framefree.geometry import Moments, quaternion
from framefree.machine import (
    Body,
    FloatingHull,
    Fluid,
    Free,
    Gusts,
    Immersed,
    Joint,
    Machine,
    MachineError,
    Waves,
    WindDrag,
)
from framefree.motion.tree import Tree
from framefree.simulate import simulate

L, B, T, RHO, G = 25.0, 8.0, 2.0, 1025.0, 9.81
MASS = RHO * L * B * T


def ship(waves=None, height=0.4, added=(0.0,) * 6, damping=(0.0,) * 6):
    """A barge whose mass center lies above the waterplane."""
    inertia = MASS * np.diag([2.5**2, 6.5**2, 6.7**2])
    hull = FloatingHull("sea", "world", "ship", L, B, T, RHO, G, damping, waves)
    body = Body("ship", Moments.of_body(MASS, (0, 0, height), inertia))
    fluid = Fluid((Immersed("ship", 0.0, added_mass=added),), density=RHO) if any(added) else None
    free = Joint("base", Free(), "world", "ship")
    return Machine([body], [free], interactions=[hull], fluid=fluid, gravity=(0, 0, -G))


def still_force(machine, x):
    """What holds the ship at rest, in its own axes."""
    return -Tree(machine).functions["inverse"](x, np.zeros(6), np.zeros(6)).full().ravel()


def tilted(machine, vector, rise=0.0):
    x = machine.neutral()
    x[2] = rise
    x[3:7] = np.array(quaternion.exp(ca.DM(vector))).ravel()
    return x


def test_a_hull_at_its_draft_is_in_equilibrium():
    machine = ship()
    assert machine.interactions[0].displacement == pytest.approx(MASS)
    assert np.abs(still_force(machine, machine.neutral())).max() < 1e-6 * MASS * G


def test_stiffness_in_heave_roll_and_pitch_is_that_of_naval_architecture():
    """rho g A in heave; weight times KB + BM - KG in roll and pitch."""
    machine, h = ship(), 1e-5
    heave = still_force(machine, tilted(machine, (0, 0, 0), h))[2]
    assert heave == pytest.approx(-RHO * G * L * B * h, rel=1e-6)
    for axis, across in ((0, B), (1, L)):
        vector = np.zeros(3)
        vector[axis] = h
        moment = still_force(machine, tilted(machine, vector))[3 + axis]
        metacentric = T / 2 + across**2 / (12 * T) - (T + 0.4)
        assert moment == pytest.approx(-MASS * G * metacentric * h, rel=1e-6)


def test_righting_arm_at_large_angles_is_the_wall_sided_formula():
    """GZ = sin(phi) (GM + BM tan(phi)^2 / 2) at constant displacement [wall-sided hulls]."""
    machine, phi = ship(), 0.35
    BM = B**2 / (12 * T)
    GM = T / 2 + BM - (T + 0.4)
    # The height at which the displacement is what it was: the waterline turns about its middle.
    x = tilted(machine, (phi, 0, 0), 0.0)
    x[2] = 0.0
    U = machine.interactions[0]
    pose = Tree(machine).functions["body_pose"](x).full().reshape(4, 4)
    lift = np.array(ca.DM(U.conservative_wrench(ca.SX(ca.DM(pose)), 0))).ravel()
    force = pose[:3, :3] @ lift[:3]
    # d_0 = R33 T: the volume L B d_0 / R33 is unchanged, so that the lift is the weight.
    assert force[2] == pytest.approx(MASS * G, rel=1e-9)
    assert still_force(machine, x)[3] == pytest.approx(
        -MASS * G * np.sin(phi) * (GM + BM * np.tan(phi) ** 2 / 2), rel=1e-9
    )


def test_energy_and_forces_of_a_hull_in_waves_agree_with_the_power_balance():
    waves = Waves(1.0, 7.0, 0.6, components=5, seed=2)
    hull = FloatingHull("sea", "world", "ship", L, B, T, RHO, G, waves=waves)
    rng = np.random.default_rng(0)
    G_ = ca.SX.sym("G", 4, 4)
    t, xi = ca.SX.sym("t"), ca.SX.sym("xi", 6)
    rate = ca.Function("rate", [G_, xi, t], [
        hull.energy_rate(G_, xi, t) + ca.dot(xi, hull.wrench_at(G_, xi, t)),
        ca.gradient(hull.energy_at(G_, t), t),
    ])  # fmt: skip
    pose = np.eye(4)
    pose[:3, :3] = np.array(quaternion.to_rotation(quaternion.exp(ca.DM([0.05, -0.03, 0.7]))))
    pose[:3, 3] = 3.0, -2.0, 0.1
    total, by_time = (float(v) for v in rate(pose, rng.normal(size=6), 4.0))
    assert total == pytest.approx(by_time, rel=1e-9)


@pytest.mark.parametrize("heading", [0.0, 0.5, np.pi / 2])
def test_heave_force_of_a_wave_is_its_pressure_over_the_bottom(heading):
    wave = Waves(0.02, 6.0, heading, components=1, seed=1)
    machine = ship(wave)
    k, a, time = wave.wave_numbers[0], wave.sines.amplitude, 1.3

    def pressure(x, y):
        along = np.cos(heading) * x + np.sin(heading) * y
        return (
            RHO
            * G
            * a
            * np.exp(-k * T)
            * np.cos(k * along - wave.sines.frequency[0] * time - wave.sines.phase[0])
        )

    lines = np.linspace(-0.5, 0.5, 2001)
    X, Y = np.meshgrid(L * lines[1::2], B * lines[1::2])
    expected = pressure(X, Y).mean() * L * B
    pitch = -(X * pressure(X, Y)).mean() * L * B
    hull = machine.interactions[0].held_at(time)
    w = np.array(ca.DM(hull.conservative_wrench(ca.SX.eye(4), 0))).ravel()
    assert w[2] - MASS * G == pytest.approx(expected, rel=3e-3)
    assert w[4] == pytest.approx(pitch, rel=3e-3, abs=3e-3 * abs(expected) * L)


def test_heave_in_a_regular_wave_has_the_amplitude_of_its_operator():
    wave = Waves(0.2, 7.0, 0.3, components=1, seed=4)
    added, damping = 0.8 * MASS, 2.5e5
    machine = ship(wave, added=(0, 0, added, 0, 0, 0), damping=(0, 0, damping, 1e7, 1e7, 0))
    held = machine.replace("base", armature=[1e9, 1e9, 0, 1e12, 1e12, 1e12])  # heave alone
    run = simulate(held, duration=80.0, dt=0.05, record=())
    k, w = wave.wave_numbers[0], wave.sines.frequency[0]
    u, v = k * np.cos(0.3) * L / 2, k * np.sin(0.3) * B / 2
    force = RHO * G * L * B * wave.sines.amplitude * np.exp(-k * T) * np.sin(u) / u * np.sin(v) / v
    stiffness = RHO * G * L * B
    expected = force / np.hypot(stiffness - (MASS + added) * w**2, damping * w)
    late = run.x[run.t > 52.0, 2]
    assert np.ptp(late) / 2 == pytest.approx(expected, rel=5e-3)


def test_frequencies_share_the_energy_of_the_spectrum_evenly():
    """For Pierson and Moskowitz the share below w is exp(-1.25 (w_p / w)^4)."""
    waves = Waves(2.0, 8.0, peakedness=1.0, components=50, seed=7)
    assert waves.components * waves.sines.amplitude**2 / 2 == pytest.approx(2.0**2 / 16)
    share = np.exp(-1.25 * (waves.peak / waves.sines.frequency) ** 4)
    assert (np.abs(share - (np.arange(50) + 0.5) / 50) < 0.5 / 50 + 2e-3).all()
    again = Waves(2.0, 8.0, peakedness=1.0, components=50, seed=7)
    assert np.array_equal(waves.sines.phase, again.sines.phase)
    other = Waves(2.0, 8.0, peakedness=1.0, components=50, seed=8)
    assert not np.allclose(waves.sines.phase, other.sines.phase)


def test_significant_height_is_four_deviations_of_the_surface():
    waves = Waves(1.0, 7.0, seed=3)
    t = np.linspace(0, 20000, 100001)
    assert 4 * waves.elevation(2.0, 1.0, t).std() == pytest.approx(1.0, abs=0.01)
    here = float(ca.DM(waves.elevation(ca.DM(2.0), ca.DM(1.0), ca.DM(5.0))))
    assert here == pytest.approx(float(waves.elevation(2.0, 1.0, 5.0)))


@pytest.mark.parametrize("axis", [0, 1])
def test_spectra_of_gusts_have_the_variance_one(axis):
    gusts = Gusts()
    total, _ = quad(lambda w: float(gusts.density(axis, w)), 0, np.inf)
    assert total == pytest.approx(1.0, rel=1e-6)


def test_gusts_have_their_deviations():
    wind = Gusts((3, 1, 0), (0.8, 0.6, 0.4), seed=2).velocity(np.linspace(0, 20000, 200001))
    assert wind.mean(axis=0) == pytest.approx([3, 1, 0], abs=0.02)
    assert wind.std(axis=0) == pytest.approx([0.8, 0.6, 0.4], rel=0.03)


def test_drag_is_along_the_relative_wind():
    gusts = Gusts((2.0, 0, 0), (0, 0, 0))
    drag = WindDrag("wind", "world", "body", gusts, (0.1,) * 3, (0.3,) * 3)
    twist = np.array([0.5, 0, 0, 0, 0, 0])
    w = np.array(ca.DM(drag.wrench_at(ca.SX.eye(4), ca.SX(ca.DM(twist)), 1.0))).ravel()
    assert w[0] == pytest.approx(0.1 * 1.5 + 0.3 * 1.5**2, rel=1e-6)
    assert np.abs(w[1:]).max() == 0
    assert drag.timed
    assert not drag.held_at(2.0).timed


def test_hulls_and_wind_are_written_down_as_data():
    drag = WindDrag("wind", "world", "ship", Gusts(seed=3), quadratic=(1.0, 2.0, 3.0))
    machine = ship(Waves(seed=5)).attach(drag)
    assert Machine.from_dict(machine.to_dict()) == machine


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: Waves(height=-1.0), "`height` of waves must be positive"),
        (lambda: Waves(components=0), "`components` .* whole number from 1 on, got 0"),
        (lambda: Waves(seed="a"), "`seed` of waves must be a whole number from 0 on, got 'a'"),
        (lambda: Waves(direction="x"), "`direction` of waves"),
        (lambda: FloatingHull("h", "world", "b", 9, 3, 1, waves=3), "must be Waves, got 3"),
        (lambda: FloatingHull("h", "world", "b", 1, 1, 0), "`draft` of the floating hull `h`"),
        (lambda: Gusts(length=(0, 1, 1)), "positive lengths"),
    ],
)
def test_what_cannot_be_is_refused(make, words):
    with pytest.raises(MachineError, match=words):
        make()
