"""Machines for the tests of `framefree.certify`: a good one, and the same with planted faults."""

import numpy as np

from framefree.geometry import Moments
from framefree.machine import (
    Body,
    Frame,
    Free,
    Joint,
    Loop,
    Machine,
    Prismatic,
    Revolute,
    Spherical,
)
from framefree.motion.tree import Tree

TREE = {"tree": Tree}
LIMITS = {"lower": -2.5, "upper": 2.5, "velocity_limit": 2.0, "effort_limit": 50.0}


def rod(mass=1.0, length=0.4):
    inertia = np.diag([1.0, 1.0, 0.03]) * mass * length**2 / 12
    return Moments.of_body(mass, (0, 0, length / 2), inertia)


def arm(last=None, **last_joint):
    """Three rods on hinges about different axes, no two alike: with limits, rotors and friction."""
    bodies = [
        Body("upper", rod(3.0, 0.45)),
        Body("lower", rod(2.0, 0.4)),
        last or Body("hand", rod(0.5, 0.3)),
    ]
    joints = []
    for i, body in enumerate(bodies):
        fields = {**LIMITS, "damping": 0.3 / (1 + 2 * i), "friction": 0.1 / (1 + i)}
        fields |= {"armature": (0.05, 0.02, 0.0)[i], "stiffness": (0.3, 0.8, 0.0)[i]}
        fields.update(last_joint if i == 2 else {})
        kind = fields.pop("kind", Revolute("zyx"[i]))
        parent = bodies[i - 1].name if i else "world"
        pose = (0.02, 0.01, 0.4 if i else 0.1)
        joints.append(Joint(f"j{i}", kind, parent, body.name, parent_pose=pose, **fields))
    return Machine(bodies, joints, (Frame("tip", bodies[-1].name, (0, 0, 0.4)),), name="arm")


def floating():
    """A free base with a ball joint and a slider."""
    bodies = [Body("base", rod(5.0)), Body("ball", rod(1.0)), Body("slider", rod(0.7))]
    joints = [
        Joint("free", Free(), "world", "base"),
        Joint(
            "socket",
            Spherical(),
            "base",
            "ball",
            parent_pose=(0.1, 0, 0.4),
            armature=(0.02, 0.005, 0.01),
            damping=(0.1, 0.0, 0.3),
        ),
        Joint("slide", Prismatic((1, 1, 0)), "base", "slider", lower=-0.3, upper=0.3),
    ]
    return Machine(bodies, joints, name="floating")


def planar_two(lower=-np.inf, upper=np.inf):
    """Two links in a plane: M depends on the second angle only."""
    bodies = [Body("a", rod(2.0, 1.0)), Body("b", rod(1.0, 1.0))]
    joints = [
        Joint("qa", Revolute("y"), "world", "a"),
        Joint("qb", Revolute("y"), "a", "b", parent_pose=(0, 0, 1.0), lower=lower, upper=upper),
    ]
    return Machine(bodies, joints, name="two links")


def four_bar(kind="ball", **fields):
    """Three rods from ground to ground; a ball closes it out of its plane, too."""
    lengths = (0.4, 0.5, 0.45)
    bodies = [Body(f"rod{i}", rod(1.0, length)) for i, length in enumerate(lengths)]
    joints = [
        Joint(
            f"q{i}",
            Revolute("y"),
            f"rod{i - 1}" if i else "world",
            f"rod{i}",
            parent_pose=(0, 0, lengths[i - 1]) if i else (0, 0, 0),
        )
        for i in range(3)
    ]
    frames = (Frame("end", "rod2", (0, 0, 0.45)), Frame("ground", "world", (0.5, 0, 0)))
    loop = Loop("closing", kind, "ground", "end", **fields)
    return Machine(bodies, joints, frames, loops=(loop,), name="four-bar")
