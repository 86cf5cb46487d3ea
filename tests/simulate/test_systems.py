"""Systems in a user's own coordinates are machines: they run, are driven, checked and refused."""

import casadi as ca
import numpy as np
import pytest

import framefree as ff
from framefree.geometry import Moments, quaternion, se3
from framefree.machine import Body, Joint, Machine, MachineError, Revolute, StateError, motors
from framefree.machine.actuators import JointForce
from framefree.motion import (
    BodySystem,
    Constrained,
    Coordinates,
    EquationsError,
    LagrangianSystem,
    Nonholonomic,
    RelativePose,
)
from framefree.solve import SolveError

ROD = Body("rod", Moments.of_body(1.2, (0, 0, -0.5), np.diag([0.1, 0.12, 0.03])))
CIRCLE = Coordinates(
    2,
    1,
    lambda x: ca.vertcat(-x[1], x[0]),
    lambda x: ca.sumsqr(x) - 1,
    sample=(1.0, 0.0),
    x_names=("cos", "sin"),
    v_names=("turn",),
)


def about_y(x):
    G = ca.SX.eye(4)
    G[0, 0], G[0, 2], G[2, 0], G[2, 2] = x[0], x[1], -x[1], x[0]
    return G


def pendulum(**more):
    poses = [RelativePose("world", "rod", about_y)]
    return BodySystem("pendulum", CIRCLE, poses, [ROD], **more)


def hinged():
    return Machine([ROD], [Joint("hinge", Revolute("y"), "world", "rod")])


def attitude(**more):
    """A free rotation by its matrix: nine numbers of which three are free."""

    def rate(x):
        R = ca.reshape(x, 3, 3)
        return ca.horzcat(*(ca.vec(R @ column) for column in map(ca.skew, np.eye(3))))

    def phi(x):
        R = ca.reshape(x, 3, 3)
        return ca.vertcat(*(ca.vec(R.T @ R - ca.DM.eye(3))[k] for k in (0, 1, 2, 4, 5, 8)))

    coordinates = Coordinates(9, 3, rate, phi, sample=np.eye(3).ravel())
    top = Body("top", Moments.of_body(1.0, (0, 0, 0.3), np.diag([0.2, 0.25, 0.1])))
    pose = RelativePose("world", "top", lambda x: se3.pose(ca.reshape(x, 3, 3), ca.DM.zeros(3)))
    return BodySystem("attitude", coordinates, [pose], [top], **more)


def test_a_pendulum_in_cosine_and_sine_moves_like_its_machine():
    angle, rate = 1.1, -0.4
    system, machine = pendulum(), hinged()
    ours = ff.simulate(system, x0=[np.cos(angle), np.sin(angle)], v0=[rate], duration=3.0, dt=1e-3)
    theirs = ff.simulate(machine, x0=[angle], v0=[rate], duration=3.0, dt=1e-3)
    assert np.abs(ours.x[:, 1] - np.sin(theirs.x[:, 0])).max() < 1e-10
    assert np.abs((ours.x**2).sum(axis=1) - 1).max() < 1e-14
    energy = ours["kinetic"] + ours["potential"]
    assert np.ptp(energy) < 1e-9


@pytest.mark.parametrize("integrator", ["rk4", "midpoint", "adaptive", "euler"])
def test_nine_numbers_of_a_rotation_do_not_drift(integrator):
    system = attitude()
    run = ff.simulate(system, v0=[3.0, -1.0, 2.0], duration=2.0, dt=1e-3, integrator=integrator)
    R = run.x.reshape(-1, 3, 3)
    assert np.abs(R @ R.transpose(0, 2, 1) - np.eye(3)).max() < 1e-12


def test_motors_and_laws_act_on_the_velocities():
    plain = pendulum()
    system = pendulum(actuators=motors(plain.joints))
    assert system.u_names == ("q.turn",)
    hold = ff.equations(system).numbers("gravity", x=[0.6, 0.8])[0]
    a = ff.equations(system).numbers("forward:u", x=[0.6, 0.8], v=[0.0], u=hold)[0]
    assert np.abs(a).max() < 1e-12
    law = ff.control.ComputedTorque(system, stiffness=25.0, damping=10.0)
    target = np.array([np.cos(0.7), np.sin(0.7)])
    path = ff.control.references.MinimumJerk(system, points=[[1, 0], target], times=[0.0, 1.0])
    run = ff.simulate(system, law, path, x0=[np.cos(0.2), -np.sin(0.2)], duration=4.0, dt=1e-3)
    assert np.abs(run.x[-1] - target).max() < 1e-5
    assert run["V"][-1] < 1e-6 * run["V"][0]


def test_poses_that_move_by_themselves():
    """A pivot shaken up and down: relative to it, gravity changes by its acceleration."""
    size, omega = 0.2, 7.0

    def shaken(x, t):
        G = about_y(x)
        G[2, 3] = size * ca.sin(omega * t)
        return G

    system = BodySystem("shaken", CIRCLE, [RelativePose("world", "rod", shaken)], [ROD])
    eom = ff.equations(system)
    assert eom.rheonomic
    x, v, t = np.array([0.6, 0.8]), np.array([0.9]), 0.37
    a = eom.numbers("forward", x=x, v=v, force=[0.1], t=t)[0]
    g = 9.81 - size * omega**2 * np.sin(omega * t)
    still = ff.equations(pendulum(gravity=(0, 0, -g)))
    np.testing.assert_allclose(a, still.numbers("forward", x=x, v=v, force=[0.1])[0], rtol=1e-12)
    run = ff.simulate(system, x0=x, v0=v, duration=1.0, dt=1e-3)
    power = eom.kernel("power")(run.x, run.v, np.zeros_like(run.v), run.t[:, None])
    energy = run["kinetic"] + run["potential"]
    slope = np.gradient(energy, run.t)[5:-5]
    np.testing.assert_allclose(slope, np.ravel(power)[5:-5], atol=2e-3 * np.abs(power).max())


def test_a_lagrangian_runs_and_is_linearised():
    def L(x, v, t):
        return 0.5 * 0.3 * v[0] ** 2 - 1.2 * 9.81 * (-0.5 * x[0])

    system = LagrangianSystem("pendulum", CIRCLE, L, actuators=[JointForce("m", "q", (1.0,))])
    run = ff.simulate(system, x0=[np.cos(0.3), np.sin(0.3)], duration=2.0, dt=1e-3)
    assert np.ptp(run["kinetic"] + run["potential"]) < 1e-10
    linear = ff.linearise(system, [1.0, 0.0])
    omega = np.sqrt(1.2 * 9.81 * 0.5 / 0.3)
    np.testing.assert_allclose(np.sort(linear.eigenvalues.imag), [-omega, omega], rtol=1e-12)
    np.testing.assert_allclose(linear.B, [[0.0], [1 / 0.3]], rtol=1e-12)


# ------------------------------------------------------------------ what is wrong is refused


def test_the_factory_serves_every_kind_of_system():
    assert ff.equations(pendulum(), "redundant").name == "redundant"
    circle = LagrangianSystem("c", CIRCLE, lambda x, v, t: ca.sumsqr(v))
    assert ff.equations(circle, "redundant").name == "redundant"
    with pytest.raises(EquationsError, match="redundant formulation only"):
        ff.equations(circle, "tree")
    with pytest.raises(EquationsError, match="has no option `stabilisation`"):
        ff.equations(hinged(), "tree", stabilisation=1.0)


def test_a_sign_typo_in_A_is_refused():
    wrong = Coordinates(2, 1, lambda x: ca.vertcat(x[1], x[0]), lambda x: ca.sumsqr(x) - 1)
    with pytest.raises(MachineError, match="must be zero"):
        ff.equations(BodySystem("w", wrong, [RelativePose("world", "rod", about_y)], [ROD]))
    with pytest.raises(MachineError, match="must be zero"):
        ff.equations(LagrangianSystem("w", wrong, lambda x, v, t: ca.sumsqr(v)))


def test_a_configuration_off_phi_is_refused():
    far = Coordinates(
        2, 1, lambda x: ca.vertcat(-x[1], x[0]), lambda x: ca.sumsqr(x) - 1, sample=(2.0, 0.0)
    )
    with pytest.raises(MachineError, match="phi"):
        ff.equations(BodySystem("w", far, [RelativePose("world", "rod", about_y)], [ROD]))
    with pytest.raises(StateError, match="phi"):
        ff.simulate(pendulum(), x0=[2.0, 0.0], duration=0.1, dt=1e-3)


def test_a_missing_row_of_phi_is_refused():
    loose = Coordinates(2, 1, lambda x: ca.vertcat(-x[1], x[0]), sample=(1.0, 0.0))
    with pytest.raises(MachineError, match="misses rows"):
        ff.equations(BodySystem("w", loose, [RelativePose("world", "rod", about_y)], [ROD]))


SLED = Body("sled", Moments.of_body(2.0, (0.3, 0, 0), np.diag([0.3, 0.2, 0.4])))


def planar(x):
    G = ca.SX.eye(4)
    c, s = ca.cos(x[2]), ca.sin(x[2])
    G[0, 0], G[0, 1], G[1, 0], G[1, 1], G[0, 3], G[1, 3] = c, -s, s, c, x[0], x[1]
    return G


def sleigh():
    """The sleigh of Chaplygin: a blade lets the sled go forward and turn only."""
    coordinates = Coordinates(
        3, 2, lambda x: ca.blockcat([[ca.cos(x[2]), 0], [ca.sin(x[2]), 0], [0, 1]])
    )
    return BodySystem("sleigh", coordinates, [RelativePose("world", "sled", planar)], [SLED])


def test_velocities_of_a_blade_are_right_or_refused():
    """By hand: m (u' - l w^2) = f and (I + m l^2) w' + m l u w = tau."""
    eom = ff.equations(sleigh())
    assert not eom.integrable
    m, l, inertia = 2.0, 0.3, 0.4
    x, v, force = np.array([0.2, -0.1, 0.7]), np.array([0.8, -1.3]), np.array([0.5, -0.2])
    expected = [
        l * v[1] ** 2 + force[0] / m,
        (force[1] - m * l * v[0] * v[1]) / (inertia + m * l**2),
    ]
    a = eom.numbers("forward", x=x, v=v, force=force)[0]
    np.testing.assert_allclose(a, expected, rtol=1e-12)
    C, M = eom.numbers("coriolis", x=x, v=v)[0], eom.numbers("mass", x=x)[0]
    np.testing.assert_allclose(M @ a + C @ v, force, atol=1e-12)
    np.testing.assert_allclose(C, -C.T, atol=1e-12)
    for route in ("gibbs_appell", "gauss"):
        again = eom.numbers(f"inverse:{route}", x=x, v=v, a=a)[0]
        np.testing.assert_allclose(again, force, atol=1e-12)
    for name in ("commutation", "connection", "hessian", "linearisation", "inverse:levi_civita"):
        with pytest.raises(EquationsError):
            eom.functions[name]
    with pytest.raises(SolveError, match="Nonholonomic"):
        ff.linearise(sleigh(), x)
    with pytest.raises(MachineError, match="not integrable"):
        ff.equations(
            LagrangianSystem("s", sleigh().coordinates, lambda x, v, t: ca.sumsqr(v)), "redundant"
        )


def test_the_sleigh_agrees_with_a_row_on_all_velocities():
    from framefree.machine import Planar

    machine = Machine([SLED], [Joint("plane", Planar("z"), "world", "sled")], gravity=(0, 0, 0))
    rows = [Nonholonomic("blade", lambda x, v, t: v[1])]
    eom = Constrained(machine, rows)
    ours = ff.equations(sleigh())
    v, force = np.array([0.8, -1.3]), np.array([0.5, -0.2])
    x = np.array([0.2, -0.1, 0.7])
    state = {"x": [0.2, -0.1, np.cos(0.7), np.sin(0.7)], "v": [v[0], 0, v[1]]}
    a = eom.numbers("forward", **state, force=[force[0], 0, force[1]])[0]
    np.testing.assert_allclose(
        ours.numbers("forward", x=x, v=v, force=force)[0], a[[0, 2]], rtol=1e-11
    )


def test_A_from_phi():
    """Independent rates on the sphere: the same motion as a spherical pendulum of a point."""
    on = Coordinates.on(
        lambda x: ca.sumsqr(x) - 1, sample=(0.6, 0.0, -0.8), x_names=("x", "y", "z")
    )
    assert on.nv == 2
    x = on.random(np.random.default_rng(0), 0.3)
    on.validate(x)
    point = Body("point", Moments.of_points([(0, 0, 0), (1e-3, 0, 0), (0, 1e-3, 0)], [1, 1, 1]))

    def pose(x):
        G = ca.SX.eye(4)
        G[:3, 3] = x
        return G

    system = BodySystem("ball", on, [RelativePose("world", "point", pose)], [point])
    run = ff.simulate(system, x0=[0.6, 0.0, -0.8], v0=[0.1, 0.4], duration=1.0, dt=1e-3)
    assert np.abs((run.x**2).sum(axis=1) - 1).max() < 1e-13
    assert np.ptp(run["kinetic"] + run["potential"]) < 1e-8
    with pytest.raises(MachineError, match="are independent"):
        Coordinates.on(lambda x: ca.sumsqr(x) - 1, sample=(0.6, 0.0, -0.8), independent=[0])


def test_quaternion_of_twice_the_length_is_refused():
    coordinates = Coordinates(
        4,
        3,
        lambda q: ca.horzcat(*(quaternion.rate(q, e) for e in ca.horzsplit(ca.DM.eye(3)))),
        lambda q: ca.sumsqr(q) - 1,
        sample=(2.0, 0.0, 0.0, 0.0),
    )
    top = Body("top", Moments.of_body(1.0, (0, 0, 0.3), np.diag([0.2, 0.25, 0.1])))
    pose = RelativePose(
        "world", "top", lambda q: se3.pose(quaternion.to_rotation(q), ca.DM.zeros(3))
    )
    with pytest.raises(MachineError, match="phi"):
        ff.equations(BodySystem("top", coordinates, [pose], [top]))


@pytest.mark.parametrize("approach", ["body", "particle"])
def test_a_prototype_leads_nine_numbers(approach):
    system = attitude(actuators=motors(attitude().joints))
    inertia, damping, stiffness = (
        {"top": Moments(0.0, np.zeros(3), np.diag(moment))}
        for moment in ((0.2, 0.25, 0.3), (1.0, 1.2, 1.4), (4.0, 5.0, 6.0))
    )
    law = ff.control.PrototypeControl(system, inertia, damping, stiffness, approach=approach)
    turned = np.array([[0.0, -1.0, 0.0], [1.0, 0.0, 0.0], [0.0, 0.0, 1.0]])
    points = [np.eye(3).ravel(), turned.T.ravel()]
    path = ff.control.references.MinimumJerk(system, points=points, times=[0.0, 1.0])
    start = system.integrate(points[0], [0.3, -0.2, 0.4])
    run = ff.simulate(system, law, path, x0=start, duration=6.0, dt=5e-3)
    assert np.abs(run.x[-1] - points[1]).max() < 1e-4
    assert run["W"][-1] < 1e-6 * run["W"][0]
