"""Joints that move no mass: whether their accelerations are undefined is the rank of [M; A]."""

import numpy as np
import pytest

from framefree.certify import check
from framefree.gallery import MACHINES
from framefree.geometry import Moments
from framefree.machine import (
    Body,
    Coupling,
    Fluid,
    Frame,
    Immersed,
    Joint,
    Loop,
    Machine,
    Prismatic,
    Revolute,
    Spherical,
)
from framefree.motion.constrained import Constrained

ROD = Moments.of_body(1.0, (0, 0, 0.2), np.diag([0.02, 0.02, 0.001]))


def linkage(kind="hinge", last=None, loops=True, **joint):
    """A four-bar whose second and third bars have no mass."""
    lengths = (0.4, 0.5, 0.45)
    bodies = [Body("rod0", ROD), Body("rod1", None), Body("rod2", None)]
    joints = [
        Joint(
            f"q{i}",
            last if last is not None and i == 2 else Revolute("y"),
            f"rod{i - 1}" if i else "world",
            f"rod{i}",
            parent_pose=(0, 0, lengths[i - 1]) if i else (0, 0, 0),
            **(joint if i == 2 else {}),
        )
        for i in range(3)
    ]
    frames = (Frame("end", "rod2", (0, 0, 0.45)), Frame("ground", "world", (0.5, 0, 0)))
    axis = {"axis": "y"} if kind == "hinge" else {}
    closing = (Loop("closing", kind, "ground", "end", **axis),) if loops else ()
    return Machine(bodies, joints, frames, loops=closing)


def undefined(machine):
    return [text.split("`")[1] for text in machine.problems if "acceleration is undefined" in text]


@pytest.mark.parametrize("kind", ["hinge", "ball"])
def test_joints_that_a_loop_leads_have_accelerations(kind):
    machine = linkage(kind)
    assert undefined(machine) == []
    equations = Constrained(machine)
    x = equations.assemble(np.array([0.3, 1.0, 1.2]))
    assert equations.solve(x, np.zeros(3), np.zeros(3)).unique


def test_joints_that_nothing_leads_have_none():
    assert undefined(linkage(loops=False)) == ["q1", "q2"]
    assert undefined(linkage(loops=False, armature=0.1)) == ["q1"]


def test_a_bar_that_spins_about_its_own_line_has_no_acceleration():
    """A massless bar between two balls: the loop leads its ends and leaves its spin."""
    machine = linkage("ball", Spherical())
    assert undefined(machine) == ["q2"]
    assert "and loops and couplings do not lead it" in machine.problems[0]
    equations = Constrained(machine)
    x = equations.assemble(machine.neutral())
    assert not equations.solve(x, np.zeros(5), np.zeros(5)).unique


def test_one_row_leads_one_of_two_joints():
    """A distance is one row: of two massless joints it determines a combination only."""
    machine = linkage(loops=False)
    far = Loop("far", "distance", "ground", "end", length=0.3)
    loose = Machine(machine.bodies, machine.joints, machine.frames, loops=[far])
    assert undefined(loose) == ["q1", "q2"]
    geared = Coupling.mimic("gear", "q2", "q1", 0.5)
    led = Machine(machine.bodies, machine.joints, machine.frames, loops=[far], couplings=[geared])
    assert undefined(led) == []


def test_couplings_lead():
    bodies = [Body("arm", ROD), Body("finger", None)]
    joints = [
        Joint("turn", Revolute("y"), "world", "arm"),
        Joint("grip", Prismatic("x"), "arm", "finger"),
    ]
    assert undefined(Machine(bodies, joints)) == ["grip"]
    follow = Coupling.mimic("follow", "grip", "turn", 0.1)
    assert undefined(Machine(bodies, joints, couplings=[follow])) == []
    # A coupling between two joints without mass leads neither.
    bodies.append(Body("other", None))
    joints.append(Joint("grip2", Prismatic("x"), "arm", "other"))
    parallel = Coupling.mimic("parallel", "grip2", "grip", -1.0)
    assert undefined(Machine(bodies, joints, couplings=[parallel])) == ["grip", "grip2"]


def test_tunable_machines_are_judged_at_their_defaults():
    assert undefined(linkage().tunable("rod0.mass")) == []


def test_water_moves_what_is_in_it_only():
    bodies = [Body("hull", ROD), Body("fin", None), Body("vane", None)]
    joints = [
        Joint(f"j{i}", Revolute("y"), "world" if not i else "hull", body.name)
        for i, body in enumerate(bodies)
    ]
    water = Fluid([Immersed("fin", volume=1e-3, added_mass=(1, 1, 1, 0.1, 0.1, 0.1))])
    assert undefined(Machine(bodies, joints, fluid=water)) == ["j2"]


def test_the_check_agrees():
    report = check(linkage(), samples=16, states=4)
    assert report["joints_without_inertia"].value == 0
    assert report["mass_eigenvalue_min"].value > 0
    assert report.ok, report.failures
    loose = check(linkage("ball", Spherical()), samples=16, states=4)
    assert "`q2`" in loose["joints_without_inertia"].note
    assert not loose.ok


def test_the_crane_with_a_closed_form_has_no_doubts():
    assert undefined(MACHINES["crane-model"]()) == []
