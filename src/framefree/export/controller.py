"""The law's side of a loop as one step: estimators, observer, prediction, law, allocation, limits.

    sensors, reference, memory --> estimate --> predict --> law --> limit --> u, next memory

What the plant's side of a simulation makes of the state (readings of sensors, the state of drives)
goes in; the command for the actuators comes out. A delay between the two lies outside.
"""

from collections.abc import Mapping
from dataclasses import replace
from functools import cached_property
from typing import Any, NamedTuple

import casadi as ca

from framefree.control.estimation import Reading
from framefree.control.law import Command, LawBlocks
from framefree.control.references.base import Reference
from framefree.export.block import BlockPort, StepBlock
from framefree.export.ports import ControllerPorts
from framefree.export.recording import RecordedLoop
from framefree.kernel.c_source import identifier
from framefree.kernel.expression import ExpressionProgram
from framefree.kernel.loops import Calls, Constant
from framefree.simulate.columns import state_channels
from framefree.simulate.estimation import Estimated
from framefree.simulate.law_side import LawInputs, LawSide, Measurement, Pending

Matrix = Any


class _GivenReference(Reference):
    """A reference whose signals are handed over."""

    def __init__(self, signals: Mapping[str, Matrix]) -> None:
        self.signals = signals

    def at(self, t: Matrix) -> dict[str, Matrix]:
        """Return the signals."""
        return dict(self.signals)


class _PredictedState(NamedTuple):
    """In the place of a predictor: the state that was predicted before."""

    lead: float
    x: Matrix
    v: Matrix

    def __call__(self, *_: Any) -> tuple[Matrix, Matrix]:
        """Return it."""
        return self.x, self.v


class Controller(ControllerPorts):
    """The law's side of a recorded loop, to be exported.

    Parameters
    ----------
    recorded : RecordedLoop
    name : str
        Of the functions and files in C.
    """

    def __init__(self, recorded: RecordedLoop, name: str = "controller") -> None:
        super().__init__(recorded)
        self.name = name

    @cached_property
    def _side(self) -> LawSide:
        given = {
            name: self.matrix(slot)
            for name, slot in zip(self.law.needs, self.reference, strict=True)
        }
        predictor: Any = self._prediction
        reference = _GivenReference(given)
        return replace(self.loop.law_side, reference=reference, predictor=predictor)

    @cached_property
    def _prediction(self) -> _PredictedState | None:
        """Symbols of the state that is predicted."""
        predictor, model = self.loop.predictor, self.law.machine
        if predictor is None:
            return None
        x, v = ca.SX.sym("x_ahead", model.nx), ca.SX.sym("v_ahead", model.nv)
        return _PredictedState(predictor.lead, x, v)

    @cached_property
    def _estimated(self) -> Estimated:
        """What is known; before a prediction, as symbols of its own."""
        known = self._known
        if self._prediction is None:
            return known

        def cut(value: Matrix) -> Matrix:
            return ca.SX.sym("known", *ca.SX(value).shape)

        return Estimated(
            cut(known.x),
            cut(known.v),
            None if known.force is None else cut(known.force),
            cut(known.memory),
            {name: cut(value) for name, value in known.signals.items()},
            {name: cut(value) for name, value in known.readings.items()},
        )

    @property
    def _cuts(self) -> list[tuple[str, Matrix, Matrix]]:
        """Names, symbols and values of what is known before a prediction."""
        cut, known = self._estimated, self._known
        pairs = [("x", cut.x, known.x), ("v", cut.v, known.v), ("memory", cut.memory, known.memory)]
        if known.force is not None:
            pairs.append(("force", cut.force, known.force))
        for group in ("signals", "readings"):
            values = getattr(known, group)
            pairs += [(n, symbol, values[n]) for n, symbol in getattr(cut, group).items()]
        return [pair for pair in pairs if pair[1].numel()]

    @cached_property
    def _known(self) -> Estimated:
        """What is known, by the symbols of sensors and memory."""
        estimation = self.loop.estimation
        measured = self.symbol("x"), self.symbol("v")
        if estimation is None:
            return Estimated(*measured, None, ca.SX(0, 1), {}, {})
        names = iter(self.sensors)
        readings = {}
        for name in self.readings:
            value = next(slot for slot in names if slot.port.about.endswith(f"sensor {name}"))
            readings[name] = Reading(value.symbol, next(names).symbol > 0.5)
        return estimation.from_readings(
            self.symbol("estimate"),
            readings,
            measured,
            self.symbol("drive"),
            self.symbol("held"),
        )

    @cached_property
    def _inputs(self) -> LawInputs:
        t = self.symbol("t")
        unused = Measurement(t, ca.SX(self.loop.machine.nx, 1), ca.SX(self.loop.machine.nv, 1))
        pending = Pending(self.symbol("drive"), self.symbol("pipe"), self.symbol("held"))
        return self._side.estimate(unused, pending, self._estimated)

    def _command(self, output: Matrix) -> Command:
        return self._side.command(self._inputs, self.symbol("law"), output)

    def _following(self, command: Command) -> dict[str, Matrix]:
        """Return the next memory."""
        nu, queue = self.loop.machine.nu, ca.vertcat(self.symbol("pipe"), command.u)
        following = {
            "law": command.memory_after(self.symbol("law"), self.recorded.period),
            "estimate": self._estimated.memory,
            "held": queue[:nu, :],
            "pipe": queue[nu:, :],
        }
        return {
            slot.port.name: following[slot.port.name]
            for slot in self.memory
            if slot.port.name in following
        }

    def _signals(self, command: Command) -> dict[str, Matrix]:
        return {**command.signals, **self._estimated.signals}

    def block(self) -> StepBlock:
        """Return the controller as a block."""
        u = state_channels(self.loop.machine)[2]
        about = "command for the actuators, within their limits"
        out = BlockPort("u", u.size, u.entries, u.units, about)
        output = self.loop.law_side.output
        column = ca.SX.sym("law_output", 0 if output is None else output.size)
        command = self._command(column)
        following = self._following(command)
        core = {"out_u": command.u}
        core |= {f"memory_{name}_next": value for name, value in following.items()}
        signals = {name: ca.SX(value) for name, value in self._signals(command).items()}
        taken: set[str] = set()
        ports = tuple(
            BlockPort(
                identifier(name, taken),
                value.numel(),
                units=(self.law.units.get(name, ""),),
                about=f"signal {name}",
            )
            for name, value in signals.items()
        )
        told = {
            f"signal_{port.name}": ca.vec(value.T)
            for port, value in zip(ports, signals.values(), strict=True)
        }
        start = self.values_at({**self.recorded.start, **self.recorded.constants}, self.memory)
        return StepBlock(
            self.name,
            f"{self.law.name} for {self.law.machine.name}",
            self._program("core", core, column),
            {
                "sensors": tuple(slot.port for slot in self.sensors),
                "reference": tuple(slot.port for slot in self.reference),
            },
            (out,),
            tuple(slot.port for slot in self.memory),
            start,
            self.recorded.period,
            tuple(self.loop.parameter_names),
            self._program("signals", told, column) if told else None,
            ports,
            self._reference_program(),
        )

    def _program(
        self, kind: str, outputs: Mapping[str, Matrix], column: Matrix
    ) -> ExpressionProgram | Calls:
        """Return a program from all inputs.

        A law of native calls makes one of calls; so does a prediction, whose steps are calls of one
        function.
        """
        symbols = [slot.symbol for slot in self.slots]
        dense = [ca.densify(ca.SX(value)) for value in outputs.values()]
        name = f"{self.name}_{kind}"
        if not column.numel() and self._prediction is None:
            return ExpressionProgram(ca.Function(name, symbols, dense, self.names, list(outputs)))
        calls = Calls(name)
        blocks = [
            calls.input(own, (slot.port.size,))
            for own, slot in zip(self.names, self.slots, strict=True)
        ]
        wanted = list(dense)
        if column.numel():
            wanted += [ca.vec(ca.SX(value).T) for value in self._law_values]
        known, found = self._write_known(calls, symbols, blocks, wanted)
        symbols, blocks = [*symbols, *known], [*blocks, *found]
        if column.numel():
            symbols, blocks = [*symbols, column], [*blocks, self._write_law(calls, symbols, blocks)]
        ends = [
            calls.output(own, (value.numel(),)) for own, value in zip(outputs, dense, strict=True)
        ]
        calls.call(ca.Function("end", symbols, dense), blocks, ends)
        return calls

    def _write_known(
        self, calls: Calls, symbols: list[Matrix], blocks: list[Any], wanted: list[Matrix]
    ) -> tuple[list[Matrix], list[Any]]:
        """Append estimate and prediction; return symbols and blocks of what they give.

        Of the estimate only what the outputs that are `wanted` and the prediction depend on.
        """
        prediction = self._prediction
        if prediction is None:
            return [], []
        predictor: Any = self.loop.predictor
        ahead = [prediction.x, prediction.v]
        used = {one.element_hash() for value in wanted for one in ca.symvar(value)}
        cuts = [
            (symbol, value)
            for name, symbol, value in self._cuts
            if name in ("x", "v", "force")
            or any(one.element_hash() in used for one in ca.symvar(symbol))
        ]
        found = [calls.block(symbol.numel()) for symbol, _ in cuts]
        values = [ca.densify(ca.SX(value)) for _, value in cuts]
        calls.call(ca.Function("estimate", symbols, values), blocks, found)
        given = {id(symbol): block for (symbol, _), block in zip(cuts, found, strict=True)}
        given |= {id(symbol): block for symbol, block in zip(symbols, blocks, strict=True)}
        inner, drive = self._estimated, self.symbol("drive")
        start = [given[id(one)] for one in (inner.v, drive) if one.numel()]
        column = calls.block(sum(block.size for block in start))
        parts = [ca.SX.sym("part", block.size) for block in start]
        calls.call(ca.Function("column", parts, [ca.vertcat(*parts)]), start, [column])
        place, moved = given[id(inner.x)], self._moved()
        tunable = [slot.symbol for slot in self.memory if slot.port.name in self._tunable]
        rest = [given[id(one)] for one in tunable]
        if inner.force is not None:
            rest.insert(0, given[id(inner.force)])
        nu, pipe, held = self.loop.machine.nu, self.symbol("pipe"), self.symbol("held")
        for k, h in predictor.steps(pipe.shape[0] // max(nu, 1)):
            command = given[id(held)] if k is None else given[id(pipe)][k * nu : (k + 1) * nu]
            following = [calls.block(place.size), calls.block(column.size)]
            calls.call(moved, [place, column, command, Constant((h,)), *rest], following)
            place, column = following
        return [*(s for s, _ in cuts), *ahead], [*found, place, column[: self.law.machine.nv]]

    def _moved(self) -> ca.Function:
        """Return one step of the prediction: from x, (v, drive), command and duration on."""
        predictor: Any = self.loop.predictor
        inner, drive = self._estimated, self.symbol("drive")
        x = ca.SX.sym("x", inner.x.numel())
        column = ca.SX.sym("column", inner.v.numel() + drive.numel())
        command, h = ca.SX.sym("command", self.loop.machine.nu), ca.SX.sym("h")
        symbols = [x, column, command, h]
        force = None
        if inner.force is not None:
            force = ca.SX.sym("force", inner.force.numel())
            symbols.append(force)
        symbols += [slot.symbol for slot in self.memory if slot.port.name in self._tunable]
        moved = predictor.moved(x, column, command, h, force)
        return ca.Function("predict", symbols, [ca.densify(one) for one in moved])

    @property
    def _tunable(self) -> list[str]:
        return self.loop.parameter_names

    @property
    def _law_values(self) -> list[Matrix]:
        given = self._inputs
        return [given.t, given.x, given.v, *given.reference.values()]

    def _write_law(self, calls: Calls, symbols: list[Matrix], blocks: list[Any]) -> Any:
        """Append a law of native calls; return the block of its output."""
        flat = [ca.densify(ca.vec(ca.SX(value).T)) for value in self._law_values]
        found = [calls.block(value.numel()) for value in flat]
        calls.call(ca.Function("law_inputs", symbols, flat), blocks, found)
        count = len(self.slots)
        remembered = blocks[count - len(self.memory) : count]
        by_name = {s.port.name: b for s, b in zip(self.memory, remembered, strict=True)}
        memory = by_name.get("law", calls.zeros(0))
        shared = self.law.machine.parameters is self.loop.machine.parameters
        parameters = by_name.get("parameters" if shared else "law_parameters")
        references = dict(zip(self._inputs.reference, found[3:], strict=True))
        output: Any = self.loop.law_side.output
        written = calls.block(output.size)
        self.law.write(
            calls, LawBlocks(found[0], found[1], found[2], memory, references, parameters), written
        )
        return written

    def _reference_program(self) -> ExpressionProgram | None:
        """Return the reference of the run as a function of time, the lead of predictions ahead."""
        if not self.reference:
            return None
        t = ca.SX.sym("t")
        signals = self.loop.law_side.references(self.ahead(t))
        flat = [ca.densify(ca.vec(ca.SX(signals[name]).T)) for name in self.law.needs]
        names = [f"reference_{slot.port.name}" for slot in self.reference]
        return ExpressionProgram(
            ca.Function(f"{self.name}_reference", [t], flat, ["t"], names), ("t",)
        )
