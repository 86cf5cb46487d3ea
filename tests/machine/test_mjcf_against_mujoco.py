"""MJCF models against MuJoCo itself: poses, mass, forces, accelerations, constraints."""

import casadi
import numpy as np
import pytest
from mjcf_samples import EVERYTHING, LINKAGE, random_mjcf
from model_kinematics import Chain, Inertia, center_of_mass, mujoco_mass

from framefree.machine import Free
from framefree.machine.read import read
from framefree.motion import equations

mujoco = pytest.importorskip("mujoco")
MODELS = {"everything": EVERYTHING, "linkage": LINKAGE}
MODELS |= {f"random{seed}": random_mjcf(seed) for seed in range(12)}


class Pair:
    """One model as our machine and in MuJoCo, with the states of the first in the second."""

    def __init__(self, text):
        self.machine = read(text)
        self.model = mujoco.MjModel.from_xml_string(text)
        self.data = mujoco.MjData(self.model)
        self.chain = Chain(self.machine)

    def set(self, x, v=None):
        """Set the state; both engines keep joints in the order of the file."""
        self.data.qpos[:] = x
        self.data.qvel[:] = 0.0 if v is None else self.turn(x) @ v
        mujoco.mj_forward(self.model, self.data)

    def turn(self, x):
        """Matrix from our velocities to MuJoCo's: free joints move along world axes there."""
        T = np.eye(self.machine.nv)
        for joint in self.machine.joints:
            if isinstance(joint.kind, Free):
                s = self.machine.v_slice[joint.name]
                R = self.chain(x)[joint.child][:3, :3]
                T[s.start : s.start + 3, s.start : s.start + 3] = R
        return T

    def random(self, rng):
        joints = self.machine.joints
        x = np.concatenate([np.zeros(0), *(joint.kind.random(rng) for joint in joints)])
        return x, rng.normal(size=self.machine.nv)


def gap(ours, theirs):
    return np.abs(ours - theirs).max(initial=0.0) / max(1.0, np.abs(theirs).max(initial=0.0))


@pytest.fixture(params=MODELS, scope="module")
def pair(request):
    return Pair(MODELS[request.param])


def test_poses_mass_and_center(pair):
    model, data, rng = pair.model, pair.data, np.random.default_rng(1)
    for _ in range(100):
        x, _ = pair.random(rng)
        pair.data.qpos[:] = x
        mujoco.mj_kinematics(model, data)
        mujoco.mj_comPos(model, data)
        poses = pair.chain(x)
        for i in range(1, model.nbody):
            ours = poses[model.body(i).name]
            assert gap(ours[:3, 3], data.xpos[i]) <= 1e-12
            assert gap(ours[:3, :3].ravel(), data.xmat[i]) <= 1e-12
        for i in range(model.nsite):
            name = model.site(i).name
            name = f"{name}_site" if name == "palm" else name
            assert gap(poses[name][:3, 3], data.site_xpos[i]) <= 1e-12
            assert gap(poses[name][:3, :3].ravel(), data.site_xmat[i]) <= 1e-12
        fixed = [i for i in range(1, model.nbody) if model.body_weldid[i] == 0]
        masses = np.delete(model.body_mass, [0, *fixed])
        total, center = center_of_mass(pair.machine, poses)
        theirs = np.delete(data.xipos, [0, *fixed], axis=0)
        assert total == pytest.approx(masses.sum(), rel=1e-12)
        assert gap(center, masses @ theirs / masses.sum()) <= 1e-12


def test_mass_matrix(pair):
    inertia, rng = Inertia(pair.machine), np.random.default_rng(2)
    for _ in range(10):
        x, _ = pair.random(rng)
        pair.set(x)
        M = mujoco_mass(pair.model, pair.data)
        T = pair.turn(x)
        assert gap(inertia(x), T.T @ M @ T) <= 1e-12


def test_accelerations(pair):
    """Everything at once: gravity, springs, dampers, armature, gyroscopic forces."""
    model, data, machine = pair.model, pair.data, pair.machine
    model.opt.disableflags |= mujoco.mjtDisableBit.mjDSBL_CONSTRAINT
    model.opt.disableflags |= mujoco.mjtDisableBit.mjDSBL_ACTUATION
    bare = read_without_loops(machine)
    forward, rng = equations(bare, "tree").functions["forward"], np.random.default_rng(3)
    for _ in range(5):
        x, v = pair.random(rng)
        pair.set(x, v)
        T = pair.turn(x)
        a = forward(x, v, np.zeros(machine.nv)).full().ravel()
        assert gap(T @ (a + transport(machine, v)), data.qacc) <= 1e-9
    model.opt.disableflags = 0


def read_without_loops(machine):
    from dataclasses import replace

    return replace(machine, loops=(), couplings=(), actuators=(), keyframes=())


def transport(machine, v):
    """d/dt (R v) = R (dv/dt + w x v) for the linear velocities of free joints."""
    extra = np.zeros(machine.nv)
    for joint in machine.joints:
        if isinstance(joint.kind, Free):
            s = machine.v_slice[joint.name].start
            extra[s : s + 3] = np.cross(v[s + 3 : s + 6], v[s : s + 3])
    return extra


def test_actuators_push_alike():
    pair = Pair(EVERYTHING)
    machine, model, data = pair.machine, pair.model, pair.data
    model.opt.disableflags |= mujoco.mjtDisableBit.mjDSBL_CLAMPCTRL
    model.actuator_forcelimited[:] = False
    rng = np.random.default_rng(4)
    for _ in range(10):
        x, v = pair.random(rng)
        x[machine.x_slice["lift"]] *= 0.1
        u = rng.normal(size=machine.nu)
        data.ctrl[:] = u
        pair.set(x, v)
        assert gap(actuator_forces(pair, x, v, u), pair.turn(x).T @ data.qfrc_actuator) <= 1e-12
    limits = {a.name: (*a.lower, *a.upper) for a in machine.actuators}
    assert limits["pan_motor"] == (-2.0, 2.0)
    assert limits["thrust"] == (0.0, 20.0)
    assert machine.actuators[1].force_lower == -50.0


def actuator_forces(pair, x, v, u):
    machine, force = pair.machine, np.zeros(pair.machine.nv)
    for k, actuator in enumerate(machine.actuators):
        if hasattr(actuator, "joint"):
            joint = machine.joint(actuator.joint)
            s, q = machine.v_slice[joint.name], machine.x_slice[joint.name]
            force[s] += np.array(casadi.DM(actuator.columns)).ravel() * u[k]
            bias = actuator.bias(casadi.DM(x[q]), casadi.DM(v[s]))
            force[s] += 0.0 if bias is None else np.array(bias).ravel()
        else:
            frame = machine.frame(actuator.frame)
            wrench = np.array(casadi.DM(actuator.columns)).ravel() * u[k]
            pose = np.array(frame.pose)
            moment = pose[:3, :3] @ wrench[3:] + np.cross(pose[:3, 3], pose[:3, :3] @ wrench[:3])
            s = machine.v_slice[machine.joints[machine.body_index[frame.body]].name]
            assert isinstance(machine.joints[machine.body_index[frame.body]].kind, Free)
            force[s] += np.concatenate([pose[:3, :3] @ wrench[:3], moment])
    return force


def test_loops_and_couplings_measure_the_same_gap():
    pair = Pair(LINKAGE)
    machine, model, data = pair.machine, pair.model, pair.data
    assert [loop.name for loop in machine.loops if loop.name == "off"] == []
    assert any("`off`" in message for message in machine.ignored)
    rng = np.random.default_rng(5)
    for _ in range(20):
        x, _ = pair.random(rng)
        pair.set(x)
        poses = pair.chain(x)
        rows = {}
        for row in range(data.nefc):
            if data.efc_type[row] == mujoco.mjtConstraint.mjCNSTR_EQUALITY:
                rows.setdefault(model.equality(data.efc_id[row]).name, []).append(data.efc_pos[row])
        for loop in machine.loops:
            G = np.linalg.inv(poses[loop.frame_a]) @ poses[loop.frame_b]
            ours = np.array(casadi.DM(loop.residual(casadi.DM(G)))).ravel()
            if loop.name == "hold":
                assert ours[:3] == pytest.approx(np.zeros(3), abs=1e-12)
                assert abs(np.sin(np.abs(ours[3:]).sum() / 2)) == pytest.approx(
                    abs(np.sin(rows["hold"][0] / 2)), abs=1e-9
                )
                continue
            theirs = np.array(rows[loop.name])
            assert np.linalg.norm(ours[:3]) == pytest.approx(np.linalg.norm(theirs[:3]), abs=1e-12)
            if loop.kind == "weld":
                # MuJoCo measures sin(angle / 2); up to the scale of its rotational rows
                angle = np.linalg.norm(ours[3:])
                scale = model.eq_data[model.equality(loop.name).id][10]
                assert np.linalg.norm(theirs[3:]) == pytest.approx(
                    scale * np.sin(angle / 2), abs=1e-9
                )
        for coupling in machine.couplings:
            values = [float(x[machine.x_slice[name]][0]) for name in coupling.coordinates]
            ours = values[0] - float(casadi.DM(coupling.value(*values[1:])))
            assert ours == pytest.approx(rows[coupling.name][0], abs=1e-12)


def test_keyframe_is_the_same_state():
    pair = Pair(EVERYTHING)
    key, initial = pair.machine.keyframes
    assert (key.name, initial.name) == ("home", "initial")
    start = np.concatenate([dict(initial.x)[joint.name] for joint in pair.machine.joints])
    np.testing.assert_array_equal(start, pair.model.qpos0)
    x = np.concatenate([dict(key.x)[joint.name] for joint in pair.machine.joints])
    v = np.concatenate([dict(key.v)[joint.name] for joint in pair.machine.joints])
    np.testing.assert_allclose(x, pair.model.key_qpos[0], rtol=1e-15)
    np.testing.assert_allclose(pair.turn(x) @ v, pair.model.key_qvel[0], rtol=1e-12)
    assert [float(dict(key.u)[a.name][0]) for a in pair.machine.actuators] == [1, 2, 3, 4, 5, 6]
