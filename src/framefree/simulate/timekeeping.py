"""Keeping simulated time in step with the clock, and how well that went."""

from collections import deque
from time import perf_counter

import numpy as np

BEHIND = 0.25
"""Wall time by which a loop may be behind before it gives up catching up, s."""
KEPT = 4096
"""Turns whose lateness is remembered."""


class Pace:
    """How far simulated time should be by now, at `speed` times the clock."""

    def __init__(self) -> None:
        self.speed = 1.0
        self.slipped = 0.0
        """Wall time that was given up because the machine was too slow, s."""
        self._late: deque[float] = deque(maxlen=KEPT)
        self.restart(0.0)

    def restart(self, time: float, speed: float | None = None) -> None:
        """Begin to count from a simulated time, now."""
        self.speed = self.speed if speed is None else float(speed)
        self._wall, self._time = perf_counter(), time
        self._first = self._wall, time

    def due(self, time: float, length: float) -> int:
        """Return how many steps of this length (s, simulated) are due at a simulated time.

        What is more than `BEHIND` late is given up.
        """
        behind = self._behind(time)
        if behind > BEHIND:
            self.slipped += behind
            self._wall += behind
            behind = 0.0
        return max(int(behind * self.speed / length), 0)

    def until_due(self, time: float, length: float) -> float:
        """Return the wall time after which a step of this length will be due, s; 0 if one is."""
        return max(length / self.speed - self._behind(time), 0.0)

    def _behind(self, time: float) -> float:
        """Return by how much wall time (s) a simulated time is late."""
        return (perf_counter() - self._wall) - (time - self._time) / self.speed

    def woke(self, late: float) -> None:
        """Take note of by how much (s) a turn began later than it should have."""
        self._late.append(late)

    def report(self, time: float) -> dict[str, float]:
        """Return the factor of real time since the last start, and the jitter of the turns, s."""
        wall, first = perf_counter() - self._first[0], self._first[1]
        late = np.array(self._late) if self._late else np.zeros(1)
        return {
            "real_time_factor": (time - first) / max(wall * self.speed, 1e-9),
            "slipped_s": self.slipped,
            "jitter_p50_ms": 1e3 * float(np.quantile(late, 0.5)),
            "jitter_p95_ms": 1e3 * float(np.quantile(late, 0.95)),
            "jitter_max_ms": 1e3 * float(late.max()),
        }
