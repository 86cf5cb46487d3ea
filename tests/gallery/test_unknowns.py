"""Scenarios of what a law does not know hold what they promise."""

import numpy as np
import pytest

from framefree.gallery.scenarios.ports.chain_reach import ChainReach
from framefree.gallery.scenarios.unknowns.payload import Payload
from framefree.gallery.scenarios.vehicles.auv_current import AuvCurrent
from framefree.machine import MachineError


def broken(outcome):
    return [promise.text for promise in outcome.promises if not promise.holds]


@pytest.mark.slow
def test_payload():
    outcome = Payload(duration=4.0).run(progress=False)
    assert not broken(outcome)
    metrics = outcome.metrics
    assert metrics["load_kg"] == pytest.approx(0.3 * 14)
    assert metrics["fixed_end_rms_m"] > 0.02
    assert metrics["adapted_gain"] >= 20
    assert metrics["lyapunov_rate_error"] <= 1e-6


@pytest.mark.slow
def test_a_lasting_push_and_its_observer():
    """The law alone is off by a decimetre; with the observer it is back within a millimetre."""
    push = {"long": 0, "duration": 5.0, "push": 5.0, "push_body": "last"}
    alone = ChainReach(**push).run(progress=False)
    assert alone.metrics["end_position_rms_m"] >= 0.1
    assert not alone.ok
    observed = ChainReach(**push, observer=True).run(progress=False)
    assert observed.metrics["end_position_max_m"] <= 1e-3
    assert not broken(observed)
    r = observed.runs["short_avoiding"]["unknown_wrench"][-1]
    assert np.allclose(r, [0, 0, 5, 0, 0, 0], atol=1e-3)


def test_a_body_that_is_not_there():
    with pytest.raises(MachineError, match="body9"):
        ChainReach(long=0, duration=0.1, push=1.0, push_body="body9").run(progress=False)


@pytest.mark.slow
def test_auv_current():
    outcome = AuvCurrent(duration=16.0).run(progress=False)
    assert not broken(outcome)
    assert outcome.metrics["end_position_rms_m"] <= 5e-3


@pytest.mark.slow
def test_a_lasting_push_with_pulses_and_twelve_bodies():
    outcome = ChainReach(push=5.0, push_body="last", observer=True).run(progress=False)
    assert not broken(outcome)
    assert outcome.metrics["end_position_max_m"] <= 1e-3
