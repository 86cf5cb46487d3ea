"""Figures of what each body contributes to the inertia and the kinetic energy of a machine."""

from typing import Any

import numpy as np

from framefree.look.report import Figure
from framefree.motion.embedded import Embedded, shares
from framefree.simulate import Run

ROWS = 1000
"""Approximate number of rows of a run that are drawn."""


def share_figures(equations: Embedded, run: Run, parameters: Any = None) -> tuple[Figure, ...]:
    """Return figures of the shares in the diagonal of Gamma and in the kinetic energy of a run.

    Parameters
    ----------
    equations : Embedded
        Of the run's machine.
    run : Run
        One trajectory.
    parameters : optional
        Values of tunable numbers: a mapping, a vector, or one vector a row of the run.
    """
    rows = slice(None, None, max(len(run.t) // ROWS, 1))
    values = parameters[rows] if np.ndim(parameters) == 2 else parameters
    x, v = equations.reduce(run.x[rows], run.v[rows])
    share = shares(equations, x, v, values)
    moving = [k for k in range(len(share.bodies)) if share.Gamma[:, k].any()]
    inertia = tuple(
        Figure.over_time(
            f"Shares of the bodies in the inertia of {name}", "share of the entry of Gamma",
            run.t[rows], {share.bodies[k]: share.inertia[:, k, i, i] for k in moving},
            caption="Gamma is a sum over the bodies; when one is exchanged only its own term "
            "changes.",
        )
        for i, name in enumerate(share.coordinates)
    )  # fmt: skip
    kinetic = {share.bodies[k]: share.kinetic[:, k] for k in moving}
    energy = Figure.over_time("Shares in the kinetic energy", "share", run.t[rows], kinetic)
    return (*inertia, energy)
