"""What a MJCF file asks for: options of the reader, refusals by name, and what is ignored."""

import numpy as np
import pytest
from mjcf_samples import EVERYTHING, LINKAGE

from framefree.machine import Fixed, Free, Revolute, Spherical
from framefree.machine.formats.markup import ReadError
from framefree.machine.read import read

mujoco = pytest.importorskip("mujoco")
GEOM = '<geom type="box" size="0.1 0.2 0.3"/>'
ARM = (
    '<body name="trunk"><geom size="0.1"/><body name="arm" pos="0 0 1"><joint name="j"/>'
    f"{GEOM}</body></body>"
)


def model(bodies=ARM, rest="", option=""):
    return f"<mujoco>\n{option}\n<worldbody>\n{bodies}\n</worldbody>\n{rest}\n</mujoco>"


def problems_of(text, **options):
    with pytest.raises(ReadError) as caught:
        read(text, **options)
    return caught.value.problems


def test_several_joints_have_massless_bodies_between_them():
    machine = read(EVERYTHING)
    names = [body.name for body in machine.bodies]
    assert names[:3] == ["shoulder_pan", "shoulder_lift", "shoulder"]
    assert [body.massless for body in machine.bodies[:3]] == [True, True, False]
    assert machine.joint("elbow").parent == "shoulder"
    assert isinstance(machine.joint("elbow").kind, Spherical)
    assert machine.frame("palm").body == "forearm"
    assert machine.frame("palm_site").body == "forearm"
    assert machine.joint("drone_free").child == "drone"
    assert machine.joint("gimbal_hinge").armature[0] == 0.02


def test_limits_and_gravity():
    machine = read(EVERYTHING)
    pan = machine.joint("pan")
    np.testing.assert_allclose([pan.lower[0], pan.upper[0]], np.deg2rad([-90, 120]))
    np.testing.assert_array_equal(machine.gravity, [0.3, -0.2, -9.7])
    off = model(option='<option><flag gravity="disable"/></option>')
    np.testing.assert_array_equal(read(off).gravity, [0, 0, 0])


def test_switched_off_physics_is_off():
    words = 'spring="disable" damper="disable"'
    if not hasattr(mujoco.mjtDisableBit, "mjDSBL_SPRING"):
        words = 'passive="disable"'
    flags = f'<option><flag {words} frictionloss="disable"/></option>'
    body = f'<body><joint name="j" stiffness="3" damping="2" frictionloss="1"/>{GEOM}</body>'
    on, off = read(model(body)).joint("j"), read(model(body, option=flags)).joint("j")
    assert (on.stiffness[0], on.damping[0], on.friction[0]) == (3, 2, 1)
    assert (off.stiffness[0], off.damping[0], off.friction[0]) == (0, 0, 0)
    equal = '<equality><joint joint1="j"/></equality><actuator><motor joint="j"/></actuator>'
    flags = '<option><flag equality="disable" actuation="disable"/></option>'
    assert len(read(model(rest=equal)).loops) == 1
    quiet = read(model(rest=equal, option=flags))
    assert (quiet.loops, quiet.actuators) == ((), ())


def test_the_base_floats_or_is_held():
    floating = read(model(), base="free")
    assert [type(joint.kind) for joint in floating.joints] == [Free, Revolute]
    assert floating.joints[0].name == "base"
    assert [body.name for body in read(model()).bodies] == ["arm"]
    free = model(
        '<body name="a" pos="1 2 3"><freejoint/>' + GEOM + ARM.replace("trunk", "b") + "</body>"
    )
    assert read(free).nv == 7
    held = read(free, base="fixed")
    assert held.nv == 1
    np.testing.assert_array_equal(held.frame("a").pose[:3, 3], [1, 2, 3])
    two = model(ARM + ARM.replace("trunk", "x").replace('"arm"', '"y"').replace('"j"', '"k"'))
    assert "one body in the world" in problems_of(two, base="free")[0]
    driven = model(f'<body><joint name="j"/>{GEOM}</body>')
    assert "with joints" in problems_of(driven, base="free")[0]


def test_fixed_bodies_can_be_kept():
    kept = read(EVERYTHING, keep_fixed=True)
    assert isinstance(kept.joint("pedestal_fixed").kind, Fixed)
    assert kept.body("palm").moments.total > 0
    merged = read(EVERYTHING)
    total = sum(body.moments.total for body in merged.bodies)
    pedestal = kept.body("pedestal").moments.total
    assert total + pedestal == pytest.approx(sum(body.moments.total for body in kept.bodies))


def test_actuators_give_their_joint_armature_and_damping_through_the_gear():
    text = model(rest='<actuator><motor joint="j" gear="3" armature="2" damping="0.5"/></actuator>')
    try:
        mujoco.MjModel.from_xml_string(text)
    except ValueError:
        pytest.skip("this MuJoCo has no armature of actuators")
    joint = read(text).joint("j")
    assert (joint.armature[0], joint.damping[0]) == (18.0, 4.5)


@pytest.mark.parametrize(
    ("rest", "option", "expected"),
    [
        (
            '<tendon>\n<fixed name="t" armature="1"><joint joint="j" coef="1"/></fixed></tendon>',
            "",
            "the text, <fixed> `t`, line 7: a tendon with `armature`, its own or of an actuator, "
            'is not supported; `without="tendon"` leaves it out',
        ),
        (
            '<actuator>\n<general joint="j" dyntype="filter" actearly="true"/></actuator>',
            "",
            "the text, <general>, line 7: an actuator with `actearly` is not supported; "
            '`without="actuator:actuator0"` leaves it out, `without="actuator"` all',
        ),
        (
            '<equality>\n<tendon tendon1="t" tendon2="s" polycoef="0 1 2 0 0"/></equality>'
            '<tendon><fixed name="t"><joint joint="j" coef="1"/></fixed>'
            '<fixed name="s"><joint joint="j" coef="3"/></fixed></tendon>',
            "",
            "the text, <tendon>, line 7: a constraint with powers of a tendon's length; "
            '`without="equality"` leaves all out',
        ),
    ],
)
def test_what_changes_the_motion_is_refused_by_name(rest, option, expected):
    assert expected in problems_of(model(rest=rest, option=option))


@pytest.mark.parametrize(
    ("bodies", "words"),
    [
        (f'<body><joint type="free" armature="1"/>{GEOM}</body>', "`armature` = 1 of a free joint"),
        (f'<body><joint type="free" stiffness="1"/>{GEOM}</body>', "`stiffness` = 1 of a free"),
        ('<flexcomp name="f" type="grid" count="2 2 1" spacing="1 1 1"/>', "<flexcomp> is refused"),
        ('<composite type="cable" count="9 1 1"/>', "<composite> is refused"),
        (f'<body><plugin plugin="x"/>{GEOM}</body>', "<plugin> is refused"),
    ],
)
def test_bodies_that_are_not_supported(bodies, words):
    assert any(words in message for message in problems_of(model(bodies)))


def test_what_is_refused_can_be_left_out_on_request():
    text = model(
        ARM.replace('name="arm"', 'name="arm" gravcomp="1"'),
        '<tendon><fixed name="t" damping="1"><joint joint="j" coef="1"/></fixed></tendon>'
        '<actuator><muscle joint="j"/></actuator>'
        '<equality><tendon tendon1="t"/></equality>'
        '<keyframe><key name="k" qpos="1" ctrl="3" act="2"/></keyframe>',
        '<option density="1.2"/>',
    )
    names = ("tendon", "actuator", "equality", "fluid", "gravcomp")
    machine = read(text, without=names)
    assert machine.keyframe("k")[0].tolist() == [1.0]
    for words in ("`damping`", "<actuator>", "<equality>", "`density`", "`gravcomp`"):
        assert any(words in m and "left out on request" in m for m in machine.ignored), words


def test_what_moves_nothing_is_ignored():
    text = model(
        ARM + '<light/><camera/><body name="m" mocap="true"/>',
        '<sensor><jointpos joint="j"/></sensor><contact><exclude body1="trunk" body2="arm"/>'
        '</contact><tendon><fixed name="t"><joint joint="j" coef="1"/></fixed></tendon>',
    )
    ignored = read(text).ignored
    for words in ("<light>", "<sensor>", "contact is not modelled"):
        assert any(words in message for message in ignored), words
    assert any("mass of body `trunk`" in message for message in ignored)
    assert any("mocap" in message for message in ignored)
    assert any("they are rigid" in message for message in read(LINKAGE).ignored)


def test_shapes_by_role_and_size():
    machine = read(EVERYTHING)
    kinds = {(shape.frame, shape.kind) for shape in machine.geometry}
    assert ("world", "plane") in kinds
    assert ("shoulder", "capsule") in kinds
    assert ("forearm", "box") in kinds  # the mesh has no file, so that its box is drawn
    capsule = next(shape for shape in machine.geometry if shape.kind == "capsule")
    np.testing.assert_allclose(capsule.size, [0.05, np.hypot(0.3, 0.1)])
    np.testing.assert_allclose(capsule.color, [0.2, 0.4, 0.6, 1.0], atol=1e-7)


def test_unnamed_and_clashing_names():
    text = model(f'<body><joint/><joint type="slide"/>{GEOM}<site name="body1"/><site/></body>')
    machine = read(text)
    assert [body.name for body in machine.bodies] == ["body1_body1_hinge", "body1"]
    assert [joint.name for joint in machine.joints] == ["body1_hinge", "body1_slide"]
    assert {frame.name for frame in machine.frames} == {"body1_site", "site1"}
