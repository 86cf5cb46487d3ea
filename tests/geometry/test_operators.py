"""The defining identities of vee2, Vee and Wed, on 3x3 and 4x4."""

import casadi as ca
import numpy as np
import pytest
from geometry_cases import numbers, skew
from hypothesis import given
from hypothesis import strategies as st

from framefree.geometry import GeometryError, se3
from framefree.geometry.operators import Vee, Wed, vee2

seeds = st.integers(0, 2**32 - 1)


def wed4(xi):
    return numbers(se3.wed(xi))


CASES = [(3, 3, skew), (4, 6, wed4)]


@pytest.mark.parametrize(("n", "m", "wed"), CASES)
@given(seed=seeds)
def test_identities(n, m, wed, seed):
    rng = np.random.default_rng(seed)
    Q, xi, eta = rng.normal(size=(n, n)), rng.normal(size=m), rng.normal(size=m)
    np.testing.assert_allclose(np.trace(Q @ wed(xi).T), xi @ numbers(vee2(Q)), atol=1e-13)
    form = np.trace(wed(xi) @ Q @ wed(eta).T)
    np.testing.assert_allclose(form, eta @ numbers(Vee(Q)) @ xi, atol=1e-13)
    S = Q + Q.T
    np.testing.assert_allclose(numbers(vee2(wed(xi) @ S)), numbers(Vee(S)) @ xi, atol=1e-13)
    np.testing.assert_allclose(numbers(Wed(Vee(Q))), Q, atol=1e-14)


@given(seeds)
def test_the_3x3_forms(seed):
    Q = np.random.default_rng(seed).normal(size=(3, 3))
    np.testing.assert_allclose(numbers(Vee(Q)), np.trace(Q) * np.eye(3) - Q, atol=1e-14)
    np.testing.assert_allclose(numbers(Wed(Q)), np.trace(Q) / 2 * np.eye(3) - Q, atol=1e-14)
    np.testing.assert_allclose(numbers(Vee(Wed(Q))), Q, atol=1e-14)
    np.testing.assert_allclose(skew(numbers(vee2(Q))), Q - Q.T, atol=1e-15)


def test_expressions_stay_dense_and_keep_their_zeros():
    m = ca.SX.sym("m")
    M = Vee(ca.diag(ca.vertcat(0, 0, 0, m)))
    assert M.is_dense()
    assert all(M[i, j].is_zero() for i in range(6) for j in range(6) if i != j or i > 2)
    np.testing.assert_array_equal(
        numbers(ca.Function("f", [m], [M])(2.0)), np.diag([2, 2, 2, 0, 0, 0])
    )


@pytest.mark.parametrize("operator", [vee2, Vee, Wed])
def test_other_shapes_are_refused(operator):
    with pytest.raises(GeometryError, match=rf"`{operator.__name__}` takes .*got \(2, 2\)"):
        operator(np.eye(2))
