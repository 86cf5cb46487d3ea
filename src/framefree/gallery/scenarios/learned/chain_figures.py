"""Figures of the scenario `learned-chain`."""

import numpy as np

from framefree.gallery.scenarios.learned.adaptive_chain import JUMPED
from framefree.gallery.scenarios.learned.closed_loop import tracking_errors
from framefree.gallery.shared.figures import positive
from framefree.look.report import Figure, Line
from framefree.simulate import Run

Curve = dict[str, dict[int, float]]
"""Error in the plane by number of samples, for every kind of model."""
Runs = dict[tuple[str, str], Run]
"""By what was followed, and by what the law knew."""
WORDS = {
    "none": "without learning",
    "learned": "learned",
    "world": "plain network",
    "guarded": "learned, with a guard",
    "adaptive": "learned, adapting",
}
SHOWN = 0.05
"""s, from which on distances are drawn: they begin at zero, which no logarithm shows."""
TITLES = {
    "plane": "in the plane",
    "yaw": "turned about the vertical",
    "space": "in space",
    "far": "in space, faster than what was learned from",
    "current": "after the current jumped",
    "payload": "with a load on the last rod",
}


def curves(curve: Curve) -> tuple[Figure, ...]:
    """Return errors over numbers of samples."""
    lines = tuple(
        Line(name, np.array(list(values), float), 100 * np.array(list(values.values())))
        for name, values in curve.items()
    )
    return (
        Figure(
            "Error in the plane of the training", "samples", "error of T' tau (percent)", lines,
            "Other motions in the same plane and at the same heading: what the plain network is "
            "best at.",
            logarithmic=True,
        ),
    )  # fmt: skip


def tracking_figures(runs: Runs) -> tuple[Figure, ...]:
    """Return how far the rods are from their poses, a figure for everything that was followed."""
    figures = []
    for style in dict.fromkeys(style for style, _ in runs):
        own = {name: run for (followed, name), run in runs.items() if followed == style}
        lines = tuple(
            Line(WORDS[name], run.t[run.t > SHOWN], positive(_distance(run)[run.t > SHOWN]))
            for name, run in own.items()
        )
        figures.append(
            Figure(
                f"Distance of the rods from their poses, {TITLES[style]}",
                "t (s)",
                "rms distance (m)",
                lines,
                logarithmic=True,
            )
        )
    return tuple(figures)


def current_figure(runs: Runs) -> tuple[Figure, ...]:
    """Return the current as the law estimates it after its jump."""
    if ("current", "adaptive") not in runs:
        return ()
    run = runs["current", "adaptive"]
    estimate = run["coefficients"][:, -3:]
    lines = {axis: estimate[:, i] for i, axis in enumerate("xyz")}
    lines |= {f"{axis}, true": np.full(len(run.t), JUMPED[i]) for i, axis in enumerate("xyz")}
    return (Figure.over_time("The current after its jump", "current (m/s)", run.t, lines),)


def _distance(run: Run) -> np.ndarray:
    return np.sqrt(np.mean(tracking_errors(run)[0] ** 2, axis=1))
