"""References of plain numbers: a value as a function of time, with its first two derivatives."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import casadi as ca

from framefree.control.law import ControlError
from framefree.control.references.base import Matrix, Reference
from framefree.machine.part import set_field

ORDERS = ("value", "rate", "second")
"""Names of the signals: the value, and its first and second derivative."""


@dataclass(frozen=True, eq=False)
class SignalPath(Reference):
    """Numbers that are a function of time: "SIGNAL.value", "SIGNAL.rate" and "SIGNAL.second".

    Parameters
    ----------
    signal : str
    path : callable
        From t (casadi scalar, s) to the number or the column of numbers.
    times : sequence of float
        Where the path is not smooth, s.
    """

    signal: str
    path: Callable[[Matrix], Any]
    times: Any = ()

    def __post_init__(self) -> None:
        if not isinstance(self.signal, str) or not self.signal:
            raise ControlError(f"`signal` of {self.name} must be a name, got {self.signal!r}")
        set_field(self, "times", tuple(float(time) for time in self.times))
        shape = self.function(0.0)[0].shape
        if shape[1] != 1:
            raise ControlError(f"`path` of {self.name} must give a column, got shape {shape}")

    @cached_property
    def function(self) -> ca.Function:
        """From t to the value and its derivatives."""
        t = ca.SX.sym("t")
        value = self.path(t)
        value = ca.vertcat(*value) if isinstance(value, list | tuple) else ca.SX(value)
        rate = ca.jacobian(value, t)
        parts = (value, rate, ca.jacobian(rate, t))
        return ca.Function("signal", [t], [ca.densify(ca.SX(part)) for part in parts])

    def at(self, t: Matrix) -> dict[str, Matrix]:
        """Return the value and its derivatives at time t."""
        named = zip(ORDERS, self.function(t), strict=True)
        return {f"{self.signal}.{order}": part for order, part in named}
