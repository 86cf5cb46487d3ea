"""The path of the crane, given in space for its tip."""

from typing import Any

import numpy as np

from framefree.control.references.joints import JointSpline
from framefree.gallery.machines.crane import crane_state
from framefree.gallery.scenarios.series_parallel.crane_parts import (
    Tracking,
    chosen,
    coordinates_at,
    tip_places,
)
from framefree.look.report import Figure
from framefree.machine import Machine
from framefree.motion.embedded import Embedded
from framefree.simulate.measures import rms
from framefree.solve import inverse_kinematics

KNOT = 0.2
"""Time between the points of the tip's path for which joints are found, s."""
OVER = 2.0
"""How long before and after the run they are found, too, s."""


class TipPath:
    """The same path, given as a curve of the tip, and the joints that follow from it."""

    def __init__(self, model: Machine, duration: float) -> None:
        self.model = Embedded(model)
        # A spline begins and ends at rest; the path does not, so knots go on before and after.
        times = np.arange(-OVER, duration + OVER + KNOT, KNOT)
        self.points = self.wanted(times)
        start, _ = crane_state(model, coordinates_at(0.0))
        postures = inverse_kinematics(model, {"tip": self.points}, start)
        self.reference = JointSpline(model, postures.x, times)
        fine = np.linspace(0.0, duration, 997)
        x = np.array([self.reference.function(t)[0].full().ravel() for t in fine])
        gap = tip_places(self.model, x[:, chosen(model)]) - self.wanted(fine)
        reached = bool(np.all(postures.reached))
        self.error = float(np.linalg.norm(gap, axis=1).max()) if reached else np.inf

    def wanted(self, t: np.ndarray) -> np.ndarray:
        """Return where the tip should be (rows, 3), m."""
        return tip_places(self.model, np.stack(coordinates_at(t), axis=-1))

    def _gap(self, tip: Tracking, form: Embedded) -> np.ndarray:
        """Distance (rows,) of the tip from where it should be."""
        here = tip_places(form, tip.run.x[:, chosen(form.machine)])
        return np.linalg.norm(here - self.wanted(tip.run.t), axis=1)

    def metrics(self, tip: Tracking, form: Embedded) -> dict[str, Any]:
        """Return errors of the tip in space."""
        gap = self._gap(tip, form)
        return {
            "tip_reference_error_m": self.error,
            "tip_rmse_m": rms(gap),
            "tip_error_late_max_m": float(gap[tip.run.t >= tip.run.t[-1] / 2].max()),
            **tip.rmse("tip_path_"),
        }

    def figure(self, tip: Tracking, form: Embedded) -> Figure:
        """Return the distance of the tip from its path over time."""
        return Figure.over_time(
            "Distance of the tip from its path in space", "distance (m)", tip.run.t,
            {"tip": self._gap(tip, form)}, logarithmic=True,
            caption="The path of the tip is given in space; inverse kinematics finds the joints "
            f"every {KNOT} s, a spline joins them.",
        )  # fmt: skip
