"""References: derivatives are those of the configuration, waypoints are met, joints are smooth."""

from itertools import pairwise

import casadi as ca
import numpy as np
import pytest
from random_machines import random_machine, random_pose
from simulate_machines import PD, pendulum

from framefree.control.law import ControlError
from framefree.control.references import (
    Circle,
    FramePath,
    FrameWaypoints,
    Hold,
    JointPath,
    JointSpline,
    MinimumJerk,
    Shifted,
    Together,
)
from framefree.geometry import Moments, se3, so3
from framefree.kernel import compile
from framefree.machine import Body, Continuous, Custom, Free, Joint, Machine, Revolute, Spherical
from framefree.simulate import simulate

# Differences of sixth order: f'(0) = sum c_k f(k h) / h.
STENCIL = {-3: -1 / 60, -2: 3 / 20, -1: -3 / 4, 1: 3 / 4, 2: -3 / 20, 3: 1 / 60}
H = 2e-3


def slope(f, t, h=H):
    return sum(c * f(t + k * h) for k, c in STENCIL.items()) / h


def signal(reference, name):
    t = ca.SX.sym("t")
    f = ca.Function("f", [t], [ca.densify(ca.SX(reference.at(t)[name]))])
    return lambda time: f(time).full().squeeze()


def assert_joint_derivatives(machine, reference, times, tolerance=1e-8):
    x, v, a = (signal(reference, name) for name in ("x", "v", "a"))
    for t in times:
        machine.validate(x(t))
        by_x = slope(lambda time, t=t: machine.difference(x(t), x(time)), t)
        scale = 1 + np.abs(v(t)).max() + np.abs(a(t)).max()
        assert np.abs(by_x - v(t)).max() < tolerance * scale
        assert np.abs(slope(v, t) - a(t)).max() < tolerance * scale


def assert_frame_derivatives(reference, times, tolerance=1e-8):
    G, xi, rate = (signal(reference, f"tool.{n}") for n in ("pose", "twist", "acceleration"))
    for t in times:
        R = G(t)[:3, :3]
        assert np.abs(R.T @ R - np.eye(3)).max() < 1e-12
        assert np.linalg.det(R) > 0
        by_pose = np.linalg.inv(G(t)) @ slope(G, t)
        scale = 1 + np.abs(xi(t)).max() + np.abs(rate(t)).max()
        assert np.abs(by_pose - se3.wed(xi(t)).full()).max() < tolerance * scale
        assert np.abs(slope(xi, t) - rate(t)).max() < tolerance * scale


def inner_times(knots, rng, count=2):
    """Times at which a stencil does not cross a knot."""
    return [t for a, b in pairwise(knots) for t in rng.uniform(a + 4 * H, b - 4 * H, count)]


def waypoints(rng, machine, count=4):
    points = machine.random(rng, count)
    times = np.cumsum(rng.uniform(0.4, 1.5, count)) - 1.0
    return points, times


def same_configuration(machine, x0, x1):
    return np.abs(machine.difference(x0, x1)).max(initial=0.0)


@pytest.mark.parametrize("kind", [MinimumJerk, JointSpline])
@pytest.mark.parametrize("seed", range(4))
def test_joint_paths_have_their_derivatives_and_meet_their_points(kind, seed):
    rng = np.random.default_rng(seed)
    machine = random_machine(rng, bodies=5, passive=False, fluid=False)
    points, times = waypoints(rng, machine)
    reference = kind(machine, points, times)
    assert_joint_derivatives(machine, reference, inner_times(times, rng))
    x = signal(reference, "x")
    for point, t in zip(points, times, strict=True):
        assert same_configuration(machine, x(t), point) < 1e-9


@pytest.mark.parametrize("kind", [MinimumJerk, JointSpline])
def test_joint_paths_are_smooth_at_their_points_and_rest_outside(kind):
    rng = np.random.default_rng(7)
    machine = ball_and_hinges()
    points, times = waypoints(rng, machine, 5)
    points[2, :4] *= -1  # the same attitude; x must not jump to it
    reference = kind(machine, points, times)
    assert reference.times == tuple(times)
    x, v, a = (signal(reference, name) for name in ("x", "v", "a"))
    for f in (x, v, a):
        for t in times:
            assert np.abs(f(t + 1e-11) - f(t - 1e-11)).max() < 1e-7
    for t in (times[0] - 1, times[0], times[-1], times[-1] + 1):
        assert np.abs(v(t)).max() < 1e-12
        assert np.abs(a(t)).max() < 1e-11
    assert same_configuration(machine, x(times[-1] + 9), points[-1]) < 1e-12
    moving = [np.linalg.norm(v(t)) for t in times[1:-1]]
    assert max(moving) < 1e-12 if kind is MinimumJerk else min(moving) > 1e-2


def ball_and_hinges():
    body = Moments.of_body(1.0, (0, 0, 0.1), np.eye(3))
    kinds = [Spherical(), Revolute("x"), Continuous("y"), Free()]
    joints = [
        Joint(f"j{i}", kind, f"b{i - 1}" if i else "world", f"b{i}") for i, kind in enumerate(kinds)
    ]
    return Machine([Body(f"b{i}", body) for i in range(4)], joints)


def test_spline_in_plain_coordinates_is_the_cubic_one_inside():
    """Pieces but the first and last are those of scipy's clamped spline."""
    from scipy.interpolate import CubicSpline

    rng = np.random.default_rng(1)
    body = Moments.of_body(1.0, (0, 0, 0.1), np.eye(3))
    machine = Machine([Body("b", body)], [Joint("j", Revolute("x"), "world", "b")])
    points, times = rng.normal(size=(7, 1)), np.cumsum(rng.uniform(0.3, 2, 7))
    x, v, a = (signal(JointSpline(machine, points, times), name) for name in ("x", "v", "a"))
    peer = CubicSpline(times, points[:, 0], bc_type="clamped")
    for t in np.linspace(times[1], times[-2], 40):
        assert abs(x(t) - peer(t)) < 1e-12
        assert abs(v(t) - peer(t, 1)) < 1e-11
        assert abs(a(t) - peer(t, 2)) < 1e-10


def test_spline_of_turns_about_one_axis_is_that_of_the_angle():
    rng = np.random.default_rng(2)
    body = Moments.of_body(1.0, (0, 0, 0.1), np.eye(3))
    axis = rng.normal(size=3)
    axis /= np.linalg.norm(axis)
    ball = Machine([Body("b", body)], [Joint("j", Spherical(), "world", "b")])
    hinge = Machine([Body("b", body)], [Joint("j", Revolute(axis), "world", "b")])
    angles, times = np.cumsum(rng.uniform(-1.5, 1.5, 6)), np.cumsum(rng.uniform(0.3, 2, 6))
    turns = [[np.cos(q / 2), *(np.sin(q / 2) * axis)] for q in angles]
    three = JointSpline(ball, turns, times)
    one = JointSpline(hinge, angles[:, None], times)
    for t in np.linspace(times[0], times[-1], 30):
        for name in ("v", "a"):
            assert np.abs(signal(three, name)(t) - signal(one, name)(t) * axis).max() < 1e-9


def test_minimum_jerk_in_closed_form():
    machine = ball_and_hinges()
    x0 = machine.neutral()
    x1 = machine.integrate(x0, np.linspace(-1, 1, machine.nv))
    reference = MinimumJerk(machine, [x0, x1], [1.0, 3.0])
    d, v, a = machine.difference(x0, x1), signal(reference, "v"), signal(reference, "a")
    # Largest speed 15/8 d / T in the middle, and no acceleration there.
    assert np.abs(v(2.0) - 15 / 8 * d / 2).max() < 1e-12
    assert np.abs(a(2.0)).max() < 1e-11


def test_custom_joint_without_group_exponential():
    """Coordinates with dx/dt = A(x) v that x + A dv follows only to first order."""
    kind = Custom(
        lambda q: se3.pose(so3.exp(ca.vertcat(0, 0, q[0])), ca.vertcat(q[1], 0, 0)),
        2,
        rate_map=lambda q: ca.blockcat([[1, 0], [ca.sin(q[0]), 2 + ca.cos(q[1])]]),
        integrate_map=lambda q, dv: (
            q + ca.blockcat([[1, 0], [ca.sin(q[0]), 2 + ca.cos(q[1])]]) @ dv
        ),
        difference_map=lambda q0, q1: ca.solve(
            ca.blockcat([[1, 0], [ca.sin(q0[0]), 2 + ca.cos(q0[1])]]), q1 - q0
        ),
    )
    body = Moments.of_body(1.0, (0, 0, 0.1), np.eye(3))
    machine = Machine([Body("b", body)], [Joint("j", kind, "world", "b")])
    rng = np.random.default_rng(0)
    points, times = rng.normal(size=(4, 2)), [0.0, 1.0, 1.7, 3.0]
    A = ca.Function("A", [q := ca.SX.sym("q", 2)], [kind.rate(q)])
    for reference in (JointSpline(machine, points, times), MinimumJerk(machine, points, times)):
        x, v, a = (signal(reference, name) for name in ("x", "v", "a"))
        for t in inner_times(times, rng):
            assert np.abs(slope(x, t) - A(x(t)).full() @ v(t)).max() < 1e-8
            assert np.abs(slope(v, t) - a(t)).max() < 1e-8
        for t in times:
            assert np.abs(a(t + 1e-11) - a(t - 1e-11)).max() < 1e-7


@pytest.mark.parametrize("stop", [True, False])
@pytest.mark.parametrize("screw", [True, False])
def test_frames_through_waypoints(stop, screw):
    rng = np.random.default_rng(3)
    poses = [random_pose(rng) for _ in range(4)]
    times = [0.5, 1.3, 2.0, 3.4]
    reference = FrameWaypoints("tool", poses, times, stop=stop, screw=screw)
    assert_frame_derivatives(reference, inner_times(times, rng))
    G, xi, rate = (signal(reference, f"tool.{n}") for n in ("pose", "twist", "acceleration"))
    for pose, t in zip(poses, times, strict=True):
        assert np.abs(G(t) - pose).max() < 1e-12
        assert (np.abs(xi(t)).max() < 1e-12) == (stop or t in (0.5, 3.4))
        for f in (G, xi, rate):
            assert np.abs(f(t + 1e-11) - f(t - 1e-11)).max() < 1e-7


def test_frames_go_straight_or_along_screws():
    rng = np.random.default_rng(4)
    first, last = random_pose(rng), random_pose(rng)
    share = signal(FrameWaypoints("tool", [first, last], [0, 1]), "tool.pose")(0.5)
    assert np.abs(share[:3, 3] - (first + last)[:3, 3] / 2).max() < 1e-12
    screw = signal(FrameWaypoints("tool", [first, last], [0, 1], screw=True), "tool.pose")(0.5)
    half = se3.exp(se3.log(np.linalg.inv(first) @ last) / 2).full()
    assert np.abs(screw - first @ half).max() < 1e-12
    assert np.abs(share[:3, :3] - screw[:3, :3]).max() < 1e-12


def test_circles():
    rng = np.random.default_rng(5)
    normal = rng.normal(size=3)
    for ramp, turning in ((0.0, False), (0.0, True), (1.5, True)):
        circle = Circle(
            "tool", (1, 2, 3), 0.4, -1.3, normal, start=(1, 0, 0), ramp=ramp, turning=turning,
            attitude=random_pose(rng)[:3, :3],
        )  # fmt: skip
        times = [0.3, 0.9, 2.2] if ramp else [-1.0, 0.0, 2.2]
        assert_frame_derivatives(circle, times)
        G, xi = signal(circle, "tool.pose"), signal(circle, "tool.twist")
        for t in (0.0, 0.7, 3.0):
            arm = G(t)[:3, 3] - (1, 2, 3)
            assert abs(np.linalg.norm(arm) - 0.4) < 1e-12
            assert abs(arm @ normal) < 1e-12
        assert abs(np.linalg.norm(xi(5.0)[:3]) - 0.4 * 1.3) < 1e-12
        assert abs(np.linalg.norm(xi(5.0)[3:]) - 1.3 * turning) < 1e-12
        # Against the normal, because the rate is negative.
        w = np.cross(G(5.0)[:3, 3] - (1, 2, 3), G(5.0)[:3, :3] @ xi(5.0)[:3])
        assert w @ normal < 0
        if ramp:
            assert circle.times == (0.0, 1.5)
            assert np.abs(xi(-1.0)).max() == np.abs(xi(0.0)).max() == 0.0
            for name in ("twist", "acceleration"):
                f = signal(circle, f"tool.{name}")
                assert np.abs(f(1.5 + 1e-9) - f(1.5 - 1e-9)).max() < 1e-6
                assert np.abs(f(1.5) - f(1.5 - 1e-9)).max() < 1e-6


def test_paths_written_down():
    machine = ball_and_hinges()

    def joints(t):
        turn = ca.vertcat(ca.cos(t / 2), ca.sin(t / 2), 0, 0)
        return ca.vertcat(turn, ca.sin(t), ca.cos(t * t), ca.sin(t * t), t, 0, 1, turn)

    assert_joint_derivatives(machine, JointPath(machine, joints), [0.0, 0.6, 2.0])

    def frame(t):
        return se3.exp(ca.vertcat(ca.sin(t), t, 1, t * t, ca.cos(t), 2 * t))

    assert_frame_derivatives(FramePath("tool", frame), [0.0, 0.6, 1.7])


def test_references_of_references():
    machine = ball_and_hinges()
    x = machine.random(np.random.default_rng(0))
    circle = Circle("tool", (0, 0, 0), 1.0, 1.0, ramp=2.0)
    both = Together(Hold(machine, x), Shifted(circle, 3.0))
    assert both.times == (3.0, 5.0)
    assert set(both.at(0.0)) == {"x", "v", "a", "tool.pose", "tool.twist", "tool.acceleration"}
    assert np.abs(signal(both, "x")(1.0) - x).max() == 0.0
    late, early = signal(both, "tool.pose")(7.0), signal(circle, "tool.pose")(4.0)
    assert np.abs(late - early).max() == 0.0
    with pytest.raises(ControlError, match="two references of Together give a signal `a`"):
        Together(Hold(machine, x), Hold(machine, x))


def test_twenty_waypoints_stay_a_small_graph_and_compile():
    rng = np.random.default_rng(0)
    body = Moments.of_body(1.0, (0, 0, 0.1), np.eye(3))
    joints = [
        Joint(f"j{i}", Revolute("x"), f"b{i - 1}" if i else "world", f"b{i}") for i in range(7)
    ]
    machine = Machine([Body(f"b{i}", body) for i in range(7)], joints)
    points, times = rng.normal(size=(20, 7)), np.arange(20.0)
    t = ca.SX.sym("t")
    for kind, most in ((MinimumJerk, 1200), (JointSpline, 2200)):
        reference = kind(machine, points, times)
        found = reference.at(t)
        function = ca.Function("f", [t], [found["x"], found["v"], found["a"]])
        assert function.n_instructions() < most
        kernel = compile(function, cache=False)
        when = rng.uniform(-1, 20, 50)
        x, v, a = kernel(when[:, None])
        for k, time in enumerate(when):
            expected = [part.full().ravel() for part in function(time)]
            for value, right in zip((x[k], v[k], a[k]), expected, strict=True):
                assert np.allclose(value, right, rtol=1e-12, atol=1e-12)


def bad_inputs():
    machine = ball_and_hinges()
    x = machine.neutral()
    off = x.copy()
    off[0] = 2.0
    return [
        (lambda: MinimumJerk(machine, [x, x], [0, 0]), "must increase, but 0 s is followed by 0 s"),
        (lambda: MinimumJerk(machine, [x, x], [0, 1, 2]), "must be 2 numbers, one for each"),
        (lambda: JointSpline(machine, [x], [0]), "needs two waypoints or more, got 1"),
        (lambda: JointSpline(machine, [x[:-1]] * 2, [0, 1]), r"must have shape \(n, 14\)"),
        (lambda: JointSpline(machine, [x, off], [0, 1]), "point 1 of JointSpline.*unit length"),
        (
            lambda: MinimumJerk(machine, [x, x], [0, np.nan]),
            "`times` of MinimumJerk must be finite",
        ),
        (lambda: MinimumJerk(machine, "here", [0, 1]), "`points` of MinimumJerk must be numbers"),
        (lambda: Hold(machine, off), "point 0 of Hold"),
        (lambda: FrameWaypoints("tool", [np.eye(4), 2 * np.eye(4)], [0, 1]), "pose 1 of"),
        (
            lambda: FrameWaypoints("tool", [(0, 0, 0, 2, 0, 0, 0)] * 2, [0, 1]),
            "must have a unit quaternion",
        ),
        (lambda: FrameWaypoints(3, [np.eye(4)] * 2, [0, 1]), "must be the name of a frame, got 3"),
        (lambda: Circle("tool", (0, 0), 1, 1), "`center` of Circle must be 3 numbers"),
        (lambda: Circle("tool", (0, 0, 0), -1, 1), "`radius` of Circle must be one number, at"),
        (lambda: Circle("tool", (0, 0, 0), 1, 1, (0, 0, 0)), "`normal` of Circle must not be zero"),
        (lambda: Circle("tool", (0, 0, 0), 1, 1, start=(0, 0, 2)), "must not be along `normal`"),
        (lambda: Circle("tool", (0, 0, 0), 1, 1, attitude=np.ones((3, 3))), "`attitude` of Circle"),
        (lambda: FramePath("tool", lambda t: ca.SX.eye(3)), "must give a 4x4 pose"),
        (lambda: FramePath("tool", lambda t: 2 * ca.SX.eye(4)), "`path` of FramePath at t = 0"),
        (lambda: JointPath(machine, lambda t: ca.SX(3, 1)), "must give 14 coordinates"),
        (lambda: Together(3), "Together takes references, got int"),
        (lambda: Shifted(Hold(machine, x), "soon"), "`by` of Shifted must be numbers"),
    ]


@pytest.mark.parametrize(("make", "message"), bad_inputs())
def test_bad_input_is_refused_by_name(make, message):
    with pytest.raises(ControlError, match=message):
        make()


@pytest.mark.parametrize("integrator", ["rk4", "adaptive"])
def test_closed_loops_record_the_reference(integrator):
    machine = pendulum(2)
    points = [[0.0, 0.0], [0.4, -0.3], [0.1, 0.2]]
    reference = JointSpline(machine, points, [0.0, 0.2, 0.5])
    run = simulate(
        machine, PD(machine, 200.0, 20.0), reference, duration=0.6, dt=0.01, integrator=integrator
    )
    for name in ("x", "v", "a"):
        f = signal(reference, name)
        expected = np.array([f(t) for t in run.t])
        assert np.abs(run.reference[name] - expected).max() < 1e-12
    assert np.abs(run.x[-1] - points[-1]).max() < 0.1
