"""Pinocchio and MuJoCo as witnesses, and what is said where they are absent or disagree."""

import sys
from importlib import metadata

import casadi as ca
import numpy as np
import pytest
from certify_machines import TREE, arm
from random_machines import engine_machine, random_machine

from framefree.certify import Verdict, check
from framefree.certify.peers import ModelSource, mujoco, pinocchio
from framefree.certify.subject import Subject
from framefree.geometry import se3
from framefree.machine import Body, Custom, Joint, Machine
from framefree.machine.read import read
from framefree.motion.tree import Tree

MJCF = """
<mujoco model="rig"><compiler angle="radian"/><worldbody>
  <body name="base" pos="0 0 1"><freejoint/><geom type="box" size=".2 .1 .1"/>
    <body name="boom" pos=".1 0 .2">
      <joint name="swing" axis="0 1 .3" pos=".01 0 0" armature=".1" damping=".2" range="-1 2"/>
      <joint type="slide" axis="1 0 0" range="-.2 .2"/>
      <geom type="capsule" fromto="0 0 0 .3 0 0" size=".03"/>
      <body name="tip" pos=".3 0 0"><joint name="ball" type="ball"/>
        <geom type="capsule" fromto="0 0 0 .3 .1 0" size=".03"/></body>
    </body></body>
</worldbody></mujoco>
"""
URDF = """
<robot name="r"><link name="base"/>
  <link name="a"><inertial><origin xyz="0 .1 .2" rpy=".3 0 .1"/><mass value="2"/>
    <inertia ixx=".02" iyy=".03" izz=".015" ixy=".001" ixz="0" iyz="0"/></inertial></link>
  <link name="b"><inertial><mass value="1"/>
    <inertia ixx=".01" iyy=".01" izz=".01" ixy="0" ixz="0" iyz="0"/></inertial></link>
  <joint name="j1" type="revolute"><parent link="base"/><child link="a"/>
    <origin xyz="0 0 .1" rpy=".1 .2 .3"/><axis xyz="0 1 1"/>
    <limit lower="-1" upper="2" effort="10" velocity="3"/><dynamics damping=".4"/></joint>
  <joint name="j2" type="continuous"><parent link="a"/><child link="b"/>
    <origin xyz=".3 0 0"/><axis xyz="1 0 0"/></joint>
</robot>
"""


class Heavier(Tree):
    """Equations of a machine whose last body is a little too heavy."""

    def __init__(self, machine):
        last = machine.bodies[-1]
        super().__init__(machine.replace(f"body:{last.name}", mass=1.0001 * last.moments.total))


def test_pinocchio_agrees_on_random_machines():
    pytest.importorskip("pinocchio", reason="needs the extra `peers`")
    kinds = set()
    for seed in range(12):
        machine = random_machine(np.random.default_rng(seed), bodies=6)
        kinds |= {type(joint.kind).__name__ for joint in machine.joints}
        finding = pinocchio(Subject(machine, TREE, states=4), ModelSource())
        assert finding.verdict is Verdict.PASS, (seed, finding)
    assert len(kinds) == 10


@pytest.mark.parametrize("base", [None, "free"])
def test_pinocchio_reads_the_file_itself(base):
    pytest.importorskip("pinocchio", reason="needs the extra `peers`")
    reading = {} if base is None else {"base": base}
    subject = Subject(read(URDF, **reading), TREE, states=4)
    assert pinocchio(subject, ModelSource(URDF, reading)).verdict is Verdict.PASS
    other = URDF.replace('value="2"', 'value="2.001"')
    disagreeing = pinocchio(subject, ModelSource(other, reading))
    assert disagreeing.verdict is Verdict.FAIL
    assert disagreeing.remedy


def test_mujoco_agrees_on_its_own_file():
    pytest.importorskip("mujoco", reason="needs the extra `models`")
    subject = Subject(read(MJCF), TREE, states=4)
    source = ModelSource(MJCF)
    assert mujoco(subject, source).verdict is Verdict.PASS
    wrong = Subject(read(MJCF), {"tree": Heavier}, states=4)
    assert mujoco(wrong, source).verdict is Verdict.FAIL


def test_mujoco_agrees_on_machines_written_for_it():
    pytest.importorskip("mujoco", reason="needs the extra `models`")
    kinds = set()
    for seed in range(20):
        machine = engine_machine(np.random.default_rng(seed), bodies=5)
        finding = mujoco(Subject(machine, TREE, states=3), ModelSource())
        if finding.verdict is Verdict.SKIPPED:
            assert "helical" in finding.note, finding.note
            continue
        assert finding.verdict is Verdict.PASS, (seed, finding)
        kinds |= {type(joint.kind).__name__ for joint in machine.joints}
    assert len(kinds) >= 8
    wrong = Subject(arm(), {"tree": Heavier}, states=3)
    assert mujoco(wrong, ModelSource()).verdict is Verdict.FAIL


def test_absent_engines_are_skipped_with_the_reason(monkeypatch):
    for name in ("pinocchio", "mujoco"):
        monkeypatch.setitem(sys.modules, name, None)
    report = check(arm(), samples=8, states=2, formulations=TREE)
    assert report.ok
    for name in ("pinocchio_residual", "mujoco_residual"):
        assert report[name].verdict is Verdict.SKIPPED
        assert "not installed" in report[name].note


def test_a_joint_that_an_engine_lacks_is_named():
    pytest.importorskip("pinocchio", reason="needs the extra `peers`")
    custom = Custom(lambda x: se3.exp(ca.vertcat(0, 0, 0, 0, 0, x[0])), 1)
    body = arm().bodies[0]
    machine = Machine([Body("b", body.inertia)], [Joint("own", custom, "world", "b")])
    finding = pinocchio(Subject(machine, TREE, states=2), ModelSource())
    assert finding.verdict is Verdict.SKIPPED
    assert "`own`" in finding.note


@pytest.mark.parametrize("file", ["ur_description/urdf/ur5_robot.urdf", "panda.urdf"])
@pytest.mark.first_cases(1)
def test_published_robots_pass(file):
    pytest.importorskip("pinocchio", reason="needs the extra `peers`")
    path = _example(file)
    report = check(path, samples=64, states=6)
    assert report.ok, report.failures
    assert report.to_dict()["file"] == path
    assert report["pinocchio_residual"].verdict is Verdict.PASS


def _example(file):
    try:
        package = metadata.distribution("example-robot-data")
    except metadata.PackageNotFoundError:
        pytest.skip("needs example-robot-data")
    return next(str(package.locate_file(e)) for e in package.files if str(e).endswith(file))
