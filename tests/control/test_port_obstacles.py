"""Obstacles: distances, a potential without bound, and reference velocities that keep clear."""

import casadi as ca
import numpy as np
import pytest
from port_formulas import Closed, line_gaps, moved_gaps
from random_machines import evaluate, random_pose
from scipy.integrate import quad
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
from framefree.control.references import FramePath, Together
from framefree.gallery.machines.chains import chain
from framefree.gallery.scenarios.ports.chain_measures import body_poses, rods_to_ball
from framefree.geometry import se3, so3
from framefree.machine import Frame

# ---------------------------------------------------------------------- distances


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


# ---------------------------------------------------------------------- the barrier


def test_the_potential_grows_without_bound_and_is_the_integral_of_the_push():
    avoidance, mass = Avoidance(reach=0.2, speed=0.3, weight=2.0), 3.0

    def push(d):
        rho, target, _ = avoidance.rule(ca.DM(d), mass)
        return float(rho * target)

    for d in (0.19, 0.1, 0.01, 0.001):
        expected = quad(push, d, 0.2, epsrel=1e-12, limit=200)[0]
        assert float(avoidance.potential(ca.DM(d), mass)) == pytest.approx(expected, rel=1e-9)
    values = [float(avoidance.potential(ca.DM(10.0**-k), mass)) for k in range(2, 12)]
    ratios = np.divide(values[1:], values[:-1])
    assert np.allclose(ratios[3:], 10.0, rtol=1e-2)  # like 1/d, however near
    assert float(avoidance.potential(ca.DM(0.2))) == pytest.approx(0, abs=1e-15)
    for d in (5e-4, 1e-4, 0.0, -0.05):  # where it once stopped pushing
        assert push(d) > push(1e-3) > 0


def one_body(d, speed=0.0, reach=0.15):
    """Return the rate at which a free rod's reference leaves a ball at a distance, and its g.

    The rod's task is the attitude alone; its center is asked to run into the ball.
    """
    machine = chain(1)
    ball = Sphere((0.0, 0.0, 0.3), 0.2)
    law = EndEffectorControl(
        machine, frame="body1", avoidance=Avoidance([ball], reach=reach, yields=reach)
    )
    x, v = machine.neutral(), np.zeros(6)
    x[2] = 0.3 + 0.2 + d
    closed = Closed(law)
    pose = np.eye(4)
    pose[:3, 3] = x[:3]
    given = {
        "body1.pose": pose,
        "body1.twist": [0, 0, speed, 0, 0, 0],
        "body1.acceleration": [0.0] * 6,
    }
    s = closed.at(x, v, {k: np.asarray(value, float) for k, value in given.items()})[3]
    return -s.ravel()[2], law.avoidance.speed * (1 - d / reach)


@pytest.mark.parametrize("d", [0.1, 0.01, 1e-3, 1e-4, 0.0, -0.02, -0.1])
def test_a_body_near_an_obstacle_leaves_it_whatever_it_is_asked(d):
    left, g = one_body(d, speed=0.0)
    assert 0 < left <= g * (1 + 1e-9)
    if d <= 1e-3:
        for speed in (-1.0, -10.0):
            assert one_body(d, speed)[0] == pytest.approx(g, rel=0.01)
        assert one_body(d, -1.0, reach=0.2)[0] > 0


def test_the_bound_of_the_proof():
    """dd/dt >= g - sqrt(2 E / rho) at random states of a chain that is asked to run anywhere."""
    rng, machine, reach = np.random.default_rng(3), chain(3), 0.4
    avoidance = Avoidance([Moving(Sphere((0, 0, 0), 0.12), "ball")], reach=reach, yields=0.0)
    closed = Closed(EndEffectorControl(machine, avoidance=avoidance))
    unguarded, eom = Closed(EndEffectorControl(machine)), ff.equations(machine, "maximal")
    lines, mass = avoidance.lines_of(machine), sum(b.moments.total for b in machine.bodies)
    tried, held = 0, 0
    while tried < 8:
        x, v, given = machine.random(rng), rng.normal(size=machine.nv), {}
        for name in closed.names:
            given[name] = random_pose(rng) if name.endswith(".pose") else 2 * rng.normal(size=6)
        place, nu = eom.functions["from_joints"](x, v)
        poses = evaluate(eom.functions["body_pose"], place).reshape(-1, 4, 4)
        center = poses[tried % 2, :3, 3] + 0.1 * rng.normal(size=3)
        ball = Sphere(center, 0.12)
        d = np.array(
            [
                line_gaps(ball, G, lines[b.name][0])[0]
                for b, G in zip(machine.bodies, poses, strict=True)
            ]
        )
        if d.min() < 0.01:
            continue
        given |= {"ball.pose": np.block([[np.eye(3), center[:, None]], [0, 0, 0, 1]])}
        given |= {"ball.twist": np.zeros(6), "ball.acceleration": np.zeros(6)}
        nu = np.asarray(nu).ravel()
        nu_r = nu - closed.at(x, v, given)[3].ravel()
        nu_0 = nu - unguarded.at(x, v, {k: given[k] for k in unguarded.names})[3].ravel()
        P, M = (evaluate(eom.functions[name], place) for name in ("projector", "mass"))
        d = d[:2]  # the last rod's motion is the task's, with or without
        used = np.flatnonzero(d < reach)
        rows = np.zeros((2, 18))
        for i, G in enumerate(poses[:2]):
            line = lines[machine.bodies[i].name][0]
            rows[i, 6 * i : 6 * i + 6] = [moved_gaps(ball, G, line, k)[0] for k in range(6)]
        g, rho = avoidance.speed * (1 - d / reach), mass * (np.maximum(reach - d, 0) / d) ** 2
        # Some velocity that joints and task allow, with w . nu = g.
        B = np.linalg.svd(P)[0][:, : machine.nv]
        B = B @ np.linalg.svd(B[-6:])[2][6:].T  # the task does not move
        change = np.linalg.lstsq(rows[used] @ B, g[used] - rows[used] @ nu_0, rcond=None)[0]
        nu_f = nu_0 + B @ change
        if not np.allclose(rows[used] @ nu_f, g[used], atol=1e-6):
            continue  # a point that sits on the last rod: no such velocity exists
        tried += 1
        E = (nu_f - nu_0) @ M @ (nu_f - nu_0) / 2
        assert (rows[used] @ nu_r >= g[used] - np.sqrt(2 * E / rho[used]) - 1e-6).all()
        held += bool((rows[used] @ nu_0 < 0).any())
    assert held > 2  # without the barrier they would have run against the ball


@pytest.mark.parametrize("seed", range(2))
def test_V_falls_as_stated_near_things_that_move(seed):
    """With a moving obstacle, pairs of bodies, and tasks that give way."""
    rng, machine = np.random.default_rng(seed), chain(4)
    shapes = [Sphere((0.6, 0.4, 0.1), 0.1), Moving(Capsule((0, 0, 0), (0.3, 0, 0), 0.05), "thing")]
    avoidance = Avoidance(shapes, reach=0.6, yields=0.5, pairs="all")
    law = EndEffectorControl(machine, damping=4.0, avoidance=avoidance)
    assert law.needs[3:] == ("thing.pose", "thing.twist", "thing.acceleration")
    closed = Closed(law)
    yielding = 0
    for _ in range(4):
        V, stated, true, *_ = closed(rng)
        assert true == pytest.approx(stated, rel=1e-8, abs=1e-9 * V)
        found = closed.at(closed.x, closed.v, closed.given)
        yielding += found[-2].item() < 0.5
    assert yielding
    # And the check sees it if the law is told a wrong acceleration of the obstacle.
    closed = Closed(law, error=0.1)
    _, stated, true, *_ = closed(rng)
    assert abs(true - stated) > 1e-5 * abs(stated)


# ---------------------------------------------------------------------- in motion


def test_a_ball_beside_and_inside_a_chain():
    """The places at which the push once was without bound, or zero; one batch for all."""
    frames = [Frame("ball", "world")]
    machine = chain(3, frames=frames).tunable(*(f"ball.pose.{axis}" for axis in "xyz"))
    start = machine.numeric.neutral()
    balls = [[0.4, d, 0.02] for d in (0.15, 0.131, 0.1305, 0.13, 0.11, 0.05, 0.01)]
    balls += [[0.4, 0.0, 0.0], [0.4, 1e-9, 0.0], [0.59, 0.0, 0.0]]  # a rod through the middle
    balls = np.array(balls)
    law = EndEffectorControl(
        machine,
        avoidance=Avoidance([Sphere((0, 0, 0), 0.1, frame="ball")], radius=0.03),
    )
    end = np.eye(4)
    end[0, 3] = 1.0
    run = ff.simulate(
        machine, law, FramePath("end", lambda t: ca.DM(end)), np.tile(start, (len(balls), 1)),
        duration=1.0, dt=2e-3, every=5, parameters=balls, record=(),
    )  # fmt: skip
    shape = (*run.x.shape[:2], 3, 4, 4)
    rods = body_poses(machine.numeric, run.x.reshape(-1, machine.nx)).reshape(shape)
    gaps = rods_to_ball(rods, balls[:, None, None], 0.1, 0.2, 0.03)[:, :, 1]
    assert np.isfinite(run.u).all()
    assert np.abs(run.u[:7]).max() < 100.0
    assert np.abs(run.u).max() < 200.0
    assert (gaps[:2].min(axis=1) > 0).all()  # never touched from outside
    assert (np.diff(gaps[2:], axis=1)[:, :20] > -1e-9).all()  # those inside leave, never back
    assert (gaps[:9, -1] > 0.03).all()
    assert (gaps[:, -1] > 0).all()
    assert run["clearance"][:7, 0] == pytest.approx(gaps[:7, 0], abs=1e-6)
    assert run["clearance"][7:, 0] == pytest.approx(gaps[7:, 0] + MIDDLE * 0.1 / 2, abs=1e-6)


def still(frame, G):
    return FramePath(frame, lambda t: ca.DM(G))


def test_a_chain_gives_way_to_what_moves():
    machine = chain(3)
    end = np.eye(4)
    end[0, 3] = 1.0

    def path(t):
        return se3.pose(so3.exp(ca.vertcat(0, 0, t)), ca.vertcat(0.3, 0.5 - 0.4 * t, 0.03))

    reference = Together(still("end", end), FramePath("ball", path))
    clearances = {}
    for moves in (True, False):
        shape = Sphere((0, 0, 0), 0.1)
        law = EndEffectorControl(
            machine,
            avoidance=Avoidance(
                [Moving(shape, "ball")] if moves else [Sphere((0.3, 0.5, 0.03), 0.1)], radius=0.03
            ),
        )
        run = ff.simulate(machine, law, reference, duration=1.5, dt=2e-3, every=5, record=())
        ball = np.column_stack([0.3 + 0 * run.t, 0.5 - 0.4 * run.t, 0.03 + 0 * run.t])
        rods = body_poses(machine, run.x)
        clearances[moves] = rods_to_ball(rods, ball[:, None], 0.1, 0.2, 0.03).min()
        if moves:
            ends = rods[:, -1] @ np.asarray(machine.frame("end").pose)
            assert np.abs(ends - end).max() < 1e-6
    assert clearances[True] > 0.01
    assert clearances[False] < -0.05  # a law that does not know where it is


def test_bodies_keep_clear_of_each_other():
    """The end is carried through the chain's own first rod."""
    machine = chain(4)
    bend = np.zeros(machine.nv)
    bend[6:] = np.tile([0, 0, 1.3], 3)
    start = machine.integrate(machine.neutral(), bend)
    rods = body_poses(machine, start[None])[0]
    first = rods[-1] @ np.asarray(machine.frame("end").pose)

    def path(t):
        s = ca.fmin(t / 1.5, 1)
        return se3.pose(ca.DM(first[:3, :3]), ca.DM(first[:3, 3]) + ca.vertcat(0, -0.5 * s, 0.02))

    clearances = {}
    for pairs in ((), "all"):
        law = EndEffectorControl(
            machine, rate=5.0, turn_rate=5.0, avoidance=Avoidance(radius=0.03, pairs=pairs)
        )
        run = ff.simulate(
            machine, law, FramePath("end", path, times=(1.5,)), start,
            duration=2.0, dt=2e-3, every=5, record=(),
        )  # fmt: skip
        poses = body_poses(machine, run.x)
        shares = np.linspace(-0.2, 0.2, 61)[:, None]
        points = poses[..., None, :3, 3] + shares * poses[..., None, :3, 0]
        gaps = [
            np.linalg.norm(points[:, i, :, None] - points[:, j, None], axis=-1).min()
            for i, j in ((0, 2), (0, 3), (1, 3))
        ]
        clearances[bool(pairs)] = min(gaps) - 0.06
    assert clearances[True] > 1e-3
    assert clearances[False] < -0.03
    assert run["clearance"].min() <= clearances[True] + 1e-6


def test_the_end_body_stops_before_an_obstacle_where_its_task_gives_way():
    machine = chain(2)
    wall = HalfSpace((-1, 0, 0), -0.75)  # all beyond x = 0.75 m; the end is at 0.6 m

    def path(t):
        return se3.pose(ca.DM.eye(3), ca.vertcat(0.6 + 0.3 * ca.fmin(t, 1), 0, 0))

    reached = {}
    for yields in (0.02, 0.0):
        law = EndEffectorControl(
            machine, rate=5.0, avoidance=Avoidance([wall], reach=0.05, yields=yields)
        )
        run = ff.simulate(
            machine, law, FramePath("end", path, times=(1.0,)),
            duration=2.0, dt=2e-3, every=10, record=(),
        )  # fmt: skip
        rods = body_poses(machine, run.x)
        reached[yields] = (rods[:, -1] @ np.asarray(machine.frame("end").pose))[:, 0, 3].max()
        if yields:
            assert run["task_compliance"].max() > 0
            assert run["clearance"].min() > 0
    assert 0.72 < reached[0.02] < 0.75
    assert reached[0.0] > 0.89  # through the wall


# ---------------------------------------------------------------------- what cannot be


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
