"""Rotations and poses of many states at once, as NumPy arrays.

Arrays are (..., n) for vectors and (..., n, n) for matrices; leading axes broadcast against each
other. The formulas are those of `so3`, `se3` and `quaternion`, evaluated for all entries in one
call.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import reduce
from typing import Any

import casadi as ca
import numpy as np

from framefree.geometry import quaternion, se3, so3
from framefree.geometry.arrays import GeometryError

CHUNK = 256
"""Entries that one call evaluates."""


def rotation(wxyz: Any) -> np.ndarray:
    """Return rotations (..., 3, 3) of unit quaternions wxyz (..., 4)."""
    return _mapped(quaternion.to_rotation, wxyz)


def wxyz(R: Any) -> np.ndarray:
    """Return unit quaternions wxyz (..., 4) of rotations (..., 3, 3), w >= 0."""
    return _mapped(quaternion.from_rotation, R)


def pose(position: Any, wxyz: Any = (1.0, 0.0, 0.0, 0.0)) -> np.ndarray:
    """Return poses (..., 4, 4) of positions (..., 3), m, and unit quaternions wxyz (..., 4)."""
    return _mapped(se3.pose, rotation(wxyz), position)


def rotation_exp(w: Any) -> np.ndarray:
    """Return rotations (..., 3, 3) of rotation vectors (..., 3), rad."""
    return _mapped(so3.exp, w)


def rotation_log(R: Any) -> np.ndarray:
    """Return rotation vectors (..., 3), at most pi long, of rotations (..., 3, 3)."""
    return _mapped(so3.log, R)


def pose_exp(xi: Any) -> np.ndarray:
    """Return poses (..., 4, 4) reached by twists (..., 6) in unit time."""
    return _mapped(se3.exp, xi)


def pose_log(G: Any) -> np.ndarray:
    """Return twists (..., 6) that reach poses (..., 4, 4) in unit time."""
    return _mapped(se3.log, G)


def compose(*poses: Any) -> np.ndarray:
    """Return the products (..., 4, 4) of poses: compose(G_ab, G_bc) = G_ac."""
    if not poses:
        raise GeometryError("`compose` needs at least one pose, got none")
    return reduce(lambda A, B: _mapped(se3.compose_two, A, B), map(np.asarray, poses))


def inverse(G: Any) -> np.ndarray:
    """Return inverse poses (..., 4, 4): inverse(G_ab) = G_ba."""
    return _mapped(se3.inverse, G)


def adjoint(G: Any) -> np.ndarray:
    """Return Ad_G (..., 6, 6) of poses (..., 4, 4)."""
    return _mapped(se3.adjoint, G)


def _mapped(function: Callable[..., Any], *arrays: Any) -> np.ndarray:
    """Evaluate a traced function at every entry of arrays."""
    graph: ca.Function = function.graph()  # type: ignore[attr-defined]
    names = list(inspect.signature(function).parameters)
    shapes = [graph.size_in(k) for k in range(graph.n_in())]
    values = [_trailing(*each) for each in zip(arrays, shapes, names, strict=True)]
    lead = np.broadcast_shapes(*(value.shape[:-2] for value in values))
    count, (rows, columns) = int(np.prod(lead)), graph.size_out(0)
    # casadi keeps matrices column by column, entries one after the other.
    inputs = [
        np.broadcast_to(value, (*lead, *shape)).swapaxes(-1, -2).reshape(count, shape[0] * shape[1])
        for value, shape in zip(values, shapes, strict=True)
    ]
    result = _evaluated(graph, inputs, count, rows * columns)
    entries = result.reshape(*lead, columns, rows).swapaxes(-1, -2)
    return np.ascontiguousarray(entries[..., 0] if columns == 1 else entries)


def _evaluated(graph: ca.Function, inputs: list[np.ndarray], count: int, size: int) -> np.ndarray:
    """Return the results (count, size) of a function, some entries at a time."""
    result = np.zeros((count, size))
    many = 1 if count == 1 else CHUNK
    buffer: Any
    buffer, call = graph.map(many).buffer()
    arguments = [np.zeros((many, each.shape[1])) for each in inputs]
    output = np.zeros((many, size))
    for k, argument in enumerate(arguments):
        buffer.set_arg(k, memoryview(argument.data))
    buffer.set_res(0, memoryview(output.data))
    for first in range(0, count, many):
        rows = slice(first, min(first + many, count))
        for argument, each in zip(arguments, inputs, strict=True):
            argument[: rows.stop - first] = each[rows]
        call()
        result[rows] = output[: rows.stop - first]
    return result


def _trailing(array: Any, shape: tuple[int, int], name: str) -> np.ndarray:
    """Return an array with the last two axes of a shape; vectors get their column axis."""
    value = np.asarray(array, float)
    expected = shape[:1] if shape[1] == 1 else shape
    if value.shape[-len(expected) :] != expected:
        listed = ", ".join(map(str, ("...", *expected)))
        raise GeometryError(f"`{name}` must have shape ({listed}), got {value.shape}")
    return value[..., None] if shape[1] == 1 else value
