"""The quadruped that stands: statics on both plants, what `stand` promises, and what breaks it."""

from importlib import metadata

import numpy as np
import pytest

from framefree import FramefreeError
from framefree.gallery.machines.quadruped import FOOT, LEGS, standing_robot
from framefree.gallery.scenarios import SCENARIOS
from framefree.gallery.scenarios.contact import stand_parts as parts
from framefree.motion import equations


def test_the_quadruped_stands_on_its_feet():
    robot = standing_robot("quadruped")
    assert robot.weight == pytest.approx(15.7 * 9.81)
    for leg, (ahead, left) in LEGS.items():
        place = equations(robot.model).kernel(f"frame_pose:{robot.feet[leg]}")(robot.stands)
        assert place[:3, 3] == pytest.approx([0.19 * ahead, 0.13 * left, FOOT], abs=1e-12)
    assert not robot.model.interactions
    assert [contact.name for contact in robot.plant.interactions] == list(LEGS)


def test_solo12_touches_with_its_feet_alone():
    """Hulls of its meshes overlap where it stands: MuJoCo would push trunk and legs apart."""
    try:
        metadata.distribution("example-robot-data")
    except metadata.PackageNotFoundError:
        pytest.skip("example-robot-data is not installed")
    robot = standing_robot("solo12")
    assert not robot.plant.collisions
    assert [contact.name for contact in robot.plant.interactions] == list(LEGS)


def test_another_robot_is_refused():
    with pytest.raises(FramefreeError, match="no standing robot `spot`; there are: quadruped"):
        standing_robot("spot")


def test_the_path_begins_and_ends_where_the_robot_stands():
    robot = standing_robot("quadruped")
    t = np.array([0.0, 2.2, 5.4, 8.5, parts.END])
    way = parts.wanted_way(robot, t)
    assert np.abs(way[[0, 2, 4]]).max() < 1e-12
    assert np.abs(way[1]).max() > 0.01
    assert way[3] == pytest.approx([*(parts.size_of(robot) * np.array(parts.LEANING)), 0.0])
    assert float(parts.reference(robot).at(8.5)[f"{parts.LIFTS}.load"]) == 0.0


@pytest.mark.slow
def test_stand_keeps_its_promises():
    outcome = SCENARIOS["stand"]().run(False)
    assert [promise.text for promise in outcome.promises if not promise.holds] == []
    # Statics can fail: with one torque wrong by a percent it does not hold.
    robot, run = standing_robot("quadruped"), outcome.runs["native"]
    run.u[-1, 2] *= 1.01
    assert parts.statics_error(robot, run) > 1e-3


@pytest.mark.slow
def test_a_push_that_is_too_strong_breaks_promises():
    outcome = SCENARIOS["stand"](push=1.0).run(False)
    broken = {promise.text for promise in outcome.promises if not promise.holds}
    assert any("could not be loaded" in text for text in broken)
    # The law's forces and torques stay within bounds all the same.
    assert not any("cones" in text or "torques stay" in text for text in broken)


@pytest.mark.slow
def test_solo12_stands():
    try:
        metadata.distribution("example-robot-data")
    except metadata.PackageNotFoundError:
        pytest.skip("example-robot-data is not installed")
    outcome = SCENARIOS["stand"](robot="solo12").run(False)
    assert [promise.text for promise in outcome.promises if not promise.holds] == []
