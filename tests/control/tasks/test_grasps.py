"""Grasps of every kind: the plant's loops carry what the law says, and the body moves as asked."""

import casadi as ca
import numpy as np
import pytest
from law_checks import unlimited

from framefree.control.law import ControlError
from framefree.control.references import FramePath, Reference, Together
from framefree.control.shared.frames import Frames
from framefree.control.tasks import (
    FrameControl,
    HeldObject,
    RigidCoupling,
    StrictPriority,
    TaskControl,
)
from framefree.gallery.machines.dual_arm import START_HELD, dual_arm, dual_arm_with_object
from framefree.geometry import so3
from framefree.machine import Loop
from framefree.motion import equations
from framefree.motion.tree import Tree
from framefree.solve import assemble

POSE = np.array([[1.0, 0, 0, 0.43], [0, 1, 0, 0.0], [0, 0, 1, 0.65], [0, 0, 0, 1]])
STENCIL = ((-2, 1 / 12), (-1, -8 / 12), (1, 8 / 12), (2, -1 / 12))
KINDS = {
    "ball": ("ball", None),
    "hinge": ("hinge", "y"),
    "slider": ("slider", (1.0, 1.0, 0.5)),
    "weld": ("weld", None),
}


def machine_with(*kinds):
    """Return two arms that hold a rod by grasps of these kinds, and a closed configuration."""
    machine = dual_arm_with_object(2.0, 0.0)
    machine = machine.detach(*(loop.name for loop in machine.loops))
    for side, kind in zip("lr", kinds, strict=True):
        word, axis = KINDS[kind]
        loop = Loop(f"grasp_{side}", word, f"link_7_{side}", f"object_{side}", axis=axis)
        machine = machine.attach(loop)
    machine = unlimited(machine)
    return machine, assemble(machine, [*START_HELD, 0.436, -0.015, 0.69, 1, 0, 0, 0])


def law_with(machine, *kinds, only="all", **options):
    grasps = tuple(
        RigidCoupling(
            f"link_7_{side}", f"object_{side}", name=f"grasp_{side}", kind=word, axis=axis
        )
        for side, (word, axis) in zip("lr", (KINDS[kind] for kind in kinds), strict=True)
    )
    tasks = [grasps, [FrameControl("object", "target", only=only)]]
    return TaskControl(
        machine, tasks, StrictPriority(), held=HeldObject("object", grasps, **options)
    )


def references(left=(0, 0, 0, 0, 0, 0), right=(0, 0, 0, 0, 0, 0)):
    return Together(
        FramePath("target", lambda t: ca.DM(POSE)),
        *(
            _Constant(f"grasp_{side}.target", value)
            for side, value in zip("lr", (left, right), strict=True)
        ),
    )


class _Constant(Reference):
    """One signal of numbers."""

    def __init__(self, signal, value):
        self.signal, self.value = signal, value

    def at(self, t):
        return {self.signal: ca.DM(self.value)}


def evaluated(law, x, v, reference):
    X, V = ca.SX.sym("x", law.machine.nx), ca.SX.sym("v", law.machine.nv)
    command = law.control(ca.SX(0), X, V, reference.at(ca.SX(0)), ca.SX(0, 1))
    parts = {"u": command.u, **command.signals}
    function = ca.Function("law", [X, V], [ca.densify(ca.SX(part)) for part in parts.values()])
    return {
        name: np.array(value).ravel() for name, value in zip(parts, function(x, v), strict=True)
    }


def carried(machine, x, v, u):
    """Return accelerations, and what the loops carry (2, 6) in world axes, of the plant."""
    eom = equations(machine, "constrained")
    force = np.concatenate([u, np.zeros(6)])
    a = np.array(eom.functions["forward"](x, v, force)).ravel()
    wrenches = np.array(eom.functions["loop_wrench"](x, v, force)).reshape(2, 6)
    turns = [eom.functions[f"frame_pose:object_{side}"](x).full()[:3, :3] for side in "lr"]
    in_world = [np.kron(np.eye(2), R) @ w for R, w in zip(turns, wrenches, strict=True)]
    return a, np.array(in_world), turns


@pytest.mark.parametrize(
    "kinds", [("weld", "ball"), ("weld", "hinge"), ("slider", "weld"), ("hinge", "ball")]
)
@pytest.mark.first_cases(1)
def test_the_plant_carries_what_the_law_says(kinds):
    """The task is fulfilled under the plant's own loops, whose wrenches are those of the law."""
    machine, x = machine_with(*kinds)
    law = law_with(machine, *kinds, shares=(0.6, 0.4), squeeze=12.0)
    v = np.zeros(machine.nv)
    found = evaluated(law, x, v, references())
    a, wrenches, _ = carried(machine, x, v, found["u"])
    assert np.abs(found["unrealised"]).max() < 1e-7
    assert np.abs(found["control.residual"]).max() < 1e-6
    for k, side in enumerate("lr"):
        np.testing.assert_allclose(wrenches[k], found[f"grasp_{side}.wrench"], atol=1e-5)
    # The body itself accelerates as the task asks.
    state = Tree(machine.tree).at(ca.SX(x), ca.SX(v))
    rows = FrameControl("object", "target").rows(Frames(state), references().at(ca.SX(0)))
    task = FrameControl("object", "target")
    left = np.array(ca.DM(rows.A @ a - task.b(rows))).ravel()
    assert np.abs(left).max() < 1e-5


def test_two_balls_leave_the_turn_between_them_free():
    """Nobody can turn the rod about the line between two balls: the law knows, the rest obeys."""
    machine, x = machine_with("ball", "ball")
    law = law_with(machine, "ball", "ball", only="position")
    v = np.zeros(machine.nv)
    found = evaluated(law, x, v, references())
    assert np.abs(found["unrealised"]).max() < 1e-7
    assert np.abs(found["control.residual"]).max() < 1e-6
    _, wrenches, _ = carried(machine, x, v, found["u"])
    for k, side in enumerate("lr"):
        assert np.abs(found[f"grasp_{side}.wrench"][3:]).max() < 1e-9
        np.testing.assert_allclose(wrenches[k], found[f"grasp_{side}.wrench"], atol=1e-5)


@pytest.mark.slow
def test_wrenches_follow_their_reference():
    """Forces and moments that cancel on the body are met exactly; the motion does not notice."""
    machine, x = machine_with("weld", "weld")
    law = law_with(machine, "weld", "weld", targets=True, carries=(30, 30, 30, 5, 5, 5))
    assert "grasp_l.target" in law.needs
    v = np.zeros(machine.nv)
    functions = equations(machine, "constrained").functions
    poses = [functions[f"frame_pose:object_{side}"](x).full() for side in "lr"]
    (R, p), (R2, p2) = ((G[:3, :3], G[:3, 3]) for G in poses)
    force, moment = np.array([3.0, -8.0, 2.0]), np.array([0.4, -0.3, 0.2])
    against = -moment - np.cross(p - p2, force)
    targets = [np.concatenate([R.T @ force, R.T @ moment])]
    targets.append(np.concatenate([-R2.T @ force, R2.T @ against]))
    one = evaluated(law, x, v, references())
    other = evaluated(law, x, v, references(*targets))
    np.testing.assert_allclose(one["control.residual"], other["control.residual"], atol=1e-7)
    rest, pressed = (carried(machine, x, v, found["u"])[1] for found in (one, other))
    change = pressed - rest
    np.testing.assert_allclose(change[0], np.concatenate([force, moment]), atol=1e-6)
    np.testing.assert_allclose(change[1], np.concatenate([-force, against]), atol=1e-6)
    # What is used of a grasp is the largest share, in its own axes.
    local = np.kron(np.eye(2), R).T @ pressed[0] / np.array([30, 30, 30, 5, 5, 5])
    assert other["grasp_l.use"][0] == pytest.approx(np.abs(local).max(), abs=1e-7)


@pytest.mark.slow
def test_what_would_move_the_body_is_taken_off():
    """One hand alone told to push: both together give no more than the motion needs."""
    machine, x = machine_with("weld", "weld")
    law, v = law_with(machine, "weld", "weld", targets=True), np.zeros(machine.nv)
    one = evaluated(law, x, v, references())
    other = evaluated(law, x, v, references(left=(10.0, 0, 0, 0, 0, 0)))
    np.testing.assert_allclose(one["control.residual"], other["control.residual"], atol=1e-7)
    change = [other[f"grasp_{s}.wrench"] - one[f"grasp_{s}.wrench"] for s in "lr"]
    np.testing.assert_allclose(change[0][:3], -change[1][:3], atol=1e-9)
    assert np.linalg.norm(change[0][:3]) == pytest.approx(5.0)


@pytest.mark.parametrize("kind", ["weld", "ball", "hinge", "slider"])
def test_rows_of_couplings(kind):
    """d/dt s = A a + rate by differences, and as many rows as the loop of this kind has."""
    word, axis = KINDS[kind]
    machine, rng, h = dual_arm(), np.random.default_rng(2), 1e-3
    G = np.eye(4)
    G[:3, :3], G[:3, 3] = so3.exp(rng.normal(size=3)).full(), rng.normal(size=3)
    task = RigidCoupling("link_7_l", "link_7_r", G, kind=word, axis=axis)
    X, V = ca.SX.sym("x", 14), ca.SX.sym("v", 14)
    rows = ca.Function(
        "rows", [X, V],
        [ca.densify(ca.SX(p)) for p in task.rows(Frames(Tree(machine).at(X, V)), {})],
    )  # fmt: skip
    loop = Loop("l", word, "link_7_l", "link_7_r", axis=axis)
    assert len(task.parts) == loop.size == task.blocked.shape[1]
    np.testing.assert_allclose(task.blocked, np.array(ca.DM(loop.blocked(ca.DM.eye(4)))))
    for _ in range(3):
        x, (v, a) = machine.random(rng), rng.normal(size=(2, 14))
        found = [
            (c / h, rows(x + v * k * h + a * (k * h) ** 2 / 2, v + a * k * h)) for k, c in STENCIL
        ]
        A, rate, _, _ = (np.array(part) for part in rows(x, v))
        measured = sum(c * np.array(one[2]) for c, one in found)[:, 0]
        expected = A @ a + rate[:, 0]
        assert np.abs(measured - expected).max() < 1e-6 * (1 + np.abs(expected).max())


@pytest.mark.slow
def test_hands_as_they_are_now():
    """The coupling of a configuration has no error there, whatever the kind."""
    machine, rng = dual_arm(), np.random.default_rng(9)
    x = machine.random(rng)
    for kind, (word, axis) in KINDS.items():
        for frames in (("link_7_l", "link_7_r"), ("world", "link_7_r"), ("link_7_l", "world")):
            task = RigidCoupling.as_now(machine, x, *frames, kind=word, axis=axis, name=kind)
            state = Tree(machine).at(ca.SX(x), ca.SX(np.zeros(14)))
            error = np.array(ca.DM(task.rows(Frames(state), {}).pose_error))
            assert np.abs(error).max() < 1e-9


def test_refusals():
    with pytest.raises(ControlError, match="must be one of weld, ball, hinge, slider"):
        RigidCoupling("a", "b", kind="screw")
    with pytest.raises(ControlError, match="of kind hinge needs an `axis`"):
        RigidCoupling("a", "b", kind="hinge")
    with pytest.raises(ControlError, match="of kind ball has no `axis`"):
        RigidCoupling("a", "b", kind="ball", axis="x")
    ball = RigidCoupling("a", "b", kind="ball")
    with pytest.raises(ControlError, match="must not be negative"):
        HeldObject("object", (ball, ball), (1.0, 0.0))
    with pytest.raises(ControlError, match="`carries` of the held body `object` must be 6 numbers"):
        HeldObject("object", (ball,), carries=(1.0, 2.0))
