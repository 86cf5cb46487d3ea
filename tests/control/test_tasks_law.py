"""Laws by tasks: torques that give the accelerations, on floating bases and with held bodies."""

import casadi as ca
import numpy as np
import pytest
from law_checks import unlimited

from framefree.benchmarks.dynamics import example_robot
from framefree.control.law import ControlError
from framefree.control.references.frames import FramePath
from framefree.control.shared.frames import Frames
from framefree.control.tasks import (
    FrameControl,
    HeldObject,
    JointControl,
    Kkt,
    LimitedTaskControl,
    RigidCoupling,
    StrictPriority,
    TaskControl,
    UdwadiaKalaba,
    task_report,
)
from framefree.control.tasks.report import numbers
from framefree.errors import FramefreeError
from framefree.gallery.machines.arms import revolute_chain
from framefree.gallery.machines.dual_arm import (
    HOLD,
    START_HELD,
    dual_arm,
    dual_arm_with_object,
    seven_joint_arm,
)
from framefree.machine import Body, Free, Joint, Machine
from framefree.machine.actuators import Wrench, motors
from framefree.machine.read import read
from framefree.motion import equations
from framefree.motion.tree import Tree
from framefree.simulate import simulate
from framefree.solve import assemble

POSE = np.array([[1.0, 0, 0, 0.4], [0, 1, 0, 0.1], [0, 0, 1, 0.6], [0, 0, 0, 1]])
TARGET = FramePath("target", lambda t: ca.DM(POSE))


def evaluated(law, x, v, reference=TARGET):
    """Return inputs and signals of a law at a state."""
    X, V = ca.SX.sym("x", law.machine.nx), ca.SX.sym("v", law.machine.nv)
    command = law.control(ca.SX(0), X, V, reference.at(ca.SX(0)), ca.SX(0, 1))
    parts = {"u": command.u, **command.signals}
    function = ca.Function("law", [X, V], [ca.densify(ca.SX(part)) for part in parts.values()])
    values = function(x, v)
    return {name: np.array(value).ravel() for name, value in zip(parts, values, strict=True)}


def acceleration(machine, x, v, u, formulation="tree"):
    """Return the joint accelerations of the machine under inputs."""
    eom = equations(machine, formulation)
    B = np.array(equations(machine, "tree").functions["input_matrix"](x))
    return np.array(eom.functions["forward"](x, v, B @ u)).ravel()


def rows(law, x, v):
    """Return A and b of every level."""
    return numbers(law, x, v, TARGET, 0.0)


def floating(other_actuators=()):
    """Return a seven-joint arm on a body that floats without drives."""
    arm = seven_joint_arm()
    base = Machine(
        (Body("base", arm.bodies[0].moments),), (Joint("base", Free(), "world", "base"),)
    )
    return unlimited(base.merge(arm, at="base").attach(*other_actuators))


def random_state(machine, seed):
    rng = np.random.default_rng(seed)
    return machine.random(rng), 0.5 * rng.normal(size=machine.nv)


def coupled(machine=None, solver=None, **options):
    machine = dual_arm() if machine is None else machine
    tasks = [[RigidCoupling("link_7_l", "link_7_r", HOLD)], [FrameControl("link_7_l", "target")]]
    return TaskControl(machine, tasks, UdwadiaKalaba() if solver is None else solver, **options)


@pytest.mark.parametrize("solver", [UdwadiaKalaba(), Kkt(), StrictPriority()], ids=str)
@pytest.mark.first_cases(1)
def test_torques_give_the_accelerations(solver):
    """Under the inputs of the law the machine accelerates so that A a = b."""
    law = coupled(solver=solver)
    for seed in range(3):
        x, v = random_state(law.machine, seed)
        a = acceleration(law.machine, x, v, evaluated(law, x, v)["u"])
        for A, b in rows(law, x, v).levels:
            assert np.abs(A @ a - b).max() < 1e-7 * (1 + np.abs(b).max())


def test_floating_base_gets_what_motors_can_give():
    """The law asks only for accelerations without forces on the base, and fulfils the task."""
    machine = floating()
    law = TaskControl(machine, [[FrameControl("link_7_l", "target")]])
    for seed in range(3):
        x, v = random_state(machine, seed)
        found = evaluated(law, x, v)
        (A, b), *_ = rows(law, x, v).levels
        assert np.abs(found["unrealised"]).max() < 1e-7
        a = acceleration(machine, x, v, found["u"])
        assert np.abs(A @ a - b).max() < 1e-6 * (1 + np.abs(b).max())


def test_what_motors_cannot_give_is_reported():
    """Without care for the base, what it would need is the whole missing force, and it is told."""
    machine = floating()
    law = TaskControl(machine, [[FrameControl("link_7_l", "target")]], feasible=False)
    x, v = random_state(machine, 1)
    found = evaluated(law, x, v)
    assert np.abs(found["unrealised"][:6]).max() > 1.0
    assert np.abs(found["unrealised"][6:]).max() < 1e-9
    # Were it delivered, the task would be fulfilled.
    force = np.concatenate([np.zeros(6), found["u"]]) + found["unrealised"]
    a = np.array(equations(machine, "tree").functions["forward"](x, v, force)).ravel()
    (A, b), *_ = rows(law, x, v).levels
    assert np.abs(A @ a - b).max() < 1e-7 * (1 + np.abs(b).max())


def test_drives_that_turn_with_the_machine():
    """Where the matrix of the inputs depends on the state, what lacks drives is found there."""
    thruster = Wrench("thruster", "link_3_l", np.eye(6)[:, :2])
    machine = floating([thruster])
    law = TaskControl(machine, [[FrameControl("link_7_l", "target")]])
    x, v = random_state(machine, 2)
    found = evaluated(law, x, v)
    assert np.abs(found["unrealised"]).max() < 1e-6
    a = acceleration(machine, x, v, found["u"])
    (A, b), *_ = rows(law, x, v).levels
    assert np.abs(A @ a - b).max() < 1e-6 * (1 + np.abs(b).max())


def test_too_much_for_a_floating_base():
    """Pose of the base and of the hand at once: rank and residual are reported, nothing breaks."""
    machine = floating()
    tasks = [[FrameControl("base", "target", name="base"), FrameControl("link_7_l", "target")]]
    law = TaskControl(machine, tasks)
    x, v = random_state(machine, 3)
    report = task_report(law, x, v, TARGET)
    assert [level.rank for level in report.levels] == [6, 7]
    assert report.levels[1].contradicting
    assert "base: x" in report.levels[1].dependent
    assert "cannot be fulfilled" in str(report)
    found = evaluated(law, x, v)
    assert all(np.isfinite(value).all() for value in found.values())
    # The residual of least squares is what the law leaves, under exact dynamics.
    strict = evaluated(TaskControl(machine, tasks, StrictPriority()), x, v)
    left = np.concatenate([strict["base.residual"], strict["control.residual"]])
    np.testing.assert_allclose(left, report.levels[1].residual, rtol=1e-6, atol=1e-6)


def test_dependent_rows_by_name():
    """A planar arm cannot leave its plane: those rows are named, and the others fulfilled."""
    chain = revolute_chain(3)
    chain = chain.replace("joint0", kind=chain.joint("joint2").kind).replace(
        "joint1", kind=chain.joint("joint2").kind
    )
    chain = chain.attach(*motors(chain.joints))
    law = TaskControl(chain, [[FrameControl("tip", "target")]])
    x, v = np.array([0.3, 0.5, -0.7]), np.array([0.1, 0.2, 0.3])
    (report,) = task_report(law, x, v, TARGET).levels
    assert report.rank == 3
    assert set(report.contradicting) == {"control: x"}
    assert {"control: x", "control: turn y", "control: turn z"} <= set(report.dependent)
    residual = evaluated(law, x, v)["control.residual"]
    np.testing.assert_allclose(residual, report.residual, atol=1e-7)


def held_machine():
    machine = dual_arm_with_object(2.0)
    x = assemble(machine, [*START_HELD, 0.436, -0.015, 0.69, 1, 0, 0, 0])
    return machine, x


def held_law(machine, squeeze=15.0, shares=(0.7, 0.3)):
    grasps = tuple(
        RigidCoupling(f"link_7_{side}", f"object_{side}", name=f"grasp_{side}") for side in "lr"
    )
    held = HeldObject("object", grasps, shares, squeeze)
    return TaskControl(machine, [grasps, [FrameControl("object", "target")]], held=held)


def test_held_object():
    """Hands carry their shares and press; the welded plant confirms acceleration and wrenches."""
    machine, x = held_machine()
    machine = unlimited(machine)
    law, v = held_law(machine), np.zeros(machine.nv)
    found = evaluated(law, x, v)
    assert np.abs(found["unrealised"]).max() < 1e-9
    eom = equations(machine, "constrained")
    force = np.concatenate([found["u"], np.zeros(6)])
    a = np.array(eom.functions["forward"](x, v, force)).ravel()
    A, b = rows(law, x, v).levels[1]
    assert np.abs(A @ a - b).max() < 1e-6 * (1 + np.abs(b).max())
    carried = np.array(eom.functions["loop_wrench"](x, v, force)).reshape(2, 6)
    R = np.array(eom.functions["body_pose"](x))[-1].reshape(4, 4)[:3, :3]
    for k, side in enumerate("lr"):
        turn = R @ machine.frame(f"object_{side}").pose[:3, :3]
        world = np.concatenate([turn @ carried[k, :3], turn @ carried[k, 3:]])
        np.testing.assert_allclose(world, found[f"grasp_{side}.wrench"], atol=1e-6)


def test_shares_and_pressure_of_a_held_object():
    """More pressure and other shares change the wrenches of hands, and not the motion."""
    machine, x = held_machine()
    v = np.zeros(machine.nv)
    one, other = evaluated(held_law(machine, 0.0), x, v), evaluated(held_law(machine, 40.0), x, v)
    change = {side: other[f"grasp_{side}.wrench"] - one[f"grasp_{side}.wrench"] for side in "lr"}
    assert np.linalg.norm(change["l"][:3]) == pytest.approx(40.0)
    np.testing.assert_allclose(change["l"][:3], -change["r"][:3], atol=1e-9)
    np.testing.assert_allclose(one["control.residual"], other["control.residual"], atol=1e-8)
    lone = evaluated(held_law(machine, 0.0, (1.0, 0.0)), x, v)
    assert np.abs(lone["grasp_r.wrench"]).max() < 1e-12


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"shares": (0.5, 0.6)}, "of sum 1"),
        ({"body": "link_7_l"}, "must be on a free joint"),
    ],
)
def test_held_object_refusals(options, words):
    machine, _ = held_machine()
    grasp = RigidCoupling("link_7_l", "object_l", name="grasp")
    given = {"body": "object", "grasps": (grasp,), **options}
    with pytest.raises(ControlError, match=words):
        TaskControl(machine, [[grasp]], held=HeldObject(**given))


def test_refusals():
    machine = dual_arm()
    task = FrameControl("link_7_l", "target")
    with pytest.raises(ControlError, match="two tasks are named `control`"):
        TaskControl(machine, [[task], [task]])
    with pytest.raises(ControlError, match="sequences of tasks"):
        TaskControl(machine, [task])
    held, loaded = HeldObject("object", (RigidCoupling("link_7_l", "object"),)), held_machine()[0]
    with pytest.raises(ControlError, match="the grasp `coupling` of the held body must be a task"):
        TaskControl(loaded, [[task]], held=held)
    with pytest.raises(ControlError, match="`approach` must be positive"):
        LimitedTaskControl(machine, [[task]], approach=0.0)


def test_robots_of_two_files():
    """Two robots from URDF files, joined, hold one body."""
    try:
        one = read(example_robot("panda_description/urdf/panda.urdf"), mimic="independent")
        other = read(example_robot("ur_description/urdf/ur5_robot.urdf"))
    except FramefreeError as error:
        pytest.skip(str(error))
    both = one.merge(other, "ur_", pose=(0.8, 0.0, 0.0))
    if not both.nu:
        both = both.attach(*motors(both.joints))
    both = unlimited(both)
    rng = np.random.default_rng(0)
    x, v = both.random(rng), 0.2 * rng.normal(size=both.nv)
    coupling = RigidCoupling("panda_link7", "ur_tool0", POSE, name="held")
    law = TaskControl(both, [[coupling], [JointControl(both, Kd=5.0)]], StrictPriority())
    found = evaluated(law, x, v)
    A, b = rows(law, x, v).levels[0]
    a = acceleration(both, x, v, found["u"])
    assert np.abs(A @ a - b).max() < 1e-6 * (1 + np.abs(b).max())
    assert np.abs(found["unrealised"]).max() < 1e-6


# ---------------------------------------------------------------------------- large attitudes


def driven_body():
    """Return a free body with a drive in each direction."""
    body = Body("body", seven_joint_arm().bodies[0].moments)
    machine = Machine((body,), (Joint("base", Free(), "world", "body"),))
    return machine.attach(Wrench("drive", "body", np.eye(6)))


def turned(angles, axes):
    """Return states (n, 7) turned by angles about axes."""
    half = np.asarray(angles)[:, None] / 2
    axes = axes / np.linalg.norm(axes, axis=1, keepdims=True)
    return np.hstack([np.tile(POSE[:3, 3], (len(axes), 1)), np.cos(half), axes * np.sin(half)])


def test_attitudes_up_to_179_degrees_converge():
    body = driven_body()
    rng = np.random.default_rng(0)
    axes = np.vstack([np.eye(3), -np.eye(3), rng.normal(size=(44, 3))])
    angles = np.deg2rad(np.concatenate([np.full(30, 179.0), rng.uniform(1, 179, 20)]))
    law = TaskControl(body, [[FrameControl("body", "target", 25.0)]])
    run = simulate(body, law, TARGET, turned(angles, axes), duration=6.0, dt=0.01, every=10)
    size = np.linalg.norm(run["control.error"][..., 3:], axis=-1)
    np.testing.assert_allclose(size[:, 0], angles, atol=1e-9)
    assert size[:, -1].max() < 1e-6
    # Straight home: from rest the angle never grows.
    assert np.diff(size, axis=1).max() < 1e-9


def test_couplings_of_179_degrees_converge():
    one = driven_body()
    pair = one.merge(one, "b_")
    x0 = np.concatenate(
        [turned([0.3], np.eye(3)[:1])[0], turned([0.3 + np.pi - 0.0175], np.eye(3)[:1])[0]]
    )
    law = TaskControl(pair, [[RigidCoupling("body", "b_body", Kp=25.0)]])
    run = simulate(pair, law, x0=x0, duration=6.0, dt=0.01, every=10)
    size = np.linalg.norm(run["coupling.error"][:, 3:], axis=-1)
    assert size[0] == pytest.approx(np.pi - 0.0175, abs=1e-9)
    assert size[-1] < 1e-6


@pytest.mark.parametrize("off", [0.0, 1e-16, 1e-12, 1e-8, -1e-8])
def test_half_turns_are_finite(off):
    body = driven_body()
    axes = np.vstack([np.eye(3), -np.eye(3), np.random.default_rng(1).normal(size=(10, 3))])
    law = TaskControl(body, [[FrameControl("body", "target", 25.0)]])
    start = turned(np.full(len(axes), np.pi + off), axes)
    run = simulate(body, law, TARGET, start, duration=0.5, dt=0.01)
    for values in (run.x, run.v, run.u, run["control.error"]):
        assert np.isfinite(values).all()
    sizes = np.linalg.norm(run["control.error"][:, 0, 3:], axis=-1)
    np.testing.assert_allclose(sizes, np.pi - abs(off), atol=1e-7)


# ---------------------------------------------------------------------------- massless tips


def test_massless_tip():
    """A last body without mass makes the mass matrix singular; tasks determine its joint."""
    chain = revolute_chain(7)
    chain = chain.replace("link6", inertia=None)
    chain = chain.attach(*motors(chain.joints))
    x, v = random_state(chain, 4)
    M = np.array(equations(chain, "tree").functions["mass"](x))
    assert np.linalg.svd(M, compute_uv=False)[-1] < 1e-9
    tasks = [[FrameControl("tip", "target")]]
    residuals, inputs = [], []
    for solver in (UdwadiaKalaba(True), Kkt(True), StrictPriority(True)):
        found = evaluated(TaskControl(chain, tasks, solver), x, v)
        residuals.append(np.abs(found["control.residual"]).max())
        inputs.append(found["u"])
    assert max(residuals) < 1e-6
    np.testing.assert_allclose(inputs[1], inputs[0], atol=1e-6 * np.abs(inputs[0]).max())
    np.testing.assert_allclose(inputs[2], inputs[0], atol=1e-6 * np.abs(inputs[0]).max())
    assert task_report(TaskControl(chain, tasks), x, v, TARGET).unique


def test_floating_robot_with_an_object():
    """Both at once: no force on the floating base, and the object carried by the hand."""
    rod = Body("object", driven_body().bodies[0].moments)
    machine = floating().attach(rod, Joint("object", Free(), "world", "object"))
    grasp = RigidCoupling("link_7_l", "object", name="grasp")
    law = TaskControl(
        machine, [[grasp], [FrameControl("object", "target")]], held=HeldObject("object", (grasp,))
    )
    x, v = random_state(machine, 5)
    found = evaluated(law, x, v)
    assert np.abs(found["unrealised"]).max() < 1e-6
    wrench, eom = found["grasp.wrench"], equations(machine, "tree")
    # The hand's wrench moves the object, and its reaction acts on the hand, at the grasp.
    frames = Frames(Tree(machine).at(ca.SX(x), ca.SX(v)))
    hand, held = frames.at("link_7_l"), frames.at("object")
    J = [np.array(ca.DM(ca.vertcat(m.Jv, m.Jw))) for m in (hand, held)]
    force = np.zeros(machine.nv)
    force[machine.v_slice["joint_1_l"].start :][:7] = found["u"]
    a = np.array(eom.functions["forward"](x, v, force + (J[1] - J[0]).T @ wrench)).ravel()
    for A, b in rows(law, x, v).levels:
        assert np.abs(A @ a - b).max() < 1e-5 * (1 + np.abs(b).max())
