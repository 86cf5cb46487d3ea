"""The scenario `learned-flight`."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from framefree.errors import FramefreeError
from framefree.gallery.scenarios.learned.flight_nano import AHEAD, UNITS, NanoLessons
from framefree.gallery.scenarios.learned.flight_quad import (
    HEADINGS,
    AirLessons,
    fly,
    path_error,
    settled_error,
)
from framefree.gallery.shared import nano_records
from framefree.gallery.shared.figures import positive
from framefree.gallery.shared.scenario import Outcome, Promise, Scenario
from framefree.learn.flight.pieces import STRIDE
from framefree.look.report import Animation, Figure, Line
from framefree.simulate import Run

GAIN = 50.0
"""Times by which tracking must improve at every heading."""
BOUNDS = {"position_m": 0.040, "velocity_m_s": 0.18, "attitude_rad": 0.067, "rate_rad_s": 0.24}
"""Of errors half a second ahead."""
PHASE, SIDEWAYS = 1.0, 90.0
"""rad, of the path that judges; degree, the heading at which it is flown sideways."""
AIR_WORDS = {
    "none": "without learning",
    "learned": "learned with the fourfold symmetry",
    "no_symmetry": "learned without symmetry",
    "world": "plain network in world axes",
}
NANO_WORDS = {
    "constant_velocity": "constant velocity",
    "physics": "identified physics",
    "world": "physics and plain network in world axes",
    "symmetric": "physics and symmetric network",
}
QUANTITIES = ("Position (m)", "Velocity (m/s)", "Attitude (rad)", "Rate (rad/s)")


@dataclass(frozen=True)
class LearnedFlight(Scenario):
    """A quadcopter learns its air from one flight; a recorded Crazyflie is predicted ahead.

    The quadcopter of the gallery flies forwards and back in air that its law does not know: drag of
    its propellers and hull, and a bias. From that one flight, recorded with noise, it reads drag
    and bias as a formula with the fourfold symmetry of the craft. Then it follows another path at
    other headings, also sideways, where it has never flown. Beside it: the same without the
    symmetry, and a plain network in world axes.

    Recorded flights of a Crazyflie are predicted half a second ahead from a measured state and the
    recorded commands, by constant velocity, identified physics, a plain network on what the physics
    leave, and a network with the fourfold symmetry and its change of propellers. The test flights
    are of other shapes, and are turned about the vertical too: all were flown at heading 0. The
    records are not part of this software: without them this is left out.

    Parameters
    ----------
    data : str
        Folder of the records: one with the folder `nanobench`, or that itself.
    steps : int
        Of training on the records.
    seed : int
        Of networks and noise.
    simulated : bool
        Whether the quadcopter is flown.

    Metrics
    -------
    *_deg_rms_m
        Distance of the craft from its path at this heading, root of the mean square.
    *_rms_m
        Distance of the craft from its path, root of the mean square, in this run.
    tracking_gain_*
        How many times better the craft follows at this heading.
    tracking_gain
        The least of these gains with the fourfold symmetry.
    rotation_factor_world
        By how much the plain network's error changes when the test flights are turned.
    rotation_factor
        By how much our error changes when the test flights are turned: 1 is not at all.
    *turned_h*
        Largest error half a second ahead over turned test flights.
    h*
        Mean error so many hundredths of a second ahead on test flights, physics and
        symmetric network.
    constant_velocity_h*
        The same by constant velocity.
    physics_h*
        The same by identified physics alone.
    world_h*
        The same by physics and a plain network.
    training_*_s
        Time of this training.
    physics_at_bounds
        Parameters of the physics that end at a bound.
    *_files_used
        Recorded files used.
    *files_left_out_names
        Their names.
    *files_left_out
        Recorded files left out because they are not whole.
    test_pieces
        Pieces of test flights that judge.
    """

    name: ClassVar[str] = "learned-flight"
    extras: ClassVar[tuple[str, ...]] = ("learn",)

    data: str = ""
    steps: int = 500
    seed: int = 0
    simulated: bool = True

    def run(self, progress: bool | None = None) -> Outcome:
        """Fly, learn and fly again; then predict the recorded flights, if they are at hand."""
        lessons = self._recorded()
        parts = [_flown(AirLessons(self.seed, progress))] if self.simulated else []
        parts.append(_skipped() if lessons is None else _predicted(lessons))
        return Outcome(
            {name: run for part in parts for name, run in part.runs.items()},
            {name: value for part in parts for name, value in part.metrics.items()},
            tuple(one for part in parts for one in part.promises),
            tuple(one for part in parts for one in part.figures),
            tuple(one for part in parts for one in part.animations),
            tuple(one for part in parts for one in part.notes),
        )

    def _recorded(self) -> NanoLessons | None:
        if not self.data:
            return None
        folder = Path(self.data)
        if not folder.is_dir():
            raise FramefreeError(f"there is no folder `{folder}` of recorded flights")
        inside = folder / "nanobench"
        lessons = NanoLessons(inside if inside.is_dir() else folder, self.steps, self.seed)
        # Files are read before anything that takes time: a mistake shows at once.
        _ = lessons.read
        return lessons


def _skipped() -> Outcome:
    note = "Recorded flights: skipped, none were given (`--set data=DIR`)."
    return Outcome({}, {"skipped": True}, (), notes=(note,))


# ---------------------------------------------------------------------- the quadcopter


def _flown(lessons: AirLessons) -> Outcome:
    runs: dict[str, Run] = {}
    distances: dict[str, np.ndarray] = {}
    metrics: dict[str, Any] = {}
    gains = []
    for heading in HEADINGS:
        for name, model in lessons.models.items():
            run = fly(model, np.deg2rad(heading), 0.0, PHASE, lessons.progress)
            key = f"{name}_{heading:.0f}_deg"
            runs[key], distances[key] = run, path_error(run, 0.0, PHASE)
            metrics[f"{key}_rms_m"] = settled_error(run, distances[key])
        bare = metrics[f"none_{heading:.0f}_deg_rms_m"]
        for name in lessons.models:
            if name != "none":
                gain = bare / metrics[f"{name}_{heading:.0f}_deg_rms_m"]
                metrics[f"tracking_gain_{name}_{heading:.0f}_deg"] = gain
        gains.append(metrics[f"tracking_gain_learned_{heading:.0f}_deg"])
    metrics["tracking_gain"] = min(gains)
    learned = lessons.basis(symmetric=True)
    side = f"{SIDEWAYS:.0f}_deg"
    figure = Figure.over_time(
        "Distance from the path, flown sideways", "distance (m)", runs[f"none_{side}"].t,
        {word: positive(distances[f"{name}_{side}"]) for name, word in AIR_WORDS.items()},
        caption="It learned from one flight forwards and back.", logarithmic=True,
    )  # fmt: skip
    return Outcome(
        runs,
        metrics,
        (
            Promise.at_least(
                "quadcopter: at every heading it follows better than without learning",
                metrics["tracking_gain"], GAIN, "times",
            ),
        ),
        (figure,),
        tuple(
            Animation(f"Sideways, {AIR_WORDS[name]}", runs[f"{name}_{side}"])
            for name in ("none", "learned")
        ),
        notes=("The air as it was read from one flight:", *learned.formula().splitlines()),
    )  # fmt: skip


# ---------------------------------------------------------------------- the Crazyflie


def _predicted(lessons: NanoLessons) -> Outcome:
    metrics = {"skipped": False, **lessons.metrics()}
    last = AHEAD[-1]
    promises = [
        Promise.of(
            metrics,
            f"h{last}_{unit}",
            f"Crazyflie: its {unit.partition('_')[0]} half a second ahead is predicted, mean error",
            bound,
        )
        for unit, bound in BOUNDS.items()
    ]
    promises.append(
        Promise(
            "Crazyflie: turning the test flights changes no error, factor less one",
            metrics["rotation_factor"] - 1,
            1e-9,
        )
    )
    rows = np.arange(STRIDE, last + 1, STRIDE)
    curves = {
        kind: np.array([lessons.errors(kind, int(row)) for row in rows])
        for kind in lessons.predicted
    }
    figures = [
        Figure(
            f"Crazyflie: mean error of predictions, {what.partition(' ')[0].lower()}",
            "time ahead (s)",
            what,
            tuple(
                Line(NANO_WORDS[kind], rows * nano_records.PERIOD, values[:, i])
                for kind, values in curves.items()
            ),
            logarithmic=True,
        )
        for i, what in enumerate(QUANTITIES)
    ]
    table = [
        f"{NANO_WORDS[kind]}: "
        + ", ".join(
            f"{unit.partition('_')[0]} {error:.4f}"
            for unit, error in zip(UNITS, lessons.errors(kind, last), strict=True)
        )
        for kind in lessons.predicted
    ]
    turned = ", ".join(
        f"{unit.partition('_')[0]} {metrics[f'world_turned_h{last}_{unit}']:.4f}" for unit in UNITS
    )
    notes = (
        f"Crazyflie, mean errors half a second ahead over {metrics['test_pieces']} beginnings "
        f"in {metrics['test_files_used']} flights (m, m/s, rad, rad/s):",
        *table,
        f"the plain network where the test flights are turned, at worst: {turned}; the symmetric "
        f"one: the same to a factor of 1 + {metrics['rotation_factor'] - 1:.1g}.",
        *lessons.notes(),
    )
    return Outcome({}, metrics, tuple(promises), tuple(figures), notes=notes)
