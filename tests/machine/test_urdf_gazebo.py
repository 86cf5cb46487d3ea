"""Loops that a <joint> within <gazebo> closes, against Pinocchio; which joints have motors."""

import numpy as np
import pytest

from framefree.control.robust import RobustControl
from framefree.machine.formats.markup import ReadError
from framefree.machine.layouts import layout
from framefree.machine.read import read
from framefree.motion import Constrained

CRANK, COUPLER, ROCKER, GROUND = 0.5, 0.9, 0.6, 1.0
FIRST = 1.2
"""rad, by which the crank is drawn upwards; the others follow by the law of cosines."""


def drawn():
    """Angles (rad, upwards from the ground) of crank, coupler and rocker as the file draws them."""
    tip = CRANK * np.array([np.cos(FIRST), np.sin(FIRST)])
    reach = np.array([GROUND, 0.0]) - tip
    far = np.linalg.norm(reach)
    inner = np.arccos((far**2 + COUPLER**2 - ROCKER**2) / (2 * far * COUPLER))
    coupler = np.arctan2(reach[1], reach[0]) + inner
    end = tip + COUPLER * np.array([np.cos(coupler), np.sin(coupler)])
    return FIRST, coupler, np.arctan2(end[1], end[0] - GROUND)


def link(name, length):
    return (
        f'<link name="{name}"><inertial><origin xyz="{length / 2} 0 0"/><mass value="1"/>'
        '<inertia ixx="0.03" iyy="0.1" izz="0.12" ixy="0" ixz="0" iyz="0"/></inertial></link>'
    )


def hinge(name, parent, child, x, up):
    return (
        f'<joint name="{name}" type="revolute"><parent link="{parent}"/><child link="{child}"/>'
        f'<origin xyz="{x} 0 0" rpy="0 {-up:.17g} 0"/><axis xyz="0 1 0"/>'
        '<limit lower="-4" upper="4" effort="50" velocity="9"/></joint>'
    )


def four_bar(extra):
    crank, coupler, rocker = drawn()
    return (
        '<robot name="bars"><link name="base"/>'
        + link("a", CRANK) + link("b", COUPLER) + link("c", ROCKER)
        + hinge("ja", "base", "a", 0, crank) + hinge("jb", "a", "b", CRANK, coupler - crank)
        + hinge("jc", "base", "c", GROUND, rocker) + extra + "</robot>"
    )  # fmt: skip


def closed(type_="revolute", more=""):
    return (
        f'<gazebo><joint name="pin" type="{type_}"><parent>b</parent><child>c</child>'
        f"<pose>{ROCKER} 0 0 0 0.3 0</pose>{more}</joint></gazebo>"
    )


AXIS = "<axis><xyz>0 1 0</xyz><limit><lower>-1e+16</lower><upper>1e+16</upper></limit></axis>"


@pytest.mark.parametrize(("type_", "axis"), [("ball", ""), ("revolute", AXIS)])
def test_the_robot_moves_as_pinocchios(type_, axis):
    pin = pytest.importorskip("pinocchio")
    text = four_bar(closed(type_, axis))
    machine = read(text)
    assert machine.loops[0].kind == {"ball": "ball", "revolute": "hinge"}[type_]
    assert not machine.problems
    form = Constrained(machine)
    rng = np.random.default_rng(3)
    state = form.project(rng.normal(size=3) * 0.2, rng.normal(size=3))
    force = rng.normal(size=3)
    ours = np.asarray(form.solve(state.x, state.v, force).a)

    model = pin.buildModelFromXML(text)
    order = layout(machine, "pinocchio", list(model.names[1:]))
    places = [
        (model.getJointId("jb"), pin.SE3(np.eye(3), np.array([COUPLER, 0, 0]))),
        (model.getJointId("jc"), pin.SE3(np.eye(3), np.array([ROCKER, 0, 0]))),
    ]
    contact = pin.RigidConstraintModel(
        pin.ContactType.CONTACT_3D, model, *places[0], *places[1], pin.ReferenceFrame.LOCAL
    )
    models, datas = pin.StdVec_RigidConstraintModel(), pin.StdVec_RigidConstraintData()
    models.append(contact)
    datas.append(contact.createData())
    data = model.createData()
    pin.initConstraintDynamics(model, data, models, datas)
    q, v, tau = (order.x_to(state.x), *(order.v_to(state.x, a) for a in (state.v, force)))
    settings = pin.ProximalSettings(1e-14, 1e-14, 200)
    theirs = pin.constraintDynamics(model, data, q, v, tau, models, datas, settings)
    assert np.abs(order.v_to(state.x, ours) - theirs).max() < 1e-6 * np.abs(theirs).max()


def test_it_is_the_loop_of_other_programs():
    """The same pin as <loop_joint> says it, with both its places."""
    _, coupler, rocker = drawn()
    said = (
        f'<loop_joint name="pin" type="revolute"><link1 link="b" xyz="{COUPLER} 0 0" '
        f'rpy="0 {0.3 - rocker + coupler:.17g} 0"/>'
        f'<link2 link="c" xyz="{ROCKER} 0 0" rpy="0 0.3 0"/><axis xyz="0 1 0"/></loop_joint>'
    )
    ours, theirs = read(four_bar(closed(more=AXIS))), read(four_bar(said))
    for end in ("pin_a", "pin_b"):
        poses = [np.asarray(machine.frame(end).pose) for machine in (ours, theirs)]
        assert np.abs(poses[0] - poses[1]).max() < 1e-12
    assert np.allclose(ours.loops[0].axis, theirs.loops[0].axis)


def test_a_joint_with_damping_closes_the_loop_by_a_body_of_its_own():
    more = "<axis><xyz>0 1 0</xyz><dynamics><damping>0.7</damping></dynamics></axis>"
    machine = read(four_bar(closed(more=more)))
    assert machine.joint("pin").damping == 0.7
    assert machine.loops[0].kind == "weld"


TRANSMISSION = (
    '<transmission name="t"><type>transmission_interface/SimpleTransmission</type>'
    '<joint name="jc"><hardwareInterface>EffortJointInterface</hardwareInterface></joint>'
    '<actuator name="m"/></transmission>'
)
COMMANDED = (
    '<ros2_control name="r" type="system"><joint name="jc"><command_interface name="effort"/>'
    '<state_interface name="position"/></joint><joint name="ja"><state_interface name="position"/>'
    "</joint></ros2_control>"
)


@pytest.mark.parametrize("said", [TRANSMISSION, COMMANDED])
def test_the_file_says_which_joints_of_a_loop_are_driven(said):
    machine = read(four_bar(closed(more=AXIS) + said))
    assert machine.u_names == ("jc",)
    assert RobustControl(machine).coordinates == ("jc",)
    beside = read(four_bar(said), loops={"closed_loop": [["b", "c"]], "type": ["3d"]})
    assert beside.u_names == ("jc",)
    # Where nothing closes a loop all joints stay driven.
    assert read(four_bar(said)).u_names == ("ja", "jb", "jc")


def test_motors_can_be_named():
    text = four_bar(closed(more=AXIS))
    assert read(text).u_names == ("ja", "jb", "jc")
    machine = read(text, motors=["ja"])
    assert machine.u_names == ("ja",)
    assert RobustControl(machine).coordinates == ("ja",)
    assert read(text, motors="jb").u_names == ("jb",)
    assert read(text, motors=()).u_names == ()
    with pytest.raises(ReadError, match="`motors`: joint that moves `jd` is unknown"):
        read(text, motors=["ja", "jd"])
