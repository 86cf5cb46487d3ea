"""Joints moved one at a time, with all loops and couplings kept closed.

A joint is led to its new value in steps, from each of which the others follow by Newton's method
while it is held: so the machine stays on its branch, and the loops are closed to 1e-12 or so. Where
it cannot follow any further, or another joint would leave its limits, it stays at the last closed
configuration.
"""

import numpy as np

from framefree.errors import FramefreeError
from framefree.machine import Machine
from framefree.motion.constrained import Constrained

STEP = 0.05
"""How far (rad, m) a joint is led at once."""


class ClosedJoints:
    """A configuration of a machine whose coordinates are set one by one.

    Parameters
    ----------
    machine : Machine
        In numbers.
    x : (nx,)
        Closed at first.
    """

    def __init__(self, machine: Machine, x: np.ndarray) -> None:
        self.machine, self.x = machine, np.array(x, float)
        self.gap = 0.0
        """Largest error of loops and couplings, m or rad."""
        self._equations = Constrained(machine) if machine.closed else None

    def set(self, index: int, value: float) -> np.ndarray:
        """Lead coordinate `index` of x to a value, as far as the loops let it; return x."""
        if self._equations is None:
            self.x[index] = value
            self.x = self.machine.normalise(self.x)
            return self.x
        name = self.machine.x_names[index]
        start, limited = self.x[index], self._within_limits()
        for share in np.linspace(0, 1, max(int(np.ceil(abs(value - start) / STEP)), 1) + 1)[1:]:
            wanted = self.x.copy()
            wanted[index] = start + share * (value - start)
            try:
                near = self._equations.project(
                    wanted, hold=(self._held(name),), limits=False, tries=0
                )
                if limited:
                    self.machine.validate(near.x, limits=True)
            except FramefreeError:
                break
            self.x, self.gap = near.x, near.position_error
        return self.x

    def _within_limits(self) -> bool:
        try:
            self.machine.validate(self.x, limits=True)
        except FramefreeError:
            return False
        return True

    def _held(self, x_name: str) -> str:
        """Return the velocity that moves a coordinate, or its joint."""
        if x_name in self.machine.v_names:
            return x_name
        return next(j.name for j in self.machine.joints if x_name in j.x_names)
