"""Serial arms with published or simple parameters."""

from dataclasses import replace

import numpy as np

from framefree.geometry import Moments, euler
from framefree.machine import Body, Frame, Joint, Machine, Revolute, Spherical, motors

_HALF = np.pi / 2

# Parent-to-joint roll-pitch-yaw and position; mass, center of mass and principal inertia about it.
# Numbers of the KUKA iiwa model in Drake's benchmarks [Drake, kuka_iiwa_robot].
_IIWA = (
    ((0, 0, 0), (0, 0, 0.1575), 5.76, (0, -0.03, 0.12), (0.033, 0.0333, 0.0123)),
    ((_HALF, 0, np.pi), (0, 0, 0.2025), 6.35, (0.0003, 0.059, 0.042), (0.0305, 0.0304, 0.011)),
    ((_HALF, 0, np.pi), (0, 0.2045, 0), 3.5, (0, 0.03, 0.13), (0.025, 0.0238, 0.0076)),
    ((_HALF, 0, 0), (0, 0, 0.2155), 3.5, (0, 0.067, 0.034), (0.017, 0.0164, 0.006)),
    ((-_HALF, np.pi, 0), (0, 0.1845, 0), 3.5, (0.0001, 0.021, 0.076), (0.01, 0.0087, 0.00449)),
    ((_HALF, 0, 0), (0, 0, 0.2155), 1.8, (0, 0.0006, 0.0004), (0.0049, 0.0047, 0.0036)),
    ((-_HALF, np.pi, 0), (0, 0.081, 0), 1.2, (0, 0, 0.02), (0.001, 0.001, 0.001)),
)


def iiwa() -> Machine:
    """Return a seven-joint arm with the numbers of the KUKA iiwa; frame `tool` on the last link."""
    bodies, joints = [], []
    for i, (rpy, position, mass, center, inertia) in enumerate(_IIWA, start=1):
        placement = np.eye(4)
        placement[:3, :3] = euler.to_rotation(rpy).full()
        placement[:3, 3] = position
        bodies.append(Body(f"link{i}", Moments.of_body(mass, center, np.diag(inertia))))
        parent = "world" if i == 1 else f"link{i - 1}"
        joints.append(Joint(f"joint{i}", Revolute("z"), parent, f"link{i}", parent_pose=placement))
    tool = Frame("tool", "link7", (0.1, 0.2, 0.3))
    return Machine(tuple(bodies), tuple(joints), (tool,), name="iiwa")


def revolute_chain(n: int = 30, length: float = 0.3, mass: float = 1.0) -> Machine:
    """Return equal rods in a row, each turning about an axis across the one before."""
    rod = Moments.of_body(mass, (0, 0, length / 2), np.diag([1, 1, 0.02]) * mass * length**2 / 12)
    bodies = [Body(f"link{i}", rod) for i in range(n)]
    joints = [
        Joint(
            f"joint{i}",
            Revolute("xy"[i % 2]),
            f"link{i - 1}" if i else "world",
            f"link{i}",
            parent_pose=(0, 0, length if i else 0),
        )
        for i in range(n)
    ]
    tip = Frame("tip", f"link{n - 1}", (0, 0, length))
    return Machine(tuple(bodies), tuple(joints), (tip,), name="chain")


def ball_chain(n: int = 10, length: float = 0.1, mass: float = 0.2) -> Machine:
    """Return equal rods that hang in a row, joined by balls."""
    rod = Moments.of_body(mass, (0, 0, -length / 2), np.diag([1, 1, 0.1]) * mass * length**2 / 12)
    joints = [
        Joint(
            f"joint{i}",
            Spherical(),
            f"link{i - 1}" if i else "world",
            f"link{i}",
            parent_pose=(0, 0, -length if i else 0),
        )
        for i in range(n)
    ]
    bodies = [Body(f"link{i}", rod) for i in range(n)]
    return Machine(tuple(bodies), tuple(joints), name="ball chain")


# Limits of the LBR iiwa 14 R820, deg, deg/s, Nm, by its data sheet. Its friction and drive inertia
# are not published: those below are of the size that identified arms of this class show.
_IIWA_RANGE = (170, 120, 170, 120, 170, 120, 175)
_IIWA_SPEED = (85, 85, 100, 75, 130, 135, 135)
_IIWA_EFFORT = (320, 320, 176, 176, 110, 40, 40)
_IIWA_ARMATURE = (0.60, 0.60, 0.35, 0.35, 0.20, 0.10, 0.06)
_IIWA_DAMPING = (0.9, 1.1, 0.6, 0.7, 0.4, 0.25, 0.15)
_IIWA_FRICTION = (1.6, 2.0, 1.2, 1.3, 0.8, 0.5, 0.35)
_IIWA_ASYMMETRY = (0.15, -0.20, 0.08, 0.10, -0.06, 0.04, -0.03)


def driven_iiwa(*, friction: bool = True) -> Machine:
    """Return the arm of `iiwa` with motors, limits, drive inertia and friction of every joint.

    Parameters
    ----------
    friction : bool
        Whether there is friction: viscous, and Coulomb friction that differs by direction.
    """
    arm, joints = iiwa(), []
    for i, joint in enumerate(arm.joints):
        rough = {
            "damping": _IIWA_DAMPING[i],
            "friction": _IIWA_FRICTION[i],
            "friction_asymmetry": _IIWA_ASYMMETRY[i],
            "friction_width": 0.02,
        }
        joints.append(
            replace(
                joint,
                lower=-np.deg2rad(_IIWA_RANGE[i]),
                upper=np.deg2rad(_IIWA_RANGE[i]),
                velocity_limit=np.deg2rad(_IIWA_SPEED[i]),
                effort_limit=_IIWA_EFFORT[i],
                armature=_IIWA_ARMATURE[i],
                **(rough if friction else {}),
            )
        )
    return replace(
        arm, joints=tuple(joints), actuators=motors(joints, " motor"), name="driven iiwa"
    )
