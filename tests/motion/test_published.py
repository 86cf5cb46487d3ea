"""Published numbers, and numbers recomputed by others: the iiwa arm and the ETS-VII satellite."""

import numpy as np
import pytest
from random_machines import evaluate

from framefree.gallery.machines.arms import iiwa
from framefree.geometry import Moments, euler
from framefree.machine import Body, Frame, Free, Joint, Machine, Revolute
from framefree.motion.tree import Tree
from published import published


def test_iiwa_poses_of_drake():
    """Pose of the last link at two configurations [Drake, kuka_iiwa_robot]."""
    pose = Tree(iiwa()).functions["frame_pose:link7"]
    at_zero = evaluate(pose, np.zeros(7))
    np.testing.assert_allclose(at_zero[:3, 3], (0, 0, 1.261), atol=1e-15)
    np.testing.assert_allclose(at_zero[:3, :3], np.eye(3), atol=1e-15)
    G = evaluate(pose, np.deg2rad([60, 30, 60, 30, 60, 30, 60]))
    position = (0.2970356451892219, 0.1727696964662288, 1.154681973689345)
    rotation = (
        (-0.5939002959880204, 0.8043869080239565, -0.015625),
        (-0.8043869080239565, -0.5932991120359317, 0.03094940802395521),
        (0.015625, 0.03094940802395527, 0.9993988160479114),
    )
    np.testing.assert_allclose(G[:3, 3], position, atol=1e-15)
    np.testing.assert_allclose(G[:3, :3], rotation, atol=1e-15)


@pytest.mark.parametrize("gravity", [False, True])
def test_iiwa_torques_and_reactions_of_drake(gravity):
    """The last link spun up at 1000 rad/s^2 from rest: 1 Nm about z through the whole arm."""
    machine = iiwa().replace(gravity=(0, 0, -9.81 if gravity else 0))
    eom = Tree(machine)
    acceleration = np.array([0, 0, 0, 0, 0, 0, 1000.0])
    torque = evaluate(eom.functions["inverse"], np.zeros(7), np.zeros(7), acceleration).ravel()
    expected = (1, 0.02212155, 1, -0.0034335, 1, 0, 1) if gravity else (1, 0, 1, 0, 1, 0, 1)
    np.testing.assert_allclose(torque, expected, atol=1e-12)
    if not gravity:
        wrench = evaluate(eom.functions["joint_wrench"], np.zeros(7), np.zeros(7), torque)
        np.testing.assert_allclose(wrench[:, :3], 0, atol=1e-12)
        moments = np.array([(0, 0, 1), (0, 1, 0)])[[0, 1, 0, 1, 0, 1, 0]]
        np.testing.assert_allclose(wrench[:, 3:], moments, atol=1e-12)


def satellite(facts):
    """ETS-VII: a six-joint arm on a free satellite.

    Two of the published link inertias break the triangle inequality.
    """
    bodies = [Body("base", Moments.of_body(facts["base"]["m"], (0, 0, 0), facts["base"]["I"]))]
    joints = [Joint("base", Free(), "world", "base")]
    rows = zip(
        facts["joints_xyz"],
        facts["joints_rpy"],
        facts["mass"],
        facts["com"],
        facts["I_diag"],
        strict=True,
    )
    for i, (position, rpy, mass, center, inertia) in enumerate(rows, start=1):
        pose = np.eye(4)
        pose[:3, :3], pose[:3, 3] = euler.to_rotation(rpy).full(), position
        bodies.append(Body(f"link{i}", Moments.of_body(mass, center, np.diag(inertia)), False))
        parent = "base" if i == 1 else f"link{i - 1}"
        joints.append(Joint(f"joint{i}", Revolute("z"), parent, f"link{i}", parent_pose=pose))
    tip = Frame("tip", "link6", facts["ee_in_link6"])
    return Machine(bodies, joints, (tip,), gravity=(0, 0, 0), name="ETS-VII")


@pytest.mark.parametrize("case", ["zero", "ramp"])
def test_inertia_and_generalised_jacobian_of_the_satellite(case):
    """With the base at the origin, body axes of the base are world axes."""
    facts = published("vehicles")["ets_vii"]
    expected = facts["recomputed"][case]
    eom = Tree(satellite(facts))
    x = np.concatenate([eom.machine.neutral()[:7], expected["q"]])
    H = evaluate(eom.functions["mass"], x)
    np.testing.assert_allclose(H, expected["H"], rtol=1e-9, atol=1e-8)
    G = evaluate(eom.functions["frame_pose:tip"], x)
    np.testing.assert_allclose(G[:3, 3], expected["ee"], atol=1e-12)
    J = evaluate(eom.functions["jacobian:tip"], x)
    J = np.kron(np.eye(2), G[:3, :3]) @ J  # to world axes
    generalised = J[:, 6:] - J[:, :6] @ np.linalg.solve(H[:6, :6], H[:6, 6:])
    np.testing.assert_allclose(generalised, expected["generalized_jacobian"], atol=1e-9)
