"""What a fit says, as plain data: for files, and for people with a terminal."""

import json
from pathlib import Path
from typing import Any

from framefree.files import MADE_BY, write_file
from framefree.identify.fitting import Fit


def to_dict(fit: Fit) -> dict[str, Any]:
    """Return a fit as plain data that JSON can hold."""
    low, high = fit.interval()
    return {
        "name": fit.machine.name,
        "cutoff_hz": fit.cutoff,
        "delay_s": fit.delay,
        "delay_deviation_s": fit.delay_deviation,
        "rank": fit.base.rank,
        "condition": fit.condition,
        "untold": list(fit.untold),
        "never_told": list(fit.never_told),
        "estimates_moved_to_possible_bodies": fit.moved,
        "share_of_outliers": fit.outliers,
        "share_of_spikes": fit.spikes,
        "doubts": list(fit.doubts),
        "numbers": {
            name: {"before": float(before), "identified": float(now)}
            for name, before, now in zip(fit.names, fit.prior, fit.value, strict=True)
        },
        "base_parameters": [
            {
                "name": fit.base.labels[k],
                "combination": fit.base.expressions[k],
                "estimate": float(fit.estimate[k]),
                "told": bool(fit.told[k]),
                "deviation": float(fit.deviation[k]) if fit.told[k] else None,
                "interval_99": [float(low[k]), float(high[k])] if fit.told[k] else None,
            }
            for k in range(fit.base.rank)
        ],
        "residuals": [
            {"motion": which, "force": name, "relative_error": float(e), "unexplained": float(s)}
            for which, several in (("used", fit.training), ("not used", fit.test))
            for one in several
            for name, e, s in zip(one.names, one.error, one.unexplained, strict=True)
        ],
    }


def write(fit: Fit, folder: Path) -> Path:
    """Write fit.json, the identified machine included (`Machine.from_dict`); return its path."""
    data = {"origin": MADE_BY, **to_dict(fit), "machine": fit.machine.to_dict()}
    return write_file(folder / "fit.json", json.dumps(data, indent=1) + "\n", guard=True)
