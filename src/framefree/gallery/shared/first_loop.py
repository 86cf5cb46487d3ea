"""The first simulation that a scenario makes, as a closed loop whose numbers campaigns vary."""

import dataclasses
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from framefree.campaign import Simulations
from framefree.gallery.shared.scenario import Scenario
from framefree.machine import Machine
from framefree.simulate import Run
from framefree.simulate.run import watching

ROWS = 500
"""Rows of each run, about."""
LENGTHS = {"m/s": ("position", "m", "speed", "mps"), "rad/s": ("angle", "rad", "rate", "radps")}
"""By the unit of a velocity: what its error is called and measured in, and what it itself is."""


class FirstRunMade(Exception):
    """Ends a scenario once its first run is there."""


def first_loop(scenario: Scenario) -> Simulations | None:
    """Return the first simulation of a scenario, which is made for that; None where there is none.

    Metrics are the errors from the reference, where there is one, and velocities: each over all
    coordinates of one unit. There are no promises: those of the scenario judge all that it does.
    """
    run = _first_run(scenario)
    if run is None or run.setup is None or not isinstance(run.machine, Machine):
        return None
    options, scene = run.setup
    plain = scene.machine.parameters.values(None)
    if not np.array_equal(np.atleast_2d(scene.parameters)[0], plain):
        return None  # its numbers are not those of its machine
    given = {f.name: getattr(options, f.name) for f in dataclasses.fields(options)}
    for name in ("choice", "live"):
        del given[name]
    steps, ratio = max(round(options.duration / options.dt), 1), max(options.ratio, 1)
    every = max(steps // ROWS // ratio, 1) * ratio
    given |= {
        "seed": options.seed if isinstance(options.seed, int) else options.seed[0],
        "stops": options.stops or False,
        "disturbances": tuple(one.of_trajectory(0) for one in options.disturbances),
        "every": every,
        "record": (),
        "threads": 1,
    }
    x, v = (np.atleast_2d(value)[0] for value in (scene.x, scene.v))
    metrics = _metrics(run)
    return Simulations(
        metrics, scene.machine, scene.law, scene.reference, x, v, given, name=scenario.name
    )


def _first_run(scenario: Scenario) -> Run | None:
    seen: list[Run] = []

    def keep(run: Run, place: Any) -> None:
        seen.append(run)
        raise FirstRunMade

    with TemporaryDirectory() as folder, suppress(FirstRunMade), watching(keep, Path(folder)):
        scenario.run(progress=False)
    return seen[0] if seen else None


def _metrics(run: Run) -> dict[str, Callable[[Run], np.ndarray]]:
    """Return the metrics that a run has."""
    channels = {channel.key: channel for channel in run.channels}
    reference = channels.get(("reference", "x"))
    tracked = reference is not None and reference.entries == channels["state", "x"].entries
    units = channels["state", "v"].units
    metrics: dict[str, Callable[[Run], np.ndarray]] = {}
    for unit, (error, error_unit, velocity, velocity_unit) in LENGTHS.items():
        which = np.array([one == unit for one in units])
        if not which.any():
            continue
        if tracked:
            metrics[f"rms_{error}_error_{error_unit}"] = _rms_error(which)
            metrics[f"largest_{error}_error_{error_unit}"] = _largest_error(which)
        metrics[f"largest_{velocity}_{velocity_unit}"] = _largest_velocity(which)
    return metrics


def _error(run: Run, which: np.ndarray) -> np.ndarray:
    """Return the length (batch, rows) of the error in some velocities' directions."""
    machine: Any = run.machine
    x, wanted = (a.reshape(-1, machine.nx) for a in (run.x, run.reference["x"]))
    error = np.asarray(machine.difference(wanted, x))[:, which]
    return np.linalg.norm(error, axis=1).reshape(run.x.shape[:2])


def _rms_error(which: np.ndarray) -> Callable[[Run], np.ndarray]:
    return lambda run: np.sqrt((_error(run, which) ** 2).mean(axis=1))


def _largest_error(which: np.ndarray) -> Callable[[Run], np.ndarray]:
    return lambda run: _error(run, which).max(axis=1)


def _largest_velocity(which: np.ndarray) -> Callable[[Run], np.ndarray]:
    return lambda run: np.linalg.norm(run.v[..., which], axis=2).max(axis=1)
