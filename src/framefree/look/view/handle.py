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
from functools import cache
from typing import Any

import casadi as ca
import numpy as np

from framefree.control.references.base import Reference
from framefree.geometry import quaternion, se3, so3
from framefree.kernel import Kernel, compile
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
        self._names = tuple(f"{name}.{part}" for part in _PLACES)
        self._lock = threading.Lock()
        self.reset()

    def reset(self) -> None:
        """Put handle and what follows it back to where they were at first."""
        with self._lock:
            self.target = self._first
            self._state = (self._first[0], np.zeros(3), self._first[1], np.zeros(3))

    def move(self, position: Any, wxyz: Any) -> None:
        """Take note of where the handle is."""
        with self._lock:
            self.target = np.array(position, float), np.array(wxyz, float)

    def __call__(self, t: float, seconds: float) -> Mapping[str, float]:
        """Return the live numbers for the piece from t on, and move to its end."""
        with self._lock:
            now = self._state
            steps = np.array([self.rate, seconds])
            bend, change, *self._state = _follower()(*now, *self.target, steps)
        p, v, q, w = now
        values = np.concatenate([[t], p, v, bend, q, w, change])
        return dict(zip(self._names, values.tolist(), strict=True))


@cache
def _follower() -> Kernel:
    """Return what follows a handle as a kernel: accelerations now, and the state after a time."""
    p, v, w, goal = (ca.SX.sym(name, 3) for name in ("p", "v", "w", "goal"))
    q, wxyz, steps = ca.SX.sym("q", 4), ca.SX.sym("wxyz", 4), ca.SX.sym("steps", 2)
    rate, seconds = steps[0], steps[1]
    e = p - goal
    behind = quaternion.log(quaternion.product(quaternion.conjugate(wxyz), q))
    bend, change = (-2 * rate * b - rate**2 * a for a, b in ((e, v), (behind, w)))
    e, v_after = _critical(e, v, rate, seconds)
    behind, w_after = _critical(behind, w, rate, seconds)
    q_after = quaternion.normalise(quaternion.product(wxyz, quaternion.exp(behind)))
    inputs = [p, v, q, w, goal, wxyz, steps]
    outputs = [bend, change, goal + e, v_after, q_after, w_after]
    return compile(ca.Function("follow_handle", inputs, outputs))


def _critical(e: Matrix, v: Matrix, rate: Matrix, seconds: Matrix) -> tuple[Matrix, Matrix]:
    """Return error and velocity of a critically damped system after a time."""
    both, decay = v + rate * e, ca.exp(-rate * seconds)
    return (e + both * seconds) * decay, (v - rate * both * seconds) * decay
