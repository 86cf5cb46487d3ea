"""Walking a closed chain along a path of its independent coordinates."""

from typing import Any

import numpy as np

from framefree.motion.embedded.choice import margin, singular
from framefree.motion.embedded.embedded import Embedded
from framefree.motion.embedded.maps import Expression

NEAR = 1e-3
"""Relative singular value of the loops' rows below which a path is refused."""


def follow(equations: Embedded, x: Any, parameters: Any = None) -> np.ndarray:
    """Return configurations (rows, nx) with the loops closed, each from the one before.

    Parameters
    ----------
    equations : Embedded
    x : (rows, nx)
        Of the tree; only the independent coordinates are read, but for the first row, near which
        the loops are closed within the limits of the joints. Later rows follow it wherever they
        lead.
    parameters : optional
        Values of tunable numbers.

    Raises
    ------
    SingularError
        Naming the loop, where the path comes near to or passes a position in which the independent
        velocities do not determine the others.
    ClosureError
        Where the loops cannot be closed.
    """
    x = np.array(x, dtype=float)
    if isinstance(equations.map, Expression):
        return x
    machine, independent = equations.machine, equations.map.independent or ()
    dependent = [k for k in range(machine.nv) if k not in independent]
    owners = [label.partition("[")[0] for label in equations.constrained.labels]
    chosen = [machine.x_names.index(name) for name in equations.v_names]
    before: np.ndarray | None = None
    for k, row in enumerate(x):
        if k:
            row[:] = np.where(np.isin(np.arange(machine.nx), chosen), row, x[k - 1])
        row[:] = equations.close(row, parameters, limits=not k)
        A = equations.rows(row, parameters)
        now = A[:, dependent]
        # The sign of this determinant turns where the dependent columns have lost rank in between.
        passed = before is not None and np.linalg.det(before.T @ now) < 0
        if passed or margin(A, dependent) < NEAR:
            raise singular(machine, A, owners, dependent)
        before = now
    return x
