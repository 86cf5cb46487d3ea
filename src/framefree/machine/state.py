"""States of a machine: configurations x on the product of the joints' groups, velocities v.

The functions take casadi matrices; `numeric` lets the same code run on NumPy arrays, one state
or many.
"""

from collections.abc import Callable, Sequence
from typing import Any

import casadi
import numpy as np

from framefree.machine.joint import Joint
from framefree.machine.problems import Problems, StateError

Segments = Sequence[tuple[Joint, slice, slice]]
"""Joints with their slices in x and v."""

UNIT_LENGTH = 1e-6
"""Tolerance of the unit length of quaternions in a valid state."""


def integrate(segments: Segments, x: Any, dv: Any) -> Any:
    """Move every joint of x (nx) by its part of dv (nv)."""
    return _stacked(joint.kind.integrate(x[sx, :], dv[sv, :]) for joint, sx, sv in segments)


def difference(segments: Segments, x0: Any, x1: Any) -> Any:
    """Return the shortest dv (nv) with integrate(x0, dv) = x1."""
    return _stacked(joint.kind.difference(x0[sx, :], x1[sx, :]) for joint, sx, _ in segments)


def normalise(segments: Segments, x: Any) -> Any:
    """Quaternions and (cos, sin) pairs of x (nx) brought back to unit length."""
    return _stacked(joint.kind.normalise(x[sx, :]) for joint, sx, _ in segments)


def rate_matrix(segments: Segments, x: Any) -> Any:
    """Return a (nx x nv), block diagonal: dx/dt = A v."""
    blocks = [joint.kind.rate(x[sx, :]) for joint, sx, _ in segments]
    return casadi.diagcat(*blocks) if blocks else casadi.DM.zeros(0, 0)


def numeric(function: Callable, sizes: Sequence[int]) -> Callable[..., np.ndarray]:
    """Turn a function of casadi columns into one of NumPy arrays of shape (n,) or (batch, n)."""
    symbols = [casadi.SX.sym(f"a{i}", size) for i, size in enumerate(sizes)]
    compiled = casadi.Function("state", symbols, [casadi.densify(casadi.SX(function(*symbols)))])

    def call(*arrays: Any) -> np.ndarray:
        values = [np.asarray(array, dtype=float) for array in arrays]
        for value, size in zip(values, sizes, strict=True):
            if value.ndim not in (1, 2) or value.shape[-1] != size:
                raise StateError(f"expected shape ({size},) or (batch, {size}), got {value.shape}")
        batch = max((value.shape[0] for value in values if value.ndim == 2), default=None)
        if batch is None:
            return compiled(*values).full()[:, 0]
        columns = [np.broadcast_to(value, (batch, value.shape[-1])).T for value in values]
        if batch == 0 or compiled.numel_out() == 0:
            return np.zeros((batch, compiled.numel_out()))
        return np.ascontiguousarray(compiled.map(batch)(*columns).full().T)

    return call


def problems_of(segments: Segments, x: Any, v: Any, nx: int, nv: int, *, limits: bool) -> Problems:
    """Return what is wrong with a state, (nx,) or (batch, nx).

    Shapes, values, unit lengths and, with `limits`, joint limits are checked.
    """
    problems = Problems()
    x = _checked(x, nx, "x", problems)
    if v is not None:
        _checked(v, nv, "v", problems)
    if x is None:
        return problems
    for joint, sx, _ in segments:
        part = x[..., sx]
        for block in joint.kind.unit_blocks:
            lengths = np.linalg.norm(part[..., block], axis=-1)
            worst = lengths.flat[np.abs(lengths - 1.0).argmax()]
            if abs(worst - 1.0) > UNIT_LENGTH:
                names = ", ".join(joint.x_names[block])
                problems.add(f"({names}) must have unit length, got {worst:.6g}")
        if limits:
            _check_limits(joint, part, problems)
    return problems


def _check_limits(joint: Joint, part: np.ndarray, problems: Problems) -> None:
    for i, name in enumerate(joint.x_names):
        low, high = part[..., i].min(), part[..., i].max()
        if low < joint.lower[i] or high > joint.upper[i]:
            value = low if low < joint.lower[i] else high
            problems.add(
                f"`{name}` must be within [{joint.lower[i]:.6g}, {joint.upper[i]:.6g}], got "
                f"{value:.6g}"
            )


def _checked(value: Any, size: int, name: str, problems: Problems) -> np.ndarray | None:
    try:
        array = np.asarray(value, dtype=float)
    except (TypeError, ValueError):
        problems.add(f"`{name}` must be numbers, got {type(value).__name__}")
        return None
    if array.ndim not in (1, 2) or array.shape[-1] != size:
        problems.add(f"`{name}` must have shape ({size},) or (batch, {size}), got {array.shape}")
        return None
    if not np.isfinite(array).all():
        problems.add(
            f"`{name}` must be finite, but has {int((~np.isfinite(array)).sum())} entries that "
            "are not"
        )
        return None
    return array


def _stacked(parts: Any) -> Any:
    return casadi.vertcat(casadi.DM.zeros(0, 1), *parts)
