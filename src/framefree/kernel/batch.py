"""The loop that runs a program over the rows of a batch.

`run` cuts the rows into tiles of several groups of lanes, fetches the tile's rows into the input
slots, runs the stages and brings the output slots back to rows. A single state is a batch of one:
its row fills all lanes.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from framefree.kernel.agreed import PORT
from framefree.kernel.arraycode import define_call
from framefree.kernel.code import Code, Module
from framefree.kernel.program import GROUPS, TABLED, KernelProgram
from framefree.kernel.rows import define_gather, define_scatter, define_scatter_tabled
from framefree.kernel.stages import define_stage

STACK = 32 * 1024  # a workspace up to this many bytes lives on the stack
TILES = "ptr %workspace, i64 %groups, ptr %ports, i64 %first, i64 %last"


def define_program(module: Module, program: KernelProgram) -> None:
    """Define ``i32 run(ports, first, last)``: evaluate rows ``first <= row < last``.

    It returns 0, or 1 if there is no memory for the workspace.
    """
    for index, stage in enumerate(program.stages):
        define = define_call if stage.is_call(program.graph) else define_stage
        define(module, f"stage{index}", program, stage)
    _define_tiles(module, program)
    define_outer(module, program, "run", "tiles", "", program.groups(module.target.width))


def _define_tiles(module: Module, program: KernelProgram) -> None:
    """Define the loop over tiles, given a workspace for `groups` groups."""
    code = Code(module)
    inputs, outputs = program.graph.inputs, program.graph.outputs
    set_fixed(code, program)
    with over_tiles(code) as (row, groups):
        tile = Tile(code, program, row, groups)
        start = code.put(f"icmp eq i64 {row}, %first")
        for index in range(len(inputs)):
            # One row for all stays in its slots from tile to tile.
            many = code.put(f"icmp ne i64 {tile.field(index, 'i64', 8)}, 0")
            with code.when(code.put(f"or i1 {start}, {many}")):
                tile.gather(index)
        for stage in range(len(program.stages)):
            tile.run_stage(stage)
            for index in range(len(outputs)):
                if program.finished.get(index) == stage:
                    tile.scatter(index)
        for index in range(len(outputs)):
            if index not in program.finished:
                tile.scatter(index)
    code.do("ret void")
    module.define("tiles", f"internal void @tiles({TILES})", code, "noinline nounwind")


def set_fixed(code: Code, program: KernelProgram) -> None:
    """Fill the output slots that never change."""
    size = code.width
    with code.loop(0, "%groups") as group:
        base = code.offset("%workspace", group, program.slots * size)
        for slot, value in program.fixed.items():
            code.store(code.vector, code.constant(value), code.offset(base, slot, size), size)


@contextmanager
def over_tiles(code: Code) -> Iterator[tuple[str, str]]:
    """Loop over the tiles of rows ``first <= row < last``; give first row and number of groups."""
    rows = code.put(f"mul i64 %groups, {code.lanes}")
    with code.loop("%first", "%last", rows) as row:
        left = code.put(f"sub i64 %last, {row}")
        left = code.put(f"add i64 {left}, {code.lanes - 1}")
        yield row, code.minimum(code.put(f"udiv i64 {left}, {code.lanes}"), "%groups")


@dataclass(frozen=True)
class Tile:
    """Emits what happens to one tile of rows."""

    code: Code
    program: KernelProgram
    row: str
    groups: str

    def gather(self, index: int, shift: str | None = None) -> None:
        """Fetch rows of an input, `shift` doubles after where its record points."""
        port, slot = self.program.graph.inputs[index], self.program.input_slots[index]
        self._move(define_gather, index, port.size, slot, shift)

    def scatter(self, index: int, shift: str | None = None) -> None:
        """Bring rows of an output back."""
        port, slot = self.program.graph.outputs[index], self.program.output_slots[index]
        place = index + len(self.program.graph.inputs)
        if slot == TABLED:
            table = self.program.tables[index]
            more = f", ptr {self.code.module.integers(table)}, i64 {port.size}"
            self._call(define_scatter_tabled(self.code.module), place, 0, shift, more)
        else:
            self._move(define_scatter, place, port.size, slot, shift)

    def scatter_input(self, index: int) -> None:
        """Bring rows of an input back to where they came from."""
        port, slot = self.program.graph.inputs[index], self.program.input_slots[index]
        self._move(define_scatter, index, port.size, slot, None)

    def evaluate(self) -> None:
        """Run all stages."""
        for index in range(len(self.program.stages)):
            self.run_stage(index)

    def run_stage(self, index: int) -> None:
        """Run one stage."""
        self.code.do(f"call void @stage{index}(ptr %workspace, i64 {self.groups})")

    def field(self, index: int, kind: str, offset: int) -> str:
        """Load a field of a port's record; inputs come before outputs."""
        place = self.code.offset("%ports", index * PORT + offset)
        return self.code.load(kind, place)

    def _move(
        self,
        define: Callable[[Module, int], str],
        index: int,
        size: int,
        slot: int,
        shift: str | None,
    ) -> None:
        if size:
            self._call(define(self.code.module, size), index, slot, shift)

    def _call(
        self, function: str, index: int, slot: int, shift: str | None, more: str = ""
    ) -> None:
        """Call what moves the rows of a port; `more` are further arguments."""
        code = self.code
        data, step = self.field(index, "ptr", 0), self.field(index, "i64", 8)
        if shift is not None:
            data = code.offset(data, shift, 8)
        place = code.offset("%workspace", slot, code.width)
        stride = self.program.slots * code.width
        code.do(
            f"call void @{function}(ptr {place}, i64 {stride}, ptr {data}, i64 {step}, "
            f"i64 {self.row}, i64 %last, i64 {self.groups}{more})"
        )


def define_outer(
    module: Module,
    program: KernelProgram,
    name: str,
    tiles: str,
    extra: str,
    most: int = GROUPS,
) -> None:
    """Define ``i32 name(ports, first, last, extra...)``, which finds memory and calls `tiles`.

    The memory is for up to `most` groups at a time.
    """
    code = Code(module)
    stride = program.slots * code.width
    rows = code.put("sub i64 %last, %first")
    if not any(port.size for port in program.graph.outputs):
        rows = "0"  # nothing to compute, however many rows there are
    empty = code.put(f"icmp sle i64 {rows}, 0")
    code.do(f"br i1 {empty}, label %nothing, label %some")
    code.label("nothing")
    code.do("ret i32 0")
    code.label("some")
    groups = code.put(f"add i64 {rows}, {code.lanes - 1}")
    groups = code.put(f"udiv i64 {groups}, {code.lanes}")
    groups = code.minimum(groups, str(most))
    size = code.put(f"mul i64 {groups}, {stride}")
    small = code.put(f"icmp ule i64 {size}, {STACK}")
    call = f"i64 {groups}, ptr %ports, i64 %first, i64 %last{extra})"
    code.do(f"br i1 {small}, label %stack, label %heap")
    code.label("stack")
    place = code.put(f"alloca i8, i64 {size}, align 64")
    code.do(f"call void @{tiles}(ptr {place}, {call}")
    code.do("ret i32 0")
    code.label("heap")
    size = code.put(f"add i64 {size}, 64")
    memory = code.put(f"call ptr {code.external('PyMem_RawMalloc')}(i64 {size})")
    missing = code.put(f"icmp eq ptr {memory}, null")
    code.do(f"br i1 {missing}, label %none, label %filled")
    code.label("filled")
    address = code.put(f"ptrtoint ptr {memory} to i64")
    address = code.put(f"add i64 {address}, 63")
    address = code.put(f"and i64 {address}, -64")
    place = code.put(f"inttoptr i64 {address} to ptr")
    code.do(f"call void @{tiles}(ptr {place}, {call}")
    code.do(f"call void {code.external('PyMem_RawFree')}(ptr {memory})")
    code.do("ret i32 0")
    code.label("none")
    code.do("ret i32 1")
    header = f"i32 @{name}(ptr %ports, i64 %first, i64 %last{extra})"
    module.define(name, header, code, "noinline nounwind")
