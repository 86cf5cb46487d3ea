"""A basis in the span of the data is found exactly, with few samples, in every frame."""

import numpy as np
import pytest
from learn_samples import CURRENT, LENGTH, TERMS, fluid_samples, labelled, states, truth

from framefree.gallery.machines.chains import chain
from framefree.geometry import so3
from framefree.learn import (
    LearnedModel,
    LearnError,
    PolynomialLibrary,
    RodLibrary,
    Samples,
    fit_basis,
    noisy,
)


def test_terms_and_current_are_found_to_rounding():
    fit = fit_basis(RodLibrary(LENGTH), fluid_samples(60), threshold=False)
    assert fit.untold == ()
    found = dict(zip(fit.model.names, fit.model.coefficients, strict=True))
    assert np.allclose([found[name] for name in TERMS], list(TERMS.values()), rtol=1e-6)
    assert np.allclose(fit.model.current, CURRENT, atol=1e-7)
    assert fit.residual < 1e-7


def test_noise_gives_deviations_that_hold():
    """Found numbers lie within four stated deviations of the true ones."""
    samples = noisy(fluid_samples(100), 0.03, seed=5)
    fit = fit_basis(RodLibrary(LENGTH), samples, threshold=False)
    true = truth().coefficients
    off = np.abs(fit.model.coefficients - true) / fit.model.deviations
    assert off.max() < 4
    assert off.max() > 0.3  # the deviations are not merely large


def test_what_is_not_there_is_dropped_and_the_rest_is_kept():
    model = truth(lift=0.0, magnus=0.0, along_linear=0.0)
    samples = noisy(fluid_samples(200, model=model), 0.03, seed=1)
    fit = fit_basis(RodLibrary(LENGTH), samples)
    assert {"lift", "magnus", "along.linear"} <= set(fit.dropped)
    assert {"across.quadratic", "buoyancy"} <= set(fit.model.terms)
    text = fit.model.formula()
    assert "N s^2/m^3" in text
    assert "lift" not in text
    assert "current.x" in text


def test_one_function_serves_more_bodies_than_it_was_learned_from():
    fit = fit_basis(RodLibrary(LENGTH), noisy(fluid_samples(50, bodies=2), 0.03))
    ten = fluid_samples(50, bodies=6, seed=9)
    assert ten.error(fit.model) < 0.03


def test_a_turned_world_changes_no_error():
    """The machine, gravity and the current turn; so does the model."""
    R = np.array(so3.exp(np.array([0.4, -1.1, 0.7])))
    plain = chain(3)
    turned = chain(3, gravity=R @ plain.gravity)
    own = noisy(labelled(states(plain, 80), truth()), 0.05)
    x = own.x.copy()
    x[:, :7] = [_turned(one, R) for one in own.x[:, :7]]
    there = Samples.of_states(turned, x, own.v, own.labels, motion=own.motion)
    model = fit_basis(RodLibrary(LENGTH), own).model
    moved = model.turned(R)
    assert np.allclose(moved.current, R @ model.current)
    assert there.error(moved) == pytest.approx(own.error(model), rel=1e-10)
    assert not np.isclose(there.error(model), own.error(model), rtol=1e-3)  # the check can fail
    again = fit_basis(RodLibrary(LENGTH), there).model
    assert np.allclose(again.coefficients[:9], model.coefficients[:9], rtol=1e-6, atol=1e-8)


def _turned(base, R):
    """Return position and quaternion of a base that is turned by R in the world."""
    from framefree.geometry import quaternion

    there = R @ np.array(quaternion.to_rotation(base[3:]))
    return np.r_[R @ base[:3], np.array(quaternion.from_rotation(there)).ravel()]


def test_unseen_terms_are_named():
    """Without spin nothing tells what spin does; without gravity, buoyancy."""
    machine = chain(1, gravity=None)
    rng = np.random.default_rng(0)
    v = rng.normal(size=(40, 6))
    v[:, 3] = 0.0
    x = np.tile(machine.neutral(), (40, 1))
    samples = Samples.of_states(machine, x, v, np.zeros((40, 6)))
    samples = labelled(samples, truth(current=(0, 0, 0)))
    fit = fit_basis(RodLibrary(LENGTH), samples, current=(0, 0, 0))
    assert {"spin", "magnus", "buoyancy", "buoyancy.offset"} <= set(fit.untold)
    assert "across.quadratic" not in fit.untold
    assert fit.residual < 1e-9


def test_a_library_for_bodies_of_any_shape():
    """Linear and quadratic drag of a ball are among the polynomials."""
    from framefree.learn import O3

    library = PolynomialLibrary(O3(), 0.2)
    machine = chain(2)
    true = np.zeros(len(library) + 3)
    true[[library.names.index("p1"), library.names.index("p1.fast")]] = 2.0, 5.0
    model = LearnedModel(library, true)
    samples = labelled(states(machine, 40), model)
    fit = fit_basis(library, samples, current=(0, 0, 0))
    assert np.allclose(fit.model.coefficients, true, atol=1e-8)


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: fit_basis(RodLibrary(0.4), fluid_samples(4)), "too few"),
        (lambda: fit_basis(RodLibrary(0.4), states(chain(2), 40)), "zero in all samples"),
        (lambda: fit_basis(RodLibrary(0.4), _constant()), "one and the same motion"),
        (lambda: fit_basis(RodLibrary(0.4), fluid_samples(40), current=(1, 2)), "three finite"),
        (lambda: RodLibrary(-1), "positive"),
        (lambda: _with_nan(), "`labels` is not a number in sample 3"),
        (lambda: Samples.of_states(chain(1), np.zeros((3, 7)), np.zeros((3, 5)), 0), "shape"),
    ],
)
def test_bad_samples_are_refused(make, words):
    with pytest.raises(LearnError, match=words):
        make()


def _constant():
    machine = chain(1)
    x = np.tile(machine.neutral(), (40, 1))
    return Samples.of_states(machine, x, np.ones((40, 6)), np.ones((40, 6)))


def _with_nan():
    machine = chain(1)
    labels = np.ones((9, 6))
    labels[3, 2] = np.nan
    return Samples.of_states(machine, np.tile(machine.neutral(), (9, 1)), np.ones((9, 6)), labels)


def test_the_metric_does_not_depend_on_where_a_body_has_its_frame():
    """The same rod described from its end has the same W."""
    from framefree.geometry import Moments
    from framefree.machine import Body, Free, Joint, Machine

    inertia, shift = np.diag([0.05, 0.2, 0.22]), np.array([0.3, -0.1, 0.2])
    sizes = []
    for r in (np.zeros(3), shift):
        body = Body("rod", Moments.of_body(2.0, -r, inertia))
        machine = Machine((body,), (Joint("base", Free(), "world", "rod"),))
        v = np.array([[0.3, 0.1, 0.2, 1.0, -0.5, 0.4]])
        v[0, :3] += np.cross(v[0, 3:], r)
        force = np.array([1.0, 2.0, -1.0, 0.5, 0.3, 0.1])
        force[3:] -= np.cross(r, force[:3])
        samples = Samples.of_states(machine, machine.neutral()[None], v, force[None])
        sizes.append(samples.size())
    assert sizes[0] == pytest.approx(sizes[1], rel=1e-12)
