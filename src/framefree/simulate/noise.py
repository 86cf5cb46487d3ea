"""Measurement noise: white, by a seed, the same whatever is computed together with it."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from framefree.machine import Machine
from framefree.simulate.columns import state_channels
from framefree.simulate.errors import SimulationError

BLOCK = 256
"""Control periods whose noise is drawn together."""


@dataclass(frozen=True)
class Noise:
    """White noise of what a law measures, one standard deviation each.

    The law sees integrate(x, noise_x) and v + noise_v, new in every control period.

    Parameters
    ----------
    x, v : number or (nv,)
        Of the configuration (m, rad, along the velocities) and of the velocity (m/s, rad/s).
    """

    x: Any = 0.0
    v: Any = 0.0

    def __post_init__(self) -> None:
        for name in ("x", "v"):
            value = np.asarray(getattr(self, name), float)
            if value.ndim > 1 or not (np.isfinite(value).all() and (value >= 0).all()):
                raise SimulationError(
                    f"the noise of `{name}` must be finite and not negative, got {value.tolist()}"
                )
            object.__setattr__(self, name, value)

    @classmethod
    def by_unit(
        cls,
        machine: Machine,
        *,
        position: float = 0.0,
        angle: float = 0.0,
        velocity: float = 0.0,
        rate: float = 0.0,
    ) -> "Noise":
        """Return the same noise for all lengths (m), angles (rad), and their rates."""
        units = state_channels(machine)[1].units
        along = np.array([unit == "m/s" for unit in units], dtype=bool)
        return cls(np.where(along, position, angle), np.where(along, velocity, rate))

    def scale(self, machine: Machine) -> np.ndarray:
        """Return the deviations of all entries (2 nv): of x, then of v."""
        parts = []
        for name in ("x", "v"):
            value = getattr(self, name)
            if value.size not in (1, machine.nv):
                raise SimulationError(
                    f"the noise of `{name}` must be one number or {machine.nv}, got {value.size}"
                )
            parts.append(np.broadcast_to(value, machine.nv))
        return np.concatenate(parts)


class NoiseSource:
    """Noise for any control period of any trajectory, in any order.

    Every block of periods has a generator of its own, seeded by (seed, trajectory, block), so that
    neither the size of a batch nor the way a run is cut changes a number. With one seed for each
    trajectory, each has the noise of a run alone with that seed.
    """

    def __init__(self, scale: np.ndarray, seed: int | tuple[int, ...], batch: int | None) -> None:
        self.scale, self.seed, self.batch = scale, seed, batch
        self._drawn: dict[int, np.ndarray] = {}
        self._latest: tuple[int, np.ndarray] | None = None

    def periods(self, first: int, count: int) -> np.ndarray:
        """Return the noise of `count` periods from `first` on: ([batch,] count, 2 nv)."""
        if self._latest is not None:
            # A roll-out and what is observed of it ask for the same periods.
            begin, drawn = self._latest
            if begin <= first and first + count <= begin + drawn.shape[-2]:
                return drawn[..., first - begin : first - begin + count, :]
        blocks = range(first // BLOCK, -(-(first + count) // BLOCK))
        whole = np.concatenate([self._block(block) for block in blocks], axis=-2)
        start = first - blocks.start * BLOCK
        self._latest = first, np.ascontiguousarray(whole[..., start : start + count, :])
        return self._latest[1]

    def _block(self, block: int) -> np.ndarray:
        if block not in self._drawn:
            if len(self._drawn) > 1:
                del self._drawn[min(self._drawn)]
            rows = range(1 if self.batch is None else self.batch)
            drawn = np.stack([self._of(row, block) for row in rows])
            self._drawn[block] = drawn[0] if self.batch is None else drawn
        return self._drawn[block]

    def _of(self, trajectory: int, block: int) -> np.ndarray:
        seed, row = self.seed, trajectory
        if isinstance(seed, tuple):
            seed, row = seed[trajectory], 0
        generator = np.random.default_rng([seed, row, block])
        return generator.standard_normal((BLOCK, len(self.scale))) * self.scale
