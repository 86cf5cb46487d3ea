"""Every quantity that two formulations share has one value."""

import numpy as np
import pytest
from constrained_machines import closed_state, random_closed
from random_machines import random_machine, random_state, relative_error

from framefree.machine import motors
from framefree.motion import Constrained, Embedded, Maximal, Redundant, Tree

LOADS = ("", ":joint_force", ":u", ":both")
UNDER_LOAD = ("forward", "power", "joint_wrench", "loop_wrench")
SAME_IN_ALL_COORDINATES = (
    "body_pose",
    "body_velocity",
    "energy",
    "dissipation",
    "momentum",
    "joint_state",
    "joint_wrench:joint_force",
    "joint_wrench:u",
    "power:joint_force",
    "power:u",
)


def driven(machine):
    return machine.attach(*motors([joint for joint in machine.joints if joint.nv]))


def inputs_of(rng, machine, x, v):
    forces = {name: rng.normal(size=machine.nv) for name in ("a", "force", "joint_force")}
    return {"x": x, "v": v, **forces, "u": rng.normal(size=machine.nu)}


def assert_same(one, other, name, inputs, tolerance=1e-8):
    pairs = zip(one.numbers(name, **inputs), other.numbers(name, **inputs), strict=True)
    for a, b in pairs:
        assert a.shape == b.shape, name
        assert relative_error(a, b) < tolerance, name


@pytest.mark.first_cases(2)
@pytest.mark.parametrize("seed", range(5))
def test_formulations_in_joint_coordinates_share_all_values(seed):
    rng = np.random.default_rng(seed)
    machine = driven(random_machine(rng, bodies=3, massless=False))
    tree, others = Tree(machine), [Redundant(machine), Constrained(machine)]
    inputs = inputs_of(rng, machine, *random_state(rng, machine)[:2])
    for other in others:
        shared = [name for name in tree.offers if name in other.offers]
        assert len(shared) >= 20
        versions = [
            name + version
            for name in shared
            for version in (LOADS if name in UNDER_LOAD else ("",))
        ]
        frames = [f"{kind}:{machine.bodies[-1].name}" for kind in ("jacobian", "frame_pose")]
        for name in (*versions, *frames, f"jacobian_rate:{machine.bodies[-1].name}"):
            # Of the matrices C with C v the same, both give that of the Levi-Civita connection.
            assert_same(tree, other, name, inputs)


@pytest.mark.first_cases(2)
@pytest.mark.parametrize("seed", range(5))
def test_what_does_not_depend_on_coordinates_is_the_same_in_all(seed):
    rng = np.random.default_rng(seed)
    machine, x = random_closed(rng, passive=False)
    machine = driven(machine)
    constrained, embedded, maximal = Constrained(machine), Embedded(machine, start=x), None
    maximal = Maximal(machine)
    x, v = closed_state(rng, constrained, x, spread=0.05)
    unique = constrained.report(x, v)
    inputs = inputs_of(rng, machine, x, v)
    for other in (embedded, maximal):
        own = dict(zip(("x", "v"), other.start(x, v), strict=True))
        for name in SAME_IN_ALL_COORDINATES:
            kind, _, version = name.partition(":")
            if kind == "joint_wrench" and not unique.joint_wrench_unique.all():
                continue
            theirs = other.numbers(name, **{**inputs, **own})
            for a, b in zip(constrained.numbers(name, **inputs), theirs, strict=True):
                if kind == "joint_state" and a.shape == (machine.nx,):
                    assert np.abs(machine.difference(a, b)).max(initial=0) < 1e-8
                else:
                    assert relative_error(a, b) < 1e-7, (other.name, name)
        for version in ("joint_force", "u"):
            a = [
                eom.numbers(f"forward:{version}", **{**inputs, **at})[0]
                for eom, at in ((constrained, {}), (other, own))
            ]
            bodies = [
                eom.numbers("body_acceleration", **{**inputs, **at, "a": one})[0]
                for eom, at, one in zip((constrained, other), ({}, own), a, strict=True)
            ]
            assert relative_error(*bodies) < 1e-7, (other.name, version)
