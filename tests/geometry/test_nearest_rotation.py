"""The rotation nearest to a matrix: against the singular value decomposition, and optimality."""

import casadi as ca
import numpy as np
import pytest
from geometry_cases import numbers, random_rotation, skew, value_and_jacobian

from framefree.geometry import attitude, so3

symbolic = value_and_jacobian(so3.nearest_rotation, (3, 3))


def reference(Q):
    polar = attitude.special_polar(Q)
    return polar.rotation, np.linalg.eigvalsh(polar.K)


def samples(kind, rng):
    R, L, noise = random_rotation(rng), random_rotation(rng), rng.normal(size=(3, 3))
    return {
        "any": noise,
        "scaled rotation": R * 10.0 ** rng.uniform(-100, 100),
        "drifted rotation": R + 1e-6 * noise,
        "negative determinant": L @ np.diag([2.0, 1.0, -rng.uniform(0.0, 0.9)]) @ R,
        "flat": L @ np.diag([1.0, 1.0, 0.0]) @ R,
        "ill-conditioned": L @ np.diag([1.0, 1e-5, rng.uniform(0, 1) * 1e-5]) @ R,
    }[kind]


KINDS = ["any", "scaled rotation", "drifted rotation", "negative determinant", "flat"]


@pytest.mark.parametrize("kind", [*KINDS, "ill-conditioned"])
def test_it_is_the_nearest(kind):
    rng = np.random.default_rng(0)
    for _ in range(40):
        Q = samples(kind, rng)
        expected, curvature = reference(Q)
        tolerance = 1e-14 * curvature[2] / curvature[0]
        np.testing.assert_allclose(numbers(so3.nearest_rotation(Q)), expected, atol=tolerance)
        np.testing.assert_allclose(symbolic(Q)[0], expected, atol=tolerance)
        np.testing.assert_allclose(expected.T @ expected, np.eye(3), atol=1e-14)


@pytest.mark.parametrize("kind", KINDS)
def test_derivative(kind):
    """R^T dR = wed(p) with Vee(R^T Q) p = vee2(R^T dQ), since R^T Q stays symmetric."""
    rng = np.random.default_rng(1)
    for _ in range(20):
        Q, change = samples(kind, rng), rng.normal(size=(3, 3))
        R, _ = reference(Q)
        S = R.T @ Q
        A = R.T @ change - change.T @ R
        p = np.linalg.solve(np.trace(S) * np.eye(3) - S, [A[2, 1], A[0, 2], A[1, 0]])
        expected = R @ skew(p)
        got = (symbolic(Q)[1] @ change.ravel(order="F")).reshape(3, 3, order="F")
        np.testing.assert_allclose(got, expected, atol=1e-11 * np.abs(expected).max())


def test_derivative_where_it_is_ill_conditioned():
    """The same up to the condition number, squared: the derivative of an inverse."""
    rng = np.random.default_rng(4)
    for _ in range(10):
        Q, change = samples("ill-conditioned", rng), rng.normal(size=(3, 3))
        R, _ = reference(Q)
        S = R.T @ Q
        A = R.T @ change - change.T @ R
        p = np.linalg.solve(np.trace(S) * np.eye(3) - S, [A[2, 1], A[0, 2], A[1, 0]])
        expected = R @ skew(p)
        got = (symbolic(Q)[1] @ change.ravel(order="F")).reshape(3, 3, order="F")
        np.testing.assert_allclose(got, expected, atol=1e-4 * np.abs(expected).max())


def test_where_it_is_not_unique_one_of_the_nearest_is_returned():
    rng = np.random.default_rng(2)
    for sigma in ([1, 0, 0], [2, 1, -1], [1, 1, -1], [0, 0, 0]):
        for _ in range(20):
            Q = random_rotation(rng) @ np.diag(np.array(sigma, float)) @ random_rotation(rng)
            best = np.linalg.norm(Q - reference(Q)[0])
            for R in (numbers(so3.nearest_rotation(Q)), symbolic(Q)[0]):
                np.testing.assert_allclose(R.T @ R, np.eye(3), atol=1e-13)
                assert np.linalg.det(R) > 0
                np.testing.assert_allclose(np.linalg.norm(Q - R), best, atol=1e-12)
            assert np.all(np.isfinite(symbolic(Q)[1]))
    np.testing.assert_array_equal(numbers(so3.nearest_rotation(np.zeros((3, 3)))), np.eye(3))
    np.testing.assert_array_equal(symbolic(np.zeros((3, 3)))[0], np.eye(3))


def test_it_turns_with_the_frame():
    rng = np.random.default_rng(3)
    for _ in range(20):
        Q, L, R = rng.normal(size=(3, 3)), random_rotation(rng), random_rotation(rng)
        turned = numbers(so3.nearest_rotation(L @ Q @ R))
        curvature = reference(Q)[1]
        tolerance = 2e-14 * curvature[2] / curvature[0]
        expected = L @ numbers(so3.nearest_rotation(Q)) @ R
        np.testing.assert_allclose(turned, expected, atol=tolerance)


def test_not_a_number_passes_through():
    Q = np.eye(3)
    Q[0, 1] = np.nan
    assert np.all(np.isnan(numbers(so3.nearest_rotation(ca.DM(Q)))))
