"""Rows of four-bars in every formulation, against Pinocchio, MuJoCo and dense systems in NumPy.

Also through their flat positions, where rows lose rank. Work grows with the number of loops, not
with a power of it.
"""

from dataclasses import replace

import numpy as np
import pytest
from constrained_machines import four_bar_state, n_four_bar
from random_machines import relative_error

from framefree.benchmarks import loops
from framefree.gallery.machines.classics import four_bars
from framefree.machine import Body, Frame, Free, Joint, Loop, Machine, Revolute
from framefree.motion import equations


def somewhere():
    """A world frame in which no axis of a linkage is an axis of coordinates."""
    turn = np.linalg.qr(np.random.default_rng(0).normal(size=(3, 3)))[0]
    G = np.eye(4)
    G[:3, :3], G[:3, 3] = turn * np.linalg.det(turn), (0.3, -0.2, 0.5)
    return G


def dense(machine, x, v, force):
    """Joint accelerations from dense M and A of `constrained`, by singular values in NumPy."""
    return equations(machine, "constrained").solve(x, v, force).a


def agree(machine, x, v, tolerance=1e-9):
    """Compare all formulations that hold at a closed state with the dense system."""
    force = np.random.default_rng(1).normal(size=machine.nv)
    expected = dense(machine, x, v, force)
    closed = equations(machine, "constrained")
    a = closed.numbers("forward", x=x, v=v, force=force)[0]
    assert relative_error(a, expected) < tolerance
    maximal = equations(machine, "maximal")
    own = maximal.numbers("from_joints", joint_x=x, joint_v=v)
    state = {"x": own[0], "v": own[1], "joint_force": force}
    bodies = equations(machine.tree, "tree").numbers("body_acceleration", x=x, v=v, a=expected)[0]
    found = maximal.numbers("forward:joint_force", **state)[0]
    assert relative_error(found.reshape(-1, 6), bodies) < tolerance
    return expected, force


@pytest.mark.parametrize("world", [None, somewhere()], ids=["aligned", "turned"])
@pytest.mark.parametrize("kind", ["hinge", "ball"])
def test_formulations_agree_on_a_row_of_loops(world, kind):
    machine = n_four_bar(5, kind, world)
    x, v = four_bar_state(machine, 0.6, 1.3)
    expected, force = agree(machine, x, v)
    embedded = equations(machine, "embedded", start=x)
    assert embedded.sizes["v"] == 1
    place = list(embedded.map.independent)
    a = embedded.numbers("forward:joint_force", x=x, v=v[place], joint_force=force)[0]
    assert relative_error(a, expected[place]) < 1e-9


@pytest.mark.parametrize("world", [None, somewhere()], ids=["aligned", "turned"])
def test_flat_rows_have_the_acceleration_of_least_curvature(world):
    """All rods on one line: half of the rows that count are lost at once."""
    machine = n_four_bar(4, "hinge", world)
    x, v = four_bar_state(machine, np.pi / 2, 0.0)
    agree(machine, x, v, tolerance=1e-8)
    _, v = four_bar_state(machine, np.pi / 2, 1.0)
    force = np.ones(machine.nv)
    eom = equations(machine, "constrained")
    assert eom.numbers("consistency", x=x, v=v, force=force)[0] == 4
    a = eom.numbers("forward", x=x, v=v, force=force)[0]
    assert relative_error(a, dense(machine, x, v, force)) < 1e-8


@pytest.mark.parametrize("angle", [1e-2, 1e-4, 1e-6])
def test_rows_hold_just_beside_flat_positions(angle):
    """The motion is that of one freedom: all cranks turn alike, whatever is small."""
    machine = n_four_bar(6)
    x, v = four_bar_state(machine, np.pi / 2 - angle, 1.0)
    force = np.zeros(machine.nv)
    eom = equations(machine, "constrained")
    a = eom.numbers("forward", x=x, v=v, force=force)[0]
    # One rod of a parallelogram: 7 cranks of 1/3 and 6 levels of 1 kg m^2, weight on all of them.
    inertia, moment = 7 / 3 + 6, 9.81 * (7 / 2 + 6)
    crank = -moment * np.cos(angle) / inertia
    signs = np.array([1.0 if name[0] == "p" else -1.0 for name in machine.v_names])
    assert np.abs(a * signs - crank).max() < 1e-9 / angle


@pytest.mark.parametrize("name", ["lcaba", "constraintDynamics", "mujoco"])
def test_peers_of_the_benchmark_compute_the_same(name):
    """MuJoCo's constraints are soft, and lcaba stops iterating: they agree as far as they go."""
    pytest.importorskip("pinocchio")
    pytest.importorskip("mujoco")
    machine = four_bars(4)
    peer = loops.peers(machine)[name]
    eom = equations(machine, "constrained")
    tolerance = {"lcaba": 1e-4, "constraintDynamics": 1e-10, "mujoco": 2e-3}[name]
    for state in loops.closed_states(machine, 5):
        x, v, force = state
        a = eom.numbers("forward", x=x, v=v, force=force)[0]
        assert relative_error(peer(state), a) < tolerance


# ------------------------------------------------ work


def work(machine, formulation, quantity="forward"):
    return equations(machine, formulation).functions[quantity].n_instructions()


@pytest.mark.parametrize("formulation", ["constrained", "maximal", "embedded"])
def test_work_is_linear_in_the_number_of_loops(formulation):
    few, some, many = (work(n_four_bar(n), formulation) for n in (3, 5, 9))
    assert many - some < 1.25 * 2 * (some - few)


@pytest.mark.parametrize("quantity", ["projected_x", "projected_v", "multipliers", "loop_wrench"])
def test_work_of_other_quantities_is_linear_too(quantity):
    few, some, many = (work(n_four_bar(n), "constrained", quantity) for n in (3, 5, 9))
    assert many - some < 1.25 * 2 * (some - few)


def walker(legs):
    """A free trunk with a planar linkage on each leg, and another at its end."""
    rod = n_four_bar(1).bodies[0].moments
    bodies, joints = [Body("trunk", rod)], [Joint("base", Free(), "world", "trunk")]
    frames, closing = [], []
    for i in range(legs):
        parent, place = "trunk", (0.2 * i, 0.5, 0)
        for k in "ab":
            crank, bar, rocker = (f"{part}{k}{i}" for part in ("crank", "bar", "rocker"))
            bodies += [Body(name, rod) for name in (crank, bar, rocker)]
            x, y, _ = place
            joints += [
                Joint(f"p{k}{i}", Revolute("z"), parent, crank, parent_pose=place),
                Joint(f"q{k}{i}", Revolute("z"), crank, bar, parent_pose=(1, 0, 0)),
                Joint(f"r{k}{i}", Revolute("z"), parent, rocker, parent_pose=(x + 1, y, 0)),
            ]
            frames += [Frame(f"end{k}{i}", bar, (1, 0, 0)), Frame(f"top{k}{i}", rocker, (1, 0, 0))]
            closing.append(Loop(f"l{k}{i}", "hinge", f"top{k}{i}", f"end{k}{i}", axis="z"))
            parent, place = bar, (0.0, 0.3, 0)
    return Machine(bodies, joints, frames, loops=closing)


def walking(machine):
    """A closed state of `walker` with every linkage at an angle of its own."""
    rng = np.random.default_rng(2)
    x, v = machine.random(rng), rng.normal(size=machine.nv)
    for joint in machine.joints[1:]:
        turn, rate = rng.uniform(0.5, 1.0), rng.normal()
        if joint.name[0] == "p":
            names = (joint.name, f"q{joint.name[1:]}", f"r{joint.name[1:]}")
            for name, sign in zip(names, (1, -1, 1), strict=True):
                x[machine.x_slice[name]], v[machine.v_slice[name]] = sign * turn, sign * rate
    return x, v


def test_linkages_on_legs_of_a_free_trunk():
    """Carried by what moves freely, and one by the other."""
    machine = walker(2)
    agree(machine, *walking(machine))


def test_work_is_linear_in_the_number_of_legs():
    few, some, many = (work(walker(n), "constrained") for n in (1, 2, 4))
    assert many - some < 1.1 * 2 * (some - few)


def test_batches_lanes_and_single_states_have_the_same_bits():
    machine = four_bars(3)
    kernel = equations(machine, "constrained").kernel("forward")
    batch = [np.array(part) for part in zip(*loops.closed_states(machine, 13), strict=True)]
    whole = kernel(*batch)
    assert (whole == kernel(*batch, threads=2)).all()
    for k in range(13):
        assert (kernel(*(part[k].copy() for part in batch)) == whole[k]).all()


def test_a_massless_bar_is_carried_by_its_loops():
    """M is singular then: without its mass the bar only hands on what pulls at its ends."""
    machine = n_four_bar(3)
    massless = replace(
        machine, bodies=[Body(b.name, None) if b.name[0] == "h" else b for b in machine.bodies]
    )
    x, v = four_bar_state(machine, 0.6, 1.3)
    eom = equations(massless, "constrained")
    a = eom.numbers("forward", x=x, v=v, force=np.zeros(machine.nv))[0]
    signs = np.array([1.0 if name[0] == "p" else -1.0 for name in machine.v_names])
    crank = -9.81 / 2 * 4 * np.sin(0.6) / (4 / 3)
    assert np.abs(np.abs(a) - np.abs(crank)).max() < 1e-9
    assert np.abs(a - a[0] * signs).max() < 1e-9
