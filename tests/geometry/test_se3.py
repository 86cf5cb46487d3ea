"""Laws of SE(3): the group, its adjoint maps, exponential, logarithm and the pose error."""

import casadi as ca
import mpmath as mp
import numpy as np
import pytest
from geometry_cases import (
    ANGLES,
    AXES,
    PI,
    numbers,
    random_pose,
    random_rotation,
    skew,
    value_and_jacobian,
)
from hypothesis import given
from hypothesis import strategies as st

from framefree.geometry import GeometryError, se3, so3

twists = st.lists(st.floats(-5, 5), min_size=6, max_size=6).map(np.array)
seeds = st.integers(0, 2**32 - 1)

exp = value_and_jacobian(se3.exp, (6,))
roundtrip = value_and_jacobian(lambda xi: se3.log(se3.exp(xi)), (6,))


def wed(xi):
    X = np.zeros((4, 4))
    X[:3, :3], X[:3, 3] = skew(xi[3:]), xi[:3]
    return X


def poses(seed, count):
    rng = np.random.default_rng(seed)
    return [random_pose(rng) for _ in range(count)]


@given(seeds)
def test_compose_and_inverse_are_those_of_matrices(seed):
    A, B, C = poses(seed, 3)
    np.testing.assert_allclose(numbers(se3.compose(A, B, C)), A @ B @ C, atol=5e-15)
    np.testing.assert_array_equal(numbers(se3.compose(A)), A)
    np.testing.assert_allclose(numbers(se3.inverse(A)) @ A, np.eye(4), atol=3e-15)
    np.testing.assert_array_equal(numbers(se3.inverse(A))[3], [0, 0, 0, 1])
    np.testing.assert_array_equal(
        numbers(se3.pose(se3.rotation(A), se3.position(A))),
        A,
    )


def test_compose_of_nothing_is_refused():
    with pytest.raises(GeometryError, match="at least one pose"):
        se3.compose()


def test_compose_wastes_no_operation():
    """27 + 9 products and 18 + 9 sums, none for the constant last row."""
    R, S, r, s = (ca.SX.sym("m", *shape) for shape in [(3, 3), (3, 3), (3,), (3,)])
    G = se3.compose(se3.pose(R, r), se3.pose(S, s))
    assert all(G[3, j].is_constant() for j in range(4))
    f = ca.Function("f", [R, S, r, s], [se3.rotation(G), se3.position(G)])
    arithmetic = f.n_instructions() - f.nnz_in() - f.nnz_out()
    assert arithmetic == 36 + 27


@given(twists, twists, seeds)
def test_adjoint(xi, eta, seed):
    A, B = poses(seed, 2)
    Ad = numbers(se3.adjoint(A))
    np.testing.assert_allclose(wed(Ad @ xi), A @ wed(xi) @ np.linalg.inv(A), atol=1e-12)
    np.testing.assert_allclose(numbers(se3.adjoint(A @ B)), Ad @ se3.adjoint(B), atol=2e-14)
    np.testing.assert_allclose(Ad @ se3.adjoint(se3.inverse(A)), np.eye(6), atol=2e-14)
    bracket = wed(xi) @ wed(eta) - wed(eta) @ wed(xi)
    np.testing.assert_allclose(wed(numbers(se3.little_adjoint(xi)) @ eta), bracket, atol=1e-12)


@given(twists, seeds)
def test_rate_of_the_adjoint(xi, seed):
    """d/dt Ad_G = Ad_G ad_xi along dG/dt = G wed(xi)."""
    (G,) = poses(seed, 1)
    h = 1e-5
    ahead = numbers(se3.adjoint(se3.compose(G, se3.exp(h * xi))))
    behind = numbers(se3.adjoint(se3.compose(G, se3.exp(-h * xi))))
    expected = numbers(se3.adjoint(G)) @ numbers(se3.little_adjoint(xi))
    np.testing.assert_allclose((ahead - behind) / (2 * h), expected, atol=1e-6)


def test_adjoints_of_expressions_hold_exact_zeros():
    xi = ca.SX.sym("xi", 6)
    for matrix in (se3.adjoint(se3.exp(xi)), se3.little_adjoint(xi)):
        assert matrix.is_dense()
        assert all(matrix[i, j].is_zero() for i in (3, 4, 5) for j in (0, 1, 2))
    X = se3.wed(xi)
    assert all(X[3, j].is_zero() for j in range(4))


@given(twists)
def test_wed_and_vee(xi):
    np.testing.assert_array_equal(numbers(se3.wed(xi)), wed(xi))
    np.testing.assert_array_equal(numbers(se3.vee(se3.wed(xi))), xi)


def exact_exp_and_derivative(xi, direction):
    """The matrix exponential and its derivative, from one 8x8 exponential of many digits."""
    block = mp.zeros(8)
    X, E = wed(xi), wed(direction)
    for i in range(4):
        for j in range(4):
            block[i, j] = block[i + 4, j + 4] = mp.mpf(float(X[i, j]))
            block[i, j + 4] = mp.mpf(float(E[i, j]))
    with mp.workdps(40):
        result = mp.expm(block)
    result = np.array([[float(result[i, j]) for j in range(8)] for i in range(8)])
    return result[:4, :4], result[:4, 4:]


@pytest.mark.parametrize("angle", ANGLES)
@pytest.mark.first_cases(9)
def test_exp_value_and_derivative(angle):
    xi = np.concatenate([[0.7, -1.1, 0.4], angle * AXES[5]])
    G, J = exp(xi)
    for i in range(6):
        expected, slope = exact_exp_and_derivative(xi, np.eye(6)[i])
        np.testing.assert_allclose(J[:, i].reshape(4, 4, order="F"), slope, atol=5e-15)
    np.testing.assert_allclose(G, expected, atol=1e-15)
    np.testing.assert_allclose(numbers(se3.exp(xi)), G, atol=5e-16)


@pytest.mark.parametrize("angle", ANGLES)
@pytest.mark.parametrize("axis", AXES)
def test_log_undoes_exp(angle, axis):
    xi = np.concatenate([[0.7, -1.1, 0.4], angle * axis])
    result, J = roundtrip(xi)
    if angle == PI and axis[np.flatnonzero(axis)[0]] < 0:
        # The same pose by the opposite axis.
        np.testing.assert_allclose(numbers(se3.exp(result)), numbers(se3.exp(xi)), atol=5e-15)
        np.testing.assert_allclose(result[3:], -xi[3:], atol=5e-15)
        assert np.all(np.isfinite(J))
    else:
        np.testing.assert_allclose(result, xi, atol=5e-15)
        np.testing.assert_allclose(J, np.eye(6), atol=5e-14)


def test_log_of_random_poses():
    rng = np.random.default_rng(0)
    for _ in range(200):
        G = random_pose(rng)
        np.testing.assert_allclose(numbers(se3.exp(se3.log(G))), G, atol=1e-14)


@given(twists, seeds)
def test_exp_does_not_depend_on_the_frame(xi, seed):
    """G exp(xi) G^-1 = exp(Ad_G xi)."""
    (G,) = poses(seed, 1)
    left = numbers(se3.compose(G, se3.exp(xi), se3.inverse(G)))
    right = numbers(se3.exp(numbers(se3.adjoint(G)) @ xi))
    np.testing.assert_allclose(left, right, atol=1e-12)


@given(seeds)
def test_pose_error(seed):
    """What to add: r + e_r = r_d, R exp(e_R) = R_d; zero iff equal."""
    G, desired = poses(seed, 2)
    e = numbers(se3.pose_error(G, desired))
    np.testing.assert_allclose(G[:3, 3] + e[:3], desired[:3, 3], atol=1e-15)
    np.testing.assert_allclose(G[:3, :3] @ so3.exp(e[3:]), desired[:3, :3], atol=5e-15)
    np.testing.assert_allclose(numbers(se3.pose_error(G, G)), np.zeros(6), atol=1e-15)


def test_rate_of_the_pose_error():
    """As its docstring states, with world-axes velocities; and d/dt |e_R|^2/2 = e_R . w_e."""
    rng = np.random.default_rng(0)
    h = 1e-5
    for _ in range(50):
        G, desired = random_pose(rng), random_pose(rng)
        v, w, v_d, w_d = rng.normal(size=(4, 3))

        def at(t, G=G, desired=desired, v=v, w=w, v_d=v_d, w_d=w_d):
            R, R_d = so3.exp(t * w) @ G[:3, :3], so3.exp(t * w_d) @ desired[:3, :3]
            pair = se3.pose(R, G[:3, 3] + t * v), se3.pose(R_d, desired[:3, 3] + t * v_d)
            return numbers(se3.pose_error(*pair))

        e = at(0.0)
        if np.linalg.norm(e[3:]) > PI - 0.1:
            continue
        w_e = desired[:3, :3].T @ (w_d - w)
        turning = numbers(so3.right_jacobian_inverse(e[3:])) @ w_e
        slope = (at(h) - at(-h)) / (2 * h)
        np.testing.assert_allclose(slope, np.concatenate([v_d - v, turning]), atol=1e-6)
        np.testing.assert_allclose(e[3:] @ turning, e[3:] @ w_e, atol=1e-12)


def test_error_of_a_half_turn_is_finite_with_its_derivative():
    error = value_and_jacobian(
        lambda d: se3.pose_error(se3.pose(so3.exp(d), [0, 0, 0]), np.eye(4)), (3,)
    )
    for axis in AXES:
        e, J = error(PI * axis)
        np.testing.assert_allclose(np.linalg.norm(e[3:]), PI, rtol=1e-15)
        assert np.all(np.isfinite(J))


def test_rotation_of_numpy_pose_and_mixed_arguments():
    rng = np.random.default_rng(2)
    R, r = random_rotation(rng), ca.SX.sym("r", 3)
    G = se3.compose(se3.pose(R, r), np.eye(4))
    assert isinstance(G, ca.SX)
    assert G.shape == (4, 4)
