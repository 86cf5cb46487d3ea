"""Limits of joint coordinates, where closed configurations are sought."""

from collections.abc import Iterator, Sequence

import numpy as np

from framefree.machine import Machine, Revolute
from framefree.motion.constrained.scales import velocity_units

WITHIN = 1e-6
"""How far (rad, or shares of the machine's longest link) a coordinate may be beyond a limit."""


class CoordinateLimits:
    """Limits of those coordinates of a machine that are plain numbers and may move.

    Parameters
    ----------
    machine : Machine
    moving : sequence of int
        Velocities that may move.
    """

    def __init__(self, machine: Machine, moving: Sequence[int]) -> None:
        self.machine = machine
        self.lower, self.upper = np.full(machine.nx, -np.inf), np.full(machine.nx, np.inf)
        self._slack, self._turning = np.zeros(machine.nx), np.zeros(machine.nx, dtype=bool)
        units = velocity_units(machine)
        self._moving = np.where(np.isin(np.arange(machine.nv), moving), units, 0.0)
        for joint in machine.numeric.joints:
            x, v = machine.x_slice[joint.name], machine.v_slice[joint.name]
            if joint.kind.vector:
                free = np.isin(np.arange(v.start, v.stop), moving)
                self.lower[x] = np.where(free, joint.lower, -np.inf)
                self.upper[x] = np.where(free, joint.upper, np.inf)
                self._slack[x] = WITHIN * units[v]
                self._turning[x] = isinstance(joint.kind, Revolute)

    def beyond(self, x: np.ndarray) -> dict[str, float]:
        """Return the names of coordinates beyond their limits, and how far they are beyond."""
        gap = np.maximum(self.lower - x, x - self.upper)
        outside = np.flatnonzero(gap > self._slack)
        return {self.machine.x_names[k]: float(gap[k]) for k in outside}

    def clipped(self, x: np.ndarray) -> np.ndarray:
        """Return x with every coordinate at the nearest value within its limits."""
        return np.clip(x, self.lower, self.upper)

    def unwound(self, x: np.ndarray) -> np.ndarray:
        """Return x with angles beyond their limits moved by whole turns towards these."""
        gap = np.where(x < self.lower, self.lower - x, np.where(x > self.upper, self.upper - x, 0))
        turns = np.sign(gap) * np.ceil(np.abs(gap) / (2 * np.pi) - 1e-9)
        return x + np.where(self._turning, 2 * np.pi * turns, 0.0)

    def starts(self, x: np.ndarray, rng: "np.random.Generator", count: int) -> Iterator[np.ndarray]:
        """Give configurations from which others may be reached: limited coordinates elsewhere.

        First at the nearest, middle, and one and three quarters of their ranges; then anywhere in
        them, and what has no limits moved ever farther, up to half a turn or so.
        """
        bounded = np.isfinite(self.lower) & np.isfinite(self.upper)
        low, high = (np.where(bounded, side, 0.0) for side in (self.lower, self.upper))
        yield self.clipped(x)
        for share in (0.5, 0.25, 0.75):
            yield self.clipped(np.where(bounded, low + share * (high - low), x))
        for attempt in range(1, count + 1):
            step = 2.0 * attempt / count * self._moving * rng.normal(size=len(self._moving))
            strayed = self.machine.integrate(x, step)
            anywhere = low + rng.uniform(size=len(low)) * (high - low)
            yield self.clipped(np.where(bounded, anywhere, strayed))
