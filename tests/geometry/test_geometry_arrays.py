"""What geometry functions accept, and what they say of the rest."""

import casadi as ca
import numpy as np
import pytest
from geometry_cases import numbers

from framefree.geometry import GeometryError, se3, so3
from framefree.geometry.arrays import as_matrix, traced

CROSS = [[0, -3, 2], [3, 0, -1], [-2, 1, 0]]


@pytest.mark.parametrize(
    "w",
    [
        [1, 2, 3],
        (1.0, 2.0, 3.0),
        np.array([1, 2, 3]),
        np.array([[1], [2], [3]], dtype=np.float32),
        ca.DM([1, 2, 3]),
        np.arange(9)[1:4],
    ],
)
def test_numbers_of_every_kind(w):
    W = so3.wed(w)
    assert isinstance(W, ca.DM)
    np.testing.assert_array_equal(numbers(W), CROSS)


def test_symbols_alone_and_mixed_with_numbers():
    x = ca.SX.sym("x")
    for w in (ca.vertcat(1, 2, x), [1, 2, x], [ca.SX(1), 2.0, x]):
        W = so3.wed(w)
        assert isinstance(W, ca.SX)
        np.testing.assert_array_equal(numbers(ca.Function("f", [x], [W])(3)), CROSS)


def test_sparse_arguments_give_dense_results():
    assert as_matrix(ca.SX(3, 3)).is_dense()
    for G in (ca.SX.eye(4), ca.DM.eye(4)):
        assert se3.adjoint(G).is_dense()
        assert se3.compose(G, G).is_dense()
    assert so3.wed(ca.SX(3, 1)).is_dense()


def test_known_zeros_and_ones_vanish_from_the_graph():
    """A turn about z written through the general functions costs no more than about z."""
    x = ca.SX.sym("x")
    c, s = ca.cos(x), ca.sin(x)
    Rz = ca.vertcat(ca.horzcat(c, -s, 0), ca.horzcat(s, c, 0), ca.horzcat(0, 0, 1))
    G = se3.compose(np.eye(4), se3.pose(Rz, [0, 0, 0]), np.eye(4))
    assert ca.is_equal(G[:3, :3], Rz, 5)
    assert all(G[i, 3].is_zero() for i in range(3))


@pytest.mark.parametrize(
    ("w", "message"),
    [
        ([1, 2], r"`w` must have shape \(3, 1\), got \(2, 1\)"),
        ([[1, 2, 3]], r"`w` must have shape \(3, 1\), got \(1, 3\)"),
        (
            np.zeros((3, 1, 1)),
            r"`w` must have shape \(3, 1\): expected at most 2 dimensions, got 3",
        ),
        ("abc", r"`w` must have shape \(3, 1\): expected real numbers"),
        ([1j, 2, 3], r"`w` must have shape \(3, 1\): expected real numbers, got complex128"),
        ([1, None, 3], r"expected numbers or `casadi.SX`, got NoneType, int"),
        (None, r"expected numbers or `casadi.SX`, got NoneType"),
        ([[1, 2], 3], r"`w` must have shape \(3, 1\): "),
    ],
)
def test_everything_else_is_refused_by_name(w, message):
    with pytest.raises(GeometryError, match=message):
        so3.wed(w)


def test_named_and_missing_arguments():
    G = se3.pose(r=[1, 2, 3], R=np.eye(3))
    np.testing.assert_array_equal(numbers(se3.position(G)), [1, 2, 3])
    with pytest.raises(TypeError, match="missing a required argument: 'r'"):
        se3.pose(np.eye(3))


def test_traced_functions_keep_their_name_and_words():
    assert so3.exp.__name__ == "exp"
    assert "rotation" in so3.exp.__doc__

    @traced((2, 1), (1, 1))
    def scaled(x, k):
        return k * x

    np.testing.assert_array_equal(numbers(scaled([1, 2], 3)), [3, 6])
