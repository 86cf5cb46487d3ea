"""The experiments of `bounce`: each runs one scene and measures it against its closed form."""

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from framefree.gallery.machines.touching import ball, block, coin, resting_arm, stack
from framefree.gallery.scenarios.contact import bounce_forms as forms
from framefree.geometry import batch
from framefree.simulate import Run, simulate

G = 9.81
RECORD = ("energy", "interaction")
UPRIGHT = (np.sqrt(0.5), np.sqrt(0.5), 0.0, 0.0)
"""Attitude (wxyz) of a disk that stands on its rim and rolls along x."""


class Measured(NamedTuple):
    """A run and what was measured of it."""

    run: Run
    metrics: Mapping[str, float]


def at_height(z: float, wxyz: tuple[float, ...] = (1.0, 0.0, 0.0, 0.0)) -> np.ndarray:
    """Return the configuration of a free body over the origin."""
    return np.array([0.0, 0.0, z, *wxyz])


def whole(duration: float, dt: float) -> float:
    """Return a duration of whole steps."""
    return max(1, round(duration / dt)) * dt


def lost(run: Run) -> np.ndarray:
    """Return the heat (J) since the beginning, by the trapezoidal rule over the recorded rows."""
    power = run["dissipation"]
    steps = (power[1:] + power[:-1]) / 2 * np.diff(run.t)
    return np.concatenate([[0.0], np.cumsum(steps)])


def impacts(speed: float) -> Measured:
    """Throw balls of several dampings and both exponents at the ground, without gravity."""
    dampings, worst, out = np.array([0.02, 0.1, 0.3, 1.0, 3.0]), 0.0, None
    start = at_height(0.1 + 0.005)
    exact = np.array([forms.speed_after_impact(speed, c) for c in dampings])
    for exponent in (1.0, 1.5):
        machine = ball(g=0.0, exponent=exponent).tunable("ground.damping")
        out = simulate(
            machine,
            x0=np.tile(start, (len(dampings), 1)),
            v0=np.tile([0.0, 0, -speed, 0, 0, 0], (len(dampings), 1)),
            duration=whole(0.1 + 0.01 / speed, 2e-4),
            dt=1e-5,
            every=20,
            parameters=dampings[:, None],
            integrator="rk4",
            record=RECORD,
        )
        worst = max(worst, float(np.abs(out.v[:, -1, 2] / exact - 1).max()))
    assert out is not None
    small = (1 - exact[0] / speed) / (2 / 3 * dampings[0] * speed)
    return Measured(out, {"restitution_error": worst, "restitution_small_damping": float(small)})


def falling(height: float, duration: float) -> Measured:
    """Let a ball fall and bounce until it lies."""
    machine = ball()
    run = simulate(
        machine,
        x0=at_height(height),
        duration=duration,
        dt=2e-5,
        every=1,
        integrator="rk4",
        record=RECORD,
    )
    balance = np.abs(run.energy - run.energy[0] + lost(run)).max() / run.energy[0]
    least = float(run["dissipation"].min())
    return Measured(run, {"energy_balance": float(balance), "least_dissipation_w": min(least, 0.0)})


def sliding(speed: float, slip_speed: float) -> Measured:
    """Slide a block whose mass lies in its sole, so that it does not nod, until it creeps."""
    mu, mass = 0.4, 1.0
    machine = block(mass, height=0.0, friction=mu, slip_speed=slip_speed)
    depth = (mass * G / 4 / 1e6) ** (1 / 1.5)
    run = simulate(
        machine,
        x0=at_height(0.05 - depth),
        v0=np.array([speed, 0, 0, 0, 0, 0]),
        duration=whole((speed + 12 * slip_speed) / (mu * G), 1e-3),
        dt=1e-4,
        every=10,
        integrator="rk4",
        record=RECORD,
    )
    way, ideal = float(run.x[-1, 0]), speed**2 / (2 * mu * G)
    exact = forms.sliding_distance(speed, float(run.v[-1, 0]), mu * G, slip_speed)
    metrics = {"sliding_error": abs(way / ideal - 1), "sliding_exact_error": abs(way / exact - 1)}
    return Measured(run, metrics)


def creeping(slip_speed: float) -> float:
    """Return the error of the creep on a slope, relative to its closed form."""
    mu, slope = 0.4, 0.3
    machine = block(height=0.0, friction=mu, slip_speed=slip_speed)
    angle = np.arctan(slope)
    machine = machine.replace(gravity=(G * np.sin(angle), 0.0, -G * np.cos(angle)))
    run = simulate(machine, x0=at_height(0.05), duration=2.0, dt=1e-4, every=100, record=RECORD)
    return float(abs(run.v[-1, 0] / forms.creep_speed(mu, slope, slip_speed) - 1))


def rocking(tilt: float) -> Measured:
    """Let a tilted block go: it turns about its edge until the other one hits the ground."""
    width, height, stiffness = 0.1, 0.3, 1e7
    machine = block(
        size=(width, 0.2, height), stiffness=stiffness, exponent=1.0, friction=1.0, damping=0.5
    )
    half = np.array([width, height]) / 2
    # Turned about y by `tilt`, the edge at +x is the lowest.
    low = np.cos(tilt) * half[1] + np.sin(tilt) * half[0]
    start = at_height(low, (np.cos(tilt / 2), 0.0, np.sin(tilt / 2), 0.0))
    start[2] -= G / 2 / stiffness
    expected = forms.rocking_time(width, height, tilt, G)
    run = simulate(
        machine,
        x0=start,
        duration=whole(3 * expected, 2e-4),
        dt=1e-5,
        every=20,
        integrator="rk4",
        record=RECORD,
    )
    angle = 2 * np.arctan2(run.x[:, 5], run.x[:, 3])
    k = int(np.argmax(angle < 0))
    hit = run.t[k - 1] + angle[k - 1] / (angle[k - 1] - angle[k]) * (run.t[k] - run.t[k - 1])
    return Measured(run, {"rocking_time_error": float(abs(hit / expected - 1)) if k else np.inf})


def spinning(tilt: float, duration: float) -> Measured:
    """Spin a coin so that its center stays at rest while it rolls round."""
    radius, stiffness = 0.2, 1e6
    machine = coin(radius=radius, stiffness=stiffness)
    rate = forms.coin_rate(radius, tilt, G)
    start = at_height(
        radius * np.sin(tilt) - G / stiffness, (np.cos(tilt / 2), 0.0, np.sin(tilt / 2), 0.0)
    )
    run = simulate(
        machine,
        x0=start,
        v0=np.array([0, 0, 0, -rate * np.sin(tilt), 0, 0]),
        duration=duration,
        dt=1e-4,
        every=10,
        integrator="rk4",
        record=RECORD,
    )
    axis = batch.rotation(run.x[:, 3:7])[..., 2]
    turned = np.unwrap(np.arctan2(axis[:, 1], axis[:, 0]))
    error = abs(turned[-1] - turned[0]) / (rate * duration) - 1
    leaning = np.arccos(np.clip(axis[:, 2], -1, 1))
    metrics = {
        "coin_rate_error": float(abs(error)),
        "coin_tilt_error_rad": float(np.abs(leaning - tilt).max()),
    }
    return Measured(run, metrics)


def rolling(speed: float) -> Measured:
    """Set a wheel down without spin: it slips, and then rolls with two thirds of its speed."""
    radius, mu, stiffness = 0.2, 0.3, 1e7
    machine = coin(radius=radius, stiffness=stiffness, friction=mu, slip_speed=speed / 1000)
    slipping = speed / (3 * mu * G)
    run = simulate(
        machine,
        x0=at_height(radius - G / stiffness, UPRIGHT),
        v0=np.array([speed, 0, 0, 0, 0, 0]),
        duration=whole(2 * slipping, 1e-3),
        dt=2e-5,
        every=50,
        integrator="rk4",
        record=RECORD,
    )
    moved = np.linalg.norm(run.v[:, :3], axis=1)
    before = run.t < 0.9 * slipping
    decline = np.abs(moved[before] - (speed - mu * G * run.t[before])).max()
    metrics = {
        "wheel_speed_error": float(abs(moved[-1] / (2 * speed / 3) - 1)),
        "wheel_slipping_error": float(decline / speed),
    }
    return Measured(run, metrics)


def settled(duration: float) -> Measured:
    """Let a ball on a block, and an arm on its tip, come to rest: forces are those of statics."""
    pile = simulate(
        stack(), x0=np.concatenate([at_height(0.0499), at_height(0.1498)]), duration=duration,
        dt=1e-4, every=100, record=RECORD,
    )  # fmt: skip
    weights = {"top": 0.7 * G, "ground": 3.7 * G}
    errors = [abs(pile[f"{name}.normal_force"][-1] / w - 1) for name, w in weights.items()]
    arm = simulate(
        resting_arm(), x0=np.array([-1.214]), duration=duration, dt=1e-4, every=100, record=RECORD
    )
    angle = float(arm.x[-1, 0])
    # About the hinge: m g (L/2) sin(q) = f L sin(q); the force acts below the tip's center.
    error = abs(arm["ground.normal_force"][-1] / (2.0 * G / 2) - 1)
    metrics = {
        "stack_force_error": float(max(errors)),
        "arm_force_error": float(error),
        "arm_angle_rad": angle,
    }
    return Measured(pile, metrics)


def settled_hard(duration: float) -> Mapping[str, float]:
    """Return the same of the stack on MuJoCo's contacts, and how deep they have sunk, m."""
    pile = simulate(
        stack(), x0=np.concatenate([at_height(0.0499), at_height(0.1498)]), duration=duration,
        dt=1e-3, every=100, plant="mujoco", contacts=True, record=RECORD,
    )  # fmt: skip
    weights = {"top": 0.7 * G, "ground": 3.7 * G}
    errors = [abs(pile[f"{name}.normal_force"][-1] / w - 1) for name, w in weights.items()]
    return {
        "stack_hard_force_error": float(np.max(errors)),
        "stack_hard_sinks_m": float(-min(pile[f"{name}.gap"][-1] for name in weights)),
    }
