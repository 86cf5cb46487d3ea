"""Which settings a metric depends on: first and total Sobol indices, by SALib.

The first index of a setting is the share of a metric's variance that goes when the setting is held,
the total index the share that stays when all others are. Saltelli's sample gives both from its
design [Saltelli2010]; from other samples of enough runs they follow from a fitted expansion of the
metric in one, two and three settings (RS-HDMR) [Li2010].
"""

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np

from framefree.campaign.campaigns import Campaign
from framefree.campaign.extras import needed
from framefree.campaign.variation import SALTELLI

LEAST = 300
"""Runs from which an expansion is fitted."""
SEED = 1
"""Of the subsamples that intervals come from; SALib takes 0 for none."""


@dataclass(frozen=True)
class SensitivityIndices:
    """Indices of one metric.

    Attributes
    ----------
    metric : str
    keys : tuple of str
    first, total : (keys,)
    first_deviation, total_deviation : (keys,)
        Half of the 95 percent intervals.
    method : str
        In words.
    """

    metric: str
    keys: tuple[str, ...]
    first: np.ndarray
    total: np.ndarray
    first_deviation: np.ndarray
    total_deviation: np.ndarray
    method: str


def sensitivity(campaign: Campaign, metric: str) -> SensitivityIndices | None:
    """Return the indices of a metric; None where runs or settings do not allow them.

    They need a complete campaign over two or more settings in numbers, no failed run, and a metric
    that varies; of another sample than Saltelli's 300 runs.
    """
    settings = {k: np.asarray(v) for k, v in campaign.settings.items()}
    values = np.asarray(campaign.metrics[metric], float)
    numbers = all(v.dtype.kind in "if" for v in settings.values())
    varies = len(values) > 1 and np.isfinite(values).all() and np.ptp(values) > 0
    varies = varies and all(np.ptp(v) > 0 for v in settings.values())
    if not (campaign.complete and numbers and varies and len(settings) > 1):
        return None
    problem = {
        "num_vars": len(settings),
        "names": list(settings),
        "bounds": [[float(v.min()), float(v.max())] for v in settings.values()],
    }
    if campaign.plan.get("sample") == SALTELLI:
        analyse = needed("SALib.analyze.sobol", "sensitivity").analyze
        found = analyse(problem, values, calc_second_order=False, seed=SEED)
        keys = ("S1", "ST", "S1_conf", "ST_conf")
        return _indices(metric, settings, found, keys, "by Saltelli's sample")
    if len(values) < LEAST or campaign.plan.get("sample") == "grid":
        return None
    analyse = needed("SALib.analyze.hdmr", "sensitivity").analyze
    X = np.column_stack([np.asarray(v, float) for v in settings.values()])
    with warnings.catch_warnings(), _legacy_seed():
        # Its successor is not in SALib 1.5.
        warnings.simplefilter("ignore", DeprecationWarning)
        found = analyse(problem, X, values, maxorder=2, print_to_console=False)
    keys = ("Sa", "ST", "Sa_conf", "ST_conf")
    return _indices(metric, settings, found, keys, "by a fitted expansion (RS-HDMR)")


@contextmanager
def _legacy_seed() -> Iterator[None]:
    """Seed NumPy's global generator, which SALib draws subsamples from, and put it back."""
    before = np.random.get_state()  # noqa: NPY002
    np.random.seed(SEED)  # noqa: NPY002
    try:
        yield
    finally:
        np.random.set_state(before)  # noqa: NPY002


def _indices(
    metric: str, settings: dict[str, Any], found: Any, keys: tuple[str, ...], method: str
) -> SensitivityIndices:
    n = len(settings)
    first, total, first_deviation, total_deviation = (np.asarray(found[k], float) for k in keys)
    return SensitivityIndices(
        metric, tuple(settings), first[:n], total[:n], first_deviation[:n], total_deviation[:n],
        method,
    )  # fmt: skip
