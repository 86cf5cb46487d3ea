"""State layouts of Pinocchio and MuJoCo, against the engines themselves."""

import numpy as np
import pytest
from machine_samples import body_poses, chain

from framefree.machine import (
    Continuous,
    Custom,
    Fixed,
    Free,
    Helical,
    MachineError,
    Planar,
    Prismatic,
    Revolute,
    Spherical,
    StateError,
    Universal,
)

KINDS = (Free(), Revolute("z"), Spherical(), Continuous("z"), Planar("z"), Prismatic("z"), Fixed())
ORDER = [0, 4, 2, 1, 3, 5]


def machine_of(kinds):
    return chain(kinds, seed=3)


def pinocchio_model(machine, pin):
    """The same chain, in Pinocchio; joint frames where ours are."""
    kinds = {
        Free: pin.JointModelFreeFlyer,
        Revolute: pin.JointModelRZ,
        Spherical: pin.JointModelSpherical,
        Continuous: pin.JointModelRUBZ,
        Planar: pin.JointModelPlanar,
        Prismatic: pin.JointModelPZ,
    }
    model, at, offset = pin.Model(), 0, np.eye(4)
    for joint in machine.joints:
        placement = pin.SE3(offset @ joint.parent_pose)
        if not isinstance(joint.kind, Fixed):
            at = model.addJoint(at, kinds[type(joint.kind)](), placement, joint.name)
        offset = np.linalg.inv(joint.child_pose)
    return model


def test_pinocchio_layout_has_the_same_poses_and_motion():
    pin = pytest.importorskip("pinocchio")
    machine = machine_of(KINDS)
    model = pinocchio_model(machine, pin)
    data, layout = model.createData(), machine.layout("pinocchio", list(model.names)[1:])
    assert (layout.nq, layout.nv) == (model.nq, model.nv)
    rng = np.random.default_rng(0)
    for _ in range(20):
        x, dv = machine.random(rng), rng.normal(size=machine.nv)
        q, w = layout.x_to(x), layout.v_to(x, dv)
        pin.forwardKinematics(model, data, q)
        poses = body_poses(machine, x)
        for joint in machine.joints[:-1]:
            theirs = data.oMi[model.getJointId(joint.name)].homogeneous
            assert np.allclose(poses[joint.child] @ joint.child_pose, theirs, atol=1e-12)
        moved = pin.integrate(model, q, w)
        ours = machine.integrate(x, dv)  # their quaternion may be the negative of ours
        assert np.abs(machine.difference(ours, layout.x_from(moved))).max() < 1e-12
        assert np.allclose(layout.x_from(q), x, atol=1e-15)
        assert np.array_equal(layout.v_from(x, w), dv)
        a = rng.normal(size=machine.nv)
        assert np.array_equal(layout.a_from(x, dv, layout.a_to(x, dv, a)), a)


MJCF = """
<mujoco><option gravity="0 0 0"/><worldbody>
  <body name="b0"><freejoint name="j0"/><geom size="0.1" mass="1"/>
    <body name="b1" pos="1 0 0"><joint name="j1" type="ball"/><geom size="0.1"/>
      <body name="b2" pos="0 1 0"><joint name="j2x" type="slide" axis="1 0 0"/>
        <joint name="j2y" type="slide" axis="0 1 0"/><joint name="j2" axis="0 0 1"/>
        <geom size="0.1"/>
        <body name="b3" pos="0 0 1"><joint name="j3" axis="0 0 1"/><geom size="0.1"/>
          <body name="b4"><joint name="u1" axis="1 0 0"/><joint name="u2" axis="0 1 0"/>
            <geom size="0.1" pos="0.1 0 0"/>
  </body></body></body></body></body>
</worldbody></mujoco>
"""


def mujoco_twin():
    kinds = (Free(), Spherical(), Planar("z"), Continuous("z"), Universal())
    machine = machine_of(kinds)
    for i, position in enumerate([(0, 0, 0), (1, 0, 0), (0, 1, 0), (0, 0, 1), (0, 0, 0)]):
        machine = machine.replace(f"j{i}", parent_pose=position, child_pose=None)
    return machine


def test_mujoco_layout_has_the_same_poses_and_velocities():
    mujoco = pytest.importorskip("mujoco")
    model = mujoco.MjModel.from_xml_string(MJCF)
    data, machine = mujoco.MjData(model), mujoco_twin()
    layout = machine.layout("mujoco")
    assert (layout.nq, layout.nv) == (model.nq, model.nv)
    rng, small = np.random.default_rng(0), 1e-6
    for _ in range(20):
        x, v = machine.random(rng), rng.normal(size=machine.nv)
        data.qpos[:], data.qvel[:] = layout.x_to(x), layout.v_to(x, v)
        mujoco.mj_forward(model, data)
        ahead, behind = (body_poses(machine, machine.integrate(x, s * v)) for s in (small, -small))
        for name, pose in body_poses(machine, x).items():
            if name == "world":
                continue
            assert np.allclose(data.body(name).xpos, pose[:3, 3], atol=1e-12)
            assert np.allclose(data.body(name).xmat.reshape(3, 3), pose[:3, :3], atol=1e-12)
            theirs = np.zeros(6)
            mujoco.mj_objectVelocity(
                model, data, mujoco.mjtObj.mjOBJ_XBODY, data.body(name).id, theirs, 0
            )
            speed = (ahead[name][:3, 3] - behind[name][:3, 3]) / (2 * small)
            assert np.allclose(theirs[3:], speed, atol=1e-7)
        assert np.allclose(layout.x_from(layout.x_to(x)), x, atol=1e-15)
        assert np.allclose(layout.v_from(x, data.qvel), v, atol=1e-14)


def test_mujoco_accelerations_are_the_rate_of_velocities():
    machine = mujoco_twin()
    layout, rng, small = machine.layout("mujoco"), np.random.default_rng(1), 1e-6
    for _ in range(10):
        x = machine.random(rng)
        v, a = rng.normal(size=(2, machine.nv))
        ahead = layout.v_to(machine.integrate(x, small * v), v + small * a)
        behind = layout.v_to(machine.integrate(x, -small * v), v - small * a)
        theirs = layout.a_to(x, v, a)
        assert np.allclose(theirs, (ahead - behind) / (2 * small), atol=1e-8)
        assert np.allclose(layout.a_from(x, v, theirs), a, atol=1e-14)


@pytest.mark.parametrize("engine", ["pinocchio", "mujoco"])
def test_batches_power_and_order(engine):
    machine = machine_of(KINDS)
    names = [machine.joints[i].name for i in ORDER]
    layout, rng = machine.layout(engine, names), np.random.default_rng(2)
    X, V, F = (
        machine.random(rng, 5),
        rng.normal(size=(5, machine.nv)),
        rng.normal(size=(5, machine.nv)),
    )
    Q, W = layout.x_to(X), layout.v_to(X, V)
    assert np.array_equal(Q[2], layout.x_to(X[2]))
    assert np.array_equal(W[2], layout.v_to(X[2], V[2]))
    assert np.allclose(layout.x_from(Q), X, atol=1e-15)
    power = (layout.v_to(X, F) * W).sum(axis=1)
    assert np.allclose(power, (F * V).sum(axis=1), atol=1e-13)


def test_refusals():
    machine = machine_of(KINDS)
    with pytest.raises(MachineError, match="one of pinocchio, mujoco"):
        machine.layout("bullet")
    with pytest.raises(MachineError, match="joint `j1` must occur once in `order`, occurs 0 times"):
        machine.layout("mujoco", ["j0"])
    with pytest.raises(MachineError, match="mujoco has no helical joint"):
        machine_of((Helical("z", 0.1),)).layout("mujoco")
    with pytest.raises(MachineError, match="pinocchio has no custom joint"):
        machine_of((Custom(Revolute().pose, 1),)).layout("pinocchio")
    with pytest.raises(StateError, match="`x` must have shape"):
        machine.layout("mujoco").x_to(np.zeros(2))
