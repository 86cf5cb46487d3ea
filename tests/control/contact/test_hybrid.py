"""Motion and force of a frame: the rate of V, the error equation of the force, the normal."""

import casadi as ca
import numpy as np
import pytest

from framefree.control import ControlError, HybridControl
from framefree.control.law import Timing
from framefree.control.references.frames import FramePath
from framefree.gallery.machines.arms import iiwa
from framefree.geometry import Moments, euler, se3, so3
from framefree.machine import (
    Body,
    Contact,
    ContactShape,
    Frame,
    Joint,
    Machine,
    Prismatic,
    motors,
)
from framefree.motion import equations
from framefree.simulate import ForceSensor, simulate

GAINS = {"stiffness": (800.0, 30.0), "damping": (80.0, 4.0), "inertia": (2.0, 0.1)}


def gantry(gravity=0.0, mass=2.0):
    """Return a point that three motors push along three axes."""
    parts = [Moments.of_body(m, (0, 0, 0), 1e-3 * np.eye(3)) for m in (1e-3, 1e-3, mass)]
    names = ("a", "b", "tip")
    bodies = [Body(name, moments) for name, moments in zip(names, parts, strict=True)]
    parents = ("world", "a", "b")
    joints = [
        Joint(axis, Prismatic(axis), parent, name)
        for axis, parent, name in zip("xyz", parents, names, strict=True)
    ]
    return Machine(bodies, joints, actuators=motors(joints), gravity=(0, 0, -gravity))


def floor(lean=0.0, friction=0.3):
    """Return a plane that leans about x, under a ball of 2 cm around the tip."""
    G = np.eye(4)
    G[:3, :3] = so3.exp([lean, 0.0, 0.0]).full()
    shapes = ContactShape("half_space", pose=G), ContactShape("sphere", 0.02)
    return Contact(
        "floor", "world", "tip", *shapes, stiffness=2e5, damping=5.0, friction=friction,
        slip_speed=5e-3, exponent=1.0,
    )  # fmt: skip


def circle(radius=0.05, rate=2.0):
    def path(t):
        r = ca.vertcat(radius * (ca.cos(rate * t) - 1), radius * ca.sin(rate * t), 0.0)
        return se3.pose(ca.DM.eye(3), r)

    return FramePath("tip", path)


def pressed(machine, law, x0, **options):
    options = {"duration": 1.0, "dt": 5e-4, "control_dt": 5e-4, "progress": False} | options
    path = options.pop("path", circle())
    return simulate(machine, law, path, x0, sensors=ForceSensor(frame="tip"), **options)


# ---------------------------------------------------------------------- V


@pytest.mark.parametrize("orientation", ["held", "free"])
@pytest.mark.parametrize("touching", [True, False])
def test_rate_of_V_is_that_of_the_motion(orientation, touching):
    """V along the motion that forward dynamics give with the wrench that is measured."""
    arm = iiwa()
    arm = arm.attach(*motors(arm.joints), Frame("tip", "link7", (0.02, 0.01, 0.2)))
    law = HybridControl(
        arm, "tip", 20.0, (1, -2, 0.5), **GAINS, adaptation=30.0, orientation=orientation,
        null_damping=1.0,
    )  # fmt: skip
    rng = np.random.default_rng(3)

    def path(t):
        rotation = euler.to_rotation(ca.vertcat(0.3 * t, 0.5, -0.2 * t))
        return se3.pose(rotation, ca.vertcat(0.5 + 0.1 * t, 0.1 * ca.sin(t), 0.6))

    reference = FramePath("tip", path)
    t, x, v, w = (ca.SX.sym(n, k) for n, k in (("t", 1), ("x", 7), ("v", 7), ("w", 6)))
    memory = ca.SX.sym("memory", 10)
    command = law.control(t, x, v, {**reference.at(t), "force": w}, memory)
    outputs = [command.u, command.signals["V"], command.signals["V_rate"], command.rate]
    function = ca.Function("law", [t, x, v, w, memory], outputs)

    x0, v0 = rng.normal(0, 0.6, 7), rng.normal(0, 0.4, 7)
    wrench = rng.normal(0, 5.0, 6)
    seen = rng.normal(0, 5.0, 6)
    normal = rng.normal(size=3)
    pose = ca.Function("pose", [x], [equations(arm).at(x, v).frame_pose("tip")])(x0).full()
    # The filtered force decides whether it touches.
    along = pose[:3, :3].T @ (normal / np.linalg.norm(normal))
    seen[:3] += along * ((10.0 if touching else -10.0) - along @ seen[:3])
    m0 = np.concatenate([[1.5], normal / np.linalg.norm(normal), seen])
    u, V, stated, rate = (np.asarray(o).ravel() for o in function(0.3, x0, v0, wrench, m0))

    state = equations(arm).at(x, v)
    J = state.jacobian("tip").value
    force = ca.SX.sym("force", 7)
    forward = ca.Function("a", [x, v, force, w], [state.accelerate(force + J.T @ w)])
    a = forward(x0, v0, u, wrench).full().ravel()

    def at(h):
        # V is of second order in h along any curve with this velocity and acceleration.
        arguments = 0.3 + h, x0 + h * v0 + h * h * a / 2, v0 + h * a, wrench, m0 + h * rate
        return float(function(*arguments)[1])

    h = 1e-4
    difference = (8 * (at(h) - at(-h)) - (at(2 * h) - at(-2 * h))) / (12 * h)
    assert abs(difference - stated[0]) < 1e-6 * (1 + abs(stated[0]))
    assert V[0] > 0


# ---------------------------------------------------------------------- force


def test_error_of_the_force_decays_as_stated():
    """A weight that the law does not know is a delta of m g: e_f = -m g exp(-i t)."""
    law = HybridControl(
        gantry(), "tip", 20.0, (0, 0, 1), **GAINS, integral=5.0, integral_limit=50.0,
        orientation="free", filter=2e-3,
    )  # fmt: skip
    heavy = gantry(gravity=9.81).attach(floor(friction=0.0))
    run = pressed(heavy, law, [0, 0, 0.02], path=circle(0.0), duration=1.2)
    error = 20.0 - run["floor.normal_force"]
    late = run.t > 0.15
    expected = -2.002 * 9.81 * np.exp(-5.0 * run.t[late])
    # The integral begins with the first touch, within milliseconds of the start.
    rate = np.polyfit(run.t[late], np.log(-error[late]), 1)[0]
    assert abs(rate + 5.0) < 0.1
    assert np.abs(error[late] / expected - 1).max() < 0.15


@pytest.mark.parametrize("delay", range(5))
def test_bound_of_the_integral_is_sharp(delay):
    """z_(j+1) = z_j - i T z_(j-k), with k the delay of command and measurement."""
    k = delay + 1
    most = 2 * np.sin(np.pi / (2 * (2 * k + 1)))

    def radius(gain):
        polynomial = np.zeros(k + 2)
        polynomial[0], polynomial[1], polynomial[-1] = 1, -1, gain
        return np.abs(np.roots(polynomial)).max()

    assert radius(0.999 * most) < 1 < radius(1.001 * most)
    T = most / 20.0
    law = HybridControl(
        gantry(), "tip", 20.0, (0, 0, 1), **GAINS, integral=20.0, orientation="free", filter=1.0
    )
    assert law.timed(Timing(0.999 * T, delay)) is law
    with pytest.raises(ControlError, match="`integral` must be less than 20"):
        law.timed(Timing(1.0001 * T, delay))


@pytest.mark.parametrize("stiffness", [1e3, 1e5, 1e7])
def test_integral_below_the_damping_is_stable_on_every_elastic_surface(stiffness):
    """Roots of mu p^3 + c mu p^2 + K p + i K, either side of i = c."""
    for mu in (0.1, 5.0):
        for share, sign in ((0.99, -1), (1.01, 1)):
            roots = np.roots([mu, 60.0 * mu, stiffness, share * 60.0 * stiffness])
            assert np.sign(roots.real.max()) == sign


# ---------------------------------------------------------------------- normal


def test_the_normal_is_learned_whatever_the_friction():
    lean = np.deg2rad(12.0)
    law = HybridControl(
        gantry(), "tip", 20.0, (0, 0, 1), **GAINS, adaptation=800.0, orientation="free"
    )
    run = pressed(gantry().attach(floor(lean, 0.5)), law, [0, 0, 0.025], duration=8.0)
    true = np.array([0.0, -np.sin(lean), np.cos(lean)])
    W = 1 - run["normal"] @ true
    touching = run["touching"] > 0.5
    assert touching[run.t > 0.6].all()
    assert W[0] == pytest.approx(1 - np.cos(lean))
    assert W[-1] < 1e-3 * W[0]
    # Never worse, but for the little by which a compliant floor gives way.
    assert np.diff(W).max() < 1e-3 * W[0]
    kept = law.normal
    assert kept.tolist() == [0, 0, 1]


def test_without_touch_it_approaches_and_learns_nothing():
    law = HybridControl(
        gantry(), "tip", 20.0, (0, 0, 1), **GAINS, adaptation=800.0, orientation="free",
        approach=0.03,
    )  # fmt: skip
    run = pressed(gantry(), law, [0, 0, 0.2], path=circle(0.05), duration=1.0)
    assert run.v[-1, 2] == pytest.approx(-0.03, rel=1e-3)
    assert np.array_equal(run["normal"][-1], [0, 0, 1])
    assert run["integral"][-1] == 0
    assert np.abs(run["e"][-1, :2]).max() < 5e-3


# ---------------------------------------------------------------------- refused


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"normal": (0, 0, 0)}, "`normal` must be a direction"),
        ({"normal": (0, 1)}, "`normal` must be a direction"),
        ({"force": -1.0}, "`force` must be a number, positive"),
        ({"force": float("nan")}, "`force` must be a number, positive"),
        ({"stiffness": (1.0, 2.0, 3.0)}, "`stiffness` must be a positive number, or two"),
        ({"inertia": 0.0}, "`inertia` must be a positive number"),
        ({"integral": 60.0}, "`integral` must be less than `normal_damping`, 60"),
        ({"adaptation": -1.0}, "`adaptation` must be a number, not negative"),
        ({"touch": 20.0}, "`touch` must be less than `force`, 20 N"),
        ({"orientation": "loose"}, '"held" or "free"'),
        ({"orientation": "held"}, "too few for 6 directions"),
        ({"frame": "nowhere"}, "nowhere"),
    ],
)
def test_refused(change, message):
    given = {"frame": "tip", "force": 20.0, "normal": (0, 0, 1), **GAINS, "orientation": "free"}
    with pytest.raises(Exception, match=message):
        HybridControl(gantry(), **{**given, **change})


def test_refused_for_a_period():
    law = HybridControl(gantry(), "tip", 20.0, (0, 0, 1), **GAINS, orientation="free", filter=1e-3)
    with pytest.raises(ControlError, match="`filter` must be at least the control period"):
        pressed(gantry(), law, [0, 0, 0.1], dt=2e-3, control_dt=2e-3)
