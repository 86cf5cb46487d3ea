"""Kd of the port laws, as users give it: a rate, or matrices over the bodies."""

from functools import partial
from typing import Any

import numpy as np

from framefree.control.law import ControlError
from framefree.control.port.body_gains import BodyGains, body_gains
from framefree.control.shared.gains import matrix_gain, positive
from framefree.geometry import Moments
from framefree.machine import Machine


def body_dampings(machine: Machine, damping: Any, floor: float) -> BodyGains:
    """Return Kd over all bodies, in body axes."""
    if not 0 <= floor <= 1:
        raise ControlError(f"`floor` must lie between 0 and 1, got {floor!r}")
    return body_gains(machine, damping, "damping", partial(_damping, floor))


def _damping(floor: float, body: Any, value: Any) -> Any:
    """Return Kd (6x6) of one body: a number is a rate."""
    owner = f"`{body.name}`"
    if np.ndim(value) == 0:
        M = _floored(body.moments, floor) if floor and not body.massless else body.moments
        return M.matrix6 * float(positive(value, "damping", owner))
    return matrix_gain(value, 6, "damping", owner)


def _floored(moments: Moments, floor: float) -> Moments:
    """Return moments whose inertia about the center is at least a share of the largest."""
    if moments.symbolic:
        raise ControlError("`floor` needs bodies whose numbers are known; give Kd itself instead")
    values, axes = np.linalg.eigh(moments.moment_at_center)
    inertia = axes @ np.diag(np.maximum(values, floor * values.max())) @ axes.T
    return Moments.of_body(moments.total, moments.center, inertia)
