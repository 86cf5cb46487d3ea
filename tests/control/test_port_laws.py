"""VirtualPort laws: the reference velocity fits the joints, and V falls as stated, at any state."""

from dataclasses import replace

import casadi as ca
import numpy as np
import pytest
from port_formulas import Closed, dense
from random_machines import evaluate, random_machine, relative_error

import framefree as ff
from framefree.control.law import ControlError
from framefree.control.port import (
    Avoidance,
    Capsule,
    EndEffectorControl,
    HalfSpace,
    Port,
    PoseControl,
    Sphere,
    VelocityControl,
    VirtualPort,
    looped,
)
from framefree.gallery.machines.arms import iiwa
from framefree.gallery.machines.chains import chain
from framefree.machine import Wrench, motors
from framefree.motion.tree import Tree
from framefree.simulate import Push

LAWS = ("velocity", "pose", "end")


def with_full_port(machine):
    ports = tuple(
        Wrench(f"port{i}", body.name.replace("b", "f") if i % 2 else body.name, np.eye(6))
        for i, body in enumerate(machine.bodies)
    )
    return replace(machine, actuators=ports)


def floating(seed, bodies=5):
    """A random tree whose last body's way to the world has six velocities."""
    rng = np.random.default_rng(seed)
    while True:
        machine = random_machine(rng, bodies)
        x = machine.random(rng)
        eom = ff.equations(machine, "tree")
        J = evaluate(eom.functions[f"jacobian:{machine.bodies[-1].name}"], x)
        if machine.nv >= 6 and np.linalg.svd(J, compute_uv=False).min() > 0.1:
            return with_full_port(machine), rng


def law_of(kind, machine, *, obstacles=True, **options):
    last = machine.bodies[-1].name
    if kind == "velocity":
        return VelocityControl(machine, damping=4.0, **options)
    if kind == "pose":
        return PoseControl(machine, damping=4.0, rate=2.0, **options)
    shapes = [
        Sphere((0.6, 0.5, 0.1), 0.1),
        Capsule((-0.5, -0.5, 0.4), (0.5, -0.3, 0.4), 0.1),
        HalfSpace((0.1, 0.2, 1.0), -1.5),
    ]
    avoidance = Avoidance(shapes, reach=0.8) if obstacles else None
    return EndEffectorControl(
        machine, damping=4.0, frame=last, rate=2.0, turn_rate=1.5, avoidance=avoidance, **options
    )


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("kind", LAWS)
@pytest.mark.first_cases(5)
def test_V_falls_as_stated(kind, seed):
    machine, rng = floating(seed)
    closed = Closed(law_of(kind, machine))
    for _ in range(3):
        V, stated, true, *_ = closed(rng)
        assert V > 0
        assert true == pytest.approx(stated, rel=1e-7, abs=1e-9 * V)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("kind", LAWS)
@pytest.mark.first_cases(2)
def test_reference_velocity_is_that_of_the_document(kind, seed):
    machine, rng = floating(seed + 10, bodies=4)
    law = law_of(kind, machine)
    closed = Closed(law)
    _, _, _, s, *_ = closed(rng)
    nu, nu_r, J = dense(law, closed)
    assert relative_error(nu - s.ravel(), nu_r) < (1e-6 if kind == "end" else 1e-9)
    assert np.abs(J @ s.ravel()).max() < 1e-10 * max(1.0, np.abs(s).max())


@pytest.mark.parametrize("kind", LAWS)
def test_a_wrong_reference_acceleration_is_seen(kind):
    machine, rng = floating(3)
    _, stated, true, *_ = Closed(law_of(kind, machine), error=0.1)(rng)
    assert abs(true - stated) > 1e-4 * abs(stated)


def test_printed_laws_violate_the_joints():
    machine = chain(4)
    rng = np.random.default_rng(0)
    for kind in LAWS:
        law = law_of(kind, machine, obstacles=False, ignore_joints=True)
        closed = Closed(law)
        _, stated, true, s, *_ = closed(rng)
        _, _, J = dense(law, closed)
        assert np.abs(J @ s.ravel()).max() > 0.1
        assert abs(true - stated) > 1e-3 * abs(stated)


@pytest.mark.parametrize("kind", LAWS)
def test_joint_motors_realise_the_whole_port_of_a_held_chain(kind):
    machine = chain(3, held=True, port="motors")
    assert VirtualPort(machine).exact
    assert not VirtualPort(machine).full
    _, stated, true, *_ = Closed(law_of(kind, machine))(np.random.default_rng(1))
    assert true == pytest.approx(stated, rel=1e-8)


@pytest.mark.parametrize("port", ["motors", "thrusters"])
def test_what_is_not_realised_is_reported(port):
    machine = chain(3, port=port)
    assert not VirtualPort(machine).exact
    law = law_of("end", machine)
    closed = Closed(law)
    _, stated, true, _, _, missing = closed(np.random.default_rng(2))
    assert np.abs(missing).max() > 1e-3
    assert true == pytest.approx(stated, rel=1e-8)
    # Of all inputs these come closest in the metric of the kinetic energy: B^T M^-1 missing = 0.
    eom = ff.equations(machine, "tree")
    M, B = (evaluate(eom.functions[name], closed.x) for name in ("mass", "input_matrix"))
    assert np.abs(B.T @ np.linalg.solve(M, missing)).max() < 1e-9 * np.abs(missing).max()


def test_motors_of_a_robot_with_rotors():
    rng = np.random.default_rng(5)
    arm = iiwa()
    joints = [replace(j, armature=0.1, damping=0.2, friction=0.1) for j in arm.joints]
    machine = replace(arm, joints=joints, actuators=motors(joints))
    law = EndEffectorControl(machine, frame="tool")
    _, stated, true, *_ = Closed(law)(rng)
    assert true == pytest.approx(stated, rel=1e-8)


@pytest.mark.slow
def test_loops_over_bodies_give_the_same():
    shapes = {"end.pose": (4, 4), "end.twist": (6, 1), "end.acceleration": (6, 1)}
    lengths, masses = np.linspace(0.2, 0.5, 6), np.linspace(1, 2, 6)
    for options in ({"held": True}, {"lengths": lengths, "masses": masses, "spring": "euler"}):
        machine = chain(6, **options)
        law = EndEffectorControl(
            machine, avoidance=Avoidance([Sphere((0.5, 0.1, 0.2), 0.1)], reach=0.5, pairs="all")
        )
        kernel, closed = looped(law, shapes), Closed(law)
        rng = np.random.default_rng(4)
        for _ in range(3):
            V, stated, _, _, u, _ = closed(rng)
            columns = [np.asarray(value).ravel("F") for value in closed.given.values()]
            tau, V_loop, rate_loop = kernel(closed.x, closed.v, *columns)
            assert relative_error(tau, u.ravel()) < 1e-11
            assert V_loop == pytest.approx(V, rel=1e-11)
            assert rate_loop == pytest.approx(stated, rel=1e-11)


def test_near_singular_tasks_are_reported():
    machine = chain(3, held=True)
    law = EndEffectorControl(machine)
    names = {f"end.{n}": ca.SX.sym(n, *s) for n, s in (("pose", (4, 4)), ("twist", (6, 1)))}
    names["end.acceleration"] = ca.SX.sym("acceleration", 6)
    x, v = ca.SX.sym("x", machine.nx), ca.SX.sym("v", machine.nv)
    found = law.control(ca.SX(0), x, v, names, ca.SX(0, 1)).signals["task_mobility"]
    pivot = ca.Function("pivot", [x, v, *names.values()], [found])
    rest = [np.zeros(machine.nv), np.eye(4), np.zeros(6), np.zeros(6)]
    straight = float(pivot(machine.neutral(), *rest))
    bent = machine.integrate(machine.neutral(), np.array([0, 0, 0, 0, 0, 1.0, 0, -0.5, 0.3]))
    assert straight < 1e-9
    assert float(pivot(bent, *rest)) > 1e-3


def test_frames_that_cannot_follow_are_refused():
    with pytest.raises(ControlError, match="3 velocities, and 6 are needed"):
        EndEffectorControl(chain(1, held=True))
    with pytest.raises(ControlError, match="must be on a body"):
        EndEffectorControl(chain(3), frame="world")
    on_body = Avoidance([Sphere((0, 0, 0), 0.1, frame="body1")])
    with pytest.raises(ControlError, match="must be fixed to the world"):
        EndEffectorControl(chain(3), avoidance=on_body)


def test_the_port_explains_a_motion():
    machine = chain(3, port="motors")
    rng = np.random.default_rng(6)
    x, v, u = machine.random(rng), rng.normal(size=machine.nv), rng.normal(size=machine.nu)
    eom = ff.equations(machine, "tree")
    B = evaluate(eom.functions["input_matrix"], x)
    push = rng.normal(size=machine.nv)
    a = evaluate(eom.functions["forward"], x, v, B @ u + push).ravel()
    port = VirtualPort(machine)
    assert np.allclose(port.residual(x, v, a, u), push, atol=1e-9)
    assert port.known[:2] == ("weight", "gyroscopic wrenches")
    assert "spring `spring2`" in port.known


def test_the_port_of_batches_and_tunable_machines_and_the_wrenches_on_bodies():
    machine = chain(3, port="motors").tunable("body2.mass")
    heavy = machine.with_parameters({"body2.mass": 3.0})
    rng, rows = np.random.default_rng(7), 5
    x = machine.numeric.random(rng, rows)
    v, a = rng.normal(size=(2, rows, machine.nv))
    u = rng.normal(size=(rows, machine.nu))
    port, numbers = VirtualPort(machine), {"body2.mass": 3.0}
    eom = ff.equations(heavy, "tree")
    force = np.array(
        [evaluate(eom.functions["input_matrix"], one) @ w for one, w in zip(x, u, strict=True)]
    )
    whole = eom.inverse(x, v, a)
    assert np.allclose(port.measured(x, v, a, numbers), whole, atol=1e-10)
    assert np.allclose(port.residual(x, v, a, u, numbers), whole - force, atol=1e-10)
    assert not np.allclose(port.measured(x, v, a), whole, atol=1e-3)  # of the default mass
    assert np.array_equal(
        port.residual(x[1], v[1], a[1], u[1], numbers), port.residual(x, v, a, u, numbers)[1]
    )
    # What bodies need, carried to the joints, is the whole port but for the joints' own parts.
    wrenches = port.body_wrenches(x, v, a, numbers)
    assert wrenches.shape == (rows, len(machine.bodies), 6)
    bare = replace(
        heavy,
        joints=[
            replace(j, damping=0.0, friction=0.0, stiffness=0.0, armature=0.0) for j in heavy.joints
        ],
    )
    plain = ff.equations(bare, "tree")
    for k in range(rows):
        jacobians = [plain.jacobian(x[k], body.name) for body in bare.bodies]
        carried = sum(J.T @ w for J, w in zip(jacobians, wrenches[k], strict=True))
        assert np.allclose(carried, plain.inverse(x[k], v[k], a[k]), atol=1e-9)


def test_the_port_explains_a_recorded_run():
    machine = chain(2, port="motors")
    push = Push(machine.bodies[1].name, lambda t: (0.0, 2.0, 0.0, 0.0, 0.0, 0.0), axes="frame")
    run = ff.simulate(
        machine, duration=0.05, dt=1e-3, disturbances=[push], record=("acceleration",)
    )
    rest = VirtualPort(machine).residual_of(run)
    eom = ff.equations(machine, "tree")
    for k in (0, 20, 50):
        J = eom.jacobian(run.x[k], machine.bodies[1].name)
        assert np.allclose(rest[k], J.T @ np.array([0, 2.0, 0, 0, 0, 0]), atol=1e-9)
    # The same of a tunable machine, of many trajectories with numbers of their own.
    name = machine.bodies[1].name
    tunable = machine.tunable(f"{name}.mass")
    mass = np.array([[0.3], [1.7]])
    runs = ff.simulate(
        tunable, duration=0.02, dt=1e-3, disturbances=[push], record=("acceleration",),
        parameters=mass, progress=False,
    )  # fmt: skip
    rests = Port(tunable).residual_of(runs, mass)
    for i in (0, 1):
        J = eom.jacobian(runs.x[i, 20], name)
        assert np.allclose(rests[i, 20], J.T @ np.array([0, 2.0, 0, 0, 0, 0]), atol=1e-9)
    assert np.abs(Port(tunable).residual_of(runs) - rests).max() > 0.1  # with other numbers
    without = ff.simulate(machine, duration=0.01, dt=1e-3)
    with pytest.raises(ControlError, match="has no accelerations"):
        VirtualPort(machine).residual_of(without)
    with pytest.raises(ControlError, match="coordinates"):
        VirtualPort(chain(3, port="motors")).residual_of(run)


@pytest.mark.parametrize("held", [False, True])
def test_limits_are_reported_and_counted(held):
    machine = chain(3, held=held, port="motors" if held else "full")
    limited = [replace(one, lower=-1.0, upper=1.0) for one in machine.actuators]
    law = law_of("end", replace(machine, actuators=limited))
    assert law.port.limited
    assert not law.port.exact
    _, stated, true, _, u, missing = Closed(law)(np.random.default_rng(3))
    assert np.abs(u).max() < 1.0 + 1e-6
    assert np.abs(missing).max() > 1.0
    assert true == pytest.approx(stated, rel=1e-8)


@pytest.mark.parametrize("kind", LAWS)
def test_the_command_is_that_of_the_document(kind):
    """tau_c = M dnu_r + Cor(nu) nu_r - F_gJ - Kd s, with dnu_r differentiated from nu_r."""
    machine = chain(3, masses=[1.0, 2.0, 0.5], radius=0.1)
    law = law_of(kind, machine)
    closed = Closed(law)
    closed(np.random.default_rng(8))
    state = Tree(machine).at(*closed.symbols[:2])
    s, tau = closed.function(*closed.symbols)[3:5]
    nu_r = ca.vertcat(*state.twists) - ca.vec(s.T)
    rate = ca.Function("rate", closed.symbols, [nu_r, ca.jtimes(nu_r, closed.moving, closed.speed)])
    nu_r, dnu_r = evaluate(rate, closed.x, closed.v, *closed.given.values())
    s, tau = evaluate(closed.function, closed.x, closed.v, *closed.given.values())[3:5]
    eom = ff.equations(machine, "maximal")
    x, nu = eom.functions["from_joints"](closed.x, closed.v)
    M, C = evaluate(eom.functions["mass"], x), evaluate(eom.functions["coriolis"], x, nu)
    gravity, _, passive = evaluate(eom.functions["known_force"], x, nu)
    expected = M @ dnu_r + C @ nu_r - gravity - passive - 4.0 * M @ s.reshape(-1, 1)
    assert relative_error(tau, expected) < 1e-9


@pytest.mark.parametrize("kind", LAWS)
def test_rotors_of_ball_joints(kind):
    machine = chain(3)
    joints = [replace(j, armature=0.1, damping=0.3) if j.nv == 3 else j for j in machine.joints]
    machine = replace(machine, joints=joints)
    closed = Closed(law_of(kind, machine))
    for seed in range(3):
        _, stated, true, *_ = closed(np.random.default_rng(seed))
        assert true == pytest.approx(stated, rel=1e-8)
