"""Routines as LLVM for several states side by side: one lane of a vector for each.

Every number is a vector. Whole numbers, conditions and places in memory that are the same for all
states stay plain, so that loops and addresses are; which these are follows from the text: what is
computed from plain values is plain, unless it is assigned where only some of the lanes are.

Where a condition differs from lane to lane both ways are gone, each with a mask of the lanes that
are there, and not at all without any. A loop goes on until no lane is left in it. Stores to memory
are for the lanes of the mask; variables are kept from others if those read them later
(`liveness.py`). The operations on a lane, and so the bits, are those of a state alone.

Values are written by `lanes_values.py`, calls by `lanes_calls.py`, branches and loops here.
"""

import ast
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from framefree.kernel.code import ALIGNED
from framefree.kernel.routines.lanes_calls import LanesCalls
from framefree.kernel.routines.lanes_values import Version
from framefree.kernel.routines.language import Layout, Routine
from framefree.kernel.routines.liveness import Liveness
from framefree.kernel.routines.to_llvm import SMALL, tables_text
from framefree.kernel.routines.translate import Value, Walk
from framefree.kernel.target import Target


class LanesBody(LanesCalls):
    """The body of one version of a routine."""

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
