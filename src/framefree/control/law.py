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
9. ``units``: units of its signals, for the record: {"V": "J"};
10. ``shapes``: rows and columns of the reference signals, where their names do not tell (see
    `framefree.control.law_program.conventional_shape`).

Every law is also a function: `AnyLaw.function`, `kernel`, `step`, `c_source`, `jax`.

A law that cannot be written as expressions, such as one with an iterative solver in it, is a
`NumericLaw`: it gives ``command`` on NumPy arrays instead of ``control``, says in ``signals`` what
it will record, and is evaluated from Python once a control period. Where its machine has tunable
numbers, ``command`` gets their values as ``parameters``; a law that takes them is ``tunable``. One
that is ``native`` can also be made of native calls (`framefree.kernel.loops.Calls`): its ``write``
appends them to a program, so that it is part of the compiled step of a loop, and may be evaluated
all the time. One that is not says in ``instead`` which law can.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Self

import casadi as ca
import numpy as np

from framefree.control.errors import ControlError
from framefree.control.law_program import (
    UNKNOWN_FORCE,
    LawBlocks,
    LawCall,
    LawProgram,
    conventional_shape,
    traced,
    written,
)
from framefree.control.stepping import KILOHERTZ, LawStepper
from framefree.kernel import Kernel, Precision
from framefree.kernel.c_source import CSource
from framefree.machine import Machine
from framefree.motion.given_machine import checked_machine

if TYPE_CHECKING:
    from framefree.control.references.base import Reference

__all__ = [
    "UNKNOWN_FORCE",
    "AnyLaw",
    "Command",
    "ControlError",
    "Law",
    "LawBlocks",
    "NumericCommand",
    "NumericLaw",
    "OpenLoop",
    "Timing",
]

Matrix = Any
"""A casadi SX or DM matrix."""

_NOTHING: Mapping[str, Any] = MappingProxyType({})


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
    native : bool
        Whether the law is part of a compiled step, so that it may be made of native calls.
    """

    period: float = 0.0
    delay: int = 0
    native: bool = False


class NumericCommand(NamedTuple):
    """What a law in numbers gives: as `Command`, on NumPy arrays."""

    u: np.ndarray
    signals: Mapping[str, Any] = _NOTHING
    memory: np.ndarray | None = None


class AnyLaw(ABC):
    """What all laws have; see the contract at the top of this file."""

    machine: Machine
    needs: tuple[str, ...] = ()
    takes: tuple[str, ...] = ()
    measures: tuple[str, ...] = ()
    follows_time: ClassVar[bool] = False
    units: ClassVar[Mapping[str, str]] = _NOTHING

    def __new__(cls, *arguments: Any, **options: Any) -> Self:
        """Refuse what is not a machine in the place of the machine, which is first in most laws."""
        first = next(iter(getattr(cls, "__dataclass_fields__", ())), "")
        if arguments and first == "machine":
            options = {"machine": arguments[0]}
        if "machine" in options:
            checked_machine(options["machine"], ControlError, f"`machine` of {cls.__name__}")
        return super().__new__(cls)

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

    @property
    def shapes(self) -> Mapping[str, tuple[int, int]]:
        """Rows and columns of the reference signals by name."""
        return {name: conventional_shape(self, name) for name in self.needs}

    # ------------------------------------------------------------------ the law as a function

    @abstractmethod
    def _program(self, call: LawCall) -> LawProgram:
        """Return the law, as it is for its control period, as a program."""

    def program(
        self,
        reference: "Reference | None" = None,
        *,
        period: float | None = None,
        signals: bool = True,
        unknown_force: bool = False,
    ) -> LawProgram:
        """Return the law as a program; `function`, `kernel` and `c_source` are made of it.

        It takes t (s), x (nx), v (nv), the reference signals `reference_NAME`, readings
        `measured_NAME` (6), an estimate `unknown_force` (nv), `memory`, `period` (s) and the
        tunable numbers `parameters` of its machine; it gives u (nu), all signals and
        `memory_next`. What the law does without is left out.

        Parameters
        ----------
        reference : Reference, optional
            Folded in: its signals then follow from t.
        period : float, optional
            Control period, s. Without one, a law whose memory moves by itself takes the time until
            its next call as an input.
        signals : bool
            Whether to give the signals too.
        unknown_force : bool
            Whether to take an estimate of unknown forces, where the law can use one.
        """
        call = LawCall(reference, signals, unknown_force, period)
        call.check_period()
        law = self if period is None else self.timed(Timing(float(period)))
        return law._program(call)

    def function(self, reference: "Reference | None" = None, **options: Any) -> ca.Function:
        """Return the law as a `casadi.Function`; see `program` for its arguments.

        A law with a solver in it is a call of its compiled code, with finite differences for
        derivatives: it stands in MX expressions, and must be kept by whoever uses it.
        """
        return self.program(reference, **options).function()

    def kernel(
        self,
        reference: "Reference | None" = None,
        *,
        precision: Precision = "double",
        **options: Any,
    ) -> Kernel:
        """Return the law as compiled code, for one state or many; see `program`.

        In "single" precision twice as many states run side by side, to about seven digits.
        """
        return self.program(reference, **options).compile(precision)

    def c_source(
        self, name: str | None = None, reference: "Reference | None" = None, **options: Any
    ) -> CSource:
        """Return the law as one function in C99; see `program`.

        A whole controller with its estimators, memory and test-bench is made by
        `framefree.export`.
        """
        if not isinstance(name, str | None):
            words = "`name` of the function in C must be text, and the reference comes after it"
            raise ControlError(f"{words}: got {name!r}")
        return self.program(reference, **options).c_source(name)

    def jax(self, reference: "Reference | None" = None, **options: Any) -> Callable:
        """Return the law as a JAX function; see `program`. Needs the extra `learn`."""
        return self.program(reference, **options).jax()

    def step(
        self,
        t: float,
        x: Any,
        v: Any,
        reference: "Reference | Mapping[str, Any] | None" = None,
        *,
        readings: Mapping[str, Any] = _NOTHING,
        unknown_force: Any = None,
        parameters: Any = None,
        period: float = KILOHERTZ,
    ) -> "NumericCommand":
        """Return u, signals and the next memory, and keep that memory for the next call.

        The first call starts from the memory at its state. The law itself does not change: the
        memory is that of this object's calls, until `reset()`; two machines need two laws.

        Parameters
        ----------
        t : float
            s.
        x : (nx,)
        v : (nv,)
        reference : Reference, or mapping of str to array
            What to follow, or its signals at this time by name.
        readings : mapping of str to (6,)
            Of the sensors that the law measures.
        unknown_force : (nv,), optional
            An estimate of unknown forces.
        parameters : mapping or (n,), optional
            Values of the tunable numbers of the law's machine.
        period : float
            Time from call to call, s. Where the memory depends on it, calls that are not on time
            are refused.
        """
        signals = reference if isinstance(reference, Mapping) else _NOTHING
        folded = None if isinstance(reference, Mapping) else reference
        call = LawCall(folded, True, unknown_force is not None, period)
        known = vars(self).get("_stepping")
        if known is None or known.call != call:
            known = vars(self)["_stepping"] = self._stepper(call)
        return known(t, x, v, signals, readings, unknown_force, parameters)

    def reset(self) -> None:
        """Forget what calls of `step` have remembered."""
        vars(self).pop("_stepping", None)

    def _stepper(self, call: LawCall) -> LawStepper:
        call.check(self)
        law = self.timed(Timing(float(call.period or 0.0)))
        program = law._stepped(replace(call, period=None))
        return LawStepper(law, program, call, NumericCommand, law is not self)

    def _stepped(self, call: LawCall) -> LawProgram | None:
        """Return the program that `step` compiles; None for a law that is Python."""
        return self._program(call)


class Law(AnyLaw):
    """Base of all laws that are expressions; see the contract at the top of this file."""

    @abstractmethod
    def control(
        self, t: Matrix, x: Matrix, v: Matrix, reference: Mapping[str, Matrix], memory: Matrix
    ) -> Command:
        """Return the inputs, and what is to be recorded, at a state of the law's machine."""

    def _program(self, call: LawCall) -> LawProgram:
        return traced(self, call)


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

    @property
    def instead(self) -> str:
        """What to use where a law in Python cannot be used, in words."""
        return (
            "a `Law`, which is written as expressions, can; so can LimitedTaskControl for tasks "
            "within limits"
        )

    def write(self, calls: Any, inputs: LawBlocks, column: Any, *, signals: bool = True) -> None:
        """Append calls that write u, all signals in order, row by row, and memory to a block.

        Without `signals`, u and memory alone.
        """
        raise self._refusal()

    def _refusal(self) -> ControlError:
        return ControlError(
            f"the law {self.name} is evaluated in Python and cannot be compiled or exported; "
            f"{self.instead}"
        )

    def _program(self, call: LawCall) -> LawProgram:
        if not self.native:
            raise self._refusal()
        return written(self, call)

    def _stepped(self, call: LawCall) -> LawProgram | None:
        return self._program(call) if self.native else None

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
