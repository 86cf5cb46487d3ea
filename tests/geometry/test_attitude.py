"""The attitude function: minimum, every kind of critical set, polar decomposition, Wahba."""

import numpy as np
import pytest
from geometry_cases import PI, numbers, random_rotation
from hypothesis import given
from hypothesis import strategies as st
from scipy.spatial.transform import Rotation

from framefree.geometry import GeometryError, so3
from framefree.geometry.attitude import AttitudeFunction, special_polar, wahba
from framefree.geometry.operators import Wed

seeds = st.integers(0, 2**32 - 1)

# lam ascending -> the (kind, type) of the sets, by rising V [Konz2024, sec. 2.4].
FOUR_POINTS = [("point", "minimum"), ("point", "saddle"), ("point", "saddle"), ("point", "maximum")]
PATTERNS = {
    (1, 2, 4): FOUR_POINTS,
    (1, 2, 2.5): FOUR_POINTS,
    (1, 1, 2): [("point", "minimum"), ("circle", "saddle"), ("point", "maximum")],
    (1, 2, 2): [("point", "minimum"), ("point", "saddle"), ("circle", "maximum")],
    (1, 1, 1): [("point", "minimum"), ("sphere", "maximum")],
    (0, 1, 2): [("circle", "minimum"), ("point", "saddle"), ("point", "maximum")],
    (0, 1, 1): [("circle", "minimum"), ("circle", "maximum")],
    (0, 0, 1): [("sphere", "minimum"), ("point", "maximum")],
    (0, 0, 0): [("all", "constant")],
}


def function_with(lam, rng):
    lam = np.array(lam, float)
    sigma = lam.sum() / 2 - lam
    return AttitudeFunction(random_rotation(rng) @ np.diag(sigma) @ random_rotation(rng))


def samples(critical_set, rng, count=20):
    size = critical_set.dimension + 1
    yield critical_set.rotation()
    for _ in range(count):
        yield critical_set.rotation(rng.normal(size=size))


@pytest.mark.parametrize("lam", PATTERNS)
def test_kinds_and_types(lam):
    rng = np.random.default_rng(0)
    for _ in range(20):
        V = function_with(lam, rng)
        np.testing.assert_allclose(V.lam, lam, atol=1e-14)
        sets = V.critical_sets()
        assert [(s.kind, s.type) for s in sets] == PATTERNS[lam]
        assert sum(s.dimension + 1 for s in sets) == 4
        assert [s.value for s in sets] == sorted(s.value for s in sets)


@pytest.mark.parametrize("lam", PATTERNS)
def test_every_member_is_critical_with_the_stated_value_and_curvature(lam):
    rng = np.random.default_rng(1)
    V = function_with(lam, rng)
    for critical_set in V.critical_sets():
        for R in samples(critical_set, rng):
            np.testing.assert_allclose(R.T @ R, np.eye(3), atol=1e-14)
            np.testing.assert_allclose(V.gradient(R), np.zeros(3), atol=1e-13)
            np.testing.assert_allclose(V.value(R), critical_set.value, atol=1e-13)
            curvatures = np.linalg.eigvalsh(V.hessian(R))
            np.testing.assert_allclose(curvatures, critical_set.curvatures, atol=1e-13)
            assert np.sum(np.abs(curvatures) < 1e-9) == critical_set.dimension
            assert critical_set.distance(R) < 1e-13
        assert critical_set.index == np.sum(critical_set.curvatures < 0)


@pytest.mark.parametrize("lam", PATTERNS)
def test_no_critical_point_is_missed(lam):
    """Newton's method on the gradient from everywhere ends in one of the sets."""
    rng = np.random.default_rng(2)
    V = function_with(lam, rng)
    sets = V.critical_sets()
    found = set()
    for _ in range(60):
        R = random_rotation(rng)
        for _ in range(25):
            step = np.linalg.pinv(V.hessian(R), rcond=1e-6) @ V.gradient(R)
            size = np.linalg.norm(step)
            if size < 1e-13:
                break
            R = R @ numbers(so3.exp(-step * min(1.0, 0.5 / size)))
        if np.linalg.norm(V.gradient(R)) > 1e-12:
            continue
        distances = [s.distance(R) for s in sets]
        assert min(distances) < 1e-5
        found.add(int(np.argmin(distances)))
    assert found == set(range(len(sets)))


@given(seeds)
def test_minimum_gradient_and_hessian(seed):
    rng = np.random.default_rng(seed)
    V = AttitudeFunction(rng.normal(size=(3, 3)))
    R, w = random_rotation(rng), rng.normal(size=3)
    assert V.value(V.minimum) <= V.value(R) + 1e-12
    np.testing.assert_allclose(V.value(V.minimum), -V.sigma.sum(), atol=1e-13)
    np.testing.assert_allclose(np.linalg.det(V.minimum), 1.0)
    h = 1e-4
    ahead, here, behind = (V.value(R @ so3.exp(t * w)) for t in (h, 0.0, -h))
    np.testing.assert_allclose((ahead - behind) / (2 * h), V.gradient(R) @ w, atol=1e-6)
    np.testing.assert_allclose((ahead - 2 * here + behind) / h**2, w @ V.hessian(R) @ w, atol=1e-5)
    at_minimum = (V.X * V.lam) @ V.X.T
    np.testing.assert_allclose(V.hessian(V.minimum), at_minimum, atol=1e-13)


def test_the_four_points_in_principal_axes():
    """P diagonal: the identity and the half turns about x, y, z, as printed in [Konz2024, 2.67]."""
    sets = AttitudeFunction(np.diag([3.0, 2.0, 1.0])).critical_sets()
    expected = [np.eye(3), np.diag([1, -1, -1]), np.diag([-1, 1, -1]), np.diag([-1, -1, 1])]
    for critical_set, R in zip(sets, expected, strict=True):
        np.testing.assert_allclose(critical_set.rotation(), R, atol=1e-15)
    assert [s.index for s in sets] == [0, 1, 2, 3]
    l1, l2, l3 = 3.0, 4.0, 5.0
    values = [-(l1 + l2 + l3) / 2, (3 * l1 - l2 - l3) / 2, (3 * l2 - l1 - l3) / 2]
    np.testing.assert_allclose([s.value for s in sets[:3]], values)


def test_half_turns_of_the_identity_form_a_sphere():
    sphere = AttitudeFunction(np.eye(3)).critical_sets()[1]
    assert (sphere.kind, sphere.dimension, sphere.index) == ("sphere", 2, 1)
    rng = np.random.default_rng(0)
    for _ in range(20):
        axis = rng.normal(size=3)
        R = numbers(so3.exp(PI * axis / np.linalg.norm(axis)))
        assert sphere.distance(R) < 1e-14
    np.testing.assert_allclose(sphere.distance(np.eye(3)), PI)


def test_nearly_equal_eigenvalues_join_within_the_tolerance():
    V = AttitudeFunction(np.diag([3.0, 2.0, 2.0 + 1e-7]))
    assert len(V.critical_sets()) == 4
    assert len(V.critical_sets(tolerance=1e-6)) == 3


@given(seeds)
def test_special_polar_decomposition(seed):
    rng = np.random.default_rng(seed)
    Q = rng.normal(size=(3, 3)) @ np.diag(rng.choice([0.0, 1.0], size=3, p=[0.2, 0.8]))
    polar = special_polar(Q)
    np.testing.assert_allclose(polar.rotation @ numbers(Wed(polar.K)), Q, atol=1e-13)
    np.testing.assert_allclose(polar.stretch, numbers(Wed(polar.K)), atol=1e-14)
    np.testing.assert_allclose(np.linalg.det(polar.rotation), 1.0)
    np.testing.assert_allclose(polar.K, polar.K.T, atol=1e-14)
    lowest = np.linalg.eigvalsh(polar.K)[0]
    assert lowest > -1e-13
    assert polar.unique == (lowest > 1e-12 * np.linalg.eigvalsh(polar.K)[2])


def test_special_polar_recovers_its_factors():
    rng = np.random.default_rng(0)
    for _ in range(50):
        R, A = random_rotation(rng), rng.normal(size=(3, 3))
        polar = special_polar(R @ numbers(Wed(A @ A.T)))
        scale = np.linalg.cond(A @ A.T)
        np.testing.assert_allclose(polar.rotation, R, atol=1e-14 * scale)
        np.testing.assert_allclose(polar.K, A @ A.T, atol=1e-13)
    assert not special_polar(np.diag([1.0, 0.0, 0.0])).unique
    assert not special_polar(-np.eye(3)).unique


@given(seeds)
def test_wahba_without_noise_and_against_scipy(seed):
    rng = np.random.default_rng(seed)
    R, b, weights = random_rotation(rng), rng.normal(size=(5, 3)), rng.uniform(0.5, 2, size=5)
    exact = wahba(b @ R.T, b, weights)
    np.testing.assert_allclose(exact.rotation, R, atol=1e-12)
    assert exact.unique
    assert exact.cost < 1e-24
    a = b @ R.T + 0.1 * rng.normal(size=(5, 3))
    expected, root = Rotation.align_vectors(a, b, weights)
    solution = wahba(a, b, weights)
    np.testing.assert_allclose(solution.rotation, expected.as_matrix(), atol=1e-10)
    np.testing.assert_allclose(solution.cost, root**2, rtol=1e-8)


def test_wahba_hessian_is_half_the_second_derivative_of_the_cost():
    rng = np.random.default_rng(0)
    a, b, weights = rng.normal(size=(4, 3)), rng.normal(size=(4, 3)), rng.uniform(1, 2, size=4)
    solution = wahba(a, b, weights)
    for _ in range(20):
        w = 1e-3 * rng.normal(size=3)
        R = solution.rotation @ so3.exp(w)
        cost = weights @ np.sum((a - b @ np.array(R).T) ** 2, axis=1)
        np.testing.assert_allclose(cost - solution.cost, w @ solution.hessian @ w, rtol=1e-2)


def test_wahba_says_when_the_directions_do_not_determine_the_rotation():
    assert not wahba([[1, 0, 0], [2, 0, 0]], [[0, 1, 0], [0, 2, 0]]).unique
    assert not wahba([[1, 0, 0]], [[0, 1, 0]]).unique
    assert wahba([[1, 0, 0], [0, 1, 0]], [[0, 1, 0], [0, 0, 1]]).unique


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: AttitudeFunction(np.eye(2)), r"`P` must be finite numbers of shape \(3, 3\)"),
        (lambda: AttitudeFunction(np.full((3, 3), np.nan)), "`P` must be finite"),
        (lambda: wahba(np.eye(3), np.eye(3), [1, 1, -1]), "`weights` must not be negative"),
        (lambda: wahba(np.eye(3), np.ones((2, 3))), r"`b` must be .*shape \(3, 3\)"),
        (lambda: AttitudeFunction(np.eye(3)).critical_sets()[0].rotation([0]), "not all zero"),
    ],
)
def test_bad_arguments_are_named(call, message):
    with pytest.raises(GeometryError, match=message):
        call()
