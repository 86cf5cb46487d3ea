"""Data contradict a symmetry that a body does not have, with numbers, and none that it has."""

import warnings
from dataclasses import replace

import numpy as np
import pytest
from learn_samples import fluid_samples, truth

from framefree.gallery.scenarios.learned.fluid_chain import (
    CURRENT,
    LENGTH,
    Swimming,
    TrueFluid,
    swimmer,
    swimming_samples,
)
from framefree.gallery.scenarios.learned.open_loop import turned_samples
from framefree.geometry import so3
from framefree.learn import (
    C4,
    O2,
    O3,
    C2v,
    LearnedModel,
    LearnError,
    PolynomialLibrary,
    RodLibrary,
    SymmetryWarning,
    Trivial,
    learn,
    noisy,
    symmetry_evidence,
)
from framefree.learn.symmetry_evidence import _p_value

LIBRARY = RodLibrary(LENGTH)


def swimming(seed=2, count=200, space=True, noise=0.03):
    clean = swimming_samples(
        swimmer(), Swimming(space=space), TrueFluid(), count=count, motions=20, seed=seed
    )
    return noisy(clean, noise, seed)


@pytest.mark.parametrize("space", [False, True])
@pytest.mark.first_cases(1)
def test_rods_have_the_symmetry_of_rods_even_if_no_basis_spans_their_fluid(space):
    for seed in range(6):
        samples = swimming(seed, space=space)
        evidence = symmetry_evidence(samples, O2(), library=LIBRARY, current=CURRENT)
        assert not evidence.contradicted, evidence.statement()
        assert evidence.error_without > 0.9 * evidence.error_with


@pytest.mark.parametrize("wrong", [O3(), O2((0, 1, 0)), O2((0.6, 0.0, 0.8))])
def test_rods_are_no_balls_and_have_one_axis(wrong):
    evidence = symmetry_evidence(swimming(), wrong, current=CURRENT)
    assert evidence.contradicted
    assert evidence.p_value == 2.0**-10
    assert evidence.error_without < 0.5 * evidence.error_with
    words = evidence.statement()
    assert words.startswith(f"the data contradict the symmetry `{type(wrong).__name__}`: terms")
    assert "p = 0.00098, 200 samples in 10 parts" in words


def test_a_fin_on_one_side_is_noticed():
    """The force of a keel: across the rod in one direction only."""
    free = PolynomialLibrary(Trivial(), LENGTH)
    keel = np.zeros(len(free) + 3)
    keel[_sideways(free)] = -15.0
    model = LearnedModel(free, keel)
    samples = swimming(count=300)
    finned = replace(samples, labels=samples.labels + samples.predicted(model))
    assert symmetry_evidence(finned, O2(), library=LIBRARY, current=CURRENT).contradicted
    mirrored = C2v((1.0, 0.0, 0.0), (0.0, 1.0, 0.0))  # what is left of it: both mirrors
    own = symmetry_evidence(finned, mirrored, library=LIBRARY, current=CURRENT)
    assert not own.contradicted, own.statement()


def _sideways(library):
    """Return the term that is the force along y by the velocity along y alone."""
    maps = library.polynomials.wrenches
    for i, matrix in enumerate(maps.matrix):
        places = [(int(r), maps.monomials[m]) for r, m in np.argwhere(matrix)]
        if places == [(1, (1,))]:
            return i
    raise AssertionError("there is no such term")


def test_a_turned_world_gives_the_same_evidence():
    samples, R = swimming(noise=0.0), np.array(so3.exp(np.array([0.4, -1.3, 0.8])))
    here = symmetry_evidence(samples, O3(), current=CURRENT)
    there = symmetry_evidence(turned_samples(samples, R), O3(), current=R @ np.array(CURRENT))
    assert there.error_with == pytest.approx(here.error_with, rel=1e-6)
    assert there.error_without == pytest.approx(here.error_without, rel=1e-6)


@pytest.mark.slow
def test_learning_with_a_contradicted_symmetry_warns_with_the_evidence():
    samples = noisy(fluid_samples(200, model=truth(current=(0, 0, 0))), 0.03)
    with pytest.warns(SymmetryWarning, match=r"contradict the symmetry `O3`.*take a smaller group"):
        ball = learn(samples, library=PolynomialLibrary(O3(), LENGTH), current=np.zeros(3))
    assert ball.evidence is not None
    assert ball.evidence.contradicted
    with warnings.catch_warnings():
        warnings.simplefilter("error", SymmetryWarning)
        rod = learn(samples, library=LIBRARY, current=np.zeros(3))
        free = learn(samples, library=PolynomialLibrary(Trivial(), LENGTH), current=np.zeros(3))
    assert rod.evidence is not None
    assert not rod.evidence.contradicted
    assert free.evidence is None


def test_the_p_value_is_the_share_of_signs():
    assert _p_value(np.ones(10)) == 2.0**-10
    assert _p_value(np.array([1.0, -1.0])) == 0.75
    assert _p_value(-np.ones(3)) == 1.0
    rng = np.random.default_rng(0)
    chance = [_p_value(rng.normal(size=8)) for _ in range(400)]
    assert np.mean(np.array(chance) <= 0.1) < 0.15  # as often as it says, if there is nothing


def test_bad_samples_are_refused():
    with pytest.raises(LearnError, match="of 6 motions are too few to judge a symmetry"):
        symmetry_evidence(fluid_samples(120, motions=6), O2())
    with pytest.raises(LearnError, match="too few to judge a symmetry: 20 or more"):
        symmetry_evidence(fluid_samples(15, motions=2), O2())
    with pytest.raises(LearnError, match="too few"):
        symmetry_evidence(fluid_samples(3), O2())
    with pytest.raises(LearnError, match="symmetry is of 4 inputs, the samples have 0"):
        symmetry_evidence(fluid_samples(60), C4(turned=(1, 2, 3, 0)))
