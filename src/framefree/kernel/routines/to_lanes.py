"""Routines as LLVM for several states side by side: one lane of a vector for each.

Every number is a vector. Whole numbers, conditions and places in memory that are the same for all
states stay plain, so that loops and addresses are; which these are follows from the text: what is
computed from plain values is plain, unless it is assigned where only some of the lanes are.

Where a condition differs from lane to lane both ways are gone, each with a mask of the lanes that
are there, and not at all without any. A loop goes on until no lane is left in it. Stores to memory
are for the lanes of the mask; variables are kept from others if those read them later
(`liveness.py`). The operations on a lane, and so the bits, are those of a state alone.
"""

import ast
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from framefree.kernel.code import ALIGNED, bits
from framefree.kernel.routines.language import Layout, Routine, RoutineError
from framefree.kernel.routines.liveness import Liveness
from framefree.kernel.routines.to_llvm import (
    FLOAT_TESTS,
    FLOATS,
    SMALL,
    WHOLE_TESTS,
    WHOLES,
    LlvmText,
    tables_text,
)
from framefree.kernel.routines.translate import RoutineTarget, Value, Walk
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


class LanesBody(LlvmText, RoutineTarget):
    """The body of one version of a routine."""

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

    def call(self, routine: Routine, values: list[Value]) -> str:
        """Call another routine: once for all lanes whose whole numbers and places agree."""
        differ = [k for k, v in enumerate(values) if v.kind != "float" and v.text in self.vectors]
        if not differ:
            return self._call(routine, values, self._mask() if self.masked else None)
        kind, result, waiting = self.own[routine.returns], self._fresh(), self._fresh()
        if routine.returns != "nothing":
            self._variable(result, kind)
        self._variable(waiting, self.truths)
        self._do(f"store {self.truths} {self._mask()}, ptr %v.{waiting}")
        head, body, done = self._fresh(), self._fresh(), self._fresh()
        self._end(f"br label %{head}")
        self._label(head)
        left = self._put(f"load {self.truths}, ptr %v.{waiting}")
        self._end(f"br i1 {self._any(left)}, label %{body}, label %{done}")
        self._label(body)
        alike, same = self._first(left, values, differ)
        given = self._call(routine, alike, same)
        if routine.returns != "nothing":
            old = self._put(f"load {kind}, ptr %v.{result}")
            new = self._put(f"select {self.truths} {same}, {kind} {given}, {kind} {old}")
            self._do(f"store {kind} {new}, ptr %v.{result}")
        left = self._put(f"xor {self.truths} {left}, {same}")
        self._do(f"store {self.truths} {left}, ptr %v.{waiting}")
        self._end(f"br label %{head}")
        self._label(done)
        if routine.returns == "nothing":
            return ""
        load = f"load {kind}, ptr %v.{result}"
        return self._vector(load) if routine.returns != "float" else self._put(load)

    def _first(self, mask: str, values: list[Value], differ: list[int]) -> tuple[list[Value], str]:
        """Return values as the first lane of a mask has them, and which of its lanes agree."""
        whole = self._put(f"bitcast {self.truths} {mask} to i{self.lanes}")
        lane = self._put(
            f"call i{self.lanes} @llvm.cttz.i{self.lanes}(i{self.lanes} {whole}, i1 true)"
        )
        lane = self._put(f"zext i{self.lanes} {lane} to i64")
        alike, same = list(values), mask
        for k in differ:
            kind, text = values[k].kind, values[k].text
            own = self.own[kind]
            one = self._put(f"extractelement {own} {text}, i64 {lane}")
            if kind == "array":
                back = self._put(f"sub i64 0, {lane}")
                one = self._put(f"getelementptr double, ptr {one}, i64 {back}")
            equal = self._vector(f"icmp eq {own} {text}, {self._wide(one, kind)}")
            alike[k], same = Value(one, kind), self._both(same, equal)
        return alike, same

    def _call(self, routine: Routine, values: list[Value], mask: str | None) -> str:
        """Call another routine; only numbers differ between lanes."""
        self.called.append(Version(routine, mask is not None))
        kinds = {**self.plain, "float": self.floats}
        passed = [f"{kinds[value.kind]} {value.text}" for value in values]
        if mask is not None:
            passed.append(f"{self.truths} {mask}")
        name = f"{self.prefix}{self.called[-1].name}"
        call = f"call {self.own[routine.returns]} @{name}({', '.join(passed)})"
        if routine.returns == "nothing":
            self._do(call)
            return ""
        return self._vector(call) if routine.returns != "float" else self._put(call)

    # ------------------------------------------------------------------ control

    def close(self, returns: str) -> None:
        """End the body."""
        if returns == "nothing":
            self._end("ret void")
        else:
            kind = self.own[returns]
            result = self._put(f"load {kind}, ptr %v.result")
            self._end(f"ret {kind} {result}")

    def branch(self, condition: str, then: Callable[[], None], other: Callable[[], None]) -> None:
        """Do one thing or another."""
        if condition not in self.vectors:
            yes, no, done = self._fresh(), self._fresh(), self._fresh()
            self._end(f"br i1 {condition}, label %{yes}, label %{no}")
            was, after = self.masked, False
            for label, body in ((yes, then), (no, other)):
                self._label(label)
                self.masked = was
                body()
                after |= self.masked
                self._end(f"br label %{done}")
            self.masked = after
            self._label(done)
            return
        node, was, mask = self.node, self.masked, self._mask()
        opposite = self._vector(f"xor {self.truths} {condition}, {self._all()}")
        ways, left = (self._both(mask, condition), self._both(mask, opposite)), []
        self.constructs.append(node)
        self.masked = True
        for way, body in zip(ways, (then, other), strict=True):
            inside, done = self._fresh(), self._fresh()
            self._set_mask(way)
            self._end(f"br i1 {self._any(way)}, label %{inside}, label %{done}")
            self._label(inside)
            body()
            self._end(f"br label %{done}")
            self._label(done)
            left.append(self._mask())
        self.constructs.pop()
        self._set_mask(self._put(f"or {self.truths} {left[0]}, {left[1]}"))
        self.masked = was
        if _leaves(node):
            self.masked = True
            self._hurry()

    def _hurry(self) -> None:
        """Skip what comes next where no lane is left, if this is the body of a loop or routine."""
        inside = self.constructs[self.loops[-1][3] :] if self.loops else self.constructs
        if inside:
            return
        going, gone = self._fresh(), self._fresh()
        self._end(f"br i1 {self._any(self._mask())}, label %{going}, label %{gone}")
        self._label(gone)
        if self.loops:
            self._end(f"br label %{self.loops[-1][1]}")
        else:
            self.close(self.returns)
        self._label(going)

    @contextmanager
    def repeat(self, condition: Callable[[], str]) -> Iterator[None]:
        """Do the body while a condition holds."""
        with self._loop("", lambda _: condition()):
            yield

    @contextmanager
    def count(self, name: str, start: str, stop: str, step: str) -> Iterator[None]:
        """Do the body for a variable from start to below stop."""
        at, varying = f"at.{self._fresh()}", start in self.vectors or step in self.vectors
        kind = self.wholes if varying else "i64"
        self._variable(at, kind)
        start = self._wide(start, "int") if varying else start
        self._do(f"store {kind} {start}, ptr %v.{at}")

        def index() -> str:
            load = f"load {kind}, ptr %v.{at}"
            return self._vector(load) if varying else self._put(load)

        def inside(_: str) -> str:
            return self.compare("<", "int", index(), stop)

        with self._loop(at, inside):
            self.assign(name, Value(index(), "int"))
            yield
            self._label_latch()
            following = self.arithmetic("+", "int", index(), step)
            self._do(f"store {kind} {following}, ptr %v.{at}")

    def _label_latch(self) -> None:
        """Begin what ends a turn, where lanes that left it early are back."""
        node, latch, _, _ = self.loops[-1]
        self._end(f"br label %{latch}")
        self._label(latch)
        if ("continue", node) in self.varies:
            back = self._put(f"load {self.truths}, ptr %v.continued.{latch}")
            self._set_mask(self._put(f"or {self.truths} {self._mask()}, {back}"))

    @contextmanager
    def _loop(self, counted: str, condition: Callable[[str], str]) -> Iterator[None]:
        node, was = self.node, self.masked
        head, body, latch, done = (self._fresh() for _ in range(4))
        before, leaks = self._mask(), ("leaves", node) in self.varies
        varying = leaks or ("turns", node) in self.varies
        self.masked = was or varying
        self._variable(f"continued.{latch}", self.truths)
        if varying:
            self.constructs.append(node)
            self._set_mask(before)
        self.loops.append((node, latch, done, len(self.constructs)))
        self._end(f"br label %{head}")
        self._label(head)
        test = condition(head)
        if test in self.vectors and ("turns", node) not in self.varies:
            self._note(("turns", node))
        if varying:
            mask = self._both(self._mask(), test)
            self._set_mask(mask)
            test = self._any(mask)
        self._end(f"br i1 {test}, label %{body}, label %{done}")
        self._label(body)
        self._do(f"store {self.truths} zeroinitializer, ptr %v.continued.{latch}")
        yield
        if not counted:
            self._label_latch()
        self._end(f"br label %{head}")
        self._label(done)
        self.loops.pop()
        if varying:
            self.constructs.pop()
            returned = ("returns", node) in self.varies
            if returned:
                gone = self._put(f"load {self.truths}, ptr %v.returned")
                stay = self._vector(f"xor {self.truths} {gone}, {self._all()}")
                before = self._both(before, stay)
            self._set_mask(before)
            self.masked = was or returned
            if returned:
                self._hurry()

    def leave(self, word: str) -> None:
        """Write `break` or `continue`."""
        node, latch, done, depth = self.loops[-1]
        if len(self.constructs) == depth and ("leaves", node) not in self.varies:
            self._end(f"br label %{done if word == 'break' else latch}")
            return
        self._note(("leaves", node))
        if word == "continue":
            self._note(("continue", node))
            kind, place = self.truths, f"ptr %v.continued.{latch}"
            old = self._put(f"load {kind}, {place}")
            self._do(f"store {kind} {self._put(f'or {kind} {old}, {self._mask()}')}, {place}")
        self._set_mask("zeroinitializer")

    def give(self, value: Value | None) -> None:
        """Return from the routine."""
        mask = self._mask()
        if value is not None:
            kind, text = self.own[value.kind], self._wide(value.text, value.kind)
            if self.masked:
                old = self._put(f"load {kind}, ptr %v.result")
                text = self._put(f"select {self.truths} {mask}, {kind} {text}, {kind} {old}")
            self._do(f"store {kind} {text}, ptr %v.result")
        if not self.constructs:
            self.close(self.returns)
            return
        for node, _, _, _ in self.loops:
            self._note(("leaves", node))
            self._note(("returns", node))
        old = self._put(f"load {self.truths}, ptr %v.returned")
        gone = self._put(f"or {self.truths} {old}, {mask}")
        self._do(f"store {self.truths} {gone}, ptr %v.returned")
        self._set_mask("zeroinitializer")


def _leaves(node: ast.stmt) -> bool:
    kinds = (ast.Return, ast.Break, ast.Continue)
    return any(isinstance(one, kinds) for one in ast.walk(node))


def lanes_text(
    main: Routine, layout: Layout, prefix: str, table: dict[str, int], target: Target
) -> str:
    """Return a routine and all that it calls as LLVM assembly, as `routine_text` does.

    The routine takes a desk on which each number has a slot as wide as a vector.
    """
    first = Version(main, False)
    waiting, known, functions = [first], {first}, []
    while waiting:
        version = waiting.pop()
        body = _written(version, layout, prefix, table, target)
        functions.append(_function(version, body, prefix, version is first))
        waiting += [one for one in dict.fromkeys(body.called) if one not in known]
        known.update(body.called)
    return _declared(target) + tables_text(layout, prefix) + "\n".join(functions)


def _written(
    version: Version, layout: Layout, prefix: str, table: dict[str, int], target: Target
) -> LanesBody:
    """Write a body until all that varies is known to."""
    varies: set[object] = set()
    live = Liveness(version.routine.tree)
    while True:
        body = LanesBody(version, prefix, table, target, varies, live)
        Walk(version.routine, body, layout).write()
        body.close(version.routine.returns)
        if not body.stale:
            return body


def _function(version: Version, body: LanesBody, prefix: str, main: bool) -> str:
    routine, kinds = version.routine, {**body.plain, "float": body.floats}
    kinds["array"] = "ptr noalias nocapture"
    arguments = [f"{kinds[kind]} %{name}" for name, kind in routine.kinds.items()]
    if version.masked:
        arguments.append(f"{body.truths} %lanes.mask")
    size = sum(1 for _ in ast.walk(routine.tree))
    inlined = "alwaysinline" if size <= SMALL and not body.called and not main else "noinline"
    scope, name = ("", routine.name) if main else ("internal ", version.name)
    header = f"define {scope}{body.own[routine.returns]} @{prefix}{name}({', '.join(arguments)})"
    lines = "\n".join([*body.variables, *body.lines])
    return f"{header} {ALIGNED} {inlined} {{\nentry:\n{lines}\n}}\n"


def _declared(target: Target) -> str:
    n = target.lanes
    floats, truths, places = (f"<{n} x {kind}>" for kind in ("double", "i1", "ptr"))
    return (
        f"declare {floats} @llvm.fabs.v{n}f64({floats})\n"
        f"declare {floats} @llvm.sqrt.v{n}f64({floats})\n"
        f"declare {floats} @llvm.fma.v{n}f64({floats}, {floats}, {floats})\n"
        f"declare {floats} @llvm.masked.gather.v{n}f64.v{n}p0({places}, i32, {truths}, {floats})\n"
        f"declare void @llvm.masked.scatter.v{n}f64.v{n}p0({floats}, {places}, i32, {truths})\n"
        f"declare i{n} @llvm.cttz.i{n}(i{n}, i1)\n"
        f"declare void @llvm.masked.store.v{n}f64.p0({floats}, ptr, i32, {truths})\n"
    )
