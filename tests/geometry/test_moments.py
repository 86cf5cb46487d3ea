"""Moments are those of points: whatever is done to them, doing it to the points gives the same."""

import casadi as ca
import numpy as np
import pytest
from geometry_cases import numbers, random_pose, random_rotation, skew
from hypothesis import given
from hypothesis import strategies as st

from framefree.errors import FramefreeError
from framefree.geometry import GeometryError, Moments, MomentsError, se3
from framefree.geometry.operators import Vee, Wed

seeds = st.integers(0, 2**32 - 1)


def cloud(seed, signed=False):
    rng = np.random.default_rng(seed)
    count = rng.integers(1, 8)
    weights = rng.normal(size=count) if signed else rng.uniform(0.1, 2.0, size=count)
    return rng, rng.normal(size=(count, 3)), weights


def assert_same(a, b, tolerance=1e-12):
    np.testing.assert_allclose(a.matrix4, b.matrix4, atol=tolerance)


@given(seeds)
def test_forms_are_sums_over_the_points(seed):
    _, points, weights = cloud(seed, signed=True)
    m = Moments.of_points(points, weights)
    ones = np.hstack([points, np.ones((len(points), 1))])
    np.testing.assert_allclose(m.matrix4, np.einsum("p,pi,pj", weights, ones, ones), atol=1e-13)
    S = sum(w * skew(h).T @ skew(h) for w, h in zip(weights, points, strict=True))
    np.testing.assert_allclose(m.moment, S, atol=1e-13)
    top = np.hstack([m.total * np.eye(3), skew(m.first).T])
    np.testing.assert_allclose(m.matrix6, np.vstack([top, np.hstack([skew(m.first), S])]))
    np.testing.assert_allclose(m.matrix6, numbers(Vee(m.matrix4)), atol=1e-15)
    np.testing.assert_allclose(m.matrix4, numbers(Wed(m.matrix6)), atol=1e-14)


@given(seeds)
def test_kinetic_energy(seed):
    rng, points, weights = cloud(seed)
    v, w = rng.normal(size=(2, 3))
    xi = np.concatenate([v, w])
    m = Moments.of_points(points, weights)
    energy = 0.5 * weights @ np.sum((v + np.cross(w, points)) ** 2, axis=1)
    np.testing.assert_allclose(0.5 * xi @ m.matrix6 @ xi, energy, rtol=1e-12)


@given(seeds)
def test_moved_moments_are_those_of_moved_points(seed):
    rng, points, weights = cloud(seed, signed=True)
    G, H = random_pose(rng), random_pose(rng)
    m = Moments.of_points(points, weights)
    moved = m.moved(G)
    assert_same(moved, Moments.of_points(points @ G[:3, :3].T + G[:3, 3], weights))
    assert_same(moved.moved(H), m.moved(H @ G))
    assert_same(moved.moved(numbers(se3.inverse(G))), m)
    back = numbers(se3.adjoint(se3.inverse(G)))
    np.testing.assert_allclose(moved.matrix6, back.T @ m.matrix6 @ back, atol=1e-12)
    np.testing.assert_allclose(moved.matrix4, G @ m.matrix4 @ G.T, atol=1e-12)


@given(seeds)
def test_sums_and_multiples(seed):
    rng, points, weights = cloud(seed)
    cut = rng.integers(0, len(points) + 1)
    first = Moments.of_points(points[:cut], weights[:cut])
    rest = Moments.of_points(points[cut:], weights[cut:])
    whole = Moments.of_points(points, weights)
    assert_same(first + rest, whole)
    assert_same(sum([first, rest]), whole)
    assert_same(whole - rest, first)
    assert_same(2.5 * whole, Moments.of_points(points, 2.5 * weights))
    assert_same(whole * 2.5, 2.5 * whole)
    assert_same(-whole + whole, Moments.zero())
    assert whole + Moments.zero() == whole


@given(seeds)
def test_from_total_center_and_moment(seed):
    _, points, weights = cloud(seed)
    m = Moments.of_points(points, weights)
    assert_same(Moments.of(m.total, m.center, m.moment), m)
    assert_same(Moments.of_body(m.total, m.center, m.moment_at_center), m)
    # Steiner: the moment about the origin exceeds that about the center by that of the total.
    steiner = m.total * skew(m.center).T @ skew(m.center)
    np.testing.assert_allclose(m.moment, m.moment_at_center + steiner, atol=1e-12)
    np.testing.assert_allclose(
        m.moment_at_center, Moments.of_points(points - m.center, weights).moment, atol=1e-12
    )


def test_solid_box():
    """m/12 (b^2 + c^2) about the center, m/3 (b^2 + c^2) about a corner."""
    a, b, c, m = 0.2, 0.3, 0.5, 7.0
    inertia = m / 12 * np.diag([b * b + c * c, a * a + c * c, a * a + b * b])
    box = Moments.of_body(m, [a / 2, b / 2, c / 2], inertia)
    expected = m / 3 * np.array([b * b + c * c, a * a + c * c, a * a + b * b])
    np.testing.assert_allclose(np.diag(box.moment), expected)
    np.testing.assert_allclose(box.moment[0, 1], -m * a * b / 4)
    box.validate_mass("box")
    assert box.problems() == ()


def test_zero_total():
    torsion = Moments.of(0.0, np.zeros(3), np.diag([1.0, 2.0, 3.0]))
    assert torsion.total == 0.0
    np.testing.assert_allclose(torsion.matrix6, np.diag([0, 0, 0, 1, 2, 3]))
    assert torsion.problems() == ()
    with pytest.raises(MomentsError, match="total of these `Moments` is zero"):
        torsion.center
    G = random_pose(np.random.default_rng(0))
    turned = G[:3, :3] @ np.diag([1.0, 2.0, 3.0]) @ G[:3, :3].T
    np.testing.assert_allclose(torsion.moved(G).moment, turned)
    assert Moments.zero().problems() == ()


def test_mass_must_be_positive_and_made_of_points():
    flat = Moments.of_points([[1, 0, 0], [0, 1, 0], [-1, -1, 0]], [1, 2, 3])
    flat.validate_mass("plate")
    Moments.of_points([[0.1, 0.2, 0.3]], [1e-9]).validate_mass("one point")
    with pytest.raises(MomentsError, match="body `arm`: expected a positive mass, got 0"):
        Moments.zero().validate_mass("arm")
    with pytest.raises(MomentsError, match="body `arm`: expected a positive mass, got -1"):
        (-1 * flat * (1 / 6)).validate_mass("arm")
    # 3 > 1 + 1: no points can do this.
    broken = Moments.of_body(1.0, [0.1, 0, 0], np.diag([1.0, 1.0, 3.0]))
    with pytest.raises(MomentsError, match=r"body `arm`: impossible.*triangle inequality"):
        broken.validate_mass("arm")
    assert len(broken.problems()) == 1
    assert "triangle inequality" in broken.problems()[0]
    assert broken.problems(form="6x6") == ()
    negative = Moments.of_body(1.0, [0.1, 0, 0], np.diag([1.0, 1.0, -1e-3]))
    assert "6x6" in negative.problems(form="6x6")[0]


@pytest.mark.parametrize("mass", [1e-12, 1.0, 1e12])
@pytest.mark.parametrize("length", [1e-6, 1.0, 1e6])
def test_checks_do_not_depend_on_the_units(mass, length):
    rng = np.random.default_rng(0)
    for _ in range(20):
        G = random_pose(rng)
        G[:3, 3] *= length
        good = Moments.of_body(mass, np.zeros(3), mass * length**2 * np.diag([1.0, 2.0, 3.0]))
        bad = Moments.of_body(mass, np.zeros(3), mass * length**2 * np.diag([1.0, 2.0, 3.01]))
        assert good.moved(G).problems() == ()
        assert len(bad.moved(G).problems()) == 1


@given(seeds)
def test_points_never_have_problems(seed):
    _, points, weights = cloud(seed)
    Moments.of_points(points, weights).validate_mass("cloud")


def test_symbolic_entries():
    rng = np.random.default_rng(0)
    m, c, s = ca.SX.sym("m"), ca.SX.sym("c", 3), ca.SX.sym("s")
    G = random_pose(rng)
    body = Moments.of_body(m, c, np.diag([1.0, 2.0, 2.5])).moved(G) + s * Moments.of(
        1.0, [1, 2, 3], np.eye(3)
    )
    assert body.symbolic
    assert body.problems() == ()
    body.validate_mass("tunable")
    everything = [body.matrix4, body.matrix6, body.center, body.moment, body.moment_at_center]
    f = ca.Function("f", [m, c, s], everything)
    center = rng.normal(size=3)
    number = Moments.of_body(2.0, center, np.diag([1.0, 2.0, 2.5])).moved(G) + 0.7 * Moments.of(
        1.0, [1, 2, 3], np.eye(3)
    )
    expected = [
        number.matrix4,
        number.matrix6,
        number.center,
        number.moment,
        number.moment_at_center,
    ]
    for got, want in zip(f(2.0, center, 0.7), expected, strict=True):
        np.testing.assert_allclose(numbers(got), want, atol=1e-13)


def test_symbolic_pose_and_lists_that_mix_numbers_and_symbols():
    x = ca.SX.sym("x")
    G = se3.exp([0, 0, x, 0, 0, x])
    moved = Moments.of_points(np.eye(3), np.ones(3)).moved(G)
    got = numbers(ca.Function("f", [x], [moved.matrix6])(0.3))
    expected = Moments.of_points(np.eye(3), np.ones(3)).moved(se3.exp([0, 0, 0.3, 0, 0, 0.3]))
    np.testing.assert_allclose(got, expected.matrix6, atol=1e-14)
    assert Moments.of_points([[x, 0, 0], [0, 1, 0]], [1, x]).symbolic


def test_symbolic_forms_keep_exact_zeros():
    m = ca.SX.sym("m")
    M = Moments.of_body(m, [0, 0, 0.5], np.diag([1.0, 2.0, 2.5])).matrix6
    assert sum(M[i, j].is_zero() for i in range(6) for j in range(6)) == 36 - 6 - 4


def test_it_is_frozen_and_comparable():
    a = Moments.of(1.0, [0, 0, 1], np.eye(3))
    with pytest.raises(AttributeError):
        a.total = 2.0
    with pytest.raises(ValueError, match="read-only"):
        a.first[0] = 1.0
    assert a == Moments.of(1.0, [0, 0, 1], np.eye(3))
    assert hash(a) == hash(Moments.of(1.0, [0, 0, 1], np.eye(3)))
    assert a != Moments.of(1.0, [0, 0, 1.001], np.eye(3))
    assert a != "a"
    m = ca.SX.sym("m")
    assert Moments.of(m, [0, 0, 1], np.eye(3)) == Moments.of(m, [0, 0, 1], np.eye(3))
    assert Moments.of(m, [0, 0, 1], np.eye(3)) != Moments.of(m, [0, 0, 2], np.eye(3))


def test_changing_the_arguments_later_changes_nothing():
    center, second = np.array([0.0, 0.0, 1.0]), np.eye(3)
    m = Moments(1.0, center, second)
    center[0], second[0, 0] = 5.0, 5.0
    assert m == Moments(1.0, [0, 0, 1], np.eye(3))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((1.0, [0, 0], np.eye(3)), r"`first` must have shape \(3, 1\), got \(2, 1\)"),
        ((1.0, [0, 0, 0], np.eye(4)), r"`second` must have shape \(3, 3\), got \(4, 4\)"),
        (([1.0, 2.0], [0, 0, 0], np.eye(3)), r"`total` must have shape \(1, 1\), got \(2, 1\)"),
        ((np.nan, [0, 0, 0], np.eye(3)), "`total` of `Moments` must be finite, got nan"),
        ((1.0, [0, np.inf, 0], np.eye(3)), "`first` of `Moments` must be finite"),
        ((1.0, [0, 0, 0], np.triu(np.ones((3, 3)))), "`second` of `Moments` must be symmetric"),
    ],
)
def test_bad_arguments_are_named(arguments, message):
    with pytest.raises(GeometryError, match=message) as caught:
        Moments(*arguments)
    assert isinstance(caught.value, FramefreeError)


def test_nonsymmetric_moment_is_refused():
    moment = np.eye(3)
    moment[0, 1] = 0.5
    with pytest.raises(MomentsError, match="symmetric"):
        Moments.of(1.0, np.zeros(3), moment)


def test_points_and_weights_must_fit():
    with pytest.raises(GeometryError, match=r"`points` must have shape \(2, 3\)"):
        Moments.of_points(np.eye(3), [1, 2])


def test_isotropic_moments_turn_into_themselves():
    rng = np.random.default_rng(3)
    ball = Moments.of_body(2.0, np.zeros(3), 0.1 * np.eye(3))
    turned = ball.moved(se3.pose(random_rotation(rng), np.zeros(3)))
    assert_same(turned, ball, 1e-15)


def test_a_center_beyond_all_numbers_is_refused():
    with pytest.raises(MomentsError, match="too large for its total"):
        Moments(1e-3, [1e170, 0, 0], np.eye(3))
    assert Moments(1e-300, [1e-10, 0, 0], np.eye(3)).problems()
