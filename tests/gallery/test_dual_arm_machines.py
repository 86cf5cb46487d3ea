"""The machines that hold one object have the published numbers."""

import numpy as np
import pytest

from framefree.gallery.machines.dual_arm import (
    CENTER,
    HOLD,
    HOLD_THIRD,
    START,
    START_HELD,
    dual_arm,
    dual_arm_with_object,
    six_joint_arm,
    three_arms,
)
from framefree.motion import equations
from published import published


def poses(machine, x):
    """Return the poses of bodies by name."""
    found = np.array(equations(machine, "tree").functions["body_pose"](x)).reshape(-1, 4, 4)
    return dict(zip((body.name for body in machine.bodies), found, strict=True))


def test_published_poses_and_mass():
    machine = dual_arm()
    at = poses(machine, START)
    np.testing.assert_allclose(at["link_7_l"][:3, 3], [0.40650, 0.17484, 0.61204], atol=5e-6)
    np.testing.assert_allclose(at["link_7_r"][:3, 3], [0.41801, -0.27680, 0.70070], atol=5e-6)
    zero = poses(machine, np.zeros(14))
    np.testing.assert_allclose(zero["link_7_l"][:3, 3], [0.56460, -0.00065, 0.51741], atol=5e-6)
    np.testing.assert_allclose(zero["link_7_r"][:3, 3], [0.56446, 0.00153, 0.51839], atol=5e-6)
    assert sum(body.moments.total for body in machine.bodies) == pytest.approx(28.44)


def test_numbers_of_the_facts():
    facts, machine = published("two_armed_robot"), dual_arm()
    assert [f"yumi_{joint.name}" for joint in machine.joints] == facts["joint_order"]
    for joint, known in zip(machine.joints, facts["joints"], strict=True):
        lift = facts["base_offset"] if joint.parent == "world" else np.zeros(3)
        np.testing.assert_allclose(joint.parent_pose[:3, 3], np.add(known["xyz"], lift))
        assert joint.lower[0] == pytest.approx(known["lower"])
        assert joint.upper[0] == pytest.approx(known["upper"])
        assert joint.velocity_limit[0] == pytest.approx(known["velocity"])
        assert joint.damping[0] == known["damping"]
        assert joint.effort_limit[0] == known["effort"]
    for body, known in zip(machine.bodies, facts["links"], strict=True):
        assert body.moments.total == pytest.approx(known["mass"])
        np.testing.assert_allclose(body.moments.center, known["com"], atol=1e-12)
        np.testing.assert_allclose(
            np.diag(body.moments.moment_at_center), np.diag(known["inertia_com"]), atol=1e-6
        )
    np.testing.assert_allclose(facts["experiment"]["T_AB"], HOLD)
    np.testing.assert_allclose(facts["experiment"]["q0"], START)
    np.testing.assert_allclose(facts["experiment"]["q0_consistent"], START_HELD)


def test_object_fits_the_hands():
    """With hands where they hold, the frames of the rod are at the hands."""
    machine = dual_arm_with_object()
    np.testing.assert_allclose(CENTER @ machine.frame("object_l").pose, np.eye(4), atol=1e-12)
    np.testing.assert_allclose(CENTER @ machine.frame("object_r").pose, HOLD, atol=1e-12)
    assert [loop.kind for loop in machine.loops] == ["weld", "weld"]


def test_third_hand_is_near():
    at = poses(three_arms(), [*START_HELD, *START_HELD[:7]])
    relative = np.linalg.inv(at["link_7_l"]) @ at["third_link_7_l"]
    np.testing.assert_allclose(relative, HOLD_THIRD, atol=0.02)


def test_six_joint_arm():
    """At zero the arm reaches straight up; its first four bodies weigh 1 kg each."""
    machine = six_joint_arm()
    np.testing.assert_allclose(
        poses(machine, np.zeros(6))["gripper"][:3, 3], [0, 0, 1.2], atol=1e-4
    )
    assert sum(body.moments.total for body in machine.bodies) == pytest.approx(5.1)
