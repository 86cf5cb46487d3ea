"""What every geometry function does with its arguments: make them dense CasADi matrices.

`SX` stays `SX`; `DM`, NumPy arrays, lists and numbers become `DM`. Dense, because CasADi indexes
and prints structural zeros differently; exact zeros of a dense `SX` vanish from products anyway.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

import casadi as ca
import numpy as np

from framefree.errors import FramefreeError

# CasADi carries no type information, so these names only tell the reader.
Matrix: TypeAlias = Any  # casadi.SX or casadi.DM, dense
MatrixLike: TypeAlias = Any  # the same, or what NumPy can read; lists may mix numbers and SX


class GeometryError(FramefreeError, ValueError):
    """An argument of a geometry function has the wrong shape or value."""


def as_matrix(value: MatrixLike) -> Matrix:
    """Return `value` as a dense `SX` or `DM`; a one-dimensional array becomes a column."""
    if isinstance(value, ca.SX | ca.DM):
        return value if value.is_dense() else ca.densify(value)
    array = np.asarray(value)
    if array.dtype == object:
        return _of_objects(array)
    return ca.DM(array.astype(float))


def _of_objects(array: np.ndarray) -> Matrix:
    """Stack an array of numbers and scalar `SX`, such as the list [1.0, SX.sym("m"), 0.0]."""
    if array.ndim > 2:
        raise GeometryError(f"expected at most 2 dimensions, got {array.ndim}")
    rows = array.reshape(-1, 1) if array.ndim < 2 else array
    return ca.densify(from_rows([list(row) for row in rows]))


def as_vector(value: MatrixLike, size: int, name: str) -> Matrix:
    """Return `value` as a `size` x 1 column, or say that `name` has the wrong shape."""
    return as_shape(value, (size, 1), name)


def as_shape(value: MatrixLike, shape: tuple[int, int], name: str) -> Matrix:
    """Return `value` as a dense matrix of `shape`, or say that `name` has the wrong shape."""
    matrix = as_matrix(value)
    if matrix.shape != shape:
        raise GeometryError(f"`{name}` must have shape {shape}, got {matrix.shape}")
    return matrix


def from_rows(rows: Sequence[Sequence]) -> Matrix:
    """Stack scalars and blocks, row by row."""
    return ca.vertcat(*(ca.horzcat(*row) for row in rows))
