"""Calls of functions of matrices as LLVM assembly: loops over arrays; see `matrices.py`.

Two groups of lanes run together, so that what is read of a matrix serves both; an odd one out runs
alone. Rows of a product go in blocks of eight, whose sums stay in registers (four at a time for two
groups); constant matrices are stored block by block, and a block column by column. Every sum adds
its terms in the order of the columns, so that no result depends on blocks or groups. Elementary
functions are written for eight vectors at once, instruction by instruction.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from framefree.kernel import exponential
from framefree.kernel.code import ALIGNED, Code, Module, spread
from framefree.kernel.elementary import VECTOR
from framefree.kernel.matrices import Array, ArrayStep, MatrixProgram
from framefree.kernel.program import KernelProgram, Stage
from framefree.kernel.stages import vector_of

ABREAST = 8  # vectors of an array whose elementary functions are written side by side
LONG = {"tanh": exponential.tanh, "exp": exponential.exp}  # chains of instructions, no branches
BLOCK = 8  # rows of a product whose matrix elements lie together
TOGETHER = {1: 8, 2: 4}  # rows whose sums are in registers, by groups


@dataclass(frozen=True)
class ArrayPlace:
    """Where the vectors of an array lie: bytes from element to element and group to group."""

    pointer: str
    element: int
    group: int

    def at(self, code: Code, index: str | int, beyond: int, group: int) -> str:
        """Return the address of element `index + beyond`."""
        pointer = code.offset(self.pointer, index, self.element)
        shift = beyond * self.element + group * self.group
        return code.offset(pointer, shift) if shift else pointer


# ------------------------------------------------------------------ the call


def define_call(module: Module, name: str, program: KernelProgram, stage: Stage) -> None:
    """Define ``void name(workspace, groups)``: a stage that is one call."""
    node = program.graph.nodes[stage.start]
    matrices: MatrixProgram = node[0]
    code = Code(module)
    size = code.lanes * 8
    stride = program.slots * size
    local = code.put(f"alloca i8, i64 {2 * size * _local_size(matrices)}, align 64")
    pairs = code.put("and i64 %groups, -2")

    def call(group: str, groups: int) -> None:
        base = code.offset("%workspace", group, stride)
        MatrixCall(code, program, stage, base, local, groups).emit()

    with code.loop(0, pairs, 2) as group:
        call(group, 2)
    with code.when(code.put(f"icmp slt i64 {pairs}, %groups")):
        call(pairs, 1)
    code.do("ret void")
    module.define(name, f"internal void @{name}(ptr %workspace, i64 %groups)", code, ALIGNED)


def _local_size(matrices: MatrixProgram) -> int:
    """Return how many elements of inputs and buffers a call keeps for a group."""
    return sum(matrices.inputs) + sum(matrices.buffers)


class MatrixCall:
    """Emits one call for one or two groups."""

    def __init__(
        self,
        code: Code,
        program: KernelProgram,
        stage: Stage,
        base: str,
        local: str,
        groups: int,
    ) -> None:
        self.code, self.stage, self.base, self.local, self.groups = code, stage, base, local, groups
        self.nodes = program.graph.nodes
        self.matrices: MatrixProgram = self.nodes[stage.start][0]
        self.numbers = self.nodes[stage.start][1:]
        self.stride = program.slots * code.lanes * 8

    def emit(self) -> None:
        """Bring the operands together, and run the steps."""
        direct, places, first, local = [], [], 0, 0
        size = self.code.lanes * 8
        for count in self.matrices.inputs:
            slot = self._in_a_row(self.numbers[first : first + count])
            direct.append(slot is not None)
            if slot is None:
                pointer = self.code.offset(self.local, local, self.groups * size)
                self._gather(pointer, self.numbers[first : first + count])
            else:
                pointer = self.code.offset(self.base, slot, size)
            places.append(pointer)
            first += count
            local += count
        results = self.stage.stores[self.stage.start]
        out = self.code.offset(self.base, results[0] if results else 0, size)
        name = _define_steps(
            self.code.module, self.matrices, tuple(direct), self.groups, self.stride
        )
        pointers = ", ".join(f"ptr {one}" for one in (self.local, out, *places))
        self.code.do(f"call void @{name}({pointers})")

    def _in_a_row(self, numbers: tuple[int, ...]) -> int | None:
        """Return the first slot of operands that follow one another in the workspace."""
        slots = [self.stage.loads.get(number) for number in numbers]
        if not slots or slots[0] is None:
            return None
        return slots[0] if slots == list(range(slots[0], slots[0] + len(slots))) else None

    def _gather(self, pointer: str, numbers: tuple[int, ...]) -> None:
        code, size = self.code, self.code.lanes * 8
        for k, number in enumerate(numbers):
            for group in range(self.groups):
                if number in self.stage.loads:
                    shift = self.stage.loads[number] * size + group * self.stride
                    value = code.load(code.vector, code.offset(self.base, shift), size)
                else:
                    value = code.constant(self.nodes[number][1])
                place = code.offset(pointer, (k * self.groups + group) * size)
                code.store(code.vector, value, place, size)


def _define_steps(
    module: Module,
    matrices: MatrixProgram,
    direct: tuple[bool, ...],
    groups: int,
    stride: int,
) -> str:
    """Define ``void name(local, out, inputs...)``, the steps for some groups; return its name."""
    key = ("steps", matrices, direct, groups)
    name = module.name_of(key, "matrices")
    if module.has(name):
        return name
    module.reserve(name)
    code = Code(module)
    ArraySteps(code, matrices, direct, groups, stride).emit()
    code.do("ret void")
    pointers = ", ".join(["ptr %local", "ptr %out", *(f"ptr %in{k}" for k in range(len(direct)))])
    module.define(name, f"internal void @{name}({pointers})", code, f"noinline {ALIGNED}")
    return name


# ------------------------------------------------------------------ the steps


class ArraySteps:
    """Emits the steps of a function of matrices."""

    def __init__(
        self,
        code: Code,
        matrices: MatrixProgram,
        direct: tuple[bool, ...],
        groups: int,
        stride: int,
    ) -> None:
        self.code, self.matrices, self.groups = code, matrices, groups
        size = code.lanes * 8
        near, far = (groups * size, size), (size, stride)
        self.places: dict[tuple[str, int], ArrayPlace] = {}
        for k, is_direct in enumerate(direct):
            self.places["input", k] = ArrayPlace(f"%in{k}", *(far if is_direct else near))
        first = sum(matrices.inputs)
        for k, count in enumerate(matrices.buffers):
            pointer = code.offset("%local", first, groups * size)
            self.places["buffer", k] = ArrayPlace(pointer, *near)
            first += count
        first = 0
        for k, count in enumerate(matrices.outputs):
            self.places["output", k] = ArrayPlace(code.offset("%out", first, size), *far)
            first += count

    def emit(self) -> None:
        """Emit all steps, one after another."""
        for step in self.matrices.steps:
            if step.operation == "product":
                Product(self, step).emit()
            else:
                self._elementwise(step)

    def _elementwise(self, step: ArrayStep) -> None:
        if step.operation in LONG and self.code.target.fma and self._is_dense(step):
            return self._abreast(step)
        code = self.code
        with code.loop(0, str(step.target.size)) as index:
            for group in range(self.groups):
                values = [
                    self.load(one, index if one.size == step.target.size else 0, 0, group)
                    for one in step.operands
                ]
                self.store(step.target, index, 0, group, self._operate(step.operation, values))
        return None

    def _is_dense(self, step: ArrayStep) -> bool:
        """Tell whether the vectors of a step of one operand follow one another in memory."""
        places = [self.places.get((one.kind, one.index)) for one in (*step.operands, step.target)]
        same = step.operands[0].size == step.target.size
        dense = self.groups * self.code.lanes * 8
        return same and all(one is not None and one.element == dense for one in places)

    def _abreast(self, step: ArrayStep) -> None:
        """Emit a long function of many vectors at once."""
        code, size = self.code, self.code.lanes * 8
        source, target = (
            self.places[one.kind, one.index].pointer for one in (step.operands[0], step.target)
        )
        count = step.target.size * self.groups
        whole = count - count % ABREAST
        for first, last, together in ((0, whole, ABREAST), (whole, count, 1)):
            if first == last:
                continue
            with code.loop(first, str(last), together) as index, code.wider(together):
                x = code.load(code.vector, code.offset(source, index, size), size)
                value = LONG[step.operation](code, x)
                code.store(code.vector, value, code.offset(target, index, size), size)

    def _operate(self, operation: str, values: list[str]) -> str:
        if operation == "copy":
            return values[0]
        if operation in VECTOR and self.code.target.fma:
            return VECTOR[operation](self.code, *values)  # written out: groups overlap
        return vector_of(self.code, operation, *values)

    def load(self, array: Array, index: str | int, beyond: int, group: int) -> str:
        """Return element `index + beyond` of an array."""
        code = self.code
        if array.kind == "constant":
            numbers = code.module.numbers(self.matrices.constants[array.index])
            return spread(code, code.offset(code.offset(numbers, index, 8), beyond * 8))
        place = self.places[array.kind, array.index]
        return code.load(code.vector, place.at(code, index, beyond, group), code.lanes * 8)

    def store(self, array: Array, index: str | int, beyond: int, group: int, value: str) -> None:
        """Write element `index + beyond` of an array."""
        place = self.places[array.kind, array.index]
        address = place.at(self.code, index, beyond, group)
        self.code.store(self.code.vector, value, address, self.code.lanes * 8)


class Product:
    """Emits y + A x."""

    def __init__(self, steps: ArraySteps, step: ArrayStep) -> None:
        self.steps, self.code, self.step = steps, steps.code, step
        self.groups = steps.groups
        self.start, self.matrix, self.column = step.operands
        self.packed = ""
        if self.matrix.kind == "constant":
            values = steps.matrices.constants[self.matrix.index]
            self.packed = self.code.module.numbers(_in_blocks(values, self.matrix.rows))

    def emit(self) -> None:
        """Emit whole blocks as a loop, and what is left."""
        rows = self.matrix.rows
        whole = rows - rows % BLOCK
        if whole:
            with self.code.loop(0, str(whole), BLOCK) as row:
                self._block(row, BLOCK)
        if rows % BLOCK:
            self._block(whole, rows % BLOCK)

    def _block(self, row: str | int, width: int) -> None:
        together = TOGETHER[self.groups]
        for first in range(0, width, together):
            self._rows(row, width, range(first, min(first + together, width)))

    def _rows(self, row: str | int, width: int, chosen: range) -> None:
        """Emit rows `row + chosen`, of a block that has `width`."""
        steps, code, groups = self.steps, self.code, range(self.groups)
        places = [(q, group) for q in chosen for group in groups]
        sums = [steps.load(self.start, row, q, group) for q, group in places]
        element = self._element_of(row, width)
        with _summing(code, self.matrix.columns, sums) as (index, values, following):
            x = [steps.load(self.column, index, 0, group) for group in groups]
            at = element(index)
            for q in chosen:
                a = [at(q, group) for group in (groups if not self.packed else (0,))]
                for group in groups:
                    old = values[len(following)]
                    following.append(code.fma(a[group % len(a)], x[group], old))
        for (q, group), value in zip(places, following, strict=True):
            steps.store(self.step.target, row, q, group, value)

    def _element_of(self, row: str | int, width: int) -> Callable[[str], Callable[[int, int], str]]:
        """Return where row `row + q` of a column is found: column -> (q, group) -> vector."""
        code, matrix = self.code, self.matrix
        if self.packed:
            block = code.offset(self.packed, row, 8 * matrix.columns)

            def packed(column: str) -> Callable[[int, int], str]:
                pointer = code.offset(block, column, 8 * width)
                return lambda q, group: spread(code, code.offset(pointer, q * 8))

            return packed

        def given(column: str) -> Callable[[int, int], str]:
            first = code.put(f"mul i64 {column}, {matrix.rows}")
            first = code.put(f"add i64 {first}, {row}")
            return lambda q, group: self.steps.load(matrix, first, q, group)

        return given


@contextmanager
def _summing(
    code: Code, count: int, first: list[str]
) -> Iterator[tuple[str, list[str], list[str]]]:
    """Loop `count` > 0 times over index, sums so far, and a list that the body fills with new ones.

    After it the list has the sums.
    """
    before, body = code.block, code.fresh("terms")
    done, end = code.fresh("summed"), code.fresh("next")
    index, following = "%" + code.fresh("i"), "%" + code.fresh("i")
    names = ["%" + code.fresh("sum") for _ in first]
    code.jump(body)
    code.label(body)
    place = len(code.lines)
    results: list[str] = []
    yield index, names, results
    code.jump(end)
    code.label(end)
    code.do(f"{following} = add nsw i64 {index}, 1")
    more = code.put(f"icmp slt i64 {following}, {count}")
    code.do(f"br i1 {more}, label %{body}, label %{done}")
    phis = [f"  {index} = phi i64 [ 0, %{before} ], [ {following}, %{end} ]"]
    for name, start, result in zip(names, first, results, strict=True):
        phis.append(f"  {name} = phi {code.vector} [ {start}, %{before} ], [ {result}, %{end} ]")
    code.lines[place:place] = phis
    code.label(done)


def _in_blocks(values: tuple[float, ...], rows: int) -> tuple[float, ...]:
    """Return a matrix, given column by column, block of rows by block of rows."""
    columns = len(values) // rows
    return tuple(
        values[row + rows * column]
        for first in range(0, rows, BLOCK)
        for column in range(columns)
        for row in range(first, min(first + BLOCK, rows))
    )
