"""What an SDFormat file says, and what is said about what is wrong with it."""

from pathlib import Path

import numpy as np
import pytest

from framefree.machine import Fixed, Free, Revolute
from framefree.machine.formats.markup import ReadError
from framefree.machine.read import read

MODELS = Path(__file__).parents[1] / "data" / "models"
MASS = "<inertial><mass>1</mass></inertial>"


def model(*parts, version="1.9", name="m"):
    inside = "\n".join(parts)
    return f'<sdf version="{version}"><model name="{name}">\n{inside}\n</model></sdf>'


def link(name, inside=MASS):
    return f'<link name="{name}">{inside}</link>'


def joint(name, kind, parent, child, inside="<axis><xyz>0 1 0</xyz></axis>"):
    ends = f"<parent>{parent}</parent><child>{child}</child>"
    return f'<joint name="{name}" type="{kind}">{ends}{inside}</joint>'


def problems_of(text, **options):
    with pytest.raises(ReadError) as caught:
        read(text, **options)
    return caught.value.problems


def test_a_model_floats_unless_it_is_held():
    free = model(link("a"), link("b"), joint("j", "revolute", "a", "b"))
    assert [type(j.kind) for j in read(free).joints] == [Free, Revolute]
    assert [type(j.kind) for j in read(free, base="fixed").joints] == [Revolute]
    held = free.replace("</model>", joint("w", "fixed", "world", "a", "") + "</model>")
    assert [type(j.kind) for j in read(held).joints] == [Revolute]
    assert [type(j.kind) for j in read(held, keep_fixed=True).joints] == [Fixed, Revolute]
    assert [type(j.kind) for j in read(held, base="free").joints] == [Free, Revolute]
    static = free.replace("<link", "<static>true</static><link", 1)
    assert read(static).nv == 0
    assert any("static model" in message for message in read(static).ignored)


def test_the_initial_poses_are_those_of_the_neutral_configuration():
    text = model(
        link("a", "<pose>1 2 3 0 0 0.5</pose>" + MASS),
        link("b", '<pose relative_to="a">1 0 0 0 0 0</pose>' + MASS),
        joint("j", "revolute", "a", "b", "<pose>0 0.5 0 0 0 0</pose><axis><xyz>0 0 1</xyz></axis>"),
    )
    machine = read(text)
    base, j = machine.joints
    np.testing.assert_allclose(base.parent_pose[:3, 3], [1, 2, 3])
    np.testing.assert_allclose(j.parent_pose[:3, 3], [1, 0.5, 0])
    np.testing.assert_allclose(j.child_pose[:3, 3], [0, 0.5, 0])


def test_a_ring_of_joints_and_forces_in_the_joint_that_closes_it():
    ring = [link(name) for name in "abc"]
    ring += [joint(f"{p}{c}", "revolute", p, c) for p, c in ("ab", "bc", "ca")]
    machine = read(model(*ring))
    assert [(loop.name, loop.kind) for loop in machine.loops] == [("ca", "hinge")]
    damped = joint(
        "ca", "revolute", "c", "a", "<axis><dynamics><damping>2</damping></dynamics></axis>"
    )
    machine = read(model(*ring[:-1], damped))
    assert [(loop.name, loop.kind) for loop in machine.loops] == [("ca", "weld")]
    assert machine.joint("ca").damping[0] == 2.0
    assert machine.body("a_ca").massless


def test_old_files_have_axes_in_the_model_s_frame():
    turned = "<pose>0 0 0 0 0 1.5707963267948966</pose>" + MASS
    text = model(link("a"), link("b", turned), joint("j", "revolute", "a", "b"), version="{}")
    for version, inside, axis in (
        ("1.4", "", [1, 0, 0]),
        ("1.5", "", [0, 1, 0]),
        ("1.6", "<use_parent_model_frame>true</use_parent_model_frame>", [1, 0, 0]),
        ("1.7", "", [0, 1, 0]),
    ):
        made = read(text.format(version).replace("</xyz>", f"</xyz>{inside}"))
        np.testing.assert_allclose(made.joint("j").kind.axis, axis, atol=1e-15)


def test_limits_that_mean_none_and_negative_efforts():
    limit = (
        "<limit><lower>-1e16</lower><upper>inf</upper><effort>-1</effort><velocity>2</velocity>"
        "</limit>"
    )
    machine = read(
        model(link("a"), link("b"), joint("j", "revolute", "a", "b", f"<axis>{limit}</axis>"))
    )
    j = machine.joint("j")
    assert (j.lower[0], j.upper[0], j.effort_limit[0], j.velocity_limit[0]) == (
        -np.inf,
        np.inf,
        np.inf,
        2,
    )


def test_a_link_without_inertia_has_that_of_the_format():
    machine = read(model(link("a", "")))
    assert machine.body("a").moments.total == 1.0
    assert any("gives it 1 kg" in message for message in machine.problems)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('<sdf version="1.3"><model name="m"/></sdf>', "`version` must be one of 1.4 to 1.12"),
        ('<sdf version="1.9"/>', "needs a <model>"),
        (model(link("a"), link("a")), "the name `a` is taken"),
        (model(link("a"), joint("j", "gearbox", "a", "a")), "a gearbox is written as a <mimic>"),
        (model(link("a"), joint("j", "revolute", "world", "a", "")), "needs an element <axis>"),
        (model(link("a"), joint("j", "fixed", "a", "world", "")), "must not be the world"),
        (model(link("a"), joint("j", "fixed", "a", "a", "")), "with itself"),
        (model(link("a"), joint("j", "fixed", "a", "bb", "")), "`bb` is unknown"),
        (model(link("a", MASS + "<gravity>false</gravity>")), "<gravity> false is not supported"),
        (model(link("a", '<inertial auto="true"/>')), "write the inertia out"),
        (model(link("a", '<pose relative_to="a">0 0 0 0 0 0</pose>')), "in a circle"),
        (model(link("a", "<pose>0 0 0</pose>")), "must be 6 numbers"),
        (
            model(link("a", "<velocity_decay><linear>0.1</linear></velocity_decay>")),
            "the decay of velocities",
        ),
        (model('<include merge="true"><uri>x</uri></include>'), 'merge="true"'),
    ],
)
def test_what_cannot_be_is_refused(text, words):
    assert any(words in message for message in problems_of(text))


def test_poses_that_hang_on_each_other_over_many_frames():
    count = 3000
    links = [
        link(f"l{i}", f'<pose relative_to="l{i + 1}">0 0 1 0 0 0</pose>{MASS}')
        for i in range(count)
    ]
    assert "over too many frames" in problems_of(model(*links, link(f"l{count}")))[0]
    ordered = [link("l0")] + [
        link(f"l{i}", f'<pose relative_to="l{i - 1}">0 0 1 0 0 0</pose>{MASS}')
        for i in range(1, 1200)
    ]
    machine = read(model(*ordered), base="fixed")
    assert machine.frame("l1199").pose[2, 3] == 1199.0


def test_every_problem_is_reported_at_once():
    text = model(
        link("a", "<inertial><mass>x</mass></inertial>"),
        link("b", "<inertial><mass>-1</mass></inertial>"),
        joint("j", "revolute", "a", "b", "<axis><xyz>0 0 0</xyz></axis>"),
        joint("k", "odd", "a", "b"),
    )
    problems = problems_of(text)
    assert len(problems) == 4
    assert all(message.startswith("the text, ") and ", line " in message for message in problems)
