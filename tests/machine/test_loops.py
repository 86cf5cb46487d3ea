"""Loops: the residual vanishes where closed, its Jacobian is exact, and N spans what is blocked."""

import casadi
import numpy as np
import pytest

from framefree.geometry import se3
from framefree.machine import Loop, MachineError
from framefree.machine.loop import across

SKEW = np.array([1.0, -2.0, 0.5])


def numeric(value):
    return np.array(casadi.DM(value))


def random_pose(rng):
    return numeric(se3.exp(rng.normal(size=6)))


def loops(rng):
    rest = random_pose(rng)
    return {
        "weld": Loop("l", "weld", "a", "b", rest=rest),
        "ball": Loop("l", "ball", "a", "b", rest=rest),
        "hinge": Loop("l", "hinge", "a", "b", axis=SKEW, rest=rest),
        "slider": Loop("l", "slider", "a", "b", axis=SKEW, rest=rest),
        "distance": Loop("l", "distance", "a", "b", length=0.7),
    }


def closed_pose(loop, rng):
    """A random pose that the loop allows, from what its kind means."""
    free = np.eye(4)
    if loop.kind == "ball":
        free[:3, :3] = random_pose(rng)[:3, :3]
    elif loop.kind == "hinge":
        free = numeric(se3.exp(np.concatenate([np.zeros(3), rng.uniform(-3, 3) * loop.axis])))
    elif loop.kind == "slider":
        free[:3, 3] = rng.normal() * loop.axis
    elif loop.kind == "distance":
        free = random_pose(rng)
        free[:3, 3] *= loop.length / np.linalg.norm(free[:3, 3])
        return free
    return loop.rest @ free


kinds = pytest.mark.parametrize("kind", ["weld", "ball", "hinge", "slider", "distance"])


@kinds
def test_residual_vanishes_exactly_where_closed(kind):
    rng = np.random.default_rng(0)
    for _ in range(20):
        loop = loops(rng)[kind]
        closed = closed_pose(loop, rng)
        assert numeric(loop.residual(casadi.DM(closed))).shape == (loop.size, 1)
        assert np.abs(numeric(loop.residual(casadi.DM(closed)))).max() < 1e-14
        open_pose = closed @ random_pose(rng)
        assert np.abs(numeric(loop.residual(casadi.DM(open_pose)))).max() > 1e-3


@kinds
def test_jacobian_is_the_rate_of_the_residual(kind):
    rng = np.random.default_rng(1)
    loop = loops(rng)[kind]
    G, xi, h = casadi.SX.sym("G", 4, 4), casadi.SX.sym("xi", 6), casadi.SX.sym("h")
    rate = casadi.jacobian(loop.residual(G @ se3.exp(h * xi)), h)
    gap = casadi.Function("gap", [G, xi, h], [rate - loop.jacobian(G) @ xi])
    for _ in range(20):
        assert np.abs(numeric(gap(random_pose(rng), rng.normal(size=6), 0.0))).max() < 1e-10


@kinds
def test_jacobian_is_what_is_blocked_where_closed(kind):
    rng = np.random.default_rng(2)
    for _ in range(20):
        loop = loops(rng)[kind]
        G = casadi.DM(closed_pose(loop, rng))
        blocked = numeric(loop.blocked(G))
        assert blocked.shape == (6, loop.size)
        assert np.allclose(numeric(loop.jacobian(G)), blocked.T, atol=1e-13)
        assert np.linalg.matrix_rank(blocked) == loop.size


@pytest.mark.parametrize(
    ("kind", "free"),
    [
        ("ball", np.eye(6)[:, 3:]),
        ("hinge", np.r_[np.zeros(3), SKEW]),
        ("slider", np.r_[SKEW, np.zeros(3)]),
    ],
)
def test_free_directions_are_not_blocked(kind, free):
    blocked = numeric(loops(np.random.default_rng(3))[kind].blocked(casadi.DM.eye(4)))
    assert np.abs(blocked.T @ free).max() < 1e-14
    assert blocked.shape[1] + np.linalg.matrix_rank(np.atleast_2d(free.T)) == 6


def test_opposed_hinge_is_not_closed_and_stays_finite():
    loop = Loop("l", "hinge", "a", "b", axis="z")
    for angle in (np.pi - 1e-6, np.pi, np.pi + 1e-6):
        residual = numeric(loop.residual(se3.exp([0, 0, 0, angle, 0, 0])))
        assert np.isfinite(residual).all()
    near = numeric(loop.residual(se3.exp([0, 0, 0, np.pi - 1e-3, 0, 0])))
    assert np.abs(near).max() > 100


def test_across_is_a_basis():
    rng = np.random.default_rng(4)
    for axis in [*np.eye(3), *-np.eye(3), *rng.normal(size=(20, 3))]:
        axis = axis / np.linalg.norm(axis)
        basis = np.column_stack([across(axis), axis])
        assert np.allclose(basis.T @ basis, np.eye(3), atol=1e-14)
        assert np.linalg.det(basis) > 0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("nail",), "one of weld, ball, hinge, slider, distance"),
        (("hinge",), "needs `axis`"),
        (("distance",), "needs `length`"),
    ],
)
def test_refusals(arguments, message):
    with pytest.raises(MachineError, match=message):
        Loop("l", *arguments, "a", "b")


def test_values_that_make_no_sense_are_refused():
    with pytest.raises(MachineError, match="has no `length`"):
        Loop("l", "weld", "a", "b", length=1.0)
    with pytest.raises(MachineError, match="must be positive"):
        Loop("l", "distance", "a", "b", length=0.0)
    with pytest.raises(MachineError, match="must not be zero"):
        Loop("l", "hinge", "a", "b", axis=(0, 0, 0))
