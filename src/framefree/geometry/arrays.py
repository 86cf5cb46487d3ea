"""Arguments of geometry functions are converted to dense CasADi matrices.

`SX` stays `SX`; `DM`, NumPy arrays, lists and numbers become `DM`. Dense, because CasADi indexes
and prints structural zeros differently; exact zeros of a dense `SX` vanish from products anyway.

Formulas are written once, over `SX`, and `traced` at their first use. A call then inlines the graph
(`SX`) or evaluates it (`DM`) in C++, some 50 times faster than the Python that wrote it.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from functools import cache, wraps
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
    if array.ndim > 2:
        raise GeometryError(f"expected at most 2 dimensions, got {array.ndim}")
    if array.dtype == object:
        return _of_objects(array)
    if array.dtype.kind not in "fiub":
        raise GeometryError(f"expected real numbers, got {array.dtype}")
    return ca.DM(array.astype(float))


def _of_objects(array: np.ndarray) -> Matrix:
    """Stack an array of numbers and scalar `SX`, such as the list [1.0, SX.sym("m"), 0.0]."""
    rows = array.reshape(-1, 1) if array.ndim < 2 else array
    try:
        return ca.densify(from_rows([list(row) for row in rows]))
    except NotImplementedError:  # what CasADi raises for a type it does not know
        types = sorted({type(entry).__name__ for entry in array.flat})
        raise GeometryError(f"expected numbers or `casadi.SX`, got {', '.join(types)}") from None


def as_shape(value: MatrixLike, shape: tuple[int, int], name: str) -> Matrix:
    """Return `value` as a dense matrix of `shape`, or say that `name` has the wrong shape."""
    try:
        matrix = as_matrix(value)
    except ValueError as error:  # also a `GeometryError`, and what NumPy raises for ragged lists
        raise GeometryError(f"`{name}` must have shape {shape}: {error}") from error
    if matrix.shape != shape:
        raise GeometryError(f"`{name}` must have shape {shape}, got {matrix.shape}")
    return matrix


def numbers_or_graph(value: MatrixLike, shape: tuple[int, int], name: str) -> Any:
    """Return `value` as `as_shape` does, but numbers as a NumPy array of two dimensions.

    Formulas of matrices read the same for both. CasADi takes 10 us and more to take up an array,
    which counts where a robot file has hundreds of them.
    """
    if isinstance(value, np.ndarray | float | int):
        array = np.asarray(value)
        if array.dtype.kind in "fiub" and array.ndim <= 2:
            array = array.astype(float)
            array = array if array.ndim == 2 else array.reshape(-1, 1)
            if array.shape == shape:
                return array
    matrix = as_shape(value, shape, name)
    return matrix if isinstance(matrix, ca.SX) else as_array(matrix)


def as_array(matrix: ca.DM) -> np.ndarray:
    """Return a dense `DM` as an array of two dimensions, in a quarter of NumPy's own time."""
    return np.array(matrix.nonzeros()).reshape(matrix.shape, order="F")


def from_rows(rows: Sequence[Sequence]) -> Matrix:
    """Stack scalars and blocks, row by row."""
    return ca.vertcat(*(ca.horzcat(*row) for row in rows))


def traced(*shapes: tuple[int, int]) -> Callable[[Callable[..., Matrix]], Callable[..., Matrix]]:
    """Decorate a function of `SX` matrices of fixed `shapes`, so that it takes `MatrixLike` ones.

    Constants passed in later, such as zeros, still vanish from the inlined graph. `graph` of the
    decorated function gives the `casadi.Function` that it calls.
    """

    def decorate(function: Callable[..., Matrix]) -> Callable[..., Matrix]:
        signature = inspect.signature(function)
        names = list(signature.parameters)

        @cache
        def graph() -> ca.Function:
            symbols = [ca.SX.sym(n, *shape) for n, shape in zip(names, shapes, strict=True)]
            result = ca.cse(ca.densify(function(*symbols)))
            return ca.Function(f"framefree_{function.__name__.strip('_')}", symbols, [result])

        @wraps(function)
        def call(*arguments: MatrixLike, **named: MatrixLike) -> Matrix:
            if named or len(arguments) != len(names):
                arguments = signature.bind(*arguments, **named).args
            return graph()(*map(as_shape, arguments, shapes, names))

        call.graph = graph  # type: ignore[attr-defined]
        return call

    return decorate


SCALAR, VECTOR3, VECTOR4, VECTOR6 = (1, 1), (3, 1), (4, 1), (6, 1)
MATRIX3, MATRIX4, MATRIX6 = (3, 3), (4, 4), (6, 6)
