"""The published run of two arms from a robot file is the run of the built-in robot."""

import numpy as np
import pytest

from framefree.errors import FramefreeError
from framefree.gallery.machines.dual_arm import START, dual_arm, seven_joint_arm
from framefree.gallery.machines.dual_arm_file import read_robot
from framefree.gallery.scenarios.cooperation.dual_arm import DualArm
from framefree.gallery.scenarios.cooperation.dual_arm_file import published_run
from framefree.gallery.scenarios.cooperation.dual_arm_parts import (
    HoldErrors,
    experiment,
    published_law,
)
from framefree.geometry import Moments
from framefree.machine import Body, Joint, Machine, Prismatic
from framefree.machine.actuators import motors


@pytest.fixture(scope="module")
def robot():
    """The robot under other names, with a finger that moves."""
    named = Machine((), ()).merge(dual_arm(0.0), "abb_")
    finger = Body("finger", Moments.of_body(1e-6, (0, 0, 0), 1e-9 * np.eye(3)))
    slide = Joint("gripper_l", Prismatic("x"), "abb_link_7_l", "finger", lower=0, upper=0.02)
    return named.attach(finger, slide, *motors([slide]))


@pytest.fixture(scope="module")
def file(robot, tmp_path_factory):
    path = tmp_path_factory.mktemp("robot") / "two_arms.urdf"
    path.write_text(robot.to_urdf())
    return str(path)


def test_robot_of_file(file):
    found = read_robot(file)
    assert found.hands == ("abb_link_7_l", "abb_link_7_r")
    assert found.machine.nv == 14
    assert found.start.tolist() == list(START)
    assert found.mass_difference < 1e-4
    lifted = read_robot(file, "abb_link_6_l", height=0.3)
    assert lifted.hands[0] == "abb_link_6_l"
    assert lifted.machine.joints[0].parent_pose[2, 3] == pytest.approx(
        found.machine.joints[0].parent_pose[2, 3] + 0.3
    )


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["urdf", "mjcf"])
def test_published_run_of_a_file(robot, file, tmp_path, kind):
    if kind == "mjcf":
        file = str(tmp_path / "two_arms.xml")
        (tmp_path / "two_arms.xml").write_text(robot.to_mjcf(without="velocity_limit"))
    outcome = published_run(read_robot(file), duration=3.0)
    own = HoldErrors(experiment(dual_arm(), published_law(), START, duration=3.0))
    for name, value in own.published().items():
        assert outcome.metrics[name] == pytest.approx(value, abs=2e-6)
    assert len(outcome.promises) > 2


def test_refusals(file, tmp_path):
    with pytest.raises(FramefreeError, match=r"there is no `nowhere\.urdf`"):
        DualArm(file="nowhere.urdf").run()
    with pytest.raises(FramefreeError, match="`left` must be a frame or a body"):
        read_robot(file, left="thumb")
    bad = tmp_path / "bad.urdf"
    bad.write_text("<robot")
    with pytest.raises(FramefreeError, match=r"bad\.urdf cannot be read"):
        read_robot(str(bad))
    one = tmp_path / "one.urdf"
    one.write_text(seven_joint_arm().to_urdf())
    with pytest.raises(FramefreeError, match="name ends with joint_1_r"):
        read_robot(str(one))
