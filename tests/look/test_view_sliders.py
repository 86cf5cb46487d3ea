"""Sliders of the live view: what they move, whatever the coordinates of a joint are."""

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from framefree.gallery import MACHINES
from framefree.geometry import Moments
from framefree.look.view import view
from framefree.look.view.joints_mode import JointsMode
from framefree.look.view.sliders import coordinates_at, numbers_of, values_at
from framefree.machine import Body, Continuous, Free, Joint, Machine, Planar, Revolute, Spherical
from framefree.solve import assemble

KINDS = {"wheel": Continuous("y"), "base": Planar("z"), "ball": Spherical(), "craft": Free()}
SOLID = Moments.of_body(1.0, (0.1, 0, 0), 0.1 * np.eye(3))


def machine_of(kind, name):
    return Machine([Body("a", SOLID)], [Joint(name, kind, "world", "a")]).numeric


@pytest.mark.parametrize("name", KINDS)
def test_numbers_and_coordinates_are_inverses(name):
    machine = machine_of(KINDS[name], name)
    for seed in range(5):
        x = machine.random(np.random.default_rng(seed))
        joint = machine.joints[0]
        values = values_at(machine, joint, x)
        assert len(values) == machine.nv
        again = coordinates_at(joint, values)
        np.testing.assert_allclose(machine.difference(x, again), 0, atol=1e-12)


def test_a_slider_has_the_name_and_the_unit_of_what_it_moves():
    """Not of the cosine of an angle, in rad."""
    named = {
        name: [(one.name, one.unit) for one in numbers_of(machine, machine.neutral())]
        for name, kind in KINDS.items()
        for machine in [machine_of(kind, name)]
    }
    turns = [(f"ball turn {axis}", "rad") for axis in "xyz"]
    assert named["wheel"] == [("wheel", "rad")]
    assert named["base"] == [("base.px", "m"), ("base.py", "m"), ("base angle", "rad")]
    assert named["ball"] == turns
    assert [unit for _, unit in named["craft"]] == ["m"] * 3 + ["rad"] * 3


def test_limits_of_sliders_are_short_and_within_those_of_the_joint():
    kind = Revolute("z")
    joint = Joint("hinge", kind, "world", "a", lower=-2.123456, upper=1.987654)
    machine = Machine([Body("a", SOLID)], [joint]).numeric
    (one,) = numbers_of(machine, machine.neutral())
    assert (one.low, one.high) == (-2.123, 1.987)


@pytest.mark.parametrize("name", KINDS)
def test_each_slider_moves_its_own_number_alone(name):
    machine = machine_of(KINDS[name], name)
    mode, joint = JointsMode(machine, machine.neutral()), machine.joints[0]
    wanted = np.zeros(machine.nv)
    for k, index in enumerate(mode.numbers):
        wanted[mode.numbers[index].part] = 0.3 + 0.2 * k
        x = mode.set(index, 0.3 + 0.2 * k)
        machine.validate(x)
        np.testing.assert_allclose(values_at(machine, joint, x), wanted, atol=1e-12)


def test_a_rotation_vector_longer_than_half_a_turn_does_not_jump():
    machine = machine_of(Spherical(), "ball")
    mode = JointsMode(machine, machine.neutral())
    wanted = [2.5, 2.5, 1.0]
    for index, value in zip(mode.numbers, wanted, strict=True):
        mode.set(index, value)
    np.testing.assert_allclose(mode._values["ball"], wanted)
    R = Rotation.from_quat(mode.x, scalar_first=True)
    assert (R.inv() * Rotation.from_rotvec(wanted)).magnitude() < 1e-12


def test_arms_follow_the_object_that_they_hold():
    machine = MACHINES["two-armed-robot-with-object"]().numeric
    start = assemble(machine)
    mode = JointsMode(machine, start)
    index = next(k for k, one in mode.numbers.items() if one.name == "object turn z")
    joint, part = mode.numbers[index].joint, mode.numbers[index].part
    wanted = values_at(machine, joint, start)
    wanted[part] += 0.2
    x = mode.set(index, wanted[part])
    np.testing.assert_allclose(values_at(machine, joint, x), wanted, atol=1e-9)
    assert mode.joints.gap < 1e-9
    again = assemble(machine, x)
    assert np.abs(machine.difference(x, again)).max() < 1e-8
    assert np.abs(x - start)[:14].max() > 1e-2
    mode.joints.back()
    np.testing.assert_array_equal(mode.x, start)


def test_the_error_that_is_told_first_is_measured():
    """A machine that is closed but for rounding is not closed to zero."""
    machine = MACHINES["two-armed-robot-with-object"]()
    with view(machine, port=18690) as shown:
        assert 0 < shown.mode.joints.gap < 1e-9
