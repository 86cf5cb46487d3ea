"""Routines as LLVM: variables on the stack, which LLVM's own passes then keep in registers."""

import ast
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from framefree.kernel.code import bits
from framefree.kernel.routines.language import Layout, Routine, RoutineError
from framefree.kernel.routines.translate import RoutineTarget, Value, Walk, collect
from framefree.kernel.target import Target

TYPES = {"float": "double", "int": "i64", "array": "ptr", "desk": "ptr", "nothing": "void"}
FLOATS = {"+": "fadd", "-": "fsub", "*": "fmul", "/": "fdiv"}
WHOLES = {"+": "add nsw", "-": "sub nsw", "*": "mul nsw", "//": "sdiv", "%": "srem"}
FLOAT_TESTS = {"<": "olt", "<=": "ole", ">": "ogt", ">=": "oge", "==": "oeq", "!=": "une"}
WHOLE_TESTS = {"<": "slt", "<=": "sle", ">": "sgt", ">=": "sge", "==": "eq", "!=": "ne"}
SMALL = 160
"""Size of a routine's syntax up to which it becomes part of its callers, if it calls no other."""
DECLARED = (
    "declare double @llvm.fabs.f64(double)\ndeclare double @llvm.sqrt.f64(double)\n"
    "declare double @llvm.fma.f64(double, double, double)\n"
)


class LlvmText:
    """Instructions in blocks; variables lie on the stack."""

    def __init__(self, prefix: str, table: dict[str, int]) -> None:
        self.table = table
        self.lines: list[str] = []
        self.variables: list[str] = []
        self.block, self.open, self.number = "entry", True, 0
        self.prefix = prefix

    def _fresh(self) -> str:
        self.number += 1
        return f"t{self.number}"

    def _do(self, instruction: str) -> None:
        if self.open:
            self.lines.append("  " + instruction)

    def _put(self, instruction: str) -> str:
        name = "%" + self._fresh()
        self._do(f"{name} = {instruction}")
        return name

    def _label(self, name: str) -> None:
        self.lines.append(f"{name}:")
        self.block, self.open = name, True

    def _end(self, instruction: str) -> None:
        """End the block: what comes after it is not reached."""
        self._do(instruction)
        self.open = False

    def _variable(self, name: str, kind: str) -> None:
        self.variables.append(f"  %v.{name} = alloca {kind}")

    def part(self, desk: str, name: str, place: int) -> str:
        """Return an array of a desk; inputs and outputs lie where the desk's table says."""
        if name not in self.table:
            return self.rest(desk, str(place))
        entry = self._put(f"getelementptr i8, ptr {desk}, i64 {self.table[name]}")
        return self._put(f"load ptr, ptr {entry}, !invariant.load !0")

    def rest(self, array: str, index: str) -> str:
        """Return the array from an element on."""
        raise NotImplementedError

    def listed(self, name: str, values: tuple[int, ...], index: str) -> str:
        """Return one of some whole numbers of the desk that never change."""
        place = self._put(f"getelementptr i64, ptr @{self.prefix}{name}, i64 {index}")
        return self._put(f"load i64, ptr {place}")


class LlvmBody(LlvmText, RoutineTarget):
    """The body of one routine."""

    def __init__(self, routine: Routine, prefix: str, table: dict[str, int], fuses: bool) -> None:
        super().__init__(prefix, table)
        self.fuses = fuses
        self.loops: list[tuple[str, str]] = []
        self.called: list[Routine] = []
        for name, kind in routine.kinds.items():
            self.declare(name, kind)
            self._do(f"store {TYPES[kind]} %{name}, ptr %v.{name}")

    # ------------------------------------------------------------------ values

    def constant(self, value: float | int, kind: str) -> str:
        """Return a number."""
        return str(value) if kind == "int" else bits(float(value))

    def convert(self, text: str, kind: str) -> str:
        """Return an int as float, or a float as int, towards zero."""
        if kind == "float":
            return self._put(f"sitofp i64 {text} to double")
        return self._put(f"fptosi double {text} to i64")

    def declare(self, name: str, kind: str) -> None:
        """Make a variable."""
        self._variable(name, TYPES[kind])

    def read(self, name: str, kind: str) -> str:
        """Return the value of a variable."""
        return self._put(f"load {TYPES[kind]}, ptr %v.{name}")

    def assign(self, name: str, value: Value) -> None:
        """Give a variable its value."""
        self._do(f"store {TYPES[value.kind]} {value.text}, ptr %v.{name}")

    def element(self, array: str, index: str) -> str:
        """Return an element of an array."""
        return self._put(f"load double, ptr {self.rest(array, index)}, align 8")

    def store(self, array: str, index: str, value: str) -> None:
        """Write an element of an array."""
        self._do(f"store double {value}, ptr {self.rest(array, index)}, align 8")

    def rest(self, array: str, index: str) -> str:
        """Return the array from an element on."""
        return self._put(f"getelementptr inbounds double, ptr {array}, i64 {index}")

    def arithmetic(self, operation: str, kind: str, a: str, b: str) -> str:
        """Return a sum, difference, product, quotient, whole quotient or remainder."""
        word = FLOATS[operation] if kind == "float" else WHOLES[operation]
        return self._put(f"{word} {TYPES[kind]} {a}, {b}")

    def negative(self, value: Value) -> str:
        """Return -value."""
        if value.kind == "int":
            return self._put(f"sub nsw i64 0, {value.text}")
        return self._put(f"fneg double {value.text}")

    def compare(self, operation: str, kind: str, a: str, b: str) -> str:
        """Return whether a comparison holds."""
        if kind == "float":
            return self._put(f"fcmp {FLOAT_TESTS[operation]} double {a}, {b}")
        return self._put(f"icmp {WHOLE_TESTS[operation]} i64 {a}, {b}")

    def function(self, name: str, kind: str, values: list[str]) -> str:
        """Return abs, sqrt or fma."""
        if name == "abs" and kind == "int":
            raise RoutineError("`abs` of a whole number is not translated")
        if name == "fma" and not self.fuses:
            product = self._put(f"fmul double {values[0]}, {values[1]}")
            return self._put(f"fadd double {product}, {values[2]}")
        intrinsic = {"abs": "fabs"}.get(name, name)
        arguments = ", ".join(f"double {value}" for value in values)
        return self._put(f"call double @llvm.{intrinsic}.f64({arguments})")

    def choose(self, condition: str, kind: str, a: str, b: str) -> str:
        """Return a where the condition holds, else b; both are known."""
        return self._put(f"select i1 {condition}, {TYPES[kind]} {a}, {TYPES[kind]} {b}")

    def join(self, operation: str, parts: list[Callable[[], str]]) -> str:
        """Return `and` or `or` of conditions; later ones are not looked at without need."""
        done, ends, short = self._fresh(), [], "false" if operation == "and" else "true"
        for part in parts[:-1]:
            more, condition = self._fresh(), part()
            ends.append(f"[ {short}, %{self.block} ]")
            ways = (more, done) if operation == "and" else (done, more)
            self._end(f"br i1 {condition}, label %{ways[0]}, label %{ways[1]}")
            self._label(more)
        last = parts[-1]()
        ends.append(f"[ {last}, %{self.block} ]")
        self._end(f"br label %{done}")
        self._label(done)
        return self._put(f"phi i1 {', '.join(ends)}")

    def opposite(self, condition: str) -> str:
        """Return `not`."""
        return self._put(f"xor i1 {condition}, true")

    def call(self, routine: Routine, values: list[Value]) -> str:
        """Call another routine."""
        self.called.append(routine)
        passed = ", ".join(f"{TYPES[value.kind]} {value.text}" for value in values)
        call = f"call {TYPES[routine.returns]} @{self.prefix}{routine.name}({passed})"
        if routine.returns == "nothing":
            self._do(call)
            return ""
        return self._put(call)

    # ------------------------------------------------------------------ control

    def close(self, returns: str) -> None:
        """End the body."""
        self._end("ret void" if returns == "nothing" else "unreachable")

    def branch(self, condition: str, then: Callable[[], None], other: Callable[[], None]) -> None:
        """Do one thing or another."""
        yes, no, done = self._fresh(), self._fresh(), self._fresh()
        self._end(f"br i1 {condition}, label %{yes}, label %{no}")
        for label, body in ((yes, then), (no, other)):
            self._label(label)
            body()
            self._end(f"br label %{done}")
        self._label(done)

    @contextmanager
    def repeat(self, condition: Callable[[], str]) -> Iterator[None]:
        """Do the body while a condition holds."""
        head, body, done = self._fresh(), self._fresh(), self._fresh()
        self._end(f"br label %{head}")
        self._label(head)
        self._end(f"br i1 {condition()}, label %{body}, label %{done}")
        self._label(body)
        self.loops.append((head, done))
        yield
        self.loops.pop()
        self._end(f"br label %{head}")
        self._label(done)

    @contextmanager
    def count(self, name: str, start: str, stop: str, step: str) -> Iterator[None]:
        """Do the body for a variable from start to below stop."""
        head, body, latch, done = (self._fresh() for _ in range(4))
        before = self.block
        self._end(f"br label %{head}")
        self._label(head)
        index, following = "%" + self._fresh(), "%" + self._fresh()
        self._do(f"{index} = phi i64 [ {start}, %{before} ], [ {following}, %{latch} ]")
        inside = self._put(f"icmp slt i64 {index}, {stop}")
        self._end(f"br i1 {inside}, label %{body}, label %{done}")
        self._label(body)
        self._do(f"store i64 {index}, ptr %v.{name}")
        self.loops.append((latch, done))
        yield
        self.loops.pop()
        self._end(f"br label %{latch}")
        self._label(latch)
        self._do(f"{following} = add nsw i64 {index}, {step}")
        self._end(f"br label %{head}")
        self._label(done)

    def leave(self, word: str) -> None:
        """Write `break` or `continue`."""
        following, done = self.loops[-1]
        self._end(f"br label %{done if word == 'break' else following}")

    def give(self, value: Value | None) -> None:
        """Return from the routine."""
        self._end("ret void" if value is None else f"ret {TYPES[value.kind]} {value.text}")


def routine_text(
    main: Routine, layout: Layout, prefix: str, table: dict[str, int], target: Target
) -> str:
    """Return a routine and all that it calls as LLVM assembly, names with a prefix.

    `table` says of arrays that do not lie on the desk where on it their address is, in bytes.
    """
    functions: list[str] = []

    def write(routine: Routine) -> list[Routine]:
        body = LlvmBody(routine, prefix, table, target.fma)
        Walk(routine, body, layout).write()
        body.close(routine.returns)
        kinds = {**dict.fromkeys(TYPES, ""), "array": " noalias nocapture"}
        types = [f"{TYPES[k]}{kinds[k]} %{n}" for n, k in routine.kinds.items()]
        scope = "" if routine is main else "internal "
        name = f"{prefix}{routine.name}({', '.join(types)})"
        size = sum(1 for _ in ast.walk(routine.tree))
        leaf = size <= SMALL and not body.called and routine is not main
        inlined = "alwaysinline" if leaf else "noinline"
        header = f"define {scope}{TYPES[routine.returns]} @{name} nounwind {inlined}"
        lines = "\n".join([*body.variables, *body.lines])
        functions.append(f"{header} {{\nentry:\n{lines}\n}}\n")
        return body.called

    collect(main, write)
    return DECLARED + tables_text(layout, prefix) + "\n".join(functions)


def tables_text(layout: Layout, prefix: str) -> str:
    """Return the lists of whole numbers of a desk."""
    text = ""
    for name, values in layout.tables.items():
        listed = ", ".join(f"i64 {value}" for value in values)
        text += f"@{prefix}{name} = internal constant [{len(values)} x i64] [{listed}]\n"
    return text
