"""What a fit says, as plain data: for files, and for people with a terminal."""

import json
from pathlib import Path
from typing import Any

from framefree.identify.fit import Fit


def to_dict(fit: Fit) -> dict[str, Any]:
    """Return a fit as plain data that JSON can hold."""
    low, high = fit.interval()
    return {
        "machine": fit.machine.name,
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


def write(fit: Fit, folder: Path) -> tuple[Path, Path]:
    """Write fit.json and machine.json; return their paths."""
    folder.mkdir(parents=True, exist_ok=True)
    paths = folder / "fit.json", folder / "machine.json"
    for path, data in zip(paths, (to_dict(fit), fit.machine.to_dict()), strict=True):
        path.write_text(json.dumps(data, indent=1) + "\n", encoding="utf-8")
    return paths
