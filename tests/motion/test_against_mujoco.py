"""Dynamics against MuJoCo, through the MJCF that we write: ball and free joints, loops.

MuJoCo's equality constraints are springs of finite stiffness, so its constrained accelerations are
not compared directly. What is compared to the full bar is the acceleration that MuJoCo's own mass
matrix, bias and constraint Jacobian give when the constraint is hard, at rest (MuJoCo neglects the
rate of the Jacobian).
"""

from dataclasses import replace

import numpy as np
import pytest
from random_machines import evaluate, random_machine, random_moments, random_pose, random_state

from framefree.machine import Body, Frame, Joint, Loop, Machine, Prismatic, Revolute, Spherical
from framefree.machine.formats.write_mjcf import to_mjcf
from framefree.motion.constrained import Constrained
from framefree.motion.tree import Tree

mujoco = pytest.importorskip("mujoco", reason="needs the extra `models`")

KINDS = {"Revolute", "Continuous", "Prismatic", "Spherical", "Free", "Fixed"}


def engine(machine):
    model = mujoco.MjModel.from_xml_string(to_mjcf(machine))
    model.opt.disableflags |= mujoco.mjtDisableBit.mjDSBL_CONTACT
    return model, mujoco.MjData(model)


def set_state(machine, model, data, x, v, force=None):
    layout = machine.layout("mujoco")
    data.qpos[:], data.qvel[:] = layout.x_to(x), layout.v_to(x, v)
    if force is not None:
        data.qfrc_applied[:] = layout.v_to(x, force)  # forces turn as velocities do
    mujoco.mj_forward(model, data)
    return layout


def machines():
    found, seed = [], 0
    while len(found) < 12:
        machine = random_machine(np.random.default_rng(seed), passive=False, fluid=False)
        kinds = {type(joint.kind).__name__ for joint in machine.joints}
        if kinds <= KINDS and kinds & {"Spherical", "Free"} and machine.nv:
            found.append((seed, machine))
        seed += 1
    return found


@pytest.mark.parametrize(("seed", "machine"), machines(), ids=lambda value: str(value)[:10])
def test_mass_bias_and_acceleration_agree(seed, machine):
    rng = np.random.default_rng(seed)
    model, data = engine(machine)
    eom = Tree(machine)
    for _ in range(10):
        x, v, force = random_state(rng, machine)
        layout = set_state(machine, model, data, x, v, force)
        theirs = layout.a_from(x, v, data.qacc)
        ours = evaluate(eom.functions["forward"], x, v, force).ravel()
        assert np.abs(ours - theirs).max() <= 1e-10 * max(1, np.abs(theirs).max())
        energy = evaluate(eom.functions["energy"], x, v)
        full = np.zeros((model.nv, model.nv))
        mujoco.mj_fullM(model, data, full)
        kinetic = data.qvel @ full @ data.qvel / 2
        assert abs(energy[0].item() - kinetic) <= 1e-12 * max(1, kinetic)


def closed(rng):
    """Two arms from the world that meet at a ball, and one more body that hangs on them."""
    bodies = [Body(f"b{i}", random_moments(rng)) for i in range(5)]
    kinds = [Revolute("y"), Spherical(), Revolute("x"), Spherical(), Prismatic("z")]
    parents = ["world", "b0", "world", "b2", "b1"]
    joints = [
        Joint(f"j{i}", kind, parent, f"b{i}", parent_pose=random_pose(rng))
        for i, (kind, parent) in enumerate(zip(kinds, parents, strict=True))
    ]
    machine = Machine(bodies, joints)
    x = machine.random(rng)
    eom = Tree(machine)
    G1, G3 = (evaluate(eom.functions[f"frame_pose:{b}"], x) for b in ("b1", "b3"))
    meeting = np.linalg.inv(G3) @ np.append(G1[:3, 3], 1.0)
    frames = (Frame("end1", "b1"), Frame("end3", "b3", meeting[:3]))
    return replace(machine, frames=frames), x


@pytest.mark.parametrize("kind", ["ball", "weld"])
@pytest.mark.first_cases(1)
def test_hard_constraints_agree_at_rest(kind):
    for seed in range(6):
        rng = np.random.default_rng(seed)
        machine, x = closed(rng)
        pose = Tree(machine).functions
        G_a, G_b = (evaluate(pose[f"frame_pose:{f}"], x) for f in ("end1", "end3"))
        rest = np.linalg.inv(G_a) @ G_b
        loop = Loop("loop", kind, "end1", "end3", rest=rest if kind == "weld" else None)
        machine = replace(machine, loops=(loop,))
        model, data = engine(machine)
        force = rng.normal(size=machine.nv)
        set_state(machine, model, data, x, np.zeros(machine.nv), force)
        J = np.reshape(data.efc_J, (-1, model.nv))[: loop.size]
        M = np.zeros((model.nv, model.nv))
        mujoco.mj_fullM(model, data, M)
        kkt = np.block([[M, J.T], [J, np.zeros((len(J), len(J)))]])
        right = np.concatenate([data.qfrc_applied - data.qfrc_bias, np.zeros(len(J))])
        theirs = np.linalg.solve(kkt, right)[: model.nv]
        ours = evaluate(
            Constrained(machine).functions["forward"], x, np.zeros(machine.nv), force
        ).ravel()
        expected = machine.layout("mujoco").a_from(x, np.zeros(machine.nv), theirs)
        assert np.abs(ours - expected).max() <= 1e-10 * max(1, np.abs(expected).max())
