"""What an estimator is: from readings of sensors to the state of joints, period by period.

To add one, subclass `StateEstimator` (a frozen dataclass serves well) and give

1. ``machine``: the law's model, of whose joints it estimates some;
2. ``joints``: names of these joints. Several estimators may share a machine, joint by joint;
3. ``reads``: names of the sensors it needs;
4. ``first_memory(x, v)``: what it carries from one control period to the next, at the first state
   of the machine (casadi columns, symbols among them);
5. ``update(memory, readings, period)``: the `StateEstimate`, as casadi expressions. It is
   called once in every control period, when the readings of that moment are there, those that
   come late or seldom with `Reading.fresh` zero in between.

What an estimator takes for known of its sensors (noise, delay) are its own numbers: sensors may
differ from them, as a plant may from a law's model.
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

from framefree.machine import Machine

Matrix = Any

_NOTHING: Mapping[str, Any] = MappingProxyType({})


class Reading(NamedTuple):
    """What a sensor says.

    Attributes
    ----------
    value : column
    fresh : scalar
        1 where the value is new in this control period, 0 where it is an old one.
    """

    value: Matrix
    fresh: Matrix = 1


class StateEstimate(NamedTuple):
    """What an estimator gives.

    Attributes
    ----------
    x, v : mapping of joint to column
        Coordinates and velocities of its joints, now.
    memory : column
        Next value of the memory.
    signals : mapping of str to casadi matrix
        Anything worth recording, such as biases.
    """

    x: Mapping[str, Matrix]
    v: Mapping[str, Matrix]
    memory: Matrix
    signals: Mapping[str, Matrix] = _NOTHING


class StateEstimator(ABC):
    """Base of all estimators of states; see the contract at the top of this file."""

    machine: Machine

    @property
    @abstractmethod
    def joints(self) -> tuple[str, ...]:
        """Names of the joints whose state it gives."""

    @property
    @abstractmethod
    def reads(self) -> tuple[str, ...]:
        """Names of the sensors that it needs."""

    @abstractmethod
    def first_memory(self, x: Matrix, v: Matrix) -> Matrix:
        """Return the memory at the first state of the machine."""

    @abstractmethod
    def update(
        self, memory: Matrix, readings: Mapping[str, Reading], period: float
    ) -> StateEstimate:
        """Return the state now, after the readings of this control period."""
