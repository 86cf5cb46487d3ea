"""Quaternions (wxyz): group laws, the four cases of the conversion, kinematics."""

import casadi as ca
import numpy as np
import pytest
from geometry_cases import (
    ANGLES,
    AXES,
    PI,
    exact_exp,
    numbers,
    random_rotation,
    value_and_jacobian,
)
from hypothesis import assume, given
from hypothesis import strategies as st
from scipy.spatial.transform import Rotation

from framefree.geometry import quaternion, so3

components = st.floats(-1, 1)
units = (
    st.lists(components, min_size=4, max_size=4)
    .map(np.array)
    .filter(lambda q: np.linalg.norm(q) > 0.1)
    .map(lambda q: q / np.linalg.norm(q))
)

roundtrip = value_and_jacobian(lambda w: quaternion.log(quaternion.exp(w)), (3,))


def lead_is_positive(q):
    return q[np.flatnonzero(np.abs(q) > quaternion.HALF_TURN)[0]] > 0


@given(units)
def test_rotation_matrix_agrees_with_scipy(q):
    w, x, y, z = q
    expected = Rotation.from_quat([x, y, z, w]).as_matrix()
    np.testing.assert_allclose(numbers(quaternion.to_rotation(q)), expected, atol=5e-16 * 4)


@given(units)
def test_conversion_there_and_back_on_the_shortest_branch(q):
    back = numbers(quaternion.from_rotation(quaternion.to_rotation(q)))
    assert lead_is_positive(back)
    sign = np.sign(back @ q)
    np.testing.assert_allclose(back, sign * q, atol=1e-15)
    np.testing.assert_allclose(np.linalg.norm(back), 1.0, atol=4e-16)


@pytest.mark.parametrize("largest", range(4))
def test_all_four_cases_value_and_derivative(largest):
    """Each component largest in turn; derivative along R exp(d) is q (0, d) / 2."""
    beside = value_and_jacobian(lambda d, R: quaternion.from_rotation(R @ so3.exp(d)), (3,), (3, 3))
    rng = np.random.default_rng(largest)
    for _ in range(50):
        q = 0.3 * rng.normal(size=4)
        q[largest] = rng.choice([-1, 1]) * 2.0
        q /= np.linalg.norm(q)
        result, J = beside(np.zeros(3), numbers(quaternion.to_rotation(q)))
        q = q if lead_is_positive(q) else -q
        np.testing.assert_allclose(result, q, atol=1e-15)
        expected = np.column_stack([numbers(quaternion.rate(q, e)) for e in np.eye(3)])
        np.testing.assert_allclose(J, expected, atol=2e-15)


def test_conversion_is_continuous_between_the_cases():
    rng = np.random.default_rng(5)
    for _ in range(200):
        q = rng.choice([-1.0, 1.0], size=4) / 2 + 1e-12 * rng.normal(size=4)
        q /= np.linalg.norm(q) * np.sign(q[0])
        back = numbers(quaternion.from_rotation(quaternion.to_rotation(q)))
        np.testing.assert_allclose(back, q, atol=1e-15)


def test_from_a_drifted_matrix_is_still_unit():
    rng = np.random.default_rng(6)
    for _ in range(50):
        drifted = random_rotation(rng) + 1e-4 * rng.normal(size=(3, 3))
        q = numbers(quaternion.from_rotation(drifted))
        np.testing.assert_allclose(np.linalg.norm(q), 1.0, atol=4e-16)


@given(units, units, units)
def test_product(p, q, r):
    pq = quaternion.product(p, q)
    np.testing.assert_allclose(
        numbers(quaternion.to_rotation(pq)),
        numbers(quaternion.to_rotation(p)) @ numbers(quaternion.to_rotation(q)),
        atol=3e-15,
    )
    left = numbers(quaternion.product(pq, r))
    right = numbers(quaternion.product(p, quaternion.product(q, r)))
    np.testing.assert_allclose(left, right, atol=1e-15)
    one = numbers(quaternion.product(q, quaternion.conjugate(q)))
    np.testing.assert_allclose(one, [1, 0, 0, 0], atol=5e-16)


def test_signs_of_the_product():
    """i j = k, j k = i, k i = j."""
    one, i, j, k = np.eye(4)
    for a, b, expected in [(i, j, k), (j, k, i), (k, i, j), (i, i, -one), (one, k, k)]:
        np.testing.assert_array_equal(numbers(quaternion.product(a, b)), expected)


@given(units, st.lists(components, min_size=3, max_size=3).map(np.array))
def test_rate_is_that_of_body_fixed_turning(q, w):
    """q(t) = q exp(w t), and the length stays."""
    h = 1e-5
    ahead = numbers(quaternion.product(q, quaternion.exp(h * w)))
    behind = numbers(quaternion.product(q, quaternion.exp(-h * w)))
    rate = numbers(quaternion.rate(q, w))
    np.testing.assert_allclose(rate, (ahead - behind) / (2 * h), atol=1e-10)
    assert abs(rate @ q) < 1e-15


@given(st.lists(st.floats(-1e3, 1e3), min_size=4, max_size=4).map(np.array))
def test_normalise(q):
    assume(np.linalg.norm(q) > 1e-6)
    np.testing.assert_allclose(numbers(quaternion.normalise(q)), q / np.linalg.norm(q), atol=1e-15)


@pytest.mark.parametrize("angle", ANGLES)
@pytest.mark.parametrize("axis", AXES)
def test_exp_and_log(angle, axis):
    w = angle * axis
    q = numbers(quaternion.exp(w))
    np.testing.assert_allclose(numbers(quaternion.to_rotation(q)), exact_exp(w), atol=1e-15)
    result, J = roundtrip(w)
    flipped = angle == PI and axis[np.flatnonzero(axis)[0]] < 0
    np.testing.assert_allclose(result, -w if flipped else w, rtol=2e-15, atol=1e-15 * angle)
    expected = 2 * np.outer(axis, axis) - np.eye(3) if flipped else np.eye(3)
    np.testing.assert_allclose(J, expected, atol=2e-14)


@given(units, st.floats(1e-3, 1e3))
def test_log_takes_the_shortest_branch_of_any_multiple(q, factor):
    w = numbers(quaternion.log(q))
    assert np.linalg.norm(w) <= PI + 4e-15
    np.testing.assert_allclose(numbers(quaternion.log(-q)), w, atol=1e-14)
    np.testing.assert_allclose(numbers(quaternion.log(factor * q)), w, atol=1e-14)
    np.testing.assert_allclose(w, numbers(so3.log(quaternion.to_rotation(q))), atol=1e-14)


def test_expressions_and_numbers_agree():
    rng = np.random.default_rng(0)
    q, w = ca.SX.sym("q", 4), ca.SX.sym("w", 3)
    f = ca.Function("f", [q, w], [quaternion.rate(q, w), quaternion.log(q), quaternion.exp(w)])
    for _ in range(20):
        a, b = rng.normal(size=4), rng.normal(size=3)
        direct = quaternion.rate(a, b), quaternion.log(a), quaternion.exp(b)
        for traced, number in zip(f(a, b), direct, strict=True):
            np.testing.assert_allclose(numbers(traced), numbers(number), rtol=1e-15, atol=1e-16)
