"""Exchanging one body of a machine whose equations are compiled: only numbers change.

Gamma = sum_b Gamma_b, and of all shares only Gamma_b depends on the moments of body b. Once the ten
numbers of a body (and the places of frames on it) are tunable, another body is a vector of values:

    machine = tunable_body(machine, "arm", frames=("tip",))
    eom     = Embedded(machine)
    values  = machine.parameters.values(body_values("arm", longer_arm, tip=(2.6, 0, 0)))
    eom.mass(x, values); eom.forward(x, v, force, values)
"""

from collections.abc import Iterable
from typing import Any

import numpy as np

from framefree.geometry import Moments
from framefree.machine import Machine, MachineError

_AXES = "xyz"
_PAIRS = ("xx", "xy", "xz", "yy", "yz", "zz")


def body_paths(body: str, frames: Iterable[str] = ()) -> tuple[str, ...]:
    """Return the paths of mass, center, inertia about it, and positions of frames on a body."""
    return (
        f"body:{body}.mass",
        *(f"body:{body}.center.{axis}" for axis in _AXES),
        *(f"body:{body}.inertia.{pair}" for pair in _PAIRS),
        *(f"frame:{frame}.pose.{axis}" for frame in frames for axis in _AXES),
    )


def tunable_body(machine: Machine, body: str, frames: Iterable[str] = ()) -> Machine:
    """Return the machine with a body that can be exchanged without compiling anything anew.

    Parameters
    ----------
    machine : Machine
    body : str
    frames : iterable of str
        Frames on the body that the new one may have elsewhere, such as its tip.
    """
    frames = tuple(frames)
    for name in frames:
        if machine.frame(name).body != machine.body(body).name:
            raise MachineError(f"frame `{name}` is not on body `{body}`")
    return machine.tunable(*body_paths(body, frames))


def body_values(body: str, moments: Moments, **frames: Any) -> dict[str, float]:
    """Return the values that put a body of these moments, and frames at these positions, in.

    Parameters
    ----------
    body : str
    moments : Moments
        In the axes of the body it replaces.
    **frames : (3,)
        Positions, m.
    """
    total, center = float(moments.total), np.ravel(moments.first) / float(moments.total)
    # As `Moments.moment_at_center`, but without casadi: an update is to take far less than 1 ms.
    P = np.asarray(moments.second) - total * np.outer(center, center)
    inertia = np.trace(P) * np.eye(3) - P
    places = [np.asarray(place, float) for place in frames.values()]
    numbers = (total, *center, *inertia[np.triu_indices(3)], *np.ravel(places))
    return dict(zip(body_paths(body, frames), map(float, numbers), strict=True))
