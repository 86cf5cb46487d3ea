"""The task of the crane: to follow its path from a start, pushed, on one of two plants."""

from dataclasses import dataclass, replace
from itertools import product
from typing import Any

import numpy as np

from framefree.control.robust import RobustControl
from framefree.gallery.machines.crane import STROKE
from framefree.gallery.scenarios.series_parallel.crane_parts import (
    GAINS,
    LARGE_GAINS,
    PATH,
    PUSH,
    STARTS,
    Tracking,
    first_state,
)
from framefree.motion.embedded import Embedded
from framefree.simulate import Pulse, simulate

SPEEDS, ACCELERATIONS = (1.0, 0.6, 0.15), (1.5, 1.5, 0.4)
"""Within which (rad, m, s) the uncertainty is stated before a run."""
GRID = 9


@dataclass(frozen=True)
class CraneTask:
    """The crane on its path from a start, pushed at the tip between 10 s and 11 s.

    Attributes
    ----------
    form : Embedded
        Closed form of the plant.
    start : str
        One of `STARTS`.
    duration, dt : float
        s.
    push_n : float
        N.
    plant : "native" or "mujoco"
    progress : bool or None
    """

    form: Embedded
    start: str
    duration: float
    dt: float
    push_n: float
    plant: str
    progress: bool | None

    @property
    def gains(self) -> dict[str, Any]:
        """Our gains for this start."""
        return LARGE_GAINS if self.start == "large" else GAINS

    @property
    def push(self) -> np.ndarray:
        """Wrench (6) on the tip, in its axes."""
        return np.array(PUSH) * self.push_n / 25.0

    def on(self, plant: str) -> "CraneTask":
        """Return the same task on another plant."""
        return replace(self, plant=plant)

    def track(self, law: RobustControl, reference: Any, stated: Any = None) -> Tracking:
        """Simulate a law, and assess it; `stated` is the uncertainty that was stated before."""
        machine = self.form.machine
        x0, v0 = first_state(machine, self.start)
        run = simulate(
            machine, law, reference, x0, v0, duration=self.duration, dt=self.dt,
            every=max(1, round(1e-3 / self.dt)), formulation=self.form, plant=self.plant,
            disturbances=(Pulse("tip", self.push, 10.0, 1.0, axes="frame"),),
            record=("energy",), progress=self.progress,
        )  # fmt: skip
        pushed = (run.t >= 10.0 - 1e-9) & (run.t < 11.0 - 1e-9)
        return Tracking.of(run, law, self.form, pushed[:, None] * self.push, stated=stated)

    def stated_uncertainty(self, model: Embedded) -> np.ndarray:
        """Return bounds (3,) on the uncertainty, Nm and N, from what is known before any run.

        The model lacks cylinder and piston and knows no push: with D the difference of plant and
        model, |d| <= |D Gamma| |a| + |D h| + |D gravity| + |J^T push|, the largest over the boom's
        angles on the path and off it by the first error, all strokes, and `SPEEDS` and
        `ACCELERATIONS`.
        """
        middle, size, _ = PATH[1]
        low, high = sorted((middle, middle + STARTS[self.start].error[1]))
        angles = np.linspace(low - size, high + size, GRID)
        q = np.array([(0.0, *pair) for pair in product(angles, np.linspace(0.0, STROKE, GRID))])

        def difference(name: str, *inputs: np.ndarray) -> np.ndarray:
            both = (np.asarray(form.kernel(name)(*inputs)) for form in (self.form, model))
            plant, known = both
            return plant - known

        J = np.asarray(self.form.kernel("jacobian:tip")(q))
        total = np.abs(np.einsum("nij,i->nj", J, self.push))
        total += np.abs(difference("mass", q)) @ ACCELERATIONS
        # Weight and velocity terms together; h is even in v, so one sign can be kept.
        signs = [np.array([1.0, *rest]) for rest in product((1.0, -1.0), repeat=2)]
        biases = [difference("bias", q, np.tile(sign * SPEEDS, (len(q), 1))) for sign in signs]
        biases.append(difference("gravity", q))
        return (total + np.abs(biases).max(axis=0)).max(axis=0)
