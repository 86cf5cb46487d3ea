"""Interactions in runs: both plants, energy balance, laws that know them and laws that do not."""

import casadi as ca
import numpy as np
import pytest
from interaction_samples import constant_push, field
from simulate_machines import free_body, pendulum

from framefree.certify import check
from framefree.control import ComputedTorque, PassivityControl, PDGravity
from framefree.control.references import Hold
from framefree.kernel import compile
from framefree.machine import Interaction
from framefree.motion.tree import Tree
from framefree.simulate import SimulationError, simulate


def test_a_falling_body_in_air_against_its_closed_form():
    """Linear drag: v(t) = g tau (1 - exp(-t / tau)), on both plants."""
    machine = free_body(gravity=(0, 0, -9.81))
    mass = machine.bodies[0].moments.total
    air = Interaction(
        "air", "world", machine.bodies[0].name, lambda twist: ca.vertcat(-3 * twist[:3], 0, 0, 0)
    )
    tau, t = mass / 3.0, 1.0
    expected = -9.81 * tau * (1 - np.exp(-t / tau))
    run = simulate(machine.attach(air), duration=t, dt=1e-3)
    assert abs(run.v[-1, 2] - expected) < 1e-10
    other = simulate(machine.attach(air), duration=t, dt=1e-4, plant="mujoco", every=100)
    assert abs(other.v[-1, 2] - expected) < 2e-3


def test_time_reaches_the_interaction():
    """A push F cos(w t): the velocity is F / (m w) sin(w t), on both plants."""
    machine = free_body(gravity=(0, 0, 0))
    mass = machine.bodies[0].moments.total
    push = Interaction(
        "push",
        "world",
        machine.bodies[0].name,
        lambda pose, time: ca.vertcat(
            pose[:3, :3].T @ ca.vertcat(2 * ca.cos(3 * time), 0, 0), 0, 0, 0
        ),
    )
    run = simulate(machine.attach(push), duration=2.0, dt=1e-3)
    expected = 2 / (3 * mass) * np.sin(3 * run.t)
    assert np.abs(run.v[:, 0] - expected).max() < 1e-10
    other = simulate(machine.attach(push), duration=2.0, dt=1e-4, plant="mujoco", every=100)
    assert np.abs(other.v[:, 0] - 2 / (3 * mass) * np.sin(3 * other.t)).max() < 2e-4
    for integrator in ("implicit", "adaptive", "midpoint"):
        third = simulate(machine.attach(push), duration=2.0, dt=1e-3, integrator=integrator)
        assert np.abs(third.v[:, 0] - 2 / (3 * mass) * np.sin(3 * third.t)).max() < 1e-4


def test_energy_is_accounted_for():
    """Energy changes by the integral of the recorded power of all that is not conservative."""
    rng = np.random.default_rng(0)
    machine = pendulum(3, driven=False)
    machine = machine.attach(
        field("pull", "world", "rod2", rng), field("hold", "rod0", "tip", rng, timed=False)
    )
    x, v = machine.random(rng), rng.normal(size=machine.nv)
    run = simulate(machine, x0=x, v0=v, duration=2.0, dt=5e-4)
    power = run.signals["passive_power"]
    given = np.concatenate([[0], np.cumsum((power[1:] + power[:-1]) / 2 * np.diff(run.t))])
    assert np.abs(run.energy - run.energy[0] - given).max() < 2e-5
    assert (run.signals["dissipation"] >= 0).all()
    assert run.signals["dissipation"].max() > 1e-3
    wrench = run.signals["interaction_wrench"]
    assert wrench.shape == (len(run), 2, 6)


def test_plants_agree():
    rng = np.random.default_rng(1)
    machine = pendulum(2, driven=False).attach(field("pull", "world", "tip", rng, timed=True))
    x, v = machine.random(rng), rng.normal(size=machine.nv)
    ours = simulate(machine, x0=x, v0=v, duration=0.5, dt=1e-4, every=100)
    theirs = simulate(machine, x0=x, v0=v, duration=0.5, dt=1e-4, every=100, plant="mujoco")
    assert np.abs(ours.x - theirs.x).max() < 2e-3
    wrenches = [run.signals["interaction_wrench"] for run in (ours, theirs)]
    assert np.abs(wrenches[0] - wrenches[1]).max() < 2e-2


@pytest.mark.parametrize("plant", ["native", "mujoco"])
def test_a_law_that_knows_the_interaction_does_without_error(plant):
    """The plant has a push that one law's machine has and another's has not."""
    base = pendulum(2)
    windy = base.attach(constant_push("wind", "tip", (3.0, 2.0, 1.0)))
    target = np.array([0.4, -0.3])
    errors = {}
    for name, model in (("knows", windy), ("does not", base)):
        law = PDGravity(stiffness=30.0, damping=8.0, machine=model)
        run = simulate(
            windy, law, Hold(windy, target), duration=6.0, dt=1e-3, plant=plant, every=50
        )
        errors[name] = np.abs(run.x[-1] - target).max()
    assert errors["knows"] < 1e-6
    assert errors["does not"] > 1e-2


def test_the_stated_rate_of_v_counts_interactions():
    rng = np.random.default_rng(4)
    machine = pendulum(2).attach(field("f", "world", "tip", rng, timed=True))
    law = PDGravity(stiffness=20.0, damping=3.0, machine=machine)
    run = simulate(
        machine, law, Hold(machine, np.zeros(2)), x0=np.array([0.5, 0.4]), duration=1.0, dt=1e-4
    )
    V, rate = run.signals["V"], run.signals["V_rate"]
    gained = np.cumsum((rate[1:] + rate[:-1]) / 2 * np.diff(run.t))
    assert np.abs(V[1:] - V[0] - gained).max() < 1e-5 * V.max()


def test_laws_without_time_are_told_so():
    rng = np.random.default_rng(4)
    machine = pendulum(2).attach(field("f", "world", "tip", rng, timed=True))
    law = PassivityControl(machine, K=2.0, Lambda=1.0)
    reference = Hold(machine, np.zeros(2))
    with pytest.raises(SimulationError, match="does not follow the time"):
        simulate(machine, law, reference, duration=0.01, dt=1e-3)
    computed = ComputedTorque(stiffness=100.0, damping=20.0, machine=machine)
    run = simulate(machine, computed, reference, x0=np.array([0.5, 0.4]), duration=2.0, dt=1e-3)
    assert np.abs(run.x[-1]).max() < 1e-6


def test_many_states_give_the_same_bits():
    rng = np.random.default_rng(2)
    machine = pendulum(2, driven=False).attach(field("f", "world", "tip", rng))
    x, v = machine.random(rng, 5), rng.normal(size=(5, machine.nv))
    many = simulate(machine, x0=x, v0=v, duration=0.2, dt=1e-3)
    for i in range(5):
        one = simulate(machine, x0=x[i], v0=v[i], duration=0.2, dt=1e-3)
        assert np.array_equal(one.x, many.x[i])


def test_tunable_numbers_in_runs():
    machine = free_body(gravity=(0, 0, 0))
    push = constant_push("push", machine.bodies[0].name, (1.0, 0, 0))
    tuned = machine.attach(push).tunable("push.force.0")
    mass = machine.bodies[0].moments.total
    run = simulate(tuned, duration=1.0, dt=1e-2, parameters={"push.force.0": 4.0})
    assert abs(run.v[-1, 0] - 4.0 / mass) < 1e-12


def test_c_source_has_it():
    rng = np.random.default_rng(3)
    machine = pendulum(2, driven=False).attach(field("f", "world", "tip", rng))
    function = Tree(machine).functions["forward"]
    text = compile(function).c_source().source
    assert "cos" in text
    assert function.name_in() == ["x", "v", "force", "t"]


def test_check_examines_it():
    rng = np.random.default_rng(9)
    machine = pendulum(3, driven=False).attach(
        field("f", "world", "tip", rng), field("g", "rod0", "rod2", rng, timed=False)
    )
    report = check(machine, states=6, samples=64)
    failed = [finding for finding in report.findings if finding.verdict.name == "FAIL"]
    assert not failed, failed
    named = {finding.name: finding for finding in report.findings}
    assert named["frame_residual"].value < 1e-9
    assert named["energy_drift"].value < 1e-9
