"""Short ways of machines, equations and references give what the long ways give."""

import numpy as np
import pytest

import framefree as ff
from framefree.control import ControlError
from framefree.control.references import FramePath, MinimumJerk, joint_reference
from framefree.gallery import MACHINES


@pytest.fixture(scope="module")
def iiwa():
    return MACHINES["iiwa"]()


@pytest.fixture(scope="module")
def driven(iiwa):
    return iiwa.attach(*ff.machine.motors(iiwa.joints))


def test_forward_kinematics_is_the_product_of_poses(iiwa):
    x = iiwa.random(np.random.default_rng(1), 3)
    poses = iiwa.forward_kinematics(x)
    assert set(poses) == {p.name for p in (*iiwa.bodies, *iiwa.frames)}
    tool = iiwa.frame("tool")
    np.testing.assert_allclose(poses["tool"], poses[tool.body] @ np.asarray(tool.pose), atol=1e-14)
    one = iiwa.forward_kinematics(x[1], "tool")
    np.testing.assert_array_equal(one, poses["tool"][1])
    np.testing.assert_array_equal(one, ff.equations(iiwa).frame_pose(x[1], "tool"))


def test_forward_kinematics_of_loops_and_tunable_numbers():
    five_bar = MACHINES["five-bar"]().numeric
    x = five_bar.neutral()
    first = five_bar.bodies[0].name
    assert five_bar.forward_kinematics(x, first).shape == (4, 4)
    with pytest.raises(ff.FramefreeError, match="nowhere"):
        five_bar.forward_kinematics(x, "nowhere")


def test_state_matrices_by_input_are_slopes_of_forward(driven):
    """Central differences of the acceleration under inputs."""
    eom, rng = ff.equations(driven), np.random.default_rng(2)
    x, v, u = driven.random(rng), rng.normal(size=7), rng.normal(size=7)
    A, B = eom.state_matrices(x, v, u)
    forward, h = eom.kernel("forward:u"), 1e-6
    for k in range(7):
        step = h * np.eye(7)[k]
        slope = (forward(x, v, u + step) - forward(x, v, u - step)) / (2 * h)
        np.testing.assert_allclose(B[7:, k], slope, atol=1e-5 * np.abs(B).max())
        slope = (forward(x + step, v, u) - forward(x - step, v, u)) / (2 * h)
        np.testing.assert_allclose(A[7:, k], slope, atol=1e-5 * np.abs(A).max())
    small = eom.linearise(x, v, u)
    np.testing.assert_allclose(small.A, A, atol=1e-9 * np.abs(A).max())
    assert small.inputs == driven.u_names
    assert small.names[0] == f"x.{eom.v_names[0]}"


def test_references_at_many_times(iiwa):
    goal = iiwa.random(np.random.default_rng(3))
    path = MinimumJerk(iiwa, points=[iiwa.neutral(), goal], times=[0, 1])
    times = np.array([0.0, 0.25, 1.0])
    sampled = path.sample(times)
    assert sampled["x"].shape == (3, 7)
    for k, t in enumerate(times):
        x, v, a = (value.full().ravel() for value in path.at(t).values())
        for name, value in zip("xva", (x, v, a), strict=True):
            np.testing.assert_allclose(sampled[name][k], value, atol=1e-14)
            np.testing.assert_allclose(path.sample(t)[name], value, atol=1e-14)
    np.testing.assert_allclose(sampled["x"][2], goal, atol=1e-14)
    with pytest.raises(ControlError, match="one time in s or a list"):
        path.sample("now")


def test_matrices_of_references_keep_their_places():
    """A pose is not transposed: its last row is (0, 0, 0, 1), also at one time."""
    import casadi as ca

    def pose(t):
        turn = [[ca.cos(t), -ca.sin(t)], [ca.sin(t), ca.cos(t)]]
        rows = [[*turn[0], 0, t], [*turn[1], 0, 2 * t], [0, 0, 1, 3 * t], [0, 0, 0, 1]]
        return ca.vertcat(*(ca.horzcat(*row) for row in rows))

    sampled = FramePath("tool", pose).sample([0.3, 0.7])["tool.pose"]
    assert sampled.shape == (2, 4, 4)
    for t, G in zip((0.3, 0.7), sampled, strict=True):
        np.testing.assert_allclose(G, np.array(ca.DM(pose(t))), atol=1e-15)
    np.testing.assert_array_equal(FramePath("tool", pose).sample(0.7)["tool.pose"], sampled[1])


def test_a_frame_path_becomes_a_joint_reference(iiwa):
    x0 = np.array([0.0, 0.6, 0.0, -1.2, 0.0, 0.8, 0.0])
    start = iiwa.forward_kinematics(x0, "tool")

    def pose(t):
        import casadi as ca

        s = t**3 * (10 - 15 * t + 6 * t**2)
        G = ca.SX(start)
        G[1, 3] += 0.2 * s
        return G

    path = FramePath("tool", pose)
    joints = joint_reference(iiwa, path, np.linspace(0, 1, 21), x0)
    times = np.linspace(0.01, 0.99, 57)
    reached = iiwa.forward_kinematics(joints.sample(times)["x"], "tool")
    np.testing.assert_allclose(reached, path.sample(times)["tool.pose"], atol=1e-3)
    with pytest.raises(ControlError, match="give more `times`"):
        joint_reference(iiwa, path, [0, 1], x0, position_tolerance=1e-6)


def test_joint_references_of_paths_that_cannot_be(iiwa):
    far = np.eye(4)
    far[:3, 3] = 5.0
    with pytest.raises(ControlError, match="not reached"):
        joint_reference(iiwa, FramePath("tool", lambda t: far), [0, 1])
    path = MinimumJerk(iiwa, points=[iiwa.neutral(), iiwa.neutral()], times=[0, 1])
    with pytest.raises(ControlError, match="no pose of a frame"):
        joint_reference(iiwa, path, [0, 1])


def test_a_motor_leaves_the_name_to_its_joint(driven):
    """In machines from robot files motors are called like their joints; neither is in the way."""
    changed = driven.replace("joint4", damping=0.3)
    assert changed.joint("joint4").damping == [0.3]
    assert changed.actuators == driven.actuators
    geared = driven.replace("actuator:joint4", gear=2.0)
    assert geared.joint("joint4").damping == [0.0]
    assert geared.actuators[3].gear == [2.0]
    assert driven.tunable("joint4.damping", "joint4.gear").parameters.names
    crossed = driven.attach(ff.machine.JointForce("link4", "joint1"))
    with pytest.raises(ff.FramefreeError, match="say which: `actuator:link4`, `body:link4`"):
        crossed.replace("link4", name="other")


def test_rows_of_state_matrices_have_names(driven):
    eom = ff.equations(driven)
    A, B = eom.state_matrices(np.zeros(7), np.zeros(7), np.zeros(7))
    assert A.shape == (len(eom.state_names),) * 2
    assert B.shape == (len(eom.state_names), len(driven.u_names))
    assert eom.state_names[::7] == ("x.joint1", "v.joint1")


MISTYPED = {
    "iwa": lambda arm: MACHINES["iwa"],
    "heavytop": lambda arm: ff.gallery.SCENARIOS["heavytop"],
    "tre": lambda arm: ff.equations(arm, "tre"),
    "forwrd": lambda arm: ff.equations(arm).kernel("forwrd"),
    "rk5": lambda arm: ff.simulate(arm, duration=1, dt=1, integrator="rk5"),
    "mujco": lambda arm: ff.simulate(arm, duration=1, dt=1, plant="mujco"),
    "simulat": lambda arm: ff.simulat,
    "tol": lambda arm: arm.frame("tol"),
}


@pytest.mark.parametrize("name", MISTYPED)
def test_mistyped_names_are_answered_by_near_ones(iiwa, name):
    with pytest.raises((ff.FramefreeError, AttributeError), match=f"{name}.*did you mean"):
        MISTYPED[name](iiwa)


MISTAKEN = {
    "`x0` must be numbers": lambda arm: ff.simulate(arm, x0={"a": 0}, duration=1, dt=1),
    "`v0` must be numbers": lambda arm: ff.simulate(arm, v0="0", duration=1, dt=1),
    "`parameters` must map": lambda arm: ff.simulate(arm, parameters=3.0, duration=1, dt=1),
    "`plant` of SetParameters must map": lambda arm: ff.simulate.SetParameters(0.1, plant=3.0),
    "`laws` of LawsTogether must map": lambda arm: ff.control.LawsTogether(arm, 3.0),
    "must be names of numbers": lambda arm: ff.control.Adaptation(3.0),
    "`machine` must be a Machine": lambda arm: ff.equations("iiwa"),
    "`vary` must map": lambda arm: ff.campaign.campaign(arm, vary=0.3, runs=2, out="no"),
}


@pytest.mark.parametrize("message", MISTAKEN)
def test_wrong_kinds_of_arguments_are_told_what_is_right(iiwa, message):
    with pytest.raises(ff.FramefreeError, match=message):
        MISTAKEN[message](iiwa)
