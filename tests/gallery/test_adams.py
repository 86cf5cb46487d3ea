"""Joints against series computed by ADAMS [Chrono, joint unit tests]: motion and reactions.

One body of 1 kg on one joint, from rest, for 5 s; values are printed with six or seven digits.
Positions, velocities and attitudes agree with ours to the last printed digit where ADAMS integrated
well. It did not always: its pendulum on a ball joint is 9e-4 m away from the closed form, that on a
hinge is not. Its accelerations, and with them its reactions, miss those that belong to its own
positions and rates by up to 6e-4, as a test here shows without our equations; so far, and no
farther, may ours be from them.
"""

import numpy as np
import pytest

from framefree.gallery.shared.rotations import about
from framefree.geometry import Moments, batch
from framefree.machine import (
    Body,
    Cylindrical,
    Free,
    Joint,
    Machine,
    Prismatic,
    Revolute,
    Spherical,
    Universal,
)
from framefree.machine.damper import Damper
from framefree.machine.loop import Loop
from framefree.machine.spring import Spring
from framefree.motion import equations
from framefree.motion.constrained import Constrained
from framefree.motion.constrained.rows import Holonomic
from framefree.simulate import Adaptive, simulate
from published import published

G = 9.80665
OFFSET, INERTIA = (2, 0, 0), (0.04, 0.1, 0.1)
DOWN, TURNED = about("x", 0.0), about("x", -np.pi / 2)


def pendulum(kind, rotation=DOWN, location=(0, 0, 0), offset=OFFSET, inertia=INERTIA):
    """The body's frame is its center; its axes are those of the joint."""
    pose = np.eye(4)
    pose[:3, :3], pose[:3, 3] = rotation, location
    body = Body("body", Moments.of_body(1.0, (0, 0, 0), np.diag(inertia)))
    joint = Joint("joint", kind, "world", "body", pose, -np.asarray(offset, float))
    return Machine((body,), (joint,), gravity=(0, 0, -G))


DIGITS = 5.1e-6
"""Half of the sixth printed digit."""
OWN = 7e-4
"""How far ADAMS's accelerations and reactions are from its own motion."""
# Name of the series: machine, and how far its positions (m) and velocities may be off.
CASES = {
    "Revolute_Case01": (pendulum(Revolute("z"), TURNED), DIGITS),
    "Spherical_Case01": (pendulum(Spherical()), 3e-3),
    "Universal_Case02": (
        pendulum(
            Universal("x", "y"), about("y", np.pi / 2), offset=(0, 0, -2), inertia=(0.1, 0.1, 0.04)
        ),
        3e-3,
    ),
    "Prismatic_Case01": (pendulum(Prismatic("z")), DIGITS),
    "Prismatic_Case03": (pendulum(Prismatic("z"), TURNED, (1, 2, 3)), DIGITS),
    "Cylindrical_Case01": (pendulum(Cylindrical("z")), DIGITS),
    "Cylindrical_Case02": (pendulum(Cylindrical("z"), TURNED), DIGITS),
}


@pytest.fixture(scope="module")
def adams():
    cases = published("adams")["cases"]
    return {
        case: {quantity: np.array(rows, float) for quantity, rows in series.items()}
        for case, series in cases.items()
    }


def coordinates(machine, position, wxyz):
    """Joint coordinates of poses of the body."""
    joint = machine.joints[0]
    pose = np.tile(np.eye(4), (len(position), 1, 1))
    pose[:, :3, :3], pose[:, :3, 3] = batch.rotation(wxyz), position
    inner = np.linalg.inv(joint.parent_pose) @ pose @ joint.child_pose
    R, p = inner[:, :3, :3], inner[:, :3, 3]
    if isinstance(joint.kind, Spherical):
        # The joint frame of this case is the world's.
        return wxyz / np.linalg.norm(wxyz, axis=1, keepdims=True)
    if isinstance(joint.kind, Universal):
        angles = np.arctan2(R[:, 2, 1], R[:, 1, 1]), np.arctan2(R[:, 0, 2], R[:, 0, 0])
        return np.stack(angles, axis=1)
    angle, slide = np.arctan2(R[:, 1, 0], R[:, 0, 0]), p[:, 2]
    names = {Revolute: (angle,), Prismatic: (slide,), Cylindrical: (slide, angle)}
    return np.stack(names[type(joint.kind)], axis=1)


def joint_state(eom, series):
    """Joint coordinates and velocities nearest to a printed motion."""
    x = coordinates(eom.machine, series["Pos"], series["Quat"])
    R = batch.rotation(series["Quat"])
    twist = np.concatenate([_turned_back(R, series["Vel"]), _turned_back(R, series["Avel"])], 1)
    return x, np.einsum("nij,nj->ni", np.linalg.pinv(eom.kernel("jacobian:body")(x)), twist)


def _turned(R, vectors):
    return np.einsum("nij,nj->ni", R, vectors)


def _turned_back(R, vectors):
    return np.einsum("nji,nj->ni", R, vectors)


def accelerations(eom, x, v):
    """Acceleration of the center and angular acceleration in world axes."""
    a = eom.kernel("forward")(x, v, np.zeros_like(v))
    R = eom.kernel("body_pose")(x)[:, 0, :3, :3]
    twist = eom.kernel("body_velocity")(x, v)[:, 0]
    rate = eom.kernel("body_acceleration")(x, v, a)[:, 0]
    linear = rate[:, :3] + np.cross(twist[:, 3:], twist[:, :3])
    return _turned(R, linear), _turned(R, rate[:, 3:])


def on_ground(eom, x, v):
    """Force and moment on the ground at the joint, in world axes."""
    wrench = eom.kernel("joint_wrench")(x, v, np.zeros_like(v))[:, 0]
    R = eom.kernel("body_pose")(x)[:, 0, :3, :3] @ eom.machine.joints[0].child_pose[:3, :3]
    return -_turned(R, wrench[:, :3]), -_turned(R, wrench[:, 3:])


def check_forces(eom, x, v, series, atol):
    named = zip(
        ("Acc", "Aacc", "Rforce", "Rtorque"),
        (*accelerations(eom, x, v), *on_ground(eom, x, v)),
        strict=True,
    )
    for name, ours in named:
        np.testing.assert_allclose(ours, series[name], atol=atol, err_msg=name)


@pytest.mark.parametrize("case", CASES)
def test_reactions_at_the_states_of_adams(case, adams):
    machine, series = CASES[case][0], adams[case]
    eom = equations(machine, "tree")
    x, v = joint_state(eom, series)
    check_forces(eom, x, v, series, OWN)
    # The first row is at rest, and right to all digits.
    first = {name: values[:1] for name, values in series.items()}
    check_forces(eom, x[:1], v[:1], first, 2 * DIGITS)


def test_accelerations_of_adams_miss_its_own_positions(adams):
    """On a circle about the hinge: a = dw/dt x r - w^2 r, and I dw/dt = m g x."""
    series = adams["Revolute_Case01"]
    w, turn, r = series["Avel"][:, 1], series["Aacc"][:, 1], series["Pos"]
    kinematic = np.cross(series["Aacc"], r) - w[:, None] ** 2 * r
    assert np.abs(kinematic - series["Acc"]).max() > 5e-4
    assert np.abs(G * r[:, 0] / 4.1 - turn).max() > 5e-4


@pytest.mark.parametrize("case", CASES)
def test_motion_of_adams(case, adams):
    machine, close = CASES[case]
    series = adams[case]
    eom = equations(machine, "tree")
    x0 = coordinates(machine, series["Pos"][:1], series["Quat"][:1])[0]
    run = released(machine, series, x0)
    pose = eom.kernel("body_pose")(run.x)[:, 0]
    R, twist = pose[:, :3, :3], eom.kernel("body_velocity")(run.x, run.v)[:, 0]
    given = {"rtol": DIGITS, "atol": close}
    np.testing.assert_allclose(pose[:, :3, 3], series["Pos"], **given)
    np.testing.assert_allclose(R, batch.rotation(series["Quat"]), atol=close)
    np.testing.assert_allclose(_turned(R, twist[:, :3]), series["Vel"], **given)
    np.testing.assert_allclose(_turned(R, twist[:, 3:]), series["Avel"], **given)
    check_forces(eom, run.x, run.v, series, OWN + 5 * (close > DIGITS) * close)


def released(machine, series, x0=None):
    """Let the machine go from rest, recorded at the times of a series."""
    t, accurate = series["t"], Adaptive(1e-11)
    return simulate(machine, x0=x0, duration=t[-1], dt=t[1], integrator=accurate, progress=False)


def test_a_distance(adams):
    """A free body held at 2 m from the origin; the force on the ground along the line."""
    series = adams["Distance_Case01"]
    body = Body("body", Moments.of_body(1.0, (0, 0, 0), np.diag(INERTIA)))
    machine = Machine(
        (body,),
        (Joint("joint", Free(), "world", "body"),),
        loops=(Loop("rod", "distance", "world", "body", length=2.0),),
        gravity=(0, 0, -G),
    )
    x0 = machine.neutral()
    x0[1] = 2.0
    run = released(machine, series, x0)
    np.testing.assert_allclose(run.x[:, :3], series["Pos"], atol=2e-4)
    np.testing.assert_allclose(run.v[:, :3], series["Vel"], atol=6e-4)
    eom = equations(machine, "constrained")
    wrench = eom.kernel("loop_wrench")(run.x, run.v, np.zeros((len(run.t), 6)))[:, 0]
    # At its own states: the body does not turn, so that b's axes are the world's.
    np.testing.assert_allclose(-wrench[:, :3], series["Rforce"], atol=3e-3)
    assert np.abs(series["Rforce"]).max() > 29


def test_a_spring_and_damper_without_length(adams):
    """Both pull the center of a free body towards the origin."""
    series = adams["TranSpring_Case01"]
    body = Body("body", Moments.of_body(1.0, (0, 0, 0), np.diag(INERTIA)))
    spring = Spring("spring", "world", "body", Moments.of_points([[0, 0, 0]], [10.0]))
    damper = Damper.of_points("damper", "world", "body", [[0, 0, 0]], [0.5])
    machine = Machine(
        (body,),
        (Joint("joint", Free(), "world", "body"),),
        springs=(spring,),
        dampers=(damper,),
        gravity=(0, 0, -G),
    )
    run = released(machine, series)
    np.testing.assert_allclose(run.x[:, :3], series["Pos"], atol=DIGITS)
    np.testing.assert_allclose(run.v[:, :3], series["Vel"], atol=DIGITS)
    pull = 10.0 * run.x[:, 2] + 0.5 * run.v[:, 2]
    np.testing.assert_allclose(pull, series["Rforce"][:, 2], atol=5.1e-5)


def test_a_spring_and_damper_with_length(adams):
    """A massless telescope with a spring carries the body on a ball, at first along y."""
    series = adams["TranSpring_Case02"]
    inertia = Moments.of_body(1.0, (0, 0, 0), np.diag(INERTIA))
    bodies = (Body("tube", None), Body("rod", None), Body("body", inertia))
    joints = (
        Joint("turn", Revolute("x"), "world", "tube"),
        Joint("slide", Prismatic("y"), "tube", "rod", (0, 2, 0), stiffness=100.0, damping=5.0),
        Joint("ball", Spherical(), "rod", "body"),
    )
    machine = Machine(bodies, joints, gravity=(0, 0, -G))
    run = released(machine, series)
    angle, length = run.x[:, 0], 2 + run.x[:, 1]
    position = np.stack([0 * angle, length * np.cos(angle), length * np.sin(angle)], axis=1)
    np.testing.assert_allclose(position, series["Pos"], atol=2e-4)
    wrench = run["joint_wrench"][:, 0, :3]
    along = wrench[:, 1]  # of the ground on the tube, in its axes
    force = -np.stack([0 * along, along * np.cos(angle), along * np.sin(angle)], axis=1)
    np.testing.assert_allclose(force, series["Rforce"], atol=3e-3)
    np.testing.assert_allclose(wrench[:, (0, 2)], 0, atol=1e-9)


def test_an_imposed_motion(adams):
    """A plate driven up along z at 1 m/s; its actuator carries the weight."""
    series = adams["LinActuator_Case01"]
    machine = pendulum(Prismatic("z"), offset=(0, 0, 0), inertia=(1, 1, 1))
    eom = Constrained(machine, [Holonomic("driven", lambda x, t: x - t)])
    run = simulate(
        machine, v0=[1.0], duration=5.0, dt=series["t"][1], formulation=eom, progress=False
    )
    np.testing.assert_allclose(run.x[:, 0], series["Pos"][:, 2], atol=1e-12)
    driving = [
        eom.functions["multipliers"](x, v, 0, t)
        for x, v, t in zip(run.x, run.v, run.t, strict=True)
    ]
    np.testing.assert_allclose(np.array(driving).ravel(), series["RforceA"][:, 2], atol=1e-9)
