"""A program as LLVM assembly: its stages, and the loop that runs them over a batch.

Every stage is a function of the workspace and the number of groups. `run` cuts the rows of a batch
into tiles of several groups, fetches the tile's rows into the input slots, runs the stages and
brings the output slots back to rows. A single state is a batch of one: its row fills all lanes.
"""

from framefree.kernel import elementary
from framefree.kernel.code import LIBM, Code, Module, splat
from framefree.kernel.graph import TRUTHS
from framefree.kernel.program import Program, Stage
from framefree.kernel.rows import define_gather, define_scatter

FLOATING = {"add": "fadd", "sub": "fsub", "mul": "fmul", "div": "fdiv"}
COMPARISONS = {"lt": "olt", "le": "ole", "eq": "oeq", "ne": "une"}
STACK = 32 * 1024  # a workspace up to this many bytes lives on the stack
PORT = 16  # bytes of a port record: address of the first row, and doubles from row to row


def define_program(module: Module, program: Program) -> None:
    """Define ``i32 run(ports, first, last)``: evaluate rows ``first <= row < last``.

    It returns 0, or 1 if there is no memory for the workspace.
    """
    define_gather(module)
    define_scatter(module)
    for index, stage in enumerate(program.stages):
        define_stage(module, f"stage{index}", program, stage)
    _define_tiles(module, program)
    _define_run(module, program)


def define_stage(module: Module, name: str, program: Program, stage: Stage) -> None:
    """Define ``void name(workspace, groups)``."""
    code = Code(module)
    stride = program.slots * code.lanes * 8
    stop = code.put(f"mul i64 %groups, {stride}")
    with code.loop(0, stop, stride) as offset:
        base = code.put(f"getelementptr i8, ptr %workspace, i64 {offset}")
        _StageBody(code, program, stage, base).emit()
    code.do("ret void")
    module.define(name, f"internal void @{name}(ptr %workspace, i64 %groups)", code)


class _StageBody:
    """Emits the nodes of one stage."""

    def __init__(self, code: Code, program: Program, stage: Stage, base: str) -> None:
        self.code, self.stage, self.base = code, stage, base
        self.nodes = program.graph.nodes
        self.values: dict[int, str] = {}  # node -> vector
        self.masks: dict[int, str] = {}  # node that is a truth value -> mask

    def emit(self) -> None:
        for number in range(self.stage.start, self.stage.stop):
            node = self.nodes[number]
            if node[0] not in ("const", "input") and number not in self.values:
                self._emit_node(number, node)
            for slot in self.stage.stores.get(number, ()):
                self.code.store(self.code.vector, self.value(number), *self._place(slot))

    def value(self, number: int) -> str:
        """Return a node as a vector."""
        if number not in self.values:
            if number in self.masks:
                ones = self.code.select(self.masks[number], splat(1.0), splat(0.0))
                self.values[number] = ones
            elif self.nodes[number][0] == "const":
                self.values[number] = splat(self.nodes[number][1])
            else:
                place = self._place(self.stage.loads[number])
                self.values[number] = self.code.load(self.code.vector, *place)
        return self.values[number]

    def truth(self, number: int) -> str:
        """Return a node as a mask: where it is not zero."""
        if number not in self.masks:
            mask = self.code.compare("une", self.value(number), splat(0.0))
            self.masks[number] = mask
        return self.masks[number]

    def _place(self, slot: int) -> tuple[str, int]:
        size = self.code.lanes * 8
        return self.code.offset(self.base, slot, size), size

    def _emit_node(self, number: int, node: tuple) -> None:
        operation = node[0]
        if operation in TRUTHS:
            self.masks[number] = self._truth_of(operation, node[1:])
        elif operation in ("sin", "cos"):
            self._emit_sin_cos(number, node)
        elif operation == "select":
            a, b = self.value(node[2]), self.value(node[3])
            self.values[number] = self.code.select(self.truth(node[1]), a, b)
        else:
            self.values[number] = _vector_of(self.code, operation, *map(self.value, node[1:]))

    def _truth_of(self, operation: str, operands: tuple[int, ...]) -> str:
        if operation in COMPARISONS:
            return self.code.compare(COMPARISONS[operation], *map(self.value, operands))
        masks = [self.truth(one) for one in operands]
        if operation == "not":
            return self.code.logic("xor", masks[0], "splat (i1 true)")
        return self.code.logic(operation, *masks)

    def _emit_sin_cos(self, number: int, node: tuple) -> None:
        wanted = {node[0]: number}
        partner = ("cos" if node[0] == "sin" else "sin", node[1])
        if number + 1 < self.stage.stop and self.nodes[number + 1] == partner:
            wanted[partner[0]] = number + 1
        results = elementary.sin_cos(self.code, self.value(node[1]), tuple(wanted))
        for name, one in wanted.items():
            self.values[one] = results[name]


def _vector_of(code: Code, operation: str, *x: str) -> str:
    """Emit one operation on vectors."""
    if operation in FLOATING:
        return code.binary(FLOATING[operation], *x)
    if operation == "fma":
        return code.fma(*x)
    if operation == "fms":
        return code.fma(x[0], x[1], code.neg(x[2]))
    if operation == "fnma":
        return code.fma(code.neg(x[0]), x[1], x[2])
    if operation == "neg":
        return code.neg(x[0])
    if operation in ("sqrt", "copysign"):
        return code.call(operation, *x)
    if operation == "abs":
        return code.call("fabs", *x)
    if operation in ("floor", "ceil") and code.target.rounding:
        return code.call(operation, *x)
    if operation in ("min", "max"):
        return _extremum(code, "olt" if operation == "min" else "ogt", *x)
    if operation == "sign":
        rest = code.add(x[0], splat(0.0))  # NaN stays, -0 becomes 0 as in NumPy
        rest = code.select(code.compare("olt", x[0], splat(0.0)), splat(-1.0), rest)
        return code.select(code.compare("ogt", x[0], splat(0.0)), splat(1.0), rest)
    if operation == "erfinv":
        return elementary.erfinv(code, *x)
    if operation not in LIBM:
        raise NotImplementedError(operation)
    return elementary.library(code, operation, *x)


def _extremum(code: Code, condition: str, a: str, b: str) -> str:
    """Smaller or larger of two, ignoring a NaN beside a number, as NumPy's fmin and fmax."""
    chosen = code.select(code.compare(condition, a, b), a, b)
    return code.select(code.compare("uno", b, b), a, chosen)


def _define_tiles(module: Module, program: Program) -> None:
    """Define the loop over tiles, given a workspace for `groups` groups."""
    code = Code(module)
    size = code.lanes * 8
    stride = program.slots * size
    ports = len(program.graph.inputs)
    for slot, value in program.fixed.items():
        with code.loop(0, "%groups") as group:
            place = code.offset(code.offset("%workspace", group, stride), slot, size)
            code.store(code.vector, splat(value), place, size)
    rows = code.put(f"mul i64 %groups, {code.lanes}")
    tiles = code.put("sub i64 %last, %first")
    tiles = code.put(f"add i64 {tiles}, {rows}")
    tiles = code.put(f"sub i64 {tiles}, 1")
    tiles = code.put(f"udiv i64 {tiles}, {rows}")
    with code.loop(0, tiles) as tile:
        row = code.put(f"mul i64 {tile}, {rows}")
        row = code.put(f"add i64 {row}, %first")
        left = code.put(f"sub i64 %last, {row}")
        left = code.put(f"add i64 {left}, {code.lanes - 1}")
        groups = code.minimum(code.put(f"udiv i64 {left}, {code.lanes}"), "%groups")
        for index, (port, slot) in enumerate(
            zip(program.graph.inputs, program.input_slots, strict=True)
        ):
            if port.size:
                _move_rows(code, "gather", index, port.size, slot, stride, row, groups)
        for index in range(len(program.stages)):
            code.do(f"call void @stage{index}(ptr %workspace, i64 {groups})")
        for index, (port, slot) in enumerate(
            zip(program.graph.outputs, program.output_slots, strict=True), ports
        ):
            if port.size:
                _move_rows(code, "scatter", index, port.size, slot, stride, row, groups)
    code.do("ret void")
    header = "internal void @tiles(ptr %workspace, i64 %groups, ptr %ports, i64 %first, i64 %last)"
    module.define("tiles", header, code, "noinline nounwind")


def _move_rows(code, function, port, size, slot, stride, row, groups) -> None:
    record = code.offset("%ports", port, PORT)
    data = code.load("ptr", record)
    step = code.load("i64", code.offset(record, 8))
    place = code.offset("%workspace", slot, code.lanes * 8)
    code.do(
        f"call void @{function}(ptr {place}, i64 {stride}, ptr {data}, i64 {step}, "
        f"i64 {size}, i64 {row}, i64 %last, i64 {groups})"
    )


def _define_run(module: Module, program: Program) -> None:
    code = Code(module)
    stride = program.slots * code.lanes * 8
    rows = code.put("sub i64 %last, %first")
    empty = code.put(f"icmp sle i64 {rows}, 0")
    code.do(f"br i1 {empty}, label %nothing, label %some")
    code.label("nothing")
    code.do("ret i32 0")
    code.label("some")
    groups = code.put(f"add i64 {rows}, {code.lanes - 1}")
    groups = code.put(f"udiv i64 {groups}, {code.lanes}")
    groups = code.minimum(groups, str(program.groups))
    size = code.put(f"mul i64 {groups}, {stride}")
    small = code.put(f"icmp ule i64 {size}, {STACK}")
    call = f"i64 {groups}, ptr %ports, i64 %first, i64 %last)"
    code.do(f"br i1 {small}, label %stack, label %heap")
    code.label("stack")
    place = code.put(f"alloca i8, i64 {size}, align 64")
    code.do(f"call void @tiles(ptr {place}, {call}")
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
    code.do(f"call void @tiles(ptr {place}, {call}")
    code.do(f"call void {code.external('PyMem_RawFree')}(ptr {memory})")
    code.do("ret i32 0")
    code.label("none")
    code.do("ret i32 1")
    module.define("run", "i32 @run(ptr %ports, i64 %first, i64 %last)", code, "noinline nounwind")
