"""A law that is called again and again from Python, and remembers what it must."""

from collections.abc import Mapping
from typing import Any

import casadi as ca
import numpy as np

from framefree.control.errors import ControlError
from framefree.control.law_program import READING, UNKNOWN_FORCE, LawCall, port_name

KILOHERTZ = 1e-3
"""Control period, s, where none is given."""
PUNCTUAL = 0.01
"""By how much of a control period a call may be early or late."""


class LawStepper:
    """Calls a law period by period.

    Parameters
    ----------
    law : AnyLaw
        As it is for the control period.
    program : LawProgram or None
        The law as a program without a fixed period; None for a law that is Python.
    call : LawCall
    make : callable
        From u, signals and memory to what a step returns.
    timed : bool
        Whether the law was made for the period.
    """

    def __init__(self, law: Any, program: Any, call: LawCall, make: Any, timed: bool) -> None:
        self.law, self.call, self.make = law, call, make
        self.kernel = None if program is None else program.compile()
        self.signals = () if program is None else program.signals
        inputs = () if self.kernel is None else self.kernel.inputs
        moves = timed or any(port.name == "period" for port in inputs)
        self.moves = moves and len(law.memory) > 0
        self.memory: np.ndarray | None = None
        self.time: float | None = None

    def __call__(
        self,
        t: float,
        x: Any,
        v: Any,
        signals: Mapping[str, Any],
        readings: Mapping[str, Any],
        unknown_force: Any,
        parameters: Any,
    ) -> Any:
        """Return the command now."""
        machine = self.law.machine
        state = {"x": _sized(x, (machine.nx,), "x"), "v": _sized(v, (machine.nv,), "v")}
        t = float(_sized(t, (), "t"))
        self._keep_time(t)
        if self.memory is None:
            self.memory = self._first_memory(state["x"], state["v"], parameters)
        values = machine.parameters.values(parameters)
        if self.kernel is None:
            made = self._asked(t, state, {**signals, **readings}, values)
        else:
            inputs = {"t": t, **state, "memory": self.memory, "parameters": values}
            inputs["period"] = self.call.period
            inputs |= self._named(signals, readings, unknown_force)
            made = self._evaluated(inputs)
        self.memory = self.memory if made.memory is None else made.memory
        return made

    def _keep_time(self, t: float) -> None:
        """Refuse calls that come too early or too late for what the law remembers."""
        before, self.time = self.time, t
        period: Any = self.call.period
        if before is None or not self.moves or abs(t - before - period) <= PUNCTUAL * period:
            return
        self.time = before
        raise ControlError(
            f"the law {self.law.name} remembers over control periods of {period:g} s, but was "
            f"called at {before:g} s and then at {t:g} s: give `period`, or `law.reset()` to start "
            "anew"
        )

    def _first_memory(self, x: np.ndarray, v: np.ndarray, parameters: Any) -> np.ndarray:
        machine = self.law.machine
        symbols = [ca.SX.sym("x", machine.nx), ca.SX.sym("v", machine.nv)]
        value = ca.densify(ca.SX(self.law.first_memory(*symbols)))
        own = machine.parameters
        function = ca.Function("first", [*symbols, own.symbols], [value])
        return np.array(function(x, v, own.values(parameters))).ravel()

    def _named(
        self, signals: Mapping[str, Any], readings: Mapping[str, Any], unknown_force: Any
    ) -> dict[str, Any]:
        """Return reference signals and readings by the names of the kernel's inputs."""
        law, named = self.law, {}
        if self.call.reference is None:
            for name in law.needs:
                value = _given(signals, name, "reference signal", law)
                rows, columns = law.shapes[name]
                shape = (rows, columns) if columns > 1 else (rows,)
                named[f"reference_{port_name(name)}"] = _sized(value, shape, name)
        for name in law.measures:
            value = _given(readings, name, "reading", law)
            named[f"measured_{port_name(name)}"] = _sized(value, READING[:1], name)
        if self.call.unknown_force:
            named[UNKNOWN_FORCE] = _sized(unknown_force, (law.machine.nv,), UNKNOWN_FORCE)
        return named

    def _evaluated(self, inputs: dict[str, Any]) -> Any:
        kernel: Any = self.kernel
        values = kernel(**{port.name: inputs[port.name] for port in kernel.inputs})
        values = values if isinstance(values, tuple) else (values,)
        u, *rest = values
        memory = rest.pop() if len(rest) > len(self.signals) else None
        return self.make(u, dict(zip(self.signals, rest, strict=True)), memory)

    def _asked(
        self,
        t: float,
        state: Mapping[str, np.ndarray],
        signals: Mapping[str, Any],
        values: np.ndarray,
    ) -> Any:
        """Ask a law that is Python."""
        if self.call.reference is not None:
            now = self.call.reference.at(ca.DM(t))
            signals = {**{n: _plain(now[n]) for n in self.law.needs}, **signals}
        for name in (*self.law.needs, *self.law.measures):
            _given(signals, name, "signal", self.law)
        more: dict[str, Any] = {"parameters": values} if values.size else {}
        return self.law.command(t, state["x"], state["v"], signals, self.memory, **more)


def _given(values: Mapping[str, Any], name: str, what: str, law: Any) -> Any:
    if name not in values:
        known = ", ".join(f"`{key}`" for key in values) or "none"
        raise ControlError(f"the law {law.name} needs the {what} `{name}`; given: {known}")
    return values[name]


def _sized(value: Any, shape: tuple[int, ...], name: str) -> np.ndarray:
    try:
        array = np.asarray(value, float)
    except (TypeError, ValueError):
        expected = f"{shape} numbers" if shape else "a number"
        raise ControlError(f"`{name}` must be {expected}, got {value!r}") from None
    if array.shape != shape:
        raise ControlError(f"`{name}` must have shape {shape}, got {array.shape}")
    return array


def _plain(value: Any) -> np.ndarray:
    array = ca.DM(value).full()
    return array.ravel() if array.shape[1] == 1 else array
