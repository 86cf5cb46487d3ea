"""A quadcopter with a three-joint arm below it, and an object that it can take.

Its numbers are ours: a craft of 1.6 kg with four propellers of 10 N, an arm of 0.3 kg that reaches
40 cm, and a cube of 0.2 kg on a stand.
"""

import numpy as np

from framefree.geometry import Moments
from framefree.machine import (
    Body,
    Frame,
    Free,
    Gusts,
    Joint,
    JointForce,
    Machine,
    Propeller,
    Revolute,
    Shape,
    WindDrag,
)

MASS, INERTIA = 1.6, (0.022, 0.022, 0.036)
"""Of the craft without its arm: kg, kg m^2."""
ROTOR, THRUST, TORQUE_RATIO = 0.22, 10.0, 0.017
"""Distance of the propellers from the middle, m; largest thrust, N; torque by thrust, m."""
MOUNT = (0.0, 0.0, -0.05)
LINKS = (("x", 0.04, 0.08), ("y", 0.20, 0.12), ("y", 0.20, 0.10))
"""Axis, length (m) and mass (kg) of every link; all hang along -z at zero."""
ARMATURE = 5e-4
"""Inertia of the geared motors as seen at the joints, kg m^2."""
TORQUE = 3.0
"""Largest torque of a joint, Nm."""
REST = (0.0, 0.75, -1.5)
"""Angles at which the gripper is below the craft with its elbow bent, rad."""
HEIGHT = 0.8
"""At which the craft hovers, m."""
DRAG = (0.30, 0.30, 0.36)
"""Of the craft in the wind, N s/m."""
OBJECT, SIDE = 0.2, 0.05
"""Mass (kg) and side (m) of the cube."""


def aerial_arm(gusts: Gusts | None = None) -> Machine:
    """Return a quadcopter with a three-joint arm.

    Free joint `base` of the body `body`, arm joints `joint1` to `joint3`, frame `gripper`; inputs
    `propeller1` to `propeller4` and `motor1` to `motor3`.

    Parameters
    ----------
    gusts : Gusts, optional
        Wind that pushes the craft; without, the air does nothing.
    """
    bodies = [Body("body", Moments.of_body(MASS, (0, 0, 0), np.diag(INERTIA)))]
    joints = [Joint("base", Free(), "world", "body")]
    frames, shapes = [], [Shape("body", "box", (0.16, 0.16, 0.1), color=(0.25, 0.27, 0.32, 1.0))]
    propellers = []
    for k in range(4):
        angle = np.pi / 4 + k * np.pi / 2
        place = ROTOR * np.cos(angle), ROTOR * np.sin(angle), 0.05
        frames.append(Frame(f"rotor{k + 1}", "body", place))
        propellers.append(
            Propeller(f"propeller{k + 1}", f"rotor{k + 1}", torque_ratio=TORQUE_RATIO,
                      spin=(-1) ** k, lower=0.0, upper=THRUST)
        )  # fmt: skip
        shapes.append(Shape(f"rotor{k + 1}", "cylinder", (0.12, 0.01), color=(0.2, 0.4, 0.8, 0.6)))
    parent, place = "body", MOUNT
    for i, (axis, length, mass) in enumerate(LINKS, start=1):
        bodies.append(Body(f"link{i}", _rod(mass, length)))
        joints.append(
            Joint(f"joint{i}", Revolute(axis), parent, f"link{i}", parent_pose=place,
                  armature=ARMATURE)
        )  # fmt: skip
        shapes.append(Shape(f"link{i}", "cylinder", (0.015, length), _at(-length / 2),
                            color=(0.9, 0.6 if i % 2 else 0.75, 0.2, 1.0)))  # fmt: skip
        parent, place = f"link{i}", (0.0, 0.0, -length)
    frames.append(Frame("gripper", parent, place))
    shapes.append(Shape("gripper", "sphere", (0.022,), color=(0.8, 0.2, 0.2, 1.0)))
    wind = () if gusts is None else (WindDrag("wind", "world", "body", gusts, linear=DRAG),)
    return Machine(
        tuple(bodies),
        tuple(joints),
        tuple(frames),
        actuators=(
            *propellers,
            *(JointForce(f"motor{i}", f"joint{i}", lower=-TORQUE, upper=TORQUE)
              for i in range(1, len(LINKS) + 1)),
        ),
        interactions=wind,
        name="aerial_arm",
        geometry=tuple(shapes),
    )  # fmt: skip


def aerial_rest(machine: Machine, place: np.ndarray | None = None) -> np.ndarray:
    """Return the configuration (nx) of the craft at its height, its arm at `REST`.

    `place` is that of the object where there is one.
    """
    x = machine.neutral()
    x[machine.x_slice["base"]] = 0, 0, HEIGHT, 1, 0, 0, 0
    for i, angle in enumerate(REST, start=1):
        x[machine.x_slice[f"joint{i}"]] = angle
    if place is not None:
        x[machine.x_slice["object"]] = *place, 1, 0, 0, 0
    return x


def cube() -> Moments:
    """Return the moments of the object about its middle."""
    return Moments.of_body(OBJECT, (0, 0, 0), np.eye(3) * OBJECT * SIDE**2 / 6)


def holding(machine: Machine) -> Moments:
    """Return the moments of the last link with the object in its gripper."""
    tip = Moments.of_body(OBJECT, (0, 0, -LINKS[-1][1]), np.eye(3) * OBJECT * SIDE**2 / 6)
    return machine.body("link3").moments + tip


def _rod(mass: float, length: float) -> Moments:
    across = mass * length**2 / 12 + mass * 0.015**2 / 4
    inertia = np.diag([across, across, mass * 0.015**2 / 2])
    return Moments.of_body(mass, (0, 0, -length / 2), inertia)


def _at(z: float) -> np.ndarray:
    G = np.eye(4)
    G[2, 3] = z
    return G
