"""Arms that hold one object: a two-armed robot with published numbers, and a six-joint arm.

Kinematic and inertial numbers are those of the experiments of [Milioshin2024].
"""

from dataclasses import replace
from typing import Any

import numpy as np

from framefree.geometry import Moments, euler
from framefree.machine import Body, Frame, Free, Joint, Loop, Machine, Revolute, Shape
from framefree.machine.actuators import motors

_HALF = np.pi / 2

# Joints of an arm after the first, in order along the arm: number, position and roll-pitch-yaw on
# the link before. The robot counts its elbow as joint 7.
_ALONG = (
    (2, (0.03, 0, 0.1), (_HALF, 0, 0)),
    (7, (-0.03, 0.17283, 0), (-_HALF, 0, 0)),
    (3, (-0.04188, 0, 0.07873), (_HALF, -_HALF, 0)),
    (4, (0.0405, 0.16461, 0), (-_HALF, 0, 0)),
    (5, (-0.027, 0, 0.10039), (_HALF, 0, 0)),
    (6, (0.027, 0.029, 0), (-_HALF, 0, 0)),
)
_SHOULDERS = {
    "l": ((0.05355, 0.0725, 0.41492), (0.9781, -0.5716, 2.3180)),
    "r": ((0.05355, -0.0725, 0.41492), (-0.9795, -0.5682, -2.3155)),
}
# Lower and upper limit, rad, and velocity limit, rad/s, by the number of the joint.
_LIMITS = {
    1: (-2.94087978961, 2.94087978961, np.pi),
    2: (-2.50454747661, 0.759218224618, np.pi),
    7: (-2.94087978961, 2.94087978961, np.pi),
    3: (-2.15548162621, 1.3962634016, np.pi),
    4: (-5.06145483078, 5.06145483078, 6.98131700798),
    5: (-1.53588974176, 2.40855436775, 6.98131700798),
    6: (-3.99680398707, 3.99680398707, 6.98131700798),
}
_BASE_HEIGHT = 0.1
EFFORT = 300.0
"""Effort limit of every joint, Nm."""
DAMPING = 0.5
"""Viscous friction of every joint, Nm s/rad."""
HOLD = np.array([[1.0, 0, 0, 0], [0, 0, 1, -0.4], [0, -1, 0, 0.12], [0, 0, 0, 1]])
"""The right hand seen from the left, where both hold the object."""
HOLD_THIRD = np.array([[-1.0, 0, 0, 0.19], [0, -1, 0, -0.22], [0, 0, 1, 0], [0, 0, 0, 1]])
"""The hand of a third arm, that faces the two, seen from the left hand."""
CENTER = np.block([[np.eye(3), HOLD[:3, 3:] / 2], [np.array([0, 0, 0, 1.0])]])
"""The middle of the object seen from the left hand."""
LEFT, RIGHT = "link_7_l", "link_7_r"
"""Frames of the hands."""
START = (
    *(0.9732, 1.6181, -2.9988, 0.5775, 0.1748, 0.6528, -0.1875),
    *(-0.7914, 1.1193, 3.4577, 0.2045, -1.0548, 1.7651, 1.4572),
)
"""First configuration of the published experiment, rad: hands off by 0.12 m and 0.26 rad."""
START_HELD = (
    *(0.7758, 1.5109, -3.0532, 0.4394, 0.1363, 0.5760, -0.3733),
    *(-0.9712, 0.9964, 3.2578, 0.1819, -1.1246, 1.7620, 1.3025),
)
"""A configuration in which the hands are nearly where they hold the object, rad."""


def dual_arm(damping: float = DAMPING, effort: float = EFFORT, friction: float = 0.0) -> Machine:
    """Return the two-armed robot: 14 revolute joints, left arm first; hands link_7_l, link_7_r.

    Parameters
    ----------
    damping : float
        Viscous friction of every joint, Nm s/rad.
    effort : float
        Effort limit of every joint, Nm.
    friction : float
        Coulomb friction of every joint, Nm.
    """
    left, right = (_arm(side, damping, effort, friction) for side in "lr")
    bodies, joints, shapes = ((*a, *b) for a, b in zip(left, right, strict=True))
    return _robot("dual arm", bodies, joints, (_TORSO, *shapes))


def seven_joint_arm(damping: float = DAMPING, effort: float = EFFORT) -> Machine:
    """Return the left arm of the two-armed robot alone."""
    bodies, joints, shapes = _arm("l", damping, effort, 0.0)
    return _robot("seven-joint arm", bodies, joints, (_TORSO, *shapes))


def dual_arm_with_object(mass: float = 2.0, damping: float = DAMPING) -> Machine:
    """Return the two-armed robot and a free rod, `object`, welded to both hands by loops.

    Frames `object_l` and `object_r` of the rod are where the hands hold it.
    """
    grasps = {"l": np.linalg.inv(CENTER), "r": np.linalg.inv(CENTER) @ HOLD}
    length, along = float(np.linalg.norm(HOLD[:3, 3])), HOLD[:3, 3] / np.linalg.norm(HOLD[:3, 3])
    across = np.eye(3) - np.outer(along, along)
    rod = Moments.of_body(mass, (0, 0, 0), mass * length**2 / 12 * (across + 0.02 * np.eye(3)))
    parts: list[Any] = [Body("object", rod), Joint("object", Free(), "world", "object")]
    for side, pose in grasps.items():
        parts.append(Frame(f"object_{side}", "object", pose))
        parts.append(Loop(f"grasp_{side}", "weld", f"link_7_{side}", f"object_{side}"))
        shape = _bar("object", pose[:3, 3], 0.015)
        parts.append(replace(shape, color=(0.8, 0.45, 0.2, 1)))
    return dual_arm(damping).attach(*parts).replace(name="dual arm and object")


def three_arms(damping: float = DAMPING) -> Machine:
    """Return the two-armed robot and, facing it, another with one arm; hand third_link_7_l."""
    third = np.diag([-1.0, -1.0, 1.0, 1.0])
    third[:3, 3] = 1.06, 0.15, 0.0
    joined = dual_arm(damping).merge(seven_joint_arm(damping), "third_", pose=third)
    return joined.replace(name="three arms")


def _robot(name: str, bodies: Any, joints: Any, shapes: Any) -> Machine:
    return Machine(
        tuple(bodies), tuple(joints), actuators=motors(joints), geometry=tuple(shapes), name=name
    )


_TORSO = Shape("world", "box", (0.12, 0.2, 0.5), (0, 0, 0.25), color=(0.35, 0.38, 0.42, 1))


def _arm(side: str, damping: float, effort: float, friction: float) -> tuple[list, list, list]:
    """Return bodies, joints and shapes of one arm."""
    position, rpy = _SHOULDERS[side]
    shoulder = (1, (position[0], position[1], position[2] + _BASE_HEIGHT), rpy)
    bodies, joints, shapes = [], [], []
    for i, (number, position, rpy) in enumerate((shoulder, *_ALONG), start=1):
        lower, upper, speed = _LIMITS[number]
        parent, child = f"link_{i - 1}_{side}" if i > 1 else "world", f"link_{i}_{side}"
        bodies.append(Body(child, _link_moments(i)))
        joints.append(
            Joint(
                f"joint_{number}_{side}",
                Revolute("z"),
                parent,
                child,
                _placed(position, rpy),
                lower=lower,
                upper=upper,
                velocity_limit=speed,
                effort_limit=effort,
                damping=damping,
                friction=friction,
            )
        )
        if i > 1:
            shapes.append(_bar(parent, position, 0.032))
    hand = Shape(f"link_7_{side}", "box", (0.06, 0.09, 0.05), (0, 0, 0.03))
    fingers = Shape(f"link_7_{side}", "box", (0.02, 0.07, 0.06), (0, 0, 0.09))
    return bodies, joints, [*shapes, hand, fingers]


def _link_moments(i: int) -> Moments:
    """Return mass, 2 kg a link, and its moments; the last link carries gripper and fingers."""
    center = (0, -0.03, 0.12) if i == 1 else (0, 0, 0)
    moments = Moments.of_body(2.0, center, 0.1 * np.eye(3))
    if i < 7:
        return moments
    moments += Moments.of_body(0.2, (0, 0, 0.007), 1e-4 * np.eye(3))
    for sign in (1, -1):
        finger = (sign * 0.01, sign * 0.0065, 0.0907)
        moments += Moments.of_body(0.01, finger, 1e-6 * np.eye(3))
    return moments


# ---------------------------------------------------------------------------- six-joint arm

# Position and moving xyz angles on the body before; axis; mass; center of mass, moving xyz angles
# of its principal axes, and principal moments.
_SIX = (
    ((0, 0, 0.5), (0, 0, 0), "z", 1.0, (0, 0.1, 0.1), (-np.pi / 4, 0, 0), (0.021, 0.021, 0.040)),
    ((0, 0.2, 0.2), (np.pi / 4, 0, 0), "y", 1.0, (0, 0, 0.1), (0, 0, 0), (0.021, 0.021, 0.040)),
    (
        *((0, 0, 0.2828), (-np.pi / 4, _HALF, 0), "z"),
        *(1.0, (0, 0, 0.15), (0, 0, 0), (0.023, 0.023, 0.045)),
    ),
    ((0, 0, 0.3), (0, -_HALF, 0), "z", 1.0, (0, 0, 0.15), (0, 0, 0), (0.023, 0.023, 0.045)),
    ((0, 0, 0.3), (0, -_HALF, 0), "y", 1.0, (0, 0, 0.15), (0, 0, 0), (0.023, 0.023, 0.045)),
    ((0, 0, 0.3), (0, 0, 0), "y", 0.1, (0.15, 0, 0), (0, _HALF, 0), (0.0023, 0.0023, 0.0045)),
)


def six_joint_arm() -> Machine:
    """Return the six-joint arm of the smaller experiments; its hand is the body `gripper`."""
    bodies, joints = [], []
    shapes = [Shape("world", "cylinder", (0.06, 0.5), (0, 0, 0.25))]
    for i, (position, angles, axis, mass, center, turn, inertia) in enumerate(_SIX, start=1):
        parent = f"body_{i - 1}" if i > 1 else "world"
        child = f"body_{i}" if i < len(_SIX) else "gripper"
        R = _rotation(turn, fixed=False)
        bodies.append(Body(child, Moments.of_body(mass, center, R @ np.diag(inertia) @ R.T)))
        pose = _placed(position, angles, fixed=False)
        joints.append(Joint(f"joint_{i}", Revolute(axis), parent, child, pose))
        if i > 1:
            shapes.append(_bar(parent, position, 0.04))
    shapes.append(_bar("gripper", (0.15, 0, 0), 0.025))
    return _robot("six-joint arm", bodies, joints, shapes)


# ---------------------------------------------------------------------------- places and shapes


def _rotation(angles: Any, fixed: bool = True) -> np.ndarray:
    return euler.to_rotation(angles, "xyz", fixed).full()


def _placed(position: Any, angles: Any, fixed: bool = True) -> np.ndarray:
    pose = np.eye(4)
    pose[:3, :3], pose[:3, 3] = _rotation(angles, fixed), position
    return pose


def _bar(frame: str, end: Any, radius: float) -> Shape:
    """Return a capsule from the origin of a frame to a point of it."""
    end = np.asarray(end, float)
    length = float(np.linalg.norm(end))
    z = end / length
    x = np.cross(z, np.eye(3)[int(np.argmin(np.abs(z)))])
    x /= np.linalg.norm(x)
    pose = np.eye(4)
    pose[:3, :3], pose[:3, 3] = np.column_stack([x, np.cross(z, x), z]), end / 2
    return Shape(frame, "capsule", (radius, length), pose)
