"""Certified bounds of M: they equal closed forms, and nothing but a true bound is certified."""

import numpy as np
import pytest
from certify_machines import TREE

from framefree.certify.certificate import _BoundProgram, certify_bound
from framefree.certify.mass_search import search
from framefree.certify.moves import moves_of, whole_turns
from framefree.certify.proof import proved_bounds
from framefree.certify.slides import unbounded_slides
from framefree.certify.subject import Subject
from framefree.gallery.machines.auv import auv
from framefree.geometry import Moments
from framefree.machine import Body, Free, Joint, Machine, Prismatic, Revolute, Spherical, Universal
from framefree.motion.tree import Tree

LENGTH, CENTER, MASS, INERTIA = 0.7, (0.3, 0.4), (2.0, 1.5), (0.05, 0.08)


def two_links(**limits):
    """A planar arm whose mass matrix stands in every textbook."""
    bodies = [
        Body(name, Moments.of_body(m, (c, 0, 0), np.diag([0.01, i, i])))
        for name, m, c, i in zip("ab", MASS, CENTER, INERTIA, strict=True)
    ]
    joints = [
        Joint("first", Revolute("z"), "world", "a"),
        Joint("second", Revolute("z"), "a", "b", parent_pose=(LENGTH, 0, 0), **limits),
    ]
    return Machine(bodies, joints)


def two_link_eigenvalues(angle):
    """Eigenvalues (n, 2) by the formulas of the textbook."""
    (m1, m2), (c1, c2), (i1, i2) = MASS, CENTER, INERTIA
    own = i2 + m2 * c2**2
    mixed = own + m2 * LENGTH * c2 * np.cos(angle)
    first = i1 + m1 * c1**2 + i2 + m2 * (LENGTH**2 + c2**2 + 2 * LENGTH * c2 * np.cos(angle))
    half, apart = (first + own) / 2, np.sqrt(((first - own) / 2) ** 2 + mixed**2)
    return np.stack([half - apart, half + apart], axis=-1)


@pytest.mark.parametrize(("low", "high"), [(None, None), (2.2, 2.9), (-0.4, 1.0), (1.0, 5.5)])
def test_a_planar_arm_is_bounded_by_its_extreme_angles(low, high):
    limits = {} if low is None else {"lower": low, "upper": high}
    angles = np.linspace(-np.pi if low is None else low, np.pi if low is None else high, 20001)
    values = two_link_eigenvalues(angles)
    proved = proved_bounds(two_links(**limits))
    assert proved.low == pytest.approx(values[:, 0].min(), rel=1e-6)
    assert proved.high == pytest.approx(values[:, 1].max(), rel=1e-6)
    assert proved.low <= values[:, 0].min()
    assert proved.high >= values[:, 1].max()


def crane(**limits):
    """A turning post with a trolley that slides across its axis."""
    moments = Moments.of_body(1.0, (0.1, 0.05, 0.2), np.diag([0.02, 0.03, 0.04]))
    joints = [
        Joint("post", Revolute("z"), "world", "a"),
        Joint("trolley", Prismatic("x"), "a", "b", parent_pose=(0.2, 0.1, 0.3), **limits),
    ]
    return Machine([Body("a", moments), Body("b", moments)], joints)


def crane_eigenvalues(q):
    """Turning inertia with the load at (0.3 + q, 0.15), and what couples it to the trolley."""
    turning = 0.04 + 0.1**2 + 0.05**2 + 0.04 + (0.3 + q) ** 2 + 0.15**2
    mixed = -0.15 * np.ones_like(q)
    half, apart = (turning + 1) / 2, np.sqrt(((turning - 1) / 2) ** 2 + mixed**2)
    return np.stack([half - apart, half + apart], axis=-1)


def test_a_slide_with_a_range_is_bounded_by_it():
    values = crane_eigenvalues(np.linspace(-0.9, 0.4, 20001))
    proved = proved_bounds(crane(lower=-0.9, upper=0.4))
    assert proved.low == pytest.approx(values[:, 0].min(), rel=1e-6)
    assert proved.high == pytest.approx(values[:, 1].max(), rel=1e-6)
    assert not unbounded_slides(crane(lower=-0.9, upper=0.4))


def test_an_endless_slide_is_bounded_from_below_alone():
    values = crane_eigenvalues(np.concatenate([np.linspace(-5, 5, 20001), [1e3, -1e3]]))
    proved = proved_bounds(crane())
    assert proved.low == pytest.approx(values[:, 0].min(), rel=1e-6)
    assert proved.high is None
    (slide,) = unbounded_slides(crane())
    assert (slide.coordinate, slide.turning) == ("trolley", "post")


def test_endless_slides_along_upright_axes_move_nothing_away():
    """A lift, two turns and a quill, all upright: nothing tilts, and the arm's angle is all."""
    arm, weight, quill = two_links(), 3.0, 0.5
    bodies = [Body("lift", Moments.of_body(weight, (0, 0, 0), 0.1 * np.eye(3))), *arm.bodies,
              Body("quill", Moments.of_body(quill, (0, 0, -0.1), 0.01 * np.eye(3)))]  # fmt: skip
    first, second = arm.joints
    joints = [
        Joint("lift", Prismatic("z"), "world", "lift"),
        Joint("first", first.kind, "lift", "a"),
        second,
        Joint("quill", Prismatic("z"), "b", "quill", parent_pose=(0.6, 0, 0)),
    ]
    machine = Machine(bodies, joints)
    x = np.zeros((2001, 4))
    x[:, 2] = np.linspace(0, np.pi, 2001)
    values = np.linalg.eigvalsh(Tree(machine).kernel("mass")(x))
    proved = proved_bounds(machine)
    assert values.min() * (1 - 1e-6) <= proved.low <= values.min()
    assert values.max() <= proved.high <= values.max() * (1 + 1e-6)


def test_the_bounds_of_the_vehicle_with_arm_are_those_that_were_found():
    machine = auv()
    proved, found = proved_bounds(machine), search(Subject(machine, TREE, samples=400))
    assert found.smallest.value * (1 - 1e-5) < proved.low <= found.smallest.value
    assert found.largest.value <= proved.high < found.largest.value * (1 + 1e-5)


def test_axes_across_each_other_are_bounded_sharply_from_both_sides():
    """Twists that rounding alone would give are not among those that the first joint gives."""
    inertia = np.diag([0.02, 0.03, 0.04])
    moments = [Moments.of_body(m, (0.1, 0.02, 0.01), m * inertia) for m in (5.0, 1.0)]
    joints = [
        Joint("first", Revolute("y"), "world", "a"),
        Joint("second", Revolute("z"), "a", "b", parent_pose=(0.3, 0, 0)),
    ]
    machine = Machine([Body("a", moments[0]), Body("b", moments[1])], joints)
    x = np.zeros((4001, 2))
    x[:, 1] = np.linspace(-np.pi, np.pi, 4001)
    values, proved = np.linalg.eigvalsh(Tree(machine).kernel("mass")(x)), proved_bounds(machine)
    assert values.min() * (1 - 1e-6) <= proved.low <= values.min() * (1 + 1e-7)
    assert values.max() * (1 - 1e-7) <= proved.high <= values.max() * (1 + 1e-6)


def mixed():
    moments = [
        Moments.of_body(1.0 + k, (0.1, 0.02 * k, 0.2), np.diag([0.1, 0.12 + 0.02 * k, 0.15]))
        for k in range(5)
    ]
    kinds = [Free(), Universal((1, 0.2, 0), "y"), Spherical(), Prismatic((1, 0, 1)), Revolute("x")]
    joints = [
        Joint(f"j{k}", kind, f"b{k - 1}" if k else "world", f"b{k}",
              parent_pose=(0.3, 0.1 * k, 0.2), **({"lower": -0.5, "upper": 0.3} if k == 3 else {}))
        for k, kind in enumerate(kinds)
    ]  # fmt: skip
    return Machine([Body(f"b{k}", m) for k, m in enumerate(moments)], joints)


def test_joints_of_several_kinds_are_bounded_nearly_sharply():
    machine = mixed()
    proved, found = proved_bounds(machine), search(Subject(machine, TREE, samples=400))
    assert found.smallest.value * 0.95 < proved.low <= found.smallest.value
    assert found.largest.value <= proved.high < found.largest.value * 1.05


@pytest.mark.parametrize("sign", [1, -1])
@pytest.mark.parametrize("limits", [{}, {"lower": 2.2, "upper": 2.9}])
def test_a_bound_that_is_too_bold_is_not_certified(sign, limits):
    moves = moves_of(two_links(**limits), np.ones(2), 1.0)
    program = _BoundProgram(moves, sign, 1e-8)
    values = program.solve()
    assert program.left(values) > 0.5
    values[0] *= 1 + sign * 1e-4
    assert program.left(values) < 0


def test_without_its_range_a_turn_is_bounded_less_sharply():
    moves = moves_of(two_links(lower=2.2, upper=2.9), np.ones(2), 1.0)
    narrow, wide = certify_bound(moves, 1), certify_bound(whole_turns(moves), 1)
    assert wide.bound < 0.3 * narrow.bound


def test_without_the_solver_there_is_the_bound_by_lengths(monkeypatch):
    monkeypatch.setattr("framefree.certify.proof.find_spec", lambda name: None)
    proved = proved_bounds(two_links())
    assert 0 < proved.low < two_link_eigenvalues(np.zeros(1))[0, 0]
    assert "clarabel" in proved.how_low


@pytest.mark.parametrize(
    ("axis", "bounded"),
    [("z", True), ((0.0, 0.6, 0.8), True), ("x", False), ((0.01, 0.6, 0.8), False)],
)
def test_classes_of_machines_with_endless_slides(axis, bounded):
    """Slides parallel to all turning axes before them leave M bounded, in every direction."""
    along = (0.0, 0.6, 0.8) if isinstance(axis, tuple) else "z"
    moments = Moments.of_body(1.0, (0.1, 0.05, 0.2), np.diag([0.02, 0.03, 0.04]))
    joints = [
        Joint("x", Prismatic("x"), "world", "a"),
        Joint("turn", Revolute(along), "a", "b", parent_pose=(0.1, 0.2, 0.3)),
        Joint("elbow", Revolute(along), "b", "c", parent_pose=(0.4, 0.0, 0.1)),
        Joint("slide", Prismatic(axis), "c", "d", parent_pose=(0.3, 0.1, 0.0)),
    ]
    machine = Machine([Body(name, moments) for name in "abcd"], joints)
    assert (not unbounded_slides(machine)) == bounded
    assert (proved_bounds(machine).high is not None) == bounded
    growing = search(Subject(machine, TREE, samples=24)).growing
    assert (not growing) == bounded
