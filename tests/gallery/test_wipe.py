"""The arm that wipes a wall: its promises on both plants, and that they can fail."""

import numpy as np
import pytest

from framefree.gallery.scenarios import SCENARIOS
from framefree.gallery.scenarios.contact import wipe_parts as parts

WIPE = SCENARIOS["wipe"]


def test_it_keeps_its_promises():
    outcome = WIPE(duration=10.5).run(False)
    assert outcome.ok, outcome.promises
    assert outcome.metrics["force_error_rms_n"] < 1.0
    assert outcome.metrics["normal_error_deg"] < 0.1


@pytest.mark.slow
@pytest.mark.parametrize("plant", ["native", "mujoco"])
def test_it_keeps_its_promises_to_the_end(plant):
    outcome = WIPE(plant=plant).run(False)
    assert outcome.ok, outcome.promises


def test_a_law_that_does_not_learn_the_normal_breaks_them():
    outcome = WIPE(duration=6.0, adaptation=0.0, lean_deg=20.0).run(False)
    failed = [promise.text for promise in outcome.promises if not promise.holds]
    assert any("normal" in text for text in failed)
    assert any("path" in text for text in failed)


def test_an_arm_that_never_touches_breaks_them():
    outcome = WIPE(duration=0.2).run(False)
    assert not outcome.ok


def test_the_wall_is_as_far_off_as_stated():
    believed, wall = parts.wall(0.0, 0.0), parts.wall(5e-3, np.deg2rad(10.0))
    assert believed[:3, 2] @ wall[:3, 2] == pytest.approx(np.cos(np.deg2rad(10.0)))
    assert np.allclose(believed[:3, 2], parts.BELIEVED_NORMAL)
    assert np.linalg.norm(wall[:3, 3] - believed[:3, 3]) == pytest.approx(5e-3)
