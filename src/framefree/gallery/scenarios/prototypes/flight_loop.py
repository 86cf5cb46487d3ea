"""One flight, with all that disturbs it, as a closed loop that campaigns run in batches."""

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
    metrics = dict(zip(names, map(_rms, ("position", "attitude", "heading")), strict=True))
    metrics["largest_position_m"] = _largest
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


def _errors(run: Run, which: str) -> np.ndarray:
    """Return one error of every trajectory, (batch, rows)."""
    rows = run.x.shape[:2]
    flat = errors(run.x.reshape(-1, 7), run.reference["x"].reshape(-1, 7))[which]
    return flat.reshape(rows)


def _rms(which: str) -> Callable[[Run], np.ndarray]:
    def rms(run: Run) -> np.ndarray:
        return np.sqrt((_errors(run, which) ** 2).mean(axis=1))

    return rms


def _largest(run: Run) -> np.ndarray:
    return _errors(run, "position").max(axis=1)
