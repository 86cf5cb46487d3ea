"""Doubts about a fit: too little excitation, forces that are not explained."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from framefree.identify.base import BaseParameters

EXPLAINED = 0.5
"""Share of the variation of a joint's force that must be explained, or the fit is in doubt."""


def doubts_about(
    base: BaseParameters, told: np.ndarray, training: Sequence[Any], free: np.ndarray
) -> tuple[str, ...]:
    """Return what should not be believed without a look, in words.

    Parameters
    ----------
    base, told : BaseParameters, (r,) of bool
    training : sequence of Prediction
    free : (rows, m)
        Residuals of numbers that need not be possible.
    """
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
    if doubts and training:
        measured = np.concatenate([one.measured for one in training])
        bound = np.concatenate([one.measured - one.predicted for one in training])
        if bound.std() > EXPLAINED * measured.std() and free.std() < EXPLAINED * bound.std():
            doubts.append(
                "the forces are explained by masses or friction below zero, not by possible ones: "
                "perhaps a sign or a unit of their columns is wrong"
            )
    return tuple(doubts)
