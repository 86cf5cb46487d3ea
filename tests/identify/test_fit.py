"""Fits find what is true, say how well, and what they cannot tell."""

from dataclasses import replace

import numpy as np
import pytest
from identify_samples import UNKNOWN, guessed, motion, record, truth, two_links

from framefree.gallery.machines.classics import box
from framefree.geometry import Moments
from framefree.identify import IdentifyError, Recording, fit
from framefree.identify.base import base_parameters
from framefree.identify.excitation import excite
from framefree.identify.filters import LowPass, smooth_motion
from framefree.identify.possible import Bounds, nearest
from framefree.identify.regression import regress
from framefree.machine import Body, Free, Joint, Machine
from framefree.motion.regressor import moments_of_vector, moments_vector
from framefree.motion.tree import Tree

pytest.importorskip("clarabel", reason="needs the extra `identify`")


def test_exact_data_give_exact_forces():
    machine = two_links()
    found = fit(guessed(machine), record(machine, rate=50.0, exact=True), UNKNOWN)
    rng = np.random.default_rng(1)
    x, (v, a) = machine.random(rng, 50), rng.normal(size=(2, 50, 2))
    force, off = Tree(machine).inverse(x, v, a), Tree(found.machine).inverse(x, v, a)
    assert np.abs(off - force).max() < 1e-9 * np.abs(force).max()
    assert np.abs(found.base.B @ truth(machine, found) - found.estimate).max() < 1e-9


def test_noise_and_delay():
    machine = two_links()
    data = record(machine, noise=2e-5, delay=0.004)
    test = record(machine, seed=5, noise=2e-5, delay=0.004)
    found = fit(guessed(machine), data, UNKNOWN, cutoff=8.0, test=[test])
    assert abs(found.delay - 0.004) < 5e-5
    assert found.test[0].error.max() < 0.01
    for body in found.machine.bodies:
        assert not body.moments.problems()
    missed = fit(guessed(machine), data, UNKNOWN, cutoff=8.0, delay=False)
    assert missed.training[0].error.max() > 3 * found.training[0].error.max()


@pytest.mark.slow
def test_intervals_hold_what_is_true():
    machine, covered = two_links(), []
    for seed in range(6):
        data = record(machine, seed=2, noise=5e-5)
        noise = np.random.default_rng(seed).normal(size=data.x.shape)
        data = Recording(data.t, record(machine, seed=2).x + 5e-5 * noise, force=data.force)
        found = fit(guessed(machine), data, UNKNOWN, cutoff=8.0)
        covered.append(found.covers(truth(machine, found)))
    assert np.concatenate(covered).mean() >= 0.96
    # And they are not wide for nothing: half of them would not hold it.
    assert np.mean([found.covers(truth(machine, found), 0.3)]) < 0.9


def test_outliers_do_not_pull():
    machine = two_links()
    data = record(machine, noise=1e-5)
    force = data.force.copy()
    force[::501] += 200.0
    bad = Recording(data.t, data.x, force=force)
    plain, robust = (fit(guessed(machine), one, UNKNOWN, cutoff=8.0) for one in (data, bad))
    assert robust.spikes > 0 == plain.spikes
    size = np.abs(plain.estimate) + 0.05
    assert (np.abs(robust.estimate - plain.estimate) / size).max() < 0.03


def test_impossible_estimates_give_way():
    """A light body measured badly: least squares alone would give it a negative moment."""
    prior = moments_vector(two_links().bodies[1].moments)
    beta = prior.copy()
    beta[4] -= 2 * abs(beta[4])
    bounds = Bounds((np.arange(10),), (10,), ((11, 10),))
    deviations = np.array([*(0.01 * np.abs(prior) + 1e-3), 0.1, 0.1])
    found = nearest(
        np.eye(12), np.array([*beta, -0.05, 0.3]), np.diag(deviations**2),
        np.array([*prior, 0.1, 0.0]), np.ones(12), bounds,
    )  # fmt: skip
    assert found.moved
    assert np.linalg.eigvalsh(moments_of_vector(found.value[:10]).matrix4)[0] > 0
    assert found.value[10] >= 0
    assert abs(found.value[11]) <= found.value[10] + 1e-8
    # What is possible as it is stays to the last digits.
    kept = nearest(
        np.eye(12), np.array([*prior, 0.3, 0.2]), np.diag(deviations**2),
        np.array([*(1.1 * prior), 0.1, 0.0]), np.ones(12), bounds,
    )  # fmt: skip
    assert not kept.moved
    assert np.allclose(kept.value, [*prior, 0.3, 0.2], rtol=0, atol=1e-13)


def test_what_is_possible_does_not_depend_on_the_frame():
    """The same data and another frame of the last body: the same machine comes out."""
    machine = two_links()
    turn = np.eye(4)
    turn[:3, :3] = [[0, -1, 0], [1, 0, 0], [0, 0, 1]]
    turn[:3, 3] = 0.1, -0.2, 0.05
    known = guessed(machine)
    lower, elbow = known.bodies[1], known.joints[1]
    other = replace(
        known,
        bodies=[known.bodies[0], replace(lower, inertia=lower.moments.moved(turn))],
        joints=[known.joints[0], replace(elbow, child_pose=turn)],
    )
    data = record(machine, rate=50.0, exact=True)
    one, two = fit(known, data, UNKNOWN), fit(other, data, UNKNOWN)
    moved = one.machine.bodies[1].moments.moved(turn).matrix4
    assert np.allclose(moved, two.machine.bodies[1].moments.matrix4, atol=2e-5)


def test_too_little_excitation_names_what_cannot_be_told():
    machine = two_links()
    path = motion(machine, size=1.0)
    t = np.arange(0.0, 8.0, 0.02)
    x, v, a = path.sample(t).values()
    for values in (x, v, a):
        values[:, 1] = 0.0
    data = Recording(t, x, v, a, Tree(machine).inverse(x, v, a))
    found = fit(guessed(machine), data, UNKNOWN, delay=False)
    assert {"elbow.armature", "elbow.damping", "elbow.friction"} & set(found.untold)
    assert "shoulder.damping" not in found.untold
    assert any("too little excitation" in doubt for doubt in found.doubts)
    with pytest.raises(IdentifyError, match=r"tell nothing of.*elbow\.damping"):
        fit(guessed(machine), data, ["elbow.damping"], delay=False)


def test_base_parameters_are_the_textbook_ones_of_a_pendulum():
    """About a vertical axis only the moment about it is told; about a level one also m c."""
    body = Body("rod", Moments.of_body(2.0, (0.1, 0.2, 0.3), np.eye(3) * 0.1))
    joint = two_links().joints[1]
    machine = Machine([body], [replace(joint, name="hinge", parent="world", child="rod")])
    model = machine.tunable(*(f"rod.{w}" for w in ("mass", "first.y", "first.z", "second.yy")))
    rng = np.random.default_rng(0)
    Y = Tree(model).kernel("regressor")(
        rng.normal(size=(20, 1)), *rng.normal(size=(2, 20, 1)), model.parameters.defaults
    )[0]
    base = base_parameters(model.parameters.names, Y.reshape(-1, 4))
    assert base.labels == ("rod.first.y", "rod.first.z", "rod.second.yy")
    assert base.untold == ("rod.mass",)


def test_a_free_body_is_identified_from_inputs_and_poses():
    machine = box()
    assert isinstance(machine.joints[0].kind, Free)
    body = machine.bodies[0].name
    designed = excite(machine, [body], duration=6.0, harmonics=5, rounds=20, reach=0.4)
    assert designed.condition < designed.first_condition * 1.001
    t = np.arange(0.0, 6.0, 0.005)
    x, v, a = designed.reference.sample(t).values()
    data = Recording(t, x, force=Tree(machine).inverse(x, v, a))
    known = machine.replace(body, inertia=machine.bodies[0].moments * 1.3)
    found = fit(known, data, [body], cutoff=6.0, delay=False)
    assert found.base.rank == 10
    assert np.allclose(
        found.machine.bodies[0].moments.matrix4, machine.bodies[0].moments.matrix4, rtol=2e-3,
        atol=1e-4 * machine.bodies[0].moments.total,
    )  # fmt: skip


def test_excitation_keeps_its_limits():
    machine = two_links()
    limits = {"reach": 0.7, "speed": 1.1, "acceleration": 4.0}
    designed = excite(machine, UNKNOWN, duration=10.0, rounds=30, **limits)
    x, v, a = designed.reference.sample(np.linspace(0, 10, 800)).values()
    for values, bound in zip((x, v, a), limits.values(), strict=True):
        assert np.abs(values).max() <= 1.02 * bound
    assert np.abs(v[0]).max() < 1e-9
    assert np.abs(a[0]).max() < 1e-9


@pytest.mark.slow
def test_a_closed_chain_is_identified_along_its_motions():
    from framefree.gallery.machines.five_bar import five_bar, five_bar_at
    from framefree.motion import Constrained

    machine = five_bar()
    eom = Constrained(machine)
    rng = np.random.default_rng(0)
    start = five_bar_at(machine, (0.25, 0.35))
    states = [eom.project(machine.integrate(start, 0.05 * rng.normal(size=machine.nv)),
                          rng.normal(size=machine.nv)) for _ in range(80)]  # fmt: skip
    x, v = np.array([s.x for s in states]), np.array([s.v for s in states])
    force = rng.normal(size=v.shape)
    a = eom.forward(x, v, force)
    t = np.arange(80) * 0.01
    data = Recording(t, x, force=force)
    bodies = [body.name for body in machine.bodies if not body.massless][:2]
    from framefree.identify.rows import Prepared, UnknownModel

    model = UnknownModel(machine, tuple(bodies))
    Y, b = Prepared(model, Recording(t, x, v, a, data.force), None).rows()
    # Loop forces drop out: along the motions that loops allow, the true numbers explain all.
    assert np.abs(Y @ model.prior - b).max() < 1e-7 * max(np.abs(b).max(), 1.0)


def test_regression_is_not_fooled_by_coloured_noise():
    """Noise that is like itself from row to row: plain deviations would be far too small."""
    rng = np.random.default_rng(0)
    wrong = 0
    for _ in range(40):
        e = rng.normal(size=460)
        for k in range(1, len(e)):
            e[k] += 0.95 * e[k - 1]
        Y = np.ones((400, 1, 1))
        result = regress(Y, (3.0 + e[60:])[:, None], coloured=True)
        wrong += abs(result.value[0] - 3.0) > 2.58 * np.sqrt(result.covariance[0, 0])
    assert wrong <= 6


def test_filters_differentiate_and_shift():
    t = np.arange(0, 4, 1e-3)
    w = 2 * np.pi * 1.3
    low_pass = LowPass(10.0, 1e-3)
    inside = slice(low_pass.margin, len(t) - low_pass.margin)
    sine, cosine = np.sin(w * t), np.cos(w * t)
    for order, expected in enumerate((sine, w * cosine, -(w**2) * sine)):
        found = low_pass.apply(np.sin(w * t), order)
        assert np.abs(found - expected[inside]).max() < 3e-4 * np.abs(expected).max()
    late = low_pass.apply(np.sin(w * t), late=0.0123)
    assert np.abs(late - np.sin(w * (t[inside] + 0.0123))).max() < 3e-4
    fast = low_pass.apply(np.sin(2 * np.pi * 25.0 * t))
    assert np.abs(fast).max() < 1e-4


@pytest.mark.slow
def test_rotations_are_filtered_on_their_group():
    machine = Machine(
        [Body("b", Moments.of_body(1.0, np.zeros(3), np.eye(3)))],
        [Joint("j", Free(), "world", "b")],
    )
    designed = motion(machine, period=6.0, size=0.3)
    t = np.arange(0, 6, 2e-3)
    x, v, a = designed.sample(t).values()
    low_pass = LowPass(10.0, 2e-3)
    inside = slice(low_pass.margin, len(t) - low_pass.margin)
    for found, expected in zip(smooth_motion(machine, x, low_pass), (x, v, a), strict=True):
        gap = np.abs(found - expected[inside])[5:-5].max()
        assert gap < 2e-3 * np.abs(expected).max()
