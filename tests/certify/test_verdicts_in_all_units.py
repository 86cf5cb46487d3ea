"""A machine of millimetres and grams gets the verdicts of one of metres and tonnes."""

from dataclasses import replace

import numpy as np
import pytest
from certify_machines import LIMITS, TREE, arm, floating, four_bar, rod

from framefree.certify import Verdict, check
from framefree.certify.forms import compare
from framefree.geometry import Moments
from framefree.machine import Body, Frame, Joint, Machine, Planar, Prismatic, Revolute
from framefree.machine.units import Units, translations
from framefree.motion.maximal import Maximal

SCALES = [(1e-3, 1e-6), (1e-3, 1.0), (1e3, 1e6), (1e3, 1e-6), (1e-3, 1e6), (1.0, 1e-6)]


def scaled(machine, length, mass):
    """Return a machine of the same shape with all lengths and masses multiplied.

    Gravity stays, so that times grow with sqrt(length), and with them friction is adjusted.
    """
    time = np.sqrt(length)

    def moved(pose):
        pose = np.array(pose)
        pose[:3, 3] *= length
        return pose

    def moments(old):
        about = np.array(old.moment_at_center) * mass * length**2
        return Moments.of_body(old.total * mass, np.array(old.center) * length, about)

    bodies = [
        body if body.massless else replace(body, inertia=moments(body.moments))
        for body in machine.bodies
    ]
    marks, velocities = translations(machine), Units.of(machine).velocity != 1.0
    joints = []
    for joint in machine.joints:
        x = np.where(marks[machine.x_slice[joint.name]], length, 1.0)
        inertia = mass * np.where(velocities[machine.v_slice[joint.name]], 1.0, length**2)
        joints.append(
            replace(
                joint,
                parent_pose=moved(joint.parent_pose),
                child_pose=moved(joint.child_pose),
                lower=joint.lower * x,
                upper=joint.upper * x,
                armature=joint.armature * inertia,
                damping=joint.damping * inertia / time,
                friction=joint.friction * mass * length**2 / time**2,
            )
        )
    frames = [replace(frame, pose=moved(frame.pose)) for frame in machine.frames]
    loops = [
        replace(loop, rest=moved(loop.rest), length=loop.length and loop.length * length)
        for loop in machine.loops
    ]
    return replace(machine, bodies=bodies, joints=joints, frames=frames, loops=loops)


def trolley(**limits):
    """A trolley on a turning boom."""
    bodies = [Body("boom", rod(5.0)), Body("trolley", rod(1.0))]
    joints = [
        Joint("turn", Revolute("z"), "world", "boom"),
        Joint("run", Prismatic("x"), "boom", "trolley", **limits),
    ]
    return Machine(bodies, joints)


def idle():
    """An arm whose hand is a point on its own axis."""
    return arm(Body("hand", Moments.of_points([(0.1, 0, 0)], [1.0])), kind=Revolute("x"))


def chariot():
    """A body that moves on a plane, with an arm."""
    bodies = [Body("car", rod(5.0)), Body("arm", rod(0.1))]
    joints = [
        Joint("plane", Planar("z"), "world", "car"),
        Joint("swing", Revolute("y"), "car", "arm", parent_pose=(0, 0, 0.2), **LIMITS),
    ]
    return Machine(bodies, joints, (Frame("tip", "arm", (0, 0, 0.3)),))


MACHINES = {
    "arm": arm,
    "floating": floating,
    "unlimited trolley": trolley,
    "limited trolley": lambda: trolley(lower=-0.5, upper=0.7),
    "idle": idle,
    "chariot": chariot,
    "four-bar": four_bar,
}


def verdicts(machine):
    names = ["skew", "adjoint", "euler"]
    formulations = {**TREE, "maximal": Maximal}
    report = check(machine, samples=24, states=4, formulations=formulations, parametrisations=names)
    # MuJoCo refuses bodies lighter than its smallest number; that check is then skipped.
    return {f.name: f.verdict for f in report.findings if f.name != "mujoco_residual"}


@pytest.mark.slow
@pytest.mark.parametrize("name", MACHINES)
def test_verdicts_do_not_depend_on_units(name):
    machine = MACHINES[name]()
    expected = verdicts(machine)
    assert Verdict.FAIL not in expected.values() or name == "idle"
    for length, mass in SCALES[::2]:
        assert verdicts(scaled(machine, length, mass)) == expected, (length, mass)


def test_natural_units_grow_with_the_machine():
    units, other = Units.of(floating()), Units.of(scaled(floating(), 1e-3, 1e6))
    assert other.length == pytest.approx(1e-3 * units.length)
    assert other.time == pytest.approx(np.sqrt(1e-3) * units.time)
    assert other.inertia[0] == pytest.approx(1e6 * units.inertia[0])
    assert other.inertia[3] == pytest.approx(units.inertia[3])


@pytest.mark.parametrize(("length", "mass"), SCALES)
def test_a_small_machine_is_bounded_and_euler_angles_are_not(length, mass):
    forms, _ = compare(scaled(floating(), length, mass), ["skew", "euler"], states=20)
    bounded = {form.name: form.bounded for form in forms}
    assert bounded == {"skew": True, "euler": False}
    assert forms[1].reason == "M is singular"


@pytest.mark.parametrize(("length", "mass"), SCALES)
@pytest.mark.first_cases(1)
def test_sizes_are_compared_with_those_of_the_other_bodies(length, mass):
    good = scaled(arm(), length, mass)
    assert check(good, samples=4, states=2, formulations=TREE)["odd_sizes"].value == 0
    inertia = np.diag([400.0, 400.0, 400.0]) * mass * length**2
    wrong = Body("hand", Moments.of_body(0.5 * mass, (0, 0, 0.2 * length), inertia))
    report = check(
        good.replace("hand", inertia=wrong.inertia), samples=4, states=2, formulations=TREE
    )
    assert "`hand`" in report["odd_sizes"].note
