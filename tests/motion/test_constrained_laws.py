"""Laws of the constrained formulation: as trees where loops are joints, workless, consistent."""

from dataclasses import replace

import casadi as ca
import numpy as np
import pytest
from constrained_machines import (
    at,
    closed_state,
    four_bar_state,
    n_four_bar,
    random_closed,
    random_couplings,
    rod,
)
from random_machines import random_machine, random_moments, random_pose, relative_error

from framefree.geometry import Moments
from framefree.machine import (
    Body,
    Frame,
    Free,
    Joint,
    Loop,
    Machine,
    MachineError,
    Prismatic,
    Revolute,
    Spherical,
)
from framefree.motion.constrained import Constrained
from framefree.motion.constrained.project import ClosureError
from framefree.motion.constrained.rows import Acceleration, Holonomic, Nonholonomic, Stabilisation
from framefree.motion.constrained.states import numbers
from framefree.motion.maximal import Maximal
from framefree.motion.tree import Tree


def value(eom, name, **inputs):
    return numbers(eom, name, **inputs)[0]


# ---------------------------------------------------------------- loops in place of joints


@pytest.mark.parametrize(("kind", "joint"), [("ball", Spherical()), ("hinge", Revolute((1, 2, 3)))])
def test_pendulum_as_a_free_body_on_a_loop(kind, joint):
    """Body accelerations and the pivot's wrench are those of the tree whose joint the loop is."""
    axis = {"axis": joint.axis} if kind == "hinge" else {}
    for seed in range(3):
        rng = np.random.default_rng(seed)
        place, on_body, body = random_pose(rng), random_pose(rng), Body("b", random_moments(rng))
        frames = [Frame("place", "world", place), Frame("pin", "b", on_body)]
        tree = Tree(
            Machine([body], [Joint("pivot", joint, "world", "b", place, on_body)], name="pendulum")
        )
        loose = Constrained(
            Machine(
                [body],
                [Joint("free", Free(), "world", "b")],
                frames,
                loops=[Loop("pivot", kind, "place", "pin", **axis)],
            )
        )
        x, v = tree.machine.random(rng), rng.normal(size=tree.machine.nv)
        G, xi = value(tree, "body_pose", x=x)[0], value(tree, "body_velocity", x=x, v=v)[0]
        x_free = loose.machine.difference(loose.machine.neutral(), pose_as_free(G))
        x_free = loose.machine.integrate(loose.machine.neutral(), x_free)
        a = value(tree, "forward", x=x, v=v, force=0 * v)
        expected = value(tree, "body_acceleration", x=x, v=v, a=a)[0]
        state = {"x": x_free, "v": xi, "force": np.zeros(6)}
        assert relative_error(value(loose, "forward", **state), expected) < 1e-11
        wrench = value(tree, "joint_wrench", x=x, v=v, force=0 * v)[0]
        assert relative_error(value(loose, "loop_wrench", **state)[0], wrench) < 1e-11
        assert np.abs(value(loose, "joint_wrench", **state)).max() < 1e-11 * np.abs(wrench).max()


def pose_as_free(G):
    from framefree.geometry import quaternion

    return np.concatenate([G[:3, 3], np.array(quaternion.from_rotation(G[:3, :3])).ravel()])


def test_cut_at_another_joint_the_machine_moves_alike():
    """A four-bar cut open at each of its joints in turn: same accelerations, same pin forces."""
    rng = np.random.default_rng(0)
    lengths = (1.0, 0.6, 1.1, 0.8)
    accelerations, forces = [], []
    bodies = [Body(f"b{i}", random_moments(rng)) for i in range(3)]
    for cut in (3, 0):
        eom = four_bar(bodies, lengths, cut)
        angles = four_bar_angles(lengths, 0.9)
        found = eom.project(loop_coordinates(angles, cut))
        rates = eom.project(found.x, loop_coordinates(np.array([0.7, 0.0, 0.0, 0.0]), cut)).v
        # Scale so that the first rod turns at 1 rad/s in both.
        xi = value(eom, "body_velocity", x=found.x, v=rates)
        v = rates / xi[eom.machine.body_index["b0"], 5]
        state = {"x": found.x, "v": v, "force": np.zeros(eom.machine.nv)}
        a = value(eom, "forward", **state)
        acc = value(eom, "body_acceleration", x=found.x, v=v, a=a)
        accelerations.append([acc[eom.machine.body_index[f"b{i}"]] for i in range(3)])
        wrench = value(eom, "joint_wrench", **state)
        forces.append(pin_force(eom, wrench, 1))
    assert relative_error(accelerations[0], accelerations[1]) < 1e-10
    first, second = (np.linalg.norm(force[:2]) for force in forces)  # seen from either rod
    assert np.isclose(first, second, rtol=1e-9)


def four_bar(bodies, lengths, cut):
    """Planar chain world - b0 - b1 - b2 - world, open at pin `cut`, closed there by a hinge."""
    ground = at(lengths[3], 0)
    frames = [Frame("ground", "world", ground)]
    frames += [Frame(f"start{i}", f"b{i}") for i in range(3)]
    frames += [Frame(f"end{i}", f"b{i}", at(lengths[i], 0)) for i in range(3)]
    if cut == 3:
        joints = [Joint("pin0", Revolute("z"), "world", "b0")]
        joints += [
            Joint(f"pin{i}", Revolute("z"), f"b{i - 1}", f"b{i}", at(lengths[i - 1], 0))
            for i in (1, 2)
        ]
        loop = Loop("pin3", "hinge", "ground", "end2", axis="z")
    else:
        joints = [Joint("pin3", Revolute("z"), "world", "b2", ground, at(lengths[2], 0))]
        joints += [
            Joint(f"pin{i + 1}", Revolute("z"), f"b{i + 1}", f"b{i}", None, at(lengths[i], 0))
            for i in (1, 0)
        ]
        loop = Loop("pin0", "hinge", "world", "start0", axis="z")
    return Constrained(Machine(bodies, joints, frames, loops=[loop], gravity=(0, -9.81, 0)))


def four_bar_angles(lengths, crank):
    """Absolute angles of the three rods of the elbow-up four-bar, in closed form."""
    a, b, c, d = lengths
    P = np.array([a * np.cos(crank), a * np.sin(crank)])
    gap = np.array([d, 0.0]) - P
    r = np.linalg.norm(gap)
    turn = np.arccos((r**2 + b**2 - c**2) / (2 * b * r))
    coupler = np.arctan2(gap[1], gap[0]) + turn
    Q = P + b * np.array([np.cos(coupler), np.sin(coupler)])
    return np.array([crank, coupler, np.arctan2(-Q[1], d - Q[0]), 0.0])


def loop_coordinates(angles, cut):
    first, second, third, _ = angles
    if cut == 3:
        return np.array([first, second - first, third - second])
    return np.array([third, second - third, first - second])


def pin_force(eom, wrench, pin):
    return wrench[eom.machine.joint_index[f"pin{pin}"]]


# ---------------------------------------------------------------- laws on random closed chains


@pytest.fixture(scope="module", params=range(8), ids=lambda seed: f"seed{seed}")
def case(request):
    rng = np.random.default_rng(request.param)
    machine, x = random_closed(rng)
    eom = Constrained(machine)
    x, v = closed_state(rng, eom, x)
    return eom, x, v, 3 * rng.normal(size=machine.nv)


def test_projected_states_meet_the_constraints(case):
    eom, x, v, _ = case
    _, _, position, velocity, _, _ = numbers(eom, "constraint", x=x, v=v)
    assert np.abs(position).max() < 1e-10
    assert np.abs(velocity).max() < 1e-10


def test_acceleration_is_that_of_the_solvers_by_svd(case):
    eom, x, v, force = case
    a = value(eom, "forward", x=x, v=v, force=force)
    rank, residual = numbers(eom, "consistency", x=x, v=v, force=force)
    lam = value(eom, "multipliers", x=x, v=v, force=force)
    for method in ("udwadia-kalaba", "gauss", "kkt"):
        found = eom.solve(x, v, force, method=method)
        assert relative_error(a, found.a) < 1e-9
        assert relative_error(lam, found.multipliers) < 1e-8
        assert found.rank == rank
    assert residual < 1e-9 * (1 + np.abs(a).max())


def test_constraint_forces_do_no_work(case):
    eom, x, v, force = case
    push = value(eom, "constraint_force", x=x, v=v, force=force)
    assert abs(v @ push) < 1e-10 * (1 + np.abs(v).max() * np.abs(push).max())
    tree = value(eom.base, "power", x=x, v=v, force=force)
    assert np.isclose(value(eom, "power", x=x, v=v, force=force), tree, rtol=1e-9, atol=1e-9)


def test_energy_changes_by_the_power(case):
    eom, x, v, force = case
    a = value(eom, "forward", x=x, v=v, force=force)
    h, integrate = 1e-5, eom.machine.integrate

    def energy(step):
        return np.sum(
            numbers(eom, "energy", x=integrate(x, step * v + step**2 / 2 * a), v=v + step * a)
        )

    rate = (energy(h) - energy(-h)) / (2 * h)
    power = value(eom, "power", x=x, v=v, force=force)
    assert abs(rate - power) < 1e-6 * (
        1 + abs(power) + np.abs(numbers(eom, "energy", x=x, v=v)).max()
    )


def test_forward_inverts_inverse(case):
    """For accelerations that the constraints allow; the constraints then carry nothing."""
    eom, x, v, force = case
    a = value(eom, "forward", x=x, v=v, force=-force)
    needed = value(eom, "inverse", x=x, v=v, a=a)
    assert relative_error(value(eom, "forward", x=x, v=v, force=needed), a) < 1e-9
    push = value(eom, "constraint_force", x=x, v=v, force=needed)
    assert np.abs(push).max() < 1e-8 * (1 + np.abs(needed).max())
    assert (
        relative_error(value(eom, "bias", x=x, v=v), value(eom, "inverse", x=x, v=v, a=0 * a)) == 0
    )


@pytest.mark.parametrize("seed", range(5))
def test_bodies_move_by_the_wrenches_on_them(seed):
    """Newton and Euler for each body: joints, loops and weight."""
    rng = np.random.default_rng(seed)
    machine, x = random_closed(rng, passive=False, fluid=False)
    eom = Constrained(machine)
    x, v = closed_state(rng, eom, x)
    force = rng.normal(size=machine.nv)
    state = {"x": x, "v": v, "force": force}
    a = value(eom, "forward", **state)
    poses = value(eom, "body_pose", x=x)
    total = np.zeros((len(machine.bodies), 6))
    for i, joint in enumerate(machine.joints):
        wrench = value(eom, "joint_wrench", **state)[i]
        total[i] += carried(joint.child_pose, wrench)
        parent = machine.body_index[joint.parent]
        if parent >= 0:
            total[parent] -= carried(
                np.linalg.inv(poses[parent]) @ poses[i] @ joint.child_pose, wrench
            )
    for loop, wrench in zip(machine.loops, value(eom, "loop_wrench", **state), strict=True):
        at_b = world(machine, poses, loop.frame_b)
        for frame, sign in ((loop.frame_b, 1), (loop.frame_a, -1)):
            index = machine.body_index[machine.frame(frame).body]
            if index >= 0:
                total[index] += sign * carried(np.linalg.inv(poses[index]) @ at_b, wrench)
    xi = value(eom, "body_velocity", x=x, v=v)
    acc = value(eom, "body_acceleration", x=x, v=v, a=a)
    for i, body in enumerate(machine.bodies):
        M = np.array(body.moments.matrix6)
        weight = M @ np.concatenate([poses[i][:3, :3].T @ machine.gravity, np.zeros(3)])
        needed = M @ acc[i] - little(xi[i]).T @ M @ xi[i] - weight
        assert np.abs(total[i] - needed).max() < 1e-8 * (1 + np.abs(total).max())


def carried(G, wrench):
    force = G[:3, :3] @ wrench[:3]
    return np.concatenate([force, G[:3, :3] @ wrench[3:] + np.cross(G[:3, 3], force)])


def world(machine, poses, name):
    frame = machine.frame(name)
    index = machine.body_index[frame.body]
    return frame.pose if index < 0 else poses[index] @ frame.pose


def little(xi):
    V, W = (np.cross(np.eye(3), part) for part in (xi[:3], xi[3:]))
    return np.block([[W, V], [np.zeros((3, 3)), W]])


@pytest.mark.parametrize("seed", range(3))
def test_maximal_coordinates_agree(seed):
    rng = np.random.default_rng(seed)
    machine, x = random_closed(rng, passive=False)
    eom, maximal = Constrained(machine), Maximal(machine)
    x, v = closed_state(rng, eom, x)
    force = rng.normal(size=machine.nv)
    X, V = numbers(maximal, "from_joints", joint_x=x, joint_v=v)
    given = {"x": X, "v": V, "joint_force": force}
    a = value(eom, "forward", x=x, v=v, force=force)
    expected = value(maximal, "forward:joint_force", **given).reshape(-1, 6)
    assert relative_error(value(eom, "body_acceleration", x=x, v=v, a=a), expected) < 1e-9
    unique = eom.report(x, v).joint_wrench_unique
    wrench = value(eom, "joint_wrench", x=x, v=v, force=force)
    expected = value(maximal, "joint_wrench:joint_force", **given)
    assert relative_error(wrench[unique], expected[unique]) < 1e-9


def test_couplings_hold():
    for seed in range(3):
        rng = np.random.default_rng(seed)
        machine = random_couplings(rng)
        eom = Constrained(machine)
        x, v = closed_state(rng, eom, machine.random(rng))
        force = rng.normal(size=machine.nv)
        found = eom.solve(x, v, force, method="kkt")
        assert relative_error(value(eom, "forward", x=x, v=v, force=force), found.a) < 1e-9
        push = value(eom, "constraint_force", x=x, v=v, force=force)
        assert abs(v @ push) < 1e-10 * (1 + np.abs(push).max())


def test_without_constraints_it_is_the_tree():
    rng = np.random.default_rng(1)
    machine = random_machine(rng, bodies=4)
    eom, tree = Constrained(machine), Tree(machine)
    x, v, force = machine.random(rng), rng.normal(size=machine.nv), rng.normal(size=machine.nv)
    for name in ("forward", "joint_wrench", "power"):
        given = {"x": x, "v": v, "force": force}
        assert relative_error(value(eom, name, **given), value(tree, name, **given)) < 1e-10
    assert eom.report(x, v).rank == 0


def test_unknown_quantities_are_refused_by_name():
    from framefree.motion.equations import EquationsError

    eom = Constrained(n_four_bar(1))
    with pytest.raises(EquationsError, match="`speed` is not a quantity"):
        eom.functions["speed"]


# ---------------------------------------------------------------- redundant and contradicting rows


@pytest.mark.parametrize("turned", [False, True])
def test_planar_four_bar_in_closed_form(turned):
    """[Gonzalez2006], A02: 3 phi'' = 3.5 g sin phi; a spatial hinge has redundant rows."""
    world = random_pose(np.random.default_rng(0)) if turned else np.eye(4)
    machine = n_four_bar(2, world=world)
    eom = Constrained(machine)
    for phi in (0.1, 0.8, 1.5, np.pi / 2 - 1e-5, np.pi / 2 - 1e-7, 2.0, 4.0):
        x, v = four_bar_state(machine, phi, 2.0)
        state = {"x": x, "v": v, "force": np.zeros(machine.nv)}
        a = value(eom, "forward", **state)
        expected = 3.5 * 9.81 * np.sin(phi) / 3
        weak = abs(np.cos(phi))
        assert abs(-a[machine.v_slice["p0"]][0] - expected) < 1e-11 / min(weak, 1)
        assert value(eom, "consistency", **state) == 4
    found = eom.report(*four_bar_state(machine, 0.8, 2.0))
    assert found.rank == 4
    assert len(found.rows) == 10
    assert found.unique
    assert not found.contradicting
    # In a plane the forces are unique, what acts across it is not.
    if not turned:
        assert found.redundant == tuple(f"l{i}[{k}]" for i in (0, 1) for k in (2, 3, 4))
        assert np.array_equal(
            found.joint_wrench_unique, [[True, True, False, False, False, True]] * 5
        )
        assert "4" in str(found)


def test_flat_position_loses_rank():
    machine = n_four_bar(2)
    eom = Constrained(machine)
    x, v = four_bar_state(machine, np.pi / 2, 2.0)
    rank, residual = numbers(eom, "consistency", x=x, v=v, force=np.zeros(machine.nv))
    assert rank == eom.report(x, v).rank == 2
    assert residual < 1e-12
    found = eom.solve(x, v, np.zeros(machine.nv))
    assert (
        relative_error(value(eom, "forward", x=x, v=v, force=np.zeros(machine.nv)), found.a) < 1e-9
    )


def test_four_bars_swing_through_their_flat_positions():
    """Native calls, 10 s of Runge-Kutta with projection: [Gonzalez2006], A02, to 1e-6."""
    machine = n_four_bar(2)
    eom = Constrained(machine)
    forward, fix_x, fix_v = (eom.kernel(n) for n in ("forward", "projected_x", "projected_v"))
    x, v = four_bar_state(machine, 0.0, 1.0)
    force, h = np.zeros(machine.nv), 5e-3
    for _ in range(2000):
        a1 = forward(x, v, force)
        a2 = forward(x + h / 2 * v, v + h / 2 * a1, force)
        a3 = forward(x + h / 2 * v + h**2 / 4 * a1, v + h / 2 * a2, force)
        a4 = forward(x + h * v + h**2 / 2 * a2, v + h * a3, force)
        x = fix_x(x + h * v + h**2 / 6 * (a1 + a2 + a3))
        v = fix_v(x, v + h / 6 * (a1 + 2 * a2 + 2 * a3 + a4))
    angle = x[machine.x_slice["p0"]][0]
    assert np.allclose([np.cos(angle), np.sin(angle)], [0.3284581115, 0.9445185382], atol=1e-6)
    assert abs(v[machine.v_slice["p0"]][0] + 1.506642181) < 1e-6


def test_doubled_loops_share_the_load():
    """Twice the same loop: half the multiplier each, the motion as with one."""
    rng = np.random.default_rng(3)
    machine, x = random_closed(rng, ("hinge", "ball"))
    twice = replace(
        machine, loops=[*machine.loops, *(replace(lo, name=f"{lo.name}_2") for lo in machine.loops)]
    )
    one, two = Constrained(machine), Constrained(twice)
    x, v = closed_state(rng, one, x)
    state = {"x": x, "v": v, "force": rng.normal(size=machine.nv)}
    assert relative_error(value(two, "forward", **state), value(one, "forward", **state)) < 1e-9
    lam = value(two, "multipliers", **state).reshape(2, -1)
    assert relative_error(2 * lam[0], value(one, "multipliers", **state)) < 1e-8
    assert relative_error(lam[0], lam[1]) < 1e-8
    wrench = value(two, "joint_wrench", **state)
    assert relative_error(wrench, value(one, "joint_wrench", **state)) < 1e-8
    report = two.report(x, v)
    assert report.rank == one.report(x, v).rank
    assert not report.loop_wrench_unique.all()
    assert set(report.redundant) == set(two.labels)


def test_a_loop_that_blocks_nothing_new_is_no_constraint():
    """A weld between frames that no joint separates: rows of rounding errors, rank 0."""
    rng = np.random.default_rng(4)
    machine = random_machine(rng, bodies=3)
    pose = random_pose(rng)
    frames = [*machine.frames, Frame("p", "b2", pose), Frame("q", "b2", pose @ random_pose(rng))]
    rest = np.linalg.inv(pose) @ frames[-1].pose
    closed = replace(machine, frames=frames, loops=[Loop("l", "weld", "p", "q", rest=rest)])
    eom, tree = Constrained(closed), Tree(machine)
    x, v, force = machine.random(rng), rng.normal(size=machine.nv), rng.normal(size=machine.nv)
    state = {"x": x, "v": v, "force": force}
    assert value(eom, "consistency", **state) == 0
    assert relative_error(value(eom, "forward", **state), value(tree, "forward", **state)) < 1e-9
    assert eom.report(x, v).rank == 0


def test_contradicting_rows_are_reported():
    machine = Machine([rod("b")], [Joint("slide", Prismatic("x"), "world", "b")])
    pair = [
        Acceleration("push", lambda x, v, t: (ca.DM([[1.0]]), 1.0)),
        Acceleration("pull", lambda x, v, t: (ca.DM([[1.0]]), 3.0)),
    ]
    eom = Constrained(machine, pair)
    state = {"x": np.zeros(1), "v": np.zeros(1), "force": np.zeros(1)}
    assert np.allclose(value(eom, "forward", **state), 2.0)
    rank, residual = numbers(eom, "consistency", **state)
    assert (rank, np.isclose(residual, np.sqrt(2))) == (1, True)
    report = eom.report(state["x"], state["v"])
    assert report.contradicting == ("push", "pull")
    assert np.isclose(report.residual, np.sqrt(2))
    assert "contradicting: push, pull" in str(report)


# ---------------------------------------------------------------- singular mass, time, rolling


def test_massless_link_between_two_bodies():
    """A massless rod's own motion has no inertia; the loop that holds its end determines it."""
    bodies = [Body("slider", Moments.of_body(2.0, [0, 0, 0], np.eye(3))), Body("bare", None)]
    joints = [
        Joint("slide", Prismatic("x"), "world", "slider"),
        Joint("turn", Revolute("z"), "slider", "bare"),
    ]
    frames = [Frame("tip", "bare", at(1.0, 0)), Frame("rail", "world")]
    # The tip runs on the line x = 0: phi = x_slider + cos(turn).
    rail = Holonomic("rail", lambda x, t: x[0] + ca.cos(x[1]))
    machine = Machine(bodies, joints, frames, gravity=(3.0, 0, 0))
    eom = Constrained(machine, [rail])
    assert eom.semidefinite
    x = eom.project(np.array([-0.6, 0.8])).x
    v = eom.project(x, np.array([1.0, 0.0])).v
    state = {"x": x, "v": v, "force": np.zeros(2)}
    a = value(eom, "forward", **state)
    # Nothing acts on the massless rod, so its pin and the slider's motion are free of force.
    assert np.isclose(a[0], 3.0)
    assert np.isclose(a[0] - np.sin(x[1]) * a[1], np.cos(x[1]) * v[1] ** 2)
    assert np.allclose(value(eom, "constraint_force", **state), 0.0, atol=1e-12)
    for method in ("udwadia-kalaba", "gauss", "kkt"):
        found = eom.solve(x, v, state["force"], method=method)
        assert np.allclose(found.a, a)
        assert found.unique


def test_singular_mass_route_gives_the_same_where_mass_is_not_singular():
    rng = np.random.default_rng(7)
    machine, x = random_closed(rng)
    plain, forced = Constrained(machine), Constrained(machine, semidefinite=True)
    assert not plain.semidefinite
    x, v = closed_state(rng, plain, x)
    state = {"x": x, "v": v, "force": rng.normal(size=machine.nv)}
    for name in ("forward", "constraint_force", "multipliers", "joint_wrench"):
        assert relative_error(value(forced, name, **state), value(plain, name, **state)) < 1e-8


def test_driven_pendulum_takes_the_work_it_is_given():
    """Rheonomic: a driven angle; the constraint force is the motor, and its power counts."""
    machine = Machine([rod("b")], [Joint("pivot", Revolute("y"), "world", "b")])
    eom = Constrained(machine, [Holonomic("motor", lambda x, t: x[0] - ca.sin(2 * t))])
    t = 0.4
    x, v = np.array([np.sin(2 * t)]), np.array([2 * np.cos(2 * t)])
    state = {"x": x, "v": v, "force": np.zeros(1), "t": t}
    assert eom.functions["forward"].name_in() == ["x", "v", "force", "t"]
    assert np.isclose(value(eom, "forward", **state)[0], -4 * np.sin(2 * t))
    motor = value(eom, "constraint_force", **state)
    assert np.allclose(motor, value(eom, "inverse", x=x, v=v, a=np.array([-4 * np.sin(2 * t)])))
    assert np.isclose(value(eom, "power", **state), v @ motor)
    moved = eom.project(np.zeros(1), np.zeros(1), t)
    assert np.allclose([moved.x, moved.v], [x, v])
    speed = Constrained(machine, [Nonholonomic("speed", lambda x, v, t: v[0] - t)])
    assert speed.rheonomic  # in the velocity error alone
    assert np.allclose(value(speed, "projected_v", x=x, v=v, t=0.3), 0.3)


def test_skate_on_a_slope_in_closed_form():
    """Nonholonomic: a knife edge on an inclined plane moves along a cycloid [Neimark1972]."""
    body = Body("skate", Moments.of_body(1.0, [0, 0, 0], np.eye(3)))
    joints = [
        Joint("x", Prismatic("x"), "world", "a"),
        Joint("y", Prismatic("y"), "a", "b"),
        Joint("turn", Revolute("z"), "b", "skate"),
    ]
    machine = Machine([Body("a", None), Body("b", None), body], joints, gravity=(2.0, 0, 0))
    edge = Nonholonomic("edge", lambda x, v, t: ca.sin(x[2]) * v[0] - ca.cos(x[2]) * v[1])
    eom = Constrained(machine, [edge])
    # Turning at w from rest: speed along the edge u = (g / w) sin(w t).
    w, g, t = 1.5, 2.0, 0.7
    u = g / w * np.sin(w * t)
    x = np.array([g / (2 * w**2) * np.sin(w * t) ** 2, 0.0, w * t])
    v = np.array([u * np.cos(w * t), u * np.sin(w * t), w])
    a = value(eom, "forward", x=x, v=v, force=np.zeros(3))
    along, turning = g * np.cos(w * t), u * w
    expected = [
        along * np.cos(w * t) - turning * np.sin(w * t),
        along * np.sin(w * t) + turning * np.cos(w * t),
        0.0,
    ]
    assert np.allclose(a, expected)
    assert abs(v @ value(eom, "constraint_force", x=x, v=v, force=np.zeros(3))) < 1e-12


def test_stabilised_errors_decay_on_the_group():
    """A weld that starts 2 rad off is pulled closed, critically damped."""
    body = Body("b", Moments.of_body(1.0, [0.1, 0, 0], np.diag([1.0, 2.0, 2.5])))
    machine = Machine(
        [body],
        [Joint("free", Free(), "world", "b")],
        loops=[Loop("hold", "weld", "world", "b")],
        gravity=(0, 0, 0),
    )
    for error in ("group", "residual"):
        eom = Constrained(machine, stabilisation=Stabilisation.critical(4.0, error))
        x, v, h = machine.neutral(), np.zeros(6), 0.01
        x = machine.integrate(x, np.array([0.3, -0.2, 0.1, 1.2, -1.2, 1.0]))
        sizes = []
        for _ in range(400):
            v = v + h * value(eom, "forward", x=x, v=v, force=np.zeros(6))
            x = machine.integrate(x, h * v)
            sizes.append(np.linalg.norm(numbers(eom, "constraint", x=x, v=v)[2]))
        assert sizes[-1] < 1e-4 * sizes[0]


# ---------------------------------------------------------------- projection and assembly


def test_projection_is_the_nearest_in_the_metric_of_mass():
    rng = np.random.default_rng(9)
    machine, x = random_closed(rng)
    eom = Constrained(machine)
    x, _ = closed_state(rng, eom, x)
    v0 = rng.normal(size=machine.nv)
    v = eom.project(x, v0).v
    M, A = value(eom, "mass", x=x), numbers(eom, "constraint", x=x, v=v)[0]
    Z = np.eye(machine.nv) - np.linalg.pinv(A) @ A
    assert np.abs(Z @ M @ (v - v0)).max() < 1e-9 * np.abs(M).max()
    plain = eom.project(x, v0, weight="unit").v
    assert np.abs(Z @ (plain - v0)).max() < 1e-10
    # The compiled step is the same for velocities, and closes positions quadratically.
    assert np.allclose(value(eom, "projected_v", x=x, v=v0), v, atol=1e-9)
    near = machine.integrate(x, 1e-4 * rng.normal(size=machine.nv))
    for _ in range(3):
        near = value(eom, "projected_x", x=near)
    assert np.abs(numbers(eom, "constraint", x=near, v=0 * v)[2]).max() < 1e-12


def test_held_coordinates_stay():
    machine = n_four_bar(1)
    eom = Constrained(machine)
    x0, _ = four_bar_state(machine, 0.3, 0.0)
    x0[machine.x_slice["p0"]] += 0.2
    x = eom.project(x0, hold=["p0"]).x
    assert x[machine.x_slice["p0"]] == x0[machine.x_slice["p0"]]
    with pytest.raises(MachineError, match="`p9` is unknown"):
        eom.project(x0, hold=["p9"])
    with pytest.raises(MachineError, match='"mass" or "unit"'):
        eom.project(x0, weight="heavy")


def test_assembly_from_afar_and_what_cannot_be_assembled():
    machine = n_four_bar(2)
    eom = Constrained(machine)
    rng = np.random.default_rng(10)
    for _ in range(5):
        x = eom.assemble(rng.uniform(-3, 3, machine.nv))
        assert np.abs(numbers(eom, "constraint", x=x, v=0 * x)[2]).max() < 1e-10
    apart = replace(machine.joint("p1"), parent_pose=at(9.0, 0))
    joints = [apart if j.name == "p1" else j for j in machine.joints]
    with pytest.raises(ClosureError, match=r"cannot be met from here: `l0\[") as caught:
        Constrained(replace(machine, joints=joints)).assemble(tries=2)
    assert min(caught.value.errors.values()) > 0
