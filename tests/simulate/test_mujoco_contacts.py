"""MuJoCo solves contacts itself: statics, sliding, softness, records, and what is refused."""

from dataclasses import dataclass

import numpy as np
import pytest

from framefree.control.law import Command, Law, NumericCommand, NumericLaw
from framefree.gallery.machines.touching import ball, block, coin, resting_arm, stack
from framefree.geometry import Moments
from framefree.machine import (
    Body,
    Contact,
    ContactShape,
    Fluid,
    Free,
    Immersed,
    Joint,
    Machine,
    Prismatic,
    Revolute,
    motors,
)
from framefree.motion.constrained import Constrained
from framefree.motion.constrained.rows import Holonomic
from framefree.simulate import SetParameters, SimulationError, simulate

pytest.importorskip("mujoco")
G = 9.81


@dataclass(frozen=True)
class Lean(Law):
    """Press with 3 Nm."""

    machine: Machine

    def control(self, t, x, v, reference, memory):
        return Command(-3.0 - 0.5 * v)


@dataclass(frozen=True)
class LeanInNumbers(NumericLaw):
    """The same in NumPy."""

    machine: Machine

    def command(self, t, x, v, reference, memory):
        return NumericCommand(-3.0 - 0.5 * v)


def at(z, turn=(1.0, 0, 0, 0)):
    return np.array([0.0, 0, z, *turn])


def hard(machine, x0=None, v0=None, *, duration=1.0, dt=1e-3, **more):
    options = {"plant": "mujoco", "contacts": True, "every": 10} | more
    return simulate(machine, x0=x0, v0=v0, duration=duration, dt=dt, **options)


def sag(g=G, dmin=0.9, dmax=0.95, width=1e-3, constant=0.02):
    """Depth at which (1 - d) g = d k r, k = d / (dmax constant)^2, d by MuJoCo's sigmoid."""
    low, high = 0.0, width / 2
    for _ in range(80):
        r = (low + high) / 2
        d = dmin + (dmax - dmin) * 2 * (r / width) ** 2
        low, high = (r, high) if (1 - d) * g > d * d / (dmax * constant) ** 2 * r else (low, r)
    return low


def test_a_ball_and_a_block_carry_their_weight_and_sink_as_soft_as_mujoco_is():
    for machine, z, mass in ((ball(3.0), 0.1, 3.0), (block(0.7), 0.05, 0.7)):
        run = hard(machine, at(z), duration=2.0)
        assert abs(run["ground.normal_force"][-1] / (mass * G) - 1) < 1e-6
        assert run["ground.friction_force"][-1] < 1e-6
        assert abs(run.x[-1, 2] - z - run["ground.gap"][-1]) < 1e-9
    alone = hard(ball(3.0), at(0.1), duration=2.0)["ground.gap"][-1]
    assert abs(-alone / sag() - 1) < 1e-5
    assert 3e-4 < sag() < 4e-4


def test_a_stack_and_an_arm_at_rest_obey_statics():
    run = hard(stack(), np.concatenate([at(0.05), at(0.15)]), duration=2.0)
    assert abs(run["top.normal_force"][-1] / (0.7 * G) - 1) < 1e-3
    assert abs(run["ground.normal_force"][-1] / (3.7 * G) - 1) < 1e-3
    arm = resting_arm(friction=0.0)
    angle = np.arccos((0.3 - 0.02) / 0.8)
    run = hard(arm, [angle], duration=3.0)
    # about the hinge: the weight at half the rod's lever against the force at the tip's
    assert abs(run["ground.normal_force"][-1] / (2.0 * G / 2) - 1) < 1e-3
    assert abs(run.v[-1, 0]) < 1e-4


@pytest.mark.parametrize("heading", [0.0, 0.7])
def test_a_sliding_block_stops_where_coulomb_says(heading):
    mu, speed = 0.4, 1.0
    along = np.array([np.cos(heading), np.sin(heading), 0.0])
    z = 0.05 - sag()
    run = hard(block(friction=mu), at(z), [*(speed * along), 0, 0, 0], dt=5e-4, every=1)
    way, expected = run.x[:, :3] @ along, speed**2 / (2 * mu * G)
    assert abs(way[-1] / expected - 1) < 5e-3
    # MuJoCo lifts what slides: it hops, less than a millimetre high, so that contact comes and goes
    early = (run.t < 0.2) & (run["ground.normal_force"] > 1e-3)
    assert early.sum() > 100
    assert run["ground.gap"].max() < 1e-3
    ratio = run["ground.friction_force"][early] / run["ground.normal_force"][early]
    assert ratio.max() < mu * (1 + 1e-9)
    assert ratio.min() > mu * (1 - 1e-2)
    assert abs(run["ground.slip"][0] - speed) < 1e-12
    assert abs(ratio[0] - mu) < 1e-9


def test_what_sticks_creeps_slowly():
    slope = 0.2
    g = G * np.array([np.sin(np.arctan(slope)), 0, -np.cos(np.arctan(slope))])
    run = hard(block(friction=0.4).replace(gravity=tuple(g)), at(0.05 - sag()))
    assert 0 < run.v[-1, 0] < 1e-4
    assert abs(run["ground.friction_force"][-1] / g[0] - 1) < 1e-3


def test_our_compliant_forces_are_not_applied_as_well():
    soft, stiff = (hard(ball(stiffness=k), at(0.12), duration=0.5) for k in (1e2, 1e9))
    assert np.array_equal(soft.x, stiff.x)
    assert "interaction_wrench" not in soft.signals
    assert soft.meta["applied_by_us"] == []
    assert soft.meta["contacts"]["solref"] == [0.02, 1.0]


def test_without_the_option_mujoco_has_no_contacts_of_its_own():
    options = {"duration": 0.2, "dt": 2e-5, "every": 50, "x0": at(0.11)}
    run, native = (simulate(ball(), plant=plant, **options) for plant in ("mujoco", "native"))
    assert "contacts" not in run.meta
    assert np.abs(run.x - native.x).max() < 3e-4
    assert np.abs(hard(ball(), **options).x - native.x).max() > 3e-3


def test_records_do_not_depend_on_how_a_run_is_cut():
    fine, coarse = (hard(stack(), np.concatenate([at(0.06), at(0.2)]), every=k) for k in (1, 25))
    for word in ("gap", "normal_force", "friction_force", "slip"):
        assert np.array_equal(fine[f"top.{word}"][::25], coarse[f"top.{word}"])
    assert np.isfinite(fine["top.gap"]).all()
    assert abs(fine["top.gap"][0] - 0.04) < 1e-9


def test_friction_is_tunable_and_changes_at_events():
    machine = block().tunable("ground.friction", "block.mass")
    v0 = [1.0, 0, 0, 0, 0, 0]
    runs = [
        hard(machine, at(0.0496), v0, dt=5e-4, parameters={"ground.friction": mu})
        for mu in (0.2, 0.4)
    ]
    ways = [run.x[-1, 0] for run in runs]
    assert abs(ways[0] / ways[1] - 2) < 0.05
    change = SetParameters(0.1, {"ground.friction": 0.0})
    slipping = hard(machine, at(0.0496), v0, dt=5e-4, events=[change])
    assert abs(slipping.v[-1, 0] - (1 - 0.4 * G * 0.1)) < 0.03
    speeds = np.diff(slipping.x[slipping.t > 0.11, 0]) / (10 * 5e-4)
    assert np.ptp(speeds) < 1e-9


def test_a_body_and_its_parent_may_touch():
    moments = Moments.of_body(1.0, (0, 0, 0), 0.01 * np.eye(3))
    slide = Joint("slide", Prismatic("z"), "table", "puck")
    machine = Machine(
        (Body("table", moments), Body("puck", moments)),
        (Joint("hinge", Revolute("z"), "world", "table"), slide),
        interactions=(
            Contact("on", "table", "puck", ContactShape("box", (1, 1, 0.2)),
                    ContactShape("sphere", 0.1), 1e5),
        ),
    )  # fmt: skip
    run = hard(machine, [0.0, 0.2], duration=1.5)
    assert abs(run["on.normal_force"][-1] / G - 1) < 1e-3


def test_laws_press_by_expressions_and_in_numbers():
    arm = resting_arm(friction=0.0)
    arm = arm.attach(*motors(arm.joints))
    angle, lever = np.arccos(0.28 / 0.8), 0.8 * np.sin(np.arccos(0.28 / 0.8))
    options = {"x0": [angle], "duration": 2.0, "control_dt": 1e-2, "dt": 1e-3}
    runs = [hard(arm, law=law(arm), **options) for law in (Lean, LeanInNumbers)]
    for run in runs:
        pressed = 2.0 * G / 2 + 3.0 / lever
        assert abs(run["ground.normal_force"][-1] / pressed - 1) < 2e-3
    assert np.abs(runs[0].x - runs[1].x).max() < 1e-9
    assert np.abs(runs[0]["ground.gap"] - runs[1]["ground.gap"]).max() < 1e-9


def test_forces_that_would_have_to_know_those_of_contact_are_refused():
    wet = ball().attach(Fluid([Immersed("ball", added_mass=0.1 * np.eye(6))]))
    with pytest.raises(SimulationError, match="added mass of body `ball`"):
        hard(wet, at(0.2))
    arm = resting_arm()
    held = Constrained(arm, [Holonomic("held", lambda x, t: x[0] - 1.0)])
    with pytest.raises(SimulationError, match="constraint `held`"):
        hard(arm, [1.0], formulation=held)


def test_what_cannot_be_is_refused_by_name():
    with pytest.raises(SimulationError, match=r"needs `plant=\"mujoco\"`"):
        simulate(ball(), duration=0.1, dt=1e-3, contacts=True)
    with pytest.raises(SimulationError, match="no contact shapes"):
        hard(ball().detach("ground"), at(0.2))
    with pytest.raises(SimulationError, match=r"contact `ground`, disk in frame `coin`.*cylinder"):
        hard(coin(), at(0.2))
    with pytest.raises(SimulationError, match="`joint_wrench` with `contacts=True`"):
        hard(ball(), at(0.2), record=("joint_wrench",))
    moments = Moments.of_body(1.0, (0, 0, 0), 0.01 * np.eye(3))
    tray = Contact("lid", "ball", "tray", ContactShape("sphere", 0.1), ContactShape("plane"), 1e5)
    machine = ball().attach(Body("tray", moments), Joint("t", Free(), "world", "tray"), tray)
    with pytest.raises(SimulationError, match=r"contact `lid`, half_space in frame `tray`.*box"):
        hard(machine, np.concatenate([at(0.2), at(-1.0)]))


def test_settings_of_the_solver_are_taken_and_told():
    """A contact that is softer sinks deeper: (1 - d) g = d k r, k by the time constant."""
    soft = hard(block(), at(0.05), duration=3.0, contacts={"solref": (0.05, 1.0)})
    usual = hard(block(), at(0.05), duration=3.0, contacts={})
    assert soft["ground.gap"][-1] / usual["ground.gap"][-1] > 3
    assert soft.meta["contacts"]["solref"] == [0.05, 1.0]
    assert soft["ground.normal_force"][-1] == pytest.approx(G, rel=1e-6)


def test_settings_that_there_are_not_are_refused():
    with pytest.raises(SimulationError, match="no setting `hardness`; choose from: solref"):
        hard(block(), contacts={"hardness": 1.0})
    with pytest.raises(SimulationError, match="`solref` of MuJoCo's contacts must be 2 finite"):
        hard(block(), contacts={"solref": 1.0})
