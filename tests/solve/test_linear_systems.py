"""Linear equations of small motions: wheels that roll, closed chains, motions that accelerate."""

import casadi as ca
import numpy as np
import pytest
from constrained_machines import closed_state, crane, four_bar_state, n_four_bar, random_closed
from random_machines import random_machine, random_state

import framefree as ff
from framefree.geometry import Moments
from framefree.machine import Body, Free, Joint, Machine, Prismatic, Revolute, motors
from framefree.motion import Constrained, Embedded, Holonomic, Maximal, Nonholonomic, Tree
from framefree.solve import LinearSystem, SolveError, linearise

GRAVITY = 9.81


def rolling(machine, body, radius):
    """Rows of a thin wheel about its y axis that rolls on the plane z = 0 without slipping.

    With n the axle and u the direction in the wheel's plane that points up most, the contact is at
    p - radius u: it stays on the plane, and its material point does not move.
    """
    tree, index = Tree(machine), machine.body_index[body]

    def upwards(state):
        axle = state.poses[index][:3, 1]
        up = ca.vertcat(0, 0, 1) - axle[2] * axle
        return up, ca.sqrt(ca.sumsqr(up))

    def height(x, t):
        state = tree.at(x)
        return state.poses[index][2, 3] - radius * upwards(state)[1]

    def slip(x, v, t):
        state = tree.at(x, v)
        R, xi = state.poses[index][:3, :3], state.twists[index]
        up, length = upwards(state)
        return (R @ xi[:3] + ca.cross(R @ xi[3:], -radius * up / length))[:2]

    return Holonomic(f"{body}_height", height), Nonholonomic(f"{body}_slip", slip)


def flipped(inertia):
    """An inertia of the source, whose y points right and z down, in axes with z up."""
    turn = np.diag([1.0, -1.0, -1.0])
    return turn @ np.array(inertia) @ turn


def bicycle():
    """The benchmark bicycle [Meijaard2007, table 1], with its constraints."""
    wheelbase, trail, tilt = 1.02, 0.08, np.pi / 10
    steer = np.array([wheelbase + trail, 0, 0])
    axis = (np.sin(tilt), 0.0, -np.cos(tilt))
    frame = flipped([[9.2, 0, 2.4], [0, 11.0, 0], [2.4, 0, 2.8]])
    fork = flipped([[0.05892, 0, -0.00756], [0, 0.06, 0], [-0.00756, 0, 0.00708]])
    machine = Machine(
        [
            Body("frame", Moments.of_body(85.0, (0.3, 0, 0.9), frame)),
            Body("rear", Moments.of_body(2.0, (0, 0, 0), np.diag([0.0603, 0.12, 0.0603]))),
            Body("fork", Moments.of_body(4.0, np.array([0.9, 0, 0.7]) - steer, fork)),
            Body("front", Moments.of_body(3.0, (0, 0, 0), np.diag([0.1405, 0.28, 0.1405]))),
        ],
        [
            Joint("base", Free(), "world", "frame"),
            Joint("rear_axle", Revolute("y"), "frame", "rear", parent_pose=(0, 0, 0.3)),
            Joint("steer", Revolute(axis), "frame", "fork", parent_pose=tuple(steer)),
            Joint(
                "front_axle",
                Revolute("y"),
                "fork",
                "front",
                parent_pose=tuple(np.array([wheelbase, 0, 0.35]) - steer),
            ),
        ],
        gravity=(0, 0, -GRAVITY),
    )
    return machine, [*rolling(machine, "rear", 0.3), *rolling(machine, "front", 0.35)]


def bicycle_eigenvalues(speed):
    """Those of M q'' + v C1 q' + (g K0 + v^2 K2) q = 0 with [Meijaard2007, eqs. A1 to A4]."""
    M = np.array([[80.81722, 2.31941332208709], [2.31941332208709, 0.29784188199686]])
    K0 = np.array([[-80.95, -2.59951685249872], [-2.59951685249872, -0.80329488458618]])
    K2 = np.array([[0.0, 76.59734589573222], [0.0, 2.65431523794604]])
    C1 = np.array([[0.0, 33.86641391492494], [-0.85035641456978, 1.68540397397560]])
    lower = np.hstack([GRAVITY * K0 + speed**2 * K2, speed * C1])
    A = np.vstack([np.hstack([np.zeros((2, 2)), np.eye(2)]), -np.linalg.solve(M, lower)])
    return np.sort_complex(np.linalg.eigvals(A))


@pytest.mark.parametrize("speed", [0.0, 2.0, 5.0, 8.0])
def test_bicycle_against_the_published_benchmark(speed):
    machine, rows = bicycle()
    v = np.zeros(machine.nv)
    v[0] = speed
    v[machine.v_slice["rear_axle"]] = speed / 0.3
    v[machine.v_slice["front_axle"]] = speed / 0.35
    eom = ff.equations(machine, "constrained", constraints=rows)
    # Anywhere on the plane, in any direction: the steady motion looks the same.
    x = machine.neutral()
    x[:2] = 3.0, -2.0
    x[3:7] = np.cos(0.4), 0.0, 0.0, np.sin(0.4)
    linear = ff.linearise(eom, x, v)
    assert np.abs(linear.a).max() < 1e-11
    assert linear.steady
    assert linear.neutral == 6
    moving = np.sort_complex(linear.eigenvalues[np.abs(linear.eigenvalues) > 0])
    assert len(moving) == 4
    np.testing.assert_allclose(moving, bicycle_eigenvalues(speed), rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("spin", [0.0, 1.0, 4.0, 20.0])
def test_rolling_disk_against_its_closed_form(spin):
    """lambda^2 = m g r / (A + m r^2) - C (C + m r^2) spin^2 / (A (A + m r^2))."""
    m, r, A, C = 1.3, 0.4, 0.05, 0.09
    kinds = {
        **{f"slide_{axis}": Prismatic(axis) for axis in "xyz"},
        "yaw": Revolute("z"),
        "lean": Revolute("x"),
        "spin": Revolute("y"),
    }
    disk = Moments.of_body(m, (0, 0, 0), np.diag([A, C, A]))
    bodies = [Body(name, disk if name == "spin" else None) for name in kinds]
    parents = ["world", *kinds]
    joints = [
        Joint(f"j_{name}", kind, parent, name)
        for (name, kind), parent in zip(kinds.items(), parents, strict=False)
    ]
    machine = Machine(bodies, joints, gravity=(0, 0, -GRAVITY))
    eom = Constrained(machine, rolling(machine, "spin", r))
    x, v = np.array([0.3, 0, r, 0, 0, 0.7]), np.array([spin * r, 0, 0, 0, 0, spin])
    linear = linearise(eom, x, v)
    assert linear.steady
    square = m * GRAVITY * r / (A + m * r**2)
    square -= C * (C + m * r**2) * spin**2 / (A * (A + m * r**2))
    moving = linear.eigenvalues[np.abs(linear.eigenvalues) > 1e-9]
    root = np.sqrt(complex(square))
    np.testing.assert_allclose(
        np.sort_complex(moving), np.sort_complex([root, -root]), rtol=1e-9, atol=1e-9
    )


def test_axes_that_spin_with_the_body_are_not_steady():
    """About a spinning wheel, deviations along its own axes turn: no constant matrix tells all."""
    disk = Body("disk", Moments.of_body(1.3, (0, 0, 0), np.diag([0.05, 0.09, 0.05])))
    machine = Machine([disk], [Joint("free", Free(), "world", "disk")])
    eom = Constrained(machine, rolling(machine, "disk", 0.4))
    x = machine.neutral()
    x[2] = 0.4
    assert not linearise(eom, x, np.array([1.2, 0, 0, 0, 3.0, 0])).steady
    assert linearise(eom, x, np.zeros(6)).steady


def spectrum(linear):
    return np.sort_complex(linear.eigenvalues)


def held_still(rng):
    """A closed machine, a configuration, and inputs of its motors that hold it there."""
    while True:
        machine, x = random_closed(rng, passive=False)
        machine = machine.attach(*motors([joint for joint in machine.joints if joint.nv]))
        constrained = Constrained(machine)
        x = closed_state(rng, constrained, x, spread=0.05)[0]
        rest, tree = np.zeros(machine.nv), constrained.base
        B, bias = tree.numbers("input_matrix", x=x)[0], tree.numbers("bias", x=x, v=rest)[0]
        u = np.linalg.lstsq(B, bias, rcond=None)[0]
        redundant = constrained.report(x, rest).redundant
        if np.abs(B @ u - bias).max() < 1e-10 and not redundant:
            return machine, x, u


@pytest.mark.parametrize("seed", range(4))
def test_formulations_of_a_closed_machine_have_one_spectrum(seed):
    machine, x, u = held_still(np.random.default_rng(seed))
    rest = np.zeros(machine.nv)
    embedded, maximal = Embedded(machine, start=x), Maximal(machine)
    systems = [
        linearise(machine, x, rest, u),
        linearise(embedded, *embedded.reduce(x, rest), u),
        linearise(maximal, *maximal.start(x, rest), u),
    ]
    for linear in systems:
        assert len(linear.A) == 2 * embedded.sizes["v"]
        assert np.abs(linear.a).max() < 1e-8
        expected = np.poly(systems[0].A)
        np.testing.assert_allclose(
            np.poly(linear.A), expected, rtol=1e-6, atol=1e-7 * np.abs(expected).max()
        )


def test_a_parallelogram_hangs_like_its_closed_form():
    """Rods of 1 m and 1 kg hanging down: omega^2 = (g moments) / inertia of the one velocity."""
    machine = n_four_bar(1)
    x, v = four_bar_state(machine, np.pi, 0.0)
    linear = linearise(machine, x, v)
    # Two uprights turn about their ends, the coupler is carried along a circle of 1 m.
    inertia, moment = 2 / 3 + 1.0, 2 * 0.5 + 1.0
    omega = np.sqrt(GRAVITY * moment / inertia)
    np.testing.assert_allclose(spectrum(linear), [-1j * omega, 1j * omega], atol=1e-6)


def flow(machine, x, v, force, t):
    """States of a tree after a short time under forces that are held, by the classical method."""
    eom = ff.equations(machine, "tree")
    steps, h = 40, t / 40
    for _ in range(steps):
        a = [eom.numbers("forward", x=x, v=v, force=force)[0]]
        xs, vs = [v], [v]
        for c in (h / 2, h / 2, h):
            vs.append(v + c * a[-1])
            moved = machine.integrate(x, c * vs[-2])
            a.append(eom.numbers("forward", x=moved, v=vs[-1], force=force)[0])
        xs = (vs[0] + 2 * vs[1] + 2 * vs[2] + vs[3]) / 6
        x = machine.integrate(x, h * xs)
        v = v + h * (a[0] + 2 * a[1] + 2 * a[2] + a[3]) / 6
    return x, v


def test_deviations_about_a_motion_that_accelerates():
    """eps and dv of neighbouring motions of a flying body with an arm grow as A says."""
    rng = np.random.default_rng(3)
    machine = random_machine(rng, bodies=2, passive=False, fluid=False)
    while not isinstance(machine.joints[0].kind, Free):
        machine = random_machine(rng, bodies=2, passive=False, fluid=False)
    x, v, force = random_state(rng, machine)
    a = ff.equations(machine, "tree").numbers("forward", x=x, v=v, force=force)[0]
    linear = linearise(machine, x, v, a=a)
    np.testing.assert_allclose(linear.a, a, rtol=1e-9)
    nv, small, t = machine.nv, 1e-4, 1e-4
    for k in range(2 * nv):
        e = np.eye(2 * nv)[k] * small
        pair = []
        for sign in (1, -1):
            start = machine.integrate(x, sign * e[:nv]), v + sign * e[nv:]
            pair.append(flow(machine, *start, force, t))
        middle = flow(machine, x, v, force, t)[0]
        eps = (machine.difference(middle, pair[0][0]) - machine.difference(middle, pair[1][0])) / 2
        dv = (pair[0][1] - pair[1][1]) / 2
        rate = (np.concatenate([eps, dv]) - e) / (small * t)
        expected = linear.basis @ linear.A @ np.linalg.solve(linear.basis, e / small)
        np.testing.assert_allclose(rate, expected, atol=2e-3 * (1 + np.abs(linear.A).max()))


def test_inputs_and_names():
    machine = crane(closed=True)
    machine = machine.attach(*motors(machine.joints[:3]))
    eom = Constrained(machine)
    x = eom.assemble(np.array([0.1, 0.3, -1.0, -0.5, 0.1]))
    linear = ff.linearise(machine, x)
    assert isinstance(linear, LinearSystem)
    assert linear.A.shape == (6, 6)
    assert linear.B.shape == (6, 3)
    assert linear.inputs == machine.u_names
    assert len(set(linear.names)) == 6
    assert all(name[:2] in ("x.", "v.") for name in linear.names)
    h, u = 1e-5, np.zeros(3)
    for k, e in enumerate(np.eye(3)):
        pair = [linearise(machine, x, u=u + s * h * e).a for s in (1, -1)]
        slope = (pair[0] - pair[1]) / (2 * h)
        np.testing.assert_allclose((linear.basis @ linear.B)[5:, k], slope, atol=1e-7)


def test_states_off_the_constraints_are_refused():
    machine = n_four_bar(1)
    x, _ = four_bar_state(machine, 0.3, 0.0)
    with pytest.raises(SolveError, match="off the constraints"):
        linearise(machine, x + 0.01)
    with pytest.raises(SolveError, match="`x` must be"):
        linearise(machine, x[:1])


@pytest.mark.parametrize(("length", "mass"), [(1e-3, 1e-6), (1.0, 1.0), (1e3, 1e6)])
def test_what_is_steady_does_not_depend_on_units(length, mass):
    rod = Moments.of_body(mass, (0, 0, -length / 2), mass * length**2 * np.diag([0.1, 0.1, 0.01]))
    machine = Machine([Body("rod", rod)], [Joint("hinge", Revolute("y"), "world", "rod")])
    assert linearise(machine, [0.0]).steady
    assert not linearise(machine, [1e-3]).steady
    assert not linearise(machine, [0.0], [0.01 * np.sqrt(GRAVITY / length)]).steady
    # Upright, sin(k pi) is a rounding error and no acceleration.
    for turns in (1, 3, -7):
        assert linearise(machine, [turns * np.pi]).steady
        assert not linearise(machine, [turns * np.pi + 1e-4]).steady


@pytest.mark.parametrize("arm", [0.1, 1 / 3, 7e-4, 123.4])
def test_forces_that_cancel_leave_no_acceleration(arm):
    """A see-saw in balance: the weights cancel up to rounding, and no slope tells their size."""
    sides = [
        Moments.of_body(m, (a, 0, 0), m * arm**2 * np.eye(3) / 9)
        for m, a in ((0.7, arm), (0.1, -7 * arm))
    ]
    machine = Machine(
        [Body("beam", sides[0] + sides[1])], [Joint("hinge", Revolute("y"), "world", "beam")]
    )
    for angle in (0.0, 0.3, 2.0):
        assert linearise(machine, [angle]).steady
    uneven = sides[0] + 1.001 * sides[1]
    off = Machine([Body("beam", uneven)], [Joint("hinge", Revolute("y"), "world", "beam")])
    assert not linearise(off, [0.0]).steady
