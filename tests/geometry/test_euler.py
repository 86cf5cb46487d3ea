"""Euler angles: all twelve sequences, fixed and moving, and their singularities."""

from itertools import product

import casadi as ca
import numpy as np
import pytest
from geometry_cases import numbers, random_rotation
from scipy.spatial.transform import Rotation

from framefree.geometry import GeometryError, euler, so3

SEQUENCES = ["".join(s) for s in product("xyz", repeat=3) if s[0] != s[1] != s[2]]


def test_there_are_twelve_sequences():
    assert len(SEQUENCES) == 12


@pytest.mark.parametrize("axes", SEQUENCES)
@pytest.mark.parametrize("fixed", [True, False])
def test_against_scipy_and_back(axes, fixed):
    rng = np.random.default_rng(0)
    for _ in range(30):
        angles = rng.uniform(-np.pi, np.pi, size=3)
        R = numbers(euler.to_rotation(angles, axes, fixed))
        # scipy: small letters for fixed axes, capitals for moving ones.
        expected = Rotation.from_euler(axes if fixed else axes.upper(), angles).as_matrix()
        np.testing.assert_allclose(R, expected, atol=1e-15)
        R = random_rotation(rng)
        found = euler.from_rotation(R, axes, fixed)
        assert not found.singular
        np.testing.assert_allclose(
            numbers(euler.to_rotation(found.angles, axes, fixed)), R, atol=3e-15
        )
        second = found.angles[1]
        assert 0 <= second <= np.pi if axes[0] == axes[2] else abs(second) <= np.pi / 2


@pytest.mark.parametrize("axes", SEQUENCES)
@pytest.mark.parametrize("fixed", [True, False])
@pytest.mark.parametrize("distance", [0.0, 1e-12, 1e-9, 1e-7, 1e-3])
def test_at_and_near_the_singularity(axes, fixed, distance):
    proper = axes[0] == axes[2]
    seconds = (distance, np.pi - distance) if proper else (np.pi / 2 - distance,) * 2
    for second, sign in zip(seconds, (1, 1 if proper else -1), strict=True):
        second *= sign
        R = numbers(euler.to_rotation([0.7, second, -1.9], axes, fixed))
        found = euler.from_rotation(R, axes, fixed)
        assert found.singular == (distance < 1e-8)
        np.testing.assert_allclose(found.margin, np.sin(distance), atol=1e-15)
        back = numbers(euler.to_rotation(found.angles, axes, fixed))
        np.testing.assert_allclose(back, R, atol=2e-8 if found.singular else 3e-15)
        if found.singular:
            assert found.angles[0 if fixed else 2] == 0.0


def test_default_is_roll_pitch_yaw():
    roll, pitch, yaw = 0.1, -0.4, 2.0
    R = so3.exp([0, 0, yaw]) @ so3.exp([0, pitch, 0]) @ so3.exp([roll, 0, 0])
    np.testing.assert_allclose(numbers(euler.to_rotation([roll, pitch, yaw])), numbers(R))
    np.testing.assert_allclose(euler.from_rotation(R).angles, [roll, pitch, yaw])


def test_expressions():
    angles = ca.SX.sym("a", 3)
    f = ca.Function("f", [angles], [euler.to_rotation(angles, "zxz", fixed=False)])
    expected = numbers(euler.to_rotation([1, 2, 3], "zxz", fixed=False))
    np.testing.assert_allclose(numbers(f([1, 2, 3])), expected)
    with pytest.raises(GeometryError, match="not for expressions"):
        euler.from_rotation(so3.exp(angles))


@pytest.mark.parametrize("axes", ["xxy", "xy", "xyzx", "abc", "XYZ", ""])
def test_bad_sequences_are_named(axes):
    with pytest.raises(GeometryError, match="`axes` must be three letters"):
        euler.to_rotation([0, 0, 0], axes)
