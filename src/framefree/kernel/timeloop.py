"""The native time loop of a roll-out.

``rollout(ports, first, last, plan)`` advances the rows ``first <= row < last`` from step
``plan.begin`` to step ``plan.end``. States stay in the workspace from step to step; before each
step the time and the inputs that vary with time are set, after it the outputs named
``<input>_next`` become the inputs, and what is to be recorded is written. At the end the states go
back to where they came from, so that the next call continues.
"""

from framefree.kernel.agreed import PLAN, Feedback, find_feedback
from framefree.kernel.batch import TILES, Tile, define_outer, over_tiles, set_fixed
from framefree.kernel.code import Code, Module
from framefree.kernel.program import KernelProgram
from framefree.kernel.rows import spread


def define_rollout(module: Module, program: KernelProgram) -> None:
    """Define ``rollout`` if any output is fed back."""
    feedback = find_feedback(program.graph.inputs, program.graph.outputs)
    if not feedback.states:
        return
    code = Code(module)
    plan = {
        name: code.load("double" if name in ("t0", "dt") else "i64", code.offset("%plan", place))
        for name, place in PLAN.items()
    }
    set_fixed(code, program)
    with over_tiles(code) as (row, groups):
        tile = Tile(code, program, row, groups)
        steps = [tile.field(index, "i64", 16) for index in range(len(program.graph.inputs))]
        varying = [code.put(f"icmp ne i64 {step}, 0") for step in steps]
        for index in range(len(steps)):
            if index != feedback.time:
                with code.when(code.put(f"xor i1 {varying[index]}, true")):
                    tile.gather(index)
        with code.loop(plan["begin"], plan["end"]) as step:
            for index in range(len(steps)):
                if index != feedback.time and index not in feedback.states:
                    with code.when(varying[index]):
                        tile.gather(index, code.put(f"mul i64 {steps[index]}, {step}"))
            if feedback.time is not None:
                _set_time(tile, program.input_slots[feedback.time], step, plan)
            tile.evaluate()
            _record_signals(tile, feedback, step, plan)
            for source, target in feedback.states.items():
                _copy_slots(tile, source, target)
            _record_states(tile, feedback, step, plan)
        for index in feedback.states:
            tile.scatter_input(index)
    code.do("ret void")
    module.define("roll", f"internal void @roll({TILES}, ptr %plan)", code, "noinline nounwind")
    groups = program.groups(module.target.width)
    define_outer(module, program, "rollout", "roll", ", ptr %plan", groups)


def _set_time(tile: Tile, slot: int, step: str, plan: dict[str, str]) -> None:
    """Set the time of a step, t0 + step*dt, in all lanes."""
    code, size = tile.code, tile.code.width
    count = code.put(f"sitofp i64 {step} to double")
    passed = code.put(f"fmul double {count}, {plan['dt']}")
    time = code.put(f"fadd double {plan['t0']}, {passed}")
    vector = spread(code, code.from_double(time))
    with code.loop(0, tile.groups) as group:
        base = code.offset("%workspace", group, tile.program.slots * size)
        code.store(code.vector, vector, code.offset(base, slot, size), size)


def _copy_slots(tile: Tile, source: int, target: int) -> None:
    """Make the new value of a state the current one."""
    code, program, size = tile.code, tile.program, tile.code.width
    count = str(program.graph.inputs[source].size)
    with code.loop(0, tile.groups) as group:
        base = code.offset("%workspace", group, program.slots * size)
        new = code.offset(base, program.output_slots[target], size)
        old = code.offset(base, program.input_slots[source], size)
        with code.loop(0, count) as element:
            value = code.load(code.vector, code.offset(new, element, size), size)
            code.store(code.vector, value, code.offset(old, element, size), size)


def _record_signals(tile: Tile, feedback: Feedback, step: str, plan: dict[str, str]) -> None:
    """Record, with the state a step starts from, the other outputs of that step."""
    code, outputs = tile.code, tile.program.graph.outputs
    signals = [index for index in range(len(outputs)) if index not in feedback.states.values()]
    record = code.put(f"sdiv i64 {step}, {plan['every']}")
    whole = _is_multiple(code, step, plan)
    room = code.put(f"icmp slt i64 {record}, {plan['records']}")
    with code.when(code.put(f"and i1 {whole}, {room}")):
        for index in signals:
            _scatter_record(tile, index, record)


def _record_states(tile: Tile, feedback: Feedback, step: str, plan: dict[str, str]) -> None:
    """Record the states after every `every` steps."""
    code = tile.code
    after = code.put(f"add i64 {step}, 1")
    with code.when(_is_multiple(code, after, plan)):
        record = code.put(f"sdiv i64 {after}, {plan['every']}")
        for index in feedback.states.values():
            _scatter_record(tile, index, record)


def _is_multiple(code: Code, step: str, plan: dict[str, str]) -> str:
    rest = code.put(f"srem i64 {step}, {plan['every']}")
    return code.put(f"icmp eq i64 {rest}, 0")


def _scatter_record(tile: Tile, output: int, record: str) -> None:
    place = tile.field(len(tile.program.graph.inputs) + output, "i64", 16)
    tile.scatter(output, tile.code.put(f"mul i64 {place}, {record}"))
