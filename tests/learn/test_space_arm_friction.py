"""The scenario `space-arm-friction` keeps its promises, and they can fail."""

import numpy as np
import pytest

from framefree.gallery.machines.space_arm import space_arm
from framefree.gallery.scenarios.learned import space_arm_friction as scenario
from framefree.learn import JointFriction


@pytest.mark.slow
def test_promises_hold_and_can_fail():
    outcome = scenario.SpaceArmFriction(duration=40.0, dt=0.005).run(progress=False)
    assert [one.text for one in outcome.promises if not one.holds] == []
    assert any("tanh" in line for line in outcome.notes)
    v = outcome.runs["learned"].v
    halved = JointFriction(scenario.TRUE.joints, scenario.TRUE.numbers * [0.5, 0.5, 1, 1])
    force = halved.forces(space_arm(), v)
    assert np.allclose(force, scenario.TRUE.forces(space_arm(), v) / 2)
    wrong = {**outcome.metrics, "torque_error": 0.5, "tracking_gain_angle": 2.0}
    assert sum(not one.holds for one in scenario._promises(wrong)) == 2
