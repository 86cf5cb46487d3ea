"""Every URDF of example-robot-data, fixed and floating, against Pinocchio's reading of it."""

import numpy as np
import pytest
from model_kinematics import Chain, center_of_mass, example_urdfs

from framefree.machine import Free
from framefree.machine.read import read

pin = pytest.importorskip("pinocchio")
URDFS = {n: path for n, path in example_urdfs().items() if n != "ur_description/ur3.urdf"}
STATES = 100


def pinocchio_model(path, base):
    root = [pin.JointModelFreeFlyer()] if base == "free" else []
    return pin.buildModelFromUrdf(str(path), *root)


def joint_of(model, joint):
    return model.joints[model.getJointId("root_joint" if joint.name == "base" else joint.name)]


def configuration(model, machine, x):
    """Our x in Pinocchio's layout: quaternions xyzw, joints in its own order."""
    q = pin.neutral(model)
    for joint in machine.joints:
        part = x[machine.x_slice[joint.name]]
        if isinstance(joint.kind, Free):
            part = part[[0, 1, 2, 4, 5, 6, 3]]
        start = joint_of(model, joint).idx_q
        q[start : start + joint.nx] = part
    return q


def unlimited(machine, rng):
    """Random x that also leaves the limits, which are data and no stops."""
    return np.concatenate([np.zeros(0), *(joint.kind.random(rng) for joint in machine.joints)])


def relative_gap(ours, theirs):
    return np.abs(ours - theirs).max() / max(1.0, np.abs(theirs).max())


@pytest.mark.parametrize("base", [None, "free"])
@pytest.mark.parametrize("name", URDFS)
def test_mass_center_and_poses_agree(name, base):
    model = pinocchio_model(URDFS[name], base)
    data = model.createData()
    machine = read(URDFS[name], base=base)
    assert (machine.nx, machine.nv) == (model.nq, model.nv)
    assert_parts_agree(machine, model)
    links = [f.name for f in model.frames if f.type == pin.FrameType.BODY and f.name != "universe"]
    ids = [model.getFrameId(link, pin.FrameType.BODY) for link in links]
    ours = ["world_link" if link == "world" and base == "free" else link for link in links]
    chain, rng = Chain(machine), np.random.default_rng(7)
    x = np.array([unlimited(machine, rng) for _ in range(STATES)]).reshape(STATES, machine.nx)
    for state, poses in zip(x, chain.batch(x), strict=True):
        q = configuration(model, machine, state)
        pin.framesForwardKinematics(model, data, q)
        theirs = np.array([data.oMf[i].homogeneous for i in ids])
        assert relative_gap(np.array([poses[link] for link in ours]), theirs) <= 1e-12
        total, center = center_of_mass(machine, poses)
        assert total == pytest.approx(pin.computeTotalMass(model), rel=1e-12, abs=1e-15)
        if total:
            assert relative_gap(center, pin.centerOfMass(model, data, q)) <= 1e-12


def assert_parts_agree(machine, model):
    """Inertia of every body, and the numbers of every joint."""
    for body, joint in zip(machine.bodies, machine.joints, strict=True):
        other = joint_of(model, joint)
        inertia = model.inertias[other.id].matrix()
        assert relative_gap(body.moments.matrix6, inertia) <= 1e-12
        if isinstance(joint.kind, Free):
            continue
        v = slice(other.idx_v, other.idx_v + joint.nv)
        np.testing.assert_array_equal(joint.damping, model.damping[v])
        np.testing.assert_array_equal(joint.friction, model.upperDryFrictionLimit[v])
        for ours, theirs in (
            (joint.effort_limit, model.upperEffortLimit[v]),
            (joint.velocity_limit, model.upperVelocityLimit[v]),
        ):
            assert (ours == theirs).all() or (not theirs.any() and np.isinf(ours).all())
        low, high = model.lowerPositionLimit[other.idx_q], model.upperPositionLimit[other.idx_q]
        if joint.nx == 1 and low != high:
            bounds = [np.inf * np.sign(b) if abs(b) >= 1e16 else b for b in (low, high)]
            assert [joint.lower[0], joint.upper[0]] == bounds
