"""Routines as C99, the same operations in the same order."""

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from framefree.kernel.routines.language import Layout, Routine, RoutineError
from framefree.kernel.routines.translate import RoutineTarget, Value, Walk, calls_routines, collect

TYPES = {
    "float": "double",
    "int": "long",
    "truth": "int",
    "array": "double *",
    "desk": "double *",
    "nothing": "void",
}
FUNCTIONS = {"abs": "fabs", "sqrt": "sqrt", "fma": "FMA"}


class CBody(RoutineTarget):
    """The body of one routine."""

    def __init__(self, prefix: str) -> None:
        self.prefix = prefix
        self.lines: list[str] = []
        self.called: list[Routine] = []
        self.variables: dict[str, str] = {}
        self.depth, self.number = 1, 0

    def _do(self, text: str) -> None:
        self.lines.append("    " * self.depth + text)

    def constant(self, value: float | int, kind: str) -> str:
        """Return a number."""
        if kind == "float" and value in (float("inf"), float("-inf")):
            return "INFINITY" if value > 0 else "(-INFINITY)"
        return repr(value) if value >= 0 else f"({value!r})"

    def convert(self, text: str, kind: str) -> str:
        """Return an int as float, or a float as int, towards zero."""
        return f"({TYPES[kind]}){text}"

    def declare(self, name: str, kind: str) -> None:
        """Make a variable."""
        self.variables[name] = kind

    def read(self, name: str, kind: str) -> str:
        """Return the value of a variable."""
        return f"{name}_"

    def assign(self, name: str, value: Value) -> None:
        """Give a variable its value."""
        self._do(f"{name}_ = {value.text};")

    def element(self, array: str, index: str) -> str:
        """Return an element of an array, as it is before calls of the same statement."""
        text = f"{array}[{index}]"
        return self.keep(Value(text, "float")).text if calls_routines(self.node) else text

    def store(self, array: str, index: str, value: str) -> None:
        """Write an element of an array."""
        self._do(f"{array}[{index}] = {value};")

    def rest(self, array: str, index: str) -> str:
        """Return the array from an element on."""
        return f"({array} + {index})"

    def listed(self, name: str, values: tuple[int, ...], index: str) -> str:
        """Return one of some whole numbers of the desk that never change."""
        return f"((const long[]){{{', '.join(map(str, values))}}})[{index}]"

    def arithmetic(self, operation: str, kind: str, a: str, b: str) -> str:
        """Return a sum, difference, product, quotient, whole quotient or remainder."""
        return f"({a} {'/' if operation == '//' else operation} {b})"

    def negative(self, value: Value) -> str:
        """Return -value."""
        return f"(-{value.text})"

    def compare(self, operation: str, kind: str, a: str, b: str) -> str:
        """Return whether a comparison holds."""
        return f"({a} {operation} {b})"

    def function(self, name: str, kind: str, values: list[str]) -> str:
        """Return abs, sqrt or fma."""
        if name == "abs" and kind == "int":
            raise RoutineError("`abs` of a whole number is not translated")
        return f"{FUNCTIONS[name]}({', '.join(values)})"

    def choose(self, condition: str, kind: str, a: str, b: str) -> str:
        """Return a where the condition holds, else b; both are known."""
        return f"({condition} ? {a} : {b})"

    def join(self, operation: str, parts: list[Callable[[], str]]) -> str:
        """Return `and` or `or` of conditions; later ones are not looked at without need."""
        kept = self.keep(Value(parts[0](), "truth")).text
        for part in parts[1:]:
            self._do(f"if ({kept if operation == 'and' else f'!{kept}'}) {{")
            self._inside(lambda part=part: self._do(f"{kept} = {part()};"))
            self._do("}")
        return kept

    def keep(self, value: Value) -> Value:
        """Return a value as it is now."""
        self.number += 1
        self.variables[f"kept{self.number}"] = value.kind
        self._do(f"kept{self.number}_ = {value.text};")
        return Value(f"kept{self.number}_", value.kind)

    def opposite(self, condition: str) -> str:
        """Return `not`."""
        return f"(!{condition})"

    def call(self, routine: Routine, values: list[Value]) -> str:
        """Call another routine."""
        self.called.append(routine)
        text = f"{self.prefix}{routine.name}({', '.join(value.text for value in values)})"
        if routine.returns != "nothing":
            # A call of its own, so that it happens once and in its order.
            self.number += 1
            self.variables[f"result{self.number}"] = routine.returns
            self._do(f"result{self.number}_ = {text};")
            return f"result{self.number}_"
        self._do(f"{text};")
        return ""

    def branch(self, condition: str, then: Callable[[], None], other: Callable[[], None]) -> None:
        """Do one thing or another."""
        self._do(f"if ({condition}) {{")
        self._inside(then)
        before = len(self.lines)
        self._do("} else {")
        self._inside(other)
        if len(self.lines) == before + 1:
            self.lines.pop()
        self._do("}")

    def _inside(self, body: Callable[[], None]) -> None:
        self.depth += 1
        body()
        self.depth -= 1

    @contextmanager
    def repeat(self, condition: Callable[[], str]) -> Iterator[None]:
        """Do the body while a condition holds."""
        self._do("for (;;) {")
        self.depth += 1
        self._do(f"if (!{condition()}) break;")
        yield
        self.depth -= 1
        self._do("}")

    @contextmanager
    def count(self, name: str, start: str, stop: str, step: str) -> Iterator[None]:
        """Do the body for a variable from start to below stop."""
        self.number += 1
        at, end = f"at{self.number}", f"end{self.number}"
        self.variables |= {at: "int", end: "int"}
        self._do(f"{end}_ = {stop};")
        self._do(f"for ({at}_ = {start}; {at}_ < {end}_; {at}_ += {step}) {{")
        self.depth += 1
        self._do(f"{name}_ = {at}_;")
        yield
        self.depth -= 1
        self._do("}")

    def leave(self, word: str) -> None:
        """Write `break` or `continue`."""
        self._do(f"{word};")

    def drop_unread(self) -> None:
        """Leave out variables that nothing reads; what gives them a value still happens."""
        for name in list(self.variables):
            target = re.compile(rf"^( *){name}_ = (.*);$")
            values = [match[2] if (match := target.match(line)) else line for line in self.lines]
            if any(re.search(rf"\b{name}_\b", line) for line in values):
                continue
            del self.variables[name]
            called = [target.sub(r"\1(void)\2;", line) for line in self.lines]
            self.lines = [line for line in called if not re.match(r"^ *\(void\)\w+;$", line)]

    def give(self, value: Value | None) -> None:
        """Return from the routine."""
        self._do("return;" if value is None else f"return {value.text};")


def routine_c(main: Routine, layout: Layout, prefix: str) -> str:
    """Return a routine and all that it calls as static functions of C, names with a prefix."""
    heads: list[str] = []
    texts: list[str] = []

    def write(routine: Routine) -> list[Routine]:
        body = CBody(prefix)
        Walk(routine, body, layout).write()
        arguments = ", ".join(_declared(n, k) for n, k in routine.kinds.items())
        head = f"static {TYPES[routine.returns]} {prefix}{routine.name}({arguments})"
        heads.append(head + ";")
        body.drop_unread()
        own = [f"    {_declared(name, kind)};" for name, kind in body.variables.items()]
        texts.append("\n".join([head, "{", *own, *body.lines, "}", ""]))
        return body.called

    collect(main, write)
    return "\n".join([*heads, "", *texts])


def _declared(name: str, kind: str) -> str:
    space = "" if TYPES[kind].endswith("*") else " "
    return f"{TYPES[kind]}{space}{name}_"
