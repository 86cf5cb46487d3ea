"""Which attitudes are critical, and whether the best is the only one, does not depend on units."""

import numpy as np
import pytest
from geometry_cases import random_rotation

from framefree.geometry.attitude import AttitudeFunction, special_polar, wahba

SIZES = (1e-20, 1e-10, 1.0, 1e10)
SIGMAS = {
    "four points": (3.0, 2.0, 1.0),
    "two points and a circle": (3.0, 1.0, 1.0),
    "a point and a sphere": (1.0, 1.0, 1.0),
    "two circles": (2.0, 0.0, 0.0),
    "no single minimum": (2.0, 1.0, -1.0),
}


def matrix(name):
    rng = np.random.default_rng(0)
    return random_rotation(rng) @ np.diag(SIGMAS[name]) @ random_rotation(rng)


@pytest.mark.parametrize("name", SIGMAS)
@pytest.mark.parametrize("size", SIZES)
def test_critical_sets_are_those_of_the_unit_matrix(name, size):
    one, other = AttitudeFunction(matrix(name)), AttitudeFunction(size * matrix(name))
    expected, found = one.critical_sets(), other.critical_sets()
    assert [(s.kind, s.type, s.index) for s in found] == [
        (s.kind, s.type, s.index) for s in expected
    ]
    values = [s.value for s in expected]
    np.testing.assert_allclose([s.value / size for s in found], values, atol=1e-12)
    assert len(expected) == len(set(np.round([0, *one.lam], 9)))


@pytest.mark.parametrize("name", SIGMAS)
@pytest.mark.parametrize("size", SIZES)
def test_uniqueness_is_judged_relative_to_the_largest_curvature(name, size):
    unique = name not in ("no single minimum", "two circles")
    assert special_polar(size * matrix(name)).unique == unique
    a = np.eye(3) if unique else np.eye(3)[:1]
    assert wahba(a, a, size * np.ones(len(a))).unique == unique
