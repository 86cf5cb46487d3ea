"""The ship and its arm: what floats is at rest, and the scenario's promises hold and can fail."""

import numpy as np
import pytest

from framefree.gallery.machines.ship import ship_arm, ship_rest
from framefree.gallery.scenarios.vehicles.ship_arm import ShipArm
from framefree.motion.tree import Tree


def test_the_ship_floats_at_its_draft_but_for_the_weight_of_its_arm():
    machine = ship_arm()
    x = ship_rest(machine)
    force = Tree(machine).functions["inverse"](x, np.zeros(machine.nv), np.zeros(machine.nv))
    weight = 9.81 * sum(body.moments.total for body in machine.bodies)
    assert np.abs(force.full()[:3]).max() < 1e-3 * weight
    # The arm stands 6 to 8 m ahead of the middle: its weight trims the ship a little.
    assert np.abs(force.full()[3:6]).max() < 9.81 * 400 * 10


@pytest.mark.slow
def test_the_hand_stays_where_it_is_in_waves():
    outcome = ShipArm(duration=16.0).run(progress=False)
    failed = [promise.text for promise in outcome.promises if not promise.holds]
    assert failed == []
    assert outcome.metrics["hand_rms_m"] < 5e-3
    assert outcome.metrics["ground_hand_rms_m"] > 0.05
