"""Laws through a port on a robot as its file describes it."""

import casadi as ca
import numpy as np
import pytest

import framefree as ff
from framefree.benchmarks.dynamics import example_robot
from framefree.control.port import EndEffectorControl, PoseControl
from framefree.control.references import BodyPoses, FramePath, JointPath

pytestmark = pytest.mark.slow
FIRST = np.array([0.3, -1.2, 1.4, -0.5, 0.7, 0.2])
DURATION = 4.0


@pytest.fixture(scope="module")
def robot():
    return ff.read(example_robot("ur_description/urdf/ur5_robot.urdf"))


def falls(run):
    """Tell whether V never rises, and is gone at the end."""
    V = np.ravel(run["V"])
    return (np.diff(V) <= 1e-9).all() and V[-1] < 1e-9 * V[0]


def test_all_bodies_follow_poses(robot):
    def joints(t):
        return ca.DM(FIRST) + 0.3 * ca.sin(t) * ca.DM([1, -1, 0.5, 1, -0.5, 1])

    law = PoseControl(robot, 10.0, rate=3.0)
    reference = BodyPoses(JointPath(robot, joints))
    run = ff.simulate(robot, law, reference, FIRST + 0.05, duration=DURATION, dt=1e-3)
    assert falls(run)
    assert run.x[-1] == pytest.approx(np.ravel(joints(DURATION)), abs=1e-5)


def test_the_tool_follows_a_path(robot):
    eom = ff.equations(robot)
    start = np.asarray(eom.frame_pose(FIRST, "tool0"))

    def place(t):
        moved = ca.vertcat(0.1 * ca.sin(t), 0.1 * (1 - ca.cos(t)), 0.05 * ca.sin(2 * t))
        return ca.blockcat([[start[:3, :3], start[:3, 3] + moved], [ca.DM.zeros(1, 3), 1]])

    law = EndEffectorControl(robot, frame="tool0")
    path = FramePath("tool0", place)
    run = ff.simulate(robot, law, path, FIRST + 0.05, duration=DURATION, dt=1e-3)
    assert falls(run)
    end = np.asarray(eom.frame_pose(run.x[-1], "tool0"))
    assert end == pytest.approx(np.asarray(ca.DM(place(DURATION))), abs=1e-5)
