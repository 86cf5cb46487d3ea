"""Law III with parts of poses, several frames and any body as the end."""

import casadi as ca
import numpy as np
import pytest
from random_machines import evaluate, random_pose
from test_port_laws import Closed, floating

import framefree as ff
from framefree.control.law import ControlError
from framefree.control.port import EndEffectorControl, FrameGoal
from framefree.control.references import FramePath, Together
from framefree.gallery.machines.arms import iiwa
from framefree.gallery.machines.chains import chain
from framefree.gallery.scenarios.ports.chain_measures import body_poses
from framefree.geometry import se3, so3

LAMBDA = np.diag([1.0, 2, 3, 4, 5, 6]) + 0.3
GOALS = {
    "position": [FrameGoal("end", attitude="none", rate=(1.0, 2.0, 3.0))],
    "height": [FrameGoal("end", position="z", attitude="none")],
    "pointing": [FrameGoal("end", position="", attitude="x", turn_rate=2.0)],
    "position and pointing": [FrameGoal("end", attitude="y", gain=LAMBDA, axes="world")],
    "Lambda_e": [FrameGoal("end", gain=LAMBDA)],
    "Lambda_e in world axes": [FrameGoal("end", gain=LAMBDA, axes="world")],
    "a body in the middle": [FrameGoal("body2")],
    "two frames": [FrameGoal("end"), FrameGoal("body1", position="xz", attitude="none")],
    "two frames on one body": [
        FrameGoal("end", attitude="none"),
        FrameGoal("body4", position="y", attitude="z"),
    ],
    "three frames": [
        FrameGoal("end", attitude="none"),
        FrameGoal("body2", attitude="none", axes="world"),
        FrameGoal("body3", position="", attitude="x"),
    ],
}


def onto_frame(frame):
    """From twists of a body to those of a frame on it (6, 6)."""
    G = np.asarray(frame.pose)
    R, r = G[:3, :3], G[:3, 3]
    cross = np.array([[0, -r[2], r[1]], [r[2], 0, -r[0]], [-r[1], r[0], 0]])
    return np.block([[R.T, -R.T @ cross], [np.zeros((3, 3)), R.T]])


def desired(goal, G, given):
    """Rows Z (m, 6) in frame axes and the velocity nu_er (6) that they ask for, by hand."""
    Gd, twist = given[f"{goal.frame}.pose"], given[f"{goal.frame}.twist"]
    R, Rd = G[:3, :3], Gd[:3, :3]
    along = [k for k, axis in enumerate("xyz") if axis in goal.position]
    gap = np.zeros(3)
    gap[along] = (G[:3, 3] - Gd[:3, 3])[along]
    turned, angle = [0, 1, 2], np.zeros(3)
    if goal.attitude == "full":
        sine = (Rd.T @ R - R.T @ Rd) / 2
        angle = np.array([sine[2, 1], sine[0, 2], sine[1, 0]])
    elif goal.attitude == "none":
        turned = []
    else:
        turned.remove("xyz".index(goal.attitude))
        axis = np.eye(3)["xyz".index(goal.attitude)]
        angle = R.T @ np.cross(Rd @ axis, R @ axis)
    if goal.gain is not None:
        gain = np.asarray(goal.gain)
    else:
        gain = np.diag(np.r_[np.broadcast_to(goal.rate, 3), np.broadcast_to(goal.turn_rate, 3)])
    both = np.kron(np.eye(2), R)
    e = np.r_[R.T @ gap, angle]
    pull = gain @ e if goal.axes == "frame" else both.T @ gain @ both @ e
    nu = np.r_[R.T @ Rd @ twist[:3], R.T @ Rd @ twist[3:]] - pull
    Z = np.zeros((len(along) + len(turned), 6))
    Z[: len(along), :3] = R[along]
    Z[len(along) :, 3:] = np.eye(3)[turned]
    return Z, nu


@pytest.mark.parametrize("kind", GOALS)
def test_rows_are_met_exactly_with_the_least_energy(kind):
    machine, rng = chain(4, masses=[1.0, 2.0, 0.5, 1.0]), np.random.default_rng(1)
    law = EndEffectorControl(machine, frame=GOALS[kind])
    closed, eom = Closed(law), ff.equations(machine, "maximal")
    V, stated, true, s, *_ = closed(rng)
    assert true == pytest.approx(stated, rel=1e-9, abs=1e-9 * V)
    x, nu = eom.functions["from_joints"](closed.x, closed.v)
    Phi = evaluate(eom.functions["mobility"], x)
    rows, asked = [], []
    nu_r = np.asarray(nu).ravel() - s.ravel()
    for goal in law.goals:
        own = machine.frame(goal.frame)
        i = machine.body_index[own.body]
        poses = evaluate(eom.functions["body_pose"], x).reshape(-1, 4, 4)
        Z, wanted = desired(goal, poses[i] @ np.asarray(own.pose), closed.given)
        onto = np.zeros((6, len(nu_r)))
        onto[:, 6 * i : 6 * i + 6] = onto_frame(own)
        rows.append(Z @ onto)
        asked.append(Z @ wanted)
    J_t, asked = np.concatenate(rows), np.concatenate(asked)
    assert np.allclose(J_t @ nu_r, asked, atol=1e-9 * max(1, np.abs(asked).max()))
    least = Phi @ J_t.T @ np.linalg.solve(J_t @ Phi @ J_t.T, asked)
    assert np.allclose(nu_r, least, atol=1e-8 * max(1, np.abs(least).max()))


@pytest.mark.parametrize("seed", range(3))
def test_V_falls_as_stated_on_random_trees(seed):
    machine, rng = floating(seed)
    names = [body.name for body in machine.bodies]
    frames = [FrameGoal(names[-1], attitude="none"), FrameGoal(names[0], position="")]
    try:
        law = EndEffectorControl(machine, damping=4.0, frame=frames)
    except ControlError:
        law = EndEffectorControl(machine, damping=4.0, frame=frames[:1])
    V, stated, true, *_ = Closed(law)(rng)
    assert true == pytest.approx(stated, rel=1e-7, abs=1e-9 * V)


def test_two_hands_and_a_direction_in_motion():
    """Both ends of a floating chain follow paths; its middle only points where it should."""
    machine = chain(5)
    start = machine.integrate(machine.neutral(), np.r_[np.zeros(6), np.tile([0, 0.3, 0.7], 4)])
    poses = body_poses(machine, start[None])[0]
    end = poses[-1] @ np.asarray(machine.frame("end").pose)

    def swing(G):
        def path(t):
            r = ca.DM(G[:3, 3]) + ca.vertcat(0.02, 0.1 * ca.sin(2 * t), 0.03)
            return se3.pose(so3.exp(ca.vertcat(0, 0.2 * ca.sin(t), 0)) @ ca.DM(G[:3, :3]), r)

        return path

    reference = Together(
        FramePath("end", swing(end)),
        FramePath("body1", swing(poses[0])),
        FramePath("body3", swing(poses[2])),
    )
    goals = [
        FrameGoal("end", rate=5.0, turn_rate=5.0),
        FrameGoal("body1", rate=5.0, attitude="none"),
        FrameGoal("body3", position="", attitude="x", turn_rate=5.0),
    ]
    law = EndEffectorControl(machine, frame=goals)
    run = ff.simulate(machine, law, reference, start, duration=3.0, dt=2e-3, every=10, record=())
    last = body_poses(machine, run.x[-1:])[0]
    tip = last[-1] @ np.asarray(machine.frame("end").pose)
    given = {name: run[f"{name}.pose"][-1] for name in ("end", "body1", "body3")}
    assert np.abs(tip - given["end"]).max() < 1e-4
    assert np.abs(last[0] - given["body1"])[:3, 3].max() < 1e-4
    assert np.abs(last[0] - given["body1"])[:3, :3].max() > 1e-3  # which is not asked for
    assert np.abs(last[2] - given["body3"])[:3, 0].max() < 1e-4
    assert np.abs(last[2] - given["body3"])[:3, 3].max() > 1e-3


def test_an_arm_reaches_with_five_of_its_joints_velocities():
    """Position and one axis: what a drill needs; errors fall at the rate that is asked for."""
    arm = iiwa()
    law = EndEffectorControl(arm, frame=FrameGoal("tool", attitude="z", rate=4.0, turn_rate=4.0))
    closed, rng = Closed(law), np.random.default_rng(3)
    _, stated, true, *_ = closed(rng)
    assert true == pytest.approx(stated, rel=1e-8)
    x, own = closed.x, arm.frame("tool")
    i = arm.body_index[own.body]
    tool = body_poses(arm, x[None])[0, i] @ np.asarray(own.pose)
    given = {"pose": random_pose(rng), "twist": np.zeros(6), "acceleration": np.zeros(6)}
    given = {f"tool.{name}": value for name, value in given.items()}
    twist = onto_frame(own) @ -closed.at(x, np.zeros(arm.nv), given)[3][i]
    R, Rd = tool[:3, :3], given["tool.pose"][:3, :3]
    assert np.allclose(R @ twist[:3], -4.0 * (tool[:3, 3] - given["tool.pose"][:3, 3]))
    # d/dt of the cosine between the axes is rate times the square of the sine.
    turning = np.cross(R @ twist[3:], R[:, 2])
    sine = np.linalg.norm(np.cross(R[:, 2], Rd[:, 2]))
    assert turning @ Rd[:, 2] == pytest.approx(4.0 * sine**2)


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: FrameGoal("end", position="xx"), "some of the axes \"xyz\", got 'xx'"),
        (lambda: FrameGoal("end", position="q"), "some of the axes \"xyz\", got 'q'"),
        (lambda: FrameGoal("end", position=None), 'some of the axes "xyz", got None'),
        (lambda: FrameGoal(3), "`frame` of a FrameGoal must be a name, got 3"),
        (lambda: FrameGoal("end", attitude="w"), r"`attitude` of frame `end` must be one of"),
        (lambda: FrameGoal("end", position="", attitude="none"), "has nothing to do"),
        (lambda: FrameGoal("end", axes="body"), '"frame" or "world", got \'body\''),
        (
            lambda: FrameGoal("end", gain=np.eye(5)),
            r"`gain` of frame `end` must be a number, 6 numbers or 6 x 6, got shape \(5, 5\)",
        ),
        (
            lambda: FrameGoal("end", rate=np.eye(6)),
            r"`rate` of frame `end` must be a number, 3 numbers or 3 x 3, got shape \(6, 6\)",
        ),
        (
            lambda: EndEffectorControl(chain(3), gain=-np.eye(6)),
            "`gain` of frame `end` must be positive in every direction",
        ),
        (lambda: EndEffectorControl(chain(3), frame=3), "must be frames or FrameGoals, got 3"),
        (lambda: EndEffectorControl(chain(3), frame=["end", "end"]), "every frame has one goal"),
        (
            lambda: EndEffectorControl(chain(1), frame=["end", "body1"]),
            "the frames `end`, `body1` cannot do all that: .* 6 velocities, and 12 are needed",
        ),
        (
            lambda: EndEffectorControl(chain(3), frame=["end", FrameGoal("body3", position="z")]),
            "of the 10 directions that are asked for, the joints allow only 6",
        ),
    ],
)
def test_goals_that_cannot_be(make, words):
    with pytest.raises(ControlError, match=words):
        make()


def test_frames_that_cannot_move_apart_at_the_start_are_told():
    """A straight chain can neither be stretched nor shortened."""
    machine = chain(3)
    law = EndEffectorControl(machine, frame=[FrameGoal("end", attitude="none"), "body1"])
    far, near = np.eye(4), np.eye(4)
    far[0, 3] = 0.9
    reference = Together(
        *(FramePath(n, lambda t, G=G: ca.DM(G)) for n, G in (("end", far), ("body1", near)))
    )
    with pytest.raises(ff.FramefreeError, match=r"singular .* `task_mobility`"):
        ff.simulate(machine, law, reference, duration=0.02, dt=2e-3)
