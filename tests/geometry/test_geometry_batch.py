"""Batches of rotations and poses: entry by entry the same as the functions over casadi."""

import casadi as ca
import numpy as np
import pytest

from framefree.geometry import GeometryError, batch, quaternion, se3, so3


def turns():
    """Rotation vectors, random and where formulas switch: no turn, tiny ones, about half turns."""
    rng = np.random.default_rng(0)
    axes = rng.normal(size=(8, 3))
    axes /= np.linalg.norm(axes, axis=1, keepdims=True)
    axes = np.concatenate([axes, np.eye(3), -np.eye(3)])
    angles = [0.0, 1e-300, 1e-160, 1e-9, 1e-4, 1.0, 2.0 - 1e-12, 2.0 + 1e-12, np.pi - 1e-9, np.pi]
    return (np.array(angles)[:, None, None] * axes).reshape(-1, 3)


def number(function, *arguments):
    return np.array(ca.DM(function(*arguments)))


W = turns()
XI = np.concatenate([np.random.default_rng(1).normal(size=W.shape), W], axis=1)
R = np.array([number(so3.exp, w) for w in W])
G = np.array([number(se3.exp, xi) for xi in XI])
Q = np.array([number(quaternion.exp, w).ravel() for w in W])

CASES = {
    "rotation": (batch.rotation, quaternion.to_rotation, Q),
    "wxyz": (batch.wxyz, quaternion.from_rotation, R),
    "rotation_exp": (batch.rotation_exp, so3.exp, W),
    "rotation_log": (batch.rotation_log, so3.log, R),
    "pose_exp": (batch.pose_exp, se3.exp, XI),
    "pose_log": (batch.pose_log, se3.log, G),
    "inverse": (batch.inverse, se3.inverse, G),
    "adjoint": (batch.adjoint, se3.adjoint, G),
}


@pytest.mark.parametrize("name", CASES)
def test_entries_are_those_of_the_functions(name):
    many, one, values = CASES[name]
    result = many(values)
    for entry, value in zip(result, values, strict=True):
        expected = number(one, value)
        np.testing.assert_array_equal(entry, expected[:, 0] if entry.ndim == 1 else expected)


@pytest.mark.parametrize("name", CASES)
def test_leading_axes_stay(name):
    many, _, values = CASES[name]
    flat = many(values[:12])
    shaped = many(values[:12].reshape(2, 3, 2, *values.shape[1:]))
    np.testing.assert_array_equal(shaped.reshape(flat.shape), flat)
    np.testing.assert_array_equal(many(values[3]), flat[3])
    assert many(values[:0]).shape == (0, *flat.shape[1:])
    assert shaped.flags.c_contiguous
    assert shaped.dtype == float


def test_leading_axes_broadcast():
    H = G[5:9]
    products = batch.compose(G[:3, None], H)
    assert products.shape == (3, 4, 4, 4)
    for i in range(3):
        for j in range(4):
            np.testing.assert_allclose(products[i, j], G[i] @ H[j], atol=1e-15)
    np.testing.assert_allclose(batch.compose(H, batch.inverse(H)), np.tile(np.eye(4), (4, 1, 1)),
                               atol=1e-14)  # fmt: skip


def test_poses_of_positions_and_quaternions():
    poses = batch.pose(XI[:, :3], Q)
    np.testing.assert_array_equal(poses[:, :3, 3], XI[:, :3])
    np.testing.assert_array_equal(poses[:, :3, :3], batch.rotation(Q))
    np.testing.assert_array_equal(poses[:, 3], np.tile([0.0, 0, 0, 1], (len(Q), 1)))
    np.testing.assert_array_equal(batch.pose([1.0, 2.0, 3.0])[:3, :3], np.eye(3))


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: batch.rotation(np.zeros((5, 3))), r"`q` must have shape \(..., 4\), got \(5, 3\)"),
        (lambda: batch.inverse(np.eye(3)), r"`G` must have shape \(..., 4, 4\), got \(3, 3\)"),
        (lambda: batch.compose(), "at least one pose"),
    ],
)
def test_wrong_shapes_are_refused(call, message):
    with pytest.raises(GeometryError, match=message):
        call()
