"""Joints that slide without limits: where M is bounded, it is said and proved; where not, why."""

import numpy as np
import pytest
from certify_machines import TREE, four_bar

from framefree.certify import Verdict
from framefree.certify.bounds import mass_bounds
from framefree.certify.forms import compare
from framefree.certify.proof import proved_bounds
from framefree.certify.subject import Subject
from framefree.geometry import Moments
from framefree.machine import (
    Body,
    Coupling,
    Cylindrical,
    Free,
    Helical,
    Joint,
    Machine,
    Planar,
    Prismatic,
    Revolute,
)
from framefree.motion.tree import Tree

MOMENTS = Moments.of_body(1.0, (0.1, 0.02, 0.3), np.diag([0.1, 0.12, 0.15]))


def body(name):
    return Body(name, MOMENTS)


def carried(kind, at=(0.1, 0.2, 0.3), **limits):
    """What a turning base carries."""
    turn = Joint("turn", Revolute("z"), "world", "a")
    slide = Joint("slide", kind, "a", "b", parent_pose=at, **limits)
    return Machine([body("a"), body("b")], [turn, slide])


def carrying(kind):
    """What carries a turning arm."""
    slide = Joint("slide", kind, "world", "a")
    turn = Joint("turn", Revolute("z"), "a", "b", parent_pose=(0.1, 0.2, 0.3))
    return Machine([body("a"), body("b")], [slide, turn])


def gantry():
    """Three sliding joints across each other."""
    joints = [
        Joint("x", Prismatic("x"), "world", "a"),
        Joint("y", Prismatic("y"), "a", "b"),
        Joint("z", Prismatic("z"), "b", "c"),
    ]
    return Machine([body(name) for name in "abc"], joints)


def verdicts(machine):
    findings = {f.name: f for f in mass_bounds(Subject(machine, TREE, samples=24))}
    ((form,), _) = compare(machine, ["skew"], states=10)
    return findings, form


@pytest.mark.parametrize(
    ("kind", "names"),
    [
        (Prismatic("x"), ["slide"]),
        (Prismatic((1, 0, 1)), ["slide"]),
        (Helical("x", 0.1), ["slide"]),
        (Cylindrical("y"), ["slide.displacement"]),
        (Planar("x"), ["slide.py"]),
        (Planar("z"), ["slide.px", "slide.py"]),
        (Free(), ["slide.px", "slide.py"]),
    ],
)
def test_what_slides_away_from_a_turning_axis_is_unbounded(kind, names):
    findings, form = verdicts(carried(kind))
    largest = findings["mass_eigenvalue_max"]
    assert largest.verdict is Verdict.WARN
    assert all(f"`{name}`" in largest.note for name in names)
    assert findings["mass_eigenvalue_max_proved"].verdict is Verdict.SKIPPED
    assert "`slide` slides without limits" in findings["mass_eigenvalue_max_proved"].note
    assert findings["mass_margin"].verdict is Verdict.SKIPPED
    assert not form.bounded
    assert form.unbounded == tuple(names)
    assert all(f"`{name}`" in form.reason for name in names)


@pytest.mark.parametrize("kind", [Planar("z"), Free()])
def test_what_can_stand_still_far_from_a_turning_axis_has_no_lower_bound(kind):
    """The joint's velocity can make up for the turning, at the cost of next to no energy."""
    findings, _ = verdicts(carried(kind))
    assert findings["mass_eigenvalue_min"].verdict is Verdict.WARN
    assert "tends to zero along `slide.px`" in findings["mass_eigenvalue_min"].note
    assert findings["mass_eigenvalue_min_proved"].verdict is Verdict.SKIPPED


@pytest.mark.parametrize(
    "machine",
    [
        gantry(),
        *(carrying(kind) for kind in (Prismatic("x"), Helical("x", 0.1), Cylindrical("y"))),
        *(carrying(kind) for kind in (Planar("z"), Planar("x"), Free())),
        *(carried(kind) for kind in (Prismatic("z"), Helical("z", 0.1), Cylindrical("z"))),
        carried(Prismatic("x"), lower=-0.4, upper=0.3),
        carried(Helical("x", 0.1), lower=-4.0, upper=3.0),
    ],
)
def test_what_slides_without_changing_m_is_bounded_and_proved(machine):
    findings, form = verdicts(machine)
    assert form.bounded
    assert form.reason == ""
    low, high = (findings[f"mass_eigenvalue_{side}_proved"] for side in ("min", "max"))
    assert low.verdict is high.verdict is Verdict.PASS
    assert 0 < low.value <= findings["mass_eigenvalue_min"].value * (1 + 1e-9)
    assert findings["mass_eigenvalue_max"].value <= high.value * (1 + 1e-9)
    assert findings["mass_eigenvalue_min"].verdict is Verdict.PASS
    assert findings["mass_eigenvalue_max"].verdict is Verdict.PASS


@pytest.mark.parametrize(
    "machine",
    [gantry(), *(carried(kind, (0, 0, 0.3)) for kind in (Prismatic("z"), Cylindrical("z")))],
)
def test_a_constant_mass_matrix_is_known_exactly(machine):
    proved = proved_bounds(machine)
    x = machine.random(np.random.default_rng(0))
    values = np.linalg.eigvalsh(Tree(machine).functions["mass"](x).full())
    assert proved.exact
    assert (proved.low, proved.high) == pytest.approx((values[0], values[-1]), rel=1e-11)


def test_the_proof_from_below_holds_far_out():
    """The displacement of a slide does not enter the lower bound."""
    machine = carried(Prismatic((1, 0.3, 0.2)))
    proved = proved_bounds(machine)
    mass = Tree(machine).functions["mass"]
    for q in (0.0, 1.0, -10.0, 1e3, -1e5):
        assert proved.low <= np.linalg.eigvalsh(mass([0.3, q]).full())[0]


def test_slides_that_lead_each_other_are_unbounded_together():
    turn = Joint("turn", Revolute("z"), "world", "a")
    slides = [Joint(n, Prismatic("x"), "a", c) for n, c in (("p", "b"), ("q", "c"))]
    coupled = Coupling.mimic("gear", "q", "p", 2.0)
    machine = Machine([body(n) for n in "abc"], [turn, *slides], couplings=[coupled])
    findings = {f.name: f for f in mass_bounds(Subject(machine, TREE, samples=24))}
    assert "unbounded along `p`, `q`" in findings["mass_eigenvalue_max"].note


def test_a_slide_that_a_loop_holds_is_bounded():
    """A cylinder without limits between two bars that a loop keeps together."""
    machine = four_bar()
    bodies = [*machine.bodies, body("piston")]
    slide = Joint("slide", Prismatic("z"), "rod0", "piston")
    held = Coupling("lead", "slide", ("q0",), lambda q: 0.1 * np.sin(1.0) * q / (1 + q * q))
    other = Machine(
        bodies, [*machine.joints, slide], machine.frames, loops=machine.loops, couplings=[held]
    )
    findings = {f.name: f for f in mass_bounds(Subject(other, TREE, samples=24))}
    assert findings["mass_eigenvalue_max"].verdict is Verdict.PASS
