"""What a URDF file says, and what is said about what is wrong with it."""

import numpy as np
import pytest
from model_kinematics import Chain, example_urdfs

from framefree.errors import FramefreeError
from framefree.machine import Continuous, Fixed, Free, Planar, Prismatic, Revolute
from framefree.machine.formats.markup import ReadError
from framefree.machine.read import read

INERTIAL = (
    '<inertial><origin xyz="0.1 0 0.2" rpy="0.3 -0.2 0.1"/><mass value="2"/>'
    '<inertia ixx="0.2" ixy="0.01" ixz="0.02" iyy="0.3" iyz="0.03" izz="0.25"/></inertial>'
)
LIMIT = '<limit lower="-1" upper="2" effort="30" velocity="4"/>'


def link(name, inside=INERTIAL):
    return f'<link name="{name}">{inside}</link>\n'


def joint(name, kind, parent, child, inside=""):
    return (
        f'<joint name="{name}" type="{kind}"><parent link="{parent}"/><child link="{child}"/>'
        f"{inside}</joint>\n"
    )


def robot(*parts):
    return '<robot name="sample">\n' + "".join(parts) + "</robot>"


ARM = robot(
    link("base"),
    link("upper"),
    link("lower"),
    link("tool"),
    link("tip", ""),
    joint(
        "lift",
        "prismatic",
        "base",
        "upper",
        f'<origin xyz="0 0 1" rpy="0.1 0.2 0.3"/><axis xyz="0 0 2"/>{LIMIT}',
    ),
    joint(
        "bend",
        "revolute",
        "upper",
        "lower",
        f'<axis xyz="0 1 0"/>{LIMIT}<dynamics damping="0.5" friction="0.2"/>',
    ),
    joint("flange", "fixed", "lower", "tool", '<origin xyz="0.2 0 0" rpy="0 1.5 0"/>'),
    joint("point", "fixed", "tool", "tip", '<origin xyz="0 0 0.1"/>'),
)


def problems_of(text, **options):
    with pytest.raises(ReadError) as caught:
        read(text, **options)
    return caught.value.problems


def test_kinds_limits_and_dynamics():
    machine = read(ARM)
    assert machine.name == "sample"
    assert [body.name for body in machine.bodies] == ["upper", "lower"]
    lift, bend = machine.joints
    assert isinstance(lift.kind, Prismatic)
    assert isinstance(bend.kind, Revolute)
    np.testing.assert_array_equal(lift.kind.axis, [0, 0, 1])
    assert (bend.lower[0], bend.upper[0]) == (-1, 2)
    assert (bend.effort_limit[0], bend.velocity_limit[0]) == (30, 4)
    assert (bend.damping[0], bend.friction[0]) == (0.5, 0.2)
    assert [(a.joint, *a.lower, *a.upper) for a in machine.actuators] == [
        ("lift", -30, 30),
        ("bend", -30, 30),
    ]
    assert read(ARM, motors=False).nu == 0


def test_fixed_links_are_frames_and_their_mass_is_kept():
    machine = read(ARM)
    assert [frame.name for frame in machine.frames] == ["base", "tool", "tip"]
    assert machine.frame("tip").body == "lower"
    assert machine.body("lower").moments.total == 4.0
    assert any("mass of link `base`, 2 kg" in message for message in machine.ignored)
    kept = read(ARM, keep_fixed=True)
    assert [type(j.kind) for j in kept.joints] == [Prismatic, Revolute, Fixed, Fixed]
    assert kept.body("tip").massless
    x = np.array([0.3, 0.7])
    merged, whole = Chain(machine)(x), Chain(kept)(x)
    for name in ("upper", "lower", "tool", "tip"):
        np.testing.assert_allclose(merged[name], whole[name], atol=1e-15)


def test_rotated_inertial_frame():
    m = read(ARM).body("upper").moments
    np.testing.assert_allclose(m.center, [0.1, 0, 0.2])
    expected = np.linalg.eigvalsh([[0.2, 0.01, 0.02], [0.01, 0.3, 0.03], [0.02, 0.03, 0.25]])
    np.testing.assert_allclose(np.linalg.eigvalsh(m.moment_at_center), expected)
    assert abs(m.moment_at_center[0, 1] - 0.01) > 1e-3


def test_floating_base_and_all_other_joint_types():
    text = robot(
        link("a"),
        link("b"),
        link("c"),
        link("d"),
        joint("f", "floating", "a", "b", '<origin xyz="1 2 3"/>'),
        joint("p", "planar", "b", "c", '<axis xyz="0 1 0"/>'),
        joint("w", "continuous", "c", "d", '<axis xyz="1 0 0"/><limit effort="3" velocity="5"/>'),
    )
    machine = read(text, base="free")
    assert [type(j.kind) for j in machine.joints] == [Free, Free, Planar, Continuous]
    assert machine.joints[0].name == "base"
    assert machine.x_names[:3] == ("base.px", "base.py", "base.pz")
    np.testing.assert_array_equal(machine.joint("f").parent_pose[:3, 3], [1, 2, 3])
    np.testing.assert_array_equal(machine.joint("p").kind.normal, [0, 1, 0])
    assert machine.joint("w").effort_limit[0] == 3
    assert {a.joint for a in machine.actuators} == {"p", "w"}
    assert read(text).nx == machine.nx - 7


def test_mimic_joints_follow_their_source():
    text = robot(
        *(link(name) for name in "abcd"),
        joint("one", "revolute", "a", "b", LIMIT),
        joint("two", "continuous", "b", "c", '<mimic joint="one" multiplier="-2" offset="0.5"/>'),
        joint("three", "prismatic", "c", "d", f'{LIMIT}<mimic joint="two" multiplier="3"/>'),
    )
    machine = read(text)
    assert isinstance(machine.joint("two").kind, Revolute)
    laws = {c.target: (c.sources, c.law.multipliers[0], c.law.offset) for c in machine.couplings}
    assert laws == {"two": (("one",), -2.0, 0.5), "three": (("one",), -6.0, 1.5)}
    assert [a.joint for a in machine.actuators] == ["one"]
    alone = read(text, mimic="independent")
    assert alone.couplings == ()
    assert alone.nu == 3
    circle = text.replace(LIMIT + "</joint>", LIMIT + '<mimic joint="three"/></joint>', 1)
    assert all("follows itself in a circle" in message for message in problems_of(circle))


def test_every_problem_is_reported_at_once_with_its_place():
    text = robot(
        link("a"),
        link("a"),
        '<link name="b"><inertial><mass value="-1"/><inertia ixx="1" ixy="0" ixz="0" iyy="1"'
        ' iyz="0"/></inertial></link>\n',
        '<link/>\n<link name="c"><inertial><mass value="x"/></inertial></link>\n',
        joint("j", "screw", "a", "b"),
        joint("k", "revolute", "a", "nowhere", '<axis xyz="0 0 0"/><limit effort="nan"/>'),
        joint("k", "fixed", "a", "b", '<origin xyz="1 2" rpy="0 0 1e999"/>'),
        '<joint name="l" type="fixed"/>\n<xacro:macro/>\n',
        "<drake:linear_spring_damper/>\n",
    )
    assert problems_of(text) == (
        "the text, <xacro:macro> of <robot>, line 11: <xacro:macro> is not URDF but xacro; expand "
        "the file with the xacro tool",
        "the text, <drake:linear_spring_damper> of <robot>, line 12: <drake:linear_spring_damper> "
        "is not supported: add a Spring and a Damper in Python instead",
        "the text, <inertia> of <inertial> of link `b`, line 4: <inertia> needs the attribute "
        "`izz`",
        "the text, link `b`, line 4: the mass must be positive, got -1 kg",
        "the text, <link>, line 5: <link> needs the attribute `name`",
        "the text, <inertial> of link `c`, line 6: <inertial> needs an element <inertia>",
        "the text, <mass> of <inertial> of link `c`, line 6: `value` must be one number, got 'x'",
        "the text, joint `j`, line 7: `type` must be one of fixed, revolute, continuous, "
        "prismatic, floating, planar, got 'screw'",
        "the text, joint `k`, line 8: the axis must not be zero, got (0, 0, 0)",
        "the text, <limit> of joint `k`, line 8: `effort` must be one number, got 'nan'",
        "the text, <origin> of joint `k`, line 9: `xyz` must be 3 numbers, got '1 2'",
        "the text, <origin> of joint `k`, line 9: `rpy` must be finite, got '0 0 1e999'",
        "the text, joint `l`, line 10: <joint> needs an element <parent>",
        "the text, joint `l`, line 10: <joint> needs an element <child>",
        "the text, link `a`, line 3: this name is taken by the link at line 2",
    )


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('<robot name="r"/>', "there are no links"),
        (robot(link("a"), link("b")), "got `a`, `b`"),
        (
            robot(
                link("a"), link("b"), joint("x", "fixed", "a", "b"), joint("y", "fixed", "b", "a")
            ),
            "close a cycle",
        ),
        (
            robot(
                link("a"), link("b"), joint("x", "fixed", "a", "b"), joint("y", "fixed", "a", "b")
            ),
            "child of joint `x` already",
        ),
        (
            robot(
                *(link(n) for n in "rabc"),
                joint("x", "fixed", "a", "b"),
                joint("y", "fixed", "b", "a"),
                joint("z", "fixed", "r", "c"),
            ),
            "not connected to the root link `r`",
        ),
        (robot(link("a"), link("b"), joint("x", "fixed", "a", "bb")), "did you mean `b`"),
        (
            robot(
                link("a"),
                link("b"),
                joint("x", "revolute", "a", "b", '<limit lower="2" upper="1"/>'),
            ),
            "inverted",
        ),
        (
            robot(
                link("a"), link("b"), joint("x", "revolute", "a", "b", '<dynamics damping="-1"/>')
            ),
            "must not be negative",
        ),
        (
            robot(
                link("a"),
                link("b", INERTIAL.replace('mass value="2"', 'mass value="0"')),
                joint("x", "revolute", "a", "b"),
            ),
            "mass of body `b` must be positive",
        ),
    ],
)
def test_what_is_not_a_tree_or_not_a_joint_is_refused(text, expected):
    assert any(expected in message for message in problems_of(text))


def test_impossible_inertia_is_listed_or_refused():
    bad = INERTIAL.replace('ixx="0.2"', 'ixx="2"')
    text = robot(
        link("a"),
        link("b", bad),
        link("c", bad),
        joint("x", "revolute", "a", "b"),
        joint("y", "fixed", "b", "c"),
    )
    machine = read(text)
    listed = [message for message in machine.problems if "triangle inequality" in message]
    assert any("link `b`, line 3" in message for message in listed)
    assert any("link `c`, line 4" in message for message in listed)
    refused = problems_of(text, strict=True)
    assert len(refused) == 2
    assert all("triangle inequality" in message for message in refused)


def test_doubtful_things_are_listed():
    text = robot(
        link("a"),
        link("b", ""),
        link("c"),
        joint("x", "revolute", "a", "b", '<limit lower="0" upper="0"/><mimic joint="gone"/>'),
        joint("y", "prismatic", "a", "c", '<limit effort="1" velocity="1"/>'),
    )
    machine = read(text)
    assert any("the limits leave no room" in message for message in machine.problems)
    assert any("`gone` is unknown" in message for message in machine.problems)
    assert any("joint `x` moves no mass" in message for message in machine.problems)
    assert np.isinf(machine.joint("x").upper[0])
    assert np.isinf(machine.joint("y").lower[0])
    assert any("`gone` is unknown" in message for message in problems_of(text, strict=True))


def test_what_moves_nothing_is_ignored_and_shapes_are_kept():
    shapes = (
        '<visual><origin xyz="0 0 1"/><geometry><box size="1 2 3"/></geometry>'
        '<material name="red"/></visual>'
        '<visual><geometry><mesh filename="package://arm/a.stl" scale="2 2 2"/></geometry></visual>'
        "<visual><geometry><cone/></geometry></visual>"
        '<collision><geometry><cylinder radius="0.1" length="2"/></geometry></collision>'
    )
    text = robot(
        '<material name="red"><color rgba="1 0 0 1"/></material>\n',
        link("a", shapes),
        "<gazebo><mu1>1</mu1></gazebo>\n<gazebo><mu1/></gazebo>\n<transmission/>\n",
    )
    machine = read(text)
    box, mesh, cylinder = machine.geometry
    assert (box.kind, box.color.tolist()) == ("box", [1, 0, 0, 1])
    assert (mesh.kind, mesh.file) == ("mesh", "package://arm/a.stl")
    assert (cylinder.role, cylinder.size.tolist()) == ("collision", [0.1, 2])
    gazebo = "<mu1> of <gazebo> (2 times, first at line 4): settings of Gazebo"
    assert gazebo in machine.ignored
    motors = "<transmission> of <robot> (at line 6): joints have motors of their own"
    assert motors in machine.ignored
    assert any("contact is not modelled" in message for message in machine.ignored)
    assert any("mesh files that were not found" in message for message in machine.ignored)
    assert any("<cone>" in message and "left out" in message for message in machine.problems)


def test_a_link_called_world_may_float():
    text = robot(link("world"), link("a"), joint("x", "revolute", "world", "a"))
    assert [body.name for body in read(text).bodies] == ["a"]
    floating = read(text, base="free")
    assert [body.name for body in floating.bodies] == ["world_link", "a"]
    assert any("`world_link`" in message for message in floating.problems)


@pytest.mark.slow
def test_all_example_robots_are_read_but_the_nameless_one():
    files = example_urdfs()
    if not files:
        pytest.skip("example-robot-data is not installed")
    assert len(files) == 69
    refused, impossible = {}, set()
    for name, path in files.items():
        try:
            machine = read(path)
        except FramefreeError as error:
            refused[name] = str(error)
        else:
            if any("triangle inequality" in message for message in machine.problems):
                impossible.add(name)
    assert list(refused) == ["ur_description/ur3.urdf"]
    assert "<robot> needs the attribute `name`" in refused["ur_description/ur3.urdf"]
    assert len(impossible) == 18
