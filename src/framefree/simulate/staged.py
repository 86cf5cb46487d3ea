"""A long step of a loop as native calls: what is evaluated at every stage exists once.

A step that is written out repeats the rates of the plant, and of a law that is evaluated all the
time, at every stage of the integrator and in every step of a control period. Its code grows with
these, and with it the time to compile it. Here rates, stages and the end of a step of the
integrator are functions that are called one after another.
"""

from typing import Any

import casadi as ca

from framefree.kernel.loops import Block, Calls
from framefree.simulate.disturbances import Moment
from framefree.simulate.integrators import ExplicitIntegrator
from framefree.simulate.loop import ControlLoop

Matrix = Any

LONG = 12_000
"""Operations of a step, written out, from which on it is calls.

An arm with seven joints, four Runge-Kutta steps in a control period: 20,000 operations are compiled
in half the time as calls, 48,000 in a quarter. Both run equally fast.
"""


def is_long(loop: ControlLoop, integrator: ExplicitIntegrator) -> bool:
    """Tell whether a step of the loop should be calls."""
    evaluations = len(_PlantStep(loop, integrator).stages) * (1 if loop.gated else loop.ratio or 1)
    return evaluations > 1 and evaluations * loop.rates_function.n_instructions() > LONG


def staged_step(loop: ControlLoop, integrator: ExplicitIntegrator) -> Calls:
    """Return what `ControlLoop.step` does, from all states to their next values, as calls."""
    calls = Calls("step")
    write_staged_step(calls, loop, integrator, loop_inputs(calls, loop))
    return calls


def write_staged_step(
    calls: Calls, loop: ControlLoop, integrator: ExplicitIntegrator, inputs: dict[str, Block]
) -> None:
    """Append a step, with its outputs, to a program that has its inputs in blocks."""
    s = loop.symbols
    results = {n: calls.output(f"{n}_next", (inputs[n].size,)) for n in loop.states}
    following, acting, steps = loop.begin_step()
    following = {"law_output": loop.symbol("law_output")} | following
    begun = {name: following[name] for name in following if name in results}
    times = [s["time"] + k * s["h"] for k in range(steps)]
    begin = _function("begin", list(s.values()), [ca.vertcat(*times), acting, *begun.values()])
    instants, command = calls.block(steps), calls.block(acting.shape[0])
    calls.call(begin, list(inputs.values()), [instants, command, *(results[n] for n in begun)])
    column = _function("column", list(s.values()), [loop.column])
    step, (moving,) = _PlantStep(loop, integrator), call(calls, column, list(inputs.values()))
    x = inputs["x"]
    for k in range(steps):
        x, moving = step.write(calls, inputs, instants[k : k + 1], x, moving, command)
    _finish(calls, loop, inputs, results, x, moving)


def loop_inputs(calls: Calls, loop: ControlLoop) -> dict[str, Block]:
    """Add the inputs of a step to its program; return their blocks by name."""
    return {
        name: calls.input(name, () if name in ("time", "h") else (symbol.shape[0],))
        for name, symbol in loop.symbols.items()
    }


def call(calls: Calls, function: ca.Function, inputs: list[Block]) -> list[Block]:
    """Append a call; return the blocks of what it gives."""
    outputs = [calls.block(function.numel_out(k)) for k in range(function.n_out())]
    calls.call(function, inputs, outputs)
    return outputs


def _finish(
    calls: Calls,
    loop: ControlLoop,
    inputs: dict[str, Block],
    results: dict[str, Block],
    x: Block,
    moving: Block,
) -> None:
    """Append what makes the next states of what the integrator moved."""
    at, column = ca.SX.sym("x", x.size), ca.SX.sym("column", moving.size)
    parts = {"x": at, **loop.split(column)}
    if not loop.ratio and "memory" in loop.symbols:
        parts["memory"] = parts.get("memory", loop.symbols["memory"]) + loop.jump
    parts = {name: part for name, part in parts.items() if name in results}
    end = _function("finish", [*loop.symbols.values(), at, column], list(parts.values()))
    calls.call(end, [*inputs.values(), x, moving], [results[name] for name in parts])


class _PlantStep:
    """One step of the integrator: functions of its stages, of the rates, and of its end."""

    def __init__(self, loop: ControlLoop, integrator: ExplicitIntegrator) -> None:
        self.loop = loop
        t, h, x = ca.SX.sym("t"), ca.SX.sym("h"), ca.SX.sym("x", loop.symbols["x"].shape[0])
        column = ca.SX.sym("column", loop.column.shape[0])
        known, symbols = [t, h, x, column, *loop.parameters], []
        self.stages: list[ca.Function] = []

        def rates(moment: Moment, x: Matrix, column: Matrix) -> Matrix:
            name = f"stage{len(symbols)}"
            self.stages.append(_function(name, [*known, *symbols], [*moment, x, column]))
            symbols.append(ca.SX.sym("rate", column.shape[0]))
            return symbols[-1]

        moved = loop.plant_side.advance(integrator, rates, t, h, x, column)
        self.end = _function("end", [*known, *symbols], list(moved))

    def write(
        self,
        calls: Calls,
        inputs: dict[str, Block],
        t: Block,
        x: Block,
        column: Block,
        command: Block,
    ) -> list[Block]:
        """Append the step; return the blocks of x and of the column after it."""
        parameters = [inputs[name] for name in self.loop.parameter_names]
        known, found = [t, inputs["h"], x, column, *parameters], []
        for stage in self.stages:
            at = call(calls, stage, [*known, *found])
            found += call(calls, self.loop.rates_function, [*at, command, *parameters])
        return call(calls, self.end, [*known, *found])


def _function(name: str, inputs: list[Matrix], outputs: list[Matrix]) -> ca.Function:
    return ca.Function(name, inputs, [ca.densify(ca.SX(value)) for value in outputs])
