"""What moments may be does not depend on how large or heavy a body is, or where its frame lies."""

import numpy as np
import pytest
from geometry_cases import random_pose, random_rotation

from framefree.geometry import Moments, MomentsError
from framefree.machine import Body, MachineError

SCALES = [
    (1e-9, 1e-6),
    (1e-15, 1e-9),
    (1e-3, 1e2),
    (1.0, 1.0),
    (1e9, 1e4),
    (1e9, 1e-6),
    (1e-9, 1e4),
]
"""Masses, kg, and lengths, m."""


def body(mass, size, principal, center, rotation=None):
    """Return a body with principal moments in units of mass size^2, at a center."""
    R = np.eye(3) if rotation is None else rotation
    inertia = mass * size**2 * R @ np.diag(principal) @ R.T
    return Moments.of_body(mass, center, (inertia + inertia.T) / 2)


@pytest.mark.parametrize(("mass", "size"), SCALES)
@pytest.mark.parametrize("away", [0.0, 1.0, 1e3])
def test_possible_and_impossible_bodies_are_told_apart(mass, size, away):
    """Also where the frame origin lies a thousand times the body's size away from it."""
    rng = np.random.default_rng(0)
    for _ in range(10):
        center = away * size * rng.normal(size=3)
        R = random_rotation(rng)
        good = body(mass, size, (1.0, 2.0, 2.9), center, R)
        assert good.problems() == ()
        good.validate_mass("body")
        assert Body("body", good).moments == good
        for principal in ((1.0, 2.0, 3.01), (1.0, 1.0, 3.0)):
            bad = body(mass, size, principal, center, R)
            assert "triangle inequality" in bad.problems()[-1]
            assert bad.problems(form="6x6") == ()
            with pytest.raises(MomentsError, match="triangle inequality"):
                bad.validate_mass("body")
            with pytest.raises(MachineError, match="triangle inequality"):
                Body("body", bad)
        negative = body(mass, size, (-0.01, 1.0, 1.0), center, R)
        assert "6x6" in negative.problems(form="6x6")[0]


@pytest.mark.parametrize(("mass", "size"), SCALES)
def test_points_rods_and_plates_are_possible(mass, size):
    """Bodies without extent in some direction lie on the border of what is possible."""
    rng = np.random.default_rng(1)
    for count in (1, 2, 3, 20):
        points = size * rng.normal(size=(count, 3))
        moments = Moments.of_points(points, mass * rng.uniform(0.1, 1.0, count))
        for away in (0.0, 1.0, 1e3):
            G = random_pose(rng)
            G[:3, 3] *= away * size
            moved = moments.moved(G)
            assert moved.problems() == ()
            moved.validate_mass("body")


@pytest.mark.parametrize(("stiffness", "size"), SCALES)
def test_springs_without_a_total(stiffness, size):
    """A torsion spring has no center; what has a first moment without a total is no spring."""
    twist = stiffness * size**2
    assert Moments.of(0.0, np.zeros(3), twist * np.diag([1.0, 2.0, 3.0])).problems() == ()
    weak = Moments.of(0.0, np.zeros(3), twist * np.diag([1.0, 2.0, -0.01]))
    assert "6x6" in weak.problems(form="6x6")[0]
    odd = Moments(0.0, stiffness * size * np.array([1e-3, 0, 0]), twist * np.eye(3))
    assert "6x6" in odd.problems(form="6x6")[0]


@pytest.mark.parametrize(("mass", "size"), SCALES)
def test_a_moment_that_is_not_symmetric_is_refused(mass, size):
    second = mass * size**2 * np.array([[1.0, 0.1, 0], [0.1 + 1e-6, 1, 0], [0, 0, 1]])
    with pytest.raises(MomentsError, match="symmetric"):
        Moments(mass, np.zeros(3), second)
    second[1, 0] = second[0, 1] * (1 + 1e-12)
    assert Moments(mass, np.zeros(3), second).second[0, 1] == pytest.approx(second[0, 1])


@pytest.mark.parametrize(("mass", "size"), SCALES)
def test_forms_keep_their_digits(mass, size):
    """Center and moment at the center come back as they were given."""
    rng = np.random.default_rng(2)
    center, R = size * rng.normal(size=3), random_rotation(rng)
    moments = body(mass, size, (1.0, 2.0, 2.5), center, R)
    np.testing.assert_allclose(moments.center, center, rtol=1e-14)
    expected = mass * size**2 * R @ np.diag([1.0, 2.0, 2.5]) @ R.T
    np.testing.assert_allclose(
        moments.moment_at_center, expected, rtol=0, atol=1e-14 * np.abs(moments.moment).max()
    )
