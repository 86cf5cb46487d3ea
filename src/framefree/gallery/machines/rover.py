"""A rover on two driven wheels and a caster, with a six-joint arm. All numbers are ours.

The chassis moves in the plane of the axle; wheels roll without slipping, which is what the
constraints of `rolling` say. The caster glides, and has neither mass nor friction.
"""

import casadi as ca
import numpy as np

from framefree.geometry import Moments
from framefree.machine import Body, Frame, Joint, JointForce, Machine, Planar, Revolute, Shape
from framefree.motion.constrained.rows import Nonholonomic
from framefree.motion.spatial import Matrix

WHEEL = 0.15
"""Radius of a wheel, m."""
TRACK = 0.3
"""Distance from the middle of the axle to a wheel, m."""
SIDES = {"left": TRACK, "right": -TRACK}
MOUNT = (0.25, 0.0, 0.2)
"""Where the arm begins on the chassis, m."""
# Length (m) along the link's x axis, mass (kg), and axis of the joint that the link begins with.
LINKS = (
    (0.08, 2.5, "z"),
    (0.35, 3.0, "y"),
    (0.30, 2.0, "y"),
    (0.10, 1.0, "x"),
    (0.08, 0.8, "y"),
    (0.10, 0.6, "x"),
)
THICKNESS = 0.04
ARMATURE = 0.05
"""Inertia of the geared motors as seen at the joints, kg m^2."""
REST = (0.0, -0.9, 1.6, 0.0, -0.7, 0.0)
"""Angles at which the arm reaches forward with its elbow up, rad."""


def rover_arm() -> Machine:
    """Return a rover on two driven wheels with a six-joint arm.

    Planar joint `base` of the chassis, wheels `left` and `right`, arm joints `joint1` to `joint6`,
    frame `gripper` on the last link; inputs `drive_left`, `drive_right`, `motor1` to `motor6`.
    """
    bodies = [Body("chassis", _box(40.0, (0.05, 0.0, 0.05), (0.6, 0.45, 0.25)))]
    joints = [Joint("base", Planar(), "world", "chassis", parent_pose=(0, 0, WHEEL))]
    shapes = [
        Shape("chassis", "box", (0.6, 0.45, 0.2), _at(0.05, 0, 0.08), color=(0.8, 0.5, 0.2, 1)),
        Shape("chassis", "sphere", (0.05,), _at(-0.22, 0, 0.05 - WHEEL), color=_DARK),
    ]
    for side, y in SIDES.items():
        bodies.append(Body(f"wheel_{side}", _wheel(3.0)))
        joints.append(
            Joint(side, Revolute("y"), "chassis", f"wheel_{side}", parent_pose=(0, y, 0),
                  armature=ARMATURE)
        )  # fmt: skip
        shapes.append(Shape(f"wheel_{side}", "cylinder", (WHEEL, 0.05), _lying(), color=_DARK))
        shapes.append(Shape(f"wheel_{side}", "box", (0.2, 0.06, 0.03), color=(0.9, 0.9, 0.9, 1.0)))
    parent, place = "chassis", MOUNT
    for i, (length, mass, axis) in enumerate(LINKS, start=1):
        size = (length, THICKNESS, THICKNESS)
        bodies.append(Body(f"link{i}", _box(mass, (length / 2, 0, 0), size)))
        joints.append(
            Joint(f"joint{i}", Revolute(axis), parent, f"link{i}", parent_pose=place,
                  armature=ARMATURE)
        )  # fmt: skip
        shapes.append(
            Shape(f"link{i}", "box", size, _at(length / 2, 0, 0),
                  color=(0.3, 0.45, 0.7 if i % 2 else 0.9, 1.0))
        )  # fmt: skip
        parent, place = f"link{i}", (length, 0.0, 0.0)
    driven = [(f"drive_{side}", side, 60.0) for side in SIDES]
    driven += [(f"motor{i}", f"joint{i}", 80.0) for i in range(1, len(LINKS) + 1)]
    return Machine(
        tuple(bodies),
        tuple(joints),
        (Frame("gripper", f"link{len(LINKS)}", (LINKS[-1][0], 0, 0)),),
        actuators=tuple(
            JointForce(name, joint, lower=-most, upper=most) for name, joint, most in driven
        ),
        name="rover_arm",
        geometry=tuple(shapes),
    )


def rolling(machine: Machine) -> tuple[Nonholonomic, ...]:
    """Return the constraints: where a wheel touches the ground it does not move.

    In chassis axes, for the wheel at y with rate p about the axle,

        slip = (v_x - w y - WHEEL p, v_y)

    Two wheels on one axle say the same of v_y: one of the four rows depends on the others.
    """
    base, wheels = machine.v_slice["base"], {side: machine.v_slice[side] for side in SIDES}

    def slip(side: str, v: Matrix) -> Matrix:
        forward, sideways, turning = (v[base.start + k] for k in range(3))
        rate = v[wheels[side].start]
        return ca.vertcat(forward - turning * SIDES[side] - WHEEL * rate, sideways)

    return tuple(
        Nonholonomic(f"rolling_{side}", lambda x, v, t, side=side: slip(side, v)) for side in SIDES
    )


def rover_rest(machine: Machine) -> np.ndarray:
    """Return the configuration (nx) at the origin, the arm at `REST`."""
    x = machine.neutral()
    for i, angle in enumerate(REST, start=1):
        x[machine.x_slice[f"joint{i}"]] = angle
    return x


_DARK = (0.15, 0.15, 0.15, 1.0)


def _box(mass: float, center: tuple[float, ...], size: tuple[float, ...]) -> Moments:
    a, b, c = (length**2 for length in size)
    return Moments.of_body(mass, center, np.diag([b + c, a + c, a + b]) * mass / 12)


def _wheel(mass: float) -> Moments:
    across = mass * (3 * WHEEL**2 + 0.05**2) / 12
    return Moments.of_body(mass, (0, 0, 0), np.diag([across, mass * WHEEL**2 / 2, across]))


def _at(x: float, y: float, z: float) -> np.ndarray:
    G = np.eye(4)
    G[:3, 3] = x, y, z
    return G


def _lying() -> np.ndarray:
    """Return the pose that lays a cylinder along y."""
    G = np.eye(4)
    G[:3, :3] = [[1, 0, 0], [0, 0, 1], [0, -1, 0]]
    return G
