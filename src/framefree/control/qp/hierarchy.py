"""Programs of levels in strict order, compiled and called with NumPy arrays."""

import operator
from typing import NamedTuple

import numpy as np

from framefree.control.law import ControlError
from framefree.control.qp.lexicographic import PARTS, program
from framefree.kernel import Kernel
from framefree.kernel.loops import Calls
from framefree.rounding import rounding

TOLERANCE = rounding(1e-10)
"""Share of a row, left after those above it, below which it counts as dependent on them."""


class HierarchySolution(NamedTuple):
    """The solution of a program of levels, with what certifies it; one, or a batch.

    Attributes
    ----------
    z : (n,)
    slack : (m,)
        What rows are above their upper bound (positive) or below the lower one (negative).
    multipliers : (levels + 1, m)
        Of each level: its gradient, ``slack . Y`` of its own rows, and z itself for the last, is
        minus the sum of the other rows times these; own rows have their slack.
    status : (m,)
        Positive where a row is at or above its upper bound, negative at or below the lower one,
        else 0. Its size is the number, from 1, of the level that takes it there.
    lengths : (levels + 1,)
        Length of each level's slack.
    errors : (levels + 1,)
        Largest error of each level's conditions of optimality, relative to their terms.
    damped : (levels + 1,)
        Bound on what the damping has added to the slack, as a share of what is asked for.
    verdicts : (levels + 1,)
        1 where a level is met, 0 where it gave way, -1 where the number of steps did not suffice.
    steps : ()
        Number of steps of the active-set method.
    """

    z: np.ndarray
    slack: np.ndarray
    multipliers: np.ndarray
    status: np.ndarray
    lengths: np.ndarray
    errors: np.ndarray
    damped: np.ndarray
    verdicts: np.ndarray
    steps: np.ndarray


class HierarchyKernel:
    """A compiled solver of programs of one shape.

        lower_k <= Y_k z <= upper_k,  k = 1, 2, ...,  in strict order; last of all the shortest z

    Parameters
    ----------
    n : int
        Number of variables.
    ends : sequence of int
        Number of rows up to the end of each level.
    threshold : float
        Least singular value of a level, relative to its rows, below which it is damped where it
        leads far from rest; 0: never.
    """

    def __init__(self, n: int, ends: tuple[int, ...], *, threshold: float = 0.0) -> None:
        ends = tuple(operator.index(end) for end in ends)
        if n < 1 or not ends or any(b < a for a, b in zip((0, *ends), ends, strict=False)):
            raise ControlError(f"a program needs variables and levels that grow, got {n}, {ends}")
        self.n, self.m, self.levels = n, max(ends[-1], 1), len(ends) + 1
        self.ends = ends if ends[-1] else (*ends[:-1], 1)
        self.width = -(-n // 4) * 4
        self.kernel: Kernel = _compiled(n, self.ends, threshold > 0)
        self.threshold = threshold

    def __call__(
        self,
        Y: np.ndarray,
        lower: np.ndarray,
        upper: np.ndarray,
        *,
        start: np.ndarray | None = None,
        status: np.ndarray | None = None,
        rest: np.ndarray | None = None,
        farthest: float = 0.0,
    ) -> HierarchySolution:
        """Solve a program, or a batch of them, from where the search may start.

        Parameters
        ----------
        Y, lower, upper : (m, n), (m,), (m,), or batches
            Equations have equal bounds; bounds may be infinite.
        start, status : (n,), (m,), optional
            Solution and status of a program nearby.
        rest : (n,), optional
            Where damping pulls to.
        farthest : float
            How far from rest a level may lead without damping.
        """
        Y = np.asarray(Y, float)
        if Y.shape[-2:] != (self.m, self.n):
            raise ControlError(f"`Y` must have shape {(self.m, self.n)}, got {Y.shape}")
        if not np.isfinite(Y).all() or np.isnan(lower).any() or np.isnan(upper).any():
            raise ControlError("`Y` must be finite, and `lower` and `upper` must be numbers")
        wide = np.zeros((*Y.shape[:-1], self.width))
        wide[..., : self.n] = Y
        pull = np.zeros(self.width)
        if rest is not None:
            pull[: self.n] = rest
        values = self.kernel(
            wide.reshape(*Y.shape[:-2], -1),
            np.asarray(lower, float),
            np.asarray(upper, float),
            pull,
            pull,
            np.full(1, farthest),
            np.full(1, self.threshold),
            np.zeros(self.n) if start is None else start,
            np.zeros(self.m) if status is None else status,
        )
        z, slack, multipliers, after, info, steps = values
        parts = np.moveaxis(info.reshape(*info.shape[:-1], self.levels, PARTS), -1, 0)
        shape = (*multipliers.shape[:-1], self.levels, self.m)
        return HierarchySolution(
            z,
            slack,
            multipliers.reshape(shape),
            after,
            parts[0],
            parts[1],
            parts[2],
            parts[3],
            steps[..., 0],
        )


def _compiled(n: int, ends: tuple[int, ...], damps: bool) -> Kernel:
    one = program("lexicographic", n, ends, damps=damps, tolerance=TOLERANCE)
    calls = Calls("lexicographic")
    inputs = [calls.input(name, (one.layout.parts[name],)) for name in one.inputs]
    outputs = [calls.output(name, (one.layout.parts[name],)) for name in one.outputs]
    calls.call(one, inputs, outputs)
    return calls.compile()
