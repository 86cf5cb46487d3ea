"""Loops of a URDF file in a YAML file beside it: against Pinocchio's closed chains."""

import numpy as np
import pytest

from framefree.control.robust import RobustControl
from framefree.machine import Revolute, Spherical
from framefree.machine.formats.markup import ReadError
from framefree.machine.layouts import layout
from framefree.machine.read import read
from framefree.motion import Constrained


def link(name, length):
    return (
        f'<link name="{name}"><inertial><origin xyz="{length / 2} 0 0"/><mass value="1"/>'
        '<inertia ixx="0.01" iyy="0.1" izz="0.12" ixy="0" ixz="0" iyz="0"/></inertial></link>'
    )


def hinge(name, parent, child, x):
    return (
        f'<joint name="{name}" type="revolute"><parent link="{parent}"/><child link="{child}"/>'
        f'<origin xyz="{x} 0 0"/><axis xyz="0 1 0"/>'
        '<limit lower="-4" upper="4" effort="50" velocity="9"/></joint>'
    )


def end(parent, child, x):
    return (
        f'<link name="{child}"/><joint name="{child}_frame" type="fixed"><parent link="{parent}"/>'
        f'<child link="{child}"/><origin xyz="{x} 0 0"/></joint>'
    )


BARS = (
    '<robot name="bars"><link name="base"/>'
    + link("a", 0.5) + link("b", 0.9) + link("c", 0.6) + link("d", 0.1)
    + hinge("mot_a", "base", "a", 0) + hinge("jb", "a", "b", 0.5) + hinge("jc", "base", "c", 1.0)
    + hinge("to_rotule", "b", "d", 0.8) + end("d", "close_A", 0.1) + end("c", "close_B", 0.6)
    + "</robot>"
)  # fmt: skip
YAML = """closed_loop: [['close_A', 'close_B']]
type: ['{}']
name_mot: ['mot']
joint_name: [{}]
joint_type: [{}]
"""
RETYPED = ("'to_rotule'", "'SPHERICAL'")


def peer(pin, ball, contact):
    """Pinocchio's model, a joint made spherical as in the published loader, and its constraint."""
    plain, model = pin.buildModelFromXML(BARS), pin.Model()
    for j in range(1, plain.njoints):
        name = plain.names[j]
        kind = pin.JointModelSpherical() if ball and name == "to_rotule" else plain.joints[j]
        index = model.addJoint(plain.parents[j], kind, plain.jointPlacements[j], name)
        model.appendBodyToJoint(index, plain.inertias[j], pin.SE3.Identity())
    frames = [plain.frames[plain.getFrameId(name)] for name in ("close_A", "close_B")]
    places = [part for f in frames for part in (f.parentJoint, f.placement)]
    return model, pin.RigidConstraintModel(contact, model, *places, pin.ReferenceFrame.LOCAL)


@pytest.mark.parametrize(("ball", "type_"), [(False, "3d"), (True, "3D"), (True, "6d")])
def test_closed_robots_move_as_pinocchios(tmp_path, ball, type_):
    pin = pytest.importorskip("pinocchio", reason="needs the extra `peers`")
    path, beside = tmp_path / "robot.urdf", tmp_path / "robot.yaml"
    path.write_text(BARS)
    beside.write_text(YAML.format(type_, *(RETYPED if ball else ("", ""))))
    machine = read(path, loops=beside)
    assert isinstance(machine.joint("to_rotule").kind, Spherical if ball else Revolute)
    assert machine.loops[0].kind == {"3d": "ball", "6d": "weld"}[type_.lower()]
    assert [actuator.sensed_joint for actuator in machine.actuators] == ["mot_a"]
    form, rng = Constrained(machine), np.random.default_rng(1)
    first = machine.neutral()
    first[:2], first[-1] = (-1.2, 0.9), -1.4
    state = form.project(form.assemble(first), 0.5 * rng.normal(size=machine.nv))
    force = rng.normal(size=machine.nv)
    ours = np.asarray(form.solve(state.x, state.v, force).a)
    contact = pin.ContactType.CONTACT_6D if type_ == "6d" else pin.ContactType.CONTACT_3D
    model, constraint = peer(pin, ball, contact)
    order = layout(machine, "pinocchio", list(model.names[1:]))
    q, v, tau = (order.x_to(state.x), *(order.v_to(state.x, a) for a in (state.v, force)))
    models, datas = pin.StdVec_RigidConstraintModel(), pin.StdVec_RigidConstraintData()
    models.append(constraint)
    datas.append(constraint.createData())
    data = model.createData()
    pin.initConstraintDynamics(model, data, models, datas)
    settings = pin.ProximalSettings(1e-14, 1e-14, 200)
    theirs = pin.constraintDynamics(model, data, q, v, tau, models, datas, settings)
    assert np.abs(order.v_to(state.x, ours) - theirs).max() < 1e-6 * np.abs(theirs).max()


def test_a_law_takes_the_motors_of_the_file():
    machine = read(BARS, loops={"closed_loop": [["close_A", "close_B"]], "name_mot": ["mot_a"]})
    assert machine.loops[0].kind == "weld"
    law = RobustControl(machine, start=np.array([-1.2, 0.9, 0.4, -1.4])[: machine.nx])
    assert law.coordinates == ("mot_a",)
    every = read(BARS, loops={"closed_loop": [["close_A", "close_B"]]})
    assert len(every.actuators) == 4


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ({}, "`closed_loop`, the pairs of links that coincide, is missing"),
        ({"closed_loop": [["close_A", "nowhere"]]}, "link `nowhere` is unknown"),
        ({"closed_loop": ["close_A"]}, "must hold pairs of links, got 'close_A'"),
        ({"closed_loop": [], "type": ["6d"]}, "must be of one length, got 0 and 1"),
        ({"closed_loop": [["a", "b"]], "type": ["4d"]}, "`type` must be one of 6d, 3d, got '4d'"),
        ({"closed_loop": [], "name_mot": ["motor"]}, "joint `motor` is unknown"),
        ({"closed_loop": [], "joint_name": ["jb"]}, "`joint_name` needs `joint_type`"),
        (
            {"closed_loop": [], "joint_name": ["jb"], "joint_type": ["GEAR"]},
            "one of SPHERICAL, FIXED, got 'GEAR'",
        ),
        ({"closed_loops": [], "closed_loop": []}, "key `closed_loops` is unknown"),
        ({"closed_loop": "close_A"}, "`closed_loop` must be a list"),
        ([1, 2], "a mapping with closed_loop"),
    ],
)
def test_what_is_wrong_beside_a_file_is_said(tmp_path, content, words):
    beside = tmp_path / "x.yaml"
    beside.write_text(str(content))
    for given in (beside, *([content] if isinstance(content, dict) else [])):
        with pytest.raises(ReadError) as caught:
            read(BARS, loops=given)
        assert words in str(caught.value)


def test_files_that_are_not_yaml_or_not_there_are_refused(tmp_path):
    (tmp_path / "x.yaml").write_text("closed_loop: [[")
    with pytest.raises(ReadError, match=r"x.yaml: this is not YAML"):
        read(BARS, loops=tmp_path / "x.yaml")
    with pytest.raises(ReadError, match="does not exist"):
        read(BARS, loops=tmp_path / "y.yaml")
    (tmp_path / "z.yaml").write_text("!!python/object/apply:os.getcwd []")
    with pytest.raises(ReadError, match="this is not YAML"):
        read(BARS, loops=tmp_path / "z.yaml")
    with pytest.raises(ReadError, match="`loops` go with URDF files; MJCF files have their own"):
        read("<mujoco/>", loops={"closed_loop": []})
