"""From the syntax of a routine to the instructions of a target.

The walk over statements and expressions is here, with the kinds of all values; what a target must
be able to write is `RoutineTarget`. A value is a text and its kind.
"""

import ast
from abc import ABC, abstractmethod
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any, NamedTuple

from framefree.kernel.routines.language import Layout, Routine, RoutineError

ARITHMETIC = {ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Div: "/"}
WHOLE = {ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.FloorDiv: "//", ast.Mod: "%"}
COMPARISONS = {
    ast.Lt: "<",
    ast.LtE: "<=",
    ast.Gt: ">",
    ast.GtE: ">=",
    ast.Eq: "==",
    ast.NotEq: "!=",
}


class Value(NamedTuple):
    """A value: how the target spells it, and its kind ("float", "int", "array" or "truth")."""

    text: str
    kind: str


class RoutineTarget(ABC):
    """What a target can write; texts are those of values of the right kinds.

    Attributes
    ----------
    node : ast.stmt
        The statement that is being written.
    """

    node: ast.stmt

    @abstractmethod
    def constant(self, value: float | int, kind: str) -> str:
        """Return a number."""

    @abstractmethod
    def convert(self, text: str, kind: str) -> str:
        """Return an int as float, or a float as int, towards zero."""

    @abstractmethod
    def declare(self, name: str, kind: str) -> None:
        """Make a variable."""

    @abstractmethod
    def read(self, name: str, kind: str) -> str:
        """Return the value of a variable."""

    def keep(self, value: Value) -> Value:
        """Return a value as it is now, whatever is assigned next."""
        return value

    @abstractmethod
    def assign(self, name: str, value: Value) -> None:
        """Give a variable its value."""

    @abstractmethod
    def element(self, array: str, index: str) -> str:
        """Return an element of an array."""

    @abstractmethod
    def store(self, array: str, index: str, value: str) -> None:
        """Write an element of an array."""

    @abstractmethod
    def rest(self, array: str, index: str) -> str:
        """Return the array from an element on."""

    def part(self, desk: str, name: str, place: int) -> str:
        """Return an array of a desk."""
        return self.rest(desk, self.constant(place, "int"))

    @abstractmethod
    def listed(self, name: str, values: tuple[int, ...], index: str) -> str:
        """Return one of some whole numbers of the desk that never change."""

    @abstractmethod
    def arithmetic(self, operation: str, kind: str, a: str, b: str) -> str:
        """Return a sum, difference, product, quotient, whole quotient or remainder."""

    @abstractmethod
    def negative(self, value: Value) -> str:
        """Return -value."""

    @abstractmethod
    def compare(self, operation: str, kind: str, a: str, b: str) -> str:
        """Return whether a comparison holds."""

    @abstractmethod
    def function(self, name: str, kind: str, values: list[str]) -> str:
        """Return abs, sqrt or fma."""

    @abstractmethod
    def choose(self, condition: str, kind: str, a: str, b: str) -> str:
        """Return a where the condition holds, else b; both are known."""

    @abstractmethod
    def join(self, operation: str, parts: list[Callable[[], str]]) -> str:
        """Return `and` or `or` of conditions; later ones are not looked at without need."""

    @abstractmethod
    def opposite(self, condition: str) -> str:
        """Return `not`."""

    @abstractmethod
    def call(self, routine: Routine, values: list[Value]) -> str:
        """Call another routine, and remember that it is needed."""

    @abstractmethod
    def branch(self, condition: str, then: Callable[[], None], other: Callable[[], None]) -> None:
        """Do one thing or another."""

    @abstractmethod
    def repeat(self, condition: Callable[[], str]) -> AbstractContextManager[None]:
        """Do the body while a condition holds."""

    @abstractmethod
    def count(self, name: str, start: str, stop: str, step: str) -> AbstractContextManager[None]:
        """Do the body for a variable from start to below stop."""

    @abstractmethod
    def leave(self, word: str) -> None:
        """Write `break` or `continue`."""

    @abstractmethod
    def give(self, value: Value | None) -> None:
        """Return from the routine."""


class Walk:
    """Writes one routine on a target."""

    def __init__(self, routine: Routine, target: RoutineTarget, layout: Layout) -> None:
        self.routine, self.target, self.layout = routine, target, layout
        self.kinds = dict(routine.kinds)

    def write(self) -> None:
        """Write the body."""
        body = self.routine.tree.body
        if isinstance(body[0], ast.Expr) and isinstance(body[0].value, ast.Constant):
            body = body[1:]
        self._block(body)

    # ------------------------------------------------------------------ statements

    def _block(self, statements: list[ast.stmt]) -> None:
        for statement in statements:
            writer = getattr(self, f"_do_{type(statement).__name__}", None)
            if writer is None:
                raise self._refused(statement)
            self.target.node = statement
            writer(statement)

    def _do_Pass(self, node: ast.Pass) -> None:
        pass

    def _do_Assign(self, node: ast.Assign) -> None:
        if len(node.targets) != 1:
            raise self._refused(node)
        names, value = node.targets[0], node.value
        if isinstance(names, ast.Tuple) and isinstance(value, ast.Tuple):
            values = [self.target.keep(self.value(one)) for one in value.elts]
            for name, one in zip(names.elts, values, strict=True):
                self._assign(name, one)
        else:
            self._assign(names, self.value(value))

    def _do_AugAssign(self, node: ast.AugAssign) -> None:
        old = self.value(_loaded(node.target))
        self._assign(node.target, self._binary(node.op, old, self.value(node.value), node))

    def _assign(self, target: ast.expr, value: Value) -> None:
        if isinstance(target, ast.Name):
            name = target.id
            if name not in self.kinds:
                self.kinds[name] = value.kind
                self.target.declare(name, value.kind)
            self.target.assign(name, self._as(value, self.kinds[name], target))
        elif isinstance(target, ast.Subscript):
            array, index = self.value(target.value), self._whole(target.slice)
            self.target.store(array.text, index, self._as(value, "float", target).text)
        else:
            raise self._refused(target)

    def _do_Expr(self, node: ast.Expr) -> None:
        self.value(node.value)

    def _do_Return(self, node: ast.Return) -> None:
        if node.value is None:
            self.target.give(None)
        else:
            self.target.give(self._as(self.value(node.value), self.routine.returns, node))

    def _do_If(self, node: ast.If) -> None:
        condition = self._truth(node.test)
        self.target.branch(
            condition, lambda: self._block(node.body), lambda: self._block(node.orelse)
        )

    def _do_While(self, node: ast.While) -> None:
        with self.target.repeat(lambda: self._truth(node.test)):
            self._block(node.body)

    def _do_For(self, node: ast.For) -> None:
        call, name = node.iter, node.target
        ranged = isinstance(call, ast.Call) and isinstance(call.func, ast.Name)
        if not (ranged and call.func.id == "range" and isinstance(name, ast.Name)):  # type: ignore[union-attr]
            raise self._refused(node)
        limits = [self._whole(one) for one in call.args]  # type: ignore[union-attr]
        zero, one = (self.target.constant(k, "int") for k in (0, 1))
        start, stop = (zero, limits[0]) if len(limits) == 1 else limits[:2]
        step = limits[2] if len(limits) == 3 else one
        if name.id not in self.kinds:
            self.kinds[name.id] = "int"
            self.target.declare(name.id, "int")
        with self.target.count(name.id, start, stop, step):
            self._block(node.body)

    def _do_Break(self, node: ast.Break) -> None:
        self.target.leave("break")

    def _do_Continue(self, node: ast.Continue) -> None:
        self.target.leave("continue")

    # ------------------------------------------------------------------ expressions

    def value(self, node: ast.expr) -> Value:
        """Return the value of an expression."""
        target = self.target
        match node:
            case ast.Constant(value=bool()):
                raise self._refused(node)
            case ast.Constant(value=int() | float()):
                return self._number(node.value)
            case ast.Name():
                if node.id in self.kinds:
                    return Value(target.read(node.id, self.kinds[node.id]), self.kinds[node.id])
                return self._number(self.routine.outside(node.id), node)
            case ast.Subscript(slice=ast.Slice(lower=ast.expr() as first, upper=None)):
                return Value(target.rest(self.value(node.value).text, self._whole(first)), "array")
            case ast.Subscript(value=ast.Attribute(attr=name)) if name in self.layout.tables:
                return Value(
                    target.listed(name, self.layout.tables[name], self._whole(node.slice)), "int"
                )
            case ast.Subscript():
                array = self.value(node.value).text
                return Value(target.element(array, self._whole(node.slice)), "float")
            case ast.Attribute(value=ast.Name() as desk) if self.kinds.get(desk.id) == "desk":
                return self._part(desk.id, node)
            case ast.BinOp():
                return self._binary(node.op, self.value(node.left), self.value(node.right), node)
            case ast.UnaryOp(op=ast.USub()):
                value = self.value(node.operand)
                return Value(target.negative(value), value.kind)
            case ast.Compare() | ast.BoolOp() | ast.UnaryOp(op=ast.Not()):
                return Value(self._truth(node), "truth")
            case ast.IfExp():
                a, b = self._alike(self.value(node.body), self.value(node.orelse), node)
                chosen = target.choose(self._truth(node.test), a.kind, a.text, b.text)
                return Value(chosen, a.kind)
            case ast.Call(func=ast.Name()):
                return self._call(node)
        raise self._refused(node)

    def _part(self, desk: str, node: ast.Attribute) -> Value:
        """Return an array of a desk, or a number."""
        if node.attr in self.layout.numbers:
            return self._number(self.layout.numbers[node.attr])
        if node.attr not in self.layout.places:
            raise self._refused(node)
        desk = self.target.read(desk, "desk")
        return Value(self.target.part(desk, node.attr, self.layout.places[node.attr]), "array")

    def _number(self, value: Any, node: ast.AST | None = None) -> Value:
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise self._refused(node) if node is not None else RoutineError(f"{value!r}")
        kind = "int" if isinstance(value, int) else "float"
        return Value(self.target.constant(value, kind), kind)

    def _binary(self, operator: ast.operator, a: Value, b: Value, node: ast.AST) -> Value:
        if isinstance(operator, ast.Div):
            a, b = self._as(a, "float", node), self._as(b, "float", node)
        a, b = self._alike(a, b, node)
        known = {"int": WHOLE, "float": ARITHMETIC}.get(a.kind, {})
        if type(operator) not in known:
            raise self._refused(node)
        symbol = known[type(operator)]
        return Value(self.target.arithmetic(symbol, a.kind, a.text, b.text), a.kind)

    def _truth(self, node: ast.expr) -> str:
        match node:
            case ast.Compare(ops=[operator], comparators=[other]) if type(operator) in COMPARISONS:
                a, b = self._alike(self.value(node.left), self.value(other), node)
                return self.target.compare(COMPARISONS[type(operator)], a.kind, a.text, b.text)
            case ast.BoolOp():
                word = "and" if isinstance(node.op, ast.And) else "or"
                parts = [lambda one=one: self._truth(one) for one in node.values]
                return self.target.join(word, parts)
            case ast.UnaryOp(op=ast.Not()):
                return self.target.opposite(self._truth(node.operand))
        raise self._refused(node)

    def _call(self, node: ast.Call) -> Value:
        name = node.func.id  # type: ignore[attr-defined]
        values, target = [self.value(one) for one in node.args], self.target
        if name in ("float", "int"):
            return self._as(values[0], name, node, forced=True)
        if name in ("sqrt", "fma"):
            values = [self._as(value, "float", node) for value in values]
        if name in ("sqrt", "fma", "abs"):
            kind = values[0].kind
            return Value(target.function(name, kind, [value.text for value in values]), kind)
        if name in ("min", "max") and len(values) == 2:
            a, b = self._alike(values[0], values[1], node)
            # As Python has it: the first, unless the second is less; so also where one is NaN.
            better = target.compare("<" if name == "min" else ">", a.kind, b.text, a.text)
            return Value(target.choose(better, a.kind, b.text, a.text), a.kind)
        return self._call_routine(self.routine.outside(name), values, node)

    def _call_routine(self, other: Any, values: list[Value], node: ast.Call) -> Value:
        if not isinstance(other, Routine) or len(values) != len(other.kinds):
            raise self._refused(node)
        kinds = other.kinds.values()
        values = [self._as(v, kind, node) for v, kind in zip(values, kinds, strict=True)]
        return Value(self.target.call(other, values), other.returns)

    # ------------------------------------------------------------------ kinds

    def _whole(self, node: ast.expr) -> str:
        return self._as(self.value(node), "int", node).text

    def _as(self, value: Value, kind: str, node: ast.AST, forced: bool = False) -> Value:
        if value.kind == kind:
            return value
        allowed = {("int", "float")} | ({("float", "int")} if forced else set())
        if (value.kind, kind) not in allowed:
            raise self._refused(node)
        return Value(self.target.convert(value.text, kind), kind)

    def _alike(self, a: Value, b: Value, node: ast.AST) -> tuple[Value, Value]:
        if a.kind == b.kind:
            return a, b
        return self._as(a, "float", node), self._as(b, "float", node)

    def _refused(self, node: ast.AST) -> RoutineError:
        line = getattr(node, "lineno", 0)
        return RoutineError(
            f"line {line} of the routine `{self.routine.name}` is outside of the part of Python "
            f"that is translated: {ast.unparse(node)}"
        )


def _loaded(target: ast.expr) -> ast.expr:
    """Return what is assigned to, as something that is read."""
    return ast.parse(ast.unparse(target), mode="eval").body


def calls_routines(statement: ast.stmt) -> bool:
    """Tell whether a statement calls a routine, which may write to arrays."""
    own = {"abs", "sqrt", "fma", "min", "max", "float", "int", "range"}
    calls = (one.func for one in ast.walk(statement) if isinstance(one, ast.Call))
    return any(isinstance(one, ast.Name) and one.id not in own for one in calls)


def collect(main: Routine, write: Callable[[Routine], list[Routine]]) -> None:
    """Write a routine and all that it calls, each once; `write` returns what a routine calls."""
    waiting, known = [main], {main.name}
    while waiting:
        for other in write(waiting.pop()):
            if other.name not in known:
                known.add(other.name)
                waiting.append(other)
