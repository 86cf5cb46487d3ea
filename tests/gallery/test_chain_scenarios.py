"""The chain scenarios hold what they promise; joint forces have the right sign."""

from dataclasses import dataclass

import numpy as np
import pytest

import framefree as ff
from framefree.control.references.base import Reference
from framefree.errors import FramefreeError
from framefree.gallery.machines.chains import chain
from framefree.gallery.scenarios.ports.chain_free import ChainFree
from framefree.gallery.scenarios.ports.chain_measures import (
    body_poses,
    frame_errors,
    rods_to_ball,
    violations_of_s,
)
from framefree.gallery.scenarios.ports.chain_pose import ChainPose
from framefree.gallery.scenarios.ports.chain_reach import ChainReach
from framefree.gallery.scenarios.ports.chain_velocity import ChainVelocity
from framefree.gallery.scenarios.ports.placements import Placements
from framefree.gallery.scenarios.ports.reach_setting import ReachSetting
from framefree.machine import MachineError
from framefree.simulate import simulate
from framefree.simulate.measures import rate_error, rms


def broken(outcome):
    return [promise for promise in outcome.promises if not promise.holds]


def test_chain_free():
    outcome = ChainFree().run(progress=False)
    assert not broken(outcome)
    wanted = {"momentum_drift", "joint_violation_m"}
    assert wanted <= outcome.metrics.keys()
    assert outcome.metrics["joint_force_peak_n"] > 0.1


@pytest.mark.parametrize("scenario", [ChainPose, ChainVelocity])
def test_chain_pose_and_velocity(scenario):
    outcome = scenario(bodies=3).run(progress=False)
    assert not broken(outcome)
    assert {"lyapunov_rate_error", "js_max"} <= outcome.metrics.keys()


def test_chain_reach():
    outcome = ChainReach(long=0).run(progress=False)
    assert not broken(outcome)
    wanted = {
        "lyapunov_rate_error",
        "js_max",
        "end_position_rms_m",
        "end_attitude_rms_deg",
        "clearance_min_m",
        "ignoring_joints_end_position_rms_m",
    }
    assert wanted <= outcome.metrics.keys()
    assert len(outcome.animations) == 3
    assert outcome.animations[0].spheres


@pytest.mark.slow
def test_the_ball_elsewhere():
    setting = ReachSetting(3)
    placed = Placements(3, 20, 4, setting.start, setting.reference, 4.0, 2e-3, 3.0)
    assert all(promise.holds for promise in placed.promises())
    assert placed.metrics["placements_ok"] == 20
    assert placed.metrics["inside_ok"] == 4
    assert placed.metrics["inside_depth_max_m"] > 0.02
    starts, balls = placed.scenes
    rods = body_poses(placed.machine.numeric, starts)
    gaps = rods_to_ball(rods, balls[:, None], 0.15, 0.2, 0.03).min(axis=1)
    assert gaps[:20].min() >= 0.03
    assert gaps[:20].min() < 0.1  # near enough to matter
    assert placed.metrics["placements_clear_without_avoidance"] < 20


@pytest.mark.slow
def test_chain_reach_with_placements():
    outcome = ChainReach(long=0, placements=100).run(progress=False)
    assert not broken(outcome)
    assert outcome.metrics["placements_ok"] == 100


def test_the_end_is_reached_in_mujoco():
    setting = ReachSetting(5)
    run = simulate(
        setting.machine, setting.law(), setting.reference, setting.start,
        duration=4.0, dt=1e-3, plant="mujoco", record=(),
    )  # fmt: skip
    gap, angle = frame_errors(run, "end")
    late = run.t > 3.0
    assert rms(gap[late]) < 1e-3
    assert rms(angle[late]) < 0.1
    assert run["clearance"].min() > 0.0
    assert violations_of_s(run).max() < 1e-10


@pytest.mark.slow
@pytest.mark.parametrize("plant", ["native", "mujoco"])
def test_chain_reach_with_twelve_bodies(plant):
    outcome = ChainReach(plant=plant).run(progress=False)
    assert not broken(outcome)


@dataclass(frozen=True, eq=False)
class Wrong(Reference):
    right: Reference

    def at(self, t):
        found = dict(self.right.at(t))
        found["end.acceleration"] = found["end.acceleration"] * 0.99
        return found


def test_a_wrong_acceleration_spoils_the_rate_of_V():
    setting = ReachSetting(2)
    errors = []
    for reference in (setting.reference, Wrong(setting.reference)):
        run = simulate(
            setting.machine, setting.law(avoiding=False), reference, setting.start,
            duration=2.0, dt=1e-3, record=(),
        )  # fmt: skip
        errors.append(rate_error(run.t, run["V"], run["V_rate"]))
    assert errors[0] < 1e-6
    assert errors[1] > 1e-4


@pytest.mark.parametrize("formulation", ["maximal", "tree"])
def test_joints_of_a_hanging_chain_carry_the_weights_below(formulation):
    masses = [1.0, 2.0, 0.5, 3.0]
    machine = chain(4, masses=masses, held=True, port="none", spring="none")
    down = np.zeros(machine.nv)
    down[1] = np.pi / 2
    x = machine.integrate(machine.neutral(), down)
    run = simulate(machine, x0=x, duration=0.01, dt=1e-3, formulation=formulation)
    R = body_poses(machine, run.x)[0, :, :3, :3]
    force = np.einsum("bij,bj->bi", R, run["joint_wrench"][0, :, :3])
    below = 9.81 * np.cumsum(masses[::-1])[::-1]
    assert np.allclose(force, np.outer(below, [0, 0, 1]), atol=1e-9)


def test_multipliers_are_what_the_child_exerts_on_the_parent():
    machine = chain(3, held=True, port="none", spring="none")
    down = np.zeros(machine.nv)
    down[1] = np.pi / 2
    x = machine.integrate(machine.neutral(), down)
    eom = ff.equations(machine, "maximal")
    x, v = eom.kernel("from_joints")(x, np.zeros(machine.nv))
    nothing = np.zeros(eom.sizes["force"]), np.zeros(machine.nv)
    lam = eom.kernel("kkt_multipliers")(x, v, *nothing).reshape(-1, 3)
    # Body axes: x points down, so a child that pulls its parent down has lam > 0 along x.
    assert np.allclose(lam, np.outer(9.81 * np.array([3.0, 2.0, 1.0]), [1, 0, 0]), atol=1e-9)


def test_chains_that_cannot_reach():
    for options, words in (
        ({"short": 1}, "two bodies or more, got 1"),
        ({"short": 0, "long": 0}, "needs a short or a long chain"),
        ({"placements": -1}, "0 or more `placements`"),
    ):
        with pytest.raises(FramefreeError, match=words):
            ChainReach(**options).run(progress=False)


def test_chains_that_cannot_be():
    for options, words in (
        ({"n": 0}, "at least one body"),
        ({"port": "half"}, "`port` of a chain"),
        ({"spring": "soft"}, "`spring` of a chain"),
    ):
        with pytest.raises(MachineError, match=words):
            chain(**options)
