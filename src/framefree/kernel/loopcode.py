"""Programs made of calls as LLVM assembly: see `framefree.kernel.loops`."""

from collections.abc import Iterator
from contextlib import contextmanager

from framefree.kernel.batch import TILES, Tile, over_tiles, set_fixed
from framefree.kernel.code import Code, Module, spread
from framefree.kernel.program import KernelProgram, Stage
from framefree.kernel.stages import StageBody


def define_variant(
    module: Module,
    name: str,
    program: KernelProgram,
    variant: KernelProgram,
    constant: tuple[bool, ...],
    scratch: int,
    flagged: bool,
) -> None:
    """Define ``void name(workspace, row, groups)``: one call, its operands read from the table.

    With a flag, which comes after the operands, groups in which it is set in all lanes are left
    out.
    """
    operands = len(variant.graph.inputs) + len(variant.graph.outputs)
    parts = range(len(variant.stages))
    for k in parts:
        _define_part(module, f"{name}_{k}", variant, variant.stages[k], constant, scratch)
    code = Code(module)
    stride = program.slots * code.lanes * 8
    stop = code.put(f"mul i64 %groups, {stride}")
    with code.loop(0, stop, str(stride)) as shift, wanted(code, operands, flagged, shift):
        moved = code.offset("%workspace", shift)
        for k in parts:
            code.do(f"call void @{name}_{k}(ptr {moved}, ptr %row)")
        places = _places(code, variant, constant, scratch, moved)
        for slot, value in variant.fixed.items():
            pointer, index = places[slot]
            place = code.offset(pointer, index, code.lanes * 8)
            code.store(code.vector, code.constant(value), place, code.lanes * 8)
    code.do("ret void")
    header = f"internal void @{name}(ptr %workspace, ptr %row, i64 %groups)"
    module.define(name, header, code, "noinline nounwind")


def _define_part(
    module: Module,
    name: str,
    variant: KernelProgram,
    stage: Stage,
    constant: tuple[bool, ...],
    scratch: int,
) -> None:
    """Define ``void name(workspace, row)``: one stage of a call, for one group of lanes."""
    code = Code(module)
    places = _places(code, variant, constant, scratch, "%workspace")
    _CallBody(code, variant, stage, places, constant).emit()
    code.do("ret void")
    header = f"internal void @{name}(ptr %workspace, ptr %row)"
    module.define(name, header, code, "noinline nounwind")


def _places(
    code: Code, variant: KernelProgram, constant: tuple[bool, ...], scratch: int, workspace: str
) -> dict[int, tuple[str, int]]:
    """Return where the slots of a function lie: a pointer, and how many slots after it."""
    ports = (*variant.graph.inputs, *variant.graph.outputs)
    firsts = (*variant.input_slots, *variant.output_slots)
    places: dict[int, tuple[str, int]] = {}
    for k, (port, first) in enumerate(zip(ports, firsts, strict=True)):
        offset = code.load("i64", code.offset("%row", k + 1, 8))
        is_constant = k < len(constant) and constant[k]
        pointer = code.offset("@numbers" if is_constant else workspace, offset)
        places.update({first + j: (pointer, j) for j in range(port.size)})
    ends = sum(port.size for port in ports)
    temporary = code.offset(workspace, scratch, code.lanes * 8)
    places.update({ends + j: (temporary, j) for j in range(variant.slots - ends)})
    return places


@contextmanager
def wanted(code: Code, operands: int, flagged: bool, shift: str) -> Iterator[None]:
    """Run the body unless the flag of a call is set in all lanes of a group."""
    if not flagged:
        yield
        return
    offset = code.load("i64", code.offset("%row", operands + 1, 8))
    place = code.offset(code.offset("%workspace", offset), shift)
    flag = code.load(code.vector, place, code.lanes * 8)
    with code.when(code.any(code.compare("oeq", flag, code.constant(0.0)))):
        yield


class _CallBody(StageBody):
    """Emits a stage whose slots lie where the call's operands say."""

    def __init__(
        self,
        code: Code,
        program: KernelProgram,
        stage: Stage,
        places: dict[int, tuple[str, int]],
        constant: tuple[bool, ...],
    ) -> None:
        super().__init__(code, program, stage, "")
        self.places, self.constant = places, constant

    def value(self, number: int) -> str:
        node = self.nodes[number]
        if node[0] == "input" and self.constant[node[1]]:  # numbers, not vectors
            if number not in self.values:
                pointer, index = self.places[self.stage.loads[number]]
                self.values[number] = spread(self.code, self.code.offset(pointer, index, 8))
            return self.values[number]
        return super().value(number)

    def _place(self, slot: int) -> tuple[str, int]:
        pointer, index = self.places[slot]
        size = self.code.lanes * 8
        return self.code.offset(pointer, index, size), size


def define_walk(module: Module, variants: int, calls: int, width: int) -> None:
    """Define ``void stage0(workspace, groups)``: make all calls of the table."""
    code = Code(module)
    with code.loop(0, str(calls)) as index:
        row = code.offset("@calls", index, width * 8)
        which = code.load("i64", row)
        done = code.fresh("called")
        labels = [code.fresh("variant") for _ in range(variants)]
        cases = " ".join(f"i64 {k}, label %{label}" for k, label in enumerate(labels))
        code.do(f"switch i64 {which}, label %{done} [ {cases} ]")
        for k, label in enumerate(labels):
            code.label(label)
            code.do(f"call void @variant{k}(ptr %workspace, ptr {row}, i64 %groups)")
            code.jump(done)
        code.label(done)
    code.do("ret void")
    module.define("stage0", "internal void @stage0(ptr %workspace, i64 %groups)", code)


def define_tiles(module: Module, program: KernelProgram) -> None:
    """Define the loop over tiles, given a workspace for `groups` groups."""
    code = Code(module)
    set_fixed(code, program)
    with over_tiles(code) as (row, groups):
        tile = Tile(code, program, row, groups)
        for index in range(len(program.graph.inputs)):
            tile.gather(index)
        tile.evaluate()
        for index in range(len(program.graph.outputs)):
            tile.scatter(index)
    code.do("ret void")
    module.define("tiles", f"internal void @tiles({TILES})", code, "noinline nounwind")


def define_run(module: Module) -> None:
    """Define ``i32 run(ports, first, last)``: many rows, or a single one.

    A single row goes to the code at the address in ``single``, if there is one.
    """
    code = Code(module)
    count = code.put("sub i64 %last, %first")
    alone = code.put(f"icmp eq i64 {count}, 1")
    special = code.load("ptr", "@single")
    known = code.put(f"icmp ne ptr {special}, null")
    with code.when(code.put(f"and i1 {alone}, {known}")):
        code.do(f"%given = call i32 {special}(ptr %ports, i64 %first, i64 %last)")
        code.do("ret i32 %given")
        code.label(code.fresh("unreached"))
    code.do("%state = call i32 @part(ptr %ports, i64 %first, i64 %last)")
    code.do("ret i32 %state")
    module.define("run", "i32 @run(ptr %ports, i64 %first, i64 %last)", code, "noinline nounwind")
    place = Code(module)
    place.do("ret ptr @single")
    module.define("single_place", "ptr @single_place()", place)
