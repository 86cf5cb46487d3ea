"""Friction in joints is learned as it is: in span exactly, noisy within its stated deviations."""

import math
from dataclasses import replace

import numpy as np
import pytest

from framefree.control import Assisted, ComputedTorque
from framefree.gallery.machines.arms import revolute_chain
from framefree.geometry import se3
from framefree.learn import JointFriction, LearnError, Samples, fit_friction, load, save
from framefree.machine import motors
from framefree.motion import equations

TRUE = JointFriction(("joint0", "joint1"), [[0.7, 1.5, 0.4, 0.03], [0.0, 0.8, 0.0, 0.1]])


def states(machine, n=400, seed=0):
    rng = np.random.default_rng(seed)
    return rng.uniform(-1, 1, (n, machine.nx)), 0.3 * rng.normal(size=(n, machine.nv))


def friction_samples(machine, n=400, noise=0.0, seed=0):
    x, v = states(machine, n, seed)
    # The residual of the bare equations, found by the other engine of the machine with friction.
    a = np.random.default_rng(seed + 1).normal(size=v.shape)
    y = equations(machine).inverse(x, v, a) - equations(TRUE.added_to(machine)).inverse(x, v, a)
    rng = np.random.default_rng(seed + 2)
    return Samples.of_states(machine, x, v, y + noise * rng.normal(size=y.shape))


def test_friction_is_found_exactly_and_terms_that_there_are_none_of_are_dropped():
    fit = fit_friction(friction_samples(revolute_chain(2)))
    assert np.allclose(fit.numbers, TRUE.numbers, rtol=1e-6, atol=1e-12)
    assert fit.numbers[1, 0] == fit.numbers[1, 2] == 0.0
    assert fit.left.max() < 1e-6


def test_forces_are_those_that_the_written_formula_gives():
    machine = revolute_chain(2)
    v = np.array([[0.05, -0.2]])
    s = math.tanh(0.05 / 0.03)
    expected = [-(0.7 * 0.05 + 1.5 * s + 0.4 * s * s), -0.8 * math.tanh(-0.2 / 0.1)]
    assert np.allclose(TRUE.forces(machine, v), [expected], atol=1e-15)


def test_deviations_cover_what_they_state():
    machine, inside = revolute_chain(2), []
    for seed in range(30):
        fit = fit_friction(friction_samples(machine, noise=0.05, seed=10 * seed))
        told = fit.deviations[0] > 0
        off = (fit.numbers - TRUE.numbers)[0][told] / fit.deviations[0][told]
        inside += list(np.abs(off) < 1.0)
    assert 0.55 < np.mean(inside) < 0.80  # 68 percent within one deviation


def test_friction_does_not_drive():
    machine = revolute_chain(2)
    x, v = states(machine)
    fit = fit_friction(Samples.of_states(machine, x, v, 2.0 * v))
    assert np.allclose(fit.numbers[:, :3], 0.0)
    assert (fit.forces(machine, v) * v <= 0).all()


def test_the_choice_of_world_does_not_matter():
    machine = revolute_chain(2)
    samples = friction_samples(machine, noise=0.02)
    turned = np.array(se3.exp(np.array([0.4, -0.2, 1.0, 0.3, 0.9, -1.4])))
    joints = [
        replace(one, parent_pose=turned @ np.asarray(one.parent_pose, float))
        if one.parent == "world"
        else one
        for one in machine.joints
    ]
    gravity = turned[:3, :3] @ np.asarray(machine.gravity, float)
    there = replace(machine, joints=tuple(joints), gravity=gravity)
    again = replace(samples, machine=there)
    assert np.array_equal(fit_friction(again).numbers, fit_friction(samples).numbers)


def test_assisted_laws_have_the_friction_in_their_machine():
    bare = revolute_chain(2)
    machine = replace(bare, actuators=motors(bare.joints, " motor"))
    law = Assisted(ComputedTorque(machine, 16.0, 8.0), TRUE)
    assert [float(j.friction[0]) for j in law.machine.joints] == [1.5, 0.8]
    with pytest.raises(LearnError, match="friction or damping that is known"):
        Assisted(law, TRUE)


def test_saved_and_loaded(tmp_path):
    fit = fit_friction(friction_samples(revolute_chain(2), noise=0.02))
    again = load(save(fit, tmp_path / "friction.npz"))
    assert again.joints == fit.joints
    assert np.array_equal(again.numbers, fit.numbers)
    assert again.formula() == fit.formula()


def test_the_formula_can_be_read():
    told = JointFriction(("hip",), [[0.5, 2.0, 0.0, 0.01]]).formula().splitlines()
    assert told[0] == "hip: force = -[(0.5) v + (2) tanh(v / (0.01))]"
    assert "Nm s/rad" in told[1]


def test_bad_input_is_refused():
    machine = revolute_chain(2)
    x, v = states(machine)
    zero = np.zeros_like(v)
    with pytest.raises(LearnError, match="8 or more"):
        fit_friction(Samples.of_states(machine, x[:5], v[:5], zero[:5]))
    with pytest.raises(LearnError, match="joint `joint0` moves at one speed only"):
        fit_friction(Samples.of_states(machine, x, 0 * v + 0.3, zero))
    with pytest.raises(LearnError, match="known: set both to zero"):
        fit_friction(Samples.of_states(TRUE.added_to(machine), x, v, zero))
    with pytest.raises(LearnError, match="takes no `bodies`"):
        TRUE.added_to(machine, ["link0"])
    with pytest.raises(LearnError, match=r"\(1, 4\) finite numbers"):
        JointFriction(("hip",), [[1.0, np.nan, 0.0, 0.1]])
