"""Flat references of machines other than one free body: their inputs are exact."""

import casadi as ca
import numpy as np
import pytest

from framefree.control.law import ControlError
from framefree.control.prototype import PrototypeControl
from framefree.control.prototype.feasible import feasibility
from framefree.control.references.flat import FlatReference
from framefree.control.references.flat_curves import CircleCurve, ConstantCurve, Curve, Moves
from framefree.control.references.flat_plane import PlanarFlatReference
from framefree.control.references.slung import SlungLoadReference
from framefree.control.references.thrust import center_of_mass
from framefree.gallery.machines.multicopter_load import OSCILLATION, quadcopter_and_load
from framefree.gallery.machines.planar import UPRIGHT, pvtol
from framefree.gallery.machines.scara import scara
from framefree.geometry import Moments
from framefree.machine import (
    Body,
    Frame,
    Free,
    Joint,
    JointForce,
    Machine,
    Planar,
    Propeller,
    Revolute,
    Universal,
)
from framefree.motion import equations
from framefree.motion.actuation import input_matrix
from framefree.simulate import simulate

WAY = Moves((0.0, 0.0, 1.0), ((0.2, 1.5, (0.8, -0.5, 1.4)),))
CIRCLE = CircleCurve((0, 0, 1), (0.7, 0, 0.1), (0, 0.5, 0.2), 2.0)


class Sway(Curve):
    """Angles of two joints that swing."""

    def __init__(self, size):
        self.size = size

    def at(self, t):
        return ca.vertcat(self.size * ca.sin(3 * t))


def turned_pose(rotation, place=(0, 0, 0)):
    pose = np.eye(4)
    pose[:3, :3], pose[:3, 3] = rotation, place
    return pose


def hexacopter(arm=(), axis=(0.0, 0.0, 1.0), center=(0.0, 0.0, 0.0), base=None):
    """Six propellers that push along an axis, and an arm of links below with the given lengths."""
    axis = np.asarray(axis, float)
    across = np.linalg.svd(axis[None])[2][1:]
    bodies = [Body("body", Moments.of_body(2.0, center, np.diag([0.03, 0.04, 0.05])))]
    joints = [Joint("base", Free(), "world", "body", parent_pose=base)]
    frames, actuators = [], []
    for k in range(6):
        angle = k * np.pi / 3
        place = 0.3 * (np.cos(angle) * across[0] + np.sin(angle) * across[1])
        frames.append(Frame(f"r{k}", "body", tuple(place)))
        actuators.append(Propeller(f"p{k}", f"r{k}", tuple(axis), 0.02, (-1) ** k, upper=15.0))
    parent, start = "body", (0.02, 0.0, -0.05)
    for k, length in enumerate(arm):
        moments = Moments.of_body(0.3, (0, 0, -length / 2), np.diag([2e-3, 2e-3, 1e-4]))
        bodies.append(Body(f"link{k}", moments))
        kind = Revolute("y" if k % 2 == 0 else "x")
        joints.append(Joint(f"joint{k}", kind, parent, f"link{k}", parent_pose=start))
        actuators.append(JointForce(f"motor{k}", f"joint{k}"))
        parent, start = f"link{k}", (0.0, 0.0, -length)
    return Machine(
        tuple(bodies), tuple(joints), tuple(frames), actuators=tuple(actuators), name="hexacopter"
    )


def with_rod(inertia=0.0, place=(0.0, 0.0, 0.0), across=0.002):
    """A hexacopter with a load on a universal joint."""
    craft = hexacopter()
    moments = Moments.of_body(0.4, (0, 0, -0.6), np.diag([0.002, across, inertia]))
    return craft.attach(
        Body("load", moments), Joint("hook", Universal("x", "y"), "body", "load", parent_pose=place)
    )


def planar_copter():
    """Two parallel propellers in a vertical plane, the center of mass not between them."""
    return Machine(
        (Body("body", Moments.of_body(1.2, (0.03, -0.02, 0), np.diag([0.01, 0.01, 0.02]))),),
        (Joint("plane", Planar("z"), "world", "body", parent_pose=UPRIGHT),),
        (Frame("left", "body", (-0.2, 0.05, 0)), Frame("right", "body", (0.25, 0.05, 0))),
        actuators=tuple(Propeller(f"p_{side}", side, "y") for side in ("left", "right")),
        name="planar copter",
    )


TURNED = turned_pose([[0, 0, 1], [1, 0, 0], [0, 1, 0]], (0.3, -0.2, 0.1))

CASES = {
    "arm held still": lambda: FlatReference(hexacopter((0.3, 0.2)), WAY, 0.3),
    "arm that swings": lambda: FlatReference(
        hexacopter((0.3, 0.2)),
        CIRCLE,
        Moves(0.0, ((0.0, 2.0, 1.0),)),
        joints={"joint0": Sway(0.7), "joint1": Sway(-0.4)},
    ),
    "thrust along another axis": lambda: FlatReference(
        hexacopter((0.3,), (0.6, 0.0, 0.8), (0.01, 0.02, -0.03)), WAY
    ),
    "thrust downwards in the body": lambda: FlatReference(hexacopter(axis=(0, 0, -1)), CIRCLE),
    "a joint frame that is turned": lambda: FlatReference(hexacopter((0.2,), base=TURNED), WAY),
    "load on a ball joint in a plane": lambda: SlungLoadReference(
        quadcopter_and_load(), Moves((0, 0, 1), ((0.2, 1.5, (0.8, 0, 1.3)),))
    ),
    "load on a universal joint": lambda: SlungLoadReference(with_rod(), CIRCLE, 0.4),
    "load below arms": lambda: SlungLoadReference(
        with_rod().attach(
            Body("arm", Moments.of_body(0.2, (0, 0, 0), np.diag([1e-3, 1e-3, 1e-3]))),
            Joint("turn", Revolute("y"), "body", "arm"),
            JointForce("motor", "turn"),
        ),
        WAY,
        joints={"turn": 0.5},
    ),
    "inclined propellers": lambda: PlanarFlatReference(
        pvtol(), Moves((0, 1), ((0.2, 1.5, (1.0, 1.5)),))
    ),
    "parallel propellers": lambda: PlanarFlatReference(
        planar_copter(), Moves((0, 1), ((0.2, 1.5, (1.0, 1.5)),))
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_inputs_give_the_reference_exactly(name):
    """By inverse dynamics: no force lacks, though there are fewer inputs than velocities."""
    reference = CASES[name]()
    machine = reference.machine
    found = feasibility(machine, reference, np.linspace(0, 2, 41))
    assert found.largest_force < 1e-9
    assert machine.nu < machine.nv or "hexa" in machine.name
    assert np.ptp(found.u, axis=0).max() > 0.1


@pytest.mark.parametrize(
    "name", ["arm that swings", "load on a universal joint", "inclined propellers"]
)
def test_derivatives_are_those_of_the_configuration(name):
    reference, h = CASES[name](), 1e-4
    times = np.linspace(0.3, 1.6, 14)
    before, now, after = (reference.sample(times + shift) for shift in (-h, 0.0, h))
    v = reference.machine.difference(before["x"], after["x"]) / (2 * h)
    assert np.allclose(v, now["v"], atol=1e-5)
    assert np.allclose((after["v"] - before["v"]) / (2 * h), now["a"], atol=1e-4)


@pytest.mark.parametrize("name", ["arm that swings", "load on a universal joint"])
def test_the_flat_point_is_on_its_path(name):
    reference = CASES[name]()
    machine, times = reference.machine, np.linspace(0, 2, 9)
    sampled = reference.sample(times)["x"]
    expected = np.array([ca.DM(CIRCLE.at(ca.SX(t))).full().ravel() for t in times])
    x = ca.SX.sym("x", machine.nx)
    if name == "arm that swings":
        point = center_of_mass(machine, x)
    else:
        load = equations(machine).at(x).poses[1]
        point = load[:3, 3] - reference.length * load[:3, 2]
    function = ca.Function("point", [x], [point])
    assert np.allclose([function(row).full().ravel() for row in sampled], expected, atol=1e-12)


@pytest.mark.parametrize("name", ["arm that swings", "load on a universal joint"])
def test_a_run_with_these_inputs_alone_stays_on_the_reference(name):
    """Not by our inverse dynamics: forward, by the integrator, with nothing fed back."""
    reference = CASES[name]()
    machine, step, steps = reference.machine, 2e-3, 400
    inputs = feasibility(machine, reference, np.arange(2 * steps + 1) * step / 2).u
    x, v, u = (
        ca.SX.sym(n, k) for n, k in (("x", machine.nx), ("v", machine.nv), ("u", machine.nu))
    )
    state = equations(machine).at(x, v)
    rates = ca.vertcat(machine.rate_matrix(x) @ v, state.accelerate(input_matrix(state) @ u))
    function = ca.Function("rates", [ca.vertcat(x, v), u], [rates])
    start = reference.sample(0.0)
    z = np.concatenate([start["x"], start["v"]])
    for k in range(steps):
        first, middle, last = inputs[2 * k : 2 * k + 3]
        k1 = function(z, first).full().ravel()
        k2 = function(z + step / 2 * k1, middle).full().ravel()
        k3 = function(z + step / 2 * k2, middle).full().ravel()
        k4 = function(z + step * k3, last).full().ravel()
        z = z + step / 6 * (k1 + 2 * k2 + 2 * k3 + k4)
    wanted = reference.sample(step * steps)["x"]
    assert np.abs(machine.difference(wanted, z[: machine.nx])).max() < 1e-7


def test_a_law_holds_a_craft_with_a_moving_arm_on_its_reference():
    reference = CASES["arm that swings"]()
    machine = reference.machine
    gain = Moments.of_body(2.0, (0, 0, 0.05), 0.05 * np.eye(3))
    pairs = {"body": gain} | {
        (j.parent, j.child): Moments.of_body(0.3, (0, 0, -0.1), 1e-2 * np.eye(3))
        for j in machine.joints[1:]
    }
    scaled = [{key: factor * value for key, value in pairs.items()} for factor in (1, 8, 20)]
    law = PrototypeControl(machine, *scaled, approach="body")
    start = reference.sample(0.0)
    run = simulate(
        machine, law, reference, start["x"], start["v"], duration=0.2, dt=2e-3, progress=False
    )
    wanted = reference.sample(run.t)["x"]
    assert np.abs(machine.difference(wanted, run.x)).max() < 1e-8
    assert np.abs(run["matching_force"]).max() < 1e-6


def test_what_lacks_for_a_load_that_spins_is_the_moment_of_its_spin():
    """On a ball joint no input reaches the spin: what lacks belongs to it, and is small."""
    reference = SlungLoadReference(quadcopter_and_load(), CIRCLE)
    found = feasibility(reference.machine, reference, np.linspace(0, 2, 21))
    spin = reference.machine.v_slice["ball"].stop - 1
    assert np.abs(found.force[:, spin]).max() > 1e-6
    assert found.largest_force < 5e-5
    assert reference.length == pytest.approx(OSCILLATION)


def test_the_flat_point_of_inclined_propellers_is_the_published_one():
    """J sin(beta)/(m l') over the center of mass [Konz2024, ch. 5], l' the arm's lever."""
    mass, inertia, arm, beta = 1.3, 0.02, 0.24, np.deg2rad(15.0)
    machine = pvtol(mass, inertia, arm, np.rad2deg(beta))
    point = PlanarFlatReference(machine, ConstantCurve((0, 1))).point
    assert np.allclose(point, [0, inertia * np.sin(beta) / (mass * arm * np.cos(beta))], atol=1e-12)
    assert np.allclose(
        PlanarFlatReference(planar_copter(), ConstantCurve((0, 1))).point, [0.03, -0.02]
    )


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: FlatReference(scara(), WAY), "one tree on a free joint"),
        (lambda: FlatReference(hexacopter((0.3,)), WAY, joints={"elbow": 0.1}), "`joint0`"),
        (lambda: SlungLoadReference(hexacopter(), WAY), "one load at the end"),
        (lambda: SlungLoadReference(with_rod(place=(0, 0, -0.1)), WAY), "must be at the center"),
        (lambda: SlungLoadReference(with_rod(0.002, across=0.003), WAY), "symmetric about its rod"),
        (lambda: PlanarFlatReference(hexacopter(), WAY), "planar joint"),
        (lambda: PlanarFlatReference(pvtol(), WAY).function, "must give 2 numbers"),
    ],
)
def test_what_is_not_flat_is_refused(make, message):
    with pytest.raises(ControlError, match=message):
        make()


def test_tunable_numbers_count_at_their_defaults():
    """And a body without mass has no share in the center of mass."""
    machine = hexacopter((0.3,))
    tunable = FlatReference(machine.tunable("body.mass"), WAY).sample(0.9)
    expected = FlatReference(machine, WAY).sample(0.9)
    assert all(np.array_equal(tunable[name], expected[name]) for name in "xva")
    hook = machine.attach(Body("hook", None), Joint("turn", Revolute("z"), "link0", "hook"))
    assert np.allclose(FlatReference(hook, WAY).sample(0.9)["x"][:7], expected["x"][:7])
