"""Tasks on closed, coupled and undriven machines, and grasps that come and go in a run."""

import casadi as ca
import numpy as np
import pytest
from law_checks import unlimited

import framefree as ff
from framefree.control.references import FramePath, Together
from framefree.control.shared.model import Model
from framefree.control.tasks import (
    CenterOfMassControl,
    FrameControl,
    HeldObject,
    JointControl,
    LimitedTaskControl,
    MomentumControl,
    RigidCoupling,
    StrictPriority,
    TaskControl,
    task_report,
)
from framefree.gallery.machines.arms import revolute_chain
from framefree.gallery.machines.dual_arm import (
    START_HELD,
    dual_arm_with_object,
    seven_joint_arm,
)
from framefree.gallery.machines.finger_arm import finger_arm, finger_arm_at
from framefree.gallery.machines.five_bar import five_bar, five_bar_at
from framefree.machine import Body, Coupling, Free, Joint, Linear, Machine
from framefree.machine.actuators import motors
from framefree.simulate import Change, Grasp, Release, simulate
from framefree.simulate.errors import SimulationError
from framefree.solve import assemble


def still(frame, pose):
    return FramePath(frame, lambda t: ca.DM(pose))


def at(position):
    pose = np.eye(4)
    pose[:3, 3] = position
    return pose


def test_the_tip_of_a_five_bar():
    """It reaches its target, the loop's own mechanics counted: no torque is left over."""
    machine = five_bar(0.5)
    law = TaskControl(machine, [[FrameControl("tip", Kp=100.0, only=("x", "z"))]])
    run = simulate(
        machine, law, still("tip", at((0.1, 0, 0.5))), five_bar_at(machine, (0.0, 0.42)),
        duration=2.5, dt=2e-3,
    )  # fmt: skip
    error = run["control.error"]
    # From rest, critically damped: (1 + k t) exp(-k t).
    closed = np.outer((1 + 10 * run.t) * np.exp(-10 * run.t), error[0])
    np.testing.assert_allclose(error, closed, atol=1e-8)
    tip = ff.equations(machine, "constrained").kernel("frame_pose:tip")(run.x[-1])[:3, 3]
    np.testing.assert_allclose(tip, (0.1, 0, 0.5), atol=1e-6)
    assert np.abs(run["unrealised"]).max() < 1e-9


@pytest.mark.slow
def test_fingers_that_are_four_bars():
    """Both tips reach their targets with arm and fingers together."""
    machine = finger_arm()
    x0, x1 = (
        assemble(machine, finger_arm_at(machine, arm, opening))
        for arm, opening in (
            ([0.3, -0.8, 0.1, 0.4, 0.2, 0.5, 0.1], 0.3),
            ([0.35, -0.75, 0.15, 0.45, 0.2, 0.5, 0.1], 0.15),
        )
    )
    eom = ff.equations(machine, "constrained")
    goals = {f"tip_{f}": eom.functions[f"frame_pose:tip_{f}"](x1).full() for f in "ab"}
    tips = [FrameControl(tip, Kp=100.0, only="position", name=tip) for tip in goals]
    law = TaskControl(
        machine, [tips, [JointControl(machine, x1, Kp=25.0, Kd=10.0)]], StrictPriority()
    )
    path = Together(*(still(tip, pose) for tip, pose in goals.items()))
    run = simulate(machine, law, path, x0, duration=2.5, dt=2e-3, record=())
    for tip, pose in goals.items():
        assert np.linalg.norm(run[f"{tip}.error"][0]) > 0.01
        reached = eom.functions[f"frame_pose:{tip}"](run.x[-1]).full()[:3, 3]
        np.testing.assert_allclose(reached, pose[:3, 3], atol=1e-6)


def test_one_joint_without_any_limit():
    """Nothing is limited, and nothing is left of the rows of limits."""
    chain = revolute_chain(1)
    arm = chain.attach(*motors(chain.joints))
    law = LimitedTaskControl(arm, [[JointControl(arm, [0.4], Kp=9.0)]])
    made = law.command(0.0, np.array([0.1]), np.zeros(1), {}, law.memory)
    wanted = ff.equations(arm).inverse([0.1], [0.0], [9.0 * 0.3])
    np.testing.assert_allclose(made.u, wanted, atol=1e-12)


def test_a_coupled_joint_counts():
    """A joint that mimics another carries its share of motion and mass."""
    arm = seven_joint_arm(0.0, np.inf)
    arm = arm.attach(Coupling("mimic", "joint_5_l", "joint_4_l", Linear((0.5,), 0.1)))
    arm = unlimited(arm.detach("actuator:joint_5_l"))
    law = TaskControl(arm, [[FrameControl("link_7_l", "target", 100.0)]])
    x0 = assemble(arm, [0.3, -0.8, 0.1, 0.4, 0.2, 0.5, 0.1])
    start = ff.equations(arm, "constrained").functions["frame_pose:link_7_l"](x0).full()
    goal = start @ at((0.02, -0.03, 0.02))
    run = simulate(arm, law, still("target", goal), x0, duration=2.0, dt=2e-3)
    # Critically damped at 10 rad/s, 2 s leave (1 + 20) exp(-20) of it.
    assert np.abs(run["control.error"][-1]).max() < 1e-8
    moved = 0.1 + 0.5 * run.x[:, arm.x_slice["joint_4_l"]]
    np.testing.assert_allclose(run.x[:, arm.x_slice["joint_5_l"]], moved, atol=1e-8)


@pytest.mark.slow
def test_a_floating_base_is_not_driven():
    """The hand goes where it shall, and nobody has pushed the base: momenta are conserved."""
    arm = seven_joint_arm(0.0, np.inf)
    base = Machine(
        (Body("base", arm.bodies[0].moments),), (Joint("base", Free(), "world", "base"),)
    )
    machine = unlimited(base.merge(arm, at="base")).replace(gravity=(0, 0, 0))
    x0 = np.array([0, 0, 0, 1, 0, 0, 0, 0.3, -0.8, 0.1, 0.4, 0.2, 0.5, 0.1])
    start = ff.equations(machine).functions["frame_pose:link_7_l"](x0).full()
    damped = JointControl(machine, Kd=5.0, joints=[joint.name for joint in arm.joints])
    tasks = [[FrameControl("link_7_l", "target", 100.0)], [damped]]
    law = TaskControl(machine, tasks, StrictPriority())
    goal = still("target", start @ at((0.015, -0.01, 0.02)))
    run = simulate(machine, law, goal, x0, duration=2.0, dt=2e-3, record=("momentum",))
    assert np.abs(run["control.error"][-1]).max() < 1e-7
    for momentum in ("linear_momentum", "angular_momentum"):
        # What is left is the error of the integrator of the plant.
        assert np.abs(run[momentum]).max() < 1e-6
    # What it cannot change is said, not broken: the center of mass of all, and the momentum.
    tasks = [[CenterOfMassControl("target"), MomentumControl()]]
    report = task_report(TaskControl(machine, tasks), x0, np.full(13, 0.1), goal)
    assert report.levels[1].rank == 0


def held_machine():
    machine = unlimited(dual_arm_with_object(2.0, 0.0))
    return machine, assemble(machine, [*START_HELD, 0.436, -0.015, 0.69, 1, 0, 0, 0])


def test_an_object_in_loops_alone():
    """Without a word about who holds it, loops to an object are obeyed: it goes to its target."""
    machine, x0 = held_machine()
    assert Model(machine).n == 8
    eom = ff.equations(machine, "constrained")
    goal = eom.functions["frame_pose:object"](x0).full() @ at((0.01, 0.02, -0.02))
    law = TaskControl(machine, [[FrameControl("object", "target", 100.0)]])
    X, V = ca.SX.sym("x", machine.nx), ca.SX.sym("v", machine.nv)
    signals = still("target", goal).at(ca.SX(0))
    command = law.control(ca.SX(0), X, V, signals, ca.SX(0, 1))
    u, residual = (
        np.array(part).ravel()
        for part in ca.Function("law", [X, V], [command.u, command.signals["control.residual"]])(
            x0, np.zeros(20)
        )
    )
    assert np.abs(residual).max() < 1e-8
    a = eom.functions["forward"](x0, np.zeros(20), np.concatenate([u, np.zeros(6)]))
    start = eom.functions["frame_pose:object"](x0).full()
    np.testing.assert_allclose(
        start[:3, :3] @ np.array(a).ravel()[14:17], 100.0 * (goal - start)[:3, 3], atol=1e-6
    )


# ---------------------------------------------------------------------------- in a run

ENDS = ("link_7_l", "object_l", "link_7_r", "object_r")


def object_law(scene):
    """Return the law for what is held now: a grasp for every loop to the object."""
    loops = [loop for loop in scene.machine.loops if loop.frame_b.startswith("object")]
    grasps = tuple(
        RigidCoupling(
            loop.frame_a, loop.frame_b, loop.rest, name=loop.name, kind=loop.kind, axis=loop.axis
        )
        for loop in loops
    )
    joints = [joint.name for joint in scene.machine.joints if joint.nv == 1]
    levels = [
        grasps,
        [FrameControl("object", "target", 100.0)],
        [JointControl(scene.machine, joints=joints, Kd=20.0)],
    ]
    return TaskControl(scene.machine, levels, StrictPriority(), HeldObject("object", grasps))


class _Start:
    """What a scene tells a law at the beginning."""

    def __init__(self, machine):
        self.machine = machine


@pytest.mark.slow
@pytest.mark.parametrize(
    ("plant", "kind", "exact"),
    [
        ("native", "weld", 1e-4),
        ("mujoco", "weld", 2e-3),
        ("native", "slider", 1e-4),
        ("mujoco", "slider", 2e-3),
    ],
)
def test_release_and_grasp_again(plant, kind, exact):
    """One hand lets go, carries on alone, and the other takes hold again where it then is."""
    axis = np.array([1.0, 1.0, 0.5]) / 1.5 if kind == "slider" else None
    machine, x0 = held_machine()
    start = ff.equations(machine, "constrained").functions["frame_pose:object"](x0).full()

    def path(t):
        G = ca.SX(ca.DM(start))
        G[2, 3] = G[2, 3] - 0.02 * (1 - ca.cos(2 * np.pi * t))
        return G

    run = simulate(
        machine,
        object_law(_Start(machine)),
        FramePath("target", path),
        x0,
        duration=1.5,
        dt=2e-3,
        control_dt=2e-3,
        plant=plant,
        record=(),
        events=[
            Release(0.5, "grasp_r"),
            Change(0.5, law=object_law),
            Grasp(1.0, "link_7_r", "object_r", "grasp_r", kind, axis),
            Change(1.0, law=object_law),
        ],
    )
    assert np.linalg.norm(run["control.error"][:, :3], axis=1).max() < exact
    hands = ff.equations(machine.tree)
    poses = {name: hands.kernel(f"frame_pose:{name}")(run.x) for name in ENDS}
    left, right = (
        np.einsum("tji,tj->ti", poses[b][:, :3, :3], (poses[a] - poses[b])[:, :3, 3])
        for a, b in (ENDS[:2], ENDS[2:])
    )
    assert np.linalg.norm(left, axis=1).max() < exact
    # The right hand was really let go, and held again where it was; a slider holds it across.
    loose = (run.t > 0.5) & (run.t < 1.0)
    held = run.t > 1.01
    assert np.ptp(right[loose], axis=0).max() > 1e-3
    if axis is not None:
        right = right - np.outer(right @ axis, axis)
    assert np.ptp(right[held], axis=0).max() < exact


def test_changes_must_give_laws():
    arm = seven_joint_arm()
    with pytest.raises(SimulationError, match="must give a AnyLaw, got int"):
        simulate(arm, duration=0.02, dt=0.01, events=[Change(0.01, law=lambda scene: 3)])
