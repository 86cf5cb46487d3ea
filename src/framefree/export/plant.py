"""A plant, and a whole loop, as one step in time: from inputs and states to the next states.

A step counts itself: the time follows from the number of steps, as in a simulation.
"""

from collections.abc import Mapping
from typing import Any

import casadi as ca
import numpy as np

from framefree.control.law import NumericLaw
from framefree.export.block import BlockPort, ContinuousForm, StepBlock
from framefree.export.recording import LoopRecord, RecordedLoop
from framefree.kernel import compile
from framefree.kernel.expression import ExpressionProgram
from framefree.kernel.loops import Calls
from framefree.simulate.actuation import limited
from framefree.simulate.columns import state_channels
from framefree.simulate.disturbances import Moment
from framefree.simulate.native_law import LAW_OUTPUT_NOW, write_native_step
from framefree.simulate.staged import is_long, write_staged_step

Matrix = Any
COUNT = "count_of_steps"
CONTINUOUS = ("x", "v", "drive")


class _Stepping:
    """What a plant and a loop share."""

    what: str

    def __init__(self, recorded: RecordedLoop, name: str) -> None:
        self.recorded, self.name, self.loop = recorded, name, recorded.loop
        self.integrator = recorded.explicit(self.what)
        self.count = ca.SX.sym(COUNT)

    def _time(self, stride: int) -> Matrix:
        return (self.count * stride) * self.recorded.options.dt

    def _memory_ports(self, names: list[str]) -> tuple[BlockPort, ...]:
        """Return the ports of the memory: number of steps, states, tunable numbers."""
        x, v, u = state_channels(self.loop.machine)
        words = {
            "x": "coordinates of the plant",
            "v": "velocities of the plant",
            "drive": "state of the drives",
            "memory": "of the law",
            "estimate": "of sensors, estimators and observer",
            "pipe": "commands on their way, the oldest first",
            "held": "the command that acts",
            "count": "steps since a command began to act",
            "law_output": "the latest output of the law",
        }
        channels = {"x": x, "v": v, "held": u}
        ports = [BlockPort(COUNT, 1, about="number of steps so far")]
        for name in names:
            size, channel = self.loop.symbols[name].shape[0], channels.get(name)
            entries, units = ((), ()) if channel is None else (channel.entries, channel.units)
            if len(entries) != size:
                entries, units = (), ()
            ports.append(BlockPort(name, size, entries, units, words.get(name, "")))
        for name in self.loop.parameter_names:
            law: Any = self.loop.law
            machine = self.loop.machine if name == "parameters" else law.machine
            symbol = self.loop.symbols[name]
            names_ = machine.parameters.names
            ports.append(BlockPort(name, symbol.shape[0], names_, about="tunable numbers"))
        return tuple(ports)

    def _start(self, ports: tuple[BlockPort, ...]) -> dict[str, np.ndarray]:
        values = {**self.recorded.start, **self.recorded.constants, COUNT: np.zeros(1)}
        return {port.name: np.asarray(values[port.name], float) for port in ports}

    def _joint_ports(self) -> tuple[BlockPort, BlockPort]:
        x, v, _ = state_channels(self.loop.machine)
        return (
            BlockPort("x", x.size, x.entries, x.units, "coordinates of the joints"),
            BlockPort("v", v.size, v.entries, v.units, "velocities of the joints"),
        )

    def _joint_state(self, x: Matrix, v: Matrix, t: Matrix) -> tuple[Matrix, Matrix]:
        state = self.loop.plant.at(x, v, t)
        return state.joint_x, state.joint_v

    def _shown(self, t: Matrix) -> dict[str, Matrix]:
        s = self.loop.symbols
        joint_x, joint_v = self._joint_state(s["x"], s["v"], t)
        return {"out_x": joint_x, "out_v": joint_v}

    def _of_loop(self, record: LoopRecord, outputs: list[Matrix]) -> list[np.ndarray]:
        """Evaluate expressions of the loop's symbols along a record."""
        loop = self.loop
        names = [f"o{k}" for k in range(len(outputs))]
        dense = [ca.densify(ca.SX(one)) for one in outputs]
        function = ca.Function(
            "along", list(loop.symbols.values()), dense, list(loop.symbols), names
        )
        given: dict[str, Any] = {name: record.values[name] for name in loop.symbols}
        results = compile(function)(**given)
        results = results if isinstance(results, tuple) else (results,)
        return [np.asarray(one) for one in results]

    def _counts(self, record: LoopRecord, stride: int) -> np.ndarray:
        return np.round(record.values["time"] / (stride * self.recorded.options.dt))


class Plant(_Stepping):
    """The plant of a recorded loop: drive, actuators, disturbances, dynamics, integrator.

    Parameters
    ----------
    recorded : RecordedLoop
    name : str
    """

    what = "plant"

    def __init__(self, recorded: RecordedLoop, name: str = "plant") -> None:
        super().__init__(recorded, name)
        names = [name for name in CONTINUOUS if name in self.loop.symbols]
        self.ports = tuple(
            port for port in self._memory_ports(names) if port.name != "law_parameters"
        )
        self.u = ca.SX.sym("u", self.loop.machine.nu)
        u = state_channels(self.loop.machine)[2]
        words = "inputs of the actuators, held over the step"
        self.inputs = (BlockPort("u", u.size, u.entries, u.units, words),) if u.size else ()

    def _symbol(self, port: BlockPort) -> Matrix:
        return self.count if port.name == COUNT else self.loop.symbols[port.name]

    def _command(self) -> Matrix:
        return limited(self.loop.machine, self.u) if self.loop.limits else self.u

    def _rates(self, moment: Moment, x: Matrix, column: Matrix) -> Matrix:
        """Return the rates of v and drive under the inputs."""
        n = self.loop.plant.sizes["v"]
        state = self.loop.plant.at(x, column[:n, :], moment.t)
        return self.loop.plant_side.rates(state, moment, column[n:, :], self._command())

    def block(self) -> StepBlock:
        """Return the plant as a block."""
        loop, s, options = self.loop, self.loop.symbols, self.recorded.options
        t, h = self._time(1), ca.SX(options.dt)
        column = ca.vertcat(s["v"], loop.symbol("drive"))
        x, column = loop.plant_side.advance(self.integrator, self._rates, t, h, s["x"], column)
        n = loop.plant.sizes["v"]
        following = {COUNT: self.count + 1, "x": x, "v": column[:n, :], "drive": column[n:, :]}
        joint_x, joint_v = self._joint_state(x, following["v"], t + h)
        outputs = {"out_x": joint_x, "out_v": joint_v}
        held = tuple(loop.parameter_names)
        for port in self.ports:
            if port.name not in held:
                outputs[f"memory_{port.name}_next"] = following[port.name]
        return StepBlock(
            self.name,
            f"{loop.machine.name}, {type(self.integrator).__name__} with steps of {options.dt:g} s",
            self._program("core", outputs),
            {"inputs": self.inputs},
            self._joint_ports(),
            self.ports,
            self._start(self.ports),
            options.dt,
            tuple(name for name in held if name == "parameters"),
            now=self._program("now", self._shown(t)),
            rates=self._continuous(),
        )

    def _program(
        self, kind: str, outputs: Mapping[str, Matrix], *before: Matrix
    ) -> ExpressionProgram:
        symbols = [*before, *([self.u] if self.inputs else []), *map(self._symbol, self.ports)]
        names = [*(["t"] if before else []), *(["inputs_u"] if self.inputs else [])]
        names += [f"memory_{port.name}" for port in self.ports]
        dense = [ca.densify(ca.SX(value)) for value in outputs.values()]
        function = ca.Function(f"{self.name}_{kind}", symbols, dense, names, list(outputs))
        return ExpressionProgram(function, ("t",) if before else ())

    def _continuous(self) -> ContinuousForm:
        """Return the plant as differential equations: x' = d/dh (x moved by h v), v', drive'."""
        loop, s, t = self.loop, self.loop.symbols, ca.SX.sym("t")
        group = loop.plant.group
        column = ca.vertcat(s["v"], loop.symbol("drive"))
        moment = Moment(t, t, ca.SX(self.recorded.options.dt))
        rates = self._rates(moment, s["x"], column)
        velocity = group.velocity(s["x"], s["v"])
        h = ca.SX.sym("h")
        moved = group.integrate(s["x"], h * velocity)
        x_rate = ca.substitute(ca.jacobian(moved, h), h, ca.SX(0))
        n = loop.plant.sizes["v"]
        parts = {"x": x_rate, "v": rates[:n, :], "drive": rates[n:, :]}
        states = tuple(port.name for port in self.ports if port.name in CONTINUOUS)
        outputs = {f"rate_{name}": parts[name] for name in states}
        return ContinuousForm(self._program("rates", outputs, t), states)

    def recorded_inputs(self, record: LoopRecord) -> dict[str, np.ndarray]:
        """Return all inputs of the step along a recorded run."""
        loop, s = self.loop, self.loop.symbols
        state = loop.plant.at(s["x"], s["v"], s["time"])
        acting, _ = loop.acting(state)
        values = {"inputs_u": self._of_loop(record, [acting])[0]} if self.inputs else {}
        names = [port.name for port in self.ports if port.name != COUNT]
        if loop.ratio > 1:
            return self._steps_between(values, record.rows * loop.ratio)
        values[f"memory_{COUNT}"] = self._counts(record, 1)
        return values | {f"memory_{name}": record.values[name] for name in names}

    def _steps_between(self, held: dict[str, np.ndarray], steps: int) -> dict[str, np.ndarray]:
        """Return every step of the integrator, under commands that are held over periods."""
        block = self.block()
        kernel, first = block.kernel(), block.start
        sequences = {name: np.repeat(u, self.loop.ratio, axis=0) for name, u in held.items()}
        given: dict[str, Any] = {f"memory_{p.name}": first[p.name] for p in self.ports}
        made = kernel.rollout(**given, steps=steps, sequences=sequences)
        states = {name: array[:-1] for name, array in made.states.items()}
        constant = {
            name: np.broadcast_to(value, (steps, len(value)))
            for name, value in given.items()
            if name not in states
        }
        return {**sequences, **states, **constant}


class WholeLoop(_Stepping):
    """Plant and law together: what `simulate` runs, one step of the loop at a time.

    Parameters
    ----------
    recorded : RecordedLoop
    name : str
    """

    what = "loop"

    def __init__(self, recorded: RecordedLoop, name: str = "loop") -> None:
        super().__init__(recorded, name)
        self.ports = self._memory_ports(list(self.loop.states))
        self.noise = self.loop.symbol("noise")
        words = "noise of sensors and measurements"
        self.inputs = (
            (BlockPort("noise", self.noise.shape[0], about=words),) if self.noise.numel() else ()
        )
        self.stride = recorded.options.clock.stride

    def _u(self) -> Matrix:
        """Return the inputs of the actuators as a step begins."""
        loop, s = self.loop, self.loop.symbols
        state = loop.plant.at(s["x"], s["v"], s["time"])
        acting, _ = loop.acting(state)
        moment = Moment(s["time"], s["time"], s["h"])
        return loop.plant_side.load(state, moment, loop.symbol("drive"), acting)[1]

    def block(self) -> StepBlock:
        """Return the loop as a block."""
        options, u = self.recorded.options, state_channels(self.loop.machine)[2]
        ports = self._joint_ports()
        if u.size:
            words = "inputs of the actuators as the step began"
            ports += (BlockPort("u", u.size, u.entries, u.units, words),)
        law = self.loop.law
        native = isinstance(law, NumericLaw)
        if native and not law.native:
            law.program()  # raises, with the law that can
        return StepBlock(
            self.name,
            f"{self.loop.machine.name} under {'no law' if law is None else law.name}",
            self._calls(native)
            if native or is_long(self.loop, self.integrator)
            else self._expression(),
            {"inputs": self.inputs},
            ports,
            self.ports,
            self._start(self.ports),
            self.stride * options.dt,
            tuple(self.loop.parameter_names),
            now=self._now(),
        )

    def _now(self) -> ExpressionProgram:
        """Return x and v of the joints before a step."""
        shown = self._shown(self._time(self.stride))
        dense = [ca.densify(ca.SX(value)) for value in shown.values()]
        symbols = [self.noise] if self.inputs else []
        symbols += [
            self.count if p.name == COUNT else self.loop.symbols[p.name] for p in self.ports
        ]
        names = self._input_names()
        return ExpressionProgram(
            ca.Function(f"{self.name}_now", symbols, dense, names, list(shown))
        )

    def _input_names(self) -> list[str]:
        names = ["inputs_noise"] if self.inputs else []
        return [*names, *(f"memory_{port.name}" for port in self.ports)]

    def _expression(self) -> ExpressionProgram:
        loop, s = self.loop, self.loop.symbols
        step = loop.step(self.integrator)
        now, h = self._time(self.stride), ca.SX(self.recorded.options.dt)
        given = {**s, "time": now, "h": h}
        values = step.call([given[name] for name in step.name_in()])
        following = dict(zip(step.name_out(), values, strict=True))
        end = now + self.stride * h
        joint_x, joint_v = self._joint_state(following["x_next"], following["v_next"], end)
        outputs = {"out_x": joint_x, "out_v": joint_v}
        if loop.machine.nu:
            first = ca.Function("u", list(s.values()), [ca.densify(ca.SX(self._u()))])
            outputs["out_u"] = first.call([given[name] for name in s])[0]
        for port in self.ports:
            if port.name == COUNT:
                outputs[f"memory_{COUNT}_next"] = self.count + 1
            elif port.name not in loop.parameter_names:
                outputs[f"memory_{port.name}_next"] = following[f"{port.name}_next"]
        symbols = [self.noise] if self.inputs else []
        symbols += [self.count if p.name == COUNT else s[p.name] for p in self.ports]
        dense = [ca.densify(ca.SX(value)) for value in outputs.values()]
        function = ca.Function(
            f"{self.name}_core", symbols, dense, self._input_names(), list(outputs)
        )
        return ExpressionProgram(function)

    def _calls(self, native: bool) -> Calls:
        """Return the step of a loop that is long, or whose law is a program of calls (`native`)."""
        loop, s, calls = self.loop, self.loop.symbols, Calls(f"{self.name}_core")
        blocks: dict[str, Any] = {}
        for name in self._input_names():
            own = name.partition("_")[2]
            size = 1 if own == COUNT else s[own].shape[0]
            blocks[own] = calls.input(name, (size,))
        t, h = calls.block(1), calls.block(1)
        end = calls.block(1)
        now, step = self._time(self.stride), ca.SX(self.recorded.options.dt)
        clock = [now, step, now + self.stride * step]
        calls.call(ca.Function("clock", [self.count], clock), [blocks[COUNT]], [t, h, end])
        x, v = self._joint_ports()
        out = [calls.output("out_x", (x.size,)), calls.output("out_v", (v.size,))]
        if loop.machine.nu:
            out.append(calls.output("out_u", (loop.machine.nu,)))
        following = calls.output(f"memory_{COUNT}_next", (1,))
        calls.call(
            ca.Function("count", [self.count], [self.count + 1]), [blocks[COUNT]], [following]
        )
        given = {name: {**blocks, "time": t, "h": h}[name] for name in s}
        inner = _Inner(calls)
        write = write_native_step if native else write_staged_step
        write(inner, loop, self.integrator, given)  # pyright: ignore[reportArgumentType]
        known = inner.named
        symbols = [s["x"], s["v"], s["time"], *loop.parameters]
        joints = ca.Function("joints", symbols, [*map(ca.densify, self._joint_state(*symbols[:3]))])
        parameters = [blocks[name] for name in loop.parameter_names]
        calls.call(joints, [known["x_next"], known["v_next"], end, *parameters], out[:2])
        if loop.machine.nu:
            inputs = ca.Function("u", list(s.values()), [ca.densify(ca.SX(self._u()))])
            if native:
                given["law_output"] = known[LAW_OUTPUT_NOW]
            calls.call(inputs, [given[name] for name in s], out[2:])
        return calls

    def recorded_inputs(self, record: LoopRecord) -> dict[str, np.ndarray]:
        """Return all inputs of the step along a recorded run."""
        values = {"inputs_noise": record.values["noise"]} if self.inputs else {}
        values[f"memory_{COUNT}"] = self._counts(record, self.stride)
        names = [port.name for port in self.ports if port.name != COUNT]
        return values | {f"memory_{name}": record.values[name] for name in names}


class _Inner:
    """Calls into which the outputs of a step go as memory, but for what is only recorded."""

    def __init__(self, calls: Calls) -> None:
        self._calls, self.named = calls, {}

    def __getattr__(self, name: str) -> Any:
        return getattr(self._calls, name)

    def output(self, name: str, shape: tuple[int, ...]) -> Any:
        size = shape[0] if shape else 1
        if name == LAW_OUTPUT_NOW:
            self.named[name] = self._calls.block(size)
        else:
            self.named[name] = self._calls.output(f"memory_{name}", shape)
        return self.named[name]
