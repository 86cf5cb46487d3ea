"""Worked systems in redundant coordinates: circle, attitude, free body, tricopter with load."""

from dataclasses import replace

import casadi as ca
import numpy as np
import pytest
from random_machines import evaluate, random_moments, random_rotation, relative_error

from framefree.geometry import Moments, se3, so3
from framefree.machine import (
    WORLD,
    Body,
    Continuous,
    Damper,
    Frame,
    Free,
    Joint,
    Machine,
    MachineError,
    Revolute,
    Spherical,
    Spring,
)
from framefree.motion.redundant import Redundant
from framefree.motion.redundant.coordinates import Coordinates
from framefree.motion.redundant.system import BodySystem, RelativePose
from framefree.motion.tree import Tree

LEVI_CIVITA = np.array(
    [[[(i - j) * (j - k) * (k - i) / 2 for j in range(3)] for i in range(3)] for k in range(3)]
)
"""[k, i, j]: +1 for even permutations, -1 for odd ones."""


def rotation_of(nine):
    """Rotation of nine coefficients, column by column."""
    return ca.reshape(nine, 3, 3)


def orthonormal(R):
    gap = R.T @ R - ca.SX.eye(3)
    return ca.vertcat(*(gap[i, j] for i in range(3) for j in range(i + 1)), ca.det(R) - 1)


def still():
    return ca.DM.zeros(3)


# ---------------------------------------------------------------------- particle on a circle


def circle(radius=0.7, mass=2.0, gravity=(0, -9.81, 0)):
    coordinates = Coordinates(
        2, 1, lambda x: ca.vertcat(-x[1], x[0]), lambda x: ca.sumsqr(x) - radius**2
    )
    pose = RelativePose(
        WORLD, "particle", lambda x: se3.pose(ca.DM.eye(3), ca.vertcat(x[0], x[1], 0))
    )
    particle = Body("particle", Moments.of_points([[0.0, 0.0, 0.0]], [mass]))
    return BodySystem("circle", coordinates, [pose], [particle], gravity=gravity)


@pytest.mark.parametrize("angle", [0.0, 0.4, 1.6, 3.1, 4.6])
def test_particle_on_a_circle_is_a_pendulum(angle):
    radius, mass, g = 0.7, 2.0, 9.81
    eom = Redundant(circle(radius, mass))
    x = radius * np.array([np.cos(angle), np.sin(angle)])
    eom.coordinates.validate(x)
    w, torque = np.array([1.7]), np.array([0.3])
    assert evaluate(eom.functions["mass"], x)[0, 0] == pytest.approx(mass * radius**2)
    a = evaluate(eom.functions["forward"], x, w, torque)[0, 0]
    expected = (torque[0] - mass * g * radius * np.cos(angle)) / (mass * radius**2)
    assert a == pytest.approx(expected, abs=1e-12)
    curvature = evaluate(eom.functions["hessian"], x)[0, 0]
    assert curvature == pytest.approx(-mass * g * radius * np.sin(angle), abs=1e-12)
    kinetic, potential = evaluate(eom.functions["energy"], x, w)
    assert kinetic == pytest.approx(mass * (radius * 1.7) ** 2 / 2)
    assert potential == pytest.approx(mass * g * radius * np.sin(angle), abs=1e-12)


# ---------------------------------------------------------------------- attitude in nine numbers


def attitude(moments, gravity=(0, 0, -9.81), **more):
    coordinates = Coordinates.moving(
        9,
        3,
        lambda x, w: ca.vec(rotation_of(x) @ so3.wed(w)),
        lambda x: orthonormal(rotation_of(x)),
    )
    pose = RelativePose(WORLD, "body", lambda x: se3.pose(rotation_of(x), still()))
    return BodySystem(
        "attitude", coordinates, [pose], [Body("body", moments)], gravity=gravity, **more
    )


def test_kinematics_of_nine_coefficients_are_the_published_ones():
    """Column-stacked (errata E4-1); [Konz2024, eq. 2.7] row by row."""
    rng = np.random.default_rng(0)
    R = random_rotation(rng)
    eom = Redundant(attitude(random_moments(rng)))
    x = R.T.ravel()
    eom.coordinates.validate(x)
    X, Y, Z = R[:, [0]], R[:, [1]], R[:, [2]]
    o = np.zeros((3, 1))
    expected = np.block([[o, -Z, Y], [Z, o, -X], [-Y, X, o]])
    np.testing.assert_allclose(evaluate(eom.functions["rate_matrix"], x), expected, atol=1e-15)


def test_commutation_coefficients_of_the_attitude_are_the_levi_civita_symbol():
    rng = np.random.default_rng(1)
    eom = Redundant(attitude(random_moments(rng)))
    for _ in range(5):
        x = random_rotation(rng).T.ravel()
        gamma = evaluate(eom.functions["commutation"], x).reshape(3, 3, 3)
        np.testing.assert_allclose(gamma, LEVI_CIVITA, atol=1e-12)


def test_attitude_obeys_eulers_equations_and_springs_are_the_attitude_function():
    rng = np.random.default_rng(2)
    moments, stiffness = random_moments(rng), np.diag([1.0, 2.0, 2.5])
    spring = Spring.torsional("spring", WORLD, "body", stiffness)
    eom = Redundant(attitude(moments, gravity=(0, 0, 0), springs=[spring]))
    S = np.array(moments.moment)
    for _ in range(3):
        R, w, torque = random_rotation(rng), rng.normal(size=3), rng.normal(size=3)
        second = np.trace(stiffness) / 2 * np.eye(3) - stiffness
        gap = second @ R - (second @ R).T
        pull = np.array([gap[2, 1], gap[0, 2], gap[1, 0]])
        expected = np.linalg.solve(S, torque - np.cross(w, S @ w) - pull)
        found = evaluate(eom.functions["forward"], R.T.ravel(), w, torque)
        assert relative_error(found.ravel(), expected) < 1e-11
    # At the minimum the covariant Hessian is the stiffness itself, whatever the metric.
    H = evaluate(eom.functions["hessian"], np.eye(3).ravel())
    np.testing.assert_allclose(H, stiffness, atol=1e-12)


# ---------------------------------------------------------------------- free body


def free_body(moments):
    def velocity(x, v):
        R = rotation_of(x[3:])
        return ca.vertcat(R @ v[:3], ca.vec(R @ so3.wed(v[3:])))

    coordinates = Coordinates.moving(12, 6, velocity, lambda x: orthonormal(rotation_of(x[3:])))
    pose = RelativePose(WORLD, "body", lambda x: se3.pose(rotation_of(x[3:]), x[:3]))
    return BodySystem("free", coordinates, [pose], [Body("body", moments)])


def test_coefficients_of_a_free_body_are_the_published_tables():
    """[Konz2024, eqs. 3.52 and 3.61]; indices there start from 1."""
    rng = np.random.default_rng(3)
    moments = random_moments(rng)
    eom = Redundant(free_body(moments))
    x = np.concatenate([rng.normal(size=3), random_rotation(rng).T.ravel()])
    gamma = np.zeros((6, 6, 6))
    for k, i, j in ("126", "153", "234", "261", "315", "342", "456", "564", "645"):
        k, i, j = int(k) - 1, int(i) - 1, int(j) - 1
        gamma[k, i, j], gamma[k, j, i] = 1, -1
    found = evaluate(eom.functions["commutation"], x).reshape(6, 6, 6)
    np.testing.assert_allclose(found, gamma, atol=1e-12)

    m, (sx, sy, sz) = moments.total, moments.first
    P = np.array(moments.second)
    table = {
        ("324", "135", "216"): m,
        ("254", "364", "515", "616"): sx,
        ("424", "145", "365", "626"): sy,
        ("434", "535", "146", "256"): sz,
        ("654",): P[0, 0],
        ("465",): P[1, 1],
        ("546",): P[2, 2],
        ("464", "655"): P[0, 1],
        ("544", "656"): P[0, 2],
        ("545", "466"): P[1, 2],
    }
    Gamma = np.zeros((6, 6, 6))
    for places, value in table.items():
        for i, j, k in places:
            i, j, k = int(i) - 1, int(j) - 1, int(k) - 1
            Gamma[i, j, k], Gamma[j, i, k] = value, -value
    found = evaluate(eom.functions["connection"], x).reshape(6, 6, 6)
    np.testing.assert_allclose(found, Gamma, atol=1e-12)


# ---------------------------------------------------------------------- tricopter with load

PHI = np.array([np.pi / 3, np.pi, -np.pi / 3])
ARM, HANG, LIFT = 0.24, -0.05, 0.03
ARMS, PROPELLERS = ("arm1", "arm2", "arm3"), ("propeller1", "propeller2", "propeller3")


def tricopter_parts():
    """Bodies with the published mass of the hull, guesses for the rest; a spring and dampers."""
    hull = Moments.of(
        1.251,
        (1.7e-3, 0.6e-3, 0),
        1e-3 * np.array([[19.2, -0.8, -1.2], [-0.8, 19.2, -2.1], [-1.2, -2.1, 30.8]]),
    )
    load = Moments.of_body(0.3, (0.01, 0.0, -0.2), np.diag([2e-3, 2.1e-3, 1e-3]))
    arm = Moments.of_body(0.08, (-0.05, 0.0, 0.01), np.diag([2e-4, 3e-4, 3.1e-4]))
    blade = Moments.of_body(0.02, (0, 0, 0), np.diag([1e-5, 3.0e-5, 3.6e-5]))
    bodies = [Body("hull", hull), Body("load", load)]
    bodies += [Body(name, arm) for name in ARMS] + [Body(name, blade) for name in PROPELLERS]
    springs = [Spring.torsional("tilt", "hull", "arm1", (0.2, 0.3, 0.1))]
    drag = Moments.of(0.343, (0, 0, 4e-3), np.diag([8.5e-3, 8.5e-3, 14e-3]))
    dampers = [
        Damper("drag", WORLD, "hull", drag),
        Damper("swing", "hull", "load", 0.01 * np.eye(6)),
        Damper("spin", "arm2", "propeller2", Moments.of(0.0, (0, 0, 0), 1e-4 * np.eye(3))),
    ]
    return bodies, springs, dampers


def arm_pose(k, theta):
    c, s = np.cos(PHI[k]), np.sin(PHI[k])
    ct, st = ca.cos(theta), ca.sin(theta)
    R = ca.vertcat(
        ca.horzcat(c, -s * ct, s * st), ca.horzcat(s, c * ct, -c * st), ca.horzcat(0, st, ct)
    )
    return se3.pose(R, ca.vertcat(ARM * c, ARM * s, 0))


def propeller_pose(c, s):
    R = ca.vertcat(ca.horzcat(c, -s, 0), ca.horzcat(s, c, 0), ca.horzcat(0, 0, 1))
    return se3.pose(R, ca.vertcat(0, 0, LIFT))


def tricopter_coordinates():
    """30 coordinates, 15 velocities; the load turns at its absolute angular velocity."""

    def split(x):
        return x[:3], rotation_of(x[3:12]), rotation_of(x[12:21]), x[21:24], x[24:]

    def velocity(x, v):
        _, R01, R12, _, turns = split(x)
        spin = [ca.vertcat(-turns[2 * k + 1], turns[2 * k]) * v[12 + k] for k in range(3)]
        load = R12 @ so3.wed(v[6:9]) - so3.wed(v[3:6]) @ R12
        parts = (R01 @ v[:3], ca.vec(R01 @ so3.wed(v[3:6])), ca.vec(load), v[9:12], *spin)
        return ca.vertcat(*parts)

    def constraint(x):
        _, R01, R12, _, turns = split(x)
        pairs = [ca.sumsqr(turns[2 * k : 2 * k + 2]) - 1 for k in range(3)]
        return ca.vertcat(orthonormal(R01), orthonormal(R12), *pairs)

    return Coordinates.moving(30, 15, velocity, constraint)


def tricopter_system():
    bodies, springs, dampers = tricopter_parts()
    poses = [
        RelativePose(WORLD, "hull", lambda x: se3.pose(rotation_of(x[3:12]), x[:3])),
        # Given the wrong way round on purpose: the rules of the graph turn it.
        RelativePose(
            "load",
            "hull",
            lambda x: se3.inverse(se3.pose(rotation_of(x[12:21]), ca.vertcat(0, 0, HANG))),
        ),
    ]
    for k in range(3):
        poses.append(RelativePose("hull", ARMS[k], lambda x, k=k: arm_pose(k, x[21 + k])))
        poses.append(
            RelativePose(
                ARMS[k],
                PROPELLERS[k],
                lambda x, k=k: propeller_pose(x[24 + 2 * k], x[25 + 2 * k]),
            )
        )
    return BodySystem(
        "tricopter", tricopter_coordinates(), poses, bodies, springs=springs, dampers=dampers
    )


def tricopter_machine():
    bodies, springs, dampers = tricopter_parts()
    joints = [
        Joint("free", Free(), WORLD, "hull"),
        Joint("hook", Spherical(), "hull", "load", parent_pose=(0, 0, HANG)),
    ]
    for k in range(3):
        pose = np.array(ca.DM(arm_pose(k, ca.DM(0.0))))
        joints.append(Joint(f"tilt{k}", Revolute("x"), "hull", ARMS[k], parent_pose=pose))
        joints.append(
            Joint(f"spin{k}", Continuous("z"), ARMS[k], PROPELLERS[k], parent_pose=(0, 0, LIFT))
        )
    return Machine(bodies, joints, springs=springs, dampers=dampers)


def both_states(rng, machine):
    """Return the same state for the system and for the machine, and the map of velocities."""
    r, R01, R12 = rng.normal(size=3), random_rotation(rng), random_rotation(rng)
    theta, turn = rng.uniform(-0.8, 0.8, 3), rng.uniform(-3, 3, 3)
    pairs = np.column_stack([np.cos(turn), np.sin(turn)])
    x = np.concatenate([r, R01.T.ravel(), R12.T.ravel(), theta, pairs.ravel()])
    parts = {"free": (*r, *_wxyz(R01)), "hook": _wxyz(R12)}
    parts |= {f"tilt{k}": [theta[k]] for k in range(3)} | {f"spin{k}": pairs[k] for k in range(3)}
    x_machine = np.concatenate([parts[joint.name] for joint in machine.joints])
    T = np.zeros((15, 15))
    T[machine.v_slice["free"], :6] = np.eye(6)
    T[machine.v_slice["hook"], 3:6] = -R12.T
    T[machine.v_slice["hook"], 6:9] = np.eye(3)
    for k in range(3):
        T[machine.v_slice[f"tilt{k}"], 9 + k] = 1
        T[machine.v_slice[f"spin{k}"], 12 + k] = 1
    return x, x_machine, T


def _wxyz(R):
    w = np.sqrt(1 + np.trace(R)) / 2
    return w, *((R[2, 1], R[0, 2], R[1, 0]) - np.array([R[1, 2], R[2, 0], R[0, 1]])) / (4 * w)


@pytest.fixture(scope="module")
def tricopters():
    machine = tricopter_machine()
    return Redundant(tricopter_system()), machine, Tree(machine)


def test_tricopter_with_load_moves_as_the_tree_says(tricopters):
    system, machine, tree = tricopters
    rng = np.random.default_rng(5)
    order = [machine.body_index[body.name] for body in system.machine.bodies]
    for _ in range(3):
        x, x_machine, T = both_states(rng, machine)
        system.coordinates.validate(x)
        v, force = rng.normal(size=15), rng.normal(size=15)
        v_machine, force_machine = T @ v, np.linalg.solve(T.T, force)
        a = evaluate(system.functions["forward"], x, v, force)
        a_machine = evaluate(tree.functions["forward"], x_machine, v_machine, force_machine)
        for name, mine, other in (
            ("body_pose", (x,), (x_machine,)),
            ("body_velocity", (x, v), (x_machine, v_machine)),
            ("body_acceleration", (x, v, a), (x_machine, v_machine, a_machine)),
            ("joint_wrench", (x, v, force), (x_machine, v_machine, force_machine)),
        ):
            found = evaluate(system.functions[name], *mine)
            expected = evaluate(tree.functions[name], *other)[order]
            assert relative_error(found, expected) < 1e-9, name
        M = evaluate(tree.functions["mass"], x_machine)
        assert relative_error(evaluate(system.functions["mass"], x), T.T @ M @ T) < 1e-11
        for name in ("energy", "momentum", "dissipation"):
            found = np.vstack(evaluate(system.functions[name], x, v))
            expected = np.vstack(evaluate(tree.functions[name], x_machine, v_machine))
            assert relative_error(found, expected) < 1e-11, name
        power = evaluate(system.functions["power"], x, v, force)
        expected = evaluate(tree.functions["power"], x_machine, v_machine, force_machine)
        assert relative_error(power, expected) < 1e-10


def test_routes_agree_for_the_tricopter(tricopters):
    system, machine, _ = tricopters
    rng = np.random.default_rng(6)
    x, _, _ = both_states(rng, machine)
    v, a = rng.normal(size=15), rng.normal(size=15)
    expected = evaluate(system.functions["inverse"], x, v, a)
    for route in ("euler_lagrange", "levi_civita", "gibbs_appell", "gauss"):
        found = evaluate(system.functions[f"inverse:{route}"], x, v, a)
        assert relative_error(found, expected) < 1e-11, route


def test_commutation_coefficients_of_the_tricopter_do_not_depend_on_the_state(tricopters):
    """Absolute velocities of hull and load: two free attitudes and one carried position."""
    system, machine, _ = tricopters
    rng = np.random.default_rng(7)
    x, y = both_states(rng, machine)[0], both_states(rng, machine)[0]
    gamma = evaluate(system.functions["commutation"], x).reshape(15, 15, 15)
    np.testing.assert_allclose(
        gamma, evaluate(system.functions["commutation"], y).reshape(gamma.shape), atol=1e-11
    )
    np.testing.assert_allclose(gamma[3:6, 3:6, 3:6], LEVI_CIVITA, atol=1e-11)
    np.testing.assert_allclose(gamma[6:9, 6:9, 6:9], LEVI_CIVITA, atol=1e-11)
    assert np.abs(gamma[6:9, 3:6, :]).max() < 1e-11
    assert np.abs(gamma[9:]).max() < 1e-11


def test_user_potential_and_dissipation_function_act():
    """A torsion spring and a damper on the angle of a pendulum, by their functions."""
    k, d = 3.0, 0.4

    def angle(x):
        return ca.atan2(x[1], x[0])

    bare, full = (
        Redundant(system)
        for system in (
            circle(),
            replace(
                circle(),
                potential=lambda x: k * angle(x) ** 2 / 2,
                rayleigh=lambda x, v: d * ca.sumsqr(v) / 2,
            ),
        )
    )
    x, v = 0.7 * np.array([np.cos(0.5), np.sin(0.5)]), np.array([1.3])
    extra = evaluate(full.functions["bias"], x, v) - evaluate(bare.functions["bias"], x, v)
    assert extra[0, 0] == pytest.approx(k * 0.5 + d * 1.3)
    assert evaluate(full.functions["dissipation"], x, v)[0, 0] == pytest.approx(d * 1.3**2)
    assert evaluate(full.functions["stiffness_force"], x)[0, 0] == pytest.approx(k * 0.5)


def test_systems_that_cannot_be_are_refused():
    rng = np.random.default_rng(8)
    coordinates = Coordinates(1, 1, lambda x: ca.SX.eye(1))
    pose = RelativePose(WORLD, "a", lambda x: se3.pose(ca.DM.eye(3), ca.vertcat(x, 0, 0)))
    bodies = [Body("a", random_moments(rng)), Body("b", random_moments(rng))]
    with pytest.raises(MachineError, match="lead from the world to `b`"):
        Redundant(BodySystem("s", coordinates, [pose], bodies))
    with pytest.raises(MachineError, match="`c` is unknown"):
        BodySystem("s", coordinates, [pose, RelativePose("a", "c", pose.pose)], bodies[:1])
    with pytest.raises(MachineError, match="4x4"):
        BodySystem("s", coordinates, [RelativePose(WORLD, "a", lambda x: x)], bodies[:1])
    with pytest.raises(MachineError, match="1 x 1"):
        Coordinates(1, 1, lambda x: ca.SX(2, 2))
    with pytest.raises(MachineError, match="linear in v"):
        Coordinates.moving(1, 1, lambda x, v: v**2)
    system = BodySystem("s", coordinates, [pose], bodies[:1], frames=[Frame("f", "a")])
    with pytest.raises(MachineError, match="frame `g` is unknown"):
        Redundant(system).functions["jacobian:g"]


def test_jacobian_rate_of_a_pose_given_the_wrong_way_round(tricopters):
    system, machine, _ = tricopters
    x, v = ca.SX.sym("x", 30), ca.SX.sym("v", 15)
    J = system.functions["jacobian:load"](x)
    rate = ca.jtimes(ca.vec(J), x, system.coordinates.rate(x) @ v)
    function = ca.Function("rate", [x, v], [ca.reshape(rate, 6, 15)])
    rng = np.random.default_rng(9)
    at, v0 = both_states(rng, machine)[0], rng.normal(size=15)
    found = evaluate(system.functions["jacobian_rate:load"], at, v0)
    assert relative_error(found, evaluate(function, at, v0)) < 1e-11
