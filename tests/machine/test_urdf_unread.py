"""URDF 1.1 and 1.2, loops of other programs, and what is not read: misspelt, second, idle."""

import numpy as np
import pytest
from test_urdf import INERTIAL, joint, link, problems_of, robot

from framefree.machine import MachineError, Prismatic
from framefree.machine.formats.markup import ReadError
from framefree.machine.problems import grouped
from framefree.machine.read import read
from framefree.motion import equations

COUPLING = (
    '<coupling name="belt"><predecessor link="{}"/><successor link="{}"/><ratio value="{}"/>'
    "</coupling>"
)


def two_links(inside="", extra=""):
    return robot(link("a"), link("b"), joint("x", "revolute", "a", "b", inside), extra)


def unread(text):
    return [message for message in read(text).problems if "is not read" in message]


def test_a_quaternion_gives_the_rotation():
    by_angles = two_links('<origin xyz="1 2 3" rpy="0 0.6 0"/>')
    half = 0.3
    by_quaternion = two_links(
        f'<origin xyz="1 2 3" quat_xyzw="0 {np.sin(half)} 0 {np.cos(half)}"/>'
    ).replace('name="sample"', 'name="sample" version="1.1"')
    poses = [read(text).joint("x").parent_pose for text in (by_angles, by_quaternion)]
    np.testing.assert_allclose(poses[0], poses[1], atol=1e-15)
    assert not unread(by_quaternion)


@pytest.mark.parametrize(
    ("origin", "words"),
    [
        ('quat_xyzw="0 0 0 1" rpy="0 0 0"', "both give the rotation"),
        ('quat_xyzw="0 0 0 0"', "must have unit length, got 0"),
        ('quat_xyzw="0 0 0 2"', "must have unit length, got 2"),
        ('quat_xyzw="0 0 1"', "must be 4 numbers"),
    ],
)
def test_broken_quaternions_are_refused(origin, words):
    assert any(words in message for message in problems_of(two_links(f"<origin {origin}/>")))


def test_the_version_is_known():
    for version in ("1.0", "1.1", "1.2"):
        assert read(two_links().replace("<robot ", f'<robot version="{version}" ')).nv == 1
    refused = problems_of(two_links().replace("<robot ", '<robot version="2.0" '))
    assert "`version` must be one of 1.0, 1.1, 1.2, got '2.0'" in refused[0]


def test_limits_of_acceleration_are_listed():
    limit = '<limit lower="-1" upper="1" acceleration="3" jerk="4"/>'
    ignored = read(two_links(limit)).ignored
    assert any("`acceleration` of <limit>" in message for message in ignored)
    assert any("`jerk` of <limit>" in message for message in ignored)
    assert read(two_links(limit), strict=True).nv == 1


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (
            two_links('<dynamics dampening="1"/>'),
            "attribute `dampening` of <dynamics> (did you mean `damping`?) is not read",
        ),
        (two_links("<dynamic damping='1'/>"), "<dynamic> of <joint> is not read"),
        (
            two_links('<dynamics damping="1"/><dynamics damping="2"/>'),
            "a second <dynamics> of <joint> is not read",
        ),
        (robot(link("a", INERTIAL + INERTIAL)), "a second <inertial> of <link> is not read"),
        (
            robot(
                link("a"),
                link("b"),
                joint("x", "continuous", "a", "b", '<limit lower="-1" upper="1" effort="2"/>'),
            ),
            "attribute `lower` of <limit> is not read",
        ),
        (two_links("free text"), "text in <joint> is not read"),
        (
            two_links(extra='<gazebo reference="b"><turnGravityOff>true</turnGravityOff></gazebo>'),
            "<turnGravityOff> of <gazebo> is not read",
        ),
    ],
)
def test_what_is_not_read_is_listed_or_refused(text, words):
    assert any(words in message for message in unread(text))
    assert any(words in message for message in problems_of(text, strict=True))


def test_gazebo_s_springs_of_joints_are_read():
    spring = "<springStiffness>7</springStiffness><springReference>0.3</springReference>"
    machine = read(two_links(extra=f'<gazebo reference="x">{spring}</gazebo>'))
    assert (machine.joint("x").stiffness[0], machine.joint("x").rest[0]) == (7.0, 0.3)
    wrong = two_links(extra=f'<gazebo reference="y">{spring}</gazebo>')
    assert "which is not there" in problems_of(wrong)[0]


def loop_of(extension):
    links = [link(name) for name in "abc"]
    joints = [
        joint("x", "revolute", "a", "b", '<axis xyz="0 1 0"/>'),
        joint("y", "prismatic", "a", "c", '<axis xyz="0 0 1"/>'),
    ]
    machine = read(robot(*links, *joints, extension))
    (loop,) = machine.loops
    return machine, loop


@pytest.mark.parametrize(
    ("type_", "kind"),
    [
        ("fixed", "weld"),
        ("revolute", "hinge"),
        ("continuous", "hinge"),
        ("prismatic", "slider"),
        ("spherical", "ball"),
    ],
)
@pytest.mark.parametrize(
    "form",
    [
        '<loop_joint name="l" type="{}"><link1 link="b" xyz="1 0 0" rpy="0.1 0 0"/>'
        '<link2 link="c" xyz="0 2 0" rpy="0 0.2 0"/>{}</loop_joint>',
        '<loop_joint name="l" type="{}"><link1 link="b" xyz="1 0 0" rpy="0.1 0 0"/>'
        '<link1 link="c" xyz="0 2 0" rpy="0 0.2 0"/>{}</loop_joint>',
        '<loop name="l" type="{}"><predecessor link="b"><origin xyz="1 0 0" rpy="0.1 0 0"/>'
        '</predecessor><successor link="c"><origin xyz="0 2 0" rpy="0 0.2 0"/></successor>'
        "{}</loop>",
    ],
)
def test_published_forms_of_loops(form, type_, kind):
    axis = '<axis xyz="0 3 0"/>' if kind in ("hinge", "slider") else ""
    machine, loop = loop_of(form.format(type_, axis))
    assert loop.kind == kind
    a, b = machine.frame(loop.frame_a), machine.frame(loop.frame_b)
    assert (a.body, b.body) == ("b", "c")
    np.testing.assert_allclose(a.pose[:3, 3], [1, 0, 0])
    np.testing.assert_allclose(a.pose[2, 1], np.sin(0.1))
    np.testing.assert_allclose(b.pose[:3, 3], [0, 2, 0])
    np.testing.assert_allclose(b.pose[0, 2], np.sin(0.2))
    if axis:
        np.testing.assert_allclose(loop.axis, [0, 1, 0])


def test_a_ball_of_drake_and_a_fixed_frame_of_isaac():
    machine, loop = loop_of(
        "<drake:ball_constraint>"
        '<drake:ball_constraint_body_A name="b"/><drake:ball_constraint_p_AP value="1 2 3"/>'
        '<drake:ball_constraint_body_B name="c"/><drake:ball_constraint_p_BQ value="4 5 6"/>'
        "</drake:ball_constraint>"
        '<fixed_frame name="tip"><parent link="b"/><origin xyz="7 8 9"/></fixed_frame>'
    )
    assert loop.kind == "ball"
    np.testing.assert_array_equal(machine.frame(loop.frame_a).pose[:3, 3], [1, 2, 3])
    np.testing.assert_array_equal(machine.frame(loop.frame_b).pose[:3, 3], [4, 5, 6])
    np.testing.assert_array_equal(machine.frame("tip").pose[:3, 3], [7, 8, 9])
    assert isinstance(machine.joint("y").kind, Prismatic)


@pytest.mark.parametrize(
    ("extension", "words"),
    [
        ('<loop_joint name="l" type="gear"/>', "`type` must be one of"),
        ('<loop_joint name="l" type="fixed"><link1 link="a"/></loop_joint>', "needs two ends"),
        (
            '<loop_joint name="l" type="fixed"><link1 link="a"/><link2 link="q"/></loop_joint>',
            "`q` is unknown",
        ),
        ('<gazebo><joint name="j" type="revolute"/></gazebo>', "needs an element <child>"),
        ('<gazebo><joint name="x" type="fixed"/></gazebo>', "taken by another joint"),
        ('<gazebo><joint type="fixed"/></gazebo>', "needs a `name`"),
        (
            '<gazebo><joint name="j" type="fixed"><parent>a</parent><child>q</child></joint>'
            "</gazebo>",
            "`q` is unknown",
        ),
        ('<gazebo reference="b"><joint name="j" type="fixed"/></gazebo>', "without `reference`"),
        ("<coupling/>", "<coupling> needs <predecessor link"),
        (COUPLING.format("a", "q", 2), "`q` is unknown"),
        (COUPLING.format("a", "b", 0), "must not be zero"),
        (COUPLING.format("a", "b", 2), "no joint moves the predecessor `a`"),
    ],
)
def test_broken_loops_are_refused(extension, words):
    assert any(words in message for message in problems_of(two_links(extra=extension)))


def test_many_alike_problems_are_one_line():
    links = "".join(f'<link name="l{i}"><inertial/></link>\n' for i in range(700))
    with pytest.raises(ReadError) as caught:
        read(robot(links, "<link/>"))
    assert len(caught.value.problems) > 1400
    lines = str(caught.value).splitlines()
    assert len(lines) < 8
    assert "(and 699 more of this kind, at lines 3, 4, 5, ...)" in lines[1]
    assert grouped(["a `x`: 1", "a `y`: 2"]) == ["a `x`: 1", "a `y`: 2"]
    assert str(MachineError(["one", "two"])) == "2 problems:\n  1. one\n  2. two"


def two_branches(kind="revolute", marked=""):
    """Two branches of two joints each on one link, that a belt couples by a ratio of -2.5."""
    turns = '<axis xyz="0 0 1"/><origin xyz="0.3 0 0"/>'
    if kind == "revolute":
        turns += '<limit lower="-3" upper="3" effort="5" velocity="5"/>'
    links = [link(name, INERTIAL) for name in ("root", "a1", "a2", "b1", "b2")]
    joints = [
        joint(f"j_{child}", kind, parent, child, turns)
        for parent, child in (("root", "a1"), ("a1", "a2"), ("root", "b1"), ("b1", "b2"))
    ]
    text = robot(*links, *joints, COUPLING.format("a2", "b2", -2.5))
    return text.replace(f'name="{marked}"', f'name="{marked}" independent="False"', 1)


@pytest.mark.parametrize("kind", ["revolute", "continuous", "prismatic"])
@pytest.mark.parametrize(("marked", "target"), [("", "j_b2"), ("j_a1", "j_a1"), ("j_b1", "j_b1")])
def test_a_coupling_of_urdf_plus_relates_the_joints_to_both_links(kind, marked, target):
    """Inertia in minimal coordinates: G' M G with G from K = (ratio, ratio, -1, -1)."""
    machine = read(two_branches(kind, marked))
    (coupling,) = machine.couplings
    assert (coupling.name, coupling.target) == ("belt", target)
    names = list(machine.v_names)
    K = np.array([-2.5 if "_a" in name else -1.0 for name in names])
    free = [k for k, name in enumerate(names) if name != target]
    follows = names.index(target)
    G = np.zeros((4, 3))
    G[free] = np.eye(3)
    G[follows] = -K[free] / K[follows]
    assert np.abs(K @ G).max() < 1e-12
    whole = equations(machine.tree).mass(np.zeros(4))
    embedded = equations(machine, "embedded")
    reduced = embedded.mass(np.zeros(3))
    assert np.allclose(np.sort(np.linalg.eigvalsh(reduced)), np.linalg.eigvalsh(G.T @ whole @ G))
