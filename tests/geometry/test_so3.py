"""Laws of SO(3), near every singularity and switch."""

import casadi as ca
import numpy as np
import pytest
from geometry_cases import (
    ANGLES,
    AXES,
    PI,
    exact_exp,
    exact_left_jacobian,
    exact_left_jacobian_inverse,
    numbers,
    random_rotation,
    skew,
    value_and_jacobian,
)
from hypothesis import given
from hypothesis import strategies as st

from framefree.geometry import GeometryError, so3

vectors = st.lists(st.floats(-10, 10), min_size=3, max_size=3).map(np.array)

exp = value_and_jacobian(so3.exp, (3,))
roundtrip = value_and_jacobian(lambda w: so3.log(so3.exp(w)), (3,))
log_beside = value_and_jacobian(lambda d, R: so3.log(R @ so3.exp(d)), (3,), (3, 3))

cases = [(angle, axis) for angle in ANGLES for axis in AXES]


def matrix_of_columns(jacobian, i):
    """Column i of a jacobian of a 3x3 result, as a matrix."""
    return jacobian[:, i].reshape(3, 3, order="F")


@given(vectors, vectors)
def test_wed_is_the_cross_product_and_vee_undoes_it(a, b):
    np.testing.assert_allclose(numbers(so3.wed(a)) @ b, np.cross(a, b), atol=1e-13)
    np.testing.assert_array_equal(numbers(so3.vee(so3.wed(a))), a)


def test_wed_of_an_expression_holds_exact_zeros():
    W = so3.wed(ca.SX.sym("w", 3))
    assert W.shape == (3, 3)
    assert all(W[i, i].is_zero() for i in range(3))


@pytest.mark.parametrize(("angle", "axis"), cases)
def test_exp_value_and_derivative(angle, axis):
    w = angle * axis
    R, J = exp(w)
    expected = exact_exp(w)
    np.testing.assert_allclose(R, expected, atol=5e-16)
    np.testing.assert_allclose(numbers(so3.exp(w)), R, atol=3e-16)
    # Small entries are right relative to themselves, too.
    np.testing.assert_allclose(R - R.T, expected - expected.T, rtol=1e-14, atol=3e-16 * angle)
    left = exact_left_jacobian(w)
    for i in range(3):
        np.testing.assert_allclose(matrix_of_columns(J, i), skew(left[:, i]) @ expected, atol=3e-15)


@pytest.mark.parametrize(("angle", "axis"), cases)
def test_jacobians_and_inverses(angle, axis):
    w = angle * axis
    left, inverse = exact_left_jacobian(w), exact_left_jacobian_inverse(w)
    np.testing.assert_allclose(numbers(so3.left_jacobian(w)), left, atol=5e-16)
    np.testing.assert_allclose(numbers(so3.right_jacobian(w)), left.T, atol=5e-16)
    np.testing.assert_allclose(numbers(so3.left_jacobian_inverse(w)), inverse, atol=1e-15)
    np.testing.assert_allclose(numbers(so3.right_jacobian_inverse(w)), inverse.T, atol=1e-15)


@pytest.mark.parametrize(
    "function",
    [so3.left_jacobian, so3.right_jacobian, so3.left_jacobian_inverse, so3.right_jacobian_inverse],
)
def test_derivatives_of_the_jacobians(function):
    """Against differences of the exact matrices; one formula is already tested for the value."""
    reference = {
        so3.left_jacobian: exact_left_jacobian,
        so3.right_jacobian: lambda w: exact_left_jacobian(w).T,
        so3.left_jacobian_inverse: exact_left_jacobian_inverse,
        so3.right_jacobian_inverse: lambda w: exact_left_jacobian_inverse(w).T,
    }[function]
    both = value_and_jacobian(function, (3,))
    h = 1e-5
    for angle in (0.0, 1e-9, 1e-4, 1.0, 2.0 - 1e-6, 2.0 + 1e-6, PI):
        w = angle * AXES[5]
        J = both(w)[1]
        for i in range(3):
            e = h * np.eye(3)[i]
            slope = (reference(w + e) - reference(w - e)) / (2 * h)
            np.testing.assert_allclose(matrix_of_columns(J, i), slope, atol=2e-10)


@given(vectors)
def test_jacobian_inverses_invert(w):
    """Everywhere but at full turns, also far beyond a half turn."""
    angle = np.linalg.norm(w)
    turns = angle / (2 * PI)
    if abs(turns - round(turns)) < 1e-3 and round(turns) > 0:
        return
    product = numbers(so3.left_jacobian(w)) @ numbers(so3.left_jacobian_inverse(w))
    np.testing.assert_allclose(product, np.eye(3), atol=1e-10)
    product = numbers(so3.right_jacobian(w)) @ numbers(so3.right_jacobian_inverse(w))
    np.testing.assert_allclose(product, np.eye(3), atol=1e-10)


@given(vectors)
def test_exp_is_a_rotation_that_keeps_its_axis(w):
    R = numbers(so3.exp(w))
    np.testing.assert_allclose(R @ R.T, np.eye(3), atol=2e-15)
    np.testing.assert_allclose(np.linalg.det(R), 1.0, atol=2e-15)
    np.testing.assert_allclose(R @ w, w, atol=3e-14)


@pytest.mark.parametrize(("angle", "axis"), cases)
def test_log_undoes_exp(angle, axis):
    w = angle * axis
    result, J = roundtrip(w)
    # The rule at a half turn: the first component beyond rounding is positive.
    flipped = angle == PI and axis[np.flatnonzero(axis)[0]] < 0
    # Near zero the digits are those of w, not of 1.
    np.testing.assert_allclose(result, -w if flipped else w, rtol=2e-15, atol=1e-15 * angle)
    along = np.outer(axis, axis)
    np.testing.assert_allclose(J, 2 * along - np.eye(3) if flipped else np.eye(3), atol=2e-14)


@pytest.mark.parametrize(("angle", "axis"), cases)
def test_derivative_of_log(angle, axis):
    """d log(R exp(d)) = right_jacobian_inverse(log R) d, at every angle up to pi."""
    R = exact_exp(angle * axis)
    w, J = log_beside(np.zeros(3), R)
    np.testing.assert_allclose(J, exact_left_jacobian_inverse(w).T, atol=1e-14)


def test_log_of_half_turns_takes_one_axis_whatever_the_rounding():
    rng = np.random.default_rng(0)
    for _ in range(300):
        axis = rng.normal(size=3) * rng.choice([0.0, 1.0], size=3, p=[0.3, 0.7])
        if not np.any(axis):
            continue
        axis /= np.linalg.norm(axis)
        forth, back = so3.exp(PI * axis), so3.exp(-PI * axis)
        exactly = 2 * np.outer(axis, axis) - np.eye(3)
        expected = PI * axis * np.sign(axis[np.flatnonzero(axis)[0]])
        for R in (forth, back, exactly):
            np.testing.assert_allclose(numbers(so3.log(R)), expected, atol=5e-15)


def test_log_of_random_rotations():
    rng = np.random.default_rng(1)
    for _ in range(500):
        R = random_rotation(rng)
        w = numbers(so3.log(R))
        assert np.linalg.norm(w) <= PI + 4e-15
        np.testing.assert_allclose(exact_exp(w), R, atol=3e-15)


@given(vectors, st.integers(0, 2**32 - 1))
def test_exp_and_log_do_not_depend_on_the_frame(w, seed):
    Q = random_rotation(np.random.default_rng(seed))
    np.testing.assert_allclose(numbers(so3.exp(Q @ w)), Q @ numbers(so3.exp(w)) @ Q.T, atol=3e-14)


def test_first_and_second_derivatives_are_finite_everywhere():
    w = ca.SX.sym("w", 3)
    for function in (so3.exp, so3.left_jacobian, so3.left_jacobian_inverse):
        first = ca.jacobian(function(w), w)
        second = ca.jacobian(first, w)
        f = ca.Function("f", [w], [first, second])
        for angle in (0.0, 1e-300, 1e-8, 2.0, 2.0 - 1e-15, 3.0):
            for part in f(angle * AXES[4]):
                assert np.all(np.isfinite(np.array(part)))


def test_wrong_shapes_are_named():
    with pytest.raises(GeometryError, match=r"`w` must have shape \(3, 1\), got \(4, 1\)"):
        so3.wed([1, 2, 3, 4])
    with pytest.raises(GeometryError, match=r"`R` must have shape \(3, 3\), got \(3, 1\)"):
        so3.log([1, 2, 3])
