"""What a reference is: named signals as functions of time.

To add one, subclass `Reference` (a frozen dataclass serves well) and give ``at(t)``, from the time
(casadi scalar, s) to casadi matrices by name:

- joint references: "x" (nx), "v" (nv), "a" (nv) of the machine of the law that follows;
- frame references: "FRAME.pose" (4x4), "FRAME.twist" (6, body-fixed, linear first) and
  "FRAME.acceleration" (6, its rate).

Derivatives must be those of the configuration: d/dt x = x v on the groups of the joints, and
d/dt pose = pose wed(twist). ``times`` lists where a reference is not smooth, so that an adaptive
integrator stops there; ``units`` are for the record.
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

import casadi as ca
import numpy as np

from framefree.control.law import ControlError

Matrix = Any


class Reference(ABC):
    """Base of all references; see the contract at the top of this file."""

    units: Mapping[str, str] = MappingProxyType({})
    """Units of the signals by name, where they have one."""
    times: tuple[float, ...] = ()
    """Times (s) at which the reference is not smooth."""

    @property
    def name(self) -> str:
        """What the reference is called in records."""
        return type(self).__name__

    @abstractmethod
    def at(self, t: Matrix) -> dict[str, Matrix]:
        """Return all signals at time t."""

    def sample(self, times: Any) -> dict[str, np.ndarray]:
        """Return all signals in numbers, by name.

        At one time t (s) a signal of n numbers is an array (n,), a matrix (n, m); at many,
        (k,) times, these have a leading axis: (k, n) and (k, n, m).
        """
        try:
            instants = np.asarray(times, dtype=float)
        except (TypeError, ValueError):
            instants = np.full((1, 1), np.nan)
        if instants.ndim > 1 or not np.isfinite(instants).all():
            raise ControlError(f"`times` must be one time in s or a list of them, got {times!r}")
        t = ca.SX.sym("t")
        signals = {name: ca.densify(ca.SX(value)) for name, value in self.at(t).items()}
        function = ca.Function("sample", [t], list(signals.values()))
        results = function.map(max(instants.size, 1))(np.atleast_2d(instants))
        values = [results] if len(signals) == 1 else results
        sampled = {}
        for (name, signal), value in zip(signals.items(), values, strict=True):
            # One block of columns a time, side by side.
            blocks = value.full().reshape(signal.shape[0], -1, signal.shape[1])
            array = np.moveaxis(blocks, 1, 0)[: instants.size]
            array = array[:, :, 0] if signal.shape[1] == 1 else array
            sampled[name] = array if instants.ndim else array[0]
        return sampled
