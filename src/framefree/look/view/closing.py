"""Joints moved one at a time, with all loops and couplings kept closed.

A joint is led to its new value in steps, from each of which the others follow by Newton's method
while it is held: so the machine stays on its branch, and the loops are closed to 1e-12 or so. Where
it cannot follow any further, or another joint would leave its limits, it stays at the last closed
configuration.
"""

import numpy as np

from framefree.errors import FramefreeError
from framefree.machine import Machine
from framefree.machine.joint import Joint
from framefree.motion.constrained import Constrained

STEP = 0.05
"""How far (rad, m) a joint is led at once."""


class ClosedJoints:
    """A configuration of a machine whose joints are moved one by one.

    Parameters
    ----------
    machine : Machine
        In numbers.
    x : (nx,)
        Closed at first.
    """

    def __init__(self, machine: Machine, x: np.ndarray) -> None:
        self.machine, self.x = machine, np.array(x, float)
        self._equations = Constrained(machine) if machine.closed else None
        self._start = self.x, self._gap_at(self.x)
        self.gap = self._start[1]
        """Largest error of loops and couplings, m or rad."""

    def back(self) -> None:
        """Go back to the first configuration."""
        self.x, self.gap = self._start

    def set(self, index: int, value: float) -> np.ndarray:
        """Lead coordinate `index` of x, a plain number, to a value; return x: see `lead`."""
        target = self.x.copy()
        target[index] = value
        name = self.machine.x_names[index]
        joint = next(joint for joint in self.machine.joints if name in joint.x_names)
        held = name if name in self.machine.v_names else joint.name
        return self.lead(joint, target[self.machine.x_slice[joint.name]], held)

    def lead(self, joint: Joint, coordinates: np.ndarray, held: str = "") -> np.ndarray:
        """Lead a joint to its new part of x, as far as the loops let it; return x.

        The joint is held as it goes, or only its velocity `held`.
        """
        part = self.machine.x_slice[joint.name]
        goal = self.x.copy()
        goal[part] = coordinates
        goal = self.machine.normalise(goal)
        if self._equations is None:
            self.x = goal
            return self.x
        start, limited = self.x, self._within_limits()
        way = np.asarray(self.machine.difference(start, goal))
        steps = max(int(np.ceil(np.linalg.norm(way) / STEP)), 1)
        for share in np.linspace(0, 1, steps + 1)[1:]:
            wanted = self.x.copy()
            wanted[part] = self.machine.integrate(start, share * way)[part]
            try:
                near = self._equations.project(
                    wanted, hold=(held or joint.name,), limits=False, tries=0
                )
                if limited:
                    self.machine.validate(near.x, limits=True)
            except FramefreeError:
                break
            self.x, self.gap = near.x, near.position_error
        return self.x

    def _gap_at(self, x: np.ndarray) -> float:
        """Return by how much loops and couplings are open."""
        if self._equations is None:
            return 0.0
        return self._equations.project(x, limits=False, tries=0).position_error

    def _within_limits(self) -> bool:
        try:
            self.machine.validate(self.x, limits=True)
        except FramefreeError:
            return False
        return True
