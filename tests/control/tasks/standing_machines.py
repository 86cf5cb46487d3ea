"""A quadruped and a rod that stand, laws for them, and their mechanics by Pinocchio."""

from functools import lru_cache

import numpy as np
import pytest

import framefree as ff
from framefree.certify.pinocchio_model import pinocchio_model
from framefree.control.tasks import (
    ContactFrame,
    FrameControl,
    JointControl,
    LimitedTaskControl,
)
from framefree.gallery.machines.quadruped import FOOT, LEGS, quadruped, standing
from framefree.geometry import Moments
from framefree.machine import Body, Frame, Free, Joint, JointForce, Machine, Revolute

MACHINE = quadruped(touching=False)
STANDING = standing(MACHINE)
WEIGHT = 9.81 * sum(body.moments.total for body in MACHINE.bodies)
MU = 0.7
WAYS = ("pressed", "across")


def posture(Kp=50.0):
    """Return the posture of the legs, below all else."""
    legs = [joint.name for joint in MACHINE.joints[1:]]
    return JointControl(MACHINE, STANDING, Kp=Kp, Kd=14.0, joints=legs)


def feet(**settings):
    """Return the four feet."""
    settings = {"friction": MU, "radius": FOOT} | settings
    return [ContactFrame(f"{leg}_foot", name=leg, **settings) for leg in LEGS]


@lru_cache
def body_law():
    """Return a law for the trunk's pose, then the posture."""
    levels = [[FrameControl("trunk", "trunk", Kp=100.0)], [posture()]]
    return LimitedTaskControl(MACHINE, levels, contacts=feet())


@lru_cache
def lifting_law():
    """Return a law whose feet are switched and carry at least 5 N, one of them with a path."""
    lift = FrameControl("hind_left_foot", "foot", Kp=100.0, only="position", name="lift")
    levels = [[FrameControl("trunk", "trunk", Kp=100.0)], [lift], [posture()]]
    contacts = feet(switched=True, most=2 * WEIGHT, least=5.0)
    return LimitedTaskControl(MACHINE, levels, contacts=contacts)


def lifted(height, *open_feet):
    """Return the reference of the lifted foot, over where it stands, and loads of all feet."""
    pose = np.eye(4)
    pose[:3, 3] = [-0.19, 0.13, FOOT + height]
    named = {"foot.pose": pose, "foot.twist": np.zeros(6), "foot.acceleration": np.zeros(6)}
    return named | {f"{leg}.load": [float(leg not in open_feet)] for leg in LEGS}


def at_trunk(shift=(0, 0, 0), acceleration=(0, 0, 0, 0, 0, 0)):
    """Return a reference of the trunk beside where it stands."""
    G = np.eye(4)
    G[:3, 3] = STANDING[:3] + np.asarray(shift)
    named = {"trunk.pose": G, "trunk.twist": np.zeros(6)}
    return {**named, "trunk.acceleration": np.asarray(acceleration, float)}


def command(law, x=STANDING, v=None, **reference):
    """Return inputs and signals at a state."""
    v = np.zeros(law.machine.nv) if v is None else v
    named = {**at_trunk(), **reference}
    found = law.command(0.0, x, v, {k: named[k] for k in law.needs}, law.memory)
    return found.u, found.signals


def random_states(count, seed=0):
    """Return states near the standing one, with bodies and legs that move."""
    rng = np.random.default_rng(seed)
    for _ in range(count):
        step = rng.normal(size=MACHINE.nv) * np.r_[[0.1] * 3, [0.3] * 3, [0.25] * 12]
        yield MACHINE.integrate(STANDING, step), rng.normal(size=MACHINE.nv)


@lru_cache
def foot_places():
    """Return kernels of the poses of the feet."""
    return [ff.equations(MACHINE).kernel(f"frame_pose:{leg}_foot") for leg in LEGS]


def pinocchio_terms(x, v, a, below=FOOT):
    """Return M a + h of Pinocchio, and Jacobians (3 x nv, world axes) of points below the feet."""
    pin = pytest.importorskip("pinocchio")
    model = pinocchio_model(pin, MACHINE)
    model.armature = np.concatenate([np.broadcast_to(j.armature, j.nv) for j in MACHINE.joints])
    data = model.createData()
    q = np.array(x)
    q[3:7] = x[[4, 5, 6, 3]]
    tau = pin.rnea(model, data, q, v, a)
    pin.computeJointJacobians(model, data, q)
    jacobians = []
    for leg, place in zip(LEGS, foot_places(), strict=True):
        joint = model.getJointId(f"{leg}_knee")
        J = pin.getJointJacobian(model, data, joint, pin.ReferenceFrame.LOCAL_WORLD_ALIGNED)
        r = place(x)[:3, 3] - [0, 0, below] - data.oMi[joint].translation
        jacobians.append(J[:3] - pin.skew(r) @ J[3:])
    return tau, jacobians


def lying_on_feet(x):
    """Return a configuration with the trunk of x and feet where they were, by Newton's method."""
    wanted = [place(STANDING)[:3, 3] for place in foot_places()]
    x = x.copy()
    for _ in range(12):
        _, J = pinocchio_terms(x, np.zeros(18), np.zeros(18), below=0.0)
        at = [place(x)[:3, 3] for place in foot_places()]
        x[7:] += np.linalg.solve(np.vstack(J)[:, 6:], np.concatenate(wanted) - np.concatenate(at))
    return x


def leaning_rod():
    """Return a rod on a hinge over one flat foot, and how this stands."""
    foot = Body("foot", Moments.of_body(1.0, (0, 0, 0), 0.01 * np.eye(3)))
    rod = Body("rod", Moments.of_body(4.0, (0, 0, 0.5), 0.1 * np.eye(3)))
    joints = (Joint("base", Free(), "world", "foot"), Joint("ankle", Revolute("y"), "foot", "rod"))
    machine = Machine(
        (foot, rod), joints, (Frame("sole", "foot", (0, 0, -0.05)),),
        actuators=(JointForce("ankle", "ankle"),), name="leaning",
    )  # fmt: skip
    corners = [(x, y, 0.0) for x in (-0.05, 0.15) for y in (-0.04, 0.04)]
    return machine, ContactFrame("sole", 0.8, corners)
