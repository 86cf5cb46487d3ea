"""Small examples with printed results: joints, a body in a plane, an arm [Konz2024, ch. 4]."""

import casadi as ca
import numpy as np
import pytest

from framefree.control.prototype import APPROACHES, PrototypeControl
from framefree.control.prototype.transport import by_errors, by_frame
from framefree.control.references import JointPath
from framefree.gallery.machines.arms import iiwa
from framefree.gallery.machines.planar import planar_body, slider, wheel
from framefree.gallery.machines.scara import scara
from framefree.gallery.scenarios.prototypes import scara as arm
from framefree.geometry import Moments
from framefree.machine import Body, Frame, Joint, Machine, Revolute, motors
from framefree.simulate import simulate
from framefree.simulate.measures import rate_error

TIMES = (0, 0.25, 0.5, 1, 1.5, 2, 2.5, 3)
THETA = {
    "energy": (-45, -26.978, 1.979, 16.176, -25.010, -41.056, 0.408, 42.721),
    "particle": (-45, -33.950, -13.559, 9.002, -26.141, -40.746, 0.814, 43.007),
}
TORQUE = {
    "energy": (2.9309, 0.5130, -0.7415, -0.9024, 0.4290, 0.9307, 0.0146, -0.9372),
    "particle": (1.8942, 0.4467, -0.0602, -1.0924, 0.3877, 0.9119, 0.0124, -0.9388),
}
DISTANCES = {
    "particle": (1, 0.73576, 0.40601, 0.09158, 0.01735, 0.00050),
    "body": (1, 0.93556, 0.58789, 0.14707, 0.02910, 0.00087),
    "energy": (1, 0.62658, 0.37430, 0.23152, 0.13508, 0.04618),
}


def torsional(k):
    return Moments(0.0, np.zeros(3), k * np.diag([0.5, 0.5, 0.0]))


def rows(run, times):
    return [int(np.argmin(np.abs(run.t - t))) for t in times]


def simulated(machine, law, reference, x, v, duration, dt=1e-3):
    return simulate(
        machine, law, reference, x, v, duration=duration, dt=dt, record=(), progress=False
    )


@pytest.mark.parametrize("approach", APPROACHES)
def test_revolute_joint(approach):
    machine = wheel(0.2)
    reference = JointPath(machine, lambda t: [np.pi / 4 * ca.sin(0.8 * np.pi * t)])
    given = [{"wheel": torsional(k)} for k in (1.0, 4.2, 9.0)]
    law = PrototypeControl(machine, *given, approach=approach)
    run = simulated(machine, law, reference, [-np.pi / 4], [0.0], 3.0)
    key, at = ("particle" if approach == "particle" else "energy"), rows(run, TIMES)
    assert np.allclose(np.rad2deg(run.x[at, 0]), THETA[key], atol=6e-4)
    assert np.allclose(run.u[at, 0], TORQUE[key], atol=6e-5)


@pytest.mark.parametrize("approach", APPROACHES)
def test_planar_body(approach):
    machine = planar_body()
    turning = lambda t: [0 * t, 0 * t, ca.cos(np.pi * t), ca.sin(np.pi * t)]  # noqa: E731
    reference = JointPath(machine, turning)
    flat = np.diag([0.5, 0.5, 1.0])
    given = [
        {"body": Moments.of_body(m, (0, 0, 0), k * flat)}
        for m, k in ((1.0, 0.3), (4.0, 3.42), (4.0, 10.8))
    ]
    law = PrototypeControl(machine, *given, approach=approach)
    angle = np.deg2rad(100)
    first = [0, 1, np.cos(angle), np.sin(angle)]
    run = simulated(machine, law, reference, first, [0, 0, 0], 5.0)
    at = rows(run, (0, 0.5, 1, 2, 3, 5))
    assert np.allclose(np.linalg.norm(run.x[at, :2], axis=1), DISTANCES[approach], atol=6e-6)
    v_E = run.v[at, :2] - moving_error(run, at, approach)
    energy = 0.5 * (v_E**2).sum(axis=1) + 2 * (run.x[at, :2] ** 2).sum(axis=1)
    printed = {
        "body": (6.9348, 2.0212, 0.9281, 0.0689, 0.0029, 0),
        "energy": (6.9348, 1.2121, 0.3513, 0.1242, 0.0421, 0.0049),
    }
    if approach in printed:
        assert np.allclose(energy, printed[approach], atol=6e-5)


def moving_error(run, at, approach):
    """Body components of the reference's velocity, carried to the body's place."""
    if approach == "particle":
        return np.zeros((len(at), 2))
    x, y, c, s = run.x[at].T
    across, up = -np.pi * y, np.pi * x
    return np.column_stack([c * across + s * up, -s * across + c * up])


def test_particle_errors_of_position_decay_like_a_critically_damped_spring():
    t = np.array([0, 0.5, 1, 2, 3, 5])
    assert np.allclose(DISTANCES["particle"], (1 + 2 * t) * np.exp(-2 * t), atol=6e-6)


def test_prismatic_joint_is_the_same_for_all_approaches():
    machine = slider(0.5)
    mbar, dbar, kbar = 2.0, 3.0, 5.0
    point = np.zeros(3), np.zeros((3, 3))
    given = [{"slider": Moments(k, *point)} for k in (mbar, dbar, kbar)]
    symbols = [ca.SX.sym(n) for n in ("x", "v", "x_R", "v_R", "a_R")]
    x, v, x_R, v_R, a_R = symbols
    numbers = (0.3, -0.2, 1.1, 0.7, -0.4)
    expected = 0.5 * (-0.4 - dbar / mbar * (-0.9) - kbar / mbar * (-0.8))
    for approach in APPROACHES:
        law = PrototypeControl(machine, *given, approach=approach)
        u = law.control(0, x, v, {"x": x_R, "v": v_R, "a": a_R}, ca.SX(0, 1)).u
        assert float(ca.Function("u", symbols, [u])(*numbers)) == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize(("gains", "approaches", "columns"), [
    (arm.joint_gains, ("body", "energy"), (1, 2)),
    (arm.tool_gains, ("particle", "energy"), (3, 4)),
])  # fmt: skip
def test_scara(gains, approaches, columns):
    machine = scara()
    reference = arm.line(machine)
    for approach in approaches:
        options = {}
        if approach == "energy" and columns == (3, 4):
            options["transport"] = by_errors(machine, lambda x, x_R: arm.tool(x) - arm.tool(x_R))
        law = PrototypeControl(machine, *gains(), approach=approach, **options)
        run = simulated(machine, law, reference, np.deg2rad([-30, 90]), [0, 0], 5.0)
        at = rows(run, arm.PUBLISHED[:, 0])
        assert np.allclose(np.rad2deg(run.x[at]), arm.PUBLISHED[:, columns], atol=6e-4)


def six_joint_arm():
    bodies, joints = [], []
    axes, offsets = (
        "zyyxyx",
        ((0, 0, 0), (0, 0, 0.1), (0, 0, 0.4), (0.3, 0, 0), (0, 0, 0), (0, 0, 0)),
    )
    for i, (axis, offset) in enumerate(zip(axes, offsets, strict=True)):
        bodies.append(Body(f"l{i}", Moments.of_body(1.0, (0.02, 0, 0.05), 0.01 * np.eye(3))))
        parent = "world" if i == 0 else f"l{i - 1}"
        joints.append(Joint(f"j{i}", Revolute(axis), parent, f"l{i}", parent_pose=offset))
    machine = Machine(bodies, joints, (Frame("tool", "l5", (0.1, 0, 0)),), name="six")
    return machine.attach(*motors(machine.joints))


def test_work_space_gains_with_a_transport_map_of_the_tool():
    """Gains at the tool alone: the error energy falls by the dampers for a moving reference."""
    machine = six_joint_arm()
    gain = Moments.of_body(2.0, (0.01, 0, 0), np.diag([0.02, 0.03, 0.04]))
    given = [{"tool": k * gain} for k in (1.0, 12.0, 40.0)]
    law = PrototypeControl(machine, *given, transport=by_frame(machine, "world", "tool"))
    rest = np.array([0.2, 0.4, 0.3, 0.5, 0.9, -0.4])
    reference = JointPath(machine, lambda t: ca.DM(rest) + 0.2 * ca.sin(t + ca.DM(range(6))))
    first = np.array(reference.function(0.0)[0]).ravel() + 0.05
    run = simulated(machine, law, reference, first, np.zeros(6), 1.0)
    assert np.allclose(run["W_rate"], -run["W_loss"], rtol=1e-7, atol=1e-9)
    assert run["W"][-1] < 0.2 * run["W"][0]


# ---------------------------------------------------------------------- a joint to spare


@pytest.mark.parametrize("moving", [False, True])
def test_seven_joint_arm_with_gains_of_its_tool_and_joints(moving):
    """Joint gains give inertia to the motion that leaves the tool in its place."""
    machine = iiwa()
    machine = machine.attach(*motors(machine.joints))
    tool, turn = (Moments.of_body(m, (0, 0, 0), J * np.eye(3)) for m, J in ((2, 0.1), (0, 0.05)))
    own = {"tool": tool, **{(joint.parent, joint.child): turn for joint in machine.joints}}
    given = [{pair: c * moments for pair, moments in own.items()} for c in (1.0, 8.0, 16.0)]
    law = PrototypeControl(machine, *given, approach="body")
    rng = np.random.default_rng(0)
    place, off = rng.uniform(-1, 1, 7), 0.4 * rng.normal(size=7)
    size = 0.3 if moving else 0.0
    path = JointPath(machine, lambda t: [place[i] + size * ca.sin(1.5 * t + i) for i in range(7)])
    run = simulated(machine, law, path, place + off, np.zeros(7), 4.0, dt=5e-4)
    # As many motors as joints: the prototype is the closed loop, whatever the reference does.
    assert np.abs(run["matching_force"]).max() < 1e-11
    assert np.abs(run.x[-1] - run.reference["x"][-1]).max() < 1e-5
    assert np.abs(run.x[0] - run.reference["x"][0]).max() > 0.3
    if not moving:
        rate, loss = run["W_rate"], run["W_loss"]
        assert np.allclose(rate, -loss, rtol=0, atol=1e-10 * loss.max())
        assert rate_error(run.t, run["W"], -loss) < 1e-6
