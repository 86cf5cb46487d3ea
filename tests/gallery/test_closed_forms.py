"""Closed forms against plain numerical integration, and against numbers of others."""

import numpy as np
import pytest
from scipy.integrate import solve_ivp

from framefree.gallery.scenarios.classics.closed_forms import (
    asymmetric_body,
    axisymmetric_body,
    integral,
    lagrange_top,
    swinging_over,
)
from framefree.gallery.shared.rotations import about, angle_between
from framefree.geometry import batch
from published import published


def integrated(J, w0, t, moment=lambda R: np.zeros(3)):
    """Attitudes and body rates by Euler's equations, with a moment in body axes."""

    def rates(_, y):
        R, w = y[:9].reshape(3, 3), y[9:]
        wed = np.array([[0, -w[2], w[1]], [w[2], 0, -w[0]], [-w[1], w[0], 0]])
        return np.concatenate([(R @ wed).ravel(), (np.cross(J * w, w) + moment(R)) / J])

    y = solve_ivp(
        rates, (0, t[-1]), [*np.eye(3).ravel(), *w0], "DOP853", t, rtol=1e-12, atol=1e-12
    ).y
    return y[:9].T.reshape(-1, 3, 3), y[9:].T


@pytest.mark.parametrize("seed", range(8))
def test_asymmetric_body(seed):
    """Any order of the moments, either side of the separatrix."""
    rng = np.random.default_rng(seed)
    J, w, t = rng.uniform(1, 2, 3), 3 * rng.normal(size=3), np.linspace(0, 4, 81)
    R, rate = integrated(J, w, t)
    found = asymmetric_body(t, w, J)
    assert angle_between(R, found.rotation).max() < 1e-9
    assert np.abs(rate - found.rate).max() < 1e-9


def test_axisymmetric_body():
    for I, J in ((0.04, 0.02), (0.02, 0.035)):  # a rod, a disc
        t, w = np.linspace(0, 4, 81), np.array([2.0, -4.0, 6.0])
        R, rate = integrated(np.array([I, I, J]), w, t)
        found = axisymmetric_body(t, w, I, J)
        assert angle_between(R, found.rotation).max() < 1e-9
        assert np.abs(rate - found.rate).max() < 1e-9


@pytest.mark.parametrize(
    ("spin", "precession"), [(20.0, -1.0), (20.0, 0.3), (20.0, 6.0), (-15.0, 2.0)]
)
def test_lagrange_top(spin, precession):
    """Falling and rising, either sense of the spin."""
    J, weight, t = np.array([2.0, 0.5, 2.0]), 6.0, np.linspace(0, 3, 301)

    def moment(R):
        return np.cross((0, 1, 0), -weight * R[2])  # weight along -z at body y

    R, _ = integrated(J, (0, spin, precession), t, moment)
    assert angle_between(R, lagrange_top(t, spin, precession, 0.5, 2.0, weight)).max() < 1e-9


@pytest.mark.parametrize("miss", [0.0, 1e-12, 1e-6, -1e-6, 1e-2])
def test_a_top_that_passes_the_vertical(miss):
    """Momenta about axis and vertical are opposite, but for a miss."""
    J, weight, t = np.array([2.0, 0.5, 2.0]), 6.0, np.linspace(0, 3, 3001)

    def moment(R):
        return np.cross((0, 1, 0), -weight * R[2])

    precession = -0.5 * 8.0 / 2.0 + miss
    R, _ = integrated(J, (0, 8.0, precession), t, moment)
    assert angle_between(R, lagrange_top(t, 8.0, precession, 0.5, 2.0, weight)).max() < 1e-8
    assert R[:, 2, 1].min() < -0.99


def test_swinging_over():
    t = np.linspace(0, 6, 61)
    for rate, k in ((1.0, 11.4), (0.01, 4.0), (9.0, 2.0)):
        y = solve_ivp(
            lambda _, y, k=k: [y[1], k * np.sin(y[0])],
            (0, 6),
            [0, rate],
            "DOP853",
            t,
            rtol=1e-13,
            atol=1e-13,
        ).y
        found = swinging_over(t, rate, k)
        assert np.abs(found[0] - y[0]).max() < 1e-8
        assert np.abs(found[1] - y[1]).max() < 1e-8


def test_integral_is_exact_for_polynomials():
    t = np.array([0.0, 0.3, 1.0, 2.5])
    np.testing.assert_allclose(integral(lambda t: 19 * t**18, t), t**19, rtol=1e-13)


def test_rotations():
    angle = np.linspace(-3, 3, 13)
    for k, axis in enumerate("xyz"):
        half = np.zeros((13, 4))
        half[:, 0], half[:, 1 + k] = np.cos(angle / 2), np.sin(angle / 2)
        np.testing.assert_allclose(batch.rotation(half), about(axis, angle), atol=1e-15)
        gap = angle_between(about(axis, angle), np.eye(3))
        np.testing.assert_allclose(gap, np.abs(angle), atol=1e-7)
    assert angle_between(about("x", 1e-9), np.eye(3)) == pytest.approx(1e-9, rel=1e-6)


@pytest.mark.parametrize(("key", "rate"), [("4.61538 as in EXUDYN", -4.61538), ("60/13", -60 / 13)])
def test_numbers_of_the_heavy_top(key, rate):
    rows = published("classics")["heavy_top"][key]
    t = np.linspace(0, 2, 2001)
    R = lagrange_top(t, 150.0, rate, 0.46875, 15.234375, 15 * 9.81)
    for row in rows:
        k = round(row["t"] * 1000)
        assert angle_between(R[k], batch.rotation(row["quat"])) < 1e-11
        np.testing.assert_allclose(R[k][:, 1], row["com"], atol=1e-11)


def test_numbers_of_the_linkage():
    rows = published("classics")["four_bar"]
    phi, rate = swinging_over(rows["t"], 1.0, 3.5 * 9.81 / 3)
    np.testing.assert_allclose(phi, rows["phi"], atol=1e-10)
    np.testing.assert_allclose(rate, rows["phidot"], atol=1e-10)


def test_numbers_of_the_cylinder():
    facts = published("classics")["cylinder"]
    t = [row["t"] for row in facts["rows"]]
    found = axisymmetric_body(t, facts["w0_body"], facts["I"], facts["J"])
    for k, row in enumerate(facts["rows"]):
        assert angle_between(found.rotation[k], batch.rotation(row["quat"])) < 1e-11
        np.testing.assert_allclose(found.rate[k], row["omega_body"], atol=1e-11)
