"""Equilibria and steady motions: closed forms, and finite differences of the equations."""

import re
from dataclasses import replace

import casadi as ca
import numpy as np
import pytest
from constrained_machines import crane, n_four_bar, random_closed
from random_machines import random_machine

from framefree.geometry import Moments
from framefree.machine import (
    Body,
    Coupling,
    Fluid,
    Frame,
    Free,
    Immersed,
    Joint,
    Machine,
    Prismatic,
    Revolute,
    Spherical,
)
from framefree.machine.actuators import JointForce, Propeller, TiltingPropeller, Wrench, motors
from framefree.motion.tree import Tree
from framefree.solve import SolveError, assemble, equilibrium, stability, trim
from framefree.solve.balance import Balance, small_motions

G = 9.81
MASS, LENGTH, INERTIA = 2.0, 0.3, 0.05
ABOUT_PIVOT = INERTIA + MASS * LENGTH**2


def pendulum(kind=None, spin_inertia=0.02, **joint):
    moments = Moments.of_body(MASS, (0, 0, -LENGTH), np.diag([INERTIA, INERTIA, spin_inertia]))
    return Machine(
        [Body("rod", moments)], [Joint("pivot", kind or Revolute("x"), "world", "rod", **joint)]
    )


def quadcopter(upper=np.inf, center=(0.0, 0.0, 0.0)):
    body = Body("hull", Moments.of_body(1.2, center, np.diag([0.01, 0.012, 0.02])))
    frames, propellers = [], []
    for i, (x, y) in enumerate([(0.2, 0.2), (-0.2, 0.2), (-0.2, -0.2), (0.2, -0.2)]):
        frames.append(Frame(f"arm{i}", "hull", (x, y, 0.05)))
        propellers.append(
            Propeller(f"p{i}", f"arm{i}", torque_ratio=0.02, spin=(-1) ** i, upper=upper)
        )
    return Machine([body], [Joint("base", Free(), "world", "hull")], frames, actuators=propellers)


# ------------------------------------------------------------------------------ pendulums


def test_pendulum_hangs_stable_and_stands_unstable():
    rate = np.sqrt(MASS * G * LENGTH / ABOUT_PIVOT)
    down = equilibrium(pendulum(), [0.4])
    assert down.success
    assert abs(down.x[0]) < 1e-9
    assert down.stability.verdict == "stable"
    (mode,) = down.stability.modes
    assert mode.kind == "oscillates"
    assert mode.coordinates == ("pivot",)
    assert abs(mode.frequency - rate) < 1e-9
    assert mode.damping == pytest.approx(0.0, abs=1e-12)
    up = equilibrium(pendulum(), [3.0])
    assert abs(up.x[0] - np.pi) < 1e-9
    assert up.stability.verdict == "unstable"
    assert np.allclose(np.sort(up.stability.eigenvalues.real), [-rate, rate])
    assert str(up) == (
        "equilibrium, unstable\n  grows (5.059 1/s): pivot\n  decays (-5.059 1/s): pivot"
    )


def test_stable_equilibria_are_found_from_unstable_ones():
    found = equilibrium(pendulum(), [np.pi], stable=True)
    assert abs(np.sin(found.x[0])) < 1e-9
    assert np.cos(found.x[0]) > 0
    assert found.stability.verdict == "stable"
    ball = equilibrium(pendulum(Spherical()), [0.0, 1.0, 0.0, 0.0], stable=True)
    assert ball.stability.verdict == "marginal"
    assert abs(ball.x[1]) + abs(ball.x[2]) < 1e-6


def test_damping_ratio_of_a_pendulum():
    rate, damping = np.sqrt(MASS * G * LENGTH / ABOUT_PIVOT), 0.4
    (mode,) = equilibrium(pendulum(damping=damping)).stability.modes
    assert mode.kind == "decays"
    assert abs(mode.damping - damping / (2 * ABOUT_PIVOT * rate)) < 1e-9
    assert abs(abs(mode.eigenvalue) - rate) < 1e-9


def test_motor_holds_a_pendulum_and_its_servo_stiffens_it():
    machine = pendulum()
    held = trim(machine.attach(JointForce("motor", "pivot")), [0.7])
    assert held.x[0] == 0.7
    assert abs(held.u[0] - MASS * G * LENGTH * np.sin(0.7)) < 1e-9
    servo = machine.attach(JointForce("servo", "pivot", gain=50.0, bias_terms=(0, -50.0, -1.0)))
    (mode,) = equilibrium(servo).stability.modes
    expected = (MASS * G * LENGTH + 50.0) / ABOUT_PIVOT
    assert abs(abs(mode.eigenvalue) ** 2 - expected) < 1e-8
    assert abs(-2 * mode.eigenvalue.real - 1.0 / ABOUT_PIVOT) < 1e-9


def test_ball_pendulum_has_two_swings_and_no_mode_of_its_quaternion():
    turned = [np.cos(0.6), 0, 0, np.sin(0.6)]
    found = equilibrium(pendulum(Spherical()), turned)
    assert found.stability.verdict == "marginal"
    assert found.stability.eigenvalues.shape == (6,)
    kinds = [mode.kind for mode in found.stability.modes]
    assert kinds == ["oscillates", "oscillates", "neutral", "neutral"]
    for mode in found.stability.modes[:2]:
        assert abs(mode.frequency - np.sqrt(MASS * G * LENGTH / ABOUT_PIVOT)) < 1e-9
    assert found.stability.modes[2].coordinates == ("pivot.wz",)


@pytest.mark.parametrize("share", [0.3, 0.95, 1.05, 2.0])
def test_sleeping_top(share):
    """Upright and spinning by s it is stable iff (I3 s)^2 > 4 m g l I1 [Goldstein2002].

    In axes that do not spin, I1 z'' - i I3 s z' - m g l z = 0; in those of the body, turned by -s.
    """
    spin_inertia = 0.08
    weight = MASS * G * LENGTH
    critical = 2 * np.sqrt(weight * ABOUT_PIVOT) / spin_inertia
    s = share * critical
    machine = pendulum(Spherical(), spin_inertia)
    # Half a turn about x: the body's z axis, and with it the spin, points down.
    found = trim(machine, [0.0, 1.0, 0.0, 0.0], [0, 0, -s])
    assert found.success
    roots = np.roots([ABOUT_PIVOT, -1j * spin_inertia * s, -weight]) - 1j * s
    expected = np.concatenate([roots, roots.conj(), [0, 0]])
    for value in expected:
        assert np.abs(found.stability.eigenvalues - value).min() < 1e-5 * s
    assert found.stability.verdict == ("unstable" if share < 1 else "marginal")
    assert stability(machine, found.x, found.v).verdict == found.stability.verdict


# ------------------------------------------------------------------------------ vehicles


def test_quadcopter_hovers():
    found = trim(quadcopter())
    assert found.success
    assert np.allclose(found.u, 1.2 * G / 4, rtol=1e-9)
    assert found.stability.verdict == "marginal"
    # Chains of four integrators; a usual eigenvalue solver would tell growth by 1e-4 per second.
    assert np.abs(found.stability.eigenvalues).max() == 0.0


def test_quadcopter_with_its_mass_aside_and_tilted():
    found = trim(quadcopter(center=(0.05, 0.0, 0.0)), [0, 0, 1, np.cos(0.2), 0, np.sin(0.2), 0])
    assert found.success
    front, back = found.u[[0, 3]].sum(), found.u[[1, 2]].sum()
    assert abs(front + back - 1.2 * G) < 1e-8
    assert abs(0.2 * (front - back) - 0.05 * 1.2 * G) < 1e-8
    assert np.abs(found.x[4:6]).max() < 1e-9


def test_quadcopter_that_is_too_heavy_says_so():
    found = trim(quadcopter(upper=2.0))
    assert not found.success
    assert found.stability is None
    assert re.fullmatch(
        r"no trim found near the start: `base\.vz` accelerates by -3\.14. at least; inputs at "
        r"their limits: `p0`, `p1`, `p2`, `p3`",
        found.message,
    )
    assert trim(quadcopter(upper=2.0), limits=False).success


def test_quadcopter_flies_a_circle():
    """Banked by phi with tan(phi) = V W / g, turning about the vertical."""
    speed, turn = 4.0, 0.5
    v = np.array([speed, 0, 0, 0, 0, turn])
    loose = ("base.vy", "base.vz", "base.wx", "base.wy")
    found = trim(quadcopter(), v=v, free_velocities=loose, hold=("base.wz",))
    assert found.success, found.message
    w, x, y, z = found.x[3:]
    up = np.array([2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y)])
    W = np.linalg.norm(found.v[3:])
    assert np.abs(found.v[3:] - W * up).max() < 1e-8
    flat = found.v[:3] - up * (up @ found.v[:3])
    assert abs(up @ found.v[:3]) < 1e-8
    # The thrust axis is the body's z axis.
    assert abs(np.sqrt(1 - up[2] ** 2) / up[2] - np.linalg.norm(flat) * W / G) < 1e-8
    assert abs(found.u.sum() - 1.2 * G / up[2]) < 1e-7


def vessel(height):
    """A neutrally buoyant vessel with its center of buoyancy above its center of mass."""
    mass = 30.0
    body = Body("hull", Moments.of_body(mass, (0, 0, 0), np.diag([0.5, 2.0, 2.1])))
    water = Immersed(
        "hull",
        volume=mass / 1000.0,
        center=(0, 0, height),
        added_mass=(5, 20, 20, 0.1, 1.0, 1.0),
        linear_drag=(3, 10, 10, 0.3, 0.5, 0.5),
        quadratic_drag=(8, 20, 20, 0, 0, 0),
    )
    push = Wrench("thruster", "hull", np.eye(6)[:, :1], lower=-100.0, upper=100.0)
    return Machine(
        [body], [Joint("base", Free(), "world", "hull")], fluid=Fluid([water]), actuators=[push]
    )


def test_vessel_rights_itself():
    weight, height = 30.0 * G, 0.05
    found = equilibrium(vessel(height))
    assert found.success
    assert found.stability.verdict == "marginal"  # depth, position and heading are neutral
    for inertia, drag in ((0.6, 0.3), (3.0, 0.5)):
        for root in np.roots([inertia, drag, weight * height]):
            assert np.abs(found.stability.eigenvalues - root).min() < 1e-8
    assert equilibrium(vessel(-height)).stability.verdict == "unstable"
    righted = equilibrium(vessel(-height), stable=True)
    assert righted.stability.verdict == "marginal"
    assert abs(righted.x[4] ** 2 + righted.x[5] ** 2 - 1) < 1e-9


def test_vessel_cruises_and_finds_its_speed():
    found = trim(vessel(0.05), v=[1.5, 0, 0, 0, 0, 0])
    assert found.success
    assert abs(found.u[0] - (3 * 1.5 + 8 * 1.5**2)) < 1e-8
    decay = -(3 + 2 * 8 * 1.5) / 35.0
    assert np.abs(found.stability.eigenvalues - decay).min() < 1e-8
    back = trim(
        vessel(0.05), v=[1, 0, 0, 0, 0, 0], u0=found.u, hold_inputs=("thruster",),
        free_velocities=("base.vx",),
    )  # fmt: skip
    assert back.success
    assert abs(back.v[0] - 1.5) < 1e-9
    fast = trim(vessel(0.05), v=[5.0, 0, 0, 0, 0, 0])
    assert not fast.success
    assert "inputs at their limits: `thruster`" in fast.message


def test_tilted_thrust_stays_within_its_range():
    body = Body("hull", Moments.of_body(1.0, (0, 0, 0), np.eye(3)))
    joints = [Joint("rail", Prismatic("x"), "world", "hull", damping=2.0)]
    frames = [Frame("top", "hull", (0, 0, 0))]
    tilting = TiltingPropeller("fan", "top", tilt_axis="y", force=(1.0, 10.0), tilt=(-0.3, 0.3))
    machine = Machine([body], joints, frames, actuators=[tilting])
    slow = trim(machine, v=[1.0])
    assert slow.success
    assert abs(slow.u[0] - 2.0) < 1e-8
    A, b = machine.input_polytope
    assert (A @ slow.u <= b + 1e-9).all()
    assert not trim(machine, v=[5.0]).success


# ------------------------------------------------------------------------------ closed machines


@pytest.mark.parametrize("kind", ["hinge", "ball"])
def test_four_bar_hangs_and_stands(kind):
    """Two rods that turn and one that only moves: 5/3 m l^2 q'' = -2 m g l sin q."""
    machine = n_four_bar(1, kind)
    start = {"p0": -1.2, "p1": -1.2, "e0": 1.2}
    x0 = np.array([start[name] for name in machine.x_names])
    rate = np.sqrt(6 * G / 5)
    down = equilibrium(machine, x0)
    assert down.success
    assert np.allclose(np.abs(down.x), np.pi / 2)
    values = down.stability.eigenvalues
    assert np.abs(np.sort(values.imag)[[0, -1]] - [-rate, rate]).max() < 1e-8
    assert down.stability.verdict == "stable"
    up = equilibrium(machine, -x0)
    assert up.stability.verdict == "unstable"
    assert np.abs(up.stability.eigenvalues - rate).min() < 1e-8
    settled = equilibrium(machine, -x0, stable=True)
    assert settled.stability.verdict == "stable"


def test_crane_is_held_by_its_motors():
    machine = crane(True)
    machine = machine.attach(*motors([machine.joint("theta"), machine.joint("delta")]))
    x0 = assemble(machine, [0.3, 0.4, -1.0, 0.0, 0.0], hold=("theta", "zeta"))
    found = trim(machine, x0)
    assert found.success
    assert np.abs(found.x - x0).max() < 1e-9
    assert np.abs(found.u).min() > 1.0
    # Virtual work of the weight: all that hangs on the boom turns with it.
    tree = Tree(replace(machine, loops=()))
    weight = tree.functions["gravity"](x0).full().ravel()
    assert found.u[0] == pytest.approx(weight[1], rel=1e-9)


# ------------------------------------------------------------------------------ small motions


def with_actuators(rng, machine):
    single = [joint.name for joint in machine.joints if joint.nv == 1]
    push = Wrench("push", machine.frames[0].name, rng.normal(size=(6, 2)))
    servos = [
        JointForce(f"s{i}", name, gain=2.0, bias_terms=(0.1, 0.0, -0.5))
        for i, name in enumerate(single[:2])
    ]
    return machine.attach(push, *servos, *motors(machine.joints, "_motor"))


@pytest.mark.parametrize("seed", range(4))
def test_slopes_are_those_of_the_force_that_balances(seed):
    rng = np.random.default_rng(seed)
    machine, x = random_closed(rng)
    machine = with_actuators(rng, machine)
    balance = Balance(machine)
    v, u = rng.normal(size=machine.nv), rng.normal(size=machine.nu)
    lam, rate = rng.normal(size=(2, balance.rows))
    J = balance.in_motion(x, v, u, lam, rate)[1].full()
    h, columns = 1e-6, []
    steps = np.eye(2 * machine.nv + machine.nu + 2 * balance.rows)
    for step in steps:
        parts = np.split(step * h, np.cumsum([machine.nv, machine.nv, machine.nu, balance.rows]))
        ends = []
        for sign in (1, -1):
            moved = machine.integrate(x, sign * parts[0])
            others = [
                value + sign * d for value, d in zip((v, u, lam, rate), parts[1:], strict=True)
            ]
            ends.append(balance.in_motion(moved, *others)[0].full().ravel())
        columns.append((ends[0] - ends[1]) / (2 * h))
    assert np.abs(np.array(columns).T - J).max() < 1e-6 * (1 + np.abs(J).max())


@pytest.mark.parametrize("seed", range(4))
def test_small_motions_against_differences_of_forward(seed):
    """At rest in an equilibrium of a tree, friction and servos included."""
    rng = np.random.default_rng(seed)
    machine = with_actuators(rng, random_machine(rng, bodies=4))
    found = trim(machine, machine.random(rng))
    assert found.success, found.message
    balance, nv, h = Balance(machine), machine.nv, 1e-5
    tree, at_rest = Tree(machine), np.zeros(nv)

    def forward(x, v):
        return tree.functions["forward"](x, v, balance.force(x, v, found.u)).full().ravel()

    A = np.zeros((2 * nv, 2 * nv))
    A[:nv, nv:] = np.eye(nv)
    for j, e in enumerate(np.eye(nv)):
        ahead, behind = machine.integrate(found.x, h * e), machine.integrate(found.x, -h * e)
        A[nv:, j] = (forward(ahead, at_rest) - forward(behind, at_rest)) / (2 * h)
        A[nv:, nv + j] = (forward(found.x, h * e) - forward(found.x, -h * e)) / (2 * h)
    assert np.abs(forward(found.x, at_rest)).max() < 1e-8
    linear = found.stability.linear
    full = linear.basis @ linear.A @ linear.basis.T
    assert np.abs(full - A).max() < 1e-6 * (1 + np.abs(A).max())


@pytest.mark.parametrize("seed", range(3))
def test_small_motions_of_closed_machines_against_differences(seed):
    """Along states that are closed, whose accelerations the constrained equations give."""
    rng = np.random.default_rng(seed)
    machine, x0 = random_closed(rng, fluid=False)
    free = Wrench("hold", machine.frames[0].name, np.eye(6))
    machine = machine.attach(free, *motors(machine.joints, "_motor"))
    found = trim(machine, x0)
    assert found.success, found.message
    balance, nv, h = Balance(machine), machine.nv, 1e-4
    linear, eom = found.stability.linear, balance.equations

    def state(y):
        eps, dv = np.split(linear.basis @ y, 2)
        near = eom.project(machine.integrate(found.x, eps), dv, weight="unit")
        a = balance.acceleration(near.x, near.v, found.u).a
        return np.concatenate([machine.difference(found.x, near.x), near.v, a])

    for j, e in enumerate(np.eye(linear.A.shape[0])):
        slope = (state(h * e) - state(-h * e)) / (2 * h)
        y = linear.basis.T @ slope[: 2 * nv]
        rate = linear.basis.T @ slope[nv:]
        assert np.abs(y - e).max() < 1e-5
        assert np.abs(rate - linear.A[:, j]).max() < 1e-4 * (1 + np.abs(linear.A).max())


def carriage(wavy):
    """A carriage rolls along x and a load slides across by y; a follower is led to (1 + wavy) y.

    The follower's spring, seen from the load, is stiffer here and there as the carriage moves on.
    """
    body = Moments.of_body(1.0, (0, 0, 0), np.eye(3))
    bodies = [Body(name, body) for name in ("carriage", "load", "follower")]
    joints = [
        Joint("x", Prismatic("x"), "world", "carriage"),
        Joint("y", Prismatic("y"), "carriage", "load"),
        Joint("z", Prismatic("y"), "world", "follower", stiffness=50.0),
    ]
    led = Coupling("led", "z", ("x", "y"), lambda x, y: (1 + wavy * ca.sin(x)) * y)
    return Machine(bodies, joints, couplings=[led], gravity=(0, 0, 0))


def test_small_motions_of_a_moving_closed_machine():
    """(1 + f^2) y'' + 2 f f' V y' + (f f'' V^2 + k f^2) y = 0 with f = 1 + wavy sin x."""
    machine, wavy, V, place = carriage(0.3), 0.3, 2.0, 0.7
    x, v = (np.array([{"x": n}.get(name, 0.0) for name in machine.x_names]) for n in (place, V))
    linear = small_motions(Balance(machine), x, v, np.zeros(0))
    f, f1, f2 = 1 + wavy * np.sin(place), wavy * np.cos(place), -wavy * np.sin(place)
    at = {name: i for i, name in enumerate(machine.v_names)}
    eps, dv, by_eps, by_dv = (*np.split(linear.basis, 2), *np.split(linear.rates, 2))
    y, y_rate = eps[at["y"]], dv[at["y"]]
    assert linear.A.shape == (4, 4)
    assert np.abs(eps[at["z"]] - f * y).max() < 1e-12
    assert np.abs(dv[at["z"]] - f * y_rate - f1 * V * y).max() < 1e-12
    assert np.abs(by_eps - dv).max() < 1e-12
    expected = -(2 * f * f1 * V * y_rate + (f * f2 * V * V + 50 * f * f) * y) / (1 + f * f)
    assert np.abs(by_dv[at["y"]] - expected).max() < 1e-10
    assert np.abs(by_dv[at["x"]]).max() < 1e-12


def test_steady_motion_whose_small_motions_change_gets_no_verdict():
    machine = carriage(0.3)
    v = [{"x": 2.0}.get(name, 0.0) for name in machine.v_names]
    found = trim(machine, v=v)
    assert found.success
    assert found.stability is None
    assert found.message == (
        "steady motion; small motions about it change with time, so that eigenvalues do not "
        "decide stability"
    )
    assert trim(carriage(0.0), v=v).stability.verdict == "marginal"


def test_state_matrices_of_a_tree_in_steady_motion():
    machine = pendulum(Spherical())
    v = np.array([0.0, 0.0, 3.0])
    linear = small_motions(Balance(machine), machine.neutral(), v, np.zeros(0))
    A, _ = Tree(machine).functions["state_matrices"](machine.neutral(), v, np.zeros(3))
    assert np.abs(linear.basis @ linear.A @ linear.basis.T - A.full()).max() < 1e-12


# ------------------------------------------------------------------------------ answers


def test_no_equilibrium_is_said():
    body = Body("stone", Moments.of_body(1.0, (0, 0, 0), np.eye(3)))
    stone = Machine([body], [Joint("base", Free(), "world", "stone")])
    found = equilibrium(stone, attempts=2)
    assert not found.success
    assert found.stability is None
    assert str(found) == (
        "no equilibrium found near the start: `base.vz` accelerates by -9.81 at least"
    )
    assert np.allclose(found.acceleration, [0, 0, -G, 0, 0, 0])
    falling = trim(stone, v=[0, 0, 1, 0, 0, 0], attempts=2)
    assert falling.message.startswith("no steady motion found near the start")


def test_a_swing_is_no_steady_motion():
    driven = pendulum().attach(JointForce("motor", "pivot"))
    found = trim(driven, [0.2], [1.0], attempts=2)
    assert not found.success


def test_velocities_must_go_along_the_constraints():
    machine = n_four_bar(1)
    found = trim(machine, [-np.pi / 2, np.pi / 2, -np.pi / 2], [1.0, 0.0, 0.0], attempts=1)
    assert not found.success


def test_parameters_are_taken_as_given():
    machine = pendulum().tunable("rod.mass")
    servo = machine.attach(JointForce("motor", "pivot"))
    found = trim(servo, [0.5], parameters={"rod.mass": 3.0})
    assert found.u[0] == pytest.approx(3.0 * G * LENGTH * np.sin(0.5), rel=1e-9)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda m: trim(m, hold=("elbow",)), "`elbow`"),
        (lambda m: trim(m, hold_inputs=("motor7",)), "`motor7`"),
        (lambda m: trim(m, free_velocities=("wheel",)), "`wheel`"),
        (lambda m: equilibrium(m, u=[1.0, 2.0]), "inputs must be 0 finite numbers"),
    ],
)
def test_problems_that_are_not_stated_as_they_should_be(call, message):
    with pytest.raises(SolveError, match=re.escape(message)):
        call(pendulum())
