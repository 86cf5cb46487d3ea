"""Multicopters: a quadcopter, a tricopter with tilting arms, a bicopter, and one with a load.

Numbers of quadcopter and tricopter are those identified on the vehicles of [Konz2024, app.]; the
bicopter is the simulated one. The body frame has z up through the propeller plane.
"""

from typing import Any

import numpy as np

from framefree.geometry import Moments
from framefree.machine import (
    Body,
    Damper,
    Fluid,
    Frame,
    Free,
    Immersed,
    Joint,
    Machine,
    Propeller,
    Shape,
    TiltingPropeller,
)

THRUST_COEFFICIENT = 1.44e-5
"""N s^2/rad^2: thrust of a propeller by its speed squared."""
TORQUE_COEFFICIENT = 2.45e-7
"""Nm s^2/rad^2: drag torque of a propeller by its speed squared."""
TORQUE_RATIO = TORQUE_COEFFICIENT / THRUST_COEFFICIENT
ROTOR_INERTIA = 3.6e-5
"""kg m^2, of a propeller with its motor."""
ARM = 0.24
"""m, from the middle to a propeller."""

QUADCOPTER_AZIMUTHS = (0.0, np.pi / 2, np.pi, 3 * np.pi / 2)
QUADCOPTER_SPINS = (1, -1, 1, -1)
TRICOPTER_AZIMUTHS = (np.pi / 3, np.pi, 5 * np.pi / 3)
TRICOPTER_SPINS = (-1, 1, 1)
TRICOPTER_AXIS_HEIGHT = -6e-3
"""m, of the tilt axes over the body frame."""


def quadcopter(*, drag: bool = True, offset: bool = True) -> Machine:
    """Return a quadcopter: body `body`, propellers `propeller1` to `propeller4`.

    Parameters
    ----------
    drag : bool
        Whether there is the identified linear drag; its rotational part about x and y came out
        negative, and is kept so.
    offset : bool
        Whether the center of mass is off the middle and the inertia has products, as identified.
    """
    center, products = (
        ((-1.8e-3, 0.6e-3, 0.0), (-0.7e-3, 0.2e-3, 0.0)) if offset else ((0,) * 3,) * 2
    )
    moment = _inertia((17.9e-3, 18.0e-3, 30.7e-3), products)
    body = Body("body", Moments.of(1.001, center, moment))
    frames, actuators = [], []
    for k, (angle, spin) in enumerate(
        zip(QUADCOPTER_AZIMUTHS, QUADCOPTER_SPINS, strict=True), start=1
    ):
        frames.append(Frame(f"rotor{k}", "body", _place(angle, ARM, 0.0)))
        actuators.append(
            Propeller(
                f"propeller{k}",
                f"rotor{k}",
                torque_ratio=TORQUE_RATIO,
                spin=spin,
                lower=0.0,
                upper=8.0,
            )
        )
    damper = _drag((0.30, 0.30, 0.36), 12e-3, (-1.5e-3, -1.5e-3, 10e-3))
    return Machine(
        (body,),
        (Joint("base", Free(), "world", "body"),),
        tuple(frames),
        dampers=(damper,) if drag else (),
        actuators=tuple(actuators),
        name="quadcopter",
        geometry=_shapes(QUADCOPTER_AZIMUTHS, "rotor"),
    )


def tricopter(*, drag: bool = True, offset: bool = True) -> Machine:
    """Return a tricopter: propellers `propeller1` to `propeller3` on arms that tilt.

    Tilting is an input here, as of fast servos: each propeller takes the two components of its
    thrust. That makes six inputs, and every wrench on the body can be had.
    """
    center, products = (
        ((1.7e-3, 0.6e-3, 0.0), (-0.8e-3, -1.2e-3, -2.1e-3)) if offset else ((0,) * 3,) * 2
    )
    body = Body("body", Moments.of(1.251, center, _inertia((19.2e-3, 19.2e-3, 30.8e-3), products)))
    frames, actuators = [], []
    for k, (angle, spin) in enumerate(
        zip(TRICOPTER_AZIMUTHS, TRICOPTER_SPINS, strict=True), start=1
    ):
        frames.append(Frame(f"rotor{k}", "body", _place(angle, ARM, TRICOPTER_AXIS_HEIGHT)))
        actuators.append(
            TiltingPropeller(
                f"propeller{k}",
                f"rotor{k}",
                tilt_axis=(np.cos(angle), np.sin(angle), 0.0),
                torque_ratio=TORQUE_RATIO,
                spin=spin,
                force=(0.3, 7.0),
                tilt=(-np.pi / 4, np.pi / 4),
            )
        )
    damper = _drag((0.29, 0.29, 0.45), 4e-3, (8.5e-3, 8.5e-3, 14e-3))
    return Machine(
        (body,),
        (Joint("base", Free(), "world", "body"),),
        tuple(frames),
        dampers=(damper,) if drag else (),
        actuators=tuple(actuators),
        name="tricopter",
        geometry=_shapes(TRICOPTER_AZIMUTHS, "rotor"),
    )


def bicopter() -> Machine:
    """Return a bicopter: two tilting propellers at (0, +-0.24, 0.05) m, inclined by 20 degrees.

    Four inputs move six velocities. Thrusts are 2 to 14 N, tilts within 30 degrees; the convex set
    of inputs is a hexagon for each propeller.
    """
    body = Body("body", Moments.of_body(1.0, (0, 0, 0), np.diag([0.017, 0.010, 0.025])))
    frames, actuators, shapes = [], [], []
    sine, cosine = np.sin(np.deg2rad(20.0)), np.cos(np.deg2rad(20.0))
    for k, side in ((1, 1.0), (2, -1.0)):
        place = (0.0, side * ARM, 0.05)
        frames.append(Frame(f"rotor{k}", "body", place))
        actuators.append(
            TiltingPropeller(
                f"propeller{k}",
                f"rotor{k}",
                axis=(0.0, side * sine, cosine),
                tilt_axis=(0.0, cosine, -side * sine),
                force=(2.0, 14.0),
                tilt=(-np.pi / 6, np.pi / 6),
            )
        )
        shapes.append(Shape(f"rotor{k}", "cylinder", (0.12, 0.01), color=(0.2, 0.4, 0.8, 0.6)))
    shapes.append(Shape("body", "box", (0.08, 2 * ARM, 0.03)))
    return Machine(
        (body,),
        (Joint("base", Free(), "world", "body"),),
        tuple(frames),
        actuators=tuple(actuators),
        name="bicopter",
        geometry=tuple(shapes),
    )


def _inertia(diagonal: Any, products: Any) -> np.ndarray:
    """Return a symmetric matrix by its diagonal and its entries xy, xz, yz."""
    xy, xz, yz = products
    return np.diag(diagonal) + np.array([[0, xy, xz], [xy, 0, yz], [xz, yz, 0]])


def _place(angle: float, radius: float, height: float) -> tuple[float, float, float]:
    return radius * np.cos(angle), radius * np.sin(angle), height


def _drag(linear: Any, height: float, angular: Any) -> Damper:
    """Return linear drag by direction, centered at a height, and drag of turning."""
    c = np.array([[0, -height, 0], [height, 0, 0], [0, 0, 0.0]])
    D = np.diag(linear)
    matrix = np.block([[D, D @ c.T], [c @ D, c @ D @ c.T + np.diag(angular)]])
    return Damper("drag", "world", "body", matrix)


def _shapes(azimuths: Any, prefix: str) -> tuple[Shape, ...]:
    shapes = [Shape("body", "box", (0.1, 0.1, 0.05))]
    for k, angle in enumerate(azimuths, start=1):
        middle = np.eye(4)
        c, s = np.cos(angle), np.sin(angle)
        middle[:2, :2] = [[c, -s], [s, c]]
        middle[:3, 3] = _place(angle, ARM / 2, 0.0)
        shapes.append(Shape("body", "box", (ARM, 0.02, 0.015), middle))
        front = (0.8, 0.3, 0.2, 0.6) if k == 1 else (0.2, 0.4, 0.8, 0.6)
        shapes.append(Shape(f"{prefix}{k}", "cylinder", (0.12, 0.01), color=front))
    return tuple(shapes)


CRAZYFLIE_MASS = 0.033
CRAZYFLIE_ARM = 0.046
CRAZYFLIE_SPINS = (1, -1, 1, -1)
"""Of motors front right, back right, back left, front left; +1 is anticlockwise from above."""


def crazyflie() -> Machine:
    """Return a Crazyflie 2.1 with markers: 33 g, propellers on a cross of 92 mm, x forwards.

    Mass and inertia are nominal [Forster2015]; drag and the torque of propellers are to be found.
    """
    body = Body(
        "body", Moments.of_body(CRAZYFLIE_MASS, (0, 0, 0), np.diag([1.66, 1.66, 2.93]) * 1e-5)
    )
    frames, actuators = [], []
    for k, spin in enumerate(CRAZYFLIE_SPINS, start=1):
        angle = -np.pi / 4 - (k - 1) * np.pi / 2
        frames.append(Frame(f"rotor{k}", "body", _place(angle, CRAZYFLIE_ARM, 0.0)))
        actuators.append(
            Propeller(f"propeller{k}", f"rotor{k}", torque_ratio=0.006, spin=spin, upper=0.16)
        )
    return Machine(
        (body,),
        (Joint("base", Free(), "world", "body"),),
        tuple(frames),
        actuators=tuple(actuators),
        fluid=Fluid(
            (Immersed("body", linear_drag=(0.01, 0.01, 0.01, 0.0, 0.0, 0.0)),), density=0.0
        ),
        name="crazyflie",
    )
