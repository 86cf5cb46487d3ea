"""Networks as calls inside expressions: layers that native code runs as loops.

    h_0 = x,     h_k = f(W_k h_{k-1} + b_k),     y = W_n h_{n-1} + b_n

`layers` gives y as an expression of x that can stand anywhere in equations and laws: CasADi
differentiates through it, and C and JAX get it as scalar operations. In native code it is a call of
loops over the matrices (`framefree.kernel.matrices`); equal layers at many places share one code.
"""

import itertools
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any

import casadi as ca
import numpy as np

from framefree.kernel.graph import CompileError

Matrix = Any
Activation = Callable[[Matrix], Matrix]


def layers(
    x: Matrix, weights: Sequence[tuple[Any, Any]], activation: Activation = ca.tanh
) -> Matrix:
    """Return a network's output at x.

    Parameters
    ----------
    x : (n,) casadi expression or array
    weights : sequence of (W, b)
        Of every layer: arrays, which become part of the code, or casadi expressions, which stay
        inputs, so that other weights need no compilation. All or none must be arrays.
    activation : callable
        f of one element, from MX to MX; of all layers but the last.
    """
    if not weights:
        raise CompileError("`layers` needs at least one layer")
    symbolic = any(isinstance(one, ca.SX | ca.MX) for pair in weights for one in pair)
    if symbolic:
        pairs = [(ca.densify(W), ca.densify(b)) for W, b in weights]
        shapes = tuple(W.shape for W, _ in pairs)
        sizes = _checked(x, shapes, [b.shape[0] * b.shape[1] for _, b in pairs])
        return _given(sizes, activation)(x, *(ca.vec(one) for pair in pairs for one in pair))
    arrays = [(_array(W, "W", k, 2), _array(b, "b", k, 1)) for k, (W, b) in enumerate(weights)]
    sizes = _checked(x, tuple(W.shape for W, _ in arrays), [b.size for _, b in arrays])
    numbers = b"".join(one.tobytes() for pair in arrays for one in pair)
    return _constant(sizes, numbers, activation)(x)


def _array(value: Any, name: str, k: int, dimension: int) -> np.ndarray:
    array = np.ascontiguousarray(value, dtype=float)
    if array.ndim != dimension or not np.isfinite(array).all():
        raise CompileError(
            f"`{name}` of layer {k} must be {dimension}-dimensional and finite, got shape "
            f"{array.shape}"
        )
    return array


def _checked(
    x: Matrix, shapes: Sequence[tuple[int, int]], biases: Sequence[int]
) -> tuple[int, ...]:
    """Return the sizes from x to y; raise where layers do not fit each other."""
    sizes = [int(np.prod(x.shape))]
    for k, ((rows, columns), bias) in enumerate(zip(shapes, biases, strict=True)):
        if columns != sizes[-1] or rows != bias or not rows * columns:
            raise CompileError(
                f"layer {k} gets {sizes[-1]} numbers, but its W is {rows} x {columns} and its b "
                f"has {bias}"
            )
        sizes.append(rows)
    return tuple(sizes)


def _function(sizes: Sequence[int], pairs: Sequence[tuple], inputs: Sequence, f: Activation):
    x = ca.MX.sym("x", sizes[0])
    value = x
    for k, (W, b) in enumerate(pairs):
        value = ca.mac(W, value, b)
        value = f(value) if k < len(pairs) - 1 else value
    return ca.Function("layers", [x, *inputs], [value], {"never_inline": True})


@lru_cache(maxsize=64)
def _constant(sizes: tuple[int, ...], numbers: bytes, activation: Activation) -> ca.Function:
    """Return x -> y; the same function for the same numbers, so that its code exists once."""
    values, pairs = np.frombuffer(numbers), []
    for columns, rows in itertools.pairwise(sizes):
        W, b, values = np.split(values, [rows * columns, rows * columns + rows])
        pairs.append((ca.MX(ca.DM(W.reshape(rows, columns))), ca.MX(ca.DM(b))))
    return _function(sizes, pairs, [], activation)


@lru_cache(maxsize=64)
def _given(sizes: tuple[int, ...], activation: Activation) -> ca.Function:
    """Return (x, W_1, b_1, ...) -> y, matrices as columns."""
    pairs, inputs = [], []
    for columns, rows in itertools.pairwise(sizes):
        W, b = ca.MX.sym("W", rows * columns), ca.MX.sym("b", rows)
        pairs.append((ca.reshape(W, rows, columns), b))
        inputs += [W, b]
    return _function(sizes, pairs, inputs, activation)
