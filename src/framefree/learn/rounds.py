"""The loop of learning: run, collect, learn, run again, each time where least is known.

    before:      the held-out motions are followed without a model; they judge all that comes after
    every round: 1. of the motions to learn from, the one farthest from all data is chosen
                 2. the law with the model so far follows it, and the record becomes samples
                 3. a model is learned from all samples so far
                 4. it is judged: its error on the held-out samples, and how well the law with it
                    follows the held-out motions

A model with which the law follows worse than without any, or falls, is kept among the results but
not used to learn on: the next round runs with the last one that was better than none.

The distance of a motion is the mean, over its states and bodies, of the distance to the nearest
datum, in features that no frame alters (`task.py`), scaled to unit covariance over data and
candidates. It needs no run: where a motion leads is known before.

Each round is written whole, or not at all: DIR/round-1 and so on hold the record, the model and
the figures. Ctrl-C, or the end of the machine's power, loses the round that is under way and no
other; the same call continues after the last one.
"""

import json
import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from time import monotonic
from typing import Any

import numpy as np

from framefree.files import take, write_file
from framefree.learn.errors import LearnError
from framefree.learn.samples import Samples, joined
from framefree.learn.store import load, save
from framefree.learn.task import LearningTask
from framefree.simulate import Run, SimulationError

ABOUT, FIGURES, MODEL, UNFINISHED = "learning.json", "round.json", "model.npz", ".unfinished"
RIDGE = 1e-9
"""Added to the covariance of features, relative to its mean diagonal."""


@dataclass(frozen=True)
class LearningRound:
    """The figures of one round; the one before learning has the number 0.

    Attributes
    ----------
    number : int
    motion : str
        What was followed to learn from; "" before learning.
    distance : float
        Of that motion from the data there were, in scaled features; nan where there were none.
    samples : int
        From which the model was learned, of all rounds so far.
    error : float
        Relative error of T^T tau on held-out motions; 1 without a model.
    tracking_m : float
        Tracking error on held-out motions, root mean square, m; inf if the law fell.
    seconds : float
    """

    number: int
    motion: str
    distance: float
    samples: int
    error: float
    tracking_m: float
    seconds: float


@dataclass(frozen=True)
class LearningHistory:
    """What the rounds of learning gave.

    Attributes
    ----------
    task : LearningTask
    folder : Path
    rounds : tuple of LearningRound
        The first is before learning.
    model : WrenchModel or None
        The last one; None before the first round is complete.
    interrupted : bool
        Whether Ctrl-C ended it.
    """

    task: LearningTask
    folder: Path
    rounds: tuple[LearningRound, ...]
    model: Any | None
    interrupted: bool = False

    def to_dict(self) -> dict[str, Any]:
        """Return the figures as data that JSON can hold; gains are against no learning."""
        first, last = (self.rounds[0], self.rounds[-1]) if self.rounds else (None, None)
        figures: dict[str, Any] = {"name": self.task.name, "rounds_done": len(self.rounds) - 1}
        if first is not None and last is not None and last.number:
            figures |= {
                "samples": last.samples,
                "error_held_out": last.error,
                "tracking_m": last.tracking_m,
                "tracking_before_m": first.tracking_m,
                "tracking_gain": first.tracking_m / last.tracking_m,
            }
            figures = {key: _plain(value) for key, value in figures.items()}
        rows = [{key: _plain(value) for key, value in asdict(one).items()} for one in self.rounds]
        return {**figures, "interrupted": self.interrupted, "rounds": rows}


def learn_in_rounds(
    task: LearningTask,
    folder: str | os.PathLike,
    *,
    rounds: int = 6,
    progress: Any = None,
    tell: Callable[[str], Any] = lambda words: None,
) -> LearningHistory:
    """Learn in rounds; continue where a former call ended.

    Parameters
    ----------
    task : LearningTask
    folder : path
        New, empty, or with rounds of the same task.
    rounds : int
        How many there are to be in all.
    progress : bool or callable, optional
        As in `simulate`, for every run.
    tell : callable, optional
        Told in a sentence what is done next and what came of it.
    """
    if not isinstance(rounds, int) or rounds < 1:
        raise LearnError(f"`rounds` must be a positive whole number, got {rounds!r}")
    if rounds > len(task.motion_names):
        raise LearnError(
            f"`{task.name}` has {len(task.motion_names)} motions to learn from, one a round: "
            f"{rounds} rounds are too many"
        )
    with _taken(Path(folder), task) as place:
        loop = _Loop(task, place, progress, tell)
        try:
            loop.go_on(rounds)
        except KeyboardInterrupt:
            return loop.history(interrupted=True)
        return loop.history()


class _Loop:
    """The rounds so far, and the next one."""

    def __init__(self, task: LearningTask, folder: Path, progress: Any, tell: Callable) -> None:
        self.task, self.folder, self.progress, self.tell = task, folder, progress, tell
        self.rounds: list[LearningRound] = []
        self.data: list[Samples] = []
        self.model: Any | None = None
        self.trusted: Any | None = None  # the last model that was better than none

    def history(self, *, interrupted: bool = False) -> LearningHistory:
        return LearningHistory(self.task, self.folder, tuple(self.rounds), self.model, interrupted)

    def go_on(self, rounds: int) -> None:
        """Read what there is, and add what is missing."""
        self._read()
        if not self.rounds:
            self.tell("following the held-out motions without a model")
            self._before()
        while len(self.rounds) <= rounds:
            self._next(rounds)

    def _before(self) -> None:
        start, names = monotonic(), self.task.held_out_names
        runs = [self._run(name, None) for name in names]
        tracking = self._together([*zip(names, runs, strict=True)])
        one = LearningRound(0, "", np.nan, 0, 1.0, tracking, monotonic() - start)
        self._write(one, {f"held-out-{k}": run for k, run in enumerate(runs)}, None)
        self.held = joined([self.task.samples(run) for run in runs])

    def _next(self, rounds: int) -> None:
        task, start, number = self.task, monotonic(), len(self.rounds)
        motion, distance = self._least_known()
        far = "" if np.isnan(distance) else f", at distance {distance:.3g} from the data"
        self.tell(f"round {number} of {rounds}: following `{motion}`{far}")
        run = self._run(motion, self.trusted)
        data = [*self.data, task.samples(run)]
        samples = joined(data)
        model = task.learn(samples)
        error = self.held.error(model)
        tracking, seconds = self._judged(model), monotonic() - start
        one = LearningRound(number, motion, distance, len(samples), error, tracking, seconds)
        self._write(one, {"run": run}, model)
        self.data = data
        self._take(one, model)
        self.tell(
            f"round {number} of {rounds}: error {100 * one.error:.3g} percent, tracking "
            f"{1e3 * one.tracking_m:.3g} mm ({1e3 * self.rounds[0].tracking_m:.3g} mm without)"
        )

    def _take(self, one: LearningRound, model: Any) -> None:
        self.model = model
        if one.tracking_m <= self.rounds[0].tracking_m:
            self.trusted = model

    def _judged(self, model: Any) -> float:
        """Return the tracking error with a model on held-out motions; inf if the law fell."""
        try:
            runs = [(name, self._run(name, model)) for name in self.task.held_out_names]
        except SimulationError:
            return float("inf")
        return self._together(runs)

    def _run(self, motion: str, model: Any | None) -> Run:
        run = self.task.run(motion, model, self.progress)
        if run.status == "interrupted":
            raise KeyboardInterrupt
        return run

    def _together(self, runs: list[tuple[str, Run]]) -> float:
        """Return the root mean square of the tracking errors of some motions."""
        errors = [self.task.tracking_error(name, run) for name, run in runs]
        return float(np.sqrt(np.mean(np.square(errors))))

    def _least_known(self) -> tuple[str, float]:
        """Return the motion that is farthest from the data; the first where there are none."""
        done = {one.motion for one in self.rounds}
        candidates = [name for name in self.task.motion_names if name not in done]
        if not self.data:
            return candidates[0], float("nan")
        distances = motion_distances(self.task, joined(self.data), self.model, candidates)
        farthest = max(distances, key=lambda name: distances[name])
        return farthest, distances[farthest]

    # ------------------------------------------------------------------ on disk

    def _read(self) -> None:
        """Take the rounds that are complete."""
        while (place := self.folder / f"round-{len(self.rounds)}").is_dir():
            number = len(self.rounds)
            figures = json.loads((place / FIGURES).read_text())
            for key, value in (("distance", np.nan), ("tracking_m", np.inf)):
                figures[key] = value if figures[key] is None else figures[key]
            self.rounds.append(LearningRound(**figures))
            if number:
                self.data.append(self.task.samples(Run.load(place / "run.parquet")))
                self._take(self.rounds[-1], load(place / MODEL))
            else:
                names = [f"held-out-{k}.parquet" for k in range(len(self.task.held_out_names))]
                runs = [Run.load(place / name) for name in names]
                self.held = joined([self.task.samples(run) for run in runs])
        if len(self.rounds) > 1:
            self.tell(f"continuing after round {len(self.rounds) - 1}")

    def _write(self, one: LearningRound, runs: dict[str, Run], model: Any | None) -> None:
        """Write a round beside the others; it gets its name when it is whole."""
        work = self.folder / UNFINISHED
        shutil.rmtree(work, ignore_errors=True)
        work.mkdir()
        for name, run in runs.items():
            run.save(work / f"{name}.parquet")
        if model is not None:
            save(model, work / MODEL)
        figures = {key: _plain(value) for key, value in asdict(one).items()}
        write_file(work / FIGURES, json.dumps(figures, indent=2, allow_nan=False) + "\n")
        work.rename(self.folder / f"round-{one.number}")
        self.rounds.append(one)
        if model is not None:
            save(model, self.folder / MODEL)


def motion_distances(
    task: LearningTask, samples: Samples, model: Any | None, motions: list[str]
) -> dict[str, float]:
    """Return how far motions lead from data, by name; see the top of this file."""
    from scipy.spatial import KDTree

    data = task.features(samples, model)
    led = {name: _features_along(task, name, model) for name in motions}
    every = np.vstack([data, *led.values()])
    S = np.atleast_2d(np.cov(every.T))
    S = S + RIDGE * float(np.mean(np.diag(S))) * np.eye(len(S))
    values, vectors = np.linalg.eigh(S)
    seen = values > 10 * RIDGE * values.max()  # invariants may depend on one another
    root = vectors[:, seen] / np.sqrt(values[seen])
    tree = KDTree(data @ root)
    return {name: float(np.mean(tree.query(rows @ root)[0])) for name, rows in led.items()}


def _features_along(task: LearningTask, motion: str, model: Any | None) -> np.ndarray:
    x, v = task.states(motion)
    there = Samples.of_states(task.machine, x, v, np.zeros((len(x), task.machine.nv)))
    return task.features(there, model)


@contextmanager
def _taken(folder: Path, task: LearningTask) -> Iterator[Path]:
    """Take a folder for one process, new or with rounds of the same task."""
    about = {"learning": task.name, **task.settings}
    folder.mkdir(parents=True, exist_ok=True)
    lock = take(folder / ".learning.lock", folder)
    try:
        own = folder / ABOUT
        if own.is_file():
            _check_same(json.loads(own.read_text()), about, folder)
        elif strange := sorted(one.name for one in folder.iterdir() if one.name[:1] != "."):
            raise LearnError(
                f"`{folder}` holds no rounds of learning but other files, such as "
                f"`{strange[0]}`: give a new folder"
            )
        else:
            write_file(own, json.dumps(about, indent=2, allow_nan=False) + "\n")
        yield folder
    finally:
        lock.release()


def _check_same(there: dict[str, Any], about: dict[str, Any], folder: Path) -> None:
    """Refuse to mix rounds of different tasks."""
    about = json.loads(json.dumps(about))
    if different := [key for key in {**there, **about} if there.get(key) != about.get(key)]:
        key = different[0]
        raise LearnError(
            f"`{folder}` has rounds with other settings: `{key}` was {there.get(key)!r} there and "
            f"is {about.get(key)!r} now; give a new folder"
        )


def _plain(value: Any) -> Any:
    """Return a value that JSON can hold: it has no nan."""
    return None if isinstance(value, float) and not np.isfinite(value) else value
