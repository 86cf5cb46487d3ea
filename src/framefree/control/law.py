"""What a control law is: a pure function from time, state and reference to inputs.

To add one, subclass `Law` (a frozen dataclass serves well: its fields then go into the record of a
run) and give

1. ``machine``: the model the law is made for. The plant may be another machine; its joints and
   actuators are then found by name;
2. ``control(t, x, v, reference, memory)``: the `Command`, as casadi expressions. x and v are the
   model's coordinates and velocities, columns;
3. ``needs``: names of the reference signals it reads;
4. ``memory``: the initial value of what the law carries with it, if any; ``first_memory(x, v)``
   where it depends on the first state. The memory changes in two ways. `Command.rate` is its rate:
   it is integrated with the loop, by the integrator together with the velocities where the law is
   evaluated at every stage, and over the control period with the value at its beginning where the
   law is sampled. `Command.memory` is what it becomes at an evaluation (or, where the law is
   evaluated at every stage, once a step); a law that gives both has the rate added to it;
5. ``timed(timing)``: the law as it must be for a control period and a delay, where it matters: a
   law that remembers its own commands;
6. ``takes``: names of what it can use where the loop knows it, beside the reference signals and
   among them: `UNKNOWN_FORCE`, the estimate (nv) of forces on its velocities that its machine does
   not have. Such a law works without as well;
7. ``follows_time``: whether it hands the time to its model. Only such a law can have a machine with
   interactions that depend on time;
8. ``measures``: names of the sensors whose readings it needs beside its state. It finds them among
   the reference signals, under these names; runs record them;
9. ``units``: units of its signals, for the record: {"V": "J"}.

A law that cannot be written as expressions, such as one with an iterative solver in it, is a
`NumericLaw`: it gives ``command`` on NumPy arrays instead of ``control``, says in ``signals`` what
it will record, and is evaluated from Python once a control period. Where its machine has tunable
numbers, ``command`` gets their values as ``parameters``; a law that takes them is ``tunable``. One
that is ``native`` can also be made of native calls (`framefree.kernel.loops.Calls`): its ``write``
appends them to a program, so that it is part of the compiled step of a loop, and may be evaluated
all the time.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, ClassVar, NamedTuple

import casadi as ca
import numpy as np

from framefree.errors import FramefreeError
from framefree.machine import Machine

Matrix = Any
"""A casadi SX or DM matrix."""

UNKNOWN_FORCE = "unknown_force"
"""Name of an estimate (nv) of forces that the model does not have; see the contract above."""

_NOTHING: Mapping[str, Any] = MappingProxyType({})


class ControlError(FramefreeError):
    """A law or a reference that cannot be as described."""


class Command(NamedTuple):
    """What a law gives.

    Attributes
    ----------
    u : (nu, 1)
        Inputs of the actuators of the law's machine.
    signals : mapping of str to casadi matrix
        Anything worth recording: "V", "V_rate", errors.
    memory : casadi column or None
        Next value of the memory; None keeps it.
    rate : casadi column or None
        Rate of the memory, per s; None where it does not move by itself.
    """

    u: Matrix
    signals: Mapping[str, Matrix] = _NOTHING
    memory: Matrix | None = None
    rate: Matrix | None = None

    def memory_after(self, memory: Matrix, period: Matrix) -> Matrix:
        """Return the memory a control period after it was `memory`."""
        following = memory if self.memory is None else self.memory
        return following if self.rate is None else following + period * self.rate


class Timing(NamedTuple):
    """When a law is evaluated and when its commands act.

    Attributes
    ----------
    period : float
        Control period, s; 0 where the law is evaluated all the time.
    delay : int
        Control periods from the state that the law is evaluated at to the use of its command. A
        prediction over the delay makes it 0.
    """

    period: float = 0.0
    delay: int = 0


class AnyLaw(ABC):
    """What all laws have; see the contract at the top of this file."""

    machine: Machine
    needs: tuple[str, ...] = ()
    takes: tuple[str, ...] = ()
    measures: tuple[str, ...] = ()
    follows_time: ClassVar[bool] = False
    units: ClassVar[Mapping[str, str]] = _NOTHING

    @property
    def name(self) -> str:
        """What the law is called in records."""
        return type(self).__name__

    @property
    def memory(self) -> np.ndarray:
        """Initial memory (n,)."""
        return np.zeros(0)

    def first_memory(self, x: Matrix, v: Matrix) -> Matrix:
        """Return the initial memory at the first state, casadi columns of the law's machine."""
        return ca.DM(self.memory)

    def timed(self, timing: Timing) -> "AnyLaw":
        """Return the law for a control period and a delay; most laws do not depend on them."""
        return self


class Law(AnyLaw):
    """Base of all laws that are expressions; see the contract at the top of this file."""

    @abstractmethod
    def control(
        self, t: Matrix, x: Matrix, v: Matrix, reference: Mapping[str, Matrix], memory: Matrix
    ) -> Command:
        """Return the inputs, and what is to be recorded, at a state of the law's machine."""


class NumericCommand(NamedTuple):
    """What a law in numbers gives: as `Command`, on NumPy arrays."""

    u: np.ndarray
    signals: Mapping[str, Any] = _NOTHING
    memory: np.ndarray | None = None


class LawBlocks(NamedTuple):
    """Where a program of calls holds what a law is evaluated at.

    Attributes
    ----------
    t, x, v, memory : Block
    reference : mapping of str to Block
        Of the signals that the law needs; matrices row by row.
    parameters : Block or None
        Values of the tunable numbers of the law's machine.
    """

    t: Any
    x: Any
    v: Any
    memory: Any
    reference: Mapping[str, Any]
    parameters: Any = None


class NumericLaw(AnyLaw):
    """Base of laws in numbers; see the contract at the top of this file.

    A law must depend on nothing but its arguments: what it remembers is its memory.
    """

    tunable: ClassVar[bool] = False
    """Whether `command` takes values of tunable numbers as `parameters`."""

    @property
    def native(self) -> bool:
        """Whether the law can `write` itself as native calls."""
        return False

    def write(self, calls: Any, inputs: LawBlocks, column: Any) -> None:
        """Append calls that write u, all signals in order, row by row, and memory to a block."""
        raise ControlError(f"the law {self.name} is evaluated in Python only")

    @property
    def signals(self) -> Mapping[str, tuple[int, ...]]:
        """Shapes of all signals by name."""
        return _NOTHING

    @abstractmethod
    def command(
        self,
        t: float,
        x: np.ndarray,
        v: np.ndarray,
        reference: Mapping[str, np.ndarray],
        memory: np.ndarray,
    ) -> NumericCommand:
        """Return the inputs, and what is to be recorded, at a state of the law's machine."""


@dataclass(frozen=True)
class OpenLoop(Law):
    """Inputs that depend on time alone.

    Parameters
    ----------
    machine : Machine
    inputs : callable
        From the time t (casadi scalar, s) to the inputs (nu).
    """

    machine: Machine
    inputs: Callable[[Matrix], Any]

    def control(
        self, t: Matrix, x: Matrix, v: Matrix, reference: Mapping[str, Matrix], memory: Matrix
    ) -> Command:
        """Return the inputs at time t."""
        u = self.inputs(t)
        return Command(ca.vertcat(*u) if isinstance(u, list | tuple) else u)
