"""A fit as a page: residuals by joint, numbers with their intervals, what the data do not tell."""

from collections.abc import Mapping, Sequence

import numpy as np

from framefree.identify import Fit, Prediction
from framefree.look.report.content import Figure, Page, Table

_TEXT = """What was identified, and how well.

Forces are compared after the same low-pass filter on both sides. Base parameters are the
combinations of unknown numbers that forces depend on; intervals are of 99 percent. The numbers of
single bodies are possible ones that have these combinations, nearest to what was known before."""


def fit_page(fit: Fit, title: str = "") -> Page:
    """Return a fit as a page."""
    predictions = {"used": fit.training, "not used": fit.test}
    metrics = {
        "unknown_numbers": len(fit.names),
        "base_parameters": fit.base.rank,
        "told_by_these_data": int(fit.told.sum()),
        "condition": fit.condition,
        "delay_s": fit.delay,
        "delay_deviation_s": fit.delay_deviation,
        "share_of_outliers": fit.outliers,
        "share_of_spikes": fit.spikes,
        "cutoff_hz": "none" if fit.cutoff is None else fit.cutoff,
    }
    return Page(
        title=title or f"identification of {fit.machine.name or 'a machine'}",
        text=_TEXT,
        metrics=metrics,
        tables=(residual_table(predictions), base_table(fit), number_table(fit)),
        figures=prediction_figures(predictions),
        notes=_notes(fit),
        trouble="; ".join(fit.doubts),
    )


def residual_table(predictions: Mapping[str, Sequence[Prediction]]) -> Table:
    """Return residuals by joint, of each motion."""
    rows = [
        (
            f"{name}, {which} {k + 1}",
            float(np.sqrt((one.measured[:, j] ** 2).mean())),
            float(np.sqrt(((one.measured - one.predicted)[:, j] ** 2).mean())),
            float(one.error[j]),
            float(one.unexplained[j]),
        )
        for which, several in predictions.items()
        for k, one in enumerate(several)
        for j, name in enumerate(one.names)
    ]
    heads = ("force and motion", "rms", "rms error", "relative error", "share not explained")
    return Table("Residuals by joint", heads, tuple(rows))


def base_table(fit: Fit) -> Table:
    """Return the base parameters with their intervals."""
    low, high = fit.interval()
    rows = [
        (
            fit.base.labels[k],
            float(fit.estimate[k]),
            f"{low[k]:.5g} .. {high[k]:.5g}" if fit.told[k] else "not told by these data",
            fit.base.expressions[k],
        )
        for k in range(fit.base.rank)
    ]
    return Table("Base parameters", ("name", "estimate", "99 % interval", "combination"),
                 tuple(rows))  # fmt: skip


def number_table(fit: Fit) -> Table:
    """Return all unknown numbers before and after."""
    alone, never = set(fit.base.alone), set(fit.base.untold)

    def known(name: str) -> str:
        if name in never:
            return "no motion tells it: nearest to before"
        return "by itself" if name in alone else "together with others"

    rows = tuple(
        (name, float(before), float(now), known(name))
        for name, before, now in zip(fit.names, fit.prior, fit.value, strict=True)
    )
    return Table("Unknown numbers", ("name", "before", "identified", "how it is told"), rows)


def prediction_figures(predictions: Mapping[str, Sequence[Prediction]]) -> tuple[Figure, ...]:
    """Return measured and predicted forces, and what is left, of the last motion of each kind."""
    figures = []
    for which, several in predictions.items():
        for one in several[-1:]:
            t = one.t - one.t[0]
            lines = {}
            for j, name in enumerate(one.names):
                lines[f"{name} measured*"] = one.measured[:, j]
                lines[name] = one.predicted[:, j]
            left = {n: (one.measured - one.predicted)[:, j] for j, n in enumerate(one.names)}
            figures += [
                Figure.over_time(f"Forces, motion {which}", "force (N, Nm)", t, lines),
                Figure.over_time(f"Residuals, motion {which}", "residual (N, Nm)", t, left),
            ]
    return tuple(figures)


def _notes(fit: Fit) -> tuple[str, ...]:
    notes = []
    if fit.untold:
        notes.append(
            "Too little excitation: these data do not tell " + ", ".join(fit.untold) + ". They "
            "keep what was known before."
        )
    if fit.never_told:
        notes.append("No motion at all tells " + ", ".join(fit.never_told) + ".")
    if fit.moved:
        notes.append(
            "The estimates by least squares belong to no possible bodies; the numbers are the "
            "possible ones nearest to them in standard deviations."
        )
    return tuple(notes)
