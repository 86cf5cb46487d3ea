"""A tricopter that carries a load on a rod: eight bodies, and the two that a law needs to know."""

from typing import Any

import numpy as np

from framefree.gallery.machines import multicopters
from framefree.geometry import Moments
from framefree.machine import (
    Body,
    Continuous,
    Frame,
    Free,
    Joint,
    JointForce,
    Machine,
    Revolute,
    Shape,
    Spherical,
    SpinningPropeller,
)

LOAD_MASS, ROD = 0.3, 0.5
"""kg and m, from the ball joint in the middle of the craft to the load."""
LOAD_INERTIA = 4e-4
"""kg m^2 about its own center."""
OSCILLATION = ROD + LOAD_INERTIA / (LOAD_MASS * ROD)
"""m from the ball joint to the center of oscillation, which is the flat point."""
ARM_MASS, PROPELLER_MASS = 0.06, 0.02
BRAKE, PUSH = -0.08, 0.144
"""Nm, of a motor at its largest currents, against and along its propeller's sense."""
SERVO = (1400.0, 66.0, 0.9)
"""Nm/rad, Nm s/rad and kg m^2 of a servo, seen through its gear."""


def load() -> tuple[Body, Joint, Shape, Shape]:
    """Return the load with its ball joint, and how it looks."""
    moments = Moments.of_body(LOAD_MASS, (0, 0, -ROD), LOAD_INERTIA * np.eye(3))
    middle = np.eye(4)
    middle[2, 3] = -ROD / 2
    end = np.eye(4)
    end[2, 3] = -ROD
    return (
        Body("load", moments),
        Joint("ball", Spherical(), "body", "load"),
        Shape("load", "cylinder", (0.004, ROD), middle),
        Shape("load", "sphere", (0.05,), end, color=(0.8, 0.5, 0.2, 1.0)),
    )


def tricopter_and_load() -> Machine:
    """Return the tricopter as one body with six inputs, and its load on a rod: the law's model."""
    weight = Frame("weight", "load", (0.0, 0.0, -OSCILLATION))
    craft = multicopters.tricopter(offset=False)
    return craft.attach(*load(), weight).replace(name="tricopter and load")


def quadcopter_and_load() -> Machine:
    """Return a quadcopter with a load on a rod below it: nine velocities, four inputs.

    The load's spin about its rod, `ball.wz` beside the craft's own, is reached by no input.
    """
    weight = Frame("weight", "load", (0.0, 0.0, -OSCILLATION))
    craft = multicopters.quadcopter(drag=False, offset=False)
    return craft.attach(*load(), weight).replace(name="quadcopter and load")


def tricopter_with_load() -> Machine:
    """Return the tricopter with three tilting arms, three propellers and its load on a rod.

    Arms are turned by geared position servos (`servo1` ..., the tilt in rad), propellers by motors
    (`motor1` ..., torque in Nm) against the air.
    """
    whole = multicopters.tricopter(offset=False)
    inertia = whole.bodies[0].moments
    bodies: list[Any] = []
    joints: list[Any] = [Joint("base", Free(), "world", "body")]
    frames: list[Any] = [Frame("weight", "load", (0.0, 0.0, -OSCILLATION))]
    actuators: list[Any] = []
    shapes: list[Any] = [Shape("body", "box", (0.1, 0.1, 0.05))]
    taken = Moments.zero()
    azimuths, spins = multicopters.TRICOPTER_AZIMUTHS, multicopters.TRICOPTER_SPINS
    for k, (angle, spin) in enumerate(zip(azimuths, spins, strict=True), start=1):
        place = _arm_pose(angle)
        arm = Moments.of_body(ARM_MASS, (-0.08, 0, 0), np.diag([2e-5, 1e-4, 1e-4]))
        turning = multicopters.ROTOR_INERTIA
        wheel = Moments.of_body(PROPELLER_MASS, (0, 0, 0), np.diag([0.6, 0.6, 1.0]) * turning)
        limits = spin * BRAKE, spin * PUSH
        taken = taken + (arm + wheel).moved(place)
        bodies += [Body(f"arm{k}", arm), Body(f"propeller{k}", wheel)]
        joints += [
            Joint(
                f"tilt{k}", Revolute("x"), "body", f"arm{k}", parent_pose=place, armature=SERVO[2]
            ),
            Joint(f"spin{k}", Continuous("z"), f"arm{k}", f"propeller{k}"),
        ]
        actuators += [
            JointForce(
                f"servo{k}", f"tilt{k}", gain=SERVO[0], bias_terms=(0.0, -SERVO[0], -SERVO[1])
            ),
            JointForce(f"motor{k}", f"spin{k}", lower=min(limits), upper=max(limits)),
            SpinningPropeller(
                f"air{k}",
                f"propeller{k}",
                f"spin{k}",
                thrust_coefficient=multicopters.THRUST_COEFFICIENT,
                torque_coefficient=multicopters.TORQUE_COEFFICIENT,
                spin=spin,
            ),
        ]
        shapes += [
            Shape(f"arm{k}", "box", (0.2, 0.02, 0.015), (-0.12, 0, 0)),
            Shape(f"propeller{k}", "box", (0.24, 0.02, 0.006), color=(0.2, 0.4, 0.8, 0.8)),
        ]
    carried, ball, *load_shapes = load()
    return Machine(
        (Body("body", inertia - taken), *bodies, carried),
        (*joints, ball),
        tuple(frames),
        dampers=whole.dampers,
        actuators=tuple(actuators),
        name="tricopter with load",
        geometry=(*shapes, *load_shapes),
    )


def _arm_pose(angle: float) -> np.ndarray:
    """Return the frame at the propeller, x outwards along the arm."""
    c, s = np.cos(angle), np.sin(angle)
    pose = np.eye(4)
    pose[:2, :2] = [[c, -s], [s, c]]
    pose[:3, 3] = multicopters.ARM * c, multicopters.ARM * s, multicopters.TRICOPTER_AXIS_HEIGHT
    return pose
