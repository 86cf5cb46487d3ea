"""Machines that must be balanced with too few inputs: a pole on a cart, a ball on a plate."""

import numpy as np

from framefree.geometry import Moments
from framefree.machine import (
    Body,
    Frame,
    Joint,
    JointForce,
    Machine,
    Prismatic,
    Revolute,
    Shape,
    Universal,
)

_DARK, _STEEL, _BLUE = (0.2, 0.22, 0.26, 1.0), (0.55, 0.6, 0.68, 1.0), (0.2, 0.45, 0.75, 1.0)
_BRASS = (0.8, 0.62, 0.25, 1.0)


def cart_pole(
    cart: float = 1.0, pole: float = 0.2, length: float = 1.0, friction: float = 0.0
) -> Machine:
    """Return a uniform pole that stands on a cart; a motor pushes the cart along x.

    Parameters
    ----------
    cart, pole : float
        Masses, kg.
    length : float
        Of the pole, m.
    friction : float
        In the hinge, Nm s/rad.

    Notes
    -----
    Joint `hinge` is zero where the pole stands upright, and positive where it leans towards +x.
    """
    half = length / 2
    across = pole * length**2 / 12
    rod = Moments.of_body(pole, (0, 0, half), np.diag([across, across, 1e-3 * across]))
    return Machine(
        (
            Body("cart", Moments.of_body(cart, (0, 0, 0), 1e-3 * cart * np.eye(3))),
            Body("pole", rod),
        ),
        (
            Joint("slide", Prismatic("x"), "world", "cart"),
            Joint("hinge", Revolute("y"), "cart", "pole", damping=friction),
        ),
        (Frame("tip", "pole", (0, 0, length)),),
        actuators=(JointForce("motor", "slide", lower=-40.0, upper=40.0),),
        name="cart-pole",
        geometry=(
            Shape("world", "box", (6.0, 0.04, 0.02), (0, 0, -0.07), color=_DARK),
            Shape("cart", "box", (0.3, 0.16, 0.1), color=_BLUE),
            Shape("pole", "capsule", (0.02, length), (0, 0, half), color=_BRASS),
        ),
    )


def ball_on_plate(
    ball: float = 0.1, plate: float = 1.0, side: float = 0.5, radius: float = 0.02
) -> Machine:
    """Return a ball that rolls on a plate, which two motors tilt about its middle.

    Parameters
    ----------
    ball, plate : float
        Masses, kg.
    side : float
        Of the square plate, m.
    radius : float
        Of the ball, m.

    Notes
    -----
    The ball rolls without slip, so that its spin makes it 2/5 heavier along the plate
    (`armature` of the joints `x` and `y`); gyroscopic moments of the spin are left out.
    """
    moment = plate * side**2 / 12
    slab = Moments.of_body(plate, (0, 0, 0), np.diag([moment, moment, 2 * moment]))
    carrier = Moments.of_body(1e-3 * ball, (0, 0, radius), 1e-6 * np.eye(3) * ball)
    sphere = Moments.of_body(ball, (0, 0, radius), 0.4 * ball * radius**2 * np.eye(3))
    return Machine(
        (Body("plate", slab), Body("carrier", carrier), Body("ball", sphere)),
        (
            Joint("tilt", Universal("x", "y"), "world", "plate"),
            Joint("x", Prismatic("x"), "plate", "carrier", armature=0.4 * ball),
            Joint("y", Prismatic("y"), "carrier", "ball", armature=0.4 * ball),
        ),
        actuators=(
            JointForce("roll", "tilt", (1.0, 0.0), lower=-4.0, upper=4.0),
            JointForce("pitch", "tilt", (0.0, 1.0), lower=-4.0, upper=4.0),
        ),
        name="ball on a plate",
        geometry=(
            Shape("plate", "box", (side, side, 0.01), color=_STEEL),
            Shape("ball", "sphere", (radius,), (0, 0, radius), color=_BRASS),
        ),
    )
