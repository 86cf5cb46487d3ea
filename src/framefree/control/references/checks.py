"""Checks of what references are made from; each says what was expected and what came."""

from typing import Any

import numpy as np

from framefree.control.law import ControlError
from framefree.errors import FramefreeError
from framefree.machine.values import pose
from framefree.motion.given_machine import checked_machine


def checked_times(times: Any, count: int, what: str) -> tuple[float, ...]:
    """Return times (s), one for each waypoint, each later than the one before."""
    values = _array(times, f"`times` of {what}")
    if count < 2:
        raise ControlError(f"{what} needs two waypoints or more, got {count}")
    if values.shape != (count,):
        raise ControlError(
            f"`times` of {what} must be {count} numbers, one for each waypoint, got shape "
            f"{values.shape}"
        )
    late = np.flatnonzero(np.diff(values) <= 0)
    if len(late):
        k = int(late[0])
        raise ControlError(
            f"`times` of {what} must increase, but {values[k]:.6g} s is followed by "
            f"{values[k + 1]:.6g} s"
        )
    return tuple(values.tolist())


def checked_points(machine: Any, points: Any, what: str) -> np.ndarray:
    """Return configurations (n, nx) of a machine; quaternions brought to unit length."""
    checked_machine(machine, ControlError, f"`machine` of {what}")
    values = _array(points, f"`points` of {what}")
    if values.ndim != 2 or values.shape[1] != machine.nx:
        raise ControlError(
            f"`points` of {what} must have shape (n, {machine.nx}), one configuration of the "
            f"machine a row, got {values.shape}"
        )
    for k, x in enumerate(values):
        try:
            machine.validate(x)
        except FramefreeError as error:
            raise ControlError(f"point {k} of {what}: {error}") from None
    return frozen(machine.normalise(values))


def checked_poses(poses: Any, what: str) -> np.ndarray:
    """Return poses (n, 4, 4), each as 4x4, position (3), or position and wxyz (7)."""
    try:
        listed = list(poses)
    except TypeError:
        raise ControlError(f"`poses` of {what} must be a list of poses, got {poses!r}") from None
    return frozen(np.array([checked_pose(G, f"pose {k} of {what}") for k, G in enumerate(listed)]))


def checked_pose(value: Any, what: str) -> np.ndarray:
    """Return a pose (4x4)."""
    try:
        return np.asarray(pose(value, what), dtype=float)
    except FramefreeError as error:
        raise ControlError(str(error)) from None


def checked_vector(value: Any, size: int, what: str) -> np.ndarray:
    """Return a vector of finite numbers."""
    array = _array(value, what)
    if array.shape != (size,):
        raise ControlError(f"{what} must be {size} numbers, got shape {array.shape}")
    return frozen(array)


def checked_number(value: Any, what: str, *, least: float = -np.inf) -> float:
    """Return a finite number that is not below `least`."""
    array = _array(value, what)
    if array.shape != () or float(array) < least:
        bound = "" if least == -np.inf else f", at least {least:g}"
        raise ControlError(f"{what} must be one number{bound}, got {value!r}")
    return float(array)


def checked_frame(frame: Any, what: str) -> str:
    """Return the name of a frame."""
    if not isinstance(frame, str) or not frame:
        raise ControlError(f"`frame` of {what} must be the name of a frame, got {frame!r}")
    return frame


def frozen(array: np.ndarray) -> np.ndarray:
    """Return a read-only copy."""
    array = np.array(array, dtype=float)
    array.setflags(write=False)
    return array


def _array(value: Any, what: str) -> np.ndarray:
    try:
        array = np.asarray(value, dtype=float)
    except (TypeError, ValueError):
        raise ControlError(f"{what} must be numbers, got {value!r}") from None
    if not np.isfinite(array).all():
        raise ControlError(f"{what} must be finite, got {value!r}")
    return array
