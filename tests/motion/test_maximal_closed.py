"""Loops and couplings in the maximal formulation, against plain linear algebra on the open tree."""

from dataclasses import replace

import casadi as ca
import numpy as np
import pytest
from random_machines import evaluate, random_machine, random_moments, relative_error
from test_maximal_agreement import traced_together
from test_maximal_laws import outputs, rate_along

from framefree.geometry import Moments
from framefree.machine import (
    Body,
    Coupling,
    Fixed,
    Frame,
    Joint,
    Linear,
    Loop,
    Machine,
    Polynomial,
    Prismatic,
    Revolute,
    Universal,
)
from framefree.motion.maximal import Maximal
from framefree.motion.maximal.least_norm import least_norm
from framefree.motion.tree import Tree

KINDS = ("weld", "ball", "hinge", "slider", "distance")


def relative_pose(tree, x, a, b):
    """G_ab of two frames of the open tree."""
    G_a, G_b = (evaluate(tree.functions[f"frame_pose:{name}"], x) for name in (a, b))
    return np.linalg.inv(G_a) @ G_b


def closed_by(kind, name, a, b, G):
    """A loop of this kind that is closed where frame b has the pose G on frame a."""
    if kind == "distance":
        return Loop(name, kind, a, b, length=np.linalg.norm(G[:3, 3]))
    axis = {"axis": (1.0, 2.0, -1.0)} if kind in ("hinge", "slider") else {}
    return Loop(name, kind, a, b, rest=G, **axis)


def looped_machine(rng, kind):
    """A random tree of many joints, closed by one loop of this kind and by a distance."""
    while True:
        machine = random_machine(rng, bodies=6)
        if machine.nv >= 12:
            break
    tree = Tree(machine)
    x = machine.random(rng)
    pairs = (("f3", "f5"), ("f_world", "f4"))
    loops = [
        closed_by(which, f"loop{k}", a, b, relative_pose(tree, x, a, b))
        for k, (which, (a, b)) in enumerate(zip((kind, "distance"), pairs, strict=True))
    ]
    return replace(machine, loops=loops), x


def open_rows(machine, tree, x, v):
    """A and b of A a = b on the open tree, by differentiating residuals of loops and couplings."""
    xs, vs = ca.SX.sym("x", x.size), ca.SX.sym("v", v.size)
    parts = []
    for loop in machine.loops:
        G_a, G_b = (
            tree.functions[f"frame_pose:{name}"](xs) for name in (loop.frame_a, loop.frame_b)
        )
        parts.append(loop.residual(ca.inv(G_a) @ G_b))
    for coupling in machine.couplings:
        values = [xs[machine.x_names.index(name)] for name in coupling.coordinates]
        parts.append(values[0] - coupling.value(*values[1:]))
    rate = machine.rate_matrix(xs)
    A = ca.jacobian(ca.vertcat(*parts), xs) @ rate
    b = -ca.jtimes(A @ vs, xs, rate @ vs)
    return evaluate(ca.Function("rows", [xs, vs], [ca.densify(A), ca.densify(b)]), x, v)


def reference(machine, x, v, force):
    """Joint accelerations and multipliers: plain KKT of the open tree, least norm."""
    tree = Tree(replace(machine, loops=(), couplings=()))
    A, b = open_rows(machine, tree, x, v)
    M = evaluate(tree.functions["mass"], x)
    free = evaluate(tree.functions["forward"], x, v, force).ravel()
    S = A @ np.linalg.solve(M, A.T)
    mu = np.linalg.pinv(S, rcond=1e-11) @ (A @ free - b.ravel())
    return tree, A, free - np.linalg.solve(M, A.T @ mu), mu


def feasible(machine, x, rng):
    """Random joint rates that the loops and couplings allow."""
    v = rng.normal(size=machine.nv)
    tree = Tree(replace(machine, loops=(), couplings=()))
    A, _ = open_rows(machine, tree, x, v)
    return v - np.linalg.pinv(A, rcond=1e-10) @ (A @ v)


def compare(machine, x, rng):
    """Check accelerations, joint wrenches, multipliers and power against the reference."""
    v, force = feasible(machine, x, rng), rng.normal(size=machine.nv)
    tree, A, a, mu = reference(machine, x, v, force)
    eom = Maximal(machine)
    pose, twist = (one.ravel() for one in evaluate(eom.functions["from_joints"], x, v))
    names = ["forward", "joint_wrench", "loop_wrench", "kkt_multipliers", "constraint"]
    found = traced_together(eom, [*names, "power"])(x=pose, v=twist, joint_force=force)
    expected = evaluate(tree.functions["body_acceleration"], x, v, a)
    assert relative_error(found["forward"].reshape(-1, 6), expected) < 1e-9
    J, gamma = found["constraint"][:2]
    assert np.abs(J @ twist).max() < 1e-11
    assert np.abs(J @ found["forward"] - gamma).max() < 1e-9 * (1 + np.abs(expected).max())
    rank = eom.redundancy(pose).rank
    assert rank == len(eom.rows) - A.shape[0] + np.linalg.matrix_rank(A, tol=1e-9)
    # The loops' forces pull on the tree as further joint forces: A^T mu, taken off.
    rows = sum(loop.size for loop in machine.loops) + len(machine.couplings)
    assert relative_error(A.T @ found["kkt_multipliers"][-rows:], A.T @ mu) < 1e-8
    energy = rate_along(
        eom, lambda x, v: outputs(eom, "energy", x=x, v=v), pose, twist, found["forward"]
    )
    assert abs(energy.sum() - found["power"]) < 1e-9 * (1 + np.abs(energy).sum())
    return eom, (pose, twist, np.zeros(twist.size), force), found, mu


@pytest.mark.parametrize("kind", KINDS)
def test_loops_agree_with_the_kkt_system_of_the_open_tree(kind):
    rng = np.random.default_rng(KINDS.index(kind))
    machine, x = looped_machine(rng, kind)
    eom, state, found, mu = compare(machine, x, rng)
    assert relative_error(found["kkt_multipliers"][-len(mu) :], mu) < 1e-8
    # The loop's wrench is that of `a` on `b`: taking it as a port, the open tree moves alike.
    opened = Maximal(replace(machine, loops=()))
    pose, twist, _, force = state
    port = port_of_loops(machine, eom, pose, found["loop_wrench"])
    again = evaluate(opened.functions["forward:both"], pose, twist, port, force).ravel()
    assert relative_error(again, found["forward"]) < 1e-8
    wrench = evaluate(opened.functions["joint_wrench:both"], pose, twist, port, force)
    assert relative_error(found["joint_wrench"], wrench) < 1e-8


def port_of_loops(machine, eom, pose, wrenches):
    """Body wrenches of all loops: `wrench` on frame b, its reaction on frame a."""
    port = np.zeros(6 * len(machine.bodies))
    for loop, wrench in zip(machine.loops, wrenches, strict=True):
        J_a, J_b = (
            evaluate(eom.functions[f"jacobian:{name}"], pose)
            for name in (loop.frame_a, loop.frame_b)
        )
        G_a, G_b = (
            evaluate(eom.functions[f"frame_pose:{name}"], pose)
            for name in (loop.frame_a, loop.frame_b)
        )
        G = np.linalg.inv(G_b) @ G_a
        R, r = G[:3, :3], G[:3, 3]
        wed = np.array([[0, -r[2], r[1]], [r[2], 0, -r[0]], [-r[1], r[0], 0]])
        into_b = np.block([[R, wed @ R], [np.zeros((3, 3)), R]])
        port += J_b.T @ wrench - J_a.T @ into_b.T @ wrench
    return port


def test_couplings_agree_with_the_kkt_system_of_the_open_tree():
    rng = np.random.default_rng(7)
    kinds = [Revolute(rng.normal(size=3)) for _ in range(6)]
    kinds[3], kinds[5] = Prismatic("x"), Universal("x", (0.5, 1, 0))
    bodies = [Body(f"b{i}", random_moments(rng)) for i in range(len(kinds))]
    joints = [
        Joint(
            f"q{i}",
            kind,
            "world" if i == 0 else f"b{i - 1}",
            f"b{i}",
            parent_pose=(0.3, 0.1, 0),
            armature=0.2 * (i % 2),
            damping=0.1,
        )
        for i, kind in enumerate(kinds)
    ]
    couplings = [
        Coupling.mimic("mimic", "q1", "q0", 2.0, 0.1),
        Coupling("gear", "q4", ("q2", "q5.angle1"), Linear((0.5, -1.5))),
        Coupling("cam", "q3", "q5.angle2", Polynomial((0.1, 0.2, 0.3))),
    ]
    machine = Machine(bodies, joints, couplings=couplings)
    x = rng.uniform(-1, 1, 7)
    x[1] = 2 * x[0] + 0.1
    x[4] = 0.5 * x[2] - 1.5 * x[5]
    x[3] = 0.1 + 0.2 * x[6] + 0.3 * x[6] ** 2
    eom, state, _, _ = compare(machine, x, rng)
    report = eom.redundancy(state[0])
    assert report.unique
    assert eom.rows[-3:] == (("coupling", "mimic"), ("coupling", "gear"), ("coupling", "cam"))


def four_bar(kind="hinge"):
    """A planar parallelogram of hinges in space: its loop's rows are partly redundant."""
    bar = Moments.of_body(1.0, (0.5, 0, 0), np.diag([0.01, 0.1, 0.1]))
    bodies = [Body(name, bar) for name in ("crank", "coupler", "rocker")]
    joints = [
        Joint("j0", Revolute("y"), "world", "crank"),
        Joint("j1", Revolute("y"), "crank", "coupler", parent_pose=(1, 0, 0)),
        Joint("j2", Revolute("y"), "world", "rocker", parent_pose=(1, 0, 0)),
    ]
    frames = [Frame("end", "coupler", (1, 0, 0)), Frame("tip", "rocker", (1, 0, 0))]
    axis = {"axis": "y"} if kind == "hinge" else {}
    return Machine(bodies, joints, frames, loops=[Loop("close", kind, "end", "tip", **axis)])


@pytest.mark.parametrize(("kind", "rank"), [("hinge", 2), ("ball", 2)])
def test_redundant_four_bar_reports_what_is_not_unique(kind, rank):
    machine = four_bar(kind)
    rng = np.random.default_rng(0)
    x = np.array([0.7, -0.7, 0.7])
    eom, state, found, mu = compare(machine, x, rng)
    report = eom.redundancy(state[0])
    joint_rows, loop_rows = 15, machine.loops[0].size
    assert report.rows == joint_rows + loop_rows
    assert report.rank == joint_rows + rank
    assert not report.unique
    assert report.joints == ("j0", "j1", "j2")
    assert report.loops == ("close",)
    # Least norm among all multipliers that give this motion.
    assert relative_error(found["kkt_multipliers"][-loop_rows:], mu) < 1e-9
    # In the plane the forces are unique: those of the same linkage closed by two rows are equal.
    wrench = found["joint_wrench"]
    assert np.abs(wrench[:, [0, 2, 4]]).max() > 1
    assert np.abs(wrench[:, [1, 3, 5]]).max() < 1e-9


def test_linkage_through_a_dead_point_stays_finite():
    """Stretched out, the loop loses a rank; the answer is still the least-squares one."""
    machine = four_bar()
    x = np.zeros(3)
    eom = Maximal(machine)
    zero = np.zeros(3)
    pose, twist = (one.ravel() for one in evaluate(eom.functions["from_joints"], x, zero))
    a = evaluate(eom.functions["forward:both"], pose, twist, 0 * twist, zero)
    assert np.isfinite(a).all()
    assert eom.redundancy(pose).rank == 15 + 1
    _, _, expected, _ = reference(machine, x, zero, zero)
    J = evaluate(eom.functions["stacked_jacobian"], pose)
    assert relative_error(a.ravel(), J @ expected) < 1e-9


@pytest.mark.parametrize("rank", range(6))
def test_least_norm_is_the_pseudo_inverse(rank):
    """Of positive semidefinite matrices of every rank, rows of very different size included."""
    A, b = ca.SX.sym("A", 5, 5), ca.SX.sym("b", 5, 2)
    solve = ca.Function("solve", [A, b], list(least_norm(A, b)))
    rng = np.random.default_rng(rank)
    for scale in (np.ones(5), 10.0 ** np.array([2, -2, 0, 1, -1])):
        root = scale[:, None] * rng.normal(size=(5, rank))
        matrix, right = root @ root.T, rng.normal(size=(5, 2))
        right = matrix @ right  # what a consistent system has on its right
        found, count = evaluate(solve, matrix, right)
        assert count == rank
        expected = np.linalg.lstsq(root.T, np.linalg.pinv(root) @ right, rcond=None)[0]
        assert relative_error(found, expected) < 1e-8
        assert relative_error(matrix @ found, right) < 1e-13


def test_violation_tells_how_far_a_loop_is_open():
    machine = four_bar()
    eom = Maximal(machine)
    x = np.array([0.7, -0.7, 0.7 + 1e-3])
    pose, _ = evaluate(eom.functions["from_joints"], x, np.zeros(3))
    joints, loops = evaluate(eom.functions["violation"], pose)
    assert np.abs(joints).max() < 1e-14
    assert np.linalg.norm(loops[:3]) == pytest.approx(1e-3, rel=1e-6)


@pytest.mark.parametrize("kind", KINDS)
def test_loops_between_bodies_that_are_fixed_together_change_nothing(kind):
    """All their rows are redundant: nothing but rounding is left of their mobility."""
    rng = np.random.default_rng(7)
    bodies = [Body(name, random_moments(rng)) for name in ("a", "b", "c")]
    joints = [
        Joint("j", Revolute((0.6, 0.8, 0)), "world", "a", (0.3, -0.2, 0.5)),
        Joint("held", Fixed(), "a", "b", (0.1, 0.7, -0.4)),
        Joint("k", Revolute("y"), "b", "c", (0.2, 0.1, 0.3)),
    ]
    frames = [Frame("fa", "a", (0.5, 0.1, 0.2)), Frame("fb", "b", (-0.3, 0.4, 0.6))]
    tree = Machine(bodies, joints, frames)
    x, v, force = tree.random(rng), rng.normal(size=2), rng.normal(size=2)
    G = relative_pose(Tree(tree), x, "fa", "fb")
    eom = Maximal(replace(tree, loops=[closed_by(kind, "loop", "fa", "fb", G)]))
    pose, twist = (part.ravel() for part in evaluate(eom.functions["from_joints"], x, v))
    a = evaluate(eom.functions["forward:both"], pose, twist, 0 * twist, force).reshape(-1, 6)
    free = evaluate(Tree(tree).functions["forward"], x, v, force).ravel()
    expected = evaluate(Tree(tree).functions["body_acceleration"], x, v, free)
    assert relative_error(a, expected) < 1e-10
