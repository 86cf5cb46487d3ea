"""A body that somebody has in hand: pulled by a spring and a damper at a point of it.

With the point p of body i, in the world, and the place g where the hand is,

    f = k (g - p) - d dp/dt

acts at p. Which body it is, where, how stiff: all of these are live numbers.
"""

from dataclasses import dataclass
from typing import Any

import casadi as ca

from framefree.geometry import se3
from framefree.machine.parameters import Parameters
from framefree.motion import State
from framefree.motion.load import Load
from framefree.simulate.disturbances import Disturbance, Moment

Matrix = Any

NOTHING = -1.0
"""Index of the body where nothing is held."""
NAMES = (
    "grab.body",
    *(f"grab.point.{axis}" for axis in "xyz"),
    *(f"grab.place.{axis}" for axis in "xyz"),
    "grab.stiffness",
    "grab.damping",
)


def grab_numbers() -> Parameters:
    """Return the live numbers of a hand: body, point (in its axes), place, stiffness, damping."""
    symbols = ca.vertcat(*(ca.SX.sym(name) for name in NAMES))
    return Parameters(NAMES, symbols, (NOTHING, *(0.0,) * (len(NAMES) - 1)))


@dataclass(frozen=True)
class Grab(Disturbance):
    """The pull of a hand; see the top of this file.

    Parameters
    ----------
    target : str
        What it is called; the body is a live number.
    hand : Parameters
        Of `grab_numbers`.
    """

    hand: Parameters

    def value(self, moment: Moment) -> Matrix:
        """Return all numbers; what is felt follows from the state as well."""
        return self.hand.symbols

    def add(self, load: Load, state: State, moment: Moment) -> None:
        """Add the pull to the load of the body that is held."""
        symbols = self.hand.symbols
        index, point, place = symbols[0], symbols[1:4], symbols[4:7]
        stiffness, damping = symbols[7], symbols[8]
        for i, (pose, twist) in enumerate(zip(state.poses, state.twists, strict=True)):
            R = se3.rotation(pose)
            rate = twist[:3] + ca.cross(twist[3:], point)
            offset = R.T @ (place - se3.position(pose)) - point
            f = (index == i) * (stiffness * offset - damping * rate)
            load.on_body(i, ca.vertcat(f, ca.cross(point, f)))
