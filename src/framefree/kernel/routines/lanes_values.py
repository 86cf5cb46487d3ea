"""Values of a routine for several states side by side: plain ones, and vectors of a lane a state.

Whole numbers, conditions and places in memory are plain as long as they are computed from plain
ones; a vector is made of them where they meet one. `vectors` are the names of values that vary;
`varies` what else does: variables, and loops that lanes leave at different times.
"""

import ast
from collections.abc import Callable
from dataclasses import dataclass

from framefree.kernel.code import bits
from framefree.kernel.routines.language import Routine, RoutineError
from framefree.kernel.routines.liveness import Liveness
from framefree.kernel.routines.to_llvm import (
    FLOAT_TESTS,
    FLOATS,
    WHOLE_TESTS,
    WHOLES,
    LlvmText,
)
from framefree.kernel.routines.translate import RoutineTarget, Value
from framefree.kernel.target import Target


@dataclass(frozen=True)
class Version:
    """A routine that is called by all lanes or some of them."""

    routine: Routine
    masked: bool

    @property
    def name(self) -> str:
        """Return a name that tells versions apart."""
        return f"{self.routine.name}.{'some' if self.masked else 'all'}"


class LanesValues(LlvmText, RoutineTarget):
    """Values of one version of a routine, plain and varying, and what is done with them."""

    def __init__(
        self,
        version: Version,
        prefix: str,
        table: dict[str, int],
        target: Target,
        varies: set[object],
        live: Liveness,
    ) -> None:
        super().__init__(prefix, table)
        self.fuses, self.lanes = target.fma, target.lanes
        self.returns, self.varies, self.live = version.routine.returns, varies, live
        self.vectors: set[str] = set()
        self.constructs: list[ast.stmt] = []
        self.loops: list[tuple[ast.stmt, str, str, int]] = []
        self.masked, self.stale = version.masked, False
        self.called: list[Version] = []
        self.floats, self.wholes = f"<{self.lanes} x double>", f"<{self.lanes} x i64>"
        self.truths, self.places = f"<{self.lanes} x i1>", f"<{self.lanes} x ptr>"
        self.own = {"float": self.floats, "int": self.wholes, "array": self.places}
        self.own |= {"truth": self.truths, "nothing": "void", "desk": "ptr"}
        self.plain = {"int": "i64", "array": "ptr", "truth": "i1", "desk": "ptr", "float": "double"}
        self._variable("mask", self.truths)
        self._do(
            f"store {self.truths} {'%lanes.mask' if self.masked else self._all()}, ptr %v.mask"
        )
        self._variable("returned", self.truths)
        self._do(f"store {self.truths} zeroinitializer, ptr %v.returned")
        if self.returns != "nothing":
            self._variable("result", self.own[self.returns])
        for name, kind in version.routine.kinds.items():
            self.declare(name, kind)
            value = f"%{name}"
            if name in self.varies:
                value = self._wide(value, kind)
            self._do(f"store {self._type(name, kind)} {value}, ptr %v.{name}.")

    # ------------------------------------------------------------------ plain and varying

    def _all(self) -> str:
        return "splat (i1 true)"

    def _type(self, name: str, kind: str) -> str:
        """Return the type of a variable."""
        return self.own[kind] if kind == "float" or name in self.varies else self.plain[kind]

    def _note(self, thing: object) -> None:
        """Remember that something varies; the body must be written anew if that is news."""
        self.stale |= thing not in self.varies
        self.varies.add(thing)

    def _vector(self, instruction: str) -> str:
        """Put an instruction whose result varies."""
        name = self._put(instruction)
        self.vectors.add(name)
        return name

    def _wide(self, text: str, kind: str) -> str:
        """Return a value in all lanes."""
        if kind == "float" or text in self.vectors:
            return text
        if kind == "array":
            return self._vector(
                f"getelementptr double, ptr {text}, {self.wholes} {self._numbers()}"
            )
        if not text.startswith("%"):
            return f"splat ({self.plain[kind]} {text})"
        own, plain = self.own[kind], self.plain[kind]
        one = self._put(f"insertelement {own} poison, {plain} {text}, i64 0")
        order = f"<{self.lanes} x i32> zeroinitializer"
        return self._vector(f"shufflevector {own} {one}, {own} poison, {order}")

    def _numbers(self) -> str:
        return f"<{', '.join(f'i64 {k}' for k in range(self.lanes))}>"

    def _mask(self) -> str:
        return self._put(f"load {self.truths}, ptr %v.mask") if self.masked else self._all()

    def _set_mask(self, mask: str) -> None:
        self._do(f"store {self.truths} {mask}, ptr %v.mask")

    def _both(self, mask: str, condition: str) -> str:
        """Return the lanes of a mask in which a condition holds."""
        never = f"{self.truths} zeroinitializer"
        return self._put(
            f"select {self.truths} {mask}, {self.truths} {self._wide(condition, 'truth')}, {never}"
        )

    def _any(self, mask: str) -> str:
        whole = self._put(f"bitcast {self.truths} {mask} to i{self.lanes}")
        return self._put(f"icmp ne i{self.lanes} {whole}, 0")

    # ------------------------------------------------------------------ values

    def constant(self, value: float | int, kind: str) -> str:
        """Return a number."""
        return str(value) if kind == "int" else f"splat (double {bits(float(value))})"

    def convert(self, text: str, kind: str) -> str:
        """Return an int as float, or a float as int, towards zero."""
        if kind == "float":
            if text in self.vectors or not text.startswith("%"):
                return self._put(f"sitofp {self.wholes} {self._wide(text, 'int')} to {self.floats}")
            one = self._put(f"sitofp i64 {text} to double")
            one = self._put(f"insertelement {self.floats} poison, double {one}, i64 0")
            order = f"<{self.lanes} x i32> zeroinitializer"
            return self._put(f"shufflevector {self.floats} {one}, {self.floats} poison, {order}")
        # Lanes that are not there may hold anything.
        whole = self._put(f"fptosi {self.floats} {text} to {self.wholes}")
        return self._vector(f"freeze {self.wholes} {whole}")

    def declare(self, name: str, kind: str) -> None:
        """Make a variable."""
        self._variable(f"{name}.", self._type(name, kind))

    def read(self, name: str, kind: str) -> str:
        """Return the value of a variable."""
        load = f"load {self._type(name, kind)}, ptr %v.{name}."
        return self._vector(load) if name in self.varies else self._put(load)

    def assign(self, name: str, value: Value) -> None:
        """Give a variable its value."""
        kept = any(self._outlives(name, construct) for construct in self.constructs)
        if value.kind != "float" and (kept or value.text in self.vectors):
            self._note(name)
        kind, text = self._type(name, value.kind), value.text
        if name in self.varies:
            text = self._wide(text, value.kind)
        if kept:
            old = self._put(f"load {kind}, ptr %v.{name}.")
            text = self._put(f"select {self.truths} {self._mask()}, {kind} {text}, {kind} {old}")
        self._do(f"store {kind} {text}, ptr %v.{name}.")

    def _outlives(self, name: str, construct: ast.stmt) -> bool:
        """Tell whether lanes outside of a construct read a variable."""
        # The other way of a branch is gone after the first.
        if name in self.live.after[construct] | self.live.other.get(construct, set()):
            return True
        return ("continue", construct) in self.varies and name in self.live.head[construct]

    def element(self, array: str, index: str) -> str:
        """Return an element of an array."""
        place, size = self.rest(array, index), self.lanes * 8
        if place not in self.vectors:
            return self._put(f"load {self.floats}, ptr {place}, align {size}")
        name = f"llvm.masked.gather.v{self.lanes}f64.v{self.lanes}p0"
        mask = f"{self.truths} {self._mask()}, {self.floats} zeroinitializer"
        return self._put(f"call {self.floats} @{name}({self.places} {place}, i32 8, {mask})")

    def store(self, array: str, index: str, value: str) -> None:
        """Write an element of an array."""
        place, size = self.rest(array, index), self.lanes * 8
        mask = f"{self.truths} {self._mask()}"
        if place in self.vectors:
            name = f"llvm.masked.scatter.v{self.lanes}f64.v{self.lanes}p0"
            where = f"{self.places} {place}, i32 8"
            self._do(f"call void @{name}({self.floats} {value}, {where}, {mask})")
        elif self.masked:
            name = f"llvm.masked.store.v{self.lanes}f64.p0"
            where = f"ptr {place}, i32 {size}"
            self._do(f"call void @{name}({self.floats} {value}, {where}, {mask})")
        else:
            self._do(f"store {self.floats} {value}, ptr {place}, align {size}")

    def rest(self, array: str, index: str) -> str:
        """Return the array from an element on."""
        kind = f"getelementptr {self._slot()}"
        if array in self.vectors or index in self.vectors:
            array, index = self._wide(array, "array"), self._wide(index, "int")
            return self._vector(f"{kind}, {self.places} {array}, {self.wholes} {index}")
        return self._put(f"{kind}, ptr {array}, i64 {index}")

    def _slot(self) -> str:
        return f"[{self.lanes} x double]"

    def arithmetic(self, operation: str, kind: str, a: str, b: str) -> str:
        """Return a sum, difference, product, quotient, whole quotient or remainder."""
        if kind == "float":
            return self._put(f"{FLOATS[operation]} {self.floats} {a}, {b}")
        word = WHOLES[operation].removesuffix(" nsw")
        return self._alike(f"{word} {{}} {{}}, {{}}", kind, a, b)

    def _alike(self, instruction: str, kind: str, a: str, b: str) -> str:
        """Put an instruction on two values that are both plain, or made both vectors."""
        if kind == "float" or a in self.vectors or b in self.vectors:
            a, b = self._wide(a, kind), self._wide(b, kind)
            return self._vector(instruction.format(self.own[kind], a, b))
        return self._put(instruction.format(self.plain[kind], a, b))

    def negative(self, value: Value) -> str:
        """Return -value."""
        if value.kind == "int":
            return self._alike("sub {} {}, {}", "int", "0", value.text)
        return self._put(f"fneg {self.floats} {value.text}")

    def compare(self, operation: str, kind: str, a: str, b: str) -> str:
        """Return whether a comparison holds."""
        word = f"fcmp {FLOAT_TESTS[operation]}" if kind == "float" else ""
        word = word or f"icmp {WHOLE_TESTS[operation]}"
        return self._alike(f"{word} {{}} {{}}, {{}}", kind, a, b)

    def function(self, name: str, kind: str, values: list[str]) -> str:
        """Return abs, sqrt or fma."""
        if name == "abs" and kind == "int":
            raise RoutineError("`abs` of a whole number is not translated")
        if name == "fma" and not self.fuses:
            product = self._put(f"fmul {self.floats} {values[0]}, {values[1]}")
            return self._put(f"fadd {self.floats} {product}, {values[2]}")
        intrinsic = {"abs": "fabs"}.get(name, name)
        arguments = ", ".join(f"{self.floats} {value}" for value in values)
        return self._put(f"call {self.floats} @llvm.{intrinsic}.v{self.lanes}f64({arguments})")

    def choose(self, condition: str, kind: str, a: str, b: str) -> str:
        """Return a where the condition holds, else b; both are known."""
        varying = condition in self.vectors
        test = f"{self.truths if varying else 'i1'} {condition}"
        if varying or kind == "float" or a in self.vectors or b in self.vectors:
            own, a, b = self.own[kind], self._wide(a, kind), self._wide(b, kind)
            return self._vector(f"select {test}, {own} {a}, {own} {b}")
        plain = self.plain[kind]
        return self._put(f"select {test}, {plain} {a}, {plain} {b}")

    def join(self, operation: str, parts: list[Callable[[], str]]) -> str:
        """Return `and` or `or` of conditions; later ones are looked at in lanes that need it."""
        value, before, was = parts[0](), self._mask(), self.masked
        for part in parts[1:]:
            # In lanes that know the answer, what comes next is not looked at.
            wide = self._wide(value, "truth")
            open_ = (
                wide
                if operation == "and"
                else self._vector(f"xor {self.truths} {wide}, {self._all()}")
            )
            self._set_mask(self._both(self._mask(), open_))
            self.masked = True
            value = self._condition(operation, wide, part)
        self.masked = was
        self._set_mask(before)
        return value

    def _condition(self, operation: str, sofar: str, part: Callable[[], str]) -> str:
        """Return a condition joined by another, which is left out where no lane asks for it."""
        look, done, skipped = self._fresh(), self._fresh(), ""
        some = self._any(self._mask())
        skipped = self.block
        self._end(f"br i1 {some}, label %{look}, label %{done}")
        self._label(look)
        word = "and" if operation == "and" else "or"
        other = self._wide(part(), "truth")
        value = self._put(f"{word} {self.truths} {sofar}, {other}")
        looked = self.block
        self._end(f"br label %{done}")
        self._label(done)
        return self._vector(f"phi {self.truths} [ {sofar}, %{skipped} ], [ {value}, %{looked} ]")

    def opposite(self, condition: str) -> str:
        """Return `not`."""
        return self._alike("xor {} {}, {}", "truth", condition, "true")

    def listed(self, name: str, values: tuple[int, ...], index: str) -> str:
        """Return one of some whole numbers of the desk that never change."""
        if index in self.vectors:
            raise RoutineError(f"`{name}` is asked for a place that differs between states")
        return super().listed(name, values, index)
