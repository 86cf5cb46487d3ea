"""Hands that squeeze what they hold press it: each pushes it towards the other."""

import casadi as ca
import numpy as np
import pytest

from framefree.control.references.frames import FramePath
from framefree.control.tasks import FrameControl, HeldObject, RigidCoupling, TaskControl
from framefree.gallery.machines.dual_arm import START_HELD, dual_arm_with_object
from framefree.motion import equations
from framefree.solve import assemble

POSE = np.array([[1.0, 0, 0, 0.4], [0, 1, 0, 0.1], [0, 0, 1, 0.6], [0, 0, 0, 1]])
TARGET = FramePath("target", lambda t: ca.DM(POSE))
SIDES = ("l", "r")


@pytest.fixture(scope="module")
def held():
    machine = dual_arm_with_object(2.0)
    return machine, assemble(machine, [*START_HELD, 0.436, -0.015, 0.69, 1, 0, 0, 0])


def joint_forces(machine, x, squeeze):
    """Return the inputs of a law that holds the object, and the wrenches that it states."""
    grasps = tuple(
        RigidCoupling(f"link_7_{side}", f"object_{side}", name=f"grasp_{side}") for side in SIDES
    )
    body = HeldObject("object", grasps, (0.7, 0.3), squeeze)
    law = TaskControl(machine, [grasps, [FrameControl("object", "target")]], held=body)
    X, V = ca.SX.sym("x", machine.nx), ca.SX.sym("v", machine.nv)
    command = law.control(ca.SX(0), X, V, TARGET.at(ca.SX(0)), ca.SX(0, 1))
    stated = [command.signals[f"grasp_{side}.wrench"] for side in SIDES]
    function = ca.Function("law", [X, V], [command.u, *stated])
    u, *stated = (np.array(part).ravel() for part in function(x, np.zeros(machine.nv)))
    return u, stated


@pytest.mark.parametrize("squeeze", [15.0, 40.0])
@pytest.mark.first_cases(1)
def test_each_hand_pushes_the_body_towards_the_other(held, squeeze):
    """Both as the law states it and as the welded machine carries it under the law's torques."""
    machine, x = held
    functions = equations(machine, "constrained").functions
    poses = [functions[f"frame_pose:object_{side}"](x).full() for side in SIDES]
    line = poses[1][:3, 3] - poses[0][:3, 3]
    line /= np.linalg.norm(line)
    (loose, stated_loose), (tight, stated) = (joint_forces(machine, x, f) for f in (0.0, squeeze))
    v = np.zeros(machine.nv)
    carried = [
        functions["loop_wrench"](x, v, np.concatenate([u, np.zeros(6)])).full().reshape(2, 6)
        for u in (loose, tight)
    ]
    for k, inwards in enumerate((line, -line)):
        change = (stated[k] - stated_loose[k])[:3]
        np.testing.assert_allclose(change, squeeze * inwards, atol=1e-9)
        felt = poses[k][:3, :3] @ (carried[1] - carried[0])[k, :3]
        np.testing.assert_allclose(felt, squeeze * inwards, atol=1e-6)
