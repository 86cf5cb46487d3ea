"""A law as a program: from time, state and reference signals to inputs, signals and memory.

    t, x, v, reference_..., measured_..., unknown_force, memory, period, parameters
        -> u, signals, memory_next

Inputs that a law does without are left out. `reference_NAME` are the signals that it needs, unless
a reference is folded in, which follows from t; `measured_NAME` the readings (6) of the sensors that
it measures; `period` the time until it is called again, where its memory moves by itself and no
period is fixed. Names have underscores where those of signals have other characters.

An expression becomes a `casadi.Function`, a law of native calls a program of calls.
"""

import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from math import prod
from typing import Any, NamedTuple

import casadi as ca
import numpy as np

from framefree.control.errors import ControlError
from framefree.errors import FramefreeError
from framefree.kernel import Kernel, Precision
from framefree.kernel.c_source import CSource
from framefree.kernel.callback import KernelFunction
from framefree.kernel.expression import ExpressionProgram
from framefree.kernel.loops import Block, Calls
from framefree.machine import Machine

Matrix = Any

UNKNOWN_FORCE = "unknown_force"
"""Name of an estimate (nv) of forces that the model does not have; see `framefree.control.law`."""
READING = (6, 1)
"""Shape of a reading that a law measures: a wrench."""
OF_FRAMES = {"pose": (4, 4), "twist": (6, 1), "acceleration": (6, 1)}
OF_FRAMES |= {"velocity": (6, 1), "velocity_rate": (6, 1)}


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


@dataclass(frozen=True)
class LawCall:
    """How a law is to be called.

    Attributes
    ----------
    reference : Reference or None
        What is folded in.
    signals : bool
        Whether the law tells its signals.
    unknown_force : bool
        Whether an estimate of unknown forces is among the inputs.
    period : float or None
        Control period, s, where it is fixed.
    """

    reference: Any = None
    signals: bool = True
    unknown_force: bool = False
    period: float | None = None

    def check_period(self) -> None:
        """Refuse a period that is no time."""
        time = np.asarray(1.0 if self.period is None else self.period)
        if time.shape or time.dtype.kind not in "iuf" or not 0 < time < np.inf:
            raise ControlError(f"`period` must be a positive time in s, got {self.period!r}")

    def check(self, law: Any) -> None:
        """Refuse what the law cannot do."""
        self.check_period()
        if self.unknown_force and UNKNOWN_FORCE not in law.takes:
            raise ControlError(
                f"the law {law.name} does not take an estimate of unknown forces: leave out "
                "`unknown_force`"
            )
        if self.reference is not None and not callable(getattr(self.reference, "at", None)):
            raise ControlError(
                f"`reference` of the law {law.name} must be a Reference, as those of "
                f"`framefree.control.references`, or None, got {self.reference!r}"
            )
        words = unfollowed_time(law)
        if words:
            raise ControlError(words)


class LawProgram(ABC):
    """A law as a program.

    Parameters
    ----------
    made : ExpressionProgram or Calls
    signals : sequence of str
        Names of the signals, as the law has them, in the order of the outputs between u and
        memory_next.
    """

    def __init__(self, made: Any, signals: Iterable[str]) -> None:
        self.made, self.signals = made, tuple(signals)

    @abstractmethod
    def compile(self, precision: Precision = "double") -> Kernel:
        """Compile to native code, for one state or many; "single" for floats inside."""

    def c_source(self, name: str | None = None) -> CSource:
        """Return it as C99 with a header."""
        return self.made.c_source(name)

    @abstractmethod
    def function(self) -> ca.Function:
        """Return it as a `casadi.Function`."""

    @abstractmethod
    def jax(self) -> Callable:
        """Return it as a JAX function."""


class TracedLaw(LawProgram):
    """A law that is an expression."""

    made: ExpressionProgram

    def compile(self, precision: Precision = "double") -> Kernel:
        """Compile the expression."""
        return self.made.compile(precision)

    def function(self) -> ca.Function:
        """Return the expression."""
        return self.made.function()

    def jax(self) -> Callable:
        """Return it as a JAX function."""
        return self.made.jax()


class WrittenLaw(LawProgram):
    """A law of native calls."""

    made: Calls

    def compile(self, precision: Precision = "double") -> Kernel:
        """Compile the calls; they are in double precision."""
        if precision != "double":
            raise ControlError(
                f"the law {self.made.name} has a solver with loops in it, whose kernel has double "
                "precision only; its C has single precision (`framefree export ... --single`), and "
                "TaskControl, whose solvers are closed forms, has a kernel in it"
            )
        return self.made.compile()

    def function(self) -> ca.Function:
        """Return a call of the compiled law."""
        return KernelFunction(self.compile())

    def jax(self) -> Callable:
        """Refuse."""
        raise ControlError(
            f"the law {self.made.name} has a solver with loops in it, which JAX cannot have; "
            "TaskControl, whose solvers are closed forms, can"
        )


# ---------------------------------------------------------------------- what laws read


def conventional_shape(law: Any, name: str) -> tuple[int, int]:
    """Return rows and columns of a reference signal with one of the usual names."""
    machine: Machine = law.machine
    own = {"x": (machine.nx, 1), "v": (machine.nv, 1), "a": (machine.nv, 1)}
    frame, _, tail = name.rpartition(".")
    known = own.get(name) or (OF_FRAMES.get(tail) if frame else None)
    if known is None:
        raise ControlError(
            f"the size of the reference `{name}` of the law {law.name} is not known: fold a "
            "reference in, or let the law say it in `shapes`"
        )
    return known


def checked_reference(
    law: Any, signals: Mapping[str, Matrix], error: Callable[[str], FramefreeError] = ControlError
) -> Mapping[str, Matrix]:
    """Return reference signals; refuse those that are not what the law reads."""
    for name in law.needs:
        if name not in signals:
            known = ", ".join(f"`{key}`" for key in signals) or "none"
            raise error(f"the law {law.name} needs a reference `{name}`; given: {known}")
    for name, size in {"x": law.machine.nx, "v": law.machine.nv, "a": law.machine.nv}.items():
        if name in law.needs and ca.SX(signals[name]).shape != (size, 1):
            raise error(
                f"the reference `{name}` of the law {law.name} must have {size} entries, as "
                f"its machine has, got shape {ca.SX(signals[name]).shape}"
            )
    return signals


def unfollowed_time(law: Any) -> str:
    """Say what is wrong with a law whose machine depends on time while it does not; or nothing."""
    if not law.machine.timed or law.follows_time:
        return ""
    return (
        f"the law {law.name} does not follow the time, but its machine has interactions "
        "or a flow that depend on it; give it a machine with their `held_at(t)` in their place, or "
        "without them"
    )


def port_name(name: str) -> str:
    """Return a name that CasADi allows for an input or an output."""
    return re.sub(r"_+", "_", re.sub(r"\W", "_", name, flags=re.ASCII)).strip("_") or "signal"


def output_names(names: list[str], inputs: list[str]) -> list[str]:
    """Return names of outputs for signals, each once and none like an input."""
    taken, made = {*inputs, "u", "memory_next"}, []
    for name in map(port_name, names):
        free = name if name not in taken else next(
            f"{name}_{k}" for k in range(2, len(names) + 9) if f"{name}_{k}" not in taken
        )  # fmt: skip
        taken.add(free)
        made.append(free)
    return made


# ---------------------------------------------------------------------- expressions


def traced(law: Any, call: LawCall) -> LawProgram:
    """Return a law that is an expression as a function."""
    call.check(law)
    machine = law.machine
    t = ca.SX.sym("t")
    inputs = {"t": t, "x": ca.SX.sym("x", machine.nx), "v": ca.SX.sym("v", machine.nv)}
    if call.reference is None:
        signals = {n: ca.SX.sym(port_name(n), *law.shapes[n]) for n in law.needs}
        inputs |= {f"reference_{port_name(n)}": value for n, value in signals.items()}
    else:
        signals = dict(checked_reference(law, call.reference.at(t)))
    readings = {name: ca.SX.sym("measured", *READING) for name in law.measures}
    inputs |= {f"measured_{port_name(name)}": value for name, value in readings.items()}
    signals |= readings
    if call.unknown_force:
        inputs[UNKNOWN_FORCE] = signals[UNKNOWN_FORCE] = ca.SX.sym("force", machine.nv)
    memory, period = ca.SX.sym("memory", len(law.memory)), ca.SX.sym("period")
    command = law.control(t, inputs["x"], inputs["v"], signals, memory)
    u = ca.densify(ca.SX(command.u))
    if u.shape != (machine.nu, 1):
        raise ControlError(f"the law {law.name} must give {machine.nu} inputs, got shape {u.shape}")
    if memory.numel():
        inputs["memory"] = memory
    if command.rate is not None and memory.numel() and call.period is None:
        inputs["period"] = period
    if len(machine.parameters):
        inputs["parameters"] = machine.parameters.symbols
    told = dict(command.signals) if call.signals else {}
    names = output_names(list(told), list(inputs))
    outputs = {"u": u, **dict(zip(names, told.values(), strict=True))}
    if memory.numel():
        time = period if call.period is None else call.period
        outputs["memory_next"] = command.memory_after(memory, time)
    dense = [ca.densify(ca.SX(value)) for value in outputs.values()]
    function = ca.Function(
        port_name(law.name), list(inputs.values()), dense, list(inputs), list(outputs)
    )
    scalars = [name for name in inputs if name in ("t", "period")]
    scalars += [n for n, v in zip(outputs, dense, strict=True) if n != "u" and v.is_scalar()]
    scalars = [name for name in scalars if name != "memory_next"]
    return TracedLaw(ExpressionProgram(function, tuple(scalars)), told)


# ---------------------------------------------------------------------- native calls


def written(law: Any, call: LawCall) -> LawProgram:
    """Return a law of native calls as a program of calls."""
    call.check(law)
    calls, machine = Calls(port_name(law.name)), law.machine
    t, x = calls.input("t", ()), calls.input("x", (machine.nx,))
    v = calls.input("v", (machine.nv,))
    named = _references(calls, law, call, t)
    for name in law.measures:
        named[name] = calls.input(f"measured_{port_name(name)}", READING[:1])
    size = len(law.memory)
    memory = calls.input("memory", (size,)) if size else calls.zeros(0)
    count = len(machine.parameters)
    parameters = calls.input("parameters", (count,)) if count else None
    shapes = dict(law.signals) if call.signals else {}
    taken = [port.name for port, _ in calls.inputs]
    first = calls.output("u", (machine.nu,))
    for name, shape in zip(output_names(list(shapes), taken), shapes.values(), strict=True):
        calls.output(name, () if prod(shape) == 1 else shape)
    if size:
        calls.output("memory_next", (size,))
    # Outputs lie one after the other: together they are the column that the law writes.
    whole = Block(first.start, machine.nu + sum(map(prod, shapes.values())) + size)
    blocks = LawBlocks(t, x, v, memory, named, parameters)
    law.write(calls, blocks, whole, signals=call.signals)
    return WrittenLaw(calls, shapes)


def _references(calls: Calls, law: Any, call: LawCall, time: Block) -> dict[str, Block]:
    """Return the blocks of the reference signals, row by row: inputs, or what follows from t."""
    if call.reference is None:
        shapes = {name: law.shapes[name] for name in law.needs}
        return {
            name: calls.input(f"reference_{port_name(name)}", (a, b) if b > 1 else (a,))
            for name, (a, b) in shapes.items()
        }
    if not law.needs:
        return {}
    t = ca.SX.sym("t")
    signals = checked_reference(law, call.reference.at(t))
    columns = [ca.densify(ca.vec(ca.SX(signals[name]).T)) for name in law.needs]
    blocks = [calls.block(column.numel()) for column in columns]
    calls.call(ca.Function("reference", [t], columns), [time], blocks)
    return dict(zip(law.needs, blocks, strict=True))
