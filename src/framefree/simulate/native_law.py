"""The step of a loop whose law is a program of calls: the law is evaluated natively within it.

A law in numbers that is `native` writes its calls between what it is evaluated at and what follows
from its command (`framefree.control.law`). Sampled, it is evaluated once, at the beginning of a
control period, and the rest is `ControlLoop.step` (or `implicit_step`), which takes the law's
output like that of a law in Python: results are the same to the bit. Evaluated all the time, it is
asked at every stage of the integrator; its memory is then that of the beginning of the step, and
changes once a step.
"""

from typing import Any, NamedTuple

import casadi as ca

from framefree.control.law import LawBlocks
from framefree.kernel.loops import Block, Calls
from framefree.simulate.disturbances import Moment
from framefree.simulate.integrators import ExplicitIntegrator
from framefree.simulate.loop import ControlLoop
from framefree.simulate.staged import call, is_long, loop_inputs, write_staged_step

Matrix = Any

LAW_OUTPUT_NOW = "law_output_now"
"""Name of the output that holds the command of a step, for the record."""


def native_step(loop: ControlLoop, integrator: ExplicitIntegrator) -> Calls:
    """Return one step of the loop by an explicit integrator: from all states to their next ones."""
    calls = Calls("step")
    write_native_step(calls, loop, integrator, loop_inputs(calls, loop))
    return calls


def write_native_step(
    calls: Calls, loop: ControlLoop, integrator: ExplicitIntegrator, inputs: dict[str, Block]
) -> None:
    """Append one step of the loop, with its outputs, to a program that has its inputs in blocks."""
    if not loop.ratio:
        _write_continuous(calls, loop, integrator, inputs)
        return
    given = {**inputs, "law_output": write_law(calls, loop, inputs)}
    if is_long(loop, integrator):
        write_staged_step(calls, loop, integrator, given)
        return
    step = loop.step(integrator)
    outputs = [calls.output(name, (step.numel_out(k),)) for k, name in enumerate(step.name_out())]
    calls.call(step, [given[name] for name in loop.symbols], outputs)


def write_law(calls: Calls, loop: ControlLoop, inputs: dict[str, Block]) -> Block:
    """Append the law at the beginning of a step; return the block of its output.

    Where a control period has many steps of the loop it is evaluated in the first of them.
    """
    now = calls.output(LAW_OUTPUT_NOW, (inputs["law_output"].size,))
    function = loop.law_inputs()
    if not loop.gated:
        _evaluate(calls, loop, function, list(inputs.values()), inputs, now)
        return now
    new = calls.block(now.size)
    with calls.all_unless(inputs["count"]):
        _evaluate(calls, loop, function, list(inputs.values()), inputs, new)
    count, column, kept = ca.SX.sym("count"), ca.SX.sym("new", now.size), ca.SX.sym("old", now.size)
    choice = ca.Function("choice", [count, column, kept], [ca.if_else(count < 0.5, column, kept)])
    calls.call(choice, [inputs["count"], new, inputs["law_output"]], [now])
    return now


def _evaluate(
    calls: Calls,
    loop: ControlLoop,
    function: ca.Function,
    arguments: list[Block],
    inputs: dict[str, Block],
    column: Block,
) -> None:
    """Append the law at what a function gives: t, x, v and references."""
    law: Any = loop.law
    function = _by_rows(function)
    t, x, v, *references = call(calls, function, arguments)
    parameters = None
    if len(law.machine.parameters):
        shared = law.machine.parameters is loop.machine.parameters
        parameters = inputs["parameters" if shared else "law_parameters"]
    memory = inputs["memory"] if "memory" in inputs else calls.zeros(0)
    named = dict(zip(loop.reference_names, references, strict=True))
    law.write(calls, LawBlocks(t, x, v, memory, named, parameters), column)


def _by_rows(function: ca.Function) -> ca.Function:
    """Return the function with matrices that it gives as columns, row by row."""
    symbols = [ca.SX.sym(n, function.numel_in(k)) for k, n in enumerate(function.name_in())]
    columns = [ca.vec(one.T) for one in function.call(symbols)]
    return ca.Function(function.name(), symbols, columns, function.name_in(), function.name_out())


# ---------------------------------------------------------------------- evaluated all the time


class _Stage(NamedTuple):
    """Where an integrator asks for rates, in symbols, and the symbol of its answer."""

    moment: Moment
    x: Matrix
    column: Matrix
    rate: Matrix


def _write_continuous(
    calls: Calls, loop: ControlLoop, integrator: ExplicitIntegrator, inputs: dict[str, Block]
) -> None:
    """Append a step in which the law is evaluated at every stage of the integrator."""
    s, given, stages = loop.symbols, list(inputs.values()), []

    def rates(moment: Moment, x: Matrix, column: Matrix) -> Matrix:
        stages.append(_Stage(moment, x, column, ca.SX.sym("rate", column.shape[0])))
        return stages[-1].rate

    x, column = loop.plant_side.advance(integrator, rates, s["time"], s["h"], s["x"], loop.column)
    parameters = [inputs[name] for name in loop.parameter_names]
    now = calls.output(LAW_OUTPUT_NOW, (inputs["law_output"].size,))
    law_inputs, force = loop.law_inputs_at(), loop.command_of_output()
    known = list(s.values())
    found: list[Block] = []
    _evaluate(
        calls,
        loop,
        law_inputs,
        [inputs["time"], inputs["x"], inputs["v"], *parameters],
        inputs,
        now,
    )
    for k, stage in enumerate(stages):
        parts = [*stage.moment, stage.x, stage.column]
        function = _function(f"stage{k}", [*known, *(one.rate for one in stages[:k])], parts)
        *moment, at, moving = call(calls, function, [*given, *found])
        output = now
        if not _at_the_beginning(loop, stage):
            output = calls.block(now.size)
            speed = moving[: loop.plant.sizes["v"]]
            arguments = [moment[0], at, speed, *parameters]
            _evaluate(calls, loop, law_inputs, arguments, inputs, output)
        (command,) = call(calls, force, [output])
        found += call(calls, loop.rates_function, [*moment, at, moving, command, *parameters])
    output = ca.SX.sym("output", now.size)
    following = {"x": x, **loop.split(column), "law_output": output}
    if "memory" in s:
        following["memory"] = loop.law_side.command_of(output).memory
    names = list(loop.states)
    end = _function(
        "end", [*known, *(one.rate for one in stages), output], [following[n] for n in names]
    )
    outputs = [calls.output(f"{name}_next", (end.numel_out(k),)) for k, name in enumerate(names)]
    calls.call(end, [*given, *found, now], outputs)


def _at_the_beginning(loop: ControlLoop, stage: _Stage) -> bool:
    """Tell whether a stage is at the state in which the step begins."""
    s = loop.symbols
    pairs = [(stage.moment.t, s["time"]), (stage.x, s["x"]), (stage.column, loop.column)]
    return all(ca.is_equal(one, other, 2) for one, other in pairs)


def _function(name: str, inputs: list[Matrix], outputs: list[Matrix]) -> ca.Function:
    return ca.Function(name, inputs, [ca.densify(ca.SX(value)) for value in outputs])
