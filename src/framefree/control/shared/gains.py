"""Gains as users give them, checked: one number, one a direction, a matrix, or by joint.

Every refusal names the gain, says what was expected and what was given. A matrix may also be an
expression of live numbers (casadi SX), which are set while a loop runs.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import casadi as ca
import numpy as np

from framefree.control.law import ControlError
from framefree.control.shared.model import IndependentJoint
from framefree.errors import near
from framefree.machine.values import is_symbolic


def positive(value: Any, name: str, owner: str = "", *, zero: bool = False) -> np.ndarray:
    """Return finite numbers that are positive, or not negative with `zero`; of any shape."""
    numbers = as_numbers(value, name, owner)
    if not _in_range(numbers, zero).all():
        sign = "not negative" if zero else "positive"
        raise ControlError(f"{_called(name, owner)} must be {sign}, got {value}")
    return numbers


def vector_gain(
    value: Any,
    n: int,
    name: str,
    owner: str = "",
    *,
    zero: bool = False,
    alike: bool = True,
    of: Sequence[str] = (),
) -> np.ndarray:
    """Return one number a direction (n,), positive, or not negative with `zero`.

    With `alike` one number may stand for all. `of` names the directions, for messages.
    """
    try:
        numbers = as_numbers(value, name, owner)
    except ControlError:
        numbers = np.array(np.nan)
    fits = numbers.shape == (n,) or (alike and numbers.shape == ())
    if not (fits and _in_range(numbers, zero).all()):
        if alike:
            many = f"a number from 0 on, or {n} of them" if zero else f"one positive number or {n}"
        else:
            many = f"{n} numbers from 0 on" if zero else f"{n} positive numbers"
        listed = f", for {', '.join(of)}" if of else ""
        raise ControlError(f"{_called(name, owner)} must be {many}{listed}; got {value!r}")
    return _frozen(np.array(np.broadcast_to(numbers, (n,))))


def matrix_gain(
    value: Any, n: int, name: str, owner: str = "", *, definite: bool = True, of: str = ""
) -> np.ndarray:
    """Return a symmetric matrix (n, n), positive definite or semidefinite.

    `value` is a number, (n,) or (n, n); `of` tells what the directions are, for messages.
    """
    if is_symbolic(value):
        return _symbolic_gain(value, n, name, owner)
    numbers = as_numbers(value, name, owner)
    matrix = np.diag(np.full(n, numbers)) if numbers.ndim == 0 else numbers
    matrix = np.diag(matrix) if matrix.shape == (n,) else matrix
    called = _called(name, owner)
    if matrix.shape != (n, n):
        listed = f" ({of})" if of else ""
        raise ControlError(
            f"{called} must be a number, {n} numbers{listed} or {n} x {n}, got shape "
            f"{numbers.shape}"
        )
    if not np.isfinite(matrix).all():
        i, j = np.argwhere(~np.isfinite(matrix))[0]
        raise ControlError(f"{called} must be finite, got {matrix[i, j]} in row {i}, column {j}")
    skew = np.abs(matrix - matrix.T)
    if skew.max(initial=0.0) > 1e-9 * np.abs(matrix).max(initial=0.0):
        i, j = np.unravel_index(skew.argmax(), skew.shape)
        raise ControlError(
            f"{called} must be symmetric, got {matrix[i, j]:.6g} in row {i}, column {j} and "
            f"{matrix[j, i]:.6g} in row {j}, column {i}"
        )
    matrix = (matrix + matrix.T) / 2
    least = np.linalg.eigvalsh(matrix).min(initial=np.inf)
    floor = 1e-14 * np.abs(matrix).max(initial=0.0)
    if least <= floor if definite else least < -floor:
        sign = "positive" if definite else "not negative"
        raise ControlError(
            f"{called} must be {sign} in every direction, its least eigenvalue is {least:.6g}"
        )
    return _frozen(matrix)


def joint_gain(
    value: Any, joints: Sequence[IndependentJoint], name: str, *, definite: bool = True
) -> np.ndarray:
    """Return a gain as a symmetric matrix over the velocities of joints.

    `value` is as of `matrix_gain`, or a mapping from the name of every joint to a number or (nv,).
    """
    if isinstance(value, Mapping):
        value = _by_joint(value, joints, name)
    names = [velocity for joint in joints for velocity in joint.v_names]
    return matrix_gain(value, len(names), name, definite=definite, of=", ".join(names))


def frame_gain(value: Any, name: str, *, definite: bool = True) -> np.ndarray:
    """Return a gain of a frame (6, 6); two numbers are for translation and rotation."""
    if is_symbolic(value):
        value = ca.vertcat(*[value[0]] * 3, *[value[1]] * 3) if value.shape == (2, 1) else value
    elif np.shape(value) == (2,):
        value = np.repeat(value, 3)
    return matrix_gain(
        value, 6, name, definite=definite, of="three of translation, three of rotation"
    )


def _symbolic_gain(value: Any, n: int, name: str, owner: str) -> Any:
    """Return a gain of live numbers as a matrix (n, n): whoever sets these keeps them positive."""
    if value.shape == (1, 1):
        return ca.diag(ca.repmat(value, n, 1))
    if value.shape == (n, 1):
        return ca.diag(value)
    if value.shape == (n, n):
        return value
    raise ControlError(
        f"{_called(name, owner)} must be one expression, {n} of them or {n} x {n}, got shape "
        f"{value.shape}"
    )


def _by_joint(value: Mapping[str, Any], joints: Sequence[IndependentJoint], name: str) -> Any:
    known = [one.joint.name for one in joints]
    for key in value:
        if key not in known:
            raise ControlError(
                f"`{name}` names joint `{key}`; {near(key, known)}there are: {', '.join(known)}"
            )
    missing = [f"`{key}`" for key in known if key not in value]
    if missing:
        raise ControlError(f"`{name}` lacks a value for {', '.join(missing)}")
    parts = []
    for one in joints:
        numbers = as_numbers(value[one.joint.name], name, f"joint `{one.joint.name}`")
        if numbers.shape not in ((), (1,), (one.size,)):
            raise ControlError(
                f"`{name}` of joint `{one.joint.name}` must be a number or {one.size} numbers, "
                f"got shape {numbers.shape}"
            )
        parts.append(np.broadcast_to(numbers, (one.size,)))
    return np.concatenate([np.zeros(0), *parts])


def as_numbers(value: Any, name: str, owner: str = "") -> np.ndarray:
    """Return an array of numbers, of any shape and size."""
    try:
        text = value is None or isinstance(value, str) or np.iscomplexobj(value)
        numbers = None if text else np.asarray(value, float)
    except (TypeError, ValueError):
        numbers = None
    if numbers is None:
        raise ControlError(f"{_called(name, owner)} must be real numbers, got {value!r}")
    return numbers


def _in_range(numbers: np.ndarray, zero: bool) -> np.ndarray:
    return np.isfinite(numbers) & ((numbers >= 0) if zero else (numbers > 0))


def _called(name: str, owner: str) -> str:
    return f"`{name}` of {owner}" if owner else f"`{name}`"


def _frozen(array: np.ndarray) -> np.ndarray:
    array.flags.writeable = False
    return array
