"""Eigenvalues of M by search: where they are known, within limits, against random states."""

import numpy as np
import pytest
from certify_machines import TREE, arm, floating, four_bar, planar_two, rod

from framefree.certify import Verdict
from framefree.certify.bounds import mass_bounds
from framefree.certify.mass_search import MassSearch, search
from framefree.certify.subject import Subject
from framefree.gallery.machines.arms import iiwa
from framefree.machine import Body, Free, Joint, Machine, Prismatic, Revolute


def on_grid(machine, low, high):
    """Extreme eigenvalues over a fine grid of the second angle, on which alone M depends."""
    space = MassSearch(Subject(machine, TREE).bare)
    x = np.column_stack([np.zeros(20001), np.linspace(low, high, 20001)])
    values = np.linalg.eigvalsh(space.masses(x))
    return values[:, 0].min(), values[:, -1].max()


@pytest.mark.parametrize(("low", "high"), [(-np.pi, np.pi), (1.0, 2.0), (-0.4, 2.2)])
def test_two_links_have_the_bounds_of_a_fine_grid(low, high):
    machine = planar_two(low, high)
    found = search(Subject(machine, TREE, samples=40))
    smallest, largest = on_grid(machine, low, high)
    assert found.smallest.value == pytest.approx(smallest, rel=1e-7)
    assert found.largest.value == pytest.approx(largest, rel=1e-7)
    machine.validate(found.smallest.x, limits=True)
    machine.validate(found.largest.x, limits=True)


def test_the_largest_eigenvalue_of_two_links_is_that_of_the_stretched_arm():
    found = search(Subject(planar_two(), TREE, samples=10))
    # Rods of 2 kg and 1 kg, 1 m each, about their ends; M_12 and M_11 follow by hand.
    m11, m12, m22 = 2 / 3 + 1 / 3 + 1 + 1, 1 / 3 + 1 / 2, 1 / 3
    expected = np.linalg.eigvalsh([[m11, m12], [m12, m22]])[-1]
    assert found.largest.value == pytest.approx(expected, rel=1e-9)
    assert np.cos(found.largest.x[1]) == pytest.approx(1.0, abs=1e-7)


@pytest.mark.parametrize("make", [iiwa, arm, floating])
def test_no_random_state_lies_outside(make):
    machine = make()
    subject = Subject(machine, TREE, samples=128)
    found = search(subject)
    x = machine.random(np.random.default_rng(99), 4000)
    values = np.linalg.eigvalsh(MassSearch(subject.bare).masses(x))
    assert values[:, 0].min() >= found.smallest.value * (1 - 1e-9)
    assert values[:, -1].max() <= found.largest.value * (1 + 1e-9)


def test_the_local_search_gains_on_the_samples():
    subject = Subject(iiwa(), TREE, samples=64)
    x = iiwa().random(subject.rng(4), 64)
    sampled = np.linalg.eigvalsh(MassSearch(subject.bare).masses(x))
    found = search(subject)
    assert found.smallest.value < 0.999 * sampled[:, 0].min()
    assert found.largest.value > 1.01 * sampled[:, -1].max()


def test_the_gradient_is_that_of_the_eigenvalue():
    space, rng = MassSearch(Subject(floating(), TREE).bare), np.random.default_rng(2)
    for sign in (1, -1):
        x = space.machine.random(rng)
        here = space.extreme(x, sign)
        slope = space._slope(x, np.zeros(space.machine.nv), here.u).full()[:, 0]
        d, h = rng.normal(size=space.machine.nv), 1e-5
        ahead, behind = (space.extreme(space.machine.integrate(x, s * d), sign) for s in (h, -h))
        assert slope @ d == pytest.approx((ahead.value - behind.value) / (2 * h), rel=1e-5)


def test_a_slider_on_a_hinge_is_unbounded_without_limits():
    def crane(**limits):
        bodies = [Body("boom", rod(5.0)), Body("trolley", rod(1.0))]
        joints = [
            Joint("turn", Revolute("z"), "world", "boom"),
            Joint("run", Prismatic("x"), "boom", "trolley", **limits),
        ]
        return Machine(bodies, joints)

    free = {f.name: f for f in mass_bounds(Subject(crane(), TREE, samples=16))}
    assert free["mass_eigenvalue_max"].verdict is Verdict.WARN
    assert "unbounded along `run`" in free["mass_eigenvalue_max"].note
    held = search(Subject(crane(lower=-2.0, upper=3.0), TREE, samples=16))
    assert held.growing == ()
    # Inertia of the boom about z, and the trolley at 3 m.
    expected = 5.0 * 0.4**2 * 0.03 / 12 + 0.4**2 * 0.03 / 12 + 9.0
    assert held.largest.value == pytest.approx(expected, rel=1e-9)
    assert held.largest.x[1] == 3.0


def test_where_a_free_base_is_does_not_matter():
    body = Machine([Body("b", rod())], [Joint("j", Free(), "world", "b")])
    found = search(Subject(body, TREE, samples=8))
    assert found.growing == ()
    expected = np.linalg.eigvalsh(rod().matrix6)
    assert found.smallest.value == pytest.approx(expected[0], rel=1e-9)
    assert found.largest.value == pytest.approx(expected[-1], rel=1e-9)


def test_loops_restrict_the_directions():
    """One freedom is left: its only eigenvalue lies between those of the open tree."""
    machine = four_bar()
    subject = Subject(machine, TREE, samples=24)
    closed = {f.name: f.value for f in mass_bounds(subject)}
    open_tree = search(Subject(subject.open, TREE, samples=24))
    assert closed["mass_condition"] == 1.0
    assert open_tree.smallest.value < closed["mass_eigenvalue_min"]
    assert closed["mass_eigenvalue_max"] < open_tree.largest.value
