"""The scenario `learned-wall` keeps its promises, and they can fail."""

import pytest

from framefree.gallery.scenarios.learned import learned_wall
from framefree.gallery.scenarios.learned.learned_wall import LearnedWall


@pytest.mark.slow
def test_promises_hold_and_can_fail():
    outcome = LearnedWall(duration=4.0).run(progress=False)
    assert [one.text for one in outcome.promises if not one.holds] == []
    assert any(line.startswith("mu = 0.3") for line in outcome.notes)
    wrong = {
        "wrench_error": 0.1, "place_error_m": 1e-3, "normal_error_deg": 4.0, "stiffness_error": 0.1,
        "friction_error": 0.1, "rotation_factor": 1.01, "force_gain_over": 1.0,
    }  # fmt: skip
    broken = learned_wall._promises({**outcome.metrics, **wrong})
    assert sum(not one.holds for one in broken) == len(wrong)
