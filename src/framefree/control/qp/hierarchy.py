"""Programs of levels in strict order, compiled and called with NumPy arrays."""

from collections.abc import Sequence
from itertools import pairwise
from numbers import Integral
from typing import Any, NamedTuple

import numpy as np

from framefree.control.law import ControlError
from framefree.control.qp.lexicographic import PARTS, program
from framefree.kernel import Kernel
from framefree.kernel.loops import Calls
from framefree.rounding import rounding

TOLERANCE = rounding(1e-10)
"""Share of a row, left after those above it, below which it counts as dependent on them."""
LARGEST = 1000
"""Most variables, and most rows, of a program."""


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

    Rows of one level may differ in size by 1e8 (tests compare with exact arithmetic). Beyond, what
    rounding leaves of large rows hides what small ones miss. Where a program runs out of steps, as
    one of 1,000 random ones does whose rows are up to 1e6 apart, `verdicts` has -1.

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

    def __init__(self, n: int, ends: Sequence[int], *, threshold: float = 0.0) -> None:
        if not _counts([n]) or n < 1:
            raise ControlError(f"`n` must be a number of variables, 1 to {LARGEST}, got {n!r}")
        if not _counts(ends):
            raise ControlError(f"`ends` must be numbers of rows, 0 to {LARGEST}, got {ends!r}")
        self.n, self.ends = int(n), tuple(int(end) for end in ends)
        if any(b < a for a, b in pairwise(self.ends)) or not self.ends[-1]:
            raise ControlError(f"`ends` must not fall, and end with a row at least, got {ends!r}")
        self.m, self.levels = self.ends[-1], len(self.ends) + 1
        self.width = -(-self.n // 4) * 4
        self.threshold = float(_floats(threshold, (), "threshold"))
        if not 0 <= self.threshold < np.inf:
            raise ControlError(f"`threshold` must be a share from 0 on, got {threshold}")
        self.kernel: Kernel = _compiled(self.n, self.ends, self.threshold > 0)

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
            Equations have equal bounds; bounds may be infinite. A row whose lower bound is above
            the upper one is an equation with the mean of the two.
        start, status : (n,), (m,), optional
            Solution and status of a program nearby.
        rest : (n,), optional
            Where damping pulls to.
        farthest : float
            How far from rest a level may lead without damping.
        """
        Y = _floats(Y, (self.m, self.n), "Y")
        lower, upper = (
            _floats(bound, (self.m,), name) for bound, name in ((lower, "lower"), (upper, "upper"))
        )
        if not np.isfinite(Y).all() or np.isnan(lower).any() or np.isnan(upper).any():
            raise ControlError("`Y` must be finite, and `lower` and `upper` must be numbers")
        if (lower == np.inf).any() or (upper == -np.inf).any():
            raise ControlError("`lower` must be below inf and `upper` above -inf")
        wide = np.zeros((*Y.shape[:-1], self.width))
        wide[..., : self.n] = Y
        pull = np.zeros(self.width)
        if rest is not None:
            pull[: self.n] = _floats(rest, (self.n,), "rest", batch=False)
        reach = _floats(farthest, (), "farthest", batch=False)
        if not reach >= 0 or not np.isfinite(pull).all():
            raise ControlError("`farthest` must not be negative, and `rest` must be finite")
        values = self.kernel(
            wide.reshape(*Y.shape[:-2], -1),
            lower,
            upper,
            pull,
            pull,
            np.full(1, reach),
            np.full(1, self.threshold),
            np.zeros(self.n) if start is None else _floats(start, (self.n,), "start"),
            np.zeros(self.m) if status is None else _floats(status, (self.m,), "status"),
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


def _counts(values: Any) -> bool:
    """Tell whether these are whole numbers, at least one, that a program may have of something."""
    return (
        isinstance(values, Sequence | np.ndarray)
        and len(values) > 0
        and all(isinstance(one, Integral) and not isinstance(one, bool) for one in values)
        and all(0 <= int(one) <= LARGEST for one in values)
    )


def _floats(value: Any, shape: tuple[int, ...], name: str, *, batch: bool = True) -> np.ndarray:
    """Return an array of a shape, or a batch of them."""
    try:
        real = not np.iscomplexobj(value)
        numbers = np.asarray(value, float) if real else None
    except (TypeError, ValueError):
        numbers = None
    if numbers is None:
        raise ControlError(f"`{name}` must be real numbers, got {value!r}")
    start = numbers.ndim - len(shape)
    if start not in ((0, 1) if batch and shape else (0,)) or numbers.shape[start:] != shape:
        raise ControlError(f"`{name}` must have shape {shape}, got {numbers.shape}")
    return numbers


def _compiled(n: int, ends: tuple[int, ...], damps: bool) -> Kernel:
    one = program("lexicographic", n, ends, damps=damps, tolerance=TOLERANCE)
    calls = Calls("lexicographic")
    inputs = [calls.input(name, (one.layout.parts[name],)) for name in one.inputs]
    outputs = [calls.output(name, (one.layout.parts[name],)) for name in one.outputs]
    calls.call(one, inputs, outputs)
    return calls.compile()
