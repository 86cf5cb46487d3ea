"""Small machines for laws that can be followed by hand: wheels, sliders, bodies in a plane."""

import numpy as np

from framefree.geometry import Moments
from framefree.machine import (
    Body,
    Frame,
    Joint,
    JointForce,
    Machine,
    Planar,
    Prismatic,
    Propeller,
    Revolute,
    Shape,
    Spherical,
    Spring,
    Wrench,
)

UPRIGHT = np.array([[0, 0, 1, 0], [1, 0, 0, 0], [0, 1, 0, 0], [0, 0, 0, 1.0]])
"""Pose of a vertical plane: its x and y along the world's y and z, its normal along x."""


def wheel(inertia: float = 0.2) -> Machine:
    """Return a body that a motor turns about the vertical.

    Parameters
    ----------
    inertia : float
        About the axis, kg m^2.
    """
    moments = Moments.of_body(1.0, (0, 0, 0), np.diag([0.6, 0.6, 1.0]) * inertia)
    return Machine(
        (Body("wheel", moments),),
        (Joint("turn", Revolute("z"), "world", "wheel"),),
        (Frame("rim", "wheel", (0.5, 0, 0)),),
        actuators=(JointForce("motor", "turn"),),
        name="wheel",
        geometry=(Shape("wheel", "box", (1.0, 0.05, 0.05)),),
    )


def slider(mass: float = 0.5) -> Machine:
    """Return a body that a motor moves along x.

    Parameters
    ----------
    mass : float
        kg.
    """
    return Machine(
        (Body("slider", Moments.of_body(mass, (0, 0, 0), np.eye(3) * 1e-3 * mass)),),
        (Joint("slide", Prismatic("x"), "world", "slider"),),
        actuators=(JointForce("motor", "slide"),),
        name="slider",
        geometry=(Shape("slider", "box", (0.2, 0.1, 0.1)),),
    )


def tumbler() -> Machine:
    """Return a body that turns about its center of mass, with three torques on it."""
    columns = np.vstack([np.zeros((3, 3)), np.eye(3)])
    return Machine(
        (Body("body", Moments.of_body(2.0, (0, 0, 0), np.diag([0.02, 0.035, 0.05]))),),
        (Joint("ball", Spherical(), "world", "body"),),
        (Frame("tip", "body", (0.3, 0, 0)),),
        actuators=(Wrench("torque", "body", columns),),
        name="tumbler",
        geometry=(Shape("body", "box", (0.5, 0.3, 0.15)),),
    )


def planar_body(mass: float = 1.0, inertia: float = 0.3) -> Machine:
    """Return a body that slides and turns in a horizontal plane, with two forces and a torque."""
    columns = np.zeros((6, 3))
    columns[[0, 1, 5], [0, 1, 2]] = 1.0
    return Machine(
        (Body("body", Moments.of_body(mass, (0, 0, 0), np.diag([0.6, 0.6, 1.0]) * inertia)),),
        (Joint("plane", Planar("z"), "world", "body"),),
        actuators=(Wrench("push", "body", columns),),
        name="planar body",
        geometry=(Shape("body", "box", (0.5, 0.3, 0.1)),),
    )


def pvtol(
    mass: float = 1.0, inertia: float = 0.017, arm: float = 0.24, inclination: float = 20.0
) -> Machine:
    """Return a craft in a vertical plane with two propellers, inclined outwards.

    Parameters
    ----------
    mass, inertia : float
        kg and kg m^2 about the normal of the plane.
    arm : float
        From the center to each propeller, m.
    inclination : float
        Degrees.

    Notes
    -----
    Joint `plane`: across (the world's y), up (z), and the tilt about the world's x. The body's own
    x is across and y up.
    """
    sine, cosine = np.sin(np.deg2rad(inclination)), np.cos(np.deg2rad(inclination))
    places = {"right": arm, "left": -arm}
    return Machine(
        (Body("body", Moments.of_body(mass, (0, 0, 0), np.diag([0.6, 0.6, 1.0]) * inertia)),),
        (Joint("plane", Planar("z"), "world", "body", parent_pose=UPRIGHT),),
        tuple(Frame(f"{side}_rotor", "body", (x, 0, 0)) for side, x in places.items()),
        actuators=tuple(
            Propeller(side, f"{side}_rotor", (np.sign(x) * sine, cosine, 0), upper=20.0)
            for side, x in places.items()
        ),
        name="pvtol",
        geometry=(Shape("body", "box", (2 * arm, 0.04, 0.1)),),
    )


def two_masses(first: float = 1.0, second: float = 0.5, stiffness: float = 20.0) -> Machine:
    """Return two bodies on a rail with a spring between them; a motor drives the first.

    Parameters
    ----------
    first, second : float
        Masses, kg.
    stiffness : float
        Of the spring, N/m.
    """
    gap = (0.5, 0.0, 0.0)
    small = np.eye(3) * 1e-3
    return Machine(
        (
            Body("first", Moments.of_body(first, (0, 0, 0), first * small)),
            Body("second", Moments.of_body(second, (0, 0, 0), second * small)),
        ),
        (
            Joint("slide1", Prismatic("x"), "world", "first"),
            Joint("slide2", Prismatic("x"), "world", "second", parent_pose=gap),
        ),
        springs=(
            Spring(
                "between", "first", "second", Moments(stiffness, np.zeros(3), np.eye(3) * 0), gap
            ),
        ),
        actuators=(JointForce("motor", "slide1"),),
        name="two masses",
        geometry=(
            Shape("first", "box", (0.15, 0.15, 0.15)),
            Shape("second", "box", (0.12, 0.12, 0.12)),
        ),
    )
