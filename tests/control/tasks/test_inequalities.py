"""Barriers are not crossed, and grasps carry no more than they can, under a law with limits."""

import casadi as ca
import numpy as np
import pytest
from law_checks import unlimited

from framefree.control.port import HalfSpace
from framefree.control.references import FramePath
from framefree.control.tasks import (
    Clearance,
    FrameControl,
    HeldObject,
    JointControl,
    JointRange,
    LimitedTaskControl,
    RigidCoupling,
)
from framefree.gallery.machines.dual_arm import START_HELD, dual_arm_with_object, seven_joint_arm
from framefree.motion import equations
from framefree.simulate import simulate
from framefree.solve import assemble

X0 = np.array([0.3, -0.8, 0.1, 0.4, 0.2, 0.5, 0.1])


def pose_of(machine, x, frame):
    return equations(machine.tree).functions[f"frame_pose:{frame}"](x).full()


def still(pose):
    return FramePath("target", lambda t: ca.DM(pose))


def test_a_wall_is_not_crossed():
    """The target is 5 cm behind it: the distance decays to zero, and no further."""
    arm = unlimited(seven_joint_arm(0.0, np.inf))
    start = pose_of(arm, X0, "link_7_l")
    goal = start.copy()
    goal[2, 3] -= 0.1
    wall = HalfSpace("z", start[2, 3] - 0.05)
    follow = FrameControl("link_7_l", "target", 100.0, only="position")
    damped = JointControl(arm, Kd=5.0)
    found = {}
    for name, first in (("kept", [Clearance(wall, {"link_7_l": 0.0})]), ("free", [])):
        law = LimitedTaskControl(arm, [first, [follow], [damped]], joint_limits=False)
        run = simulate(arm, law, still(goal), X0, duration=2.0, dt=2e-3, control_dt=2e-3)
        poses = equations(arm).kernel("frame_pose:link_7_l")(run.x)
        found[name] = poses[:, 2, 3] - wall.offset
        if first:
            np.testing.assert_allclose(run["clearance.error"].ravel(), found[name], atol=1e-9)
    assert found["free"].min() < -0.04
    assert found["kept"].min() > -1e-5
    assert found["kept"][-1] < 1e-3


def test_a_range_narrower_than_the_joints():
    """Joints stay the margin away from their limits, though the posture is beyond."""
    arm = unlimited(seven_joint_arm(0.0, np.inf))
    beyond = X0.copy()
    beyond[0] = 2.9
    band = JointRange(arm, ("joint_1_l",), rate=10.0, margin=1.0)
    law = LimitedTaskControl(
        arm, [[band], [JointControl(arm, beyond, Kp=25.0, Kd=10.0)]], joint_limits=False
    )
    run = simulate(arm, law, x0=X0, duration=2.0, dt=2e-3, control_dt=2e-3)
    upper = arm.joint("joint_1_l").upper[0] - 1.0
    assert run.x[:, 0].max() < upper + 1e-5
    assert run.x[-1, 0] == pytest.approx(upper, abs=1e-3)


@pytest.mark.slow
def test_grasps_carry_no_more_than_they_can():
    """What the motion would need beyond it is left undone, and the task says how much."""
    machine = unlimited(dual_arm_with_object(2.0, 0.0))
    x0 = assemble(machine, [*START_HELD, 0.436, -0.015, 0.69, 1, 0, 0, 0])
    goal = pose_of(machine, x0, "object")
    goal[2, 3] += 0.3
    grasps = tuple(
        RigidCoupling(f"link_7_{side}", f"object_{side}", name=f"grasp_{side}") for side in "lr"
    )
    reference = {k: np.array(ca.DM(v)) for k, v in still(goal).at(ca.SX(0)).items()}
    reference = {k: v.ravel() if v.shape[1] == 1 else v for k, v in reference.items()}
    most, found = np.array([15.0, 15.0, 15.0, 3.0, 3.0, 3.0]), {}
    for carries in (None, most):
        held = HeldObject("object", grasps, carries=carries)
        law = LimitedTaskControl(
            machine, [grasps, [FrameControl("object", "target", 100.0)]], held=held,
            joint_limits=False, damped_above=np.inf,
        )  # fmt: skip
        found[carries is None] = law.command(0.0, x0, np.zeros(20), reference, law.memory).signals
    local = {}
    for free, signals in found.items():
        turns = [pose_of(machine, x0, f"object_{side}")[:3, :3] for side in "lr"]
        local[free] = np.array(
            [
                np.kron(np.eye(2), R).T @ signals[f"grasp_{side}.wrench"]
                for side, R in zip("lr", turns, strict=True)
            ]
        )
    assert (np.abs(local[True]) > most).any()
    assert (np.abs(local[False]) <= most * (1 + 1e-6)).all()
    assert max(found[False][f"grasp_{side}.use"].item() for side in "lr") == pytest.approx(1.0)
    assert np.linalg.norm(found[True]["control.residual"]) < 1e-6
    assert np.linalg.norm(found[False]["control.residual"]) > 1.0
