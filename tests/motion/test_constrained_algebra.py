"""Straight-line linear algebra against NumPy: factors, pseudo-inverses, ranks, small pivots."""

import casadi as ca
import numpy as np
import pytest

from framefree.motion.constrained.algebra import MassFactor, RowSpace
from framefree.motion.constrained.orthogonal import Orthogonal


def spd(rng, n, branches=True):
    """A positive definite matrix, with the zeros of a tree of two branches."""
    root = np.tril(rng.normal(size=(n, n)))
    M = root.T @ root + np.eye(n)
    if branches and n > 3:
        a, b = slice(1, n // 2), slice(n // 2, n)
        M[a, b] = 0
        M[b, a] = 0
    return M + n * np.eye(n)


def evaluated(expression):
    return np.array(ca.DM(ca.Function("f", [], [expression])()["o0"]))


def test_factor_inverts_the_mass_matrix():
    for seed in range(20):
        rng = np.random.default_rng(seed)
        n = int(rng.integers(1, 9))
        M, y = spd(rng, n), rng.normal(size=(n, 2))
        factor = MassFactor(ca.sparsify(ca.SX(ca.DM(M))))
        assert np.allclose(
            evaluated(factor.out(factor.into(ca.SX(ca.DM(y))))), np.linalg.solve(M, y)
        )
        into = evaluated(factor.into(ca.SX(ca.DM(y))))
        assert np.allclose(into.T @ into, y.T @ np.linalg.solve(M, y))


def test_factor_keeps_the_zeros_of_branches():
    M = ca.SX.sym("M", 5, 5)
    M = ca.tril2symm(ca.tril(M))
    M[3:, 1:3] = 0
    M[1:3, 3:] = 0
    factor = MassFactor(ca.sparsify(M))
    assert [sorted(below) for below in factor.below] == [[], [0], [0, 1], [0], [0, 3]]


@pytest.mark.parametrize("seed", range(30))
def test_decomposition_is_the_pseudo_inverse_at_every_rank(seed):
    rng = np.random.default_rng(seed)
    n, m = int(rng.integers(1, 8)), int(rng.integers(1, 9))
    rank = int(rng.integers(0, min(n, m) + 1))
    A = rng.normal(size=(m, rank)) @ rng.normal(size=(rank, n))
    M, d = spd(rng, n), rng.normal(size=m)
    space = RowSpace(ca.SX(ca.DM(A)), ca.SX(ca.DM.ones(m)), MassFactor(ca.SX(ca.DM(M))))
    values, vectors = np.linalg.eigh(M)
    root = vectors / np.sqrt(values) @ vectors.T
    pinv = np.linalg.pinv(A @ root, rcond=1e-9)
    assert evaluated(space.rank) == rank
    assert np.allclose(evaluated(space.least(ca.SX(ca.DM(d))))[:, 0], root @ (pinv @ d), atol=1e-11)
    force = A.T @ rng.normal(size=m)
    shortest = np.linalg.pinv(A.T, rcond=1e-9) @ force
    assert np.allclose(evaluated(space.multipliers(ca.SX(ca.DM(force))))[:, 0], shortest, atol=1e-9)


@pytest.mark.parametrize("small", [1e-3, 1e-5, 1e-7, 1e-8])
def test_consistent_rows_stay_accurate_up_to_the_tolerance(small):
    """Six rows of which four are weak by `small`: all are met to rounding."""
    for seed in range(10):
        rng = np.random.default_rng(seed)
        A = rng.normal(size=(6, 2)) @ rng.normal(size=(2, 8)) + small * rng.normal(size=(6, 8))
        a = A.T @ rng.normal(size=6)  # in the range of A^T: the shortest solution of A a = d
        space = RowSpace(ca.SX(ca.DM(A)), ca.SX(ca.DM.ones(6)), None)
        assert evaluated(space.rank) == 6
        found = evaluated(space.least(ca.SX(ca.DM(A @ a))))[:, 0]
        assert np.abs(A @ (found - a)).max() < 1e-12
        # d carries a rounding error of 1e-16, which the weak directions magnify by 1 / small.
        assert np.abs(found - a).max() < 1e-13 / small


def test_rows_below_their_size_are_rounding_errors():
    A = np.array([[1.0, 0.0], [3e-17, 1e-17]])
    space = RowSpace(ca.SX(ca.DM(A)), ca.SX(ca.DM([1.0, 1.0])), None)
    assert evaluated(space.rank) == 1
    assert np.allclose(evaluated(space.least(ca.SX(ca.DM([2.0, 5.0]))))[:, 0], [2.0, 0.0])


def test_derivatives_pass_through_masked_rows():
    s = ca.SX.sym("s")
    A = ca.vertcat(ca.horzcat(ca.cos(s), ca.sin(s)), 2 * ca.horzcat(ca.cos(s), ca.sin(s)))
    y = RowSpace(A, ca.SX.ones(2), None).least(ca.vertcat(s, 2 * s))
    rate = ca.Function("f", [s], [ca.jacobian(y, s)])(0.7).full()[:, 0]
    expected = [np.cos(0.7) - 0.7 * np.sin(0.7), np.sin(0.7) + 0.7 * np.cos(0.7)]
    assert np.allclose(rate, expected)


def test_orthogonal_solves_both_ways():
    rng = np.random.default_rng(3)
    Y = rng.normal(size=(6, 4))
    decomposition = Orthogonal([ca.SX(ca.DM(c)) for c in Y.T], [ca.SX(1)] * 4, 1e-9)
    y = rng.normal(size=6)
    parts = decomposition.solve(decomposition.components(ca.SX(ca.DM(y))))
    assert np.allclose(evaluated(ca.vertcat(*parts))[:, 0], np.linalg.lstsq(Y, y)[0])
    assert np.allclose([float(ca.DM(s)) for s in decomposition.present], 1)
