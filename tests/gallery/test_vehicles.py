"""Vehicles with arms: verdicts on their matrices, published numbers, and the scenarios."""

from dataclasses import fields

import casadi as ca
import numpy as np
import pytest

from framefree.control.law import OpenLoop
from framefree.control.passive import FreeFloating, PassivityControl, Rolling
from framefree.gallery.machines import auv as vehicle_numbers
from framefree.gallery.machines.auv import auv, auv_rest
from framefree.gallery.machines.rover import WHEEL, rolling, rover_arm
from framefree.gallery.machines.space_arm import space_arm
from framefree.gallery.scenarios import SCENARIOS
from framefree.gallery.scenarios.vehicles.auv_arm import AuvArm
from framefree.gallery.scenarios.vehicles.auv_arm_parts import DiveLoop, pitch
from framefree.gallery.scenarios.vehicles.rover_arm import RoverArm
from framefree.gallery.scenarios.vehicles.space_arm import SpaceArm
from framefree.gallery.scenarios.vehicles.vehicle_checks import (
    largest_jump,
    residual_promises,
    residuals,
)
from framefree.motion.tree import Tree
from framefree.simulate import simulate
from published import published


@pytest.mark.parametrize("make", [auv, space_arm, rover_arm])
def test_verdicts_on_the_coriolis_matrices_at_200_states(make):
    found = residuals(make())
    failed = [promise.text for promise in residual_promises(found) if not promise.holds]
    assert failed == []


def test_verdicts_can_fail():
    good = {"skew_residual": 1e-16, "bias_residual": 1e-16, "adjoint_bias_residual": 1e-16,
            "adjoint_skew_residual": 0.3, "printed_skew_residual": 1e-16,
            "printed_bias_residual": 0.3}  # fmt: skip
    assert all(promise.holds for promise in residual_promises(good))
    for key, value in good.items():
        wrong = {**good, key: 0.3 if value < 0.1 else 1e-16}
        assert sum(not promise.holds for promise in residual_promises(wrong)) == 1


def test_a_jump_is_told_from_what_is_steep():
    t = np.linspace(0, 1, 1001)[:, None]
    steep = np.hstack([np.sin(40 * t), np.abs(t - 0.3), np.exp(8 * t)])
    assert largest_jump(steep) < 1.1
    jumping = steep.copy()
    jumping[500:, 0] += 1.0
    assert largest_jump(jumping) > 10


# ---------------------------------------------------------------------- published numbers


def test_space_arm_has_the_inertia_and_generalised_jacobian_of_the_published_model():
    machine = space_arm(published=True)
    tree, freedom = Tree(machine), FreeFloating()
    x = ca.SX.sym("x", machine.nx)
    state = tree.at(x)
    at = ca.Function(
        "at", [x], [state.mass, state.jacobian("gripper").value @ freedom.basis(state),
                    state.frame_pose("gripper")]
    )  # fmt: skip
    given = published("vehicles")["ets_vii"]
    for case in given["recomputed"].values():
        M, J, G = (value.full() for value in at([0, 0, 0, 1, 0, 0, 0, *case["q"]]))
        assert np.allclose(M, case["H"], rtol=0, atol=1e-9)
        assert np.allclose(G[:3, 3], case["ee"], rtol=0, atol=1e-12)
        in_world = np.kron(np.eye(2), G[:3, :3]) @ J
        assert np.allclose(in_world, case["generalized_jacobian"], rtol=0, atol=1e-11)


def test_hull_has_the_published_numbers_turned_to_z_up():
    given = published("vehicles")["bluerov2_heavy"]
    machine = auv()
    hull = machine.fluid.immersed[0]
    assert machine.bodies[0].moments.total == given["m"]
    assert hull.volume == given["volume"]
    assert machine.fluid.density == given["rho_freshwater"]
    assert np.allclose(np.diag(hull.added_mass), given["added_mass"])
    assert np.allclose(np.diag(hull.linear_drag), given["D_linear"])
    assert np.allclose(np.diag(hull.quadratic_drag), given["D_quadratic"])
    assert np.allclose(hull.center, -np.array(given["r_b"]))
    assert np.allclose(vehicle_numbers.HULL_INERTIA, given["I"])


# ---------------------------------------------------------------------- the machines


def test_thrusters_push_in_all_directions():
    machine = auv()
    B = Tree(machine).functions["input_matrix"](auv_rest(machine)).full()
    assert np.linalg.matrix_rank(B) == machine.nv
    assert np.linalg.svd(B[:6, :8])[1].min() > 0.1


def test_wheels_that_roll_leave_their_contact_points_at_rest():
    """The constraint against the velocity of the wheel's material point, from its twist."""
    machine = rover_arm()
    law = PassivityControl(machine, freedom=Rolling(rolling(machine)))
    assert law.joints[:2] == ("left", "right")
    tree, rng = Tree(machine), np.random.default_rng(0)
    x_symbol = ca.SX.sym("x", machine.nx)
    basis = ca.Function("N", [x_symbol], [law.freedom.basis(tree.at(x_symbol))])
    for _ in range(10):
        x = machine.random(rng)
        v = basis(x).full() @ rng.normal(size=8)
        assert np.abs(v[:3]).max() > 1e-3
        pose = tree.functions["body_pose"](x).full().reshape(-1, 4, 4)
        twist = tree.functions["body_velocity"](x, v).full()
        for name in ("wheel_left", "wheel_right"):
            b = machine.body_index[name]
            r = pose[b, :3, :3].T @ [0, 0, -WHEEL]
            assert np.abs(twist[b, :3] + np.cross(twist[b, 3:], r)).max() < 1e-13


# ---------------------------------------------------------------------- the scenarios


def test_they_run_by_name():
    for one in (AuvArm, SpaceArm, RoverArm):
        assert SCENARIOS[one.name] is one
        words = one.__doc__ or ""
        assert all(f"{field.name} :" in words for field in fields(one))


def test_rover_arm():
    outcome = RoverArm(duration=12.0, dt=4e-3).run(progress=False)
    failed = [p.text for p in outcome.promises if not p.holds]
    assert [text for text in failed if "law states" not in text] == []
    assert outcome.metrics["lyapunov_rate_error"] < 1e-4
    assert outcome.figures
    assert outcome.animations


def test_space_arm():
    outcome = SpaceArm(duration=60.0, dt=0.02, mujoco_s=0.0).run(progress=False)
    # The step is four times that of the scenario: momentum drifts 256 times as much.
    failed = [p.text for p in outcome.promises if not p.holds]
    assert [text for text in failed if "momentum" not in text and "law states" not in text] == []
    assert outcome.metrics["momentum_drift"] < 3e-8
    assert "not asked" in outcome.notes[0]


def test_space_arm_moves_in_mujoco_as_here():
    pytest.importorskip("mujoco")
    machine = space_arm()
    push = OpenLoop(machine, lambda t: [2 * ca.sin(t + k) for k in range(6)])
    options = {"duration": 4.0, "dt": 0.02, "control_dt": 0.02, "record": (), "progress": False}
    here = simulate(machine, push, **options)
    there = simulate(machine, push, plant="mujoco", **options)
    assert np.abs(here.v).max() > 0.1
    assert np.abs(machine.difference(here.x, there.x)).max() < 1e-10
    assert np.abs(here.v - there.v).max() < 1e-10


def test_joints_found_for_the_loop_carry_the_gripper_along_its_path():
    machine = auv()
    loop = DiveLoop(machine, 30.0)
    times = np.linspace(0.0, 30.0, 61)
    path = loop.joints().function
    x = np.array([path(t)[0].full().ravel() for t in times])
    gripper = Tree(machine).functions["frame_pose:gripper"]
    poses = np.array([gripper(one).full() for one in x])
    assert np.abs(poses - loop.wanted(times)).max() < 1e-4
    assert pitch(x).max() > 80.0
    assert pitch(x).min() < -80.0


@pytest.mark.slow
@pytest.mark.parametrize("scenario", [AuvArm, SpaceArm, RoverArm])
def test_all_promises_hold(scenario):
    outcome = scenario().run(progress=False)
    assert [p.text for p in outcome.promises if not p.holds] == []
