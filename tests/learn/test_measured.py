"""Measured motions: polynomials on groups, late inputs, and what is refused."""

import numpy as np
import pytest
from learn_samples import LENGTH, truth

from framefree.control.references import JointPath
from framefree.gallery.machines.chains import chain
from framefree.gallery.scenarios.learned.fluid_chain import Swimming
from framefree.identify import IdentifyError, Recording
from framefree.learn import LearnError, RodLibrary, estimate_delay, fit_basis, measured_samples
from framefree.learn.measured import LocalPolynomials, MeasuredMotion
from framefree.motion import equations

LATE = 0.02


@pytest.fixture(scope="module")
def motion():
    """A chain that moves in space: times, x, v, a and the forces that this takes in the fluid."""
    machine = chain(2)
    path: JointPath = Swimming(space=True).path(machine, 4)
    t = np.arange(0, 12, 0.005)
    x, v, a = (np.array(one).T for one in path.function.map(len(t))(t[None]))
    return machine, t, x, v, a, equations(truth().added_to(machine), "tree").inverse(x, v, a)


def test_polynomials_are_exact_up_to_their_degree():
    p = LocalPolynomials(6, 0.01)
    t = np.arange(40) * 0.01
    values = np.column_stack([1 + 2 * t - 3 * t**2 + 5 * t**4, t**3])
    inside = slice(6, -6)
    assert np.allclose(p.apply(values), values[inside], atol=1e-12)
    assert np.allclose(p.apply(values, 1)[:, 1], 3 * t[inside] ** 2, atol=1e-10)
    assert np.allclose(p.apply(values, at=-0.02)[:, 1], (t[inside] - 0.02) ** 3, atol=1e-12)


def test_velocities_and_accelerations_on_the_group(motion):
    machine, t, x, v, a, _ = motion
    measured = MeasuredMotion.of(machine, Recording(t, x, force=0 * v), 0.1)
    found, inside = measured.motion, slice(20, -20)
    assert np.abs(found[0] - x[inside]).max() < 1e-7
    assert np.abs(found[1] - v[inside]).max() < 1e-4 * np.abs(v).max()
    assert np.abs(found[2] - a[inside]).max() < 1e-3 * np.abs(a).max()


@pytest.mark.slow
def test_a_delay_is_found_and_the_fluid_with_it(motion):
    machine, t, x, _, _, force = motion
    rng = np.random.default_rng(0)
    late = round(LATE / 0.005)
    rows = len(t) - late
    noise = rng.normal(size=(rows, machine.nv)) * np.r_[np.full(3, 1e-4), np.full(6, 5e-4)]
    record = Recording(t[:rows], machine.integrate(x[:rows], noise), force=force[late:])
    library = RodLibrary(LENGTH)
    delay = estimate_delay(machine, record, library, window=0.2)
    assert delay == pytest.approx(LATE, abs=1e-3)
    errors = []
    for used in (delay, 0.0):
        samples = measured_samples(machine, record, window=0.2, delay=used, every=5)
        model = fit_basis(library, samples).model
        clean = measured_samples(machine, Recording(t, x, force=force), window=0.1, every=7)
        errors.append(clean.error(model))
    assert errors[0] < 0.03
    assert errors[1] > 1.5 * errors[0]


def test_bad_recordings_are_refused_with_their_place(motion):
    machine, t, x, _, _, force = motion
    broken = x.copy()
    broken[7, 1] = np.nan
    with pytest.raises(IdentifyError, match="row 8"):
        measured_samples(machine, Recording(t, broken, force=force), window=0.1)
    gap = np.r_[t[:100], t[100:] + 1.0]
    with pytest.raises(IdentifyError, match="gap"):
        measured_samples(machine, Recording(gap, x, force=force), window=0.1)
    good = Recording(t, x, force=force)
    with pytest.raises(LearnError, match="rows at 200 Hz"):
        measured_samples(machine, good, window=0.01)
    with pytest.raises(LearnError, match="too short"):
        measured_samples(machine, good.rows(slice(0, 30)), window=0.2)
    with pytest.raises(LearnError, match="no recordings"):
        measured_samples(machine, [], window=0.1)
