"""Gains as users give them: a number, one number a velocity, a matrix, or by name of the joint."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from framefree.control.law import ControlError
from framefree.control.model import Part


def joint_gain(
    value: Any, parts: Sequence[Part], what: str, *, definite: bool = True
) -> np.ndarray:
    """Return a gain as a symmetric matrix over the velocities of joints.

    Parameters
    ----------
    value : number, (n,), (n, n) or mapping of str to number or (nv,)
        A mapping names every joint of the parts.
    parts : sequence of Part
        The joints.
    what : str
        Name of the gain, for messages.
    definite : bool
        Whether it must be positive definite; otherwise semidefinite.
    """
    if isinstance(value, Mapping):
        value = _by_joint(value, parts, what)
    names = [name for part in parts for name in part.v_names]
    return gain(value, len(names), what, definite=definite, of=", ".join(names))


def gain(value: Any, n: int, what: str, *, definite: bool = True, of: str = "") -> np.ndarray:
    """Return a gain as a symmetric matrix (n, n); `value` a number, (n,) or (n, n)."""
    try:
        given = np.asarray(value, float)
    except (TypeError, ValueError):
        raise ControlError(f"`{what}` must be numbers, got {value!r}") from None
    matrix = np.diag(np.full(n, given)) if given.ndim == 0 else given
    matrix = np.diag(matrix) if matrix.shape == (n,) else matrix
    if matrix.shape != (n, n):
        listed = f" ({of})" if of else ""
        raise ControlError(
            f"`{what}` must be a number, {n} numbers{listed} or {n} x {n}, got shape {given.shape}"
        )
    if not np.isfinite(matrix).all():
        raise ControlError(f"`{what}` must be finite, got {given.tolist()}")
    if np.abs(matrix - matrix.T).max(initial=0.0) > 1e-12 * np.abs(matrix).max(initial=0.0):
        raise ControlError(f"`{what}` must be symmetric")
    matrix = (matrix + matrix.T) / 2
    least = np.linalg.eigvalsh(matrix).min(initial=np.inf)
    floor = 1e-14 * np.abs(matrix).max(initial=0.0)
    if least <= floor if definite else least < -floor:
        sign = "positive" if definite else "not negative"
        raise ControlError(
            f"`{what}` must be {sign} in every direction, its least eigenvalue is {least:.6g}"
        )
    matrix.flags.writeable = False
    return matrix


def _by_joint(value: Mapping[str, Any], parts: Sequence[Part], what: str) -> np.ndarray:
    known = [part.joint.name for part in parts]
    for name in value:
        if name not in known:
            raise ControlError(
                f"`{what}` names joint `{name}`, which is none of: {', '.join(known)}"
            )
    missing = [f"`{name}`" for name in known if name not in value]
    if missing:
        raise ControlError(f"`{what}` lacks a value for {', '.join(missing)}")
    found = []
    for part in parts:
        numbers = np.asarray(value[part.joint.name], float)
        if numbers.shape not in ((), (1,), (part.size,)):
            raise ControlError(
                f"`{what}` of joint `{part.joint.name}` must be a number or {part.size} numbers, "
                f"got shape {numbers.shape}"
            )
        found.append(np.broadcast_to(numbers, (part.size,)))
    return np.concatenate([np.zeros(0), *found])
