"""Serial arms with published or simple parameters."""

import numpy as np

from framefree.geometry import Moments, euler
from framefree.machine import Body, Frame, Joint, Machine, Revolute, Spherical

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
