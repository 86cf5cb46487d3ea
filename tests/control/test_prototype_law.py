"""Tracking by a prototype: the explicit law against its definitions, and its invariances."""

import warnings

import casadi as ca
import numpy as np
import pytest
from random_machines import random_machine, random_pose

from framefree.control.law import ControlError
from framefree.control.prototype import APPROACHES, PrototypeControl
from framefree.errors import FramefreeWarning
from framefree.geometry import Moments, se3
from framefree.machine import (
    Body,
    Free,
    Joint,
    Machine,
    Prismatic,
    Spherical,
    Universal,
    Wrench,
    motors,
)
from framefree.motion import equations

GAIN = Moments.of_body(1.0, (0, 0, 0), np.eye(3))


def wed(xi):
    v, w = xi[:3], xi[3:]
    return np.array(
        [[0, -w[2], w[1], v[0]], [w[2], 0, -w[0], v[1]], [-w[1], w[0], 0, v[2]], [0, 0, 0, 0]]
    )


class Points:
    """Weights of inertia, damping and stiffness at points of the second frame of a pair."""

    def __init__(self, rng, pair, count=7):
        self.pair = pair
        self.points = rng.uniform(-0.4, 0.4, (count, 3))
        self.m, self.d, self.k = rng.uniform(0.2, 1.5, (3, count)) * [[1], [3], [8]]

    def moments(self, weights):
        return Moments.of_points(self.points, weights)


def law_of(machine, clouds, approach, **options):
    given = [{c.pair: c.moments(getattr(c, w)) for c in clouds} for w in "mdk"]
    return PrototypeControl(machine, *given, approach=approach, **options)


def called(law, state, reference, *names):
    """Inputs, and signals by name, as numbers."""
    n = law.machine
    sizes = (n.nx, n.nv, n.nx, n.nv, n.nv)
    symbols = [ca.SX.sym(f"s{i}", size) for i, size in enumerate(sizes)]
    x, v, x_R, v_R, a_R = symbols
    command = law.control(0, x, v, {"x": x_R, "v": v_R, "a": a_R}, ca.SX(0, 1))
    function = ca.Function("law", symbols, [command.u, *(command.signals[s] for s in names)])
    found = [np.array(value).squeeze() for value in function.call([*state, *reference])]
    return found if names else found[0]


def actuated(rng, full):
    """A random machine without fluid, with motors on all joints or on some."""
    while True:
        machine = random_machine(rng, int(rng.integers(2, 5)), fluid=False)
        if machine.nv >= 3 and not any(joint.armature.any() for joint in machine.joints):
            break
    every = motors([joint for joint in machine.joints if joint.nv])
    if not full:
        chosen = rng.permutation(len(every))[: max(1, len(every) // 2)]
        every = tuple(every[i] for i in sorted(chosen))
    return machine.attach(*every)


def clouds_of(rng, machine):
    """Points on all bodies, absolute, and between two pairs of frames."""
    found = [Points(rng, ("world", body.name)) for body in machine.bodies]
    if len(machine.bodies) > 1:
        found.append(Points(rng, ("f0", "f1")))
        found.append(Points(rng, (f"f{len(machine.bodies) - 1}", "b0")))
    return found


def random_case(rng, machine):
    state = machine.random(rng), rng.normal(size=machine.nv)
    reference = machine.random(rng), rng.normal(size=machine.nv), rng.normal(size=machine.nv)
    return state, reference


def poses(machine, eom, frame, x, v, a):
    """Pose of a frame and its first two time derivatives, from the equations' own recursions."""
    found = machine.frame(frame)
    if found.body == "world":
        return [found.pose, np.zeros((4, 4)), np.zeros((4, 4))]
    i = machine.body_index[found.body]

    def row(name, *arguments):
        value = np.array(eom.functions[name](*arguments))
        return value.reshape(len(machine.bodies), -1)[i]

    G = row("body_pose", x).reshape(4, 4)
    xi, rate = row("body_velocity", x, v), row("body_acceleration", x, v, a)
    return [part @ found.pose for part in (G, G @ wed(xi), G @ (wed(xi) @ wed(xi) + wed(rate)))]


def relative(machine, eom, pair, x, v, a):
    """G_ab and its derivatives, by the product rule."""
    A, A1, A2 = poses(machine, eom, pair[0], x, v, a)
    B, B1, B2 = poses(machine, eom, pair[1], x, v, a)
    inv = np.linalg.inv(A)
    inv1 = -inv @ A1 @ inv
    inv2 = -inv1 @ A1 @ inv - inv @ A2 @ inv - inv @ A1 @ inv1
    return inv @ B, inv1 @ B + inv @ B1, inv2 @ B + 2 * inv1 @ B1 + inv @ B2


def motion_of_points(cloud, machine, eom, *state):
    ones = np.column_stack([cloud.points, np.ones(len(cloud.points))])
    return [(G @ ones.T).T[:, :3] for G in relative(machine, eom, cloud.pair, *state)]


def constraint(clouds, machine, eom, state, reference, a):
    """Rows of (m e'' + d e' + k e)/sqrt(m) of all particles: half their square is Gauss's."""
    rows = []
    for cloud in clouds:
        now = motion_of_points(cloud, machine, eom, *state, a)
        there = motion_of_points(cloud, machine, eom, *reference)
        e, e1, e2 = (p - q for p, q in zip(now, there, strict=True))
        z = cloud.m[:, None] * e2 + cloud.d[:, None] * e1 + cloud.k[:, None] * e
        rows.append((z / np.sqrt(cloud.m)[:, None]).ravel())
    return np.concatenate(rows)


def forward(machine, eom, state, u):
    x, v = state
    B = np.array(eom.functions["input_matrix"](x)).reshape(machine.nv, machine.nu)
    bias = np.array(eom.functions["input_bias"](x, v)).ravel()
    return np.array(eom.functions["forward"](x, v, B @ u + bias)).ravel()


@pytest.mark.parametrize("full", [True, False])
@pytest.mark.parametrize("seed", range(4))
def test_particle_law_minimises_the_sum_over_actual_particles(seed, full):
    rng = np.random.default_rng(100 + seed)
    machine = actuated(rng, full)
    clouds, eom = clouds_of(rng, machine), equations(machine, "tree")
    state, reference = random_case(rng, machine)

    def rows(u):
        a = forward(machine, eom, state, u)
        return constraint(clouds, machine, eom, state, reference, a)

    zero = np.zeros(machine.nu)
    at_zero = rows(zero)
    slope = np.column_stack([rows(one) - at_zero for one in np.eye(machine.nu)])
    best = np.linalg.lstsq(slope, -at_zero, rcond=None)[0]
    u = called(law_of(machine, clouds, "particle"), state, reference)
    assert np.allclose(u, best, rtol=1e-10, atol=1e-10 * np.abs(best).max())


@pytest.mark.parametrize("approach", APPROACHES)
@pytest.mark.parametrize("seed", range(3))
@pytest.mark.first_cases(2)
def test_inputs_are_nearest_in_the_metric_of_the_template(approach, seed):
    rng = np.random.default_rng(200 + seed)
    machine, pairs = joints_and_stiffness(rng)
    eom = equations(machine, "tree")
    law = PrototypeControl(machine, *pairs, approach=approach)
    state, reference = random_case(rng, machine)
    M, b = template_of(law, state, reference)
    root = np.linalg.cholesky(M).T

    def off(u):
        return root @ (forward(machine, eom, state, u) + np.linalg.solve(M, b))

    zero = np.zeros(machine.nu)
    slope = np.column_stack([off(one) - off(zero) for one in np.eye(machine.nu)])
    best = np.linalg.lstsq(slope, -off(zero), rcond=None)[0]
    u, gauss, left = called(law, state, reference, "gauss", "matching_force")
    assert np.allclose(u, best, rtol=1e-10, atol=1e-10 * np.abs(best).max())
    assert gauss == pytest.approx(off(best) @ off(best) / 2, rel=1e-8, abs=1e-9)
    assert np.allclose(left, M @ forward(machine, eom, state, u) + b, atol=1e-8 * np.abs(b).max())


def joints_and_stiffness(rng, full=False):
    """A machine all of whose joints are groups, and parameters with stiffness across joints."""
    while True:
        machine = actuated(rng, full)
        if not any(isinstance(joint.kind, Universal) for joint in machine.joints):
            break
    clouds = clouds_of(rng, machine)
    inertia, damping = ({c.pair: c.moments(getattr(c, w)) for c in clouds} for w in "md")
    edges = [
        Points(rng, (j.parent, j.child)) for j in machine.joints if j.nv and j.parent != j.child
    ]
    return machine, (inertia, damping, {c.pair: c.moments(c.k) for c in edges})


def template_of(law, state, reference):
    n = law.machine
    symbols = [ca.SX.sym(f"s{i}", k) for i, k in enumerate((n.nx, n.nv, n.nx, n.nv, n.nv))]
    x, v, x_R, v_R, a_R = symbols
    found = law.template(x, v, {"x": x_R, "v": v_R, "a": a_R})
    function = ca.Function("template", symbols, [ca.densify(found.M), found.b])
    M, b = (np.array(value) for value in function.call([*state, *reference]))
    return M, b.ravel()


@pytest.mark.parametrize("seed", range(4))
def test_body_template_is_the_free_motion_of_the_pose_errors(seed):
    """M a + b against gradients of S, R and V, which are quadratic in accelerations and rates."""
    rng = np.random.default_rng(300 + seed)
    machine = actuated(rng, True)
    clouds, eom = clouds_of(rng, machine), equations(machine, "tree")
    (x, v), reference = random_case(rng, machine)
    a = rng.normal(size=machine.nv)

    def energies(x, v, a):
        S = R = V = 0.0
        for c in clouds:
            G, G1, G2 = relative(machine, eom, c.pair, x, v, a)
            H, H1, H2 = relative(machine, eom, c.pair, *reference)
            inv = np.linalg.inv(H)
            inv1 = -inv @ H1 @ inv
            inv2 = -2 * inv1 @ H1 @ inv - inv @ H2 @ inv
            E, E1 = inv @ G, inv1 @ G + inv @ G1
            E2 = inv2 @ G + 2 * inv1 @ G1 + inv @ G2
            for A, w, which in ((E2, c.m, "S"), (E1, c.d, "R"), (E - np.eye(4), c.k, "V")):
                value = np.trace(A @ c.moments(w).matrix4 @ A.T) / 2
                S, R, V = (
                    S + value * (which == "S"),
                    R + value * (which == "R"),
                    V + value * (which == "V"),
                )
        return S, R, V

    wanted = np.zeros(machine.nv)
    for i, e in enumerate(np.eye(machine.nv)):
        wanted[i] += (energies(x, v, a + e)[0] - energies(x, v, a - e)[0]) / 2
        wanted[i] += (energies(x, v + e, a)[1] - energies(x, v - e, a)[1]) / 2
        h = 1e-5
        ahead, back = machine.integrate(x, h * e), machine.integrate(x, -h * e)
        wanted[i] += (energies(ahead, v, a)[2] - energies(back, v, a)[2]) / (2 * h)
    M, b = template_of(law_of(machine, clouds, "body"), (x, v), reference)
    assert np.allclose(M @ a + b, wanted, rtol=1e-6, atol=1e-6 * np.abs(wanted).max())


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.first_cases(1)
def test_all_approaches_agree_where_the_reference_rests(seed):
    rng = np.random.default_rng(400 + seed)
    machine, pairs = joints_and_stiffness(rng)
    state, (x_R, _, _) = random_case(rng, machine)
    still = np.zeros(machine.nv)
    names = ("W", "W_rate", "W_loss")
    found = [
        called(PrototypeControl(machine, *pairs, approach=a), state, (x_R, still, still), *names)
        for a in APPROACHES
    ]
    for other in found[1:]:
        for one, two in zip(found[0], other, strict=True):
            assert np.allclose(one, two, rtol=1e-9, atol=1e-9 * np.abs(one).max())


@pytest.mark.parametrize("seed", range(3))
def test_at_zero_error_the_template_asks_for_the_reference(seed):
    rng = np.random.default_rng(450 + seed)
    machine, pairs = joints_and_stiffness(rng)
    _, (x, v, a) = random_case(rng, machine)
    for approach in APPROACHES:
        M, b = template_of(PrototypeControl(machine, *pairs, approach=approach), (x, v), (x, v, a))
        assert np.allclose(b, -M @ a, atol=1e-10 * np.abs(M @ a).max())


@pytest.mark.parametrize("approach", APPROACHES)
@pytest.mark.parametrize("seed", range(3))
@pytest.mark.first_cases(3)
def test_other_body_frames_and_joint_axes_give_the_same_inputs(approach, seed):
    rng = np.random.default_rng(500 + seed)
    machine, pairs = joints_and_stiffness(rng)
    state, reference = random_case(rng, machine)
    u = called(PrototypeControl(machine, *pairs, approach=approach), state, reference)
    shift = {body.name: random_pose(rng) for body in machine.bodies}
    moved = moved_frames(machine, shift)
    # A pair's moments are in the axes of its second frame, which has moved if it is a body.
    moments = [
        {
            pair: m.moved(np.linalg.inv(shift[pair[1]])) if pair[1] in shift else m
            for pair, m in kind.items()
        }
        for kind in pairs
    ]
    # A body as first frame of a pair: the potential is that of points of the second either way.
    again = called(PrototypeControl(moved, *moments, approach=approach), state, reference)
    assert np.allclose(again, u, rtol=1e-9, atol=1e-9 * np.abs(u).max())


def moved_frames(machine, shift):
    """The same machine with the frame of each body b at G_b shift[b]."""
    inv = {name: np.linalg.inv(F) for name, F in shift.items()}

    def seen(body, pose):
        return inv[body] @ pose if body in inv else pose

    for body in machine.bodies:
        machine = machine.replace(f"body:{body.name}", inertia=body.moments.moved(inv[body.name]))
    for frame in machine.frames:
        machine = machine.replace(f"frame:{frame.name}", pose=seen(frame.body, frame.pose))
    for joint in machine.joints:
        machine = machine.replace(
            f"joint:{joint.name}",
            parent_pose=seen(joint.parent, joint.parent_pose),
            child_pose=seen(joint.child, joint.child_pose),
        )
    return machine


def free_body(kind):
    """A body with four inputs, moved by a free joint or by slides and a ball."""
    inertia = Moments.of_body(1.3, (0.02, -0.05, 0.1), np.diag([0.02, 0.03, 0.04]))
    columns = np.array(
        [[0, 0, 1, 0, 0, 0], [0, 0, 0, 1, 0, 0], [0, 0.1, 0, 0, 1, 0], [0.2, 0, 0, 0, 0, 1.0]]
    ).T
    wrench = Wrench("push", "body", columns)
    if kind == "free":
        joints = (Joint("base", Free(), "world", "body"),)
        return Machine((Body("body", inertia),), joints, actuators=(wrench,), name="free")
    bodies = (Body("a", None), Body("b", None), Body("c", None), Body("body", inertia))
    joints = (
        Joint("x", Prismatic("x"), "world", "a"),
        Joint("y", Prismatic("y"), "a", "b"),
        Joint("z", Prismatic("z"), "b", "c"),
        Joint("ball", Spherical(), "c", "body"),
    )
    return Machine(bodies, joints, actuators=(wrench,), name="slides")


@pytest.mark.filterwarnings("ignore:the line through the centers")  # the points lie anywhere
@pytest.mark.parametrize("approach", APPROACHES)
def test_other_coordinates_and_velocities_give_the_same_inputs(approach):
    rng = np.random.default_rng(7)
    one, two = free_body("free"), free_body("slides")
    cloud = Points(rng, ("world", "body"))

    def T(x):
        """Body twist of the world velocities (and body rates) of the slides."""
        return ca.diagcat(rotation(x).T, ca.SX.eye(3))

    def carried(x, x_R):
        G, G_R = (se3.pose(rotation(q), q[:3]) for q in (x, x_R))
        Ad = se3.adjoint(se3.compose(se3.inverse(G), G_R))
        return T(x).T @ Ad @ T(x_R)

    options = {"transport": carried} if approach == "energy" else {}
    laws = law_of(one, [cloud], approach), law_of(two, [cloud], approach, **options)
    for _ in range(5):
        (x, v), (x_R, v_R, a_R) = random_case(rng, one)
        u = called(laws[0], (x, v), (x_R, v_R, a_R))
        other = called(laws[1], (x, world(x, v)), (x_R, world(x_R, v_R), world(x_R, a_R, v_R)))
        assert np.allclose(other, u, rtol=1e-9, atol=1e-9 * np.abs(u).max())


def rotation(x):
    from framefree.geometry import quaternion

    return quaternion.to_rotation(x[3:7])


def world(x, twist, rate=None):
    """World velocity (or acceleration, with the twist `rate`) of a body twist."""
    R = np.array(rotation(ca.DM(x)))
    linear = twist[:3] if rate is None else twist[:3] + np.cross(rate[3:], rate[:3])
    return np.concatenate([R @ linear, twist[3:]])


@pytest.mark.parametrize("seed", range(3))
def test_error_energy_falls_by_the_dampers_under_the_energy_approach(seed):
    """dW/dt by small steps along the closed loop and the reference."""
    rng = np.random.default_rng(600 + seed)
    machine, pairs = joints_and_stiffness(rng, full=True)
    law, eom = PrototypeControl(machine, *pairs, approach="energy"), equations(machine, "tree")
    (x, v), (x_R, v_R, a_R) = random_case(rng, machine)
    u, rate, loss = called(law, (x, v), (x_R, v_R, a_R), "W_rate", "W_loss")
    a = forward(machine, eom, (x, v), u)

    def W(h):
        at = machine.integrate(x, h * v + h * h / 2 * a), v + h * a
        there = machine.integrate(x_R, h * v_R + h * h / 2 * a_R), v_R + h * a_R, a_R
        return called(law, at, there, "W")[1]

    h = 1e-5
    measured = (W(h) - W(-h)) / (2 * h)
    assert rate == pytest.approx(-loss, rel=1e-9)
    assert measured == pytest.approx(-loss, rel=1e-6)


@pytest.mark.parametrize("approach", APPROACHES)
def test_stated_rate_of_the_error_energy_is_its_rate_even_underactuated(approach):
    rng = np.random.default_rng(17)
    machine, pairs = joints_and_stiffness(rng)
    law, eom = PrototypeControl(machine, *pairs, approach=approach), equations(machine, "tree")
    (x, v), (x_R, v_R, a_R) = random_case(rng, machine)
    u, rate = called(law, (x, v), (x_R, v_R, a_R), "W_rate")
    a = forward(machine, eom, (x, v), u)

    def W(h):
        at = machine.integrate(x, h * v + h * h / 2 * a), v + h * a
        there = machine.integrate(x_R, h * v_R + h * h / 2 * a_R), v_R + h * a_R, a_R
        return called(law, at, there, "W")[1]

    h = 1e-5
    assert (W(h) - W(-h)) / (2 * h) == pytest.approx(rate, rel=1e-6)


# ---------------------------------------------------------------------- what is refused


def test_tool_gains_alone_on_a_seven_joint_arm_are_refused_with_the_reason():
    from framefree.gallery.machines.arms import iiwa

    arm = iiwa()
    arm = arm.attach(*motors(arm.joints))
    gain = Moments.of_body(1.0, (0, 0, 0), np.eye(3))
    with pytest.raises(ControlError, match=r"singular.*rank 6 for 7 velocities.*across joints"):
        PrototypeControl(arm, {"tool": gain}, {"tool": gain}, {"tool": gain}, approach="body")
    joints = {(joint.parent, joint.child): 0.1 * gain for joint in arm.joints}
    law = PrototypeControl(
        arm, {"tool": gain, **joints}, {"tool": gain, **joints}, {"tool": gain}, approach="body"
    )
    assert law.allocation.unactuated == ()


def test_stiffness_over_several_joints_has_no_transport_map():
    from framefree.gallery.machines.scara import scara

    parameters = {"tool": GAIN}, {}, {"tool": GAIN}
    with pytest.raises(ControlError, match=r"`world` and `tool`.*`joint1`, `joint2`"):
        PrototypeControl(scara(), *parameters, approach="energy")
    with pytest.warns(FramefreeWarning, match=r"body approach.*because.*`world` and `tool`"):
        assert PrototypeControl(scara(), *parameters).approach == "body"


@pytest.mark.parametrize(
    ("stiffness", "message"),
    [
        ({"elbow": GAIN}, "elbow"),
        ({"tool": 3.0}, "must be Moments"),
        ({"tool": -1 * GAIN}, "not positive semidefinite"),
    ],
)
def test_mistakes_are_raised_without_a_word_on_the_approach(stiffness, message):
    from framefree.gallery.machines.scara import scara

    with warnings.catch_warnings():
        warnings.simplefilter("error", FramefreeWarning)
        with pytest.raises(ControlError, match=message):
            PrototypeControl(scara(), {"tool": GAIN}, {}, stiffness)


def test_a_joint_that_is_no_group_is_named():
    rng = np.random.default_rng(0)
    machine = Machine(
        (Body("b", Moments.of_body(1, (0, 0, 0), np.eye(3))),),
        (Joint("cardan", Universal("x", "y"), "world", "b"),),
    )
    machine = machine.attach(*motors(machine.joints))
    cloud = Points(rng, ("world", "b"))
    with pytest.raises(ControlError, match=r"`cardan`.*Universal"):
        law_of(machine, [cloud], "energy")
    with pytest.raises(ControlError, match="does not carry the potential"):
        law_of(machine, [cloud], "energy", transport=lambda x, x_R: ca.SX.eye(2))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"approach": "magic"}, "particle, body, energy"),
        ({"inertia": {}}, "needs `inertia`"),
        ({"inertia": {"wing": Moments.of_body(1, (0, 0, 0), np.eye(3))}}, "wing"),
        ({"inertia": {"body": 3.0}}, "must be Moments, got float"),
        ({"damping": {("body", "world"): Moments.of_body(1, (0, 0, 0), np.eye(3))}}, "one order"),
        ({"damping": {"body": -1 * Moments.of_body(1, (0, 0, 0), np.eye(3))}}, "damping of the"),
    ],
)
def test_what_cannot_be_is_refused(change, message):
    gain = Moments.of_body(1.0, (0, 0, 0), np.eye(3))
    given = {"inertia": {"body": gain}, "damping": {"body": gain}, "stiffness": {"body": gain}}
    with pytest.raises(ControlError, match=message):
        PrototypeControl(free_body("free"), **{**given, **change})
