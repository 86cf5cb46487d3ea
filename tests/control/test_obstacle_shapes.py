"""Shapes of obstacles: distances of points and lines, what covers bodies, what is refused."""

import casadi as ca
import numpy as np
import pytest
from port_formulas import Closed
from random_machines import random_pose
from scipy.optimize import minimize

import framefree as ff
from framefree.control.law import ControlError
from framefree.control.port import (
    Avoidance,
    Capsule,
    EndEffectorControl,
    HalfSpace,
    Moving,
    Obstacle,
    Sphere,
)
from framefree.control.port.avoidance import spine
from framefree.control.port.obstacles import (
    BLUNT,
    MIDDLE,
    blunt_length,
    line_distance,
    pair_distance,
)
from framefree.gallery.machines.chains import chain
from framefree.machine import Frame


def test_distances_of_points():
    sphere, floor = Sphere((1, 0, 0), 0.5), HalfSpace("z", 0.2)
    capsule = Capsule((0, 0, 0), (2, 0, 0), 0.1)
    assert float(sphere.distances([3, 0, 0])) == pytest.approx(1.5)
    assert float(floor.distances([5, 5, 1])) == pytest.approx(0.8)
    for point, expected in (((1, 1, 0), 0.9), ((3, 0, 0), 0.9), ((-3, 4, 0), 4.9)):
        assert float(capsule.distances(point)) == pytest.approx(expected)


class Box(Obstacle):
    """An obstacle of the user: a cube of side 1, of which only `distance` is given."""

    def distance(self, c):
        outside = ca.fmax(ca.fabs(c) - 0.5, 0)
        return ca.sqrt(ca.sumsqr(outside) + 1e-12)


@pytest.mark.parametrize(
    ("obstacle", "tolerance"),
    [
        (Sphere((0.2, 0.1, 0), 0.1), 1e-6),
        (HalfSpace((0.3, 0.2, 1), -0.3), 1e-9),
        (Capsule((0, 0, 0), (0.3, 0.1, 0), 0.1), 2e-3),
        (Box(), 0.2),  # sampled
    ],
)
def test_the_least_gap_of_a_line_is_its_distance(obstacle, tolerance):
    rng = np.random.default_rng(0)
    for _ in range(20):
        a, b = rng.normal(size=(2, 3))
        least = min(float(gap) for gap in obstacle.gaps(ca.DM(a), ca.DM(b)))
        shares = np.linspace(0, 1, 2001)
        points = a[:, None] + (b - a)[:, None] * shares
        true = obstacle.distances(points).full().min()
        assert least == pytest.approx(true, abs=tolerance * max(1, np.linalg.norm(b - a)))


def test_lengths_are_true_but_in_the_middle_and_have_a_slope_everywhere():
    c, size = ca.SX.sym("c", 3), 0.1
    length = blunt_length(c, size)
    function = ca.Function("length", [c], [length, ca.gradient(length, c)])
    rng = np.random.default_rng(4)
    for scale in (0.0, 1e-12, 1e-6, 1e-4, 1e-3, 5e-3, 0.1, 1.0):
        at = scale * rng.normal(size=3)
        found, slope = float(function(at)[0]), function(at)[1].full().ravel()
        far = np.linalg.norm(at) >= MIDDLE * size
        assert np.linalg.norm(at) <= found + 1e-15
        assert found == pytest.approx(np.linalg.norm(at), rel=1e-14) or not far
        assert 1e-5 < np.linalg.norm(slope) < 1 + 1e-3
        for h in np.eye(3) * 1e-7:
            ends = [float(function(at + s * h)[0]) for s in (1, -1)]
            assert slope @ h == pytest.approx((ends[0] - ends[1]) / 2, abs=1e-7 * 1e-4)


def true_distance(a, b, c, d):
    """Distance of two lines by a general minimiser, from several starts."""

    def square(st):
        return np.sum((a + st[0] * (b - a) - c - st[1] * (d - c)) ** 2)

    starts = ((0.5, 0.5), (0, 0), (1, 1), (0, 1), (1, 0))
    found = [minimize(square, s, bounds=[(0, 1)] * 2, tol=1e-14).fun for s in starts]
    return np.sqrt(min(found))


def test_lines_are_a_little_nearer_than_they_are_and_never_farther():
    rng = np.random.default_rng(1)
    for k in range(30):
        a, b, c, d = rng.normal(size=(4, 3))
        if k % 3 == 0:
            d = c + (b - a) * rng.uniform(0.5, 2)  # parallel
        found = float(line_distance(*map(ca.DM, (a, b, c, d)), 1e-6))
        true, lengths = true_distance(a, b, c, d), np.sum((b - a) ** 2) + np.sum((d - c) ** 2)
        assert found <= true + 1e-7
        assert true**2 - found**2 <= BLUNT / 2 * lengths + 1e-9


@pytest.mark.parametrize("points", [(True, True), (True, False), (False, True), (False, False)])
def test_slopes_of_pair_distances_are_continuous(points):
    """At parallel lines too, where the nearest points jump."""
    x = ca.SX.sym("x", 12)
    ends = [x[3 * k : 3 * k + 3] for k in range(4)]
    d = pair_distance(ends[:2], ends[2:], 1e-6, points)
    function = ca.Function("d", [x], [d, ca.gradient(d, x)])
    parallel = np.array([0, 0, 0, 1, 0, 0, 0.1, 0.3, 0, 0.9, 0.3, 0], float)
    rng = np.random.default_rng(2)
    for _ in range(10):
        at, step = parallel + 1e-6 * rng.normal(size=12), rng.normal(size=12)
        slope = function(at)[1].full().ravel()
        ends = [float(function(at + s * 1e-7 * step)[0]) for s in (1, -1)]
        assert slope @ step == pytest.approx((ends[0] - ends[1]) / 2e-7, abs=1e-5)
        assert np.abs(function(at + 1e-6 * step)[1].full().ravel() - slope).max() < 1e-2


def test_bodies_are_covered_along_their_length():
    machine = chain(3, lengths=[0.2, 0.4, 0.6])
    for body, half in (("body1", 0.1), ("body2", 0.2), ("body3", 0.3)):
        lines = spine(machine, body)
        assert lines.shape == (1, 2, 3)
        assert np.allclose(np.sort(lines[0, :, 0]), [-half, half])
    chosen = Avoidance(cover={"body2": [(0, 0, 0.1)]}).lines_of(machine)
    assert np.array_equal(chosen["body2"], [[(0, 0, 0.1)] * 2])
    assert chosen["body1"].shape == (0, 2, 3)
    pairs = Avoidance(pairs="all").pairs_of(chain(4))
    assert pairs == (("body1", "body3"), ("body1", "body4"), ("body2", "body4"))


def law_with(**options):
    return EndEffectorControl(chain(3), avoidance=Avoidance(**options))


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: Sphere((0, 0, 0), -1), "`radius` of a sphere must be positive"),
        (lambda: Capsule((0, 0, 0), (0, 0, 0), 1), "must differ"),
        (lambda: Moving(3, "ball"), "must be an obstacle at rest, got 3"),
        (
            lambda: Moving(Sphere((0, 0, 0), 1, frame="stage"), "ball"),
            "frame of its signals `ball`, and cannot have `stage` as well",
        ),
        (lambda: Avoidance([3]), "must be obstacles, got int"),
        (lambda: Avoidance([], reach=0), "`reach` of an avoidance must be positive"),
        (lambda: Avoidance(reach=0.1, yields=0.2), "`yields` .* within its `reach` 0.1 m, got 0.2"),
        (lambda: law_with(cover={"body9": [(0, 0, 0)]}), "body9"),
        (lambda: law_with(cover={"body1": np.zeros((2, 5))}), r"points \(k, 3\) or lines"),
        (lambda: law_with(pairs="some"), "pairs of bodies, or \"all\", got 'some'"),
        (lambda: law_with(pairs=[("body1", "body1")]), "pairs of two bodies"),
        (
            lambda: law_with(cover={"body1": [(0, 0, 0)]}, pairs=[("body1", "body3")]),
            "body `body3` of `pairs` has no `cover`",
        ),
        (
            lambda: law_with(obstacles=[Sphere((0, 0, 0), 0.1, frame="body1")]),
            "must be fixed to the world, but its frame `body1`",
        ),
    ],
)
def test_what_cannot_be_avoided(make, words):
    with pytest.raises(ff.FramefreeError, match=words):
        make()


def test_obstacles_turn_with_their_frame():
    G = random_pose(np.random.default_rng(4))
    machine = chain(3, frames=[Frame("stage", "world", G)])
    given = None
    for obstacle in (
        Sphere((0.3, 0.3, 0), 0.1, frame="stage"),
        Sphere(G[:3, :3] @ [0.3, 0.3, 0] + G[:3, 3], 0.1),
    ):
        law = EndEffectorControl(machine, avoidance=Avoidance([obstacle], reach=5.0))
        closed = Closed(law)
        found = closed(np.random.default_rng(5))[3]
        given = found if given is None else given
        assert np.allclose(found, given, atol=1e-10)


def test_errors_are_control_errors():
    with pytest.raises(ControlError):
        Avoidance(reach=-1.0)
