"""Machines that several tests use."""

import casadi
import numpy as np

from framefree.geometry import se3
from framefree.geometry.moments import Moments
from framefree.machine import (
    Body,
    Continuous,
    Coupling,
    Cylindrical,
    Damper,
    EulerSpring,
    Fixed,
    Fluid,
    Frame,
    Free,
    Helical,
    Immersed,
    Joint,
    JointForce,
    Keyframe,
    Loop,
    Machine,
    Planar,
    Prismatic,
    Propeller,
    Revolute,
    Shape,
    Spherical,
    SpinningPropeller,
    Spring,
    TiltingPropeller,
    Universal,
    Wrench,
)

ALL_KINDS = (
    Free(),
    Revolute("y"),
    Continuous((1, 2, 3)),
    Prismatic("x"),
    Helical("x", 0.2),
    Cylindrical("z"),
    Universal(),
    Planar("-y"),
    Spherical(),
    Fixed(),
)


def some_moments(mass=1.0):
    return Moments.of_body(mass, (0.1, 0.02, -0.03), np.diag([0.02, 0.03, 0.04]))


def random_pose(rng):
    return np.array(se3.exp(rng.normal(size=6)))


def chain(kinds=ALL_KINDS, seed=0, **fields):
    """One body after the other, with random joint frames."""
    rng = np.random.default_rng(seed)
    bodies = [Body(f"b{i}", some_moments(1.0 + i)) for i in range(len(kinds))]
    joints = [
        Joint(
            f"j{i}",
            kind,
            f"b{i - 1}" if i else "world",
            f"b{i}",
            random_pose(rng),
            random_pose(rng),
        )
        for i, kind in enumerate(kinds)
    ]
    return Machine(bodies, joints, **fields)


def arm():
    """Two links and a tool, with one of every other part."""
    bodies = [Body("upper", some_moments(2.0)), Body("lower", some_moments()), Body("slide", None)]
    joints = [
        Joint("shoulder", Revolute("y"), "world", "upper", (0, 0, 1), damping=0.1, friction=0.2),
        Joint("elbow", Revolute("y"), "upper", "lower", (0.5, 0, 0), lower=-2, upper=2),
        Joint("finger", Prismatic("x"), "lower", "slide", (0.3, 0, 0.1), armature=0.1),
    ]
    return Machine(
        bodies,
        joints,
        frames=[Frame("tip", "lower", (0.4, 0, 0)), Frame("hook", "world", (0.6, 0, 0))],
        springs=[
            Spring("coil", "hook", "tip", Moments.of_points([[0, 0, 0.1]], [30.0])),
            Spring.torsional("twist", "upper", "lower", 0.4),
            EulerSpring("euler", "world", "upper", (1.0, 2.0, 3.0)),
        ],
        dampers=[
            Damper("oil", "world", "tip", np.diag([1.0, 2, 3, 0.1, 0.1, 0.1])),
            Damper.torsional("grease", "upper", "lower", 0.2),
        ],
        loops=[Loop("rod", "distance", "hook", "tip", length=0.7)],
        couplings=[Coupling.mimic("gear", "finger", "elbow", 0.05, 0.01)],
        actuators=[
            JointForce("motor", "shoulder", 2.0, lower=-5, upper=6),
            Wrench("jet", "tip", np.eye(6)[:, :2], A=[[1.0, 1.0]], b=[3.0]),
            Propeller("fan", "tip", "z", 0.01, -1, upper=9),
            TiltingPropeller("vane", "tip", force=(1, 5)),
            SpinningPropeller("mill", "slide", "finger", "x", 1e-3, 1e-4),
        ],
        fluid=Fluid(
            (Immersed("lower", 0.01, (0, 0, 0.1), np.arange(1.0, 7.0)),), 1026.0, (0.1, 0, 0)
        ),
        name="arm",
        geometry=[
            Shape("upper", "box", (0.5, 0.1, 0.1)),
            Shape("tip", "mesh", 1.0, file="tip.stl"),
        ],
        keyframes=[Keyframe("home", {"elbow": [0.3]}, {"shoulder": [1.0]}, {"fan": [2.0]})],
        remarks=("read with care",),
        ignored=("a lamp",),
    )


def body_poses(machine, x):
    """Pose of every body in the world, by name."""
    found = {"world": np.eye(4)}
    for joint in machine.joints:
        part = casadi.DM(x[machine.x_slice[joint.name]])
        G = np.array(casadi.DM(joint.kind.pose(part)))
        parent = found[joint.parent]
        found[joint.child] = parent @ joint.parent_pose @ G @ np.linalg.inv(joint.child_pose)
    return found
