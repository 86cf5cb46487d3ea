"""Numbers of a machine: checked, made read-only, and prepared for tracing.

A number may be a float, or a casadi `SX` expression in a machine with tunable parameters. Arrays
are read-only float64 NumPy arrays, or `SX` matrices of the same shape.
"""

from typing import Any

import casadi
import numpy as np

from framefree.geometry import batch
from framefree.machine.problems import MachineError

Numbers = Any
"""A float64 NumPy array or a casadi SX matrix."""

SNAP = 1e-12
"""Entries of constant rotations this close to 0, 1 and -1 are taken as exactly that when traced."""

SHORT = 1e-11
"""Entries of constant positions below this share of their length are taken as zero: files give
angles of joints to some twelve digits."""

UNIT = 1e-9
"""Tolerance on the length of quaternions and on the orthogonality of rotations."""

_AXES = {"x": (1.0, 0.0, 0.0), "y": (0.0, 1.0, 0.0), "z": (0.0, 0.0, 1.0)}


def is_symbolic(value: object) -> bool:
    """Whether a value holds casadi expressions (a tunable machine's numbers do)."""
    return isinstance(value, casadi.SX)


def frozen(array: np.ndarray) -> np.ndarray:
    """Read-only copy of an array."""
    array = np.array(array, dtype=float)
    array.setflags(write=False)
    return array


def numbers(value: Any, shape: tuple[int, ...], what: str, *, finite: bool = True) -> Numbers:
    """Check an array against the expected shape; a scalar fills a vector.

    Raises
    ------
    MachineError
        Naming `what`, the expected shape and what came instead.
    """
    if is_symbolic(value):
        expected = (*shape, 1)[:2] if shape else (1, 1)
        if value.shape != expected:
            raise MachineError(f"{what} must have shape {expected}, got {value.shape}")
        return value
    try:
        array = np.asarray(value, dtype=float)
    except (TypeError, ValueError):
        raise MachineError(f"{what} must be {_shape_words(shape)}, got {value!r}") from None
    if array.ndim == 0 and len(shape) == 1:
        array = np.full(shape, float(array))
    if array.shape != shape:
        raise MachineError(f"{what} must be {_shape_words(shape)}, got shape {array.shape}")
    if np.isnan(array).any() or (finite and not np.isfinite(array).all()):
        raise MachineError(f"{what} must be {'finite' if finite else 'numbers'}, got {value!r}")
    return frozen(array)


def vector(value: Any, what: str) -> Numbers:
    """Check the three numbers of a vector; a scalar other than zero has no direction."""
    if not is_symbolic(value) and np.isscalar(value) and value != 0:
        raise MachineError(f"{what} must be a vector of 3 numbers, got {value!r}")
    return numbers(value, (3,), what)


def scalar(value: Any, what: str) -> Any:
    """Check one finite number: float, or SX of one entry."""
    checked = numbers(value, (), what)
    return checked if is_symbolic(checked) else float(checked)


def unit_axis(value: Any, what: str) -> np.ndarray:
    """Check an axis: three numbers, or "x", "y", "z", "-x", "-y", "-z"; stored with unit length.

    Any length but zero is accepted.
    """
    if isinstance(value, str):
        name = value.removeprefix("-")
        if name not in _AXES:
            raise MachineError(
                f"{what} must be three numbers or one of x, y, z, -x, -y, -z, got {value!r}"
            )
        sign = -1.0 if value.startswith("-") else 1.0
        return frozen(sign * np.array(_AXES[name]) + 0.0)
    axis = vector(value, what)
    if is_symbolic(axis):
        raise MachineError(f"{what} must be numeric: axes are not tunable")
    length = float(np.linalg.norm(axis))
    if length < 1e-12:
        raise MachineError(f"{what} must not be zero, got {value!r}")
    # Dividing a unit vector again may change its last bit; reading back a record must not.
    return axis if abs(length - 1.0) <= 4e-16 else frozen(axis / length)


def pose(value: Any, what: str) -> Numbers:
    """Check a pose: a 4x4 matrix, a position (3), or position and unit quaternion wxyz (7)."""
    if is_symbolic(value):
        return numbers(value, (4, 4), what)
    if value is None:
        return frozen(np.eye(4))
    try:
        array = np.asarray(value, dtype=float)
    except (TypeError, ValueError):
        raise MachineError(f"{what} must be a 4x4 pose, got {value!r}") from None
    if not np.isfinite(array).all():
        raise MachineError(f"{what} must be finite, got {value!r}")
    if array.shape == (3,):
        return _posed(np.eye(3), array)
    if array.shape == (7,):
        return _posed(_rotation_of(array[3:], what), array[:3])
    if array.shape != (4, 4):
        raise MachineError(
            f"{what} must be a 4x4 pose, a position of 3 numbers, or position and quaternion wxyz "
            f"of 7, got shape {array.shape}"
        )
    _check_pose(array, what)
    return frozen(array)


def symmetric(value: Any, size: int, what: str) -> Numbers:
    """Check a symmetric matrix."""
    matrix = numbers(value, (size, size), what)
    if not is_symbolic(matrix):
        gap = np.abs(matrix - matrix.T)
        # Rows of forces and moments have other units: those at ii and jj measure entry ij.
        diagonal = np.sqrt(np.abs(np.diag(matrix)))
        sizes = np.maximum(
            np.outer(diagonal, diagonal), np.maximum(np.abs(matrix), np.abs(matrix.T))
        )
        if (gap > UNIT * sizes).any():
            raise MachineError(
                f"{what} must be symmetric, but differs from its transpose by {gap.max():.3g}"
            )
    return matrix


def constant(value: Numbers) -> Any:
    """Return a casadi `DM` constant for tracing; SX passes through unchanged."""
    return value if is_symbolic(value) else casadi.DM(np.asarray(value, dtype=float))


def constant_pose(value: Numbers, length: float = 0.0) -> Any:
    """Like `constant`, with exact zeros and ones in place of rounded ones.

    Rotations read from files carry entries like 6e-17 for 0; each would stay in the traced graph as
    real arithmetic. Entries of a rotation or of axes within 1e-12 of 0, 1 and -1 become exactly
    that; entries of a position become zero where they are smaller than 1e-11 of its largest, or of
    the `length` (m) that the position was computed from.
    """
    if is_symbolic(value):
        return value
    array = np.array(value, dtype=float)
    turning = array[:3, :3] if array.shape == (4, 4) else array
    for target in (0.0, 1.0, -1.0):
        turning[np.abs(turning - target) <= SNAP] = target
    if array.shape == (4, 4):
        position = array[:3, 3]
        position[np.abs(position) <= SHORT * max(np.abs(position).max(), length)] = 0.0
    return constant(array)


def _posed(rotation: np.ndarray, position: np.ndarray) -> np.ndarray:
    matrix = np.eye(4)
    matrix[:3, :3] = rotation
    matrix[:3, 3] = position
    return frozen(matrix)


def _rotation_of(wxyz: np.ndarray, what: str) -> np.ndarray:
    length = float(np.linalg.norm(wxyz))
    if abs(length - 1.0) > UNIT:
        raise MachineError(
            f"{what} must have a unit quaternion wxyz, got {wxyz.tolist()} of length {length:.6g}"
        )
    return batch.rotation(wxyz / length)


def _check_pose(array: np.ndarray, what: str) -> None:
    rotation = array[:3, :3]
    if np.abs(array[3] - (0.0, 0.0, 0.0, 1.0)).max() > UNIT:
        raise MachineError(f"{what} must have last row (0, 0, 0, 1), got {array[3].tolist()}")
    gap = float(np.abs(rotation.T @ rotation - np.eye(3)).max())
    if gap > UNIT:
        raise MachineError(f"{what} must hold a rotation, but R'R differs from I by {gap:.3g}")
    if np.linalg.det(rotation) < 0:
        raise MachineError(f"{what} must hold a rotation, but its determinant is -1 (a reflection)")


def _shape_words(shape: tuple[int, ...]) -> str:
    if not shape:
        return "one number"
    return f"{shape[0]} numbers" if len(shape) == 1 else "x".join(map(str, shape)) + " numbers"


def compose(first: Numbers, second: Numbers) -> Numbers:
    """Product of two poses, numeric or symbolic."""
    if is_symbolic(first) or is_symbolic(second):
        return casadi.mtimes(constant(first), constant(second))
    return frozen(first @ second)
