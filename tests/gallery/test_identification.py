"""What is identified of an arm and of real vehicles."""

from pathlib import Path

import numpy as np
import pytest

from framefree.errors import FramefreeError
from framefree.gallery.machines import multicopters
from framefree.gallery.scenarios.identification import nano_turning
from framefree.gallery.scenarios.identification.identify_arm import IdentifyArm
from framefree.gallery.scenarios.identification.identify_flight import IdentifyFlight
from framefree.gallery.shared import nano_records

pytest.importorskip("clarabel", reason="needs the extra `identify`")

FACTS = Path(__file__).parents[3] / "shared" / "facts"


def holds(outcome):
    assert outcome.ok, [p for p in outcome.promises if not p.holds]
    return outcome.metrics


@pytest.mark.slow
def test_the_arm_is_identified():
    metrics = holds(IdentifyArm(repetitions=2).run(progress=False))
    assert metrics["prediction_error"] <= 0.01
    assert metrics["exact_error"] <= 1e-8
    assert metrics["coverage"] >= 0.97
    assert metrics["smallest_eigenvalue_share"] > 0
    assert abs(metrics["delay_s"] - 0.0025) < 5e-5


@pytest.mark.slow
def test_intervals_hold_what_is_true_in_200_repetitions():
    metrics = holds(IdentifyArm(repetitions=200).run(progress=False))
    assert 0.97 <= metrics["coverage"] < 0.9999


def test_without_records_nothing_is_done():
    outcome = IdentifyFlight().run(progress=False)
    assert outcome.ok
    assert outcome.metrics == {"skipped": True}
    with pytest.raises(FramefreeError, match="no folder"):
        IdentifyFlight(data="nowhere").run(progress=False)


@pytest.mark.slow
def test_recorded_flights_are_explained_better():
    if not FACTS.is_dir():
        pytest.skip("the recorded flights are not at hand")
    metrics = holds(IdentifyFlight(data=str(FACTS)).run(progress=False))
    assert metrics["quad_mean_identified"] < 0.9 * metrics["quad_mean_published"]
    for axis in ("force_x", "force_y", "force_z", "turning_x", "turning_y"):
        assert metrics[f"quad_{axis}_identified"] < metrics[f"quad_{axis}_published"]
    # Of [Konz2024], by a pendulum: 17.9 and 18.0 g m^2.
    assert abs(metrics["quad_inertia_x_kg_m2"] - 0.0179) < 0.1 * 0.0179
    assert abs(metrics["quad_inertia_y_kg_m2"] - 0.0180) < 0.1 * 0.0180
    assert metrics["nano_h50_position_m"] < 0.06
    assert metrics["nano_h50_velocity_m_s"] < 0.3


def test_lag_and_inertia_from_turning():
    """Flights made up with a lag and inertia of their own, trims that differ, and slow air."""
    machine = multicopters.crazyflie()
    places = np.array([np.asarray(frame.pose)[:2, 3] for frame in machine.frames])
    mass, inertia, lag = machine.bodies[0].moments.total, np.array([2.0e-5, 2.6e-5]), 0.05
    flights = []
    for seed in range(6):
        rng = np.random.default_rng(seed)
        rows = 3000
        volts = 3.2 + 0.05 * rng.normal(size=4) + 0.15 * rng.normal(size=(rows, 4))
        felt, w = volts[0].copy(), np.zeros((rows, 3))
        c = mass * 9.81 / (volts.mean(axis=0) ** 2).sum()
        trim, before = 1e-5 * rng.normal(size=2), np.zeros(2)
        for k in range(1, rows):
            felt += (1 - np.exp(-nano_records.PERIOD / lag)) * (volts[k - 1] - felt)
            thrust = c * felt**2 - mass * 9.81 / 4
            moment = np.array([thrust @ places[:, 1], -thrust @ places[:, 0]])
            slow = trim + 2e-5 * np.sin(0.02 * k + seed)
            mean, before = (before + moment) / 2 + slow, moment
            w[k, :2] = 0.95 * w[k - 1, :2] + nano_records.PERIOD * mean / inertia
        at_rest = np.zeros((rows, 3))
        upright = np.tile([1.0, 0, 0, 0], (rows, 1))
        flights.append(nano_records.Flight(at_rest, upright, at_rest, w, volts))
    told = nano_turning.turning(flights[:4], flights[4:])
    assert abs(told.lag - lag) <= 0.0101
    assert np.abs(told.inertia / inertia - 1).max() < 0.15
    assert told.unexplained.max() < 0.3
