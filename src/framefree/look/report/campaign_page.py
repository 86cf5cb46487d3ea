"""A campaign as a page: success rates, bands over time, what metrics depend on, the worst runs."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from framefree.campaign import Campaign, CampaignSubject, sensitivity, success_rate
from framefree.campaign.records import TIME
from framefree.campaign.search import Falsification
from framefree.campaign.simulations import OK, USED
from framefree.look.report.bands import band_figure
from framefree.look.report.content import Figure, Line, Page, Setting, Table
from framefree.look.report.prose import metric_name, number

WORST = 10
"""Runs that are listed with the command that repeats each."""
METRICS, COLUMNS = 6, 24
"""Most metrics that are drawn against settings, and most columns that are drawn over time."""
_TEXT = """{runs} runs with settings that vary.

A share comes with the interval in which the true share lies with 95 percent (Wilson). Every run
that is listed can be made again, bit for bit, by its command, which opens a report of its own."""


def campaign_page(
    result: Campaign, subject: CampaignSubject, *, metric: str = "", smallest: bool = False
) -> Page:
    """Return a campaign as a page.

    Parameters
    ----------
    result : Campaign
    subject : CampaignSubject
        What was run: it knows the commands that repeat runs.
    metric : str
        By which the worst runs are found; by default those that use most of a promise's bound, or
        whose promises do not hold.
    smallest : bool
        Whether small values of it are the bad ones.
    """
    total = len(result.table["job"])
    metric = metric or (USED if USED in result.metrics else "")
    shown = shown_metrics(result, metric)
    trouble = "" if result.complete else f"{result.plan['jobs'] - total} runs have not been made."
    return Page(
        title=f"campaign of {subject.name}",
        text=_TEXT.format(runs=total),
        tables=tuple(
            table
            for table in (
                success_table(result),
                worst_table(result, subject, metric, smallest),
                failure_table(result, subject),
                *(_sensitivity_table(result, name) for name in shown),
            )
            if table.rows
        ),
        figures=(*_shares(result, shown), *_scatters(result, shown), *_bands(result)),
        metrics=_medians(result),
        settings=_varied(result),
        notes=_notes(result),
        trouble=trouble,
    )


def shown_metrics(result: Campaign, metric: str) -> tuple[str, ...]:
    """Return the metrics that are drawn: those that vary, the chosen one first."""
    varying = [
        name
        for name, values in result.metrics.items()
        if name != OK and len(np.unique(_finite(values))) > 2
    ]
    first = [name for name in (metric, USED) if name in varying]
    return tuple(dict.fromkeys((*first, *varying)))[:METRICS]


def success_table(result: Campaign) -> Table:
    """Return the shares of runs that came to their end, and that kept all promises."""
    total = len(result.failed)
    rows = [("runs that came to their end", int((~result.failed).sum()))]
    if OK in result.metrics:
        kept = int((np.nan_to_num(result.metrics[OK].astype(float)) > 0).sum())
        rows.append(("runs that kept all promises", kept))
    told = []
    for words, count in rows:
        share, low, high = (100 * value for value in success_rate(count, total))
        told.append((words, count, total, f"{share:.4g} %", f"{low:.4g} to {high:.4g} %"))
    columns = ("", "runs", "of", "share", "95 % interval")
    return Table("Success", columns, tuple(told))


def worst_table(result: Campaign, subject: CampaignSubject, metric: str, smallest: bool) -> Table:
    """Return the worst runs with the command that repeats each."""
    known = metric in result.metrics
    rows = result.worst(metric, WORST, largest=not smallest) if known else result.broken(WORST)
    told = [
        (
            f"run {int(result.table['job'][k])}",
            float(result.metrics[metric][k]) if known else "",
            subject.command(result.settings_of(k)),
        )
        for k in rows.tolist()
    ]
    words = _worded(metric)
    title = f"The {len(told)} worst runs" + (f" by {words}" if known else "")
    return Table(title, ("run", words if known else "", "command"), tuple(told))


def failure_table(result: Campaign, subject: CampaignSubject) -> Table:
    """Return runs that failed: their causes and commands."""
    rows = np.flatnonzero(result.failed)[:WORST].tolist()
    told = tuple(
        (
            f"run {int(result.table['job'][k])}",
            str(result.table["cause"][k]),
            subject.command(result.settings_of(k)),
        )
        for k in rows
    )
    more = int(result.failed.sum()) - len(told)
    title = "Failed runs" + (f" (the first {len(told)}; {more} more)" if more > 0 else "")
    return Table(title, ("run", "cause", "command"), told)


def _sensitivity_table(result: Campaign, metric: str) -> Table:
    title = f"What {_worded(metric)} depends on"
    columns = ("setting", "first index", "± (95 %)", "total index", "± (95 %)")
    found = sensitivity(result, metric)
    if found is None:
        return Table(title, columns, ())
    entries = (found.first, found.first_deviation, found.total, found.total_deviation)
    table = np.round(np.column_stack(entries), 4).tolist()
    order = np.argsort(-found.total)
    rows = tuple((found.keys[k], *table[k]) for k in order.tolist())
    return Table(f"{title}: Sobol indices {found.method}", columns, rows)


# ---------------------------------------------------------------------- figures


def _bands(result: Campaign) -> list[Figure]:
    """Return bands over time of what was kept of the runs."""
    names = _column_names(result)[:COLUMNS]
    records = result.records(names)
    if not names or not records:
        return []
    longest = max((record[TIME] for record in records.values()), key=len)
    figures = []
    for name in names:
        runs = [(one[TIME], one[name]) for one in records.values() if name in one]
        entry = name.partition(" [")[0].removeprefix("signals.")
        title = "Over time:" if "." in entry else f"Over time: {entry}"
        figures.append(band_figure(title, name, longest, runs))
    return figures


def _column_names(result: Campaign) -> list[str]:
    import pyarrow.parquet as pq

    for path in sorted(result.folder.glob("records-*.parquet")):
        return [name for name in pq.read_schema(path).names if name not in ("job", TIME)]
    return []


def _shares(result: Campaign, metrics: Sequence[str]) -> list[Figure]:
    """Return how metrics are distributed: the share of runs at or below each value."""
    figures = []
    for name in metrics[:2]:
        values = np.sort(_finite(result.metrics[name]))
        share = np.arange(1, len(values) + 1) / len(result.table["job"])
        words, label = metric_name(name)[0], _worded(name)
        line = Line("share of runs", values, share)
        figures.append(Figure(f"Distribution of {words}", label, "share of runs", (line,)))
    return figures


def _scatters(result: Campaign, metrics: Sequence[str]) -> list[Figure]:
    """Return each metric against each setting in numbers."""
    kept = np.nan_to_num(result.metrics.get(OK, np.ones(len(result.failed))).astype(float)) > 0
    figures = []
    for name in metrics[:2]:
        y = result.metrics[name].astype(float)
        for key, values in result.settings.items():
            if values.dtype.kind not in "if" or key == "seed":
                continue
            x = values.astype(float)
            lines = [
                Line(words, x[which], y[which], markers=True)
                for words, which in (("promises hold", kept), ("promises broken", ~kept))
                if which.any()
            ]
            words, label = metric_name(name)[0], _worded(name)
            figures.append(Figure(f"{words} against {key}", key, label, tuple(lines)))
    return figures


# ---------------------------------------------------------------------- numbers and words


def _worded(metric: str) -> str:
    """Return a metric in words, with its unit."""
    words, unit = metric_name(metric)
    return f"{words} ({unit})" if unit else words


def _medians(result: Campaign) -> dict[str, Any]:
    """Return median and largest value of every metric."""
    told: dict[str, Any] = {}
    for name, values in result.metrics.items():
        finite = _finite(values)
        if name != OK and len(finite):
            told[f"median_{name}"] = float(np.median(finite))
            told[f"largest_{name}"] = float(finite.max())
    return told


def _finite(values: np.ndarray) -> np.ndarray:
    numbers = values.astype(float)
    return numbers[np.isfinite(numbers)]


def _varied(result: Campaign) -> tuple[Setting, ...]:
    """Return what varied, as the plan has it."""
    settings = []
    for key, what in result.plan["vary"].items():
        parts = [(k, what[k]) for k in ("mean", "deviation", "low", "high", "values") if k in what]
        words = ", ".join(f"{k} {number(v)}" for k, v in parts)
        settings.append(Setting(key, what["type"], words))
    for key, what in result.plan["subject"].get("settings", {}).items():
        if key not in ("type", *result.plan["vary"]):
            settings.append(Setting(key, what, "the same in all runs"))
    return tuple(settings)


def _notes(result: Campaign) -> tuple[str, ...]:
    sample = f"The sample is {result.plan.get('sample')}, seed {result.plan['seed']}."
    columns = len(_column_names(result))
    if columns > COLUMNS:
        sample += f" Of {columns} columns that were kept over time the first {COLUMNS} are drawn."
    if not len(result.table["job"]) or sensitivity_given(result):
        return (sample,)
    return (
        sample,
        "No sensitivity: it needs two settings in numbers that vary, no failed run, and 300 runs "
        "of a sobol or random sample, or a saltelli sample.",
    )


def sensitivity_given(result: Campaign) -> bool:
    """Tell whether Sobol indices can be had."""
    names = shown_metrics(result, "")
    return bool(names) and sensitivity(result, names[0]) is not None


def search_page(found: Falsification, subject: CampaignSubject) -> Page:
    """Return a search for broken promises, with random search beside it, as a page."""
    both = {"search (CMA-ES)": found.search, "random search": found.random}
    rows = tuple(
        (
            name,
            "none" if one.violation is None else f"run {one.violation + 1}",
            one.runs,
            one.worst,
            subject.command(one.settings),
        )
        for name, one in both.items()
    )
    metric = found.search.metric
    lines = []
    for name, one in both.items():
        values = one.campaign.metrics.get(metric, np.zeros(0)).astype(float)
        values = -values if one.campaign.plan["smallest"] else values
        worst = np.fmax.accumulate(values) if len(values) else values
        worst = -worst if one.campaign.plan["smallest"] else worst
        lines.append(Line(name, np.arange(1, len(values) + 1), worst))
    words, unit = metric_name(metric)
    label = f"worst {words} so far ({unit})" if unit else f"worst {words} so far"
    columns = ("", "first broken promise", "runs made", f"worst {_worded(metric)}", "command")
    return Page(
        title=f"worst case of {subject.name}",
        text=f"Settings that break a promise.\n\n{found.words()}",
        tables=(Table("What was found", columns, rows),),
        figures=(Figure("The search", "runs", label, tuple(lines)),),
        settings=_varied(found.search.campaign),
        trouble="" if found.search.violation is None else "A promise does not hold.",
    )
