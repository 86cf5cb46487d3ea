"""The chain in an unknown fluid: its motions, its symmetry, and the scenario as a whole."""

import numpy as np
import pytest

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


@pytest.mark.slow
def test_the_scenario_keeps_what_it_promises():
    outcome = LearnedChain().run(progress=False)
    assert [promise.text for promise in outcome.promises if not promise.holds] == []
