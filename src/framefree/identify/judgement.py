"""Doubts about a fit: too little excitation, forces that are not explained, columns swapped."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from framefree.identify.base import BaseParameters
from framefree.identify.errors import IdentifyError
from framefree.identify.recording import Recording, column_names
from framefree.identify.regression import Regressed, regress
from framefree.identify.rows import Prepared, UnknownModel

EXPLAINED = 0.5
"""Share of the variation of a joint's force that must be explained, or the fit is in doubt."""


def doubts_about(
    base: BaseParameters, told: np.ndarray, training: Sequence[Any]
) -> tuple[str, ...]:
    """Return what should not be believed without a look, in words."""
    doubts = []
    if not told.all():
        names = ", ".join(n for n, one in zip(base.labels, told, strict=True) if not one)
        doubts.append(f"too little excitation: these data do not tell {names}")
    for one in training:
        for name, share in zip(one.names, one.unexplained, strict=True):
            if share > EXPLAINED:
                doubts.append(
                    f"of the force at {name} {100 * share:.0f} percent of the variation is not "
                    "explained"
                )
    return tuple(doubts)


def refuse_swapped(
    model: UnknownModel,
    base: BaseParameters,
    told: np.ndarray,
    prepared: Sequence[Prepared],
    late: float,
    result: Regressed,
) -> None:
    """Refuse recorded forces of which two columns explain each other's joints far better."""
    one = prepared[0]
    group = "u" if one.recording.u is not None else "force"
    if group == "u" or model.machine.closed:
        return
    spread = np.concatenate([p.rows(late)[1] for p in prepared]).std(axis=0)
    left = result.residual.std(axis=0) / np.maximum(spread, 1e-300)
    bad = np.flatnonzero(left > 0.2)
    names = column_names(model.machine, group)
    chosen = base.chosen[told]
    best = None
    for i in bad:
        for j in (k for k in range(len(left)) if k != i):
            order = np.arange(len(left))
            order[[i, j]] = j, i
            record = one.recording
            swapped = Recording(record.t, record.x, record.v, record.a, record.force[:, order])
            Y, b = Prepared(model, swapped, one.cutoff).rows(late)
            again = regress(Y[:, :, chosen], b, coloured=False)
            after = again.residual.std(axis=0) / np.maximum(b.std(axis=0), 1e-300)
            if best is None or after.max() < best[0]:
                best = (float(after.max()), i, j)
    if best is not None and best[0] < 0.25 * float(left.max()):
        _, i, j = best
        raise IdentifyError(
            f"{one.recording.source}: columns `{names[i]}` and `{names[j]}` look swapped, from "
            f"row 1 on: each explains the other's joint ({100 * left.max():.0f} percent of a force "
            f"is not explained as they are, {100 * best[0]:.1f} percent the other way round)"
        )
