"""Udwadia-Kalaba, Gauss and KKT give the same acceleration, at every rank, for singular M too."""

import numpy as np
import pytest

from framefree.motion.constrained.solve import METHODS, solve
from framefree.motion.equations import EquationsError


def problem(rng, *, mass_rank=None, rank=None, consistent=True):
    n = int(rng.integers(2, 8))
    m = int(rng.integers(1, 8))
    rank = int(rng.integers(1, min(n, m) + 1)) if rank is None else rank
    A = rng.normal(size=(m, rank)) @ rng.normal(size=(rank, n))
    root = rng.normal(size=(n, n if mass_rank is None else n - mass_rank))
    M = root @ root.T + (0.1 * np.eye(n) if mass_rank is None else 0)
    b = A @ rng.normal(size=n) if consistent else rng.normal(size=m)
    return M, rng.normal(size=n), A, b


@pytest.mark.parametrize("consistent", [True, False])
def test_methods_agree_at_every_rank(consistent):
    rng = np.random.default_rng(0)
    for _ in range(200):
        given = problem(rng, consistent=consistent)
        first, *others = (solve(*given, method) for method in METHODS)
        for other in others:
            assert np.allclose(first.a, other.a, atol=1e-8 * (1 + np.abs(first.a).max()))
            assert np.allclose(first.multipliers, other.multipliers, atol=1e-7)
        assert first.unique
        assert first.rank == np.linalg.matrix_rank(given[2])


def test_acceleration_is_the_minimum_of_gauss():
    rng = np.random.default_rng(1)
    for _ in range(50):
        M, Q, A, b = problem(rng)
        found = solve(M, Q, A, b)
        assert np.allclose(A @ found.a, b, atol=1e-9)
        assert found.residual < 1e-9
        # Q_c = M a - Q is orthogonal to every motion that the constraints allow.
        Z = np.eye(len(M)) - np.linalg.pinv(A) @ A
        assert np.abs(Z @ found.constraint_force).max() < 1e-8 * (1 + np.abs(Q).max())
        assert np.allclose(A.T @ found.multipliers, found.constraint_force, atol=1e-8)


def test_contradicting_rows_are_met_in_the_sense_of_least_squares():
    found = solve(np.eye(2), np.zeros(2), np.array([[1.0, 0], [1.0, 0]]), np.array([1.0, 3.0]))
    assert np.allclose(found.a, [2.0, 0.0])
    assert found.rank == 1
    assert np.isclose(found.residual, np.sqrt(2))
    assert not found.unique_multipliers


def test_singular_mass_is_enough_where_constraints_complete_it():
    rng = np.random.default_rng(2)
    for _ in range(100):
        n = 5
        root, A = rng.normal(size=(n, 3)), rng.normal(size=(3, n))
        M, Q, b = root @ root.T, rng.normal(size=n), rng.normal(size=3)
        results = [solve(M, Q, A, b, method) for method in METHODS]
        expected = np.linalg.solve(
            np.block([[M, A.T], [A, np.zeros((3, 3))]]), np.concatenate([Q, b])
        )
        for found in results:
            assert found.unique
            assert np.allclose(found.a, expected[:n], atol=1e-7 * (1 + np.abs(expected).max()))
            # The force is that of the original M (errata E3-5).
            assert np.allclose(found.multipliers, -expected[n:], atol=1e-6 * np.abs(expected).max())


def test_what_mass_and_constraints_leave_open_is_reported():
    M, A = np.diag([1.0, 0.0, 0.0]), np.array([[0.0, 1.0, 0.0]])
    found = solve(M, np.array([1.0, 0.0, 0.0]), A, np.array([2.0]))
    assert not found.unique
    assert np.allclose(found.a[:2], [1.0, 2.0])


def test_unknown_method_is_refused():
    with pytest.raises(EquationsError, match=r"`newton`.*udwadia-kalaba, gauss, kkt"):
        solve(np.eye(1), np.zeros(1), np.zeros((0, 1)), np.zeros(0), "newton")


def test_without_rows_the_motion_is_free():
    rng = np.random.default_rng(3)
    M, Q, *_ = problem(rng)
    n = len(M)
    for method in METHODS:
        found = solve(M, Q, np.zeros((0, n)), np.zeros(0), method)
        assert np.allclose(found.a, np.linalg.solve(M, Q))
        assert (found.rank, found.residual) == (0, 0.0)
