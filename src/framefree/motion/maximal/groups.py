"""The group of bodies that move freely, as integrators need it."""

from typing import Any

import casadi as ca

from framefree.geometry import se3
from framefree.machine import Free
from framefree.motion.maximal.kinematics import Kinematics, MaximalModel

Matrix = Any


class BodyGroup:
    """N bodies that move freely, each with position and quaternion: the maximal formulation.

    The joint coordinates that x keeps beside them are plain numbers.
    """

    def __init__(self, model: MaximalModel) -> None:
        self.model, self.bodies = model, len(model.links)
        self._kind = Free()

    def velocity(self, x: Matrix, v: Matrix) -> Matrix:
        """Return v, and the rates of the joint coordinates that x keeps."""
        return ca.vertcat(v, Kinematics(self.model, x, v).kept_rates)

    def integrate(self, x: Matrix, dv: Matrix) -> Matrix:
        """Move every body by its part of dv, and add the rest to the coordinates that x keeps."""
        kept = x[7 * self.bodies :] + dv[6 * self.bodies :]
        return self._each(lambda i: self._kind.integrate(_part(x, i, 7), _part(dv, i, 6)), kept)

    def normalise(self, x: Matrix) -> Matrix:
        """Bring every quaternion to unit length, also those among coordinates that x keeps."""
        kept = [
            self.model.links[i].kind.normalise(x[place])
            if place.stop - place.start == self.model.links[i].kind.nx
            else x[place]
            for i, place in self.model.kept.items()
        ]
        return self._each(
            lambda i: self._kind.normalise(_part(x, i, 7)), ca.vertcat(ca.SX(0, 1), *kept)
        )

    def bracket(self, a: Matrix, b: Matrix) -> Matrix:
        """Bracket of body twists; zero for plain numbers."""
        kept = ca.SX(a.shape[0] - 6 * self.bodies, 1)
        return self._each(lambda i: se3.little_adjoint(_part(a, i, 6)) @ _part(b, i, 6), kept)

    def _each(self, part: Any, kept: Matrix) -> Matrix:
        return ca.vertcat(ca.SX(0, 1), *(part(i) for i in range(self.bodies)), kept)


def _part(values: Matrix, i: int, size: int) -> Matrix:
    return values[size * i : size * (i + 1)]
