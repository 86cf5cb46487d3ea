"""Networks learn what a basis leaves, models are stored, trusted, and become parts of machines."""

from dataclasses import replace

import casadi as ca
import jax
import numpy as np
import pytest
from learn_samples import LENGTH, fluid_samples, labelled, states, truth

from framefree.gallery.machines.chains import chain
from framefree.gallery.scenarios.learned.fluid_chain import TrueFluid
from framefree.learn import (
    BodyMotion,
    GuardedModel,
    LearnError,
    RodLibrary,
    Training,
    Trivial,
    ball_radius,
    conformal_bound,
    learn,
    load,
    noisy,
    save,
)
from framefree.learn.plain import WorldNetwork, learn_joint_network, learn_world_network
from framefree.learn.training import initial_layers, network_values
from framefree.motion import equations

SHORT = Training(hidden=(16, 16), steps=150, decay=1e-5)


@pytest.fixture(scope="module")
def misspecified():
    """Samples of a fluid whose drag halves above 0.8 m/s, some to learn and some to judge."""
    fluid = TrueFluid()
    return [
        labelled(states(chain(3), n, seed, speed=0.6), fluid) for n, seed in ((300, 0), (200, 1))
    ]


@pytest.fixture(scope="module")
def learned(misspecified):
    data = noisy(misspecified[0], 0.03)
    options = {"training": SHORT, "features": ("velocity", "rate")}
    return learn(data, library=RodLibrary(LENGTH), **options)


def test_a_network_learns_what_the_basis_leaves(learned, misspecified):
    test = misspecified[1]
    assert test.error(learned.model) < 0.5 * test.error(learned.basis.model)
    assert test.error(learned.model) < 0.03
    held = learned.trained.history[:, 2]
    assert held.min() == held[learned.trained.history[:, 0] == learned.trained.best][0]


def test_the_same_seed_gives_the_same_weights(misspecified):
    data = misspecified[0].take(slice(0, 60))
    weights = [
        learn(data, library=RodLibrary(LENGTH), training=replace(SHORT, steps=10, seed=seed))
        .model.network.weights
        for seed in (3, 3, 4)
    ]  # fmt: skip
    assert np.array_equal(weights[0], weights[1])
    assert not np.array_equal(weights[0], weights[2])


def test_kernel_jax_and_numpy_agree(learned):
    """The whole model by native code, by JAX, and its network by plain NumPy."""
    model, rng = learned.model, np.random.default_rng(0)
    twist, down = rng.normal(size=6), np.array([0.0, 0.6, 0.8])
    native = model(twist, np.eye(3), down)
    before = jax.config.jax_enable_x64
    jax.config.update("jax_enable_x64", True)
    try:
        motion = (twist, np.eye(3), down, np.zeros(0), np.zeros(3))
        by_jax = model.kernel().jax()(*motion, model.coefficients)
    finally:
        jax.config.update("jax_enable_x64", before)
    assert np.abs(np.asarray(by_jax) - native).max() < 1e-12 * np.abs(native).max()
    network = model.network
    v = ca.DM(twist[:3] - model.current)
    arguments = tuple(ca.SX(one) for one in (v, ca.DM(twist[3:]), ca.DM(down), ca.DM(0, 1)))
    function = ca.Function("i", [], [network.invariants(*arguments), network.wrenches(*arguments)])
    i, p = (np.array(one) for one in function.call([]))
    c = network_values(network.layers, (i.ravel() - network.means) / network.widths, np.tanh)
    basis = model.library.columns(*arguments) @ ca.DM(model.coefficients[: len(model.library)])
    total = np.array(ca.evalf(ca.SX(basis))).ravel() + p @ c
    assert np.abs(total - native).max() < 1e-12 * np.abs(native).max()


def test_weights_may_be_inputs(learned):
    model = learned.model
    motion, weights = BodyMotion.symbols(), ca.SX.sym("w", model.network.weights.size)
    function = ca.Function("f", [*motion[:3], weights], [model.wrench(motion, None, weights)])
    at = (np.ones(6), np.eye(3), np.array([0, 0, -1.0]))
    given = np.array(function(*at, model.network.weights)).ravel()
    assert np.allclose(given, model(*at), rtol=1e-12)
    other = replace(model, network=model.network.with_weights(2 * model.network.weights))
    twice = np.array(function(*at, 2 * model.network.weights)).ravel()
    assert np.allclose(twice, other(*at), rtol=1e-12)


def test_plain_networks_learn_one_heading_and_know_no_other(misspecified):
    data, test = misspecified
    world, _ = learn_world_network(data, SHORT)
    assert test.error(world) < 0.6
    joints, _ = learn_joint_network(data, replace(SHORT, steps=40))
    assert data.misfit(joints.predicted(data)) < 0.9
    with pytest.raises(LearnError, match="machine with"):
        joints.predicted(fluid_samples(9, bodies=2))


def test_models_come_back_from_disk_to_the_bit(learned, misspecified, tmp_path):
    at = (np.ones((4, 6)), np.tile(np.eye(3), (4, 1, 1)), np.tile([0, 0, -1.0], (4, 1)))
    world = WorldNetwork(
        initial_layers((15, 4, 6), np.random.default_rng(0)), np.zeros(15), np.ones(15), np.ones(6)
    )
    guarded = GuardedModel.of(learned.model, misspecified[0])
    for i, model in enumerate((learned.model, learned.basis.model, guarded, world)):
        again = load(save(model, tmp_path / f"{i}.npz"))
        assert type(again) is type(model)
        assert np.array_equal(again(*at), model(*at))
    assert load(tmp_path / "0.npz").formula() == learned.model.formula()


def test_what_is_no_model_is_refused(tmp_path):
    (tmp_path / "text.npz").write_text("no")
    np.savez(tmp_path / "other.npz", a=np.ones(3))
    np.savez(tmp_path / "pickled.npz", model=np.array([{"a": 1}], dtype=object))
    for name in ("text", "other", "pickled", "absent"):
        with pytest.raises(LearnError, match=name):
            load(tmp_path / f"{name}.npz")
    with pytest.raises(LearnError, match=r"NAME\.npz"):
        save(truth(), tmp_path / "model.pkl")


def test_a_model_is_a_part_of_a_machine():
    """Forces of the machine with the model exceed those without by T^T tau of the model."""
    machine, model = chain(3), truth()
    samples = fluid_samples(5)
    with_model = model.added_to(machine)
    a = np.random.default_rng(0).normal(size=(5, machine.nv))
    forces = [equations(m, "tree").inverse(samples.x, samples.v, a) for m in (machine, with_model)]
    assert np.allclose(forces[0] - forces[1], samples.labels, rtol=1e-10, atol=1e-9)
    tunable = with_model.tunable("learned.body2.numbers.0")
    assert tunable.parameters.defaults[0] == model.coefficients[0]


def test_trust_is_one_at_the_data_and_zero_far_away(learned, misspecified):
    data = misspecified[0]
    guarded = GuardedModel.of(learned.model, data)
    assert data.error(guarded) == pytest.approx(data.error(learned.model), rel=1e-9)
    rest = (np.eye(3), np.array([0, 0, -1.0]))
    assert np.array_equal(guarded(np.full(6, 100.0), *rest), np.zeros(6))
    assert not np.array_equal(learned.model(np.full(6, 100.0), *rest), np.zeros(6))


def test_the_bound_holds_as_often_as_stated():
    """Many draws of calibration and new motions: covered in about 1 - alpha or more."""
    model, rng, covered = truth(), np.random.default_rng(0), []
    samples = noisy(fluid_samples(240, bodies=1, motions=120), 0.05)
    for _ in range(60):
        motions = rng.permutation(120)
        bound = conformal_bound(model, samples.of_motions(motions[:19]), alpha=0.2)
        new = samples.of_motions(motions[19:])
        misfit = np.linalg.norm(new.whiten(new.predicted(model) - new.labels), axis=1)
        covered.append(np.mean([misfit[new.motion == m].max() <= bound for m in motions[19:]]))
    assert 0.75 < np.mean(covered) < 0.88
    with pytest.raises(LearnError, match="99 or more"):
        conformal_bound(model, samples.of_motions(np.arange(20)), alpha=0.01)


def test_the_radius_of_the_ball():
    machine = chain(2)
    kd = {body.name: 10 * np.asarray(body.moments.matrix6) for body in machine.bodies}
    thin = ball_radius(1.0, machine, kd)
    floor = {name: value + np.diag([0, 0, 0, 0.1, 0, 0]) for name, value in kd.items()}
    assert ball_radius(1.0, machine, floor) < 0.1 * thin
    with pytest.raises(LearnError, match="positive definite"):
        ball_radius(1.0, machine, {name: np.zeros((6, 6)) for name in kd})


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: learn(fluid_samples(40)), "give a `library`"),
        (lambda: learn(fluid_samples(40), training=SHORT), "needs a `symmetry`"),
        (lambda: learn(fluid_samples(5), symmetry=Trivial(), training=SHORT), "too few"),
        (lambda: Training(hidden=()), "must be positive"),
        (lambda: Training(held=1.5), "between 0 and 1"),
    ],
)
def test_bad_lessons_are_refused(make, words):
    with pytest.raises(LearnError, match=words):
        make()
