"""How quantities are described: their inputs, and the NumPy shapes of their outputs."""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import casadi as ca

from framefree.motion.spatial import Matrix


class Output(NamedTuple):
    """An output: its expression, and the NumPy shape of one state's value (row-major)."""

    value: Any
    shape: tuple[int, ...]


Outputs = dict[str, Output]


class Recipe(NamedTuple):
    """How a quantity follows from a state.

    Attributes
    ----------
    inputs : tuple of str
        Names of the inputs in order, x first; those of the state (x, v) are not handed on.
    trace : callable (state, *other inputs) -> dict of str to Output
    """

    inputs: tuple[str, ...]
    trace: Callable[..., Outputs]


X, XV, XVA = ("x",), ("x", "v"), ("x", "v", "a")


def scalar(value: Matrix) -> Output:
    """Return a number as an output."""
    return Output(value, ())


def vector(value: Matrix) -> Output:
    """Return a column as an output (n,)."""
    return Output(value, (value.shape[0],))


def matrix(value: Matrix) -> Output:
    """Return a matrix as an output (rows, columns)."""
    return Output(value, value.shape)


def table(rows: Sequence[Matrix], width: int) -> Output:
    """Return columns of one length as the rows of an output (rows, width)."""
    value = ca.vertcat(ca.SX(0, width), *(row.T for row in rows))
    return Output(value, (len(rows), width))


def pose_table(poses: Sequence[Matrix]) -> Output:
    """Return poses as an output (poses, 4, 4)."""
    rows = table([ca.vec(ca.densify(G).T) for G in poses], 16)
    return Output(rows.value, (len(poses), 4, 4))


def cube(matrices: Sequence[Matrix], n: int) -> Output:
    """Return k square matrices as an output (k, n, n), the first index theirs."""
    rows = table([ca.vec(ca.densify(one).T) for one in matrices], n * n)
    return Output(rows.value, (len(matrices), n, n))
