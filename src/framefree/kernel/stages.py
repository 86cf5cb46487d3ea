"""The stages of a program as LLVM assembly: straight-line code over vectors, one lane per state."""

from framefree.kernel.code import ALIGNED, Code, Module
from framefree.kernel.elementary import elementary, sin_cos
from framefree.kernel.graph import TRUTHS, is_leaf
from framefree.kernel.program import KernelProgram, Stage

FLOATING = {"add": "fadd", "sub": "fsub", "mul": "fmul", "div": "fdiv"}
COMPARISONS = {"lt": "olt", "le": "ole", "eq": "oeq", "ne": "une"}

FAR = 30  # operations from one use of a value to the next beyond which no register is free for it


def define_stage(module: Module, name: str, program: KernelProgram, stage: Stage) -> None:
    """Define ``void name(workspace, groups)``."""
    code = Code(module)
    stride = program.slots * code.width
    stop = code.put(f"mul i64 %groups, {stride}")
    with code.loop(0, stop, stride) as offset:
        base = code.put(f"getelementptr i8, ptr %workspace, i64 {offset}")
        StageBody(code, program, stage, base).emit()
    code.do("ret void")
    module.define(name, f"internal void @{name}(ptr %workspace, i64 %groups)", code, ALIGNED)


class StageBody:
    """Emits the nodes of one stage."""

    def __init__(self, code: Code, program: KernelProgram, stage: Stage, base: str) -> None:
        self.code, self.stage, self.base = code, stage, base
        self.nodes = program.graph.nodes
        self.values: dict[int, str] = {}  # node -> vector
        self.slots = dict(stage.loads)  # node -> slot where it lies
        self.used: dict[int, int] = {}  # node in a slot -> where it was used last
        self.now = stage.start
        self.masks: dict[int, str] = {}  # node that is a truth value -> mask

    def emit(self) -> None:
        """Emit the operations of the stage, one after another."""
        for number in range(self.stage.start, self.stage.stop):
            node, self.now = self.nodes[number], number
            if not is_leaf(node) and number not in self.values:
                self._emit_node(number, node)
            for slot in self.stage.stores.get(number, ()):
                self.code.store(self.code.vector, self.value(number), *self._place(slot))
                self.slots[number] = slot

    def value(self, number: int) -> str:
        """Return a node as a vector.

        What lies in a slot is read again where its last use is far behind: kept for so long it
        would be spilled to the stack, which costs a store.
        """
        if number in self.slots:
            if self.now - self.used.get(number, self.now) > FAR:
                self.values.pop(number, None)
            self.used[number] = self.now
        if number not in self.values:
            if number in self.masks:
                one, zero = self.code.constant(1.0), self.code.constant(0.0)
                self.values[number] = self.code.select(self.masks[number], one, zero)
            elif self.nodes[number][0] == "const":
                return self.code.constant(self.nodes[number][1])
            else:
                place = self._place(self.slots[number])
                self.values[number] = self.code.load(self.code.vector, *place)
        return self.values[number]

    def truth(self, number: int) -> str:
        """Return a node as a mask: where it is not zero."""
        if number not in self.masks:
            mask = self.code.compare("une", self.value(number), self.code.constant(0.0))
            self.masks[number] = mask
        return self.masks[number]

    def _place(self, slot: int) -> tuple[str, int]:
        size = self.code.width
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
            self.values[number] = vector_of(self.code, operation, *map(self.value, node[1:]))

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
        results = sin_cos(self.code, self.value(node[1]), tuple(wanted))
        for name, one in wanted.items():
            self.values[one] = results[name]


def vector_of(code: Code, operation: str, *x: str) -> str:
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
        zero, one = code.constant(0.0), code.constant(1.0)
        rest = code.add(x[0], zero)  # NaN stays, -0 becomes 0 as in NumPy
        rest = code.select(code.compare("olt", x[0], zero), code.neg(one), rest)
        return code.select(code.compare("ogt", x[0], zero), one, rest)
    return elementary(code, operation, *x)


def _extremum(code: Code, condition: str, a: str, b: str) -> str:
    """Smaller or larger of two, ignoring a NaN beside a number, as NumPy's fmin and fmax."""
    chosen = code.select(code.compare(condition, a, b), a, b)
    return code.select(code.compare("uno", b, b), a, chosen)
