"""Inputs for wanted forces: exact, least, nearest in Gauss's sense, and within limits."""

import casadi as ca
import numpy as np
import pytest
from constrained_machines import n_four_bar
from law_checks import driven, floating
from random_machines import random_machine

from framefree.control import Allocation, ControlError, InputLimits, Model, OpenLoop
from framefree.control.shared.limits import irredundant
from framefree.gallery.machines.arms import iiwa
from framefree.gallery.machines.multicopters import bicopter
from framefree.geometry import Moments
from framefree.machine import Body, Frame, Free, Joint, Machine, Revolute
from framefree.machine.actuators import JointForce, Propeller, TiltingPropeller, Wrench
from framefree.motion import equations
from framefree.motion.constrained.solve import pseudo_inverse
from framefree.simulate import simulate


def evaluated(allocation, metric=None):
    """Return the function of (x, v, force) to u, remainder, size, B, bias and M."""
    model = allocation.model
    machine = model.machine
    x, v, f = (ca.SX.sym("x", machine.nx), ca.SX.sym("v", machine.nv), ca.SX.sym("f", model.n))
    state = model.at(x, v)
    found = allocation(state, f, metric)
    outputs = [found.u, found.unrealised, found.size, state.B, state.input_bias, state.mass]
    return ca.Function("f", [x, v, f], [ca.densify(ca.SX(value)) for value in outputs])


def numbers(function, *arguments):
    u, r, size, B, bias, M = (value.full() for value in function(*arguments))
    return u[:, 0], r[:, 0], size[0, 0], B, bias[:, 0], M


def drone(arms=4, **options):
    """Return a body with propellers around it; four do not push sideways."""
    body = Body("body", Moments.of_body(1.0, (0, 0, 0.02), np.diag([0.01, 0.012, 0.02])))
    turns = 2 * np.pi * np.arange(arms) / arms
    frames = [
        Frame(f"f{i}", "body", (0.2 * np.cos(t), 0.2 * np.sin(t), 0)) for i, t in enumerate(turns)
    ]
    props = [
        Propeller(f"p{i}", f"f{i}", torque_ratio=0.02, spin=(-1) ** i, **options)
        for i in range(arms)
    ]
    return Machine(
        (body,), (Joint("float", Free(), "world", "body"),), frames, actuators=props, name="drone"
    )


def test_motors_cost_a_division():
    machine = iiwa()
    gears = np.array([2.0, 1.0, 0.5, 4.0, 1.0, 1.0, 3.0])
    machine = machine.attach(
        *(JointForce(f"m{j.name}", j.name, g) for j, g in zip(machine.joints, gears, strict=True))
    )
    allocation = Allocation(Model(machine))
    assert allocation.unactuated == ()
    x, f = ca.SX.sym("x", 7), ca.SX.sym("f", 7)
    found = allocation(allocation.model.at(x, ca.SX(7, 1)), f)
    assert found.unrealised.nnz() == 0
    function = ca.Function("f", [x, f], [ca.densify(found.u)])
    assert function.n_instructions() < 40
    np.testing.assert_allclose(function(np.zeros(7), np.ones(7)).full()[:, 0], 1 / gears)


def test_servo_and_its_own_force():
    machine = iiwa()
    servo = JointForce("servo", "joint1", 2.0, gain=30.0, bias_terms=(0.5, -30.0, -2.0))
    others = [JointForce(j.name, j.name) for j in machine.joints[1:]]
    machine = machine.attach(servo, *others)
    rng = np.random.default_rng(0)
    function = evaluated(Allocation(Model(machine)))
    for _ in range(5):
        x, v, f = rng.normal(size=(3, 7))
        u, r, _, B, bias, _ = numbers(function, x, v, f)
        np.testing.assert_allclose(B @ u + bias, f, atol=1e-12)
        assert np.abs(bias[0]) > 0
        assert not r.any()


def test_more_inputs_than_needed_are_the_smallest():
    machine = floating().attach(
        Wrench("more", "base", np.random.default_rng(1).normal(size=(6, 4)))
    )
    weight = np.random.default_rng(2).uniform(0.2, 5.0, machine.nu)
    function = evaluated(Allocation(Model(machine), weight))
    rng = np.random.default_rng(3)
    for _ in range(5):
        x, f = machine.random(rng), rng.normal(size=machine.nv)
        u, r, _, B, _, _ = numbers(function, x, np.zeros(machine.nv), f)
        expected = pseudo_inverse(B / np.sqrt(weight)) @ f / np.sqrt(weight)
        np.testing.assert_allclose(u, expected, atol=1e-12)
        assert not r.any()


@pytest.mark.parametrize("make", ["arm", "drone", "mixed", "random"])
def test_fewer_inputs_come_nearest_in_acceleration(make):
    rng = np.random.default_rng(4)
    if make == "arm":
        machine = iiwa()
        machine = machine.attach(*(JointForce(j.name, j.name) for j in machine.joints[::2]))
    elif make == "drone":
        machine = drone(lower=-np.inf)
    elif make == "mixed":  # motors, and jets on moving links whose push depends on the state
        machine = iiwa()
        machine = machine.attach(
            JointForce("m", "joint7"), Wrench("jets", "tool", rng.normal(size=(6, 3)))
        )
    else:
        machine = random_machine(rng, bodies=4)
        frames = [frame.name for frame in machine.frames][:2]
        machine = machine.attach(
            *(Wrench(f"w{name}", name, rng.normal(size=(6, 2))) for name in frames)
        )
    model = Model(machine)
    function = evaluated(Allocation(model))
    for _ in range(6):
        x, v, f = machine.random(rng), rng.normal(size=machine.nv), rng.normal(size=machine.nv)
        u, r, size, B, bias, M = numbers(function, x, v, f)
        root = np.linalg.inv(np.linalg.cholesky(M))
        expected = pseudo_inverse(root @ B) @ root @ (f - bias)
        np.testing.assert_allclose(u, expected, atol=1e-7 * (1 + np.abs(expected).max()))
        np.testing.assert_allclose(r, f - bias - B @ u, atol=1e-9 * (1 + np.abs(f).max()))
        assert size == pytest.approx(np.linalg.norm(root @ r), rel=1e-8)
        assert size > 1e-3


def test_another_metric():
    machine = drone(lower=-np.inf)
    rng = np.random.default_rng(5)
    L = rng.normal(size=(6, 6))
    G = L @ L.T + np.eye(6)
    function = evaluated(Allocation(Model(machine)), ca.DM(G))
    f = rng.normal(size=6)
    u, _, size, B, _, _ = numbers(function, machine.neutral(), np.zeros(6), f)
    root = np.linalg.inv(np.linalg.cholesky(G))
    np.testing.assert_allclose(u, pseudo_inverse(root @ B) @ root @ f, atol=1e-9)
    assert size == pytest.approx(np.linalg.norm(root @ (f - B @ u)))


def test_inputs_that_do_the_same():
    """Two jets on one line: of rank one, shared."""
    machine = iiwa().attach(
        *(Wrench(f"jet{k}", "tool", (k + 1.0, 0, 0, 0, 0, 0)) for k in range(2))
    )
    rng = np.random.default_rng(6)
    function = evaluated(Allocation(Model(machine)))
    for _ in range(3):
        u, _, _, B, _, _ = numbers(function, rng.normal(size=7), np.zeros(7), rng.normal(size=7))
        assert np.linalg.matrix_rank(B) == 1
        assert u[1] == pytest.approx(2 * u[0], rel=1e-6)


def test_a_singular_position_stays_finite():
    """A jet through the axis of its joint does nothing there."""
    body = Body("rod", Moments.of_body(1.0, (1, 0, 0), np.eye(3) * 0.1))
    machine = Machine(
        (body,),
        (Joint("hinge", Revolute("z"), "world", "rod"),),
        (Frame("tip", "rod", (1, 0, 0)),),
        actuators=(Wrench("jet", "tip", (1.0, 0, 0, 0, 0, 0)),),
        name="rod",
    )
    u, r, _, B, _, _ = numbers(evaluated(Allocation(Model(machine))), [0.3], [0.0], [2.0])
    assert abs(B).max() < 1e-15
    assert u[0] == 0.0
    assert r[0] == 2.0


# ---------------------------------------------------------------------- limits


def test_within_limits_nothing_changes():
    machine = drone(lower=-50.0, upper=50.0)
    rng = np.random.default_rng(7)
    free, held = (evaluated(Allocation(Model(machine), limits=limit)) for limit in (False, True))
    for _ in range(5):
        arguments = machine.random(rng), np.zeros(6), rng.normal(size=6)
        np.testing.assert_allclose(
            numbers(held, *arguments)[0], numbers(free, *arguments)[0], atol=1e-9
        )


def servo_arm():
    """Return an arm whose drives have limits of every kind."""
    machine = iiwa()
    limits = ({"lower": -1.0, "upper": 2.0}, {"force_lower": -3.0, "force_upper": 1.0},
              {"gain": -2.0, "upper": 0.5, "force_upper": 2.0})  # fmt: skip
    servos = [
        JointForce(f"m{i}", j.name, 1.5, bias_terms=(0.1, -2.0, -0.3), **limits[i % 3])
        for i, j in enumerate(machine.joints)
    ]
    machine = machine.attach(*servos, JointForce("twin", "joint4", 0.5, upper=0.7))
    for name, effort in (("joint1", 0.8), ("joint4", 1.1), ("joint7", 0.6)):
        machine = machine.replace(f"joint:{name}", effort_limit=effort)
    return machine


@pytest.mark.parametrize("limits", [False, "direction"])
@pytest.mark.first_cases(1)
def test_what_a_plant_cuts_off_is_unrealised(limits):
    """The unrealised force, by accelerations that the plant itself has under the inputs."""
    machine, rng = servo_arm(), np.random.default_rng(6)
    function = evaluated(Allocation(Model(machine), limits=limits))
    eom, cut = equations(machine, "tree"), 0
    for _ in range(10):
        x, v, f = rng.normal(size=(3, 7))
        u, r, *_ = numbers(function, x, v, 3 * f)
        t = 1e-7
        run = simulate(
            machine, OpenLoop(machine, lambda _, u=u: ca.DM(u)), None, x, v,
            duration=t, dt=t, record=(), progress=False,
        )  # fmt: skip
        a = (run.v[-1] - v) / t
        given = eom.inverse(x, v, a)
        np.testing.assert_allclose(3 * f - given, r, atol=1e-5 * (1 + np.abs(f).max()))
        cut += np.count_nonzero(np.abs(r) > 1e-3)
    assert cut > 20


@pytest.mark.parametrize("arms", [4, 6])
def test_limited_inputs_are_the_best_allowed(arms):
    machine = drone(arms, lower=0.3, upper=5.0)
    function = evaluated(Allocation(Model(machine), limits=True))
    rng = np.random.default_rng(8)
    for _ in range(10):
        f = 8 * rng.normal(size=6)
        u, r, size, B, _, M = numbers(function, machine.random(rng), np.zeros(6), f)
        assert (u >= 0.3 - 1e-9).all()
        assert (u <= 5.0 + 1e-9).all()
        np.testing.assert_allclose(r, f - B @ u, atol=1e-9)
        # No feasible change makes the remainder smaller: the slope points out of the box.
        slope = -B.T @ np.linalg.solve(M, r)
        scale = 1e-5 * np.abs(B.T @ np.linalg.solve(M, B)).max() * 5.0
        assert (slope[(u > 0.3 + 1e-6)] < scale).all()
        assert (slope[(u < 5.0 - 1e-6)] > -scale).all()
        assert size == pytest.approx(np.sqrt(r @ np.linalg.solve(M, r)))


def test_polytopes_motor_forces_and_efforts_are_limits():
    body = Body("body", Moments.of_body(1.0, (0, 0, 0), np.eye(3) * 0.02))
    arm = Body("arm", Moments.of_body(0.3, (0, 0, 0.1), np.eye(3) * 0.01))
    joints = (
        Joint("float", Free(), "world", "body"),
        Joint("elbow", Revolute("x"), "body", "arm", effort_limit=2.0),
    )
    tilting = [
        TiltingPropeller(f"t{i}", f"f{i}", force=(0.5, 6.0), tilt=(-0.5, 0.5)) for i in range(2)
    ]
    servo = JointForce(
        "servo", "elbow", 1.0, gain=10.0, bias_terms=(0.2, -10.0, 0.0), force_lower=-1.5
    )
    machine = Machine(
        (body, arm), joints, [Frame(f"f{i}", "body", (0, 0.3 - 0.6 * i, 0)) for i in range(2)],
        actuators=(*tilting, servo), name="tilting",
    )  # fmt: skip
    model = Model(machine)
    x, v = ca.SX.sym("x", machine.nx), ca.SX.sym("v", machine.nv)
    limits = InputLimits.at(model.at(x, v).tree)
    rows = ca.Function("rows", [x, v], [ca.densify(side) for side in limits])
    function = evaluated(Allocation(model, limits=True, iterations=16))
    rng = np.random.default_rng(9)
    A, b = machine.input_polytope
    for _ in range(8):
        state = machine.random(rng), rng.normal(size=machine.nv)
        u = numbers(function, *state, 10 * rng.normal(size=machine.nv))[0]
        C, lower, upper = (value.full() for value in rows(*state))
        assert ((C @ u >= lower[:, 0] - 1e-7) & (C @ u <= upper[:, 0] + 1e-7)).all()
        assert (A @ u <= b + 1e-7).all()
        angle = state[0][-1]
        force = 10 * u[-1] + 0.2 - 10 * angle
        assert -1.5 - 1e-6 <= force <= 2.0 + 1e-6


def test_limits_that_others_imply_are_left_out():
    machine = bicopter()
    rows = InputLimits.at(Model(machine).at(ca.SX.sym("x", 7), ca.SX.sym("v", 6)).tree)
    C, lower, upper = (ca.DM(part).full() for part in rows)
    A, b = machine.input_polytope
    assert len(b) == 20
    assert np.isfinite(np.hstack([lower, upper])).sum() == 12
    rng = np.random.default_rng(2)
    u = np.array([0, 7, 0, 7]) + 4 * rng.normal(size=(4000, 4))
    inside = (u @ A.T <= b).all(axis=1)
    assert 50 < inside.sum() < 3000
    assert np.array_equal(inside, ((u @ C.T >= lower.T) & (u @ C.T <= upper.T)).all(axis=1))
    symbol = ca.SX.sym("u", 4)
    within = ca.Function("within", [symbol], [rows.within(symbol)])
    assert np.array_equal(inside[:200], [bool(within(one)) for one in u[:200]])


def test_limits_that_contradict_each_other_are_refused():
    with pytest.raises(ControlError, match="no input at all"):
        irredundant(np.array([[1.0], [-1.0]]), np.array([1.0, -2.0]))
    assert irredundant(np.array([[1.0], [2.0], [-1.0]]), np.array([1.0, 2.0, 1.0])).sum() == 2


# ---------------------------------------------------------------------- closed machines, refusals


def test_closed_machine():
    machine = n_four_bar(1).attach(JointForce("motor", "p1"))
    model = Model(machine, ["p0"])
    allocation = Allocation(model)
    assert allocation.unactuated == ()
    x = np.array([1.0, -1.0, 1.0])
    u, r, _, B, _, _ = numbers(evaluated(allocation), x, np.zeros(3), [2.0])
    assert B @ u == pytest.approx(2.0)
    assert abs(r).max() < 1e-12


def test_unactuated_velocities():
    assert Allocation(Model(drone())).unactuated == ("float.vx", "float.vy")
    assert Allocation(Model(iiwa())).unactuated == iiwa().v_names
    with pytest.raises(ControlError, match=r"none for `float\.vx`, `float\.vy`"):
        Allocation(Model(drone())).require_full("this")


@pytest.mark.parametrize("weight", [np.ones(3), -np.ones(7), np.full(7, np.nan)])
def test_wrong_weights_are_refused(weight):
    with pytest.raises(ControlError, match="`weight` must be 7 positive numbers"):
        Allocation(Model(driven(iiwa())), weight)


def test_tunable_gear():
    machine = iiwa()
    machine = machine.attach(*(JointForce(f"m{j.name}", j.name, 2.0) for j in machine.joints))
    paths = ["link7.mass"]
    machine = machine.tunable(*paths)
    model = Model(machine)
    x, f = ca.SX.sym("x", 7), ca.SX.sym("f", 7)
    found = Allocation(model)(model.at(x, ca.SX(7, 1)), f)
    assert found.unrealised.nnz() == 0
    assert Allocation(model).unactuated == ()
