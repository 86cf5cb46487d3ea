"""SDFormat against MuJoCo: the same machines written out by hand in MJCF."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from framefree.machine import Free
from framefree.machine.read import read
from framefree.motion import equations

mujoco = pytest.importorskip("mujoco")
MODELS = Path(__file__).parents[1] / "data" / "models"
COMPILER = '<compiler angle="radian" eulerseq="XYZ" autolimits="false"/>'

LINKAGE = f"""<mujoco>{COMPILER}<worldbody>
<body name="crank" pos="0.1 0 0.5" euler="0 -0.9 0">
  <joint name="drive" axis="0 1 0" damping="0.05"/>
  <body pos="0.15 0.01 0" euler="0.1 0 0.2"><inertial pos="0 0 0" mass="0.8"
    fullinertia="0.002 0.011 0.012 0.0003 0.0002 0.0001"/></body>
  <body name="coupler" pos="0.3 0 0" euler="0 0.7 0">
    <joint name="elbow" axis="0 1 0"/>
    <inertial pos="0.3 0 0.02" mass="1.3" diaginertia="0.003 0.041 0.042"/>
    <site name="at_coupler" pos="{{hole}}"/>
  </body>
</body>
<body name="rocker" pos="0.8 0 0.5" euler="0 -1.2 0">
  <joint name="swing" axis="0 1 0" stiffness="0.7" springref="0.2"/>
  <inertial pos="0.2 0 0" mass="0.9" diaginertia="0.002 0.021 0.022"/>
  <site name="at_rocker" pos="0.42 0 0"/>
</body></worldbody>
<equality><connect name="closing" site1="at_rocker" site2="at_coupler"/></equality></mujoco>"""

MIXED = f"""<mujoco>{COMPILER}<option gravity="0.1 0 -9.7"/><worldbody>
<body pos="0.2 -0.1 0.3" euler="{np.pi / 18} {np.pi / 9} {np.pi / 6}">
 <body name="arm::carriage" pos="0.1 0.2 0.3" euler="0 0 0.4">
  <joint name="rail" type="slide" axis="{{east}}" damping="2" stiffness="30" springref="0.1"/>
  <inertial pos="0.02 0.01 0.03" mass="2.5" diaginertia="0.04 0.05 0.06"/>
  <body name="arm::cross" pos="0.3 0 0" euler="0.2 0 0">
   <joint name="cardan1" pos="0.01 0 0.02" axis="1 0 0" damping="0.3"/>
   <joint name="cardan2" pos="0.01 0 0.02" axis="0 1 0"/>
   <inertial pos="0 0 0" mass="0.7" diaginertia="0.01 0.012 0.014"/>
   <body name="arm::ball" pos="0 0 -0.4">
    <joint name="socket" type="ball"/>
    <inertial pos="0 0 -0.1" mass="0.5" diaginertia="0.011 0.013 0.004"/>
   </body>
  </body>
  <body name="arm::nut" pos="-0.2 0 0.1" quat="0.8 0 0 0.6">
   <joint name="turn" axis="0 0 1"/><joint name="slide" type="slide" axis="0 0 1"/>
   <inertial pos="0 0 0" mass="0.3" diaginertia="0.002 0.003 0.004"/>
   <body name="arm::follower" pos="0 0 0.2">
    <joint name="copy" axis="0 1 0"/>
    <inertial pos="0 0 0" mass="0.2" diaginertia="0.001 0.0011 0.0012"/>
   </body>
  </body>
 </body>
</body>
<body name="box::crate" pos="3 0 0"><freejoint/>
 <inertial pos="0 0 0" mass="4" diaginertia="0.2 0.21 0.22"/>
 <body name="box::lid::board" pos="0 0 0.5"><joint name="hinge" pos="-0.2 0 0" axis="0 1 0"/>
  <inertial pos="0 0 0" mass="1.1" diaginertia="0.02 0.02 0.04"/></body>
</body></worldbody></mujoco>"""


def east():
    """The world's x axis in the axes of the carriage's parent-and-own turn: R^T e_x."""

    def turn(axis, angle):
        c, s = np.cos(angle), np.sin(angle)
        i, j = [k for k in range(3) if k != axis]
        R = np.eye(3)
        R[i, i] = R[j, j] = c
        R[i, j], R[j, i] = (-s, s) if axis != 1 else (s, -s)
        return R

    outer = turn(2, np.pi / 6) @ turn(1, np.pi / 9) @ turn(0, np.pi / 18)
    return " ".join(map(str, (outer @ turn(2, 0.4)).T[:, 0]))


def mujoco_motion(model, q, v):
    """Return mass matrix, and forces that resist: bias minus springs and dampers."""
    data = mujoco.MjData(model)
    data.qpos[:], data.qvel[:] = q, v
    model.opt.disableflags |= mujoco.mjtDisableBit.mjDSBL_CONSTRAINT
    mujoco.mj_forward(model, data)
    M = np.zeros((model.nv, model.nv))
    mujoco.mj_fullM(model, M, data.qM) if hasattr(data, "qM") else mujoco.mj_fullM(model, data, M)
    return M, data.qfrc_bias - data.qfrc_passive


def our_motion(eom, x, v):
    M = eom.mass(x)
    return M, -M @ eom.forward(x, v, np.zeros(len(v)))


def without_friction(machine):
    bare = replace(machine, couplings=(), loops=(), actuators=())
    for joint in bare.joints:
        if joint.has_friction:
            bare = bare.replace(f"joint:{joint.name}", friction=0.0)
    return bare


def test_a_tree_with_springs_and_dampers():
    model = mujoco.MjModel.from_xml_string(LINKAGE.format(hole="0 0 0"))
    machine = read(MODELS / "linkage.sdf")
    eom, rng = equations(without_friction(machine), "tree"), np.random.default_rng(0)
    for _ in range(20):
        a, b, c = q = rng.uniform(-2, 2, 3)
        v = rng.normal(size=3)
        M, resisting = mujoco_motion(model, q, v)
        ours, forces = our_motion(eom, np.array([a, np.cos(b), np.sin(b), c]), v)
        np.testing.assert_allclose(ours, M, atol=1e-12)
        np.testing.assert_allclose(forces, resisting, atol=1e-11)


def test_a_link_that_is_the_child_of_two_joints_closes_a_loop():
    machine = read(MODELS / "linkage.sdf")
    assert [(loop.name, loop.kind) for loop in machine.loops] == [("closing", "hinge")]

    # where the hole of the coupler is: the point of the rocker seen from the coupler, at rest
    def planar(x, z, angle):
        c, s = np.cos(angle), np.sin(angle)
        return np.array([[c, s, x], [-s, c, z], [0, 0, 1]])

    coupler = planar(0.1, 0.5, -0.9) @ planar(0.3, 0, 0.7)
    hole = np.linalg.solve(coupler, planar(0.8, 0.5, -1.2) @ [0.42, 0, 1])
    theirs = read(LINKAGE.format(hole=f"{hole[0]} 0 {hole[1]}"))
    ours = equations(without_friction(machine).attach(*machine.loops), "constrained")
    other = equations(theirs, "constrained")
    x = ours.assemble(np.array([0.3, 1, 0, 0.1]), hold=("drive",))
    angles = np.array([x[0], np.arctan2(x[2], x[1]), x[3]])
    v = ours.project(x, np.array([1.0, 0, 0])).v
    assert np.abs(other.project(angles, v).x - angles).max() < 1e-12
    force = np.array([0.4, 0.1, -0.3])
    mine, reference = ours.forward(x, v, force), other.forward(angles, v, force)
    np.testing.assert_allclose(mine, reference, atol=1e-9)
    assert np.abs(v).max() > 0.1


def test_all_kinds_of_joints_and_nested_models():
    model = mujoco.MjModel.from_xml_string(MIXED.format(east=east()))
    machine = read(MODELS / "mixed.sdf")
    eom, rng = equations(without_friction(machine), "tree"), np.random.default_rng(1)
    pitch = 0.05 / (2 * np.pi)
    for _ in range(20):
        x, v = machine.random(rng), rng.normal(size=machine.nv)
        q, J = np.zeros(model.nq), np.zeros((model.nv, machine.nv))
        xs, vs = machine.x_slice, machine.v_slice
        assert list(xs)[:5] == [
            "arm::rail",
            "arm::cardan",
            "arm::socket",
            "arm::thread",
            "arm::copy",
        ]
        q[:7] = x[:7]
        J[:6, :6] = np.eye(6)
        (angle,) = x[xs["arm::thread"]]
        q[7:10] = angle, pitch * angle, x[xs["arm::copy"]][0]
        for row, column, size in (
            (6, "arm::thread", 1.0),
            (7, "arm::thread", pitch),
            (8, "arm::copy", 1.0),
        ):
            J[row, vs[column]] = size
        base = xs["base"]
        q[10:17] = x[base]
        q[10] += 3.0
        q[17] = x[xs["box::hinge"]][0]
        w, a, b, c = x[base][3:]
        R = np.array([
            [1 - 2 * (b * b + c * c), 2 * (a * b - w * c), 2 * (a * c + w * b)],
            [2 * (a * b + w * c), 1 - 2 * (a * a + c * c), 2 * (b * c - w * a)],
            [2 * (a * c - w * b), 2 * (b * c + w * a), 1 - 2 * (a * a + b * b)],
        ])  # fmt: skip
        J[9:12, vs["base"].start : vs["base"].start + 3] = R
        J[12:15, vs["base"].start + 3 : vs["base"].stop] = np.eye(3)
        J[15, vs["box::hinge"]] = 1.0
        # the origin's velocity is along body axes here: its rate has the extra term R (w x v)
        extra = np.zeros(model.nv)
        own = v[vs["base"]]
        extra[9:12] = R @ np.cross(own[3:], own[:3])
        M, resisting = mujoco_motion(model, q, J @ v)
        ours, forces = our_motion(eom, x, v)
        np.testing.assert_allclose(ours, J.T @ M @ J, atol=1e-11)
        np.testing.assert_allclose(forces, J.T @ (resisting + M @ extra), atol=1e-10)
    assert isinstance(machine.joint("base").kind, Free)
    (coupling,) = machine.couplings
    assert coupling.coordinates == ("arm::copy", "arm::cardan.angle2")
    assert float(coupling.value(0.5)) == pytest.approx(-2 * (0.5 - 0.3) + 0.1)
