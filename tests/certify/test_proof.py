"""Bounds of M that are proved: no state may ever lie outside; and sharp where that is easy."""

from dataclasses import replace

import numpy as np
import pytest
from certify_machines import TREE, arm, floating, planar_two
from random_machines import random_machine

from framefree.certify import Verdict, check
from framefree.certify.confirm import confirm
from framefree.certify.mass_search import MassSearch, search
from framefree.certify.proof import proved_bounds
from framefree.certify.subject import Subject
from framefree.gallery.machines.arms import iiwa
from framefree.geometry import Moments
from framefree.machine import Body, Free, Joint, Machine, Prismatic, Revolute
from framefree.machine.units import linear_velocities
from framefree.motion.tree import Tree


def eigenvalues(machine, rng, count=200, scale=None):
    mass = Tree(machine).functions["mass"].map(count)(machine.random(rng, count).T).full()
    M = mass.reshape(machine.nv, count, machine.nv).swapaxes(0, 1)
    scale = np.ones(machine.nv) if scale is None else scale
    return np.linalg.eigvalsh(scale[:, None] * M * scale)


@pytest.mark.slow
def test_no_state_of_random_machines_lies_outside():
    proofs = [0, 0]
    for seed in range(80):
        rng = np.random.default_rng(seed)
        machine = random_machine(rng, bodies=int(rng.integers(1, 6)))
        if not machine.nv:
            continue
        scale = np.where(linear_velocities(machine), rng.uniform(0.2, 2), 1.0)
        proved, values = proved_bounds(machine, scale), eigenvalues(machine, rng, scale=scale)
        if proved.low is not None:
            proofs[0] += 1
            assert 0 < proved.low <= values[:, 0].min()
        if proved.high is not None:
            proofs[1] += 1
            assert proved.high >= values[:, -1].max()
    assert min(proofs) > 20


def test_the_bounds_of_an_arm_are_useful():
    proved, found = proved_bounds(iiwa()), search(Subject(iiwa(), TREE, samples=300))
    assert 0.5 * found.smallest.value < proved.low <= found.smallest.value
    assert found.largest.value <= proved.high < 3 * found.largest.value


def test_a_body_on_an_axis_is_known_exactly_from_above():
    body = Body("b", Moments.of_body(2.0, (0.5, 0, 0), 0.3 * np.eye(3)))
    machine = Machine([body], [Joint("j", Revolute("z"), "world", "b", armature=0.1)])
    assert proved_bounds(machine).high == pytest.approx(2 * 0.25 + 0.3 + 0.1)
    assert proved_bounds(machine).low == pytest.approx(2 * 0.25 + 0.3 + 0.1)
    assert proved_bounds(machine).exact


def test_a_free_body_at_its_center_is_known_exactly():
    body = Body("b", Moments.of_body(2.0, (0, 0, 0), np.diag([0.3, 0.4, 0.5])))
    machine = Machine([body], [Joint("j", Free(), "world", "b")])
    proved = proved_bounds(machine)
    assert (proved.low, proved.high) == pytest.approx((0.3, 2.0))
    scaled = proved_bounds(machine, np.array([0.1] * 3 + [1.0] * 3))
    assert (scaled.low, scaled.high) == pytest.approx((0.02, 0.5))


def test_why_there_is_no_proof():
    slider = Joint("s", Prismatic("x"), "world", "a")
    turn = Joint("t", Revolute("z"), "a", "b")
    bodies = [Body(name, Moments.of_body(1.0, (0, 0, 0.1), np.eye(3))) for name in "ab"]
    assert proved_bounds(Machine(bodies, [slider, turn])).high is not None  # it is carried by none
    joints = [replace(turn, parent="world", child="a"), replace(slider, parent="a", child="b")]
    proved = proved_bounds(Machine(bodies, joints))
    assert proved.high is None
    assert "without limits" in proved.reason_high
    limited = [joints[0], replace(joints[1], lower=-0.5, upper=0.5)]
    assert proved_bounds(Machine(bodies, limited)).high < 20
    light = [bodies[0], Body("b", Moments.of_body(1.0, (0, 0, 0.1), np.zeros((3, 3))))]
    proved = proved_bounds(Machine(light, [slider, turn]))
    assert proved.low is None
    assert "vanishes about some axis" in proved.reason_low


@pytest.mark.parametrize("make", [iiwa, arm, floating, planar_two])
def test_a_million_states_confirm_what_was_found(make):
    subject = Subject(make(), TREE, samples=300)
    found = search(subject)
    low, high = found.smallest.value, found.largest.value
    tried = confirm(subject.bare, low * (1 - 1e-9), high * (1 + 1e-9), states=1_000_000)
    assert (tried.states, tried.below, tried.above) == (1_000_000, 0, 0)


def test_confirmation_finds_what_lies_outside():
    subject = Subject(arm(), TREE, samples=300)
    x = arm().random(np.random.default_rng(3), 2000)
    values = np.linalg.eigvalsh(MassSearch(subject.bare).masses(x))
    low, high = np.median(values[:, 0]), np.median(values[:, -1])
    tried = confirm(subject.bare, low, high, states=2000, seed=3)
    assert tried.below == (values[:, 0] <= low).sum()
    assert tried.above == (values[:, -1] >= high).sum()
    value = np.linalg.eigvalsh(MassSearch(subject.bare).masses(tried.x[None]))[0]
    assert value[0] <= low or value[-1] >= high


def test_the_report_labels_found_and_proved():
    report = check(arm(), samples=200, formulations=TREE)
    low, high = report["mass_eigenvalue_min"].value, report["mass_eigenvalue_max"].value
    assert report["mass_eigenvalue_min_proved"].value <= low
    assert report["mass_eigenvalue_max_proved"].value >= high
    assert "found, not proved" in report["mass_eigenvalue_min"].note
    assert report["mass_bounds_outside"].value == 0
    assert report["mass_margin"].value == pytest.approx((high - low) / (high + low))


@pytest.mark.slow
def test_a_length_makes_units_alike():
    one, tenth = (check(floating(), samples=100, formulations=TREE, length=L) for L in (1.0, 0.1))
    assert tenth["mass_eigenvalue_max"].value < one["mass_eigenvalue_max"].value
    assert "0.1 m/s" in tenth["mass_eigenvalue_max"].note
    assert one["mass_eigenvalue_max_proved"].verdict is Verdict.PASS
