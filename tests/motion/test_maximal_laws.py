"""Laws of the maximal formulation: its KKT system, projections, constraints, and invariance."""

from dataclasses import replace
from types import SimpleNamespace

import casadi as ca
import numpy as np
import pytest
from random_machines import evaluate, random_machine, random_pose, random_state, relative_error
from test_maximal_agreement import geared_machine, traced_together

from framefree.geometry import Moments, quaternion
from framefree.machine import Body, Joint, Machine, Spherical
from framefree.motion.maximal import Maximal


def heavy_machine(rng):
    """A machine in which every body has mass: the Schur complement needs its inverse."""
    return random_machine(rng, massless=False)


MACHINES = [(heavy_machine, seed) for seed in (30, 31, 33, 35)] + [(geared_machine, 9)]


NAMES = (
    *(
        "forward",
        "joint_wrench",
        "kkt",
        "kkt_multipliers",
        "power",
        "known_force",
        "motors",
        "bias",
    ),
    *("mass", "coriolis", "constraint"),
    *("projector", "mobility", "project", "respond", "stacked_jacobian", "schur"),
)


@pytest.fixture(scope="module", params=MACHINES, ids=lambda p: f"{p[0].__name__}{p[1]}")
def case(request):
    make, seed = request.param
    rng = np.random.default_rng(seed)
    machine = make(rng)
    eom = Maximal(machine)
    x, v, motors = random_state(rng, machine)
    pose, twist = (a.ravel() for a in evaluate(eom.functions["from_joints"], x, v))
    port = rng.normal(size=twist.size)
    found = traced_together(eom, NAMES)(x=pose, v=twist, force=port, joint_force=motors)
    return SimpleNamespace(
        eom=eom, machine=machine, state=(pose, twist, port, motors), a=found["forward"], **found
    )


def rate_along(eom, trace, pose, twist, a=None):
    """d/dt of an expression of (x, v) along the motion, by the chain rule of the graph."""
    xs, vs = ca.SX.sym("x", pose.size), ca.SX.sym("v", twist.size)
    value = ca.vertcat(*(ca.vec(ca.densify(ca.SX(part))) for part in trace(xs, vs)))
    rate = ca.jtimes(value, xs, eom.rate_matrix(xs) @ vs)
    if a is not None:
        rate += ca.jtimes(value, vs, ca.DM(a))
    return evaluate(ca.Function("rate", [xs, vs], [rate]), pose, twist).ravel()


def outputs(eom, name, **symbols):
    return [output.value for output in eom.quantity(name).trace(**symbols).values()]


def test_solution_satisfies_the_dense_kkt_system(case):
    matrix, right = case.kkt
    assert relative_error(matrix, matrix.T) < 1e-12
    expected = np.linalg.solve(matrix, right)
    n, m = case.a.size, case.kkt_multipliers.size
    assert relative_error(case.a, expected[:n]) < 1e-10
    assert relative_error(case.kkt_multipliers, expected[n : n + m]) < 1e-10


def test_port_form_balances(case):
    _, _, port, motors = case.state
    known = sum(case.known_force)
    left = case.mass @ case.a + case.constraint[0].T @ case.kkt_multipliers - known
    assert relative_error(left, port + case.motors @ motors) < 1e-9
    assert relative_error(case.bias, -known) < 1e-10


def test_constraints_hold_and_differentiate(case):
    eom, (pose, twist, _, _), a = case.eom, case.state, case.a
    J, gamma = case.constraint[0], case.constraint[1]
    assert np.abs(J @ twist).max(initial=0) < 1e-12
    assert np.abs(J @ a - gamma).max(initial=0) < 1e-10 * (1 + np.abs(a).max())
    # gamma = -(dJ/dt) nu
    turning = rate_along(
        eom, lambda x, v: [outputs(eom, "constraint", x=x, v=v)[0] @ ca.DM(twist)], pose, twist
    )
    assert np.abs(gamma + turning).max(initial=0) < 1e-10 * (1 + np.abs(gamma).max(initial=0))


def test_mass_rate_minus_twice_coriolis_is_skew(case):
    eom, (pose, twist, _, _), C = case.eom, case.state, case.coriolis
    M_dot = rate_along(eom, lambda x, v: outputs(eom, "mass", x=x), pose, twist).reshape(C.shape)
    assert np.abs(C + C.T - M_dot).max() < 1e-10 * (1 + np.abs(C).max())


def test_coriolis_gives_the_gyroscopic_force(case):
    if case.machine.fluid is not None:
        pytest.skip("in a current C v is not the whole bias")
    assert relative_error(-case.coriolis @ case.state[1], case.known_force[1]) < 1e-10


def test_projector_and_mobility(case):
    M, J, P, T = case.mass, case.constraint[0], case.projector, case.stacked_jacobian
    inner = np.linalg.inv(T.T @ M @ T) if T.shape[1] else np.zeros((0, 0))
    assert relative_error(case.mobility, T @ inner @ T.T) < 1e-10
    assert relative_error(P, T @ inner @ T.T @ M) < 1e-10
    assert np.abs(J @ P).max(initial=0) < 1e-11
    assert relative_error(P @ P, P) < 1e-10
    assert relative_error(case.respond, case.mobility @ case.state[2]) < 1e-10
    assert relative_error(case.project, case.state[1]) < 1e-10


def test_schur_complement_gives_the_mobility(case):
    J, S = case.constraint[0], case.schur
    bodies = np.asarray(ca.DM(ca.diagcat(*case.eom.model.inertias)).full())
    if S.shape[0] > J.shape[0]:  # rows of rotors
        geared = np.flatnonzero(np.concatenate([j.armature for j in case.machine.joints]))
        J = np.vstack([J, case.motors.T[geared]])
    inverse = np.linalg.inv(bodies)
    Phi = inverse - inverse @ J.T @ np.linalg.solve(S, J @ inverse)
    assert relative_error(case.mobility, Phi) < 1e-9


def test_schur_complement_is_sparse_along_the_graph():
    machine = hanging_chain(6)
    eom = Maximal(machine)
    pose, _ = evaluate(eom.functions["from_joints"], machine.neutral(), np.zeros(machine.nv))
    S = evaluate(eom.functions["schur"], pose)
    blocks = np.abs(S.reshape(6, 3, 6, 3)).max(axis=(1, 3)) > 0
    assert np.array_equal(blocks, np.abs(np.subtract.outer(range(6), range(6))) <= 1)


def test_energy_changes_by_the_power(case):
    eom = case.eom
    rates = rate_along(eom, lambda x, v: outputs(eom, "energy", x=x, v=v), *case.state[:2], case.a)
    assert abs(rates.sum() - case.power) < 1e-9 * (1 + np.abs(rates).sum())


def test_momentum_changes_by_external_wrenches():
    """Weight and port alone act on free bodies tied to one another, each with its moment."""
    rng = np.random.default_rng(5)
    machine = geared_machine(rng)
    joints = [replace(machine.joints[0], damping=0.0), *machine.joints[1:]]
    joints = [replace(joint, armature=0.0) for joint in joints]
    machine = replace(machine, joints=joints)
    eom = Maximal(machine)
    x, v, motors = random_state(rng, machine)
    motors[:6] = 0
    pose, twist = (a.ravel() for a in evaluate(eom.functions["from_joints"], x, v))
    port = rng.normal(size=twist.size)
    a = evaluate(eom.functions["forward:both"], pose, twist, port, motors).ravel()
    rate = rate_along(eom, lambda x, v: outputs(eom, "momentum", x=x, v=v), pose, twist, a)
    expected = np.zeros(6)
    poses = evaluate(eom.functions["body_pose"], pose).reshape(-1, 4, 4)
    for body, G, wrench in zip(machine.bodies, poses, port.reshape(-1, 6), strict=True):
        R, r = G[:3, :3], G[:3, 3]
        weight = body.moments.total * machine.gravity
        expected[:3] += R @ wrench[:3] + weight
        expected[3:] += R @ wrench[3:] + np.cross(r, R @ wrench[:3])
        expected[3:] += np.cross(r + R @ body.moments.center, weight)
    assert relative_error(rate[:6], expected) < 1e-9


def hanging_chain(n, mass=2.0):
    inertia = Moments.of_body(mass, (0, 0, -0.5), 0.1 * np.eye(3))
    bodies = [Body(f"b{i}", inertia) for i in range(n)]
    joints = [
        Joint(
            f"j{i}",
            Spherical(),
            "world" if i == 0 else f"b{i - 1}",
            f"b{i}",
            parent_pose=(0, 0, 0.0 if i == 0 else -1.0),
        )
        for i in range(n)
    ]
    return Machine(bodies, joints)


def test_joints_of_a_hanging_chain_carry_the_weights():
    """The parent pulls the child up; lam, what the child does to the parent, pulls down."""
    n, mass = 5, 2.0
    machine = hanging_chain(n, mass)
    eom = Maximal(machine)
    rest = np.zeros(machine.nv)
    pose, twist = (
        a.ravel() for a in evaluate(eom.functions["from_joints"], machine.neutral(), rest)
    )
    state = (pose, twist, np.zeros(6 * n), rest)
    expected = np.zeros((n, 6))
    expected[:, 2] = mass * 9.81 * np.arange(n, 0, -1)
    np.testing.assert_allclose(
        evaluate(eom.functions["joint_wrench:both"], *state), expected, atol=1e-12
    )
    lam = evaluate(eom.functions["kkt_multipliers"], *state).reshape(n, 3)
    np.testing.assert_allclose(lam, -expected[:, :3], atol=1e-12)
    np.testing.assert_allclose(evaluate(eom.functions["forward:both"], *state), 0, atol=1e-12)


def test_moving_the_world_frame_changes_nothing(case):
    pose, twist, port, motors = case.state
    G = random_pose(np.random.default_rng(3))
    moved = traced_together(Maximal(_in_world(case.machine, G)), ["forward", "joint_wrench"])
    pose = _moved(pose, G, len(case.machine.bodies))
    found = moved(x=pose, v=twist, force=port, joint_force=motors)
    assert relative_error(found["forward"].ravel(), case.a) < 1e-9
    assert relative_error(found["joint_wrench"], case.joint_wrench) < 1e-9


def test_moving_body_frames_changes_the_description_only(case):
    pose, twist, port, motors = case.state
    rng = np.random.default_rng(4)
    machine = case.machine
    frames = [random_pose(rng) for _ in machine.bodies]  # old body frame seen from the new one
    other = traced_together(Maximal(_with_frames(machine, frames)), ["forward", "joint_wrench"])
    new_pose = pose.copy()
    for i, F in enumerate(frames):
        new_pose[7 * i : 7 * i + 7] = _seven(_four(pose[7 * i : 7 * i + 7]) @ np.linalg.inv(F))
    adjoint = [_adjoint(F) for F in frames]
    found = other(
        x=new_pose,
        v=_each(adjoint, twist),
        force=_each([np.linalg.inv(X).T for X in adjoint], port),
        joint_force=motors,
    )
    assert relative_error(found["forward"].ravel(), _each(adjoint, case.a)) < 1e-9
    assert relative_error(found["joint_wrench"], case.joint_wrench) < 1e-9


def test_stabilisation_pulls_joints_together():
    machine = hanging_chain(3)
    eom = Maximal(machine, stabilisation=10.0)
    rest = np.zeros(machine.nv)
    pose, twist = (
        a.ravel() for a in evaluate(eom.functions["from_joints"], machine.neutral(), rest)
    )
    pose[7 * 2] += 1e-3  # the last body stands 1 mm aside
    twist[6 * 2] = 1e-2
    state = pose, twist, np.zeros(18), rest
    a = evaluate(eom.functions["forward:both"], *state).reshape(3, 6)
    J = evaluate(eom.functions["constraint"], pose, 0 * twist)[0]
    along = (J @ a.ravel()).reshape(3, 3)[2]
    np.testing.assert_allclose(along, [-2 * 10 * 1e-2 - 100 * 1e-3, 0, 0], atol=1e-9)


def _in_world(machine, G):
    """The same machine with everything moved by G in the world."""
    R = G[:3, :3]
    joints = [
        replace(j, parent_pose=G @ j.parent_pose) if j.parent == "world" else j
        for j in machine.joints
    ]
    frames = [replace(f, pose=G @ f.pose) if f.body == "world" else f for f in machine.frames]
    fluid = machine.fluid
    fluid = None if fluid is None else replace(fluid, current=R @ fluid.current)
    return replace(machine, joints=joints, frames=frames, fluid=fluid, gravity=R @ machine.gravity)


def _with_frames(machine, poses):
    """The same machine, each body described in another frame: poses of the old in the new one."""
    index = machine.body_index
    bodies = [
        replace(body, inertia=body.moments.moved(F))
        for body, F in zip(machine.bodies, poses, strict=True)
    ]
    poses = [*poses, np.eye(4)]  # the world, index -1
    joints = [
        replace(
            joint,
            parent_pose=poses[index[joint.parent]] @ joint.parent_pose,
            child_pose=poses[index[joint.child]] @ joint.child_pose,
        )
        for joint in machine.joints
    ]
    frames = [replace(f, pose=poses[index[f.body]] @ f.pose) for f in machine.frames]
    return replace(machine, bodies=bodies, joints=joints, frames=frames)


def _moved(pose, G, bodies):
    moved = pose.copy()
    for i in range(bodies):
        moved[7 * i : 7 * i + 7] = _seven(G @ _four(pose[7 * i : 7 * i + 7]))
    return moved


def _four(seven):
    w, x, y, z = seven[3:]
    G = np.eye(4)
    G[:3, :3] = [
        [1 - 2 * (y * y + z * z), 2 * (x * y - w * z), 2 * (x * z + w * y)],
        [2 * (x * y + w * z), 1 - 2 * (x * x + z * z), 2 * (y * z - w * x)],
        [2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y)],
    ]
    G[:3, 3] = seven[:3]
    return G


def _seven(G):
    wxyz = np.asarray(quaternion.from_rotation(G[:3, :3])).ravel()
    return np.concatenate([G[:3, 3], wxyz])


def _adjoint(G):
    R, r = G[:3, :3], G[:3, 3]
    wed = np.array([[0, -r[2], r[1]], [r[2], 0, -r[0]], [-r[1], r[0], 0]])
    return np.block([[R, wed @ R], [np.zeros((3, 3)), R]])


def _each(matrices, stacked):
    return np.concatenate(
        [X @ part for X, part in zip(matrices, stacked.reshape(-1, 6), strict=True)]
    )
