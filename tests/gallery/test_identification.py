"""What is identified of an arm and of real vehicles."""

from pathlib import Path

import pytest

from framefree.errors import FramefreeError
from framefree.gallery.scenarios.identification.identify_arm import IdentifyArm
from framefree.gallery.scenarios.identification.identify_flight import IdentifyFlight

pytest.importorskip("clarabel", reason="needs the extra `identify`")

FACTS = Path(__file__).parents[3] / "shared" / "facts"


def holds(outcome):
    assert outcome.ok, [p for p in outcome.promises if not p.holds]
    return outcome.metrics


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
