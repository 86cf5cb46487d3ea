"""What goes into the law's side of a loop: readings, reference and memory, with their symbols.

Each has a symbol of its own in the exported step, and is an expression in a simulated loop: the
reading of a sensor there is what the plant's side makes of the state. So inputs of every step of a
recorded run can be told.
"""

from collections.abc import Mapping
from dataclasses import replace
from functools import cached_property
from typing import Any, NamedTuple

import casadi as ca
import numpy as np

from framefree.control.estimation import Reading
from framefree.control.law import NumericLaw, Timing
from framefree.export.block import BlockPort
from framefree.export.errors import ExportError
from framefree.export.recording import LoopRecord, RecordedLoop
from framefree.kernel import compile
from framefree.kernel.c_source import identifier
from framefree.simulate.columns import state_channels
from framefree.simulate.loop import ControlLoop

Matrix = Any
FRESH = "_fresh"


class PortSlot(NamedTuple):
    """A port, its symbol, and what it is in a simulated loop."""

    port: BlockPort
    symbol: Matrix
    simulated: Matrix


class ControllerPorts:
    """Ports of the law's side of a recorded loop.

    Parameters
    ----------
    recorded : RecordedLoop
    """

    def __init__(self, recorded: RecordedLoop) -> None:
        self.recorded = recorded
        if recorded.scene.law is None:
            raise ExportError("this run has no law: `plant` and `loop` can be exported")
        self.loop = self._native_loop()
        self.law: Any = self.loop.law
        if isinstance(self.law, NumericLaw) and not self.law.native:
            self.law.program()  # raises, with the law that can
        self.sensors, self.reference = self._sensors(), self._references()
        self.memory = self._memory()

    def _native_loop(self) -> ControlLoop:
        """Return the loop; one that MuJoCo runs from Python with the law in native calls."""
        loop, law = self.recorded.loop, self.recorded.scene.law
        if not self.recorded.options.stepwise or not isinstance(law, NumericLaw):
            return loop
        return replace(loop, law=law.timed(Timing(self.recorded.period, 0, True)))

    @property
    def slots(self) -> list[PortSlot]:
        """All inputs of the step."""
        return [*self.sensors, *self.reference, *self.memory]

    @property
    def names(self) -> list[str]:
        """Their names in its program."""
        groups = (("sensors", self.sensors), ("reference", self.reference))
        names = [f"{group}_{slot.port.name}" for group, slots in groups for slot in slots]
        return [*names, *(f"memory_{slot.port.name}" for slot in self.memory)]

    def symbol(self, name: str) -> Matrix:
        """Return the symbol of a reading or of a part of the memory; empty where there is none."""
        for slot in (*self.sensors, *self.memory):
            if slot.port.name == name:
                return slot.symbol
        return ca.SX(0, 1)

    def matrix(self, slot: PortSlot) -> Matrix:
        """Return the symbol of a slot in the shape that it has in the loop."""
        rows, columns = ca.SX(slot.simulated).shape
        return ca.reshape(slot.symbol, columns, rows).T

    @cached_property
    def _plant_state(self) -> Any:
        s = self.loop.symbols
        return self.loop.plant.at(s["x"], s["v"], s["time"])

    @cached_property
    def readings(self) -> dict[str, Reading]:
        """What the sensors say in a simulated loop."""
        loop, estimation, s = self.loop, self.loop.estimation, self.loop.symbols
        if estimation is None or estimation.sensors is None:
            return {}
        acting = loop.forces_on(
            self._plant_state, s["time"], loop.symbol("drive"), loop.symbol("held"), s.get("touch")
        )
        memory = loop.symbol("estimate")[: self._sensor_memory, :]
        return estimation.sensors.read(
            memory, self._plant_state, acting, loop.symbol("noise")
        )[0]  # fmt: skip

    @property
    def _sensor_memory(self) -> int:
        """Size of what the sensors themselves remember."""
        estimation: Any = self.loop.estimation
        drives = self.loop.symbol("drive").shape[0]
        return self.loop.symbol("estimate").shape[0] - estimation.own_size(drives)

    def _sensors(self) -> list[PortSlot]:
        loop, s, estimation = self.loop, self.loop.symbols, self.loop.estimation
        slots = [_slot(BlockPort("t", 1, units=("s",), about="time"), s["time"])]
        if estimation is None or not estimation.estimators:
            noise = None if self.readings else s.get("noise")
            state = self._plant_state
            measured = loop.law_side.measure(s["time"], state.joint_x, state.joint_v, noise)
            known = loop.law_side.correspondence
            channels = state_channels(self.law.machine)[:2]
            abouts = ("coordinates of the joints", "velocities of the joints")
            values = known.x(measured.x), known.v(measured.v)
            for channel, value, about in zip(channels, values, abouts, strict=True):
                port = BlockPort(channel.name, channel.size, channel.entries, channel.units, about)
                slots.append(_slot(port, value))
        taken = {slot.port.name for slot in slots}
        for name, reading in self.readings.items():
            own = identifier(name, taken)
            about = f"reading of the sensor {name}"
            slots.append(_slot(BlockPort(own, reading.value.shape[0], about=about), reading.value))
            words = f"1 where the reading of {name} is new, else 0"
            slots.append(_slot(BlockPort(f"{own}{FRESH}", 1, about=words), reading.fresh))
        if self._remembers and "drive" in s:
            words = "state of the drives, measured or modelled"
            slots.append(_slot(BlockPort("drive", s["drive"].shape[0], about=words), s["drive"]))
        return slots

    def _references(self) -> list[PortSlot]:
        """Return the reference signals, the lead of a prediction ahead."""
        slots, taken = [], set()
        signals = self.loop.law_side.references(self.ahead(self.loop.symbols["time"]))
        x, v, _ = state_channels(self.law.machine)
        known = {"x": (x.entries, x.units), "v": (v.entries, v.units)}
        known["a"] = (v.entries, tuple(unit and f"{unit}^2" for unit in v.units))
        for name in self.law.needs:
            if name not in signals:
                raise ExportError(f"the law {self.law.name} needs a reference `{name}`")
            value = ca.SX(signals[name])
            entries, units = known.get(name, ((), ()))
            if len(entries) != value.numel():
                entries, units = (), ()
            about = f"reference {name}" + (", row by row" if value.shape[1] > 1 else "")
            own = identifier(name, taken)
            slots.append(_slot(BlockPort(own, value.numel(), entries, units, about), value))
        return slots

    def ahead(self, t: Matrix) -> Matrix:
        """Return the time for which the reference is read: the lead of a prediction later."""
        predictor = self.loop.predictor
        return t if predictor is None else t + predictor.lead

    @property
    def _remembers(self) -> bool:
        """Whether commands that were sent are needed again."""
        estimation = self.loop.estimation
        observed = estimation is not None and estimation.observer is not None
        return self.loop.predictor is not None or observed

    def _memory(self) -> list[PortSlot]:
        s, slots = self.loop.symbols, []
        if "memory" in s:
            slots.append(_kept(BlockPort("law", s["memory"].shape[0], about="of the law"), s))
        if "estimate" in s:
            own = s["estimate"][self._sensor_memory :, :]
            if own.shape[0]:
                port = BlockPort("estimate", own.shape[0], about="of estimators and observer")
                slots.append(_slot(port, own))
        if self._remembers:
            u = state_channels(self.loop.machine)[2]
            about = "the command that acts"
            slots.append(_kept(BlockPort("held", u.size, u.entries, u.units, about), s))
            if "pipe" in s:
                about = "commands on their way, the oldest first"
                slots.append(_kept(BlockPort("pipe", s["pipe"].shape[0], about=about), s))
        for name in self.loop.parameter_names:
            machine = self.loop.machine if name == "parameters" else self.law.machine
            port = BlockPort(
                name, s[name].shape[0], machine.parameters.names, about="tunable numbers"
            )
            # Laws and plants have these very symbols in their expressions.
            slots.append(PortSlot(port, s[name], s[name]))
        return slots

    def recorded_inputs(self, record: LoopRecord) -> dict[str, np.ndarray]:
        """Return all inputs of the step, by their names in its program, along a recorded run."""
        return self._evaluated(record.values, self.slots, self.names)

    def values_at(
        self, first: Mapping[str, np.ndarray], slots: list[PortSlot]
    ) -> dict[str, np.ndarray]:
        """Return what slots hold where parts of the loop's state are given, and the rest zero."""
        if not slots:
            return {}
        values = {"time": np.zeros(1), "h": np.full(1, self.recorded.options.dt), **first}
        values.setdefault("noise", np.zeros(self.loop.symbol("noise").shape[0]))
        rows = {name: np.atleast_2d(value) for name, value in values.items()}
        found = self._evaluated(rows, slots, [slot.port.name for slot in slots])
        return {name: array[0] for name, array in found.items()}

    def _evaluated(
        self, values: Mapping[str, np.ndarray], slots: list[PortSlot], names: list[str]
    ) -> dict[str, np.ndarray]:
        loop = self.loop
        flat = [ca.densify(ca.vec(ca.SX(slot.simulated).T)) for slot in slots]
        labels = [f"o{k}" for k in range(len(flat))]
        function = ca.Function(
            "sense", list(loop.symbols.values()), flat, list(loop.symbols), labels
        )
        kernel = compile(function)
        rows = len(values["time"])
        given = {
            name: np.broadcast_to(values[name], (rows, symbol.shape[0]))
            if name in values
            else np.zeros((rows, symbol.shape[0]))
            for name, symbol in loop.symbols.items()
        }
        arrays: dict[str, Any] = {n: np.ascontiguousarray(array) for n, array in given.items()}
        results = kernel(**arrays)
        results = results if isinstance(results, tuple) else (results,)
        return {name: np.asarray(one) for name, one in zip(names, results, strict=True)}


def _slot(port: BlockPort, simulated: Matrix) -> PortSlot:
    return PortSlot(port, ca.SX.sym(port.name, port.size), ca.SX(simulated))


def _kept(port: BlockPort, symbols: Mapping[str, Matrix]) -> PortSlot:
    name = "memory" if port.name == "law" else port.name
    return _slot(port, symbols[name])
