"""A planar five-bar: two motors on the ground, two elbows, and a tip that both sides hold.

Seen along the world's y axis, x to the right and z up. Another kind of closed chain than the
crane: its motors sit at two joints of the ground and no closed form is given; its loop is solved.
"""

from typing import Any

import numpy as np

from framefree.geometry import Moments
from framefree.machine import (
    Body,
    Frame,
    Joint,
    JointForce,
    Loop,
    Machine,
    MachineError,
    Revolute,
    Shape,
)

BASE, UPPER, LOWER = 0.2, 0.3, 0.42
"""Distance of the motors and lengths of the links at them and beyond, m."""
COORDINATES: tuple[str, ...] = ("left", "right")

# Angles are counted from x towards z, about minus y.
_AXIS = (0, -1, 0)
_ALONG_X = np.array([[0, 0, 1.0], [0, 1, 0], [-1, 0, 0]])


def five_bar(load: float = 0.0) -> Machine:
    """Return a planar linkage of five bars with two motors and a load at its tip (kg).

    Joints `left` and `right` have motors; `left_elbow` and `right_elbow` follow.
    """
    bodies = [
        _rod("left_upper", 1.2, UPPER),
        _rod("left_lower", 0.8, LOWER),
        _rod("right_upper", 1.2, UPPER),
        _rod("right_lower", 0.8, LOWER),
    ]
    if load:
        tip = Moments.of_body(load, (LOWER, 0, 0), 1e-3 * load * np.eye(3))
        held = bodies[1].moments + tip
        bodies[1] = Body("left_lower", held)
    joints = [
        Joint("left", Revolute(_AXIS), "world", "left_upper", parent_pose=(-BASE / 2, 0, 0)),
        Joint("left_elbow", Revolute(_AXIS), "left_upper", "left_lower", (UPPER, 0, 0)),
        Joint("right", Revolute(_AXIS), "world", "right_upper", parent_pose=(BASE / 2, 0, 0)),
        Joint("right_elbow", Revolute(_AXIS), "right_upper", "right_lower", (UPPER, 0, 0)),
    ]
    frames = [Frame("tip", "left_lower", (LOWER, 0, 0)), Frame("end", "right_lower", (LOWER, 0, 0))]
    colors = {"left": (0.2, 0.45, 0.75, 1.0), "right": (0.8, 0.62, 0.25, 1.0)}
    shapes = [
        _drawn(f"{side}_{part}", length, color)
        for side, color in colors.items()
        for part, length in (("upper", UPPER), ("lower", LOWER))
    ]
    return Machine(
        tuple(bodies),
        tuple(joints),
        tuple(frames),
        loops=(Loop("hub", "ball", "tip", "end"),),
        actuators=tuple(JointForce(f"drive_{name}", name) for name in COORDINATES),
        geometry=tuple(shapes),
        name="five-bar",
    )


def five_bar_at(machine: Machine, tip: Any) -> np.ndarray:
    """Return the configuration (nx,) with the tip at (x, z) and both elbows outside."""
    x, z = np.asarray(tip, float)
    values = {}
    for side, sign in (("left", 1.0), ("right", -1.0)):
        dx = x + sign * BASE / 2
        reach = np.hypot(dx, z)
        if not LOWER - UPPER <= reach <= LOWER + UPPER:
            raise MachineError(f"the tip of the five-bar cannot be at ({x:g} m, {z:g} m)")
        inner = np.arccos((UPPER**2 + reach**2 - LOWER**2) / (2 * UPPER * reach))
        first = np.arctan2(z, dx) + sign * inner
        far = np.array([dx, z]) - UPPER * np.array([np.cos(first), np.sin(first)])
        values[side] = first
        values[f"{side}_elbow"] = _turn(np.arctan2(far[1], far[0]) - first)
    return np.array([values[name] for name in machine.x_names])


def _turn(angle: float) -> float:
    return float((angle + np.pi) % (2 * np.pi) - np.pi)


def _rod(name: str, mass: float, length: float) -> Body:
    inertia = mass * length**2 / 12 * np.diag([0.01, 1, 1])
    return Body(name, Moments.of_body(mass, (length / 2, 0, 0), inertia))


def _drawn(body: str, length: float, color: Any) -> Shape:
    pose = np.eye(4)
    pose[:3, :3], pose[0, 3] = _ALONG_X, length / 2
    return Shape(body, "cylinder", (0.015, length), pose, color=color)
