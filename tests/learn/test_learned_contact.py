"""A learned contact: the law of `machine.Contact`, found with its plane, whatever the world."""

from dataclasses import replace

import numpy as np
import pytest

from framefree.control import Assisted, ComputedTorque, Impedance
from framefree.gallery.machines.arms import driven_iiwa
from framefree.geometry import se3, so3
from framefree.learn import LearnedContact, LearnError, Samples, fit_contact, load, noisy, save
from framefree.learn.symmetry import axis_frame
from framefree.machine import Contact, ContactShape
from framefree.motion import equations

CENTER, RADIUS = (0.1, 0.2, 0.3), 0.02
NORMAL = np.array([-0.8, 0.36, 0.48])
MATTER = (6000.0, 4.0, 0.35, 0.01)


def true_contact(exponent=1.0, matter=MATTER, offset=-0.45):
    return LearnedContact("link7", CENTER, RADIUS, [*matter, *NORMAL, offset], exponent)


def as_part(model, name="wall"):
    """Return the same contact as the part that machines have: the other implementation."""
    k, c, mu, slip = model.coefficients[:4]
    G = np.eye(4)
    G[:3, :3], G[:3, 3] = axis_frame(model.normal), model.normal * model.coefficients[7]
    center = np.eye(4)
    center[:3, 3] = CENTER
    return Contact(
        name, "world", "link7", ContactShape("half_space", pose=G),
        ContactShape("sphere", RADIUS, center), k, c, mu, slip, model.exponent,
    )  # fmt: skip


def touching_states(machine, n=400, seed=0, speed=0.1):
    """Return states near the plane, about half of them in touch."""
    rng = np.random.default_rng(seed)
    x = np.array([0.3, 0.6, -0.2, -1.4, 0.3, 0.9, 0.1]) + 0.05 * rng.normal(size=(n, 7))
    return x, speed * rng.normal(size=(n, 7))


def plane_through_the_middle(exponent=1.0, matter=MATTER):
    machine = driven_iiwa(friction=False)
    x, _ = touching_states(machine)
    tool = equations(machine).kernel("frame_pose:tool")(x)[:, :3, 3]
    offset = float(np.median(tool @ NORMAL)) - RADIUS
    return true_contact(exponent, matter, offset)


def contact_samples(model, n=400, seed=0, speed=0.1):
    machine = driven_iiwa(friction=False)
    x, v = touching_states(machine, n, seed, speed)
    a = np.zeros_like(v)
    plant = machine.attach(as_part(model))
    y = equations(machine).inverse(x, v, a) - equations(plant).inverse(x, v, a)
    return Samples.of_states(machine, x, v, y, bodies=["link7"])


@pytest.mark.parametrize("exponent", [1.0, 1.5])
def test_wrenches_are_those_of_the_part_of_machines(exponent):
    model = plane_through_the_middle(exponent)
    samples = contact_samples(model)
    predicted = samples.predicted(model)
    assert np.abs(samples.labels).max() > 1
    assert np.allclose(predicted, samples.labels, atol=1e-10 * np.abs(samples.labels).max())


@pytest.mark.parametrize("exponent", [1.0, 1.5])
def test_matter_and_plane_are_found_exactly(exponent):
    model = plane_through_the_middle(exponent)
    fit = fit_contact(contact_samples(model), CENTER, RADIUS)
    assert fit.model.exponent == exponent
    assert fit.residual < 1e-6
    assert np.allclose(fit.model.coefficients, model.coefficients, rtol=1e-5, atol=1e-7)
    assert fit.untold == ()


def test_noise_is_told_by_the_deviations():
    model = plane_through_the_middle()
    off = []
    for seed in range(6):
        samples = noisy(contact_samples(model, seed=seed), 0.02, 100 + seed)
        fit = fit_contact(samples, CENTER, RADIUS, 1.0)
        off += list((fit.model.coefficients - model.coefficients) / fit.model.deviations)
    assert 0.5 < np.sqrt(np.mean(np.square(off))) < 1.6


def turned_machine(machine, G):
    joints = [
        replace(one, parent_pose=G @ np.asarray(one.parent_pose, float))
        if one.parent == "world"
        else one
        for one in machine.joints
    ]
    gravity = G[:3, :3] @ np.asarray(machine.gravity, float)
    return replace(machine, joints=tuple(joints), gravity=gravity)


@pytest.mark.parametrize("seed", range(3))
def test_a_world_moved_anywhere_changes_nothing(seed):
    G = np.array(se3.exp(np.random.default_rng(seed).normal(size=6)))
    model = plane_through_the_middle()
    samples = noisy(contact_samples(model), 0.02, 100)
    there = Samples.of_states(
        turned_machine(samples.machine, G), samples.x, samples.v, samples.labels, bodies=["link7"]
    )
    fit = fit_contact(samples, CENTER, RADIUS, 1.0)
    ratio = there.error(fit.model.moved(G)) / samples.error(fit.model)
    assert abs(ratio - 1) < 1e-9
    again = fit_contact(there, CENTER, RADIUS, 1.0)  # learned there instead
    assert np.allclose(again.model.coefficients, fit.model.moved(G).coefficients, rtol=1e-5)
    R = np.array(so3.exp(np.array([0.3, -0.8, 1.1])))
    back = fit.model.turned(R).turned(R.T).coefficients
    assert np.allclose(back, fit.model.coefficients, atol=1e-12)


def test_what_the_samples_do_not_tell_is_named():
    model = plane_through_the_middle()
    fit = fit_contact(contact_samples(model, speed=0.0), CENTER, RADIUS, 1.0)
    assert set(fit.untold) == {"damping", "friction", "slip_speed"}
    assert abs(fit.model.value("stiffness") / 6000 - 1) < 1e-6


def test_assisted_laws_have_the_contact_on_its_body_alone():
    machine = driven_iiwa(friction=False)
    for law in (
        ComputedTorque(machine, 16.0, 8.0),
        Impedance(machine, "tool", (500.0, 50.0), (50.0, 5.0), null_damping=1.0),
    ):
        assisted = Assisted(law, true_contact())
        assert [part.name for part in assisted.machine.interactions] == ["learned.link7"]


def test_saved_and_loaded(tmp_path):
    model = replace(true_contact(1.5), deviations=np.full(8, 0.1))
    again = load(save(model, tmp_path / "wall.npz"))
    assert np.array_equal(again.coefficients, model.coefficients)
    assert again.exponent == 1.5
    assert again.formula() == model.formula()
    assert "k = 6000 ± 0.1 N/m^1.5" in again.formula()


def test_bad_input_is_refused():
    model = plane_through_the_middle()
    samples = contact_samples(model)
    machine = samples.machine
    every = Samples.of_states(machine, samples.x, samples.v, samples.labels)
    with pytest.raises(LearnError, match="one body, the samples have 7"):
        fit_contact(every, CENTER, RADIUS)
    with pytest.raises(LearnError, match="12 or more are needed"):
        fit_contact(samples.take(np.r_[np.flatnonzero(_touching(samples))[:5],
                                       np.flatnonzero(~_touching(samples))[:30]]),
                    CENTER, RADIUS)  # fmt: skip
    with pytest.raises(LearnError, match="must be 1 or 1"):
        replace(model, exponent=2.0)
    with pytest.raises(LearnError, match="must not be negative"):
        true_contact(matter=(-1.0, 0.0, 0.0, 0.1))
    with pytest.raises(LearnError, match="normal of a plane must not be zero"):
        LearnedContact("link7", CENTER, RADIUS, [1, 0, 0, 1, 0, 0, 0, 0])
    with pytest.raises(LearnError, match="must have shape"):
        LearnedContact("link7", CENTER, RADIUS, [1, 0, 0, 1])


def _touching(samples):
    return np.abs(samples.labels).max(axis=1) > 0
