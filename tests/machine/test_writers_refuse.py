"""What a writer does not write it refuses: reading back gives every field again, or it is named."""

from dataclasses import replace

import numpy as np
import pytest

from framefree.geometry import Moments
from framefree.machine import (
    Body,
    Continuous,
    Free,
    Joint,
    Keyframe,
    Machine,
    Planar,
    Prismatic,
    Revolute,
    Spherical,
)
from framefree.machine.formats.writing import WriteError
from framefree.machine.read import read

SOLID = Moments.of_body(2.0, [0.1, 0.2, 0.3], np.diag([0.4, 0.5, 0.6]))
KINDS = {
    "revolute": Revolute("z"),
    "continuous": Continuous("z"),
    "prismatic": Prismatic("z"),
    "planar": Planar("z"),
    "spherical": Spherical(),
    "free": Free(),
}
FIELDS = {
    "lower": -0.5,
    "upper": 0.7,
    "velocity_limit": 3.0,
    "effort_limit": 4.0,
    "armature": 0.2,
    "damping": 0.3,
    "friction": 0.4,
    "stiffness": 0.5,
    "effort_lower": -1.0,
    "friction_asymmetry": 0.1,
}
WRITERS = {"urdf": Machine.to_urdf, "mjcf": Machine.to_mjcf}


def machine_with(kind, settings):
    joint = Joint("j", kind, "world", "b", **settings)
    return Machine([Body("b", SOLID)], [joint], name="m")


def settings_of(name, joint):
    """Return a number for every coordinate or velocity; only lengths have limits."""
    value = FIELDS[name]
    if name in ("lower", "upper") and not joint.kind.vector:
        free = np.sign(value) * np.full(joint.nx, np.inf)
        free[: {"Planar": 2, "Free": 3}.get(type(joint.kind).__name__, 0)] = value
        return {name: free}
    return {name: value, **({"friction": 0.4} if name == "friction_asymmetry" else {})}


def numbers(joint, name):
    return np.asarray(joint.effort_range[0] if name == "effort_lower" else getattr(joint, name))


@pytest.mark.parametrize("format", WRITERS)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", FIELDS)
def test_every_field_of_a_joint_is_written_or_refused(format, kind, name):
    if format == "mjcf":
        pytest.importorskip("mujoco")
    plain = Joint("j", KINDS[kind], "world", "b")
    limits = name in ("lower", "upper")
    if (name == "stiffness" and not plain.kind.springy) or (limits and kind == "continuous"):
        return
    machine = machine_with(KINDS[kind], settings_of(name, plain))
    try:
        again = read(WRITERS[format](machine))
    except WriteError:
        return
    parts = [joint for joint in again.joints if joint.nv]
    found = np.concatenate([numbers(joint, name) for joint in parts])
    expected = numbers(machine.joints[0], name)
    if len(found) == len(expected):
        np.testing.assert_array_equal(found, expected)
    else:  # an angle instead of its cosine and sine
        np.testing.assert_array_equal(found[:2], expected[:2])


@pytest.mark.parametrize(
    ("settings", "word"),
    [
        ({"lower": 0.3, "upper": 0.3}, "range"),
        ({"effort_limit": 0.0}, "effort_limit"),
        ({"velocity_limit": 0.0}, "velocity_limit"),
        ({"effort_limit": 2.0, "effort_lower": -1.0}, "effort_limit"),
    ],
)
def test_limits_that_urdf_cannot_say_are_left_out_on_request_only(settings, word):
    machine = machine_with(Revolute("z"), settings)
    with pytest.raises(WriteError, match=f'`without="{word}"` leaves it out'):
        machine.to_urdf()
    assert np.isinf(
        getattr(read(machine.to_urdf(without=word)).joints[0], word.replace("range", "upper"))
    )


def test_keyframes_and_mistyped_words():
    machine = machine_with(Revolute("z"), {})
    keyed = replace(machine, keyframes=(Keyframe("home", {"j": [0.1]}),))
    with pytest.raises(WriteError, match="keyframe"):
        keyed.to_urdf()
    assert "home" not in keyed.to_urdf(without="keyframe")
    for write in WRITERS.values():
        with pytest.raises(WriteError, match="`without` may name"):
            write(machine, without="armatur")
