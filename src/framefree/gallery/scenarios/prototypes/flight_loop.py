"""One flight, with all that disturbs it, as a closed loop that campaigns run in batches."""

import weakref
from collections.abc import Callable
from typing import Any

import numpy as np

from framefree.campaign import Simulations
from framefree.gallery.scenarios.prototypes.flights import PERIOD, Craft, errors
from framefree.simulate import Pulse, Run

ROWS = 20
"""Steps of 1 ms from one recorded row to the next."""


def flight_loop(craft: Craft, settings: Any, bars: tuple[float, float, float]) -> Simulations:
    """Return the flight with the observer, its rms errors (m, deg, deg) promised within the bars.

    On the body acts the share `bias` of the unknown wrench, as a push that can vary.
    """
    x, v, u = craft.start()
    names = ("rms_position_m", "rms_attitude_deg", "rms_heading_deg")
    shared = FlightErrors()
    kinds = ("position", "attitude", "heading")
    metrics = {str(name): shared.rms(kind) for name, kind in zip(names, kinds, strict=True)}
    metrics["largest_position_m"] = shared.largest("position")
    return Simulations(
        metrics,
        craft.machine,
        craft.law(settings.approach),
        craft.reference,
        x,
        v,
        options={
            "duration": settings.duration,
            "dt": PERIOD / 5,
            "control_dt": PERIOD,
            "every": ROWS,
            "lag": craft.drive,
            "delay": 1,
            "predict": settings.lead or craft.lead,
            "u0": u,
            "seed": settings.seed,
            "plant": settings.plant,
            "disturbances": (Pulse("body", settings.bias * np.asarray(craft.bias), axes="frame"),),
            "observer": craft.observer,
            "noise": craft.noise,
            "record": (),
        },
        promises=dict(zip(names, bars, strict=True)),
        name=settings.name,
    )


class FlightErrors:
    """Errors of every trajectory, which several metrics of one run share."""

    def __init__(self) -> None:
        self._run: Any = lambda: None
        self._errors: dict[str, np.ndarray] = {}

    def of(self, run: Run) -> dict[str, np.ndarray]:
        """Return position (m), attitude and heading (deg), each (batch, rows)."""
        if self._run() is not run:
            found = errors(run.x.reshape(-1, 7), run.reference["x"].reshape(-1, 7))
            rows = run.x.shape[:2]
            self._errors = {name: value.reshape(rows) for name, value in found.items()}
            self._run = weakref.ref(run)
        return self._errors

    def rms(self, which: str) -> Callable[[Run], np.ndarray]:
        """Return the metric of the rms of one error."""

        def rms(run: Run) -> np.ndarray:
            return np.sqrt((self.of(run)[which] ** 2).mean(axis=1))

        return rms

    def largest(self, which: str) -> Callable[[Run], np.ndarray]:
        """Return the metric of the largest value of one error."""

        def largest(run: Run) -> np.ndarray:
            return self.of(run)[which].max(axis=1)

        return largest
