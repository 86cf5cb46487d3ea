"""The chain in an unknown fluid: its motions, its symmetry, and the scenario as a whole."""

import casadi as ca
import numpy as np
import pytest

from framefree.control import CorrectionsTogether
from framefree.control.references.bodies import BodyPoses
from framefree.gallery.scenarios.learned.adaptive_chain import (
    PAYLOAD,
    ChangedChain,
    in_span_gap,
    loop_rates,
    with_payload,
)
from framefree.gallery.scenarios.learned.fluid_chain import (
    FAST,
    LENGTH,
    TERMS,
    Swimming,
    TrueFluid,
    swimmer,
    swimming_samples,
)
from framefree.gallery.scenarios.learned.learned_chain import LearnedChain
from framefree.gallery.scenarios.learned.open_loop import turned_samples
from framefree.geometry import so3


def test_drag_across_a_rod_halves_above_the_critical_speed():
    """Closed form of a rod that moves across itself: k L |u| u, and half of that when fast."""
    still = TrueFluid(current=(0, 0, 0))
    smooth = TrueFluid(crisis=False, current=(0, 0, 0))
    down = np.zeros(3)
    for speed, share in ((0.3 * FAST, 1.0), (2 * FAST, 0.5)):
        twist = np.array([0, speed, 0, 0, 0, 0])
        lost = smooth(twist, np.eye(3), down)[1] - still(twist, np.eye(3), down)[1]
        drag = TERMS["across.quadratic"] * LENGTH * speed**2
        assert lost == pytest.approx(-(1 - share) * drag, abs=1e-4 * drag)


def test_motions_stay_in_their_plane():
    machine = swimmer(3)
    plane = swimming_samples(machine, Swimming(), TrueFluid(), count=30, motions=3)
    axes = plane.rotation[..., 0]
    assert np.abs(axes[..., 1]).max() < 1e-12
    space = swimming_samples(machine, Swimming(space=True), TrueFluid(), count=30, motions=3)
    assert np.abs(space.rotation[..., 0][..., 1]).max() > 0.1


def test_a_turned_world_has_the_same_forces():
    samples = swimming_samples(swimmer(), Swimming(space=True), TrueFluid(), count=20, motions=2)
    R = np.array(so3.exp(np.array([0.3, 1.0, -2.0])))
    there = turned_samples(samples, R)
    assert there.error(TrueFluid().turned(R)) < 1e-12
    assert there.error(TrueFluid()) > 0.05


def test_V_falls_at_its_stated_rate_in_span():
    assert in_span_gap(Swimming(space=True), count=2) < 1e-9


@pytest.mark.parametrize("payload", [False, True])
@pytest.mark.first_cases(1)
def test_what_is_outside_the_span_is_counted(payload):
    """Exact derivative of V along the loop, with halved drag that the basis does not have."""
    style, basis = Swimming(space=True), TrueFluid().spanned
    chain = ChangedChain(style, 1.0, 1e-3, payload)
    law, path = chain.law(basis), style.path(swimmer(), 5)
    assert isinstance(law.unknown, CorrectionsTogether) == payload
    x, v = (np.array(one).ravel() for one in path.function(0.3)[:2])
    v = v + 0.5
    first = ca.evalf(ca.SX(law.first_memory(ca.SX(x), ca.SX(v)))).full().ravel()
    gaps = {}
    for name, fluid in {"true": chain.fluid, "another": TrueFluid(current=(0, 0, 0))}.items():
        loop = loop_rates(law, fluid.added_to(chain.machine), BodyPoses(path))
        found, stated = (float(one) for one in loop(0.3, x, v, first))
        gaps[name] = abs(found - stated) / abs(stated)
    assert gaps["true"] < 1e-10
    assert gaps["another"] > 1e-3


def test_a_payload_is_mass_at_the_end_of_the_last_rod():
    plain, loaded = swimmer().bodies[-1].moments, with_payload(swimmer()).bodies[-1].moments
    assert loaded.total == pytest.approx(plain.total + PAYLOAD)
    assert np.allclose(np.array(loaded.first) - np.array(plain.first), [PAYLOAD * LENGTH / 2, 0, 0])


@pytest.mark.slow
def test_the_scenario_keeps_what_it_promises():
    outcome = LearnedChain(plain_samples=4000).run(progress=False)
    assert [promise.text for promise in outcome.promises if not promise.holds] == []
