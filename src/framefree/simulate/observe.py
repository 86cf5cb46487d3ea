"""What is recorded of a loop: from its states to joint states, inputs, references and signals.

Recorded rows are evaluated together, as one batch, after the loop has made them.
"""

from collections.abc import Iterable
from functools import cached_property
from typing import Any

import casadi as ca
import numpy as np

from framefree.errors import near
from framefree.kernel import compile
from framefree.motion import State
from framefree.simulate.columns import Channel, state_channels
from framefree.simulate.disturbances import Moment
from framefree.simulate.errors import SimulationError
from framefree.simulate.loop import ControlLoop
from framefree.simulate.plants import Signal, plant_signals

Matrix = Any

RECORDED = ("energy", "constraint", "interaction", "stop", "joint_wrench")
"""What is recorded of a plant by default, as far as it has it."""
FROM_ALL_FORCES = ("joint_wrench", "acceleration")
"""What our equations give only where they know all forces, those of contacts included."""


ESTIMATE_UNITS = {
    "unknown_force": "N, Nm",
    "gyroscope_bias": "rad/s",
    "accelerometer_bias": "m/s^2",
}


class Observer:
    """Evaluates everything that is recorded at states of a loop.

    Parameters
    ----------
    loop : ControlLoop
    record : iterable of str
        What to record of the plant beside states and inputs: "energy", "momentum",
        "joint_wrench", "constraint", "interaction".
    unknown : tuple of str
        What of these our equations do not know on this plant: left out.
    """

    def __init__(
        self, loop: ControlLoop, record: Iterable[str], unknown: tuple[str, ...] = ()
    ) -> None:
        self.loop, self.unknown = loop, unknown
        self.channels: list[Channel] = []
        self._outputs: list[Matrix] = []
        self._trace(tuple(record))
        names = [f"o{i}" for i in range(len(self._outputs))]
        self.function = ca.Function(
            "observe", list(loop.symbols.values()), self._outputs, list(loop.symbols), names
        )
        shapes: dict[str, tuple[int, ...]] = {
            name: channel.shape for name, channel in zip(names, self.channels, strict=True)
        }
        self.kernel = compile(self.function, shapes={**shapes, "time": (), "h": ()})

    def __call__(self, **inputs: Any) -> dict[tuple[str, str], np.ndarray]:
        """Return all channels, by group and name, for a batch of states."""
        values = self.kernel(**{name: inputs[name] for name in self.loop.symbols})
        values = values if isinstance(values, tuple) else (values,)
        pairs = zip(self.channels, values, strict=True)
        return {channel.key: value for channel, value in pairs}

    def _trace(self, record: tuple[str, ...]) -> None:
        loop, s = self.loop, self.loop.symbols
        state = loop.plant.at(s["x"], s["v"], s["time"])
        acting, (command, estimated) = loop.acting(state)
        moment = Moment(s["time"], s["time"], s["h"])
        load, u = loop.plant_side.load(state, moment, loop.symbol("drive"), acting)
        for channel, value in zip(
            state_channels(loop.machine), (state.joint_x, state.joint_v, u), strict=True
        ):
            self._add(channel, value)
        self._add_references()
        units = {} if loop.law is None else loop.law.units
        for name, value in command.signals.items():
            self._add_matrix("signals", name, value, units.get(name, ""))
        if estimated is not None:
            for name, value in estimated.signals.items():
                self._add_matrix("signals", name, value, ESTIMATE_UNITS.get(name, ""))
        if loop.drive is not None or loop.delay:
            channel = state_channels(loop.machine)[2]
            self._add(
                Channel("signals", "command", channel.shape, channel.entries, channel.units),
                command.u,
            )
        self._add_signals(state, load, record)
        if loop.live is not None:
            for k, name in enumerate(loop.live.names):
                self._add(Channel("signals", name, ()), loop.live.symbols[k])

    def _add_references(self) -> None:
        loop = self.loop
        units = {} if loop.reference is None else loop.reference.units
        for name, value in loop.law_side.references(loop.symbols["time"]).items():
            own = self._channel_of_model(name, ca.SX(value))
            if own is not None:
                self._add(own, value)
            else:
                self._add_matrix("reference", name, value, units.get(name, ""))

    @cached_property
    def _model_channels(self) -> dict[str, tuple[Channel, tuple[str, ...]]]:
        """Channels of the law's joints, and units, of references by their names."""
        model = self.loop.machine if self.loop.law is None else self.loop.law.machine
        x, v, _ = state_channels(model)
        accelerations = tuple(unit and f"{unit}^2" for unit in v.units)
        return {"x": (x, x.units), "v": (v, v.units), "a": (v, accelerations)}

    def _channel_of_model(self, name: str, value: Matrix) -> Channel | None:
        """Return a channel with the names of the law's joints where a reference has their size."""
        known = self._model_channels
        if name not in known or value.shape != (known[name][0].size, 1):
            return None
        like, units = known[name]
        return Channel("reference", name, like.shape, like.entries, units)

    def _add_signals(self, state: State, load: Any, record: tuple[str, ...]) -> None:
        available = plant_signals(state, load)
        for word in record:
            # What is recorded by default is left out where a plant has none of it.
            if word not in (*available, "constraint", "interaction", "stop") and record != RECORDED:
                raise SimulationError(
                    f"`record` cannot be `{word}`; {near(word, available)}choose from: "
                    + ", ".join(available)
                )
        for word, make in available.items():
            if word in record and word not in self.unknown:
                for name, signal in make().items():
                    self._add(_channel(name, signal), signal.value.value)

    def _add_matrix(self, group: str, name: str, value: Matrix, unit: str) -> None:
        """Add a casadi matrix: a scalar, a vector, or a matrix of rows and columns."""
        value = ca.SX(value)
        rows, columns = value.shape
        shape = () if (rows, columns) == (1, 1) else (rows,) if columns == 1 else (rows, columns)
        self._add(Channel(group, name, shape, units=(unit,)), value)

    def _add(self, channel: Channel, value: Matrix) -> None:
        if any(known.key == channel.key for known in self.channels):
            raise SimulationError(
                f"there are two signals `{channel.name}`: a law must not name one like a signal "
                "of the plant"
            )
        self.channels.append(channel)
        self._outputs.append(ca.densify(ca.SX(value)))


def _channel(name: str, signal: Signal) -> Channel:
    return Channel("signals", name, signal.value.shape, signal.names, signal.units)
