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
