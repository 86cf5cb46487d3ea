"""The scalar expression graph that every compiled form is made from.

`framefree.kernel.reading` turns a `casadi.Function` into a `Graph`: a list of nodes in order of
evaluation (each a tuple ``(operation, operand, ...)``) and the places where results leave. Values
are numbered: a node is an integer, and equal expressions are one node. A call of a function of
matrices is a node too, whose operation is the function (`framefree.kernel.matrices`); what it
gives is read by nodes ``(CallElement(k), call)``.

Inputs and outputs are addressed by ``(port, index)`` where ``index`` counts the elements of the
NumPy array in C order; CasADi counts in Fortran order and skips structural zeros, NumPy does not.
"""

import math
import struct
from collections.abc import Sequence
from dataclasses import dataclass, field

import casadi as ca

from framefree.errors import FramefreeError


class CompileError(FramefreeError, ValueError):
    """A function cannot be compiled; the message names what stands in the way."""


# A node: ("const", value) | ("input", port, index) | (operation, node, ...)
Node = tuple


@dataclass(frozen=True)
class CallElement:
    """The operation that takes element `index` of all that a call gives."""

    index: int


ZERO = -1  # in `Graph.results`: an element that is structurally zero

UNARY = {
    ca.OP_NEG: "neg",
    ca.OP_EXP: "exp",
    ca.OP_LOG: "log",
    ca.OP_SQRT: "sqrt",
    ca.OP_SIN: "sin",
    ca.OP_COS: "cos",
    ca.OP_TAN: "tan",
    ca.OP_ASIN: "asin",
    ca.OP_ACOS: "acos",
    ca.OP_ATAN: "atan",
    ca.OP_NOT: "not",
    ca.OP_FLOOR: "floor",
    ca.OP_CEIL: "ceil",
    ca.OP_FABS: "abs",
    ca.OP_SIGN: "sign",
    ca.OP_ERF: "erf",
    ca.OP_ERFINV: "erfinv",
    ca.OP_SINH: "sinh",
    ca.OP_COSH: "cosh",
    ca.OP_TANH: "tanh",
    ca.OP_ASINH: "asinh",
    ca.OP_ACOSH: "acosh",
    ca.OP_ATANH: "atanh",
    ca.OP_LOG1P: "log1p",
    ca.OP_EXPM1: "expm1",
}
BINARY = {
    ca.OP_ADD: "add",
    ca.OP_SUB: "sub",
    ca.OP_MUL: "mul",
    ca.OP_DIV: "div",
    ca.OP_POW: "pow",
    ca.OP_CONSTPOW: "pow",
    ca.OP_LT: "lt",
    ca.OP_LE: "le",
    ca.OP_EQ: "eq",
    ca.OP_NE: "ne",
    ca.OP_AND: "and",
    ca.OP_OR: "or",
    ca.OP_FMOD: "fmod",
    ca.OP_REMAINDER: "remainder",
    ca.OP_COPYSIGN: "copysign",
    ca.OP_FMIN: "min",
    ca.OP_FMAX: "max",
    ca.OP_ATAN2: "atan2",
    ca.OP_HYPOT: "hypot",
}
# Besides these: "select" (c, a, b) is a where c != 0, else b; "fma" a*b + c, "fms" a*b - c and
# "fnma" c - a*b round once, and appear only after `fuse`.
TRUTHS = frozenset({"lt", "le", "eq", "ne", "not", "and", "or"})  # their value is 0 or 1
COMMUTATIVE = frozenset({"add", "mul", "eq", "ne", "and", "or"})


@dataclass(frozen=True)
class Port:
    """One input or output: its name and the NumPy shape of a single value."""

    name: str
    shape: tuple[int, ...]

    @property
    def size(self) -> int:
        """Number of elements of a single value."""
        return math.prod(self.shape)


@dataclass(frozen=True)
class Graph:
    """An expression graph over scalars.

    Attributes
    ----------
    inputs, outputs : tuple of Port
    nodes : tuple of Node
        In order of evaluation: operands come before their users.
    results : tuple of tuple of int
        For each output and each of its elements in C order, the node it equals, or `ZERO`.
    """

    inputs: tuple[Port, ...]
    outputs: tuple[Port, ...]
    nodes: tuple[Node, ...] = field(repr=False)
    results: tuple[tuple[int, ...], ...] = field(repr=False)


def operands(node: Node) -> Sequence[int]:
    """Return the nodes that a node reads."""
    return () if node[0] in ("const", "input") else node[1:]


def is_leaf(node: Node) -> bool:
    """Tell whether a node needs no code: it is there already, as a constant or in a slot."""
    return node[0] in ("const", "input") or isinstance(node[0], CallElement)


def uses(nodes: Sequence[Node], results: Sequence[Sequence[int]]) -> list[int]:
    """Count for each node how often other nodes and results read it."""
    count = [0] * len(nodes)
    for node in nodes:
        for operand in operands(node):
            count[operand] += 1
    for elements in results:
        for element in elements:
            if element != ZERO:
                count[element] += 1
    return count


class Builder:
    """Collects nodes, giving equal expressions one number and simplifying signs.

    Every rewrite here is exact in IEEE arithmetic, signed zeros included (only the sign bit of a
    NaN may change).
    """

    def __init__(self) -> None:
        self.nodes: list[Node] = []
        self._numbers: dict[tuple, int] = {}

    def add(self, *node) -> int:
        """Return the number of a node, adding it if it is new."""
        operation = node[0]
        if operation == "const":
            # By bits: 0.0 and -0.0 differ, a NaN equals itself.
            return self._number(("const", struct.pack("<d", node[1])), node)
        if operation in COMMUTATIVE and node[1] > node[2]:
            node = (operation, node[2], node[1])
        simpler = self._simplify(node)
        return self._number(node, node) if simpler is None else simpler

    def constant(self, number: int) -> float | None:
        """Return the value of a node if it is a constant."""
        node = self.nodes[number]
        return node[1] if node[0] == "const" else None

    def _number(self, key: tuple, node: Node) -> int:
        number = self._numbers.get(key)
        if number is None:
            number = self._numbers[key] = len(self.nodes)
            self.nodes.append(node)
        return number

    def _negated(self, number: int) -> int | None:
        node = self.nodes[number]
        return node[1] if node[0] == "neg" else None

    def _simplify(self, node: Node) -> int | None:
        operation = node[0]
        if operation == "neg":
            value = self.constant(node[1])
            if value is not None:
                return self.add("const", -value)
            return self._negated(node[1])
        if operation == "add":
            a, b = node[1:]
            if (c := self._negated(b)) is not None:
                return self.add("sub", a, c)
            if (c := self._negated(a)) is not None:
                return self.add("sub", b, c)
            return self._both_branches(a, b)
        if operation == "sub" and (c := self._negated(node[2])) is not None:
            return self.add("add", node[1], c)
        if operation in ("mul", "div"):
            return self._simplify_product(operation, *node[1:])
        if operation == "pow":
            return self._simplify_power(*node[1:])
        return None

    def _simplify_product(self, operation: str, a: int, b: int) -> int | None:
        if (c := self._negated(a)) is not None:
            return self.add("neg", self.add(operation, c, b))
        if (c := self._negated(b)) is not None:
            return self.add("neg", self.add(operation, a, c))
        u, v = self.constant(a), self.constant(b)
        if v in (1.0, -1.0):
            return a if v == 1.0 else self.add("neg", a)
        if operation == "mul" and u in (1.0, -1.0):
            return b if u == 1.0 else self.add("neg", b)
        if u is not None and v is not None and (operation == "mul" or v != 0.0):
            return self.add("const", u * v if operation == "mul" else u / v)
        return None

    def _both_branches(self, a: int, b: int) -> int | None:
        # CasADi writes if_else(c, p, q) as (c ? p : 0) + (!c ? q : 0): one selection.
        p, q = self.nodes[a], self.nodes[b]
        if p[0] != "select" or q[0] != "select":
            return None
        if self.constant(p[3]) != 0.0 or self.constant(q[3]) != 0.0:
            return None
        if self.nodes[q[1]] == ("not", p[1]):
            return self.add("select", p[1], p[2], q[2])
        if self.nodes[p[1]] == ("not", q[1]):
            return self.add("select", q[1], q[2], p[2])
        return None

    def _simplify_power(self, base: int, exponent: int) -> int | None:
        """Write halves of small whole exponents with products and a root, as NumPy does for 0.5."""
        value = self.constant(exponent)
        if value is None or not abs(value) <= 16 or value * 2 != int(value * 2):
            return None
        whole, root = divmod(abs(value), 1)
        power = self.add("sqrt", base) if root else None
        square, bits = base, int(whole)
        while bits:
            if bits & 1:
                power = square if power is None else self.add("mul", power, square)
            bits >>= 1
            if bits:
                square = self.add("mul", square, square)
        one = self.add("const", 1.0)
        if power is None:
            return one
        return power if value > 0 else self.add("div", one, power)


def clean(graph: Graph) -> Graph:
    """Drop the nodes that no result needs."""
    needed = [False] * len(graph.nodes)
    for elements in graph.results:
        for element in elements:
            if element != ZERO:
                needed[element] = True
    for number in range(len(graph.nodes) - 1, -1, -1):
        if needed[number]:
            for operand in operands(graph.nodes[number]):
                needed[operand] = True
    renumber, nodes = [ZERO] * (len(graph.nodes) + 1), []  # the last entry maps ZERO to itself
    for number, node in enumerate(graph.nodes):
        if needed[number]:
            renumber[number] = len(nodes)
            nodes.append(_renumbered(node, renumber))
    results = tuple(tuple(renumber[element] for element in elements) for elements in graph.results)
    return Graph(graph.inputs, graph.outputs, tuple(nodes), results)


def _renumbered(node: Node, renumber: Sequence[int]) -> Node:
    if node[0] in ("const", "input"):
        return node
    return (node[0], *[renumber[operand] for operand in node[1:]])
