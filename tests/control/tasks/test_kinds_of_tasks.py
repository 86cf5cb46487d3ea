"""Every kind of task: rows are the derivatives of its errors, and errors obey their equation."""

import casadi as ca
import numpy as np
import pytest

from framefree.control.law import ControlError
from framefree.control.port import HalfSpace, Sphere
from framefree.control.references import FramePath, SignalPath, Together
from framefree.control.references.joints import JointPath
from framefree.control.shared.frames import Frames
from framefree.control.tasks import (
    CenterOfMassControl,
    Clearance,
    DirectionControl,
    DistanceControl,
    FrameControl,
    GazeControl,
    HeldBodyControl,
    JointControl,
    JointRange,
    MomentumControl,
    PositionRows,
    StrictPriority,
    TaskControl,
    VelocityRows,
)
from framefree.gallery.machines.arms import revolute_chain
from framefree.gallery.machines.dual_arm import seven_joint_arm
from framefree.geometry import se3, so3
from framefree.machine import Body, Frame, Free, Joint, Machine, Spherical
from framefree.machine.actuators import Wrench, motors
from framefree.machine.problems import MachineError
from framefree.motion.tree import Tree
from framefree.simulate import simulate

STENCIL = ((-2, 1 / 12), (-1, -8 / 12), (1, 8 / 12), (2, -1 / 12))


def random_pose(rng):
    G = np.eye(4)
    G[:3, :3], G[:3, 3] = so3.exp(rng.normal(size=3)).full(), rng.normal(size=3)
    return G


def floating_arm():
    """Return an arm with a ball joint in its middle on a body that floats, all of it driven."""
    arm = seven_joint_arm(0.0, np.inf)
    base = Machine(
        (Body("base", arm.bodies[0].moments),), (Joint("base", Free(), "world", "base"),)
    )
    joined = base.merge(arm, at="base", pose=(0.1, 0, 0.2)).attach(
        Body("ball", arm.bodies[2].moments),
        Joint("ball", Spherical(), "link_7_l", "ball", parent_pose=(0, 0.1, 0.2)),
        Frame("tip", "ball", random_pose(np.random.default_rng(1))),
        Wrench("drive", "base", np.eye(6)),
        Wrench("twist", "ball", np.eye(6)[:, 3:]),
    )
    return joined


def moving_target(rng):
    """Return a target that turns and moves in all directions."""
    w, p, start = rng.normal(size=3), 0.1 * rng.normal(size=(2, 3)), random_pose(rng)
    center = ca.DM([0.15, 0.1, 0.6])

    def path(t):
        turned = so3.exp(ca.DM(w) * ca.sin(1.3 * t)) @ ca.DM(start[:3, :3])
        return se3.pose(turned, center + ca.DM(p[0]) * ca.cos(t) + ca.DM(p[1]) * t)

    return FramePath("target", path)


def moving_joints(machine, rng):
    """Return a reference of all joints, on their groups."""
    x0, way = machine.random(rng), 0.4 * rng.normal(size=machine.nv)
    return JointPath(machine, lambda t: machine.integrate(ca.SX(ca.DM(x0)), ca.DM(way) * ca.sin(t)))


ARM, FLOATING = seven_joint_arm(0.0, np.inf), floating_arm()
MACHINES = {"arm": ARM, "floating": FLOATING}
HANDS = {"arm": ("link_7_l", "link_2_l"), "floating": ("tip", "base")}
KINDS = (
    "some rows",
    "relative",
    "held point",
    "direction",
    "relative direction",
    "gaze",
    "distance",
    "moving distance",
    "center of mass",
    "center of some",
    "momentum",
    "moving momentum",
    "posture",
    "moving posture",
    "phi",
    "moving phi",
    "eta",
    "range",
    "clearance",
)


def task_of(kind, name, rng):
    """Return a task of a kind, for one of the machines."""
    one, other = HANDS[name]
    machine, bodies = MACHINES[name], ("link_3_l", "link_7_l")
    axis, direction = rng.normal(size=(2, 3))
    return {
        "some rows": lambda: FrameControl(one, "target", only=("z", "x", "turn y")),
        "relative": lambda: FrameControl(one, "target", seen_from=other),
        "held point": lambda: HeldBodyControl(one, (0.05, 0.1, 0.1), "target", only="position"),
        "direction": lambda: DirectionControl(one, axis, direction),
        "relative direction": lambda: DirectionControl(one, "-x", "y", seen_from=other),
        "gaze": lambda: GazeControl(one, other, axis),
        "distance": lambda: DistanceControl(one, other, 0.4),
        "moving distance": lambda: DistanceControl(one, other, target="number"),
        "center of mass": lambda: CenterOfMassControl("target"),
        "center of some": lambda: CenterOfMassControl("target", only=("y", "x"), bodies=bodies),
        "momentum": lambda: MomentumControl(),
        "moving momentum": lambda: MomentumControl("number", only=("turn z",)),
        "posture": lambda: JointControl(machine, machine.random(rng)),
        "moving posture": lambda: JointControl(machine, moving=True),
        "phi": lambda: PositionRows(
            lambda x: [x[0] * x[5], ca.sin(x[3]) + x[4] ** 2], ("product", "sum")
        ),
        "moving phi": lambda: PositionRows(lambda x: x[1] * x[6], ("p",), target="number"),
        "eta": lambda: VelocityRows(lambda x, v: v[0] * ca.cos(x[1]) + x[5] * v[3], ("rolling",)),
        "range": lambda: JointRange(machine),
        "clearance": lambda: Clearance(
            [Sphere((0.1, 0.2, 0.3), 0.1, other), HalfSpace("z", 0.1)], {one: 0.05, "link_3_l": 0.1}
        ),
    }[kind]()


def references(machine, rng):
    number = SignalPath("number", lambda t: 0.3 + 0.1 * ca.sin(2 * t))
    return Together(moving_target(rng), number, moving_joints(machine, rng))


def rows_function(machine, task, reference):
    t, x, v = ca.SX.sym("t"), ca.SX.sym("x", machine.nx), ca.SX.sym("v", machine.nv)
    rows = task.rows(Frames(Tree(machine).at(x, v)), reference.at(t))
    return ca.Function("rows", [t, x, v], [ca.densify(ca.SX(part)) for part in rows])


# Kinds whose velocity error is not the rate of an error of position.
WITHOUT_POSITION = ("momentum", "moving momentum", "eta")
NOT_LINEAR = ("some rows", "relative", "posture", "moving posture")


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", MACHINES)
@pytest.mark.first_cases(4)
def test_rows_are_derivatives(name, kind):
    """d/dt s = A a + rate by differences, and d/dt e = s where the task says so."""
    rng, machine, h = np.random.default_rng(3), MACHINES[name], 1e-3
    task = task_of(kind, name, rng)
    task.check(machine)
    reference = references(machine, rng)
    assert {n: ca.SX(reference.at(ca.SX(0))[n]).shape for n in task.shapes} == dict(task.shapes)
    rows = rows_function(machine, task, reference)
    for _ in range(4):
        t, x = rng.normal(), machine.random(rng)
        v, a = rng.normal(size=(2, machine.nv))

        def at(s, t=t, x=x, v=v, a=a):
            return rows(t + s, machine.integrate(x, v * s + a * s * s / 2), v + a * s)

        samples = [(c / h, at(k * h)) for k, c in STENCIL]
        A, rate, s, e = (np.array(part) for part in rows(t, x, v))
        if kind in ("direction", "relative direction", "gaze") and np.linalg.norm(e) > 5:
            continue  # near the opposite direction differences are worth nothing
        assert A.shape == (len(task.parts), machine.nv)
        measured = sum(c * np.array(found[2]) for c, found in samples)[:, 0]
        expected = A @ a + rate[:, 0]
        # Differences of a velocity that turns fast have errors of h^4.
        assert np.abs(measured - expected).max() < 2e-6 * (1 + np.abs(expected).max())
        if kind not in (*WITHOUT_POSITION, *NOT_LINEAR):
            moving = sum(c * np.array(found[3]) for c, found in samples)[:, 0]
            np.testing.assert_allclose(moving, s[:, 0], atol=2e-6 * (1 + np.abs(s).max()))
        if kind in WITHOUT_POSITION:
            assert not e.any()


@pytest.mark.parametrize("name", MACHINES)
@pytest.mark.first_cases(1)
def test_momentum_and_center_are_those_of_the_state(name):
    rng, machine = np.random.default_rng(4), MACHINES[name]
    state = Tree(machine).at(ca.SX(machine.random(rng)), ca.SX(rng.normal(size=machine.nv)))
    rows = MomentumControl().rows(Frames(state), {})
    known = ca.vertcat(state.momentum["linear"], state.momentum["centroidal"])
    np.testing.assert_allclose(ca.DM(rows.velocity_error), ca.DM(known), atol=1e-10)
    mass = sum(body.moments.total for body in machine.bodies)
    signals = FramePath("target", lambda t: ca.SX.eye(4)).at(ca.SX(0))
    center = CenterOfMassControl("target").rows(Frames(state), signals)
    np.testing.assert_allclose(
        -mass * ca.DM(center.velocity_error), ca.DM(state.momentum["linear"]), atol=1e-10
    )


def decay(t, Kp, Kd, e, s):
    """Return the solution (rows, m) of ``e'' + Kd e' + Kp e = 0`` from e(0), e'(0)."""
    a, b = np.roots([1.0, Kd, Kp]).astype(complex)
    assert abs(a - b) > 1e-3
    one = (b * np.exp(a * t) - a * np.exp(b * t)) / (b - a)
    two = (np.exp(b * t) - np.exp(a * t)) / (b - a)
    return np.outer(one.real, e) + np.outer(two.real, s)


LINEAR = (
    "held point",
    "direction",
    "relative direction",
    "gaze",
    "distance",
    "moving distance",
    "center of mass",
    "phi",
    "moving phi",
)


@pytest.mark.parametrize("kind", LINEAR)
@pytest.mark.first_cases(1)
def test_errors_obey_their_equation(kind):
    """In a closed loop the error is the closed form of its own linear equation."""
    rng = np.random.default_rng(5)
    task = task_of(kind, "arm", rng)
    Kp, Kd = 20.0, 12.0
    object.__setattr__(task, "Kp", Kp)
    object.__setattr__(task, "Kd", Kd)
    law = TaskControl(ARM, [[task]])
    x0, v0 = 0.5 + 0.1 * rng.normal(size=ARM.nx), 0.1 * rng.normal(size=ARM.nv)
    run = simulate(ARM, law, references(ARM, rng), x0, v0, duration=0.4, dt=2e-3, record=())
    e, s = run[f"{task.name}.error"], run[f"{task.name}.velocity_error"]
    e, s = e.reshape(len(run.t), -1), s.reshape(len(run.t), -1)
    expected = decay(run.t, Kp, Kd, e[0], s[0])
    assert np.abs(e[0]).max() > 1e-3
    np.testing.assert_allclose(e, expected, atol=1e-7 * (1 + np.abs(e).max()))


@pytest.mark.parametrize("kind", ["moving momentum", "eta", "momentum"])
def test_velocity_errors_decay(kind):
    rng = np.random.default_rng(6)
    task = task_of(kind, "arm", rng)
    law = TaskControl(ARM, [[task]])
    x0, v0 = 0.5 + 0.1 * rng.normal(size=ARM.nx), 0.1 * rng.normal(size=ARM.nv)
    run = simulate(ARM, law, references(ARM, rng), x0, v0, duration=0.3, dt=2e-3, record=())
    s = run[f"{task.name}.velocity_error"].reshape(len(run.t), -1)
    expected = np.exp(-float(task.Kd) * run.t)[:, None] * s[0]
    np.testing.assert_allclose(s, expected, atol=1e-6 * (1 + np.abs(s[0]).max()))


@pytest.mark.slow
def test_a_posture_that_moves_is_followed_on_all_joints():
    """Also by balls and a free base: errors vanish."""
    rng = np.random.default_rng(7)
    reference = moving_joints(FLOATING, rng)
    law = TaskControl(FLOATING, [[JointControl(FLOATING, Kp=100.0, Kd=None, moving=True)]])
    x0 = FLOATING.integrate(reference.at(0.0)["x"].full().ravel(), 0.3 * rng.normal(size=16))
    run = simulate(FLOATING, law, reference, x0, duration=2.5, dt=5e-3, record=())
    assert np.abs(run["posture.error"][0]).max() > 0.1
    assert np.abs(run["posture.error"][-1]).max() < 1e-6
    assert np.abs(run["posture.velocity_error"][-1]).max() < 1e-5


def test_directions_from_almost_opposite():
    """From nearly a half turn the axis goes home the shortest way, at bounded speed."""
    body = Machine(
        (Body("body", seven_joint_arm().bodies[0].moments),),
        (Joint("base", Free(), "world", "body"),),
    ).attach(Wrench("drive", "body", np.eye(6)))
    law = TaskControl(body, [[DirectionControl("body", "z", "z", Kp=25.0)]])
    angle = np.pi - 1e-3
    x0 = [0, 0, 0, np.cos(angle / 2), np.sin(angle / 2), 0, 0]
    run = simulate(body, law, x0=x0, duration=6.0, dt=5e-3)
    assert np.linalg.norm(run["direction.error"][-1]) < 1e-3
    assert np.abs(run.v[:, 3:]).max() < 2 * 5.0


def test_one_joint():
    """A machine with one joint has tasks too: a position, and a center of mass along one axis."""
    arm = revolute_chain(1)
    arm = arm.attach(*motors(arm.joints))
    law = TaskControl(arm, [[JointControl(arm, [0.4], Kp=100.0, Kd=None)]], StrictPriority())
    run = simulate(arm, law, duration=2.0, dt=2e-3)
    assert abs(run.x[-1, 0] - 0.4) < 1e-6


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: FrameControl("a", only=("up",)), "`only` of task `control` must be"),
        (lambda: FrameControl("a", only=None), "`only` of task `control` must be"),
        (lambda: TaskControl(ARM, []), "needs a task"),
        (lambda: TaskControl(ARM, [3]), "`levels` must be sequences of tasks"),
        (
            lambda: TaskControl("arm", [[JointControl(ARM)]]),
            "`machine` of TaskControl must be a Machine",
        ),
        (lambda: TaskControl(ARM, [[JointControl(ARM)]], "strict"), "`solver` of TaskControl"),
        (lambda: TaskControl(ARM, [[JointControl(ARM)]], held="box"), "`held` must be a HeldObj"),
        (lambda: TaskControl(ARM, [[JointControl(ARM)]], fastest="x"), "`fastest` must be"),
        (lambda: DistanceControl("a", "b"), "needs a `distance` or a `target`"),
        (lambda: DistanceControl("a", "b", -1.0), "`distance` of task `distance` must be positive"),
        (lambda: PositionRows(lambda x: x, ()), "must name its rows"),
        (lambda: Clearance([3], {"a": 0.1}), "must be obstacles, got int"),
        (lambda: Clearance([], {"a": 0.1}), "needs obstacles"),
        (lambda: JointRange(FLOATING, ("base",)), "no joint of task"),
        (lambda: JointRange(ARM, margin=5.0), "leaves joint `joint_1_l` no room"),
        (lambda: JointControl(ARM, np.zeros(7), moving=True), "not both"),
        (lambda: SignalPath("n", lambda t: ca.SX.eye(2)), "must give a column"),
    ],
)
def test_refusals(make, words):
    with pytest.raises(ControlError, match=words):
        make()


def test_refusals_by_the_law():
    """What does not fit the machine is refused when the law is made, by name."""
    for task, error, words in (
        (FrameControl("hand"), MachineError, "hand"),
        (GazeControl("link_7_l", "nothing"), MachineError, "nothing"),
        (PositionRows(lambda x: x, ("one",)), ControlError, "1 names for its rows"),
        (JointControl(FLOATING), ControlError, "whose joints are not those"),
        (JointRange(ARM), ControlError, "is a barrier, an inequality"),
        (GazeControl("link_7_l", "link_7_l"), ControlError, "got `link_7_l` twice"),
        (FrameControl("link_7_l", name=""), ControlError, "the name of a task must be a word"),
        (PositionRows(lambda x: x["a"], ("p",)), ControlError, "cannot be evaluated on casadi"),
        (VelocityRows(lambda x: x, ("p",)), ControlError, r"casadi columns \(x, v\)"),
        (3, ControlError, "must hold tasks, got 3"),
    ):
        with pytest.raises(error, match=words):
            TaskControl(ARM, [[task]])
