"""The groups of minimal coordinates, as integrators need them."""

from typing import TYPE_CHECKING, Any

import casadi as ca
import numpy as np

from framefree.machine import Machine
from framefree.motion.groups import JointGroup

if TYPE_CHECKING:
    from framefree.motion.embedded.maps import Expression, Map

Matrix = Any


class MinimalGroup:
    """Coordinates of an `Expression`: plain numbers, or what couplings leave of the joints."""

    def __init__(self, map: "Expression") -> None:
        self.map, self._joints = map, JointGroup(map.machine)
        names = map.machine.x_names
        kept = map.independent is not None
        self._kept_x = [names.index(name) for name in map.x_names] if kept else []

    def velocity(self, x: Matrix, v: Matrix) -> Matrix:
        """Return v itself."""
        return v

    def integrate(self, x: Matrix, dv: Matrix) -> Matrix:
        """Move x by dv."""
        return self.map.integrate(x, dv)

    def bracket(self, a: Matrix, b: Matrix) -> Matrix:
        """Bracket of the joints that are left."""
        if self.map.independent is None:
            return ca.SX(*a.shape)
        kept = list(self.map.independent)
        zero = np.zeros(self.map.machine.nv)
        return self._joints.bracket(_placed(zero, kept, a), _placed(zero, kept, b))[kept]

    def normalise(self, x: Matrix) -> Matrix:
        """Bring quaternions and (cos, sin) pairs to unit length."""
        if self.map.independent is None:
            return x
        whole = _placed(self.map.machine.neutral(), self._kept_x, x)
        return self._joints.normalise(whole)[self._kept_x]


class ClosedGroup(JointGroup):
    """The tree's configurations, moved by the independent velocities: x moves at E(x) v."""

    def __init__(self, map: "Map", machine: Machine) -> None:
        super().__init__(machine)
        self.map = map

    def velocity(self, x: Matrix, v: Matrix) -> Matrix:
        """Return the velocities of all joints."""
        return self.map.at(x, ca.SX(self.map.nv, 1)).E @ v


def _placed(whole: np.ndarray, places: list[int], values: Matrix) -> Matrix:
    result = ca.SX(ca.DM(whole))
    result[places] = values
    return result
