"""Rounds of learning as a page: curves over the rounds, and what was learned."""

from typing import Any

import numpy as np

from framefree.learn import LearningHistory, LearningRound
from framefree.look.report.content import Figure, Line, Page, Setting, Table

_TEXT = """What was learned, round by round.

In every round the law follows a motion with what has been learned so far, and a model is learned
from all samples. The motion is the one that leads farthest from the data, in features that no
frame alters. Held-out motions are never learned from: errors are those of T' tau there, relative,
and tracking errors those of the law with the model on them. Round 0 is before learning."""


def learning_page(history: LearningHistory) -> Page:
    """Return rounds of learning as a page."""
    settings = tuple(
        Setting(key, ", ".join(value) if isinstance(value, list) else value)
        for key, value in history.task.settings.items()
    )
    figures = history.to_dict()
    return Page(
        title=f"{history.task.name}: learning in rounds",
        text=_TEXT,
        metrics={k: v for k, v in figures.items() if k not in ("name", "rounds", "interrupted")},
        settings=settings,
        tables=(rounds_table(history.rounds),),
        figures=_curves(history.rounds),
        notes=_formula(history.model),
        trouble="Interrupted: the rounds below are complete." if history.interrupted else "",
    )


def rounds_table(rounds: tuple[LearningRound, ...]) -> Table:
    """Return a row for every round."""
    rows = tuple(
        (
            str(one.number),
            one.motion or "before learning",
            "-" if np.isnan(one.distance) else f"{one.distance:.3g}",
            one.samples,
            100 * one.error,
            1e3 * one.tracking_m,
            f"{one.seconds:.1f}",
        )
        for one in rounds
    )
    heads = ("round", "motion", "distance from data", "samples", "error (percent)",
             "tracking (mm)", "time (s)")  # fmt: skip
    return Table("Rounds", heads, rows)


def _curves(rounds: tuple[LearningRound, ...]) -> tuple[Figure, ...]:
    if len(rounds) < 2:
        return ()
    number = np.array([one.number for one in rounds], float)

    def curve(name: str, values: Any) -> tuple[Line, ...]:
        y = np.array(values, float)
        return (Line(name, number, y), Line(f"{name}, each round", number, y, markers=True))

    return (
        Figure(
            "Error on held-out motions", "round", "error of T' tau (percent)",
            curve("error", [100 * one.error for one in rounds]),
            "Of forces that the model has not seen; 100 percent is no model at all.",
            logarithmic=True,
        ),
        Figure(
            "Tracking error on held-out motions", "round", "rms distance (mm)",
            curve("tracking", [1e3 * one.tracking_m for one in rounds]),
            "Of the law with the model of each round. Where a point is missing, the law fell.",
            logarithmic=True,
        ),
        Figure(
            "How far the motion of each round led from the data", "round", "distance",
            curve("distance", [one.distance for one in rounds]),
            "In features that no frame alters, scaled to unit covariance. It is small "
            "once what was least known has become known.",
        ),
    )  # fmt: skip


def _formula(model: Any | None) -> tuple[str, ...]:
    """Return a model as lines of text, where it can be read."""
    readable: Any = getattr(model, "model", model)  # that of a guarded one
    if not hasattr(readable, "formula"):
        return ()
    return ("What was learned, as far as it can be read:", *readable.formula().splitlines())
