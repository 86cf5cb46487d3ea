"""Port laws of machines with loops: the reference velocity keeps them closed, V falls as stated."""

from dataclasses import replace

import casadi as ca
import numpy as np
import pytest
from port_formulas import dense
from random_machines import evaluate, random_pose, relative_error

import framefree as ff
from framefree.control.law import ControlError
from framefree.control.port import (
    Avoidance,
    EndEffectorControl,
    FrameGoal,
    PoseControl,
    Sphere,
    VelocityControl,
    VirtualPort,
    looped,
    misfits,
    require_feasible,
)
from framefree.control.references.bodies import BodyPoses
from framefree.control.references.frames import FramePath
from framefree.control.references.joints import Hold
from framefree.gallery.machines.chains import chain
from framefree.gallery.machines.classics import four_bars
from framefree.gallery.machines.dual_arm import CENTER, START_HELD, dual_arm_with_object
from framefree.gallery.machines.five_bar import five_bar, five_bar_at
from framefree.geometry import Moments, quaternion, se3, so3
from framefree.machine import Body, Coupling, Frame, Free, Joint, Loop, Wrench, motors
from framefree.motion.actuation import input_bias, input_matrix
from framefree.motion.tree import Tree

LAWS = ("velocity", "pose", "end")


def with_full_port(machine):
    ports = [Wrench(f"port_{b.name}", b.name, np.eye(6)) for b in machine.bodies]
    return replace(machine, actuators=tuple(ports))


def two_chains_and_object():
    """Two hanging chains, 0.8 m apart, whose last rods hold the two ends of one bar."""
    left = chain(2, held=True, port="none")
    base = np.eye(4)
    base[:3, 3] = 0.8, 0, 0
    both = left.merge(chain(2, held=True, port="none"), "right_", pose=base)
    bar = Moments.of_body(0.7, (0, 0, 0), np.diag([0.02, 0.04, 0.05]))
    grips = [Frame("grip_l", "bar", (-0.3, 0, 0)), Frame("grip_r", "bar", (0.3, 0, 0))]
    loops = [
        Loop("hold_l", "ball", "end", "grip_l"),
        Loop("hold_r", "ball", "right_end", "grip_r"),
    ]
    return both.attach(Body("bar", bar), Joint("bar", Free(), "world", "bar"), *grips, *loops)


MACHINES = {
    "five-bar": five_bar,
    "four-bar": lambda: four_bars(1),
    "two chains": two_chains_and_object,
}


def law_of(kind, machine, **options):
    if kind == "velocity":
        return VelocityControl(machine, damping=4.0, **options)
    if kind == "pose":
        return PoseControl(machine, damping=4.0, rate=2.0, **options)
    shapes = [Sphere((0.5, 0.3, 0.2), 0.1), Sphere((0.1, -0.4, -0.6), 0.1)]
    frame = "bar"
    if "bar" not in machine.body_index:
        frame = FrameGoal(machine.frames[-1].name, position="z", attitude="none", rate=2.0)
    return EndEffectorControl(
        machine,
        damping=4.0,
        frame=frame,
        rate=2.0,
        turn_rate=1.5,
        avoidance=Avoidance(shapes, reach=0.8, yields=0.0),
        **options,
    )


class ClosedLoop:
    """A law at random closed states, and the true rate of V by the constrained formulation."""

    def __init__(self, law):
        machine = self.machine = law.machine
        self.law, self.eom = law, ff.equations(machine, "constrained")
        x, v, a = (ca.SX.sym(*p) for p in (("x", machine.nx), ("v", machine.nv), ("a", machine.nv)))
        given, self.names = {}, law.needs
        for name in law.needs:
            given[name] = ca.SX.sym(name, *((4, 4) if name.endswith(".pose") else (6, 1)))
        found = law.control(ca.SX(0), x, v, given, ca.SX(0, 1))
        moving, speed = [x, v], [machine.rate_matrix(x) @ v, a]
        for name in law.needs:
            frame, _, what = name.rpartition(".")
            if what == "pose":
                moving.append(given[name])
                speed.append(given[name] @ se3.wed(given[f"{frame}.twist"]))
            elif what in ("twist", "velocity"):
                last = "acceleration" if what == "twist" else "velocity_rate"
                moving.append(given[name])
                speed.append(given[f"{frame}.{last}"])
        V, signals = found.signals["V"], found.signals
        slope = ca.jtimes(V, *(ca.vertcat(*map(ca.vec, one)) for one in (moving, speed)))
        tree = Tree(machine.tree).at(x, v)
        force = input_matrix(tree) @ found.u + input_bias(tree)
        symbols = [x, v, *given.values()]
        outputs = [V, signals["V_rate"], signals["s"], signals["unrealised"], force, found.u]
        self.function = ca.Function("law", symbols, outputs)
        self.slope = ca.Function("slope", [*symbols, a], [slope])

    def __call__(self, rng):
        machine, closed = self.machine, self.eom
        start = closed.assemble(self.start())
        x = machine.integrate(start, 0.3 * rng.normal(size=machine.nv))
        self.x = closed.project(x, weight="unit").x
        A = evaluate(closed.functions["constraint"], self.x, np.zeros(machine.nv))[0]
        _, sizes, Vt = np.linalg.svd(A)
        free = Vt[(sizes > 1e-9 * sizes.max()).sum() :]
        self.v = free.T @ rng.normal(size=len(free))
        self.given = {
            name: random_pose(rng) if name.endswith(".pose") else rng.normal(size=6)
            for name in self.names
        }
        numbers = [self.x, self.v, *self.given.values()]
        V, stated, s, missing, force, u = evaluate(self.function, *numbers)
        a = closed.forward(self.x, self.v, force.ravel())
        true = float(self.slope(*numbers, a))
        return V.item(), stated.item(), true, s, missing, u

    def start(self):
        machine = self.machine
        if machine.name == "five-bar":
            return five_bar_at(machine, (0.05, 0.45))
        if machine.name == "four-bars":
            return np.array([1 if n.startswith("pivot") else -1 for n in machine.x_names]) * 1.1
        return machine.integrate(machine.neutral(), 0.2 * np.arange(machine.nv) / machine.nv)


OFTEN = [("velocity", "five-bar"), ("pose", "four-bar"), ("end", "five-bar"), ("end", "two chains")]
ALL = [(kind, name) for kind in LAWS for name in MACHINES]


@pytest.mark.parametrize(
    ("kind", "name"),
    [one if one in OFTEN else pytest.param(*one, marks=pytest.mark.slow) for one in ALL],
)
def test_V_falls_as_stated_with_loops(kind, name):
    law = law_of(kind, with_full_port(MACHINES[name]()))
    loop = ClosedLoop(law)
    eom = ff.equations(law.machine, "maximal")
    for seed in range(2):
        V, stated, true, s, *_ = loop(np.random.default_rng(seed))
        assert V > 1e-3
        assert true == pytest.approx(stated, rel=1e-7)
        # What is left to the bodies keeps joints and loops together.
        x, nu = eom.functions["from_joints"](loop.x, loop.v)
        J = evaluate(eom.functions["constraint"], x, nu)[0]
        assert np.abs(J @ s.ravel()).max() < 1e-9 * np.abs(s).max()


@pytest.mark.parametrize("kind", [pytest.param("velocity", marks=pytest.mark.slow), "pose", "end"])
def test_reference_velocity_is_that_of_the_maximal_form(kind):
    law = law_of(kind, with_full_port(two_chains_and_object()))
    assert law.machine.bodies[-1].name == "bar"
    loop = ClosedLoop(law)
    *_, s, _, _ = loop(np.random.default_rng(3))
    nu, nu_r, _ = dense(law, loop)
    assert relative_error(nu - s.ravel(), nu_r) < (1e-6 if kind == "end" else 1e-9)


def test_motors_of_a_linkage_realise_the_port():
    machine = five_bar()
    assert VirtualPort(machine).exact
    assert VirtualPort(machine).model.v_names == ("left", "right")
    _, stated, true, _, missing, u = ClosedLoop(law_of("end", machine))(np.random.default_rng(1))
    assert missing.size == 2
    assert u.size == 2
    assert true == pytest.approx(stated, rel=1e-8)
    # One motor for two velocities: what it cannot give is told, and counted.
    single = replace(machine, actuators=machine.actuators[:1])
    assert not VirtualPort(single).exact
    _, stated, true, _, missing, _ = ClosedLoop(law_of("pose", single))(np.random.default_rng(1))
    assert np.abs(missing).max() > 1e-3
    assert true == pytest.approx(stated, rel=1e-8)


def test_rotors_and_other_independent_velocities_change_nothing_but_the_chart():
    machine = five_bar()
    joints = [replace(j, armature=0.05, damping=0.1) for j in machine.joints]
    machine = replace(machine, joints=joints, actuators=motors(joints))
    found = []
    for independent in (("left", "right"), ("left", "left_elbow")):
        loop = ClosedLoop(law_of("pose", machine, independent=independent))
        V, stated, true, s, *_ = loop(np.random.default_rng(4))
        assert true == pytest.approx(stated, rel=1e-8)
        found.append((V, stated, *s.ravel()))
    assert relative_error(*map(np.array, found)) < 1e-9


def test_couplings_are_loops_too():
    machine = four_bars(1).tree
    machine = machine.attach(Coupling("gear", "knee0", ("pivot0",), lambda q: -1.5 * q))
    loop = ClosedLoop(law_of("end", with_full_port(machine)))
    loop.start = machine.neutral
    _, stated, true, *_ = loop(np.random.default_rng(2))
    assert true == pytest.approx(stated, rel=1e-8)


def test_a_five_bar_carries_its_tip_along_a_path_by_two_motors():
    machine = five_bar(load=0.5)
    x0 = five_bar_at(machine, (0.0, 0.45))
    goal = FrameGoal("tip", position="xz", attitude="none", rate=8.0)
    law = EndEffectorControl(machine, damping=20.0, frame=goal)

    def path(t):
        G = ca.SX.eye(4)
        G[0, 3], G[2, 3] = 0.08 * ca.sin(3 * t), 0.45 + 0.06 * ca.sin(5 * t)
        return G

    reference = FramePath("tip", path)
    run = ff.simulate(machine, law, reference, x0=x0, duration=1.0, dt=1e-3)
    rate = np.gradient(run["V"], run.t, edge_order=2)
    inner = slice(5, -5)
    scale = np.abs(run["V_rate"]).max()
    assert np.abs(rate - run["V_rate"])[inner].max() < 2e-3 * scale
    tip = ff.equations(machine.tree, "tree").frame_pose(run.x, "tip")[:, [0, 2], 3]
    wanted = np.stack([0.08 * np.sin(3 * run.t), 0.45 + 0.06 * np.sin(5 * run.t)], 1)
    errors = np.linalg.norm(tip - wanted, axis=1)
    assert errors.max() > 1e-3  # it starts at rest
    assert errors[-100:].max() < 2e-4


@pytest.mark.slow
def test_two_arms_carry_what_they_hold_by_their_motors():
    machine = dual_arm_with_object()
    tree = ff.equations(machine.tree, "tree")
    held = tree.frame_pose(np.r_[START_HELD, 0, 0, 0, 1, 0, 0, 0], "link_7_l") @ CENTER
    wxyz = quaternion.from_rotation(ca.DM(held[:3, :3])).full().ravel()
    near = np.r_[START_HELD, held[:3, 3], wxyz]
    x0 = ff.equations(machine, "constrained").project(near, weight="unit").x
    first = np.asarray(tree.frame_pose(x0, "object"))

    def path(t):
        r = ca.vertcat(0.03 * ca.sin(2 * t), 0.05 * (1 - ca.cos(2 * t)), 0.02)
        R = so3.exp(ca.vertcat(0, 0, 0.1 * ca.sin(t))) @ ca.DM(first[:3, :3])
        return se3.pose(R, ca.DM(first[:3, 3]) + r)

    law = EndEffectorControl(machine, frame="object", damping=20.0, rate=6.0, turn_rate=6.0)
    run = ff.simulate(machine, law, FramePath("object", path), x0=x0, duration=2.0, dt=2e-3)
    rate = np.gradient(run["V"], run.t, edge_order=2)
    wrong = np.abs(rate - run["V_rate"])[3:-3].max()
    assert wrong < 2e-3 * np.abs(run["V_rate"]).max()
    assert np.diff(run["V"]).max() < 1e-15
    assert np.abs(run["unrealised"]).max() < 1e-8
    poses, wanted = tree.frame_pose(run.x, "object"), run["object.pose"]
    errors = np.linalg.norm((poses - wanted)[:, :3, 3], axis=1)
    assert errors[0] == pytest.approx(0.02)
    assert errors[-1] < 1e-6
    for side in "lr":
        hand, grip = (tree.frame_pose(run.x, f"{one}_{side}") for one in ("link_7", "object"))
        assert np.abs(hand - grip).max() < 1e-10


def test_references_that_open_a_loop_are_refused():
    machine = five_bar()
    x = five_bar_at(machine, (0.05, 0.45))
    good = BodyPoses(Hold(machine, x))
    require_feasible(machine, good, [0.0], tolerance=1e-8)
    bad = BodyPoses(Hold(machine, x + np.array([0, 0.1, 0, 0])))
    worst = misfits(machine, bad, [0.0])[0]
    assert worst.joint == "hub"
    assert worst.apart > 0.03
    with pytest.raises(ControlError, match=r"loop `hub`.*apart by"):
        require_feasible(machine, bad, [0.0])


def test_the_port_of_a_linkage_explains_a_motion():
    machine, rng = five_bar(), np.random.default_rng(9)
    port, closed = VirtualPort(machine), ff.equations(machine, "constrained")
    x = five_bar_at(machine, (0.05, 0.45))
    near = closed.project(x, rng.normal(size=machine.nv))
    u, push = rng.normal(size=machine.nu), rng.normal(size=machine.nv)
    B = evaluate(ff.equations(machine.tree).functions["input_matrix"], x)
    a = closed.forward(near.x, near.v, B @ u + push)
    symbol = ca.SX.sym("x", machine.nx)
    E = ca.Function("E", [symbol], [port.model.at(symbol, ca.SX(machine.nv, 1)).E])(near.x).full()
    assert E.shape == (machine.nv, 2)
    assert np.allclose(port.residual(near.x, near.v, a, u), E.T @ push, atol=1e-8)


def test_native_loops_over_bodies_are_for_trees():
    law = law_of("pose", with_full_port(five_bar()))
    with pytest.raises(ControlError, match="needs a tree of bodies"):
        looped(law, {})
    with pytest.raises(ControlError, match="2 velocities, and 6 are needed"):
        EndEffectorControl(five_bar(), frame="tip")
