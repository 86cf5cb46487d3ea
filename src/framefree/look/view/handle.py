"""A handle that people drag: what it asks of a law, smoothly.

The handle jumps as a pointer does. What the law follows is a critically damped second-order system
behind it: with the rate w and the error e = p - g to the handle g,

    dv/dt = -2 w v - w^2 e

solved exactly from one piece of time to the next, and continued within a piece by its first terms.
The attitude follows by the logarithm in the same way.
"""

import threading
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import casadi as ca
import numpy as np

from framefree.control.references.base import Reference
from framefree.geometry import batch, quaternion, se3, so3
from framefree.machine.parameters import Parameters

Matrix = Any

_PLACES = (
    "time",
    *"xyz",
    *("vx", "vy", "vz"),
    *("ax", "ay", "az"),
    *("qw", "qx", "qy", "qz"),
    *("wx", "wy", "wz"),
    *("bx", "by", "bz"),
)


def handle_numbers(name: str) -> Parameters:
    """Return the live numbers of a handle: time, place and its rates, attitude and its rates."""
    names = tuple(f"{name}.{part}" for part in _PLACES)
    symbols = ca.vertcat(*(ca.SX.sym(one) for one in names))
    defaults = np.zeros(len(names))
    defaults[names.index(f"{name}.qw")] = 1.0
    return Parameters(names, symbols, defaults)


@dataclass(frozen=True, eq=False)
class HandleReference(Reference):
    """What a handle asks for, as reference of a frame or of a machine that is one free body.

    Parameters
    ----------
    numbers : Parameters
        Of `handle_numbers`.
    frame : str
        Of which "FRAME.pose", "FRAME.twist" and "FRAME.acceleration" are given; without one, "x",
        "v" and "a" of a free joint.
    """

    numbers: Parameters
    frame: str = ""

    def at(self, t: Matrix) -> dict[str, Matrix]:
        """Return the reference at time t."""
        s = self.numbers.symbols
        since, rate, bend = t - s[0], s[4:7], s[7:10]
        turn, change = s[14:17], s[17:20]
        place = s[1:4] + rate * since + bend * since**2 / 2
        R = quaternion.to_rotation(s[10:14]) @ so3.exp(turn * since + change * since**2 / 2)
        v, w = R.T @ (rate + bend * since), turn + change * since
        twist = ca.vertcat(v, w)
        # The rate of R^T f is R^T df/dt - w x R^T f.
        acceleration = ca.vertcat(R.T @ bend - ca.cross(w, v), change)
        if self.frame:
            return {
                f"{self.frame}.pose": se3.pose(R, place),
                f"{self.frame}.twist": twist,
                f"{self.frame}.acceleration": acceleration,
            }
        wxyz = quaternion.product(s[10:14], quaternion.exp(turn * since + change * since**2 / 2))
        return {"x": ca.vertcat(place, wxyz), "v": twist, "a": acceleration}


class HandleFilter:
    """Follows a handle; a feed of `LiveSession`.

    Parameters
    ----------
    name : str
        Of the handle.
    position, wxyz : (3,), (4,)
        Where it is at first.
    rate : float
        w, 1/s.
    """

    def __init__(self, name: str, position: Any, wxyz: Any, rate: float) -> None:
        self.name, self.rate = name, rate
        self._first = np.array(position, float), np.array(wxyz, float)
        self._lock = threading.Lock()
        self.reset()

    def reset(self) -> None:
        """Put handle and what follows it back to where they were at first."""
        with self._lock:
            self.target = self._first
            self._p, self._v = self._first[0].copy(), np.zeros(3)
            self._R, self._w = batch.rotation(self._first[1]), np.zeros(3)

    def move(self, position: Any, wxyz: Any) -> None:
        """Take note of where the handle is."""
        with self._lock:
            self.target = np.array(position, float), np.array(wxyz, float)

    def __call__(self, t: float, seconds: float) -> Mapping[str, float]:
        """Return the live numbers for the piece from t on, and move to its end."""
        from scipy.spatial.transform import Rotation

        with self._lock:
            goal, wxyz = self.target
            rate = self.rate
            e = self._p - goal
            behind = Rotation.from_matrix(batch.rotation(wxyz).T @ self._R).as_rotvec()
            bend = -2 * rate * self._v - rate**2 * e
            change = -2 * rate * self._w - rate**2 * behind
            q = Rotation.from_matrix(self._R).as_quat()[[3, 0, 1, 2]]
            values = np.concatenate([[t], self._p, self._v, bend, q, self._w, change])
            e, self._v = _critical(e, self._v, rate, seconds)
            self._p = goal + e
            behind, self._w = _critical(behind, self._w, rate, seconds)
            self._R = batch.rotation(wxyz) @ Rotation.from_rotvec(behind).as_matrix()
        return {f"{self.name}.{part}": float(v) for part, v in zip(_PLACES, values, strict=True)}


def _critical(
    e: np.ndarray, v: np.ndarray, rate: float, seconds: float
) -> tuple[np.ndarray, np.ndarray]:
    """Return error and velocity of a critically damped system after a time."""
    both, decay = v + rate * e, np.exp(-rate * seconds)
    return (e + both * seconds) * decay, (v - rate * both * seconds) * decay
