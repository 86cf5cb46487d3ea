"""Closed configurations lie within the limits of the joints wherever such are reached."""

from dataclasses import replace

import numpy as np
import pytest
from constrained_machines import at, crane, n_four_bar, rod

from framefree.geometry import Moments
from framefree.machine import Body, Frame, Joint, Loop, Machine, Prismatic, Revolute
from framefree.motion.constrained import Constrained
from framefree.motion.constrained.project import ClosureError
from framefree.motion.embedded import Embedded
from framefree.solve import assemble, project


def two_links(size=1.0, **elbow):
    """An arm of two links whose tip is pinned 1.2 links away: elbow up or elbow down."""
    joints = [
        Joint("shoulder", Revolute("z"), "world", "upper"),
        Joint("elbow", Revolute("z"), "upper", "lower", parent_pose=at(size, 0), **elbow),
    ]
    frames = [Frame("tip", "lower", at(size, 0)), Frame("pin", "world", at(1.2 * size, 0))]
    loops = [Loop("pinned", "ball", "pin", "tip")]
    link = Moments.of_body(1.0, [0.5 * size, 0, 0], np.diag([0, 1 / 12, 1 / 12]) * size**2)
    bodies = [Body("upper", link), Body("lower", link)]
    return Machine(bodies, joints, frames, loops=loops, name="arm")


BENT = 2 * np.arccos(0.6)
"""Angle of the elbow where the tip is pinned."""


@pytest.mark.parametrize("size", [1e-3, 1.0, 1e3])
@pytest.mark.parametrize("sign", [1.0, -1.0])
@pytest.mark.parametrize("start", [0.1, -0.1, 0.0, 3.0])
def test_the_branch_within_limits_is_taken(size, sign, start):
    machine = two_links(size, lower=min(0.0, 3.0 * sign), upper=max(0.0, 3.0 * sign))
    x0 = np.array([0.2, start])
    for x in (
        Constrained(machine).assemble(x0),
        Constrained(machine).project(x0).x,
        Constrained(machine).project(x0, weight="unit").x,
        assemble(machine, x0),
        project(machine, x0).x,
    ):
        assert np.isclose(x[1], sign * BENT, atol=1e-7)
        machine.validate(x, limits=True)


def test_limits_may_be_left_out_of_account():
    machine = two_links(lower=0.0, upper=3.0)
    x = Constrained(machine).project(np.array([0.9, -1.8]), limits=False).x
    assert np.isclose(x[1], -BENT)
    assert np.isclose(Constrained(machine).assemble([0.9, -1.8], limits=False)[1], -BENT)


def test_joints_are_named_where_no_branch_is_within_limits():
    machine = two_links(lower=2.3, upper=3.0)
    for call in (Constrained(machine).assemble, Constrained(machine).project):
        with pytest.raises(ClosureError, match="limits of joints: `elbow` by") as caught:
            call(np.array([0.2, 2.5]))
        assert list(caught.value.errors) == ["elbow"]


def test_a_held_joint_may_be_beyond_its_limits():
    machine = two_links(lower=2.3, upper=3.0)
    x = np.array([-0.9, BENT])
    assert np.isclose(Constrained(machine).project(x, hold=("elbow",)).x[1], BENT)


def test_whole_turns_are_taken_back():
    machine = two_links(lower=0.5, upper=3.0)
    for turns in (-2, 1):
        x = Constrained(machine).project(np.array([0.2, BENT + 0.1 + 2 * np.pi * turns])).x
        assert np.isclose(x[1], BENT)


def test_a_freedom_stops_at_a_limit():
    """Where the nearest closed configuration is just beyond a limit, one at the limit is found."""
    machine = n_four_bar(1)
    joints = [
        replace(joint, lower=0.3, upper=1.0) if joint.name == "p1" else joint
        for joint in machine.joints
    ]
    machine = replace(machine, joints=joints)
    x = Constrained(machine).project(np.array([1.3, -1.2, 0.95]), weight="unit").x
    machine.validate(x, limits=True)
    assert np.isclose(x[machine.x_names.index("p1")], 1.0, atol=1e-6)


@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_embedded_coordinates_are_closed_within_limits(sign):
    machine = crane(True)
    low, high = sorted((0.01 * sign, 3.0 * sign))
    joints = [
        replace(joint, lower=low, upper=high) if joint.name == "zeta" else joint
        for joint in machine.joints
    ]
    machine = replace(machine, joints=joints)
    start = Constrained(machine).assemble()
    eom = Embedded(machine, independent=("phi", "theta", "delta"), start=start)
    x = np.zeros(machine.nx)
    for zeta in (-1.0, 1.0):
        x[machine.x_names.index("zeta")], x[machine.x_names.index("delta")] = zeta, 0.1
        closed = eom.close(x)
        machine.validate(closed, limits=True)
        assert np.sign(closed[machine.x_names.index("zeta")]) == sign
        assert np.isclose(closed[machine.x_names.index("delta")], 0.1)


def test_limits_of_strokes():
    """A cylinder between two pins extends only as far as its stroke."""
    joints = [
        Joint("turn", Revolute("z"), "world", "upper"),
        Joint("stroke", Prismatic("x"), "upper", "lower", lower=0.5, upper=2.0),
    ]
    frames = [Frame("tip", "lower", at(0, 0)), Frame("pin", "world", at(0.6, 0.8))]
    machine = Machine(
        [rod("upper"), rod("lower")], joints, frames, loops=[Loop("l", "ball", "pin", "tip")]
    )
    for x0 in ([0.0, -1.0], [3.0, 0.1], [-2.0, -3.0]):
        x = Constrained(machine).assemble(x0)
        assert np.isclose(x[1], 1.0)
