"""An underwater vehicle with a seven-joint arm, in a current.

The hull has the numbers of the BlueROV2 Heavy [vonBenzon2022], which are given with z down and are
turned here, z up: center of buoyancy 1 cm above that of mass, diagonal matrices as they are. Where
its eight thrusters sit is rounded; four lie in the horizontal plane at 45 degrees, four are
upright. The arm is ours: seven sealed cylinders in a row, 1.3 times as heavy as the water they
displace, with added mass and cross-flow drag of slender cylinders by strip theory [Fossen2021].
"""

from typing import Any

import numpy as np

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
    Propeller,
    Revolute,
    Shape,
)

DENSITY = 999.7025
"""Fresh water, kg/m^3."""
CURRENT = (0.2, 0.15, 0.05)
"""m/s in world axes."""
THRUST = 40.0
"""Largest thrust of a thruster either way, N."""
TORQUE = 15.0
"""Largest torque of a joint of the arm, Nm."""

HULL_MASS, HULL_VOLUME = 13.5, 0.0134
HULL_INERTIA = (0.26, 0.23, 0.37)
HULL_BUOYANCY = (0.0, 0.0, 0.01)
HULL_ADDED = (6.3567, 7.1206, 18.6863, 0.1858, 0.1348, 0.2215)
HULL_LINEAR = (13.7, 0.0, 33.0, 0.0, 0.8, 0.0)
HULL_QUADRATIC = (141.0, 217.0, 190.0, 1.192, 0.47, 1.5)

MOUNT = (0.22, 0.0, -0.08)
"""Where the arm begins on the hull, m."""
LINKS = ((0.06, "z"), (0.12, "y"), (0.16, "x"), (0.12, "y"), (0.14, "x"), (0.06, "y"), (0.10, "x"))
"""Length (m) of every link, which lies along its x axis, and axis of the joint it begins with."""
RADIUS, HEAVINESS, CROSS_FLOW = 0.035, 1.3, 1.1
ARMATURE = 0.01
"""Inertia of the geared motors as seen at the joints, kg m^2."""
REST = (0.0, -0.7, 0.0, 1.4, 0.0, -0.7, 0.0)
"""Angles at which the arm reaches forward with its elbow bent, rad."""


def auv(current: Any = CURRENT) -> Machine:
    """Return an underwater vehicle with eight thrusters and a seven-joint arm, in a current.

    Free joint `base` of the hull, arm joints `joint1` to `joint7`; frames `gripper` and
    `middle1` to `middle7` on the links; inputs `thruster1` to `thruster8` and `motor1` to `motor7`.

    Parameters
    ----------
    current : (3,)
        Velocity of the water in world axes, m/s.
    """
    bodies = [Body("hull", Moments.of_body(HULL_MASS, (0, 0, 0), np.diag(HULL_INERTIA)))]
    joints = [Joint("base", Free(), "world", "hull")]
    frames = [Frame("gripper", "link7", (LINKS[-1][0], 0, 0))]
    wet = [Immersed("hull", HULL_VOLUME, HULL_BUOYANCY, HULL_ADDED, HULL_LINEAR, HULL_QUADRATIC)]
    shapes = [Shape("hull", "box", (0.46, 0.34, 0.2), color=(0.15, 0.35, 0.75, 1.0))]
    parent, place = "hull", MOUNT
    for i, (length, axis) in enumerate(LINKS, start=1):
        bodies.append(Body(f"link{i}", _cylinder(length)))
        joints.append(
            Joint(
                f"joint{i}",
                Revolute(axis),
                parent,
                f"link{i}",
                parent_pose=place,
                armature=ARMATURE,
            )
        )
        frames.append(Frame(f"middle{i}", f"link{i}", (length / 2, 0, 0)))
        wet.append(_immersed(f"middle{i}", length))
        shapes.append(Shape(f"link{i}", "cylinder", (RADIUS, length), _lying(length / 2),
                            color=(0.9, 0.6 if i % 2 else 0.75, 0.2, 1.0)))  # fmt: skip
        parent, place = f"link{i}", (length, 0.0, 0.0)
    thrusters = []
    for k, (position, direction) in enumerate(_thrusters(), start=1):
        frames.append(Frame(f"propeller{k}", "hull", position))
        thrusters.append(
            Propeller(f"thruster{k}", f"propeller{k}", direction, lower=-THRUST, upper=THRUST)
        )
        shapes.append(
            Shape(f"propeller{k}", "cylinder", (0.045, 0.05), _along(direction),
                  color=(0.2, 0.2, 0.2, 1.0))
        )  # fmt: skip
    motors = [
        JointForce(f"motor{i}", f"joint{i}", lower=-TORQUE, upper=TORQUE)
        for i in range(1, len(LINKS) + 1)
    ]
    return Machine(
        tuple(bodies),
        tuple(joints),
        tuple(frames),
        actuators=(*thrusters, *motors),
        fluid=Fluid(tuple(wet), density=DENSITY, current=current),
        name="auv",
        geometry=tuple(shapes),
    )


def auv_rest(machine: Machine) -> np.ndarray:
    """Return the configuration (nx) of the vehicle at the origin, its arm at `REST`."""
    x = machine.neutral()
    for i, angle in enumerate(REST, start=1):
        x[machine.x_slice[f"joint{i}"]] = angle
    return x


def _thrusters() -> list[tuple[np.ndarray, np.ndarray]]:
    """Position and direction of every thruster on the hull."""
    places = []
    for x, y in ((0.156, -0.111), (0.156, 0.111), (-0.156, -0.111), (-0.156, 0.111)):
        # Bow or stern, and inwards: together they make surge, sway and yaw.
        direction = np.array([np.sign(x), -np.sign(y), 0.0])
        places.append((np.array([x, y, -0.085]), direction / np.sqrt(2)))
    for x, y in ((0.12, -0.218), (0.12, 0.218), (-0.12, -0.218), (-0.12, 0.218)):
        places.append((np.array([x, y, 0.0]), np.array([0.0, 0.0, 1.0])))
    return places


def _displaced(length: float) -> float:
    """Return the water (kg) that a link displaces."""
    return DENSITY * np.pi * RADIUS**2 * length


def _cylinder(length: float) -> Moments:
    mass = HEAVINESS * _displaced(length)
    across = mass * (3 * RADIUS**2 + length**2) / 12
    return Moments.of_body(
        mass, (length / 2, 0, 0), np.diag([mass * RADIUS**2 / 2, across, across])
    )


def _immersed(frame: str, length: float) -> Immersed:
    """Return what water does to a slender cylinder, about its middle."""
    water = _displaced(length)
    turning = water * length**2 / 12
    side = DENSITY * CROSS_FLOW * RADIUS * length
    turned = DENSITY * CROSS_FLOW * RADIUS * length**4 / 32
    end = DENSITY * 0.4 * np.pi * RADIUS**2
    return Immersed(
        frame,
        volume=water / DENSITY,
        added_mass=(0.1 * water, water, water, 0.0, turning, turning),
        quadratic_drag=(end, side, side, 0.0, turned, turned),
    )


def _lying(x: float) -> np.ndarray:
    """Return the pose that lays a cylinder along x, its middle at x."""
    G = _along(np.array([1.0, 0.0, 0.0]))
    G[0, 3] = x
    return G


def _along(direction: np.ndarray) -> np.ndarray:
    """Return a pose at the origin whose z axis has a direction."""
    helper = np.array([0.0, 1.0, 0.0])
    x = np.cross(helper, direction)
    x /= np.linalg.norm(x)
    G = np.eye(4)
    G[:3, :3] = np.column_stack([x, np.cross(direction, x), direction])
    return G
