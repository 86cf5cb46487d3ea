"""Springs, dampers and the flexible ball joint: energy, reduction of point springs, invariance."""

import casadi
import numpy as np
import pytest

from framefree.errors import FramefreeWarning
from framefree.geometry import se3
from framefree.geometry.moments import Moments
from framefree.machine import Damper, EulerSpring, MachineError, Spring


def random_pose(rng, angle=3.0):
    w = rng.normal(size=3)
    w *= angle * rng.uniform() / np.linalg.norm(w)
    return np.array(se3.exp(np.concatenate([rng.normal(size=3), w])))


def random_moments(rng, n=5):
    return Moments.of_points(rng.normal(size=(n, 3)), rng.uniform(0.5, 2.0, n))


def random_springs(rng):
    return [
        Spring("s", "a", "b", random_moments(rng), random_pose(rng)),
        Spring.torsional("t", "a", "b", (1.0, 2.0, 2.5), random_pose(rng)),
        Spring.of_points("p", "a", "b", rng.normal(size=(4, 3)), rng.normal(size=(4, 3)), 2.0),
        EulerSpring("e", "a", "b", (1.0, 2.0, 3.0)),
    ]


@pytest.mark.parametrize("which", range(4))
def test_wrench_is_the_gradient_of_the_potential(which):
    """dV/dt = xi . wrench along every twist, by casadi's derivative along G exp(h xi)."""
    rng = np.random.default_rng(which)
    G, xi, h = casadi.SX.sym("G", 4, 4), casadi.SX.sym("xi", 6), casadi.SX.sym("h")
    for _ in range(5):
        spring = random_springs(rng)[which]
        rate = casadi.jacobian(spring.potential(G @ se3.exp(h * xi)), h)
        gap = casadi.Function("gap", [G, xi, h], [rate - casadi.dot(xi, spring.wrench(G))])
        for _ in range(20):
            assert abs(float(gap(random_pose(rng), rng.normal(size=6), 0.0))) < 1e-11


@pytest.mark.parametrize("which", range(3))
def test_relaxed_at_rest(which):
    spring = random_springs(np.random.default_rng(0))[which]
    assert abs(float(spring.potential(casadi.DM(spring.rest))) - spring.offset) < 1e-13
    assert np.abs(np.array(spring.wrench(casadi.DM(spring.rest)))).max() < 1e-13


def test_euler_spring_is_relaxed_at_the_identity():
    spring = EulerSpring("e", "a", "b", (1.0, 2.0, 3.0))
    assert float(spring.potential(casadi.DM.eye(4))) == 0.0
    assert np.abs(np.array(spring.wrench(casadi.DM(np.eye(4))))).max() == 0.0


def point_potential(points_a, points_b, stiffness, G):
    gaps = points_b @ G[:3, :3].T + G[:3, 3] - points_a
    return 0.5 * float(stiffness @ (gaps**2).sum(axis=1))


@pytest.mark.parametrize("n", [1, 2, 3, 4, 10])
def test_point_springs_reduce_with_the_energy_that_is_left_at_rest(n):
    rng = np.random.default_rng(n)
    for _ in range(10):
        a, b, k = rng.normal(size=(n, 3)), rng.normal(size=(n, 3)), rng.uniform(0.5, 3.0, n)
        spring = Spring.of_points("s", "a", "b", a, b, k)
        for G in (random_pose(rng) for _ in range(10)):
            expected = point_potential(a, b, k, G)
            assert float(spring.potential(casadi.DM(G))) == pytest.approx(expected, rel=1e-11)
            # The rest pose is the lowest there is, and its energy is the offset.
            assert spring.offset < expected + 1e-11
        at_rest = point_potential(a, b, k, spring.rest)
        assert spring.offset == pytest.approx(at_rest, rel=1e-9, abs=1e-12)


def test_two_springs_that_pull_against_each_other_keep_their_energy():
    spring = Spring.of_points("s", "a", "b", [[1, 0, 0], [-1, 0, 0]], np.zeros((2, 3)), 7.0)
    assert spring.offset == pytest.approx(7.0)
    assert float(spring.potential(casadi.DM(np.eye(4)))) == pytest.approx(7.0)


def test_matching_points_reduce_to_their_moments():
    rng = np.random.default_rng(3)
    b, k, rest = rng.normal(size=(4, 3)), rng.uniform(1.0, 2.0, 4), random_pose(rng)
    a = b @ rest[:3, :3].T + rest[:3, 3]
    spring = Spring.of_points("s", "a", "b", a, b, k)
    assert np.allclose(spring.rest, rest, atol=1e-12)
    assert np.allclose(spring.moments.matrix4, Moments.of_points(b, k).matrix4, atol=1e-12)


def test_seen_from_the_other_end():
    """Energy is the same with the ends swapped and the moments moved, K'_ba = rest K'_ab rest^T."""
    rng = np.random.default_rng(4)
    for _ in range(20):
        spring = random_springs(rng)[0]
        moments = spring.moments.moved(spring.rest)
        swapped = Spring("s", "b", "a", moments, np.linalg.inv(spring.rest))
        G = random_pose(rng)
        here = float(spring.potential(casadi.DM(G)))
        there = float(swapped.potential(casadi.DM(np.linalg.inv(G))))
        assert here == pytest.approx(there, rel=1e-12)


def test_torsional_spring_of_isotropic_moment():
    """Moment kappa I gives V = kappa (1 - cos t) and the torque kappa sin t about the axis."""
    spring = Spring.torsional("t", "a", "b", 3.0)
    for angle in (0.0, 0.1, 1.0, 2.0, 3.1, np.pi):
        G = se3.exp([0, 0, 0, 0, 0, angle])
        assert float(spring.potential(G)) == pytest.approx(3.0 * (1 - np.cos(angle)), abs=1e-14)
        wrench = np.array(spring.wrench(G)).ravel()
        assert np.allclose(wrench, [0, 0, 0, 0, 0, 3.0 * np.sin(angle)], atol=1e-14)


def test_euler_and_torsional_springs_agree_for_small_angles():
    stiffness = np.array([1.0, 2.0, 2.5])
    euler = EulerSpring("e", "a", "b", stiffness)
    torsional = Spring.torsional("t", "a", "b", stiffness)
    rng = np.random.default_rng(5)
    for _ in range(10):
        G = se3.exp(np.concatenate([np.zeros(3), 1e-5 * rng.normal(size=3)]))
        a, b = np.array(euler.wrench(G)), np.array(torsional.wrench(G))
        assert np.abs(a - b).max() < 1e-8 * np.abs(b).max() + 1e-9


def test_euler_angles_rebuild_the_rotation():
    spring = EulerSpring("e", "a", "b", 1.0)
    rng = np.random.default_rng(6)
    for _ in range(50):
        G = random_pose(rng)
        a1, a2, a3 = np.array(spring.angles(casadi.DM(G))).ravel()
        turns = [(a1, 3), (a2, 4), (a3, 5)]
        rebuilt = np.eye(4)
        for angle, axis in turns:
            rebuilt = rebuilt @ np.array(se3.exp(angle * np.eye(6)[axis]))
        assert np.allclose(rebuilt[:3, :3], G[:3, :3], atol=1e-13)


def test_damper_takes_power_from_every_motion():
    rng = np.random.default_rng(7)
    points, d = rng.normal(size=(4, 3)), rng.uniform(0.5, 2.0, 4)
    damper = Damper.of_points("d", "world", "b", points, d)
    for _ in range(20):
        xi = rng.normal(size=6)
        power = float(xi @ np.array(damper.wrench(casadi.DM(xi))).ravel())
        speeds = xi[:3] + np.cross(xi[3:], points)
        assert power == pytest.approx(float(d @ (speeds**2).sum(axis=1)), rel=1e-12)


def test_damper_with_a_matrix():
    D = np.diag([1.0, 2.0, 3.0, 0.1, 0.2, 0.3])
    assert np.array_equal(Damper("d", "a", "b", D).matrix, D)
    torsional = Damper.torsional("d", "a", "b", (0.3, 0.3, 0.4)).matrix
    assert np.allclose(torsional, np.diag([0, 0, 0, 0.3, 0.3, 0.4]), atol=1e-16)
    with pytest.raises(MachineError, match="symmetric"):
        Damper("d", "a", "b", D + np.eye(6, k=1))


def test_refusals():
    with pytest.raises(MachineError, match="must be Moments"):
        Spring("s", "a", "b", 3.0)
    with pytest.raises(MachineError, match="shape"):
        Spring.of_points("s", "a", "b", np.zeros((2, 3)), np.zeros((3, 3)), 1.0)
    with pytest.raises(MachineError, match="sum to zero"):
        Spring.of_points("s", "a", "b", np.zeros((2, 3)), np.ones((2, 3)), [1.0, -1.0])
    with pytest.raises(MachineError, match="3 numbers"):
        EulerSpring("e", "a", "b", (1.0, 2.0))


def test_moments_that_push_are_warned_about():
    with pytest.warns(FramefreeWarning, match="spring `s`"):
        Spring("s", "a", "b", Moments.of(-1.0, (0, 0, 0), np.eye(3)))
    with pytest.warns(FramefreeWarning, match="damper `d`"):
        Damper("d", "a", "b", Moments.of(1.0, (0, 0, 0), np.diag([1.0, 1.0, -0.1])))
