"""How far screws take what they carry: limits are angles, travel is pitch times angle."""

import casadi as ca
import numpy as np
import pytest

from framefree.certify.proof import proved_bounds
from framefree.geometry import Moments
from framefree.machine import Body, Cylindrical, Frame, Helical, Joint, Machine, Prismatic, Revolute
from framefree.motion.tree import Tree
from framefree.solve.reach import reach, travel

ROD = Moments.of_body(2.0, (0.1, 0.0, 0.3), np.diag([0.02, 0.03, 0.01]))


def screw(pitch, lower=-1.0, upper=4.0):
    return Joint("screw", Helical("z", pitch), "world", "nut", lower=lower, upper=upper)


def machine_with(joint):
    """Return a turning rod on the nut of a screw, with the rod's `tip`."""
    bodies = (Body("nut", ROD), Body("rod", ROD))
    turn = Joint("turn", Revolute("y"), "nut", "rod", parent_pose=(0.2, 0.0, 0.1))
    return Machine(bodies, (joint, turn), (Frame("tip", "rod", (0.0, 0.0, 0.5)),))


@pytest.mark.parametrize("pitch", [0.003, 0.5, -0.5, 7.0])
def test_travel_of_a_limited_screw(pitch):
    joint = screw(pitch)
    angles = np.linspace(-1.0, 4.0, 1001)
    positions = [np.array(ca.DM(joint.kind.pose(ca.DM(q))))[:3, 3] for q in angles]
    assert travel(joint) == pytest.approx(np.linalg.norm(positions, axis=1).max(), rel=1e-12)
    assert travel(joint, limits=False) == np.inf


def test_a_screw_without_pitch_travels_nowhere():
    assert travel(screw(0.0)) == 0.0
    assert travel(screw(0.0, -np.inf, np.inf)) == 0.0
    assert travel(screw(0.0), limits=False) == 0.0
    assert travel(screw(0.2, -np.inf, np.inf)) == np.inf
    assert travel(screw(0.2, -np.inf, 1.0)) == np.inf


@pytest.mark.parametrize("pitch", [0.003, 0.5, -0.5, 7.0])
def test_no_configuration_leaves_the_ball(pitch):
    """The ball holds every position of the tip, and is not much larger than it must be."""
    machine = machine_with(screw(pitch))
    ball = reach(machine, "tip")
    tip = Tree(machine).functions["frame_pose:tip"]
    rng = np.random.default_rng(0)
    states = [(q, turn) for q in np.linspace(-1.0, 4.0, 26) for turn in rng.uniform(-4, 4, 20)]
    places = np.array([tip(state).full()[:3, 3] for state in states])
    distances = np.linalg.norm(places - ball.center, axis=1)
    assert distances.max() <= ball.radius
    assert ball.radius - distances.max() < 0.6  # twice the rod's own lengths at most


@pytest.mark.parametrize(
    "joint",
    [
        Joint("slide", Prismatic("x"), "world", "nut", lower=-0.2, upper=0.7),
        Joint("slide", Cylindrical("x"), "world", "nut", lower=(-0.9, -5.0), upper=(0.7, 5.0)),
    ],
    ids=["prismatic", "cylindrical"],
)
def test_travel_of_sliding_joints(joint):
    furthest = {"Prismatic": 0.7, "Cylindrical": 0.9}[type(joint.kind).__name__]
    assert travel(joint) == furthest


@pytest.mark.parametrize("pitch", [0.003, 0.5, -0.5, 7.0])
def test_proved_bounds_hold_for_what_a_screw_carries(pitch):
    """A screw that is carried by a turning rod: its travel is a lever."""
    bodies = (Body("rod", ROD), Body("nut", ROD))
    joints = (
        Joint("turn", Revolute("y"), "world", "rod"),
        Joint("screw", Helical("x", pitch), "rod", "nut", lower=-1.0, upper=4.0),
    )
    machine = Machine(bodies, joints)
    proved = proved_bounds(machine)
    mass = Tree(machine).functions["mass"]
    angles = np.linspace(-1.0, 4.0, 201)
    values = [np.linalg.eigvalsh(mass(np.array([0.0, q])).full()) for q in angles]
    smallest, largest = np.min(values), np.max(values)
    assert 0 < proved.low <= smallest
    assert largest <= proved.high < 6 * largest


@pytest.mark.parametrize("pitch", [0.003, 0.5, -7.0])
def test_proved_bounds_hold_for_a_screw_alone(pitch):
    """M = I_zz + mass pitch^2: what turns also slides."""
    machine = Machine((Body("nut", ROD),), (screw(pitch),))
    proved = proved_bounds(machine)
    mass = ROD.moment[2, 2] + ROD.total * pitch**2
    assert Tree(machine).functions["mass"](0.3).full()[0, 0] == pytest.approx(mass, rel=1e-12)
    assert 0 < proved.low <= mass <= proved.high
