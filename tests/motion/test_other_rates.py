"""The same motion in rates of quaternions and of end frames: against closed forms and MuJoCo."""

import casadi as ca
import numpy as np
import pytest

from framefree.gallery.machines.dual_arm import six_joint_arm
from framefree.geometry import Moments
from framefree.machine import Body, Frame, Free, Joint, Machine, MachineError, Revolute
from framefree.motion.tree import Tree
from framefree.motion.tree.other_rates import TaskRates


def vehicle(joints=6):
    """A free base with an arm that can reach in all directions."""
    inertia = np.diag([0.3, 0.4, 0.5])
    bodies = [Body("hull", Moments.of_body(10.0, (0.02, 0, 0.1), inertia))]
    chain = [Joint("base", Free(), "world", "hull")]
    for i in range(joints):
        moments = Moments.of_body(1.0, (0.1, 0.01, 0), np.diag([0.002, 0.01, 0.012]))
        bodies.append(Body(f"link{i}", moments))
        place = (0.2, 0.03 * i, 0.01)
        axis = Revolute("zyxzyxz"[i])
        chain.append(Joint(f"joint{i}", axis, bodies[-2].name, f"link{i}", parent_pose=place))
    tip = Frame("tip", f"link{joints - 1}", (0.2, 0.05, 0))
    return Machine(bodies, chain, [tip], gravity=(0, 0, 0), name="vehicle")


def test_quaternion_rates_of_a_body_are_those_of_the_textbook():
    """Twice the energy of rotation is 4 q'^T G^T I G q', with body rate 2 G q'."""
    inertia = np.diag([0.3, 0.4, 0.5])
    body = Body("b", Moments.of_body(2.0, (0, 0, 0), inertia))
    machine = Machine([body], [Joint("free", Free(), "world", "b")])
    x = machine.random(np.random.default_rng(0))
    w, v = x[3], x[4:]
    cross = np.array([[0, -v[2], v[1]], [v[2], 0, -v[0]], [-v[1], v[0], 0]])
    G = np.hstack([-v[:, None], w * np.eye(3) - cross])
    M = Tree(machine).functions["mass:quaternion"](x).full()
    assert np.allclose(M[3:, 3:], 4 * G.T @ inertia @ G, atol=1e-13)
    assert np.allclose(M[:3, :3], 2 * np.eye(3), atol=1e-13)
    assert np.linalg.matrix_rank(M, tol=1e-10) == 6


def test_task_mass_is_the_operational_inertia_of_mujoco():
    mujoco = pytest.importorskip("mujoco")
    machine = six_joint_arm()
    model = mujoco.MjModel.from_xml_string(machine.to_mjcf())
    data = mujoco.MjData(model)
    frame = "gripper"
    layout = machine.layout("mujoco")
    x = machine.random(np.random.default_rng(1))
    data.qpos[:] = layout.x_to(x)
    mujoco.mj_forward(model, data)
    M = np.zeros((model.nv, model.nv))
    mujoco.mj_fullM(model, data, M)
    J = np.zeros((6, model.nv))
    G = Tree(machine).functions[f"frame_pose:{frame}"](x).full()
    body = model.body(machine.frame(frame).body).id
    mujoco.mj_jac(model, data, J[:3], J[3:], G[:3, 3], body)
    operational = np.linalg.inv(J @ np.linalg.solve(M, J.T))
    ours = Tree(machine).functions[f"mass:task:{frame}"](x).full()
    assert np.allclose(ours, operational, rtol=1e-8, atol=1e-10)


@pytest.mark.parametrize("task", ["task", "task_euler"])
@pytest.mark.parametrize("joints", [4, 6, 7])
def test_equations_hold_in_task_rates(task, joints):
    """M dw/dt + C w = Y^T f along a motion, with dw/dt from differences of w."""
    machine = vehicle(joints)
    tree, rng = Tree(machine), np.random.default_rng(joints)
    rates = TaskRates(tree, "tip", task == "task_euler")
    assert rates.rows == (6 if joints >= 6 else 3)
    Y = tree.functions[f"velocity_map:{task}:tip"]
    x, v, f = machine.random(rng), rng.normal(size=machine.nv), rng.normal(size=machine.nv)
    a = tree.functions["forward"](x, v, f).full().ravel()
    C = tree.functions[f"coriolis:{task}:tip"](x, v).full()
    M = tree.functions[f"mass:{task}:tip"](x).full()

    def w(at, velocity):
        return np.linalg.solve(Y(at).full(), velocity)

    h = 1e-4
    ahead, behind = (
        w(machine.integrate(x, s * h * v + h * h / 2 * a), v + s * h * a) for s in (1, -1)
    )
    rate = (ahead - behind) / (2 * h)
    left = M @ rate + C @ w(x, v)
    right = Y(x).full().T @ f
    assert np.abs(left - right).max() < 1e-5 * (np.abs(M @ rate).max() + np.abs(right).max())


def test_task_rates_are_those_of_base_and_end_frame():
    machine = vehicle(6)
    tree, rng = Tree(machine), np.random.default_rng(3)
    rates = TaskRates(tree, "tip", euler=True)
    x, v = machine.random(rng), rng.normal(size=machine.nv)
    W = ca.Function("W", [xs := ca.SX.sym("x", machine.nx)], [rates.rates(tree.at(xs))])(x).full()
    w = W @ v
    h = 1e-6

    def seen(s):
        moved = machine.integrate(x, s * h * v)
        G = tree.functions["frame_pose:tip"](moved).full()
        a, b, c, d = moved[3:7]
        roll = np.arctan2(2 * (a * b + c * d), 1 - 2 * (b * b + c * c))
        pitch = np.arcsin(2 * (a * c - b * d))
        yaw = np.arctan2(2 * (a * d + b * c), 1 - 2 * (c * c + d * d))
        return np.concatenate([moved[:3], [roll, pitch, yaw], G[:3, 3]]), G[:3, :3]

    (after, R_after), (before, R_before) = seen(1), seen(-1)
    assert np.allclose(w[:9], (after - before) / (2 * h), atol=1e-7)
    turned = (R_after - R_before) / (2 * h) @ seen(0)[1].T
    assert np.allclose(w[9:], [turned[2, 1], turned[0, 2], turned[1, 0]], atol=1e-7)
    assert np.allclose(W @ Tree(machine).functions["velocity_map:task_euler:tip"](x).full(),
                       np.eye(12), atol=1e-9)  # fmt: skip


def test_frames_that_too_few_joints_move_are_refused():
    machine = vehicle(6)
    with pytest.raises(MachineError, match="0 velocities beside its base that move"):
        Tree(machine).functions["mass:task:hull"]
    with pytest.raises(MachineError, match="nowhere"):
        Tree(machine).functions["mass:task:nowhere"]
