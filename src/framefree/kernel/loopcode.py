"""Programs made of calls as LLVM assembly: see `framefree.kernel.loops`."""

from framefree.kernel.batch import TILES, Tile, over_tiles, set_fixed
from framefree.kernel.code import Code, Module
from framefree.kernel.program import KernelProgram, Stage
from framefree.kernel.stages import StageBody


def define_variant(
    module: Module,
    name: str,
    program: KernelProgram,
    variant: KernelProgram,
    constant: tuple[bool, ...],
    scratch: int,
) -> None:
    """Define ``void name(workspace, row, groups)``: one call, its operands read from the table."""
    code = Code(module)
    size = code.lanes * 8
    stride = program.slots * size
    ports = (*variant.graph.inputs, *variant.graph.outputs)
    firsts = (*variant.input_slots, *variant.output_slots)
    pointers = []
    for k in range(len(ports)):
        offset = code.load("i64", code.offset("%row", k + 1, 8))
        is_constant = k < len(constant) and constant[k]
        pointers.append(code.offset("@numbers" if is_constant else "%workspace", offset))
    pointers.append(code.offset("%workspace", scratch, size))
    stop = code.put(f"mul i64 %groups, {stride}")
    with code.loop(0, stop, str(stride)) as shift:
        moved = [
            pointer if k < len(constant) and constant[k] else code.offset(pointer, shift)
            for k, pointer in enumerate(pointers)
        ]
        places: dict[int, tuple[str, int]] = {}
        for k, (port, first) in enumerate(zip(ports, firsts, strict=True)):
            places.update({first + j: (moved[k], j) for j in range(port.size)})
        ends = sum(port.size for port in ports)
        places.update({ends + j: (moved[-1], j) for j in range(variant.slots - ends)})
        for stage in variant.stages:
            _CallBody(code, variant, stage, places, constant).emit()
        for slot, value in variant.fixed.items():
            pointer, index = places[slot]
            code.store(code.vector, code.constant(value), code.offset(pointer, index, size), size)
    code.do("ret void")
    header = f"internal void @{name}(ptr %workspace, ptr %row, i64 %groups)"
    module.define(name, header, code, "noinline nounwind")


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
        if number not in self.values and node[0] == "input" and self.constant[node[1]]:
            pointer, index = self.places[self.stage.loads[number]]
            self.values[number] = _spread(self.code, self.code.offset(pointer, index, 8))
        return super().value(number)

    def _place(self, slot: int) -> tuple[str, int]:
        pointer, index = self.places[slot]
        size = self.code.lanes * 8
        return self.code.offset(pointer, index, size), size


def _spread(code: Code, pointer: str) -> str:
    """Load a double into every lane."""
    v = code.vector
    scalar = code.load("double", pointer)
    one = code.put(f"insertelement {v} poison, double {scalar}, i64 0")
    return code.put(f"shufflevector {v} {one}, {v} poison, <{code.lanes} x i32> zeroinitializer")


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


def define_run(module: Module, rows: int) -> None:
    """Define ``i32 run(ports, first, last)``: a few rows at a time, to keep the workspace near.

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
    with code.loop("%first", "%last", str(rows)) as row:
        stop = code.minimum(code.put(f"add i64 {row}, {rows}"), "%last")
        state = code.put(f"call i32 @part(ptr %ports, i64 {row}, i64 {stop})")
        with code.when(code.put(f"icmp ne i32 {state}, 0"), rare=True):
            code.do("ret i32 1")
            code.label(code.fresh("unreached"))
    code.do("ret i32 0")
    module.define("run", "i32 @run(ptr %ports, i64 %first, i64 %last)", code, "noinline nounwind")
    place = Code(module)
    place.do("ret ptr @single")
    module.define("single_place", "ptr @single_place()", place)
