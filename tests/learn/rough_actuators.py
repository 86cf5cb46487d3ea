"""Actuators as they are: they give too much or too little, nothing at all, late, and to others."""

from dataclasses import dataclass
from typing import Any

import casadi as ca
import numpy as np

from framefree.learn import ActuatorMap
from framefree.simulate.actuation import Drive

Matrix = Any


@dataclass(frozen=True, eq=False)
class RoughActuators(Drive):
    """Gains by direction, dead zones that are flat, lags, and couplings of what comes out.

    Parameters
    ----------
    forwards, backwards : (n,)
        Gains.
    dead_forwards, dead_backwards : (n,)
        Ends of the dead zones.
    coupling : (n, n)
    time_constants : (n,)
        s, positive.
    """

    forwards: Any
    backwards: Any
    dead_forwards: Any
    dead_backwards: Any
    coupling: Any
    time_constants: Any

    def start(self, u: np.ndarray) -> np.ndarray:
        """Return the outputs that have given u."""
        return np.linalg.solve(self.coupling, u)

    def rate(self, z: Matrix, command: Matrix) -> Matrix:
        """Return what every output is drawn to, by its time constant."""
        goal = []
        for i in range(len(self.forwards)):
            c, top, bottom = command[i], self.dead_forwards[i], self.dead_backwards[i]
            back = ca.if_else(c < -bottom, self.backwards[i] * (c + bottom), 0)
            goal.append(ca.if_else(c > top, self.forwards[i] * (c - top), back))
        return (ca.vertcat(*goal) - z) / ca.DM(self.time_constants)

    def u(self, z: Matrix, command: Matrix) -> Matrix:
        """Return the mixed outputs."""
        return ca.DM(self.coupling) @ z

    def as_map(self) -> ActuatorMap:
        """Return the same as a map that a law could know."""
        return ActuatorMap(
            self.forwards, self.backwards, self.dead_forwards, self.dead_backwards, self.coupling,
            self.time_constants,
        )  # fmt: skip
