"""Two robots that set a box down: their promises on both plants, and that they can fail."""

import numpy as np
import pytest

from framefree.gallery.machines.carrying_robots import carrying_robots
from framefree.gallery.scenarios import SCENARIOS
from framefree.gallery.scenarios.contact import carry_parts as parts

CARRY = SCENARIOS["carry"]


@pytest.mark.slow
@pytest.mark.parametrize("plant", ["native", "mujoco"])
def test_it_keeps_its_promises(plant):
    outcome = CARRY(plant=plant).run(False)
    assert outcome.ok, outcome.promises
    # Before the release the table carries a part only; afterwards it carries all.
    assert 1 < outcome.metrics["force_before_release_n"] < 0.7 * parts.MASS * 9.81


@pytest.mark.slow
def test_a_dropped_box_breaks_them():
    outcome = CARRY(plant="mujoco", press=-0.05).run(False)
    failed = [promise.text for promise in outcome.promises if not promise.holds]
    assert any("touched before the release" in text for text in failed)
    assert any("bears" in text for text in failed)
    assert any("let go" in text for text in failed)


def test_both_hands_hold_the_box_at_its_start():
    machine = parts.with_box(carrying_robots())
    x0 = parts.first_state(machine)
    box = parts.turned_box(parts.START)
    for side in parts.SIDES:
        hand = machine.forward_kinematics(x0, f"{side}_hand")
        assert np.abs(hand - box @ parts.grasp_pose(side)).max() < 1e-8
        # A hand points into the box.
        assert hand[:3, 2] @ (box[:3, 3] - hand[:3, 3]) == pytest.approx(parts.BOX[0] / 2)


def test_the_way_ends_on_the_table():
    reference = parts.reference(1e-3)
    end = np.array(reference.at(9.0)["goal.pose"])
    assert end[2, 3] - parts.BOX[2] / 2 == pytest.approx(parts.TABLE - 1e-3)
    for side in parts.SIDES:
        held, away = (np.array(reference.at(t)[f"{side}_goal.pose"])[:3, 3] for t in (0.0, 9.0))
        assert np.linalg.norm(away - held) == pytest.approx(parts.BACK)
        assert np.linalg.norm(away - end[:3, 3]) > np.linalg.norm(held - end[:3, 3])
