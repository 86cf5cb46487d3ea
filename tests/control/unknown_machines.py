"""Machines and motions on which unknown forces and numbers are met."""

import casadi as ca
import numpy as np

from framefree.control.references import JointPath
from framefree.geometry import Moments
from framefree.machine import (
    Body,
    Fluid,
    Frame,
    Free,
    Immersed,
    Joint,
    JointForce,
    Machine,
    Revolute,
    Spherical,
    Wrench,
)


def body(rng):
    points = rng.normal(size=(6, 3)) * 0.3
    return Moments.of_points(points, rng.uniform(0.1, 0.4, 6))


def arm(joints=3, **options):
    """An arm with an axis in every direction, damping and friction."""
    rng = np.random.default_rng(1)
    bodies = [Body(f"link{i}", body(rng)) for i in range(joints)]
    chain = [
        Joint(
            f"joint{i}", Revolute("zyx"[i % 3]), f"link{i - 1}" if i else "world", f"link{i}",
            parent_pose=(0.3, 0.1, 0.1), damping=0.2, friction=0.1, armature=0.05,
            friction_width=0.3,
        )
        for i in range(joints)
    ]  # fmt: skip
    motors = [JointForce(f"motor{i}", f"joint{i}") for i in range(joints)]
    frames = (Frame("tool", f"link{joints - 1}", (0.2, 0.1, 0.0)),)
    return Machine(bodies, chain, frames, actuators=motors, name="arm", **options)


def floating():
    """A free body that carries a ball joint and a hinge, all driven, in a current."""
    rng = np.random.default_rng(2)
    names = ("hull", "upper", "lower")
    kinds = (Free(), Spherical(), Revolute("y"))
    places = ((0, 0, 0), (0.2, 0.1, 0.3), (0.1, 0.3, -0.2))
    joints = [
        Joint(f"to_{name}", kind, parent, name, parent_pose=place, damping=0.1)
        for name, kind, parent, place in zip(names, kinds, ("world", *names), places, strict=False)
    ]
    inputs = (
        Wrench("thrusters", "hull", np.eye(6)),
        Wrench("muscles", "upper", np.eye(6)[:, 3:]),
        JointForce("motor", "to_lower"),
    )
    wet = (Immersed("hull", 1e-3, (0, 0, 0.1), np.diag([2.0, 3, 4, 0.1, 0.2, 0.3]), 1.0, 2.0),)
    fluid = Fluid(wet, current=(0.3, -0.2, 0.1))
    return Machine(
        [Body(name, body(rng)) for name in names], joints, (Frame("tool", "lower", (0.1, 0, 0.3)),),
        actuators=inputs, fluid=fluid, name="floating",
    )  # fmt: skip


def swing(machine, size=0.4, pace=1.5):
    """All velocities to and fro."""
    directions = ca.DM(size * np.cos(np.arange(machine.nv)))

    def path(t):
        return machine.integrate(ca.DM(machine.neutral()), directions * ca.sin(pace * t))

    return JointPath(machine, path)


def start_of(reference):
    first = reference.at(0.0)
    return tuple(np.array(ca.DM(first[name])).ravel() for name in ("x", "v"))
