"""Derivatives of a graph, as graphs.

With y = f(x) and its Jacobian J(x), `tangent` gives (x, dx) -> J dx and `adjoint` gives
(x, y_bar) -> J^T y_bar. Both come from one table of partial derivatives, and both can be
differentiated again. Where a conditional does not take a branch, nothing of that branch reaches a
derivative, be it infinite or NaN.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass

from framefree.kernel.graph import ZERO, Builder, Graph, Port, clean, operands

Literal = tuple[int, bool]  # a condition, and whether it holds


@dataclass(frozen=True)
class Term:
    """A node of a graph being built, with operators."""

    builder: Builder
    number: int

    def apply(self, operation: str, *others: "Term | float") -> "Term":
        """Return the node ``operation(self, *others)``."""
        numbers = [self.lift(other).number for other in others]
        return Term(self.builder, self.builder.add(operation, self.number, *numbers))

    def lift(self, value: "Term | float") -> "Term":
        """Return a number as a node of the same graph."""
        if isinstance(value, Term):
            return value
        return Term(self.builder, self.builder.add("const", float(value)))

    def where(self, condition: "Term") -> "Term":
        """Return this where the condition holds, and 0 elsewhere."""
        return condition.apply("select", self, 0.0)

    def __neg__(self) -> "Term":
        return self.apply("neg")

    def __add__(self, other: "Term | float") -> "Term":
        return self.apply("add", other)

    def __sub__(self, other: "Term | float") -> "Term":
        return self.apply("sub", other)

    def __mul__(self, other: "Term | float") -> "Term":
        return self.apply("mul", other)

    def __truediv__(self, other: "Term | float") -> "Term":
        return self.apply("div", other)

    def __radd__(self, other: float) -> "Term":
        return self.lift(other) + self

    def __rsub__(self, other: float) -> "Term":
        return self.lift(other) - self

    def __rmul__(self, other: float) -> "Term":
        return self.lift(other) * self

    def __rtruediv__(self, other: float) -> "Term":
        return self.lift(other) / self


@dataclass(frozen=True)
class Where:
    """The derivative `size` where a condition holds, 0 elsewhere."""

    condition: Term
    size: Term | float = 1.0


def _power_base(y: Term, a: Term, b: Term) -> Term:
    slope = b * a.apply("pow", b - 1)
    return slope if y.builder.constant(b.number) else slope.where(b.apply("ne", 0.0))


def _power_exponent(y: Term, a: Term, b: Term) -> Term:
    return y * a.apply("eq", 0.0).apply("select", 1.0, a).apply("log")


def _one(y: Term, *x: Term) -> Term:
    return y.lift(1.0)


def _whole_quotient(y: Term, a: Term, b: Term) -> Term:
    return (y - a) / b


def _first(y: Term, a: Term, b: Term) -> Where:
    return Where(y.apply("eq", a), _share(a, b))


def _second(y: Term, a: Term, b: Term) -> Where:
    return Where(y.apply("eq", a).apply("and", a.apply("ne", b)).apply("not"), _share(a, b))


def _share(a: Term, b: Term) -> Term:
    """Return 1/2 where a minimum or maximum of a and b is both of them, as CasADi and JAX have it.

    So the slope of a symmetric expression is symmetric, and lies within its subgradient.
    """
    return a.apply("eq", b).apply("select", 0.5, 1.0)


# For each operation y = f(a, b, ...) its derivatives by a, b, ...; None where that is 0. Operations
# that are missing (comparisons, logic, floor, ceil, sign) have derivative 0 throughout.
PARTIALS: dict[str, tuple[Callable[..., Term | Where] | None, ...]] = {
    "neg": (lambda y, a: y.lift(-1.0),),
    "add": (_one, _one),
    "sub": (_one, lambda y, a, b: y.lift(-1.0)),
    "mul": (lambda y, a, b: b, lambda y, a, b: a),
    "div": (lambda y, a, b: 1 / b, lambda y, a, b: -y / b),
    "pow": (_power_base, _power_exponent),
    "sqrt": (lambda y, a: 0.5 / y,),
    "exp": (lambda y, a: y,),
    "expm1": (lambda y, a: y + 1,),
    "log": (lambda y, a: 1 / a,),
    "log1p": (lambda y, a: 1 / (a + 1),),
    "sin": (lambda y, a: a.apply("cos"),),
    "cos": (lambda y, a: -a.apply("sin"),),
    "tan": (lambda y, a: y * y + 1,),
    "asin": (lambda y, a: 1 / ((1 - a) * (1 + a)).apply("sqrt"),),
    "acos": (lambda y, a: -1 / ((1 - a) * (1 + a)).apply("sqrt"),),
    "atan": (lambda y, a: 1 / (a * a + 1),),
    "sinh": (lambda y, a: a.apply("cosh"),),
    "cosh": (lambda y, a: a.apply("sinh"),),
    "tanh": (lambda y, a: 1 - y * y,),
    "asinh": (lambda y, a: 1 / (a * a + 1).apply("sqrt"),),
    "acosh": (lambda y, a: 1 / ((a - 1) * (a + 1)).apply("sqrt"),),
    "atanh": (lambda y, a: 1 / ((1 - a) * (1 + a)),),
    "erf": (lambda y, a: 2 / math.sqrt(math.pi) * (-(a * a)).apply("exp"),),
    "erfinv": (lambda y, a: math.sqrt(math.pi) / 2 * (y * y).apply("exp"),),
    "abs": (lambda y, a: a.apply("sign"),),
    "copysign": (
        lambda y, a, b: y.lift(1.0).apply("copysign", a) * a.lift(1.0).apply("copysign", b),
        None,
    ),
    "min": (_first, _second),
    "max": (_first, _second),
    "atan2": (lambda y, a, b: b / (a * a + b * b), lambda y, a, b: -a / (a * a + b * b)),
    "hypot": (lambda y, a, b: a / y, lambda y, a, b: b / y),
    "fmod": (_one, _whole_quotient),
    "remainder": (_one, _whole_quotient),
    "select": (
        None,
        lambda y, c, a, b: Where(c),
        lambda y, c, a, b: Where(c.apply("not")),
    ),
}


def tangent(graph: Graph) -> Graph:
    """Return the graph of (x, dx) -> J(x) dx: a tangent for each port."""
    builder, terms = _copy(graph)
    count = len(graph.inputs)
    dots: list[Term | None] = []
    for number, node in enumerate(graph.nodes):
        dot = None
        if node[0] == "input":
            dot = Term(builder, builder.add("input", count + node[1], node[2]))
        for operand, partial in _partials(graph, terms, number):
            if (change := dots[operand]) is not None:
                dot = _sum(dot, _scaled(partial(), change))
        dots.append(dot)
    results = [[_number(dots, element) for element in elements] for elements in graph.results]
    inputs = (*graph.inputs, *_renamed("d_{}", graph.inputs))
    return _finish(builder, inputs, _renamed("d_{}", graph.outputs), results)


def adjoint(graph: Graph) -> Graph:
    """Return the graph of (x, y_bar) -> J(x)^T y_bar: a cotangent for each port."""
    builder, terms = _copy(graph)
    count, conditions = len(graph.inputs), guards(graph)
    bars: list[Term | None] = [None] * len(graph.nodes)
    results = [[ZERO] * port.size for port in graph.inputs]
    for port, elements in enumerate(graph.results):
        for index, element in enumerate(elements):
            if element != ZERO:
                seed = Term(builder, builder.add("input", count + port, index))
                bars[element] = _sum(bars[element], seed)
    for number in range(len(graph.nodes) - 1, -1, -1):
        bar, node = bars[number], graph.nodes[number]
        if bar is None:
            continue
        if node[0] == "input":
            results[node[1]][node[2]] = bar.number
        for operand, partial in _partials(graph, terms, number):
            slope = partial()
            share = _scaled(slope, bar)
            if isinstance(slope, Term) and builder.constant(slope.number) is None:
                for condition, holds in sorted(conditions[number]):
                    truth = terms[condition]
                    share = share.where(truth if holds else truth.apply("not"))
            bars[operand] = _sum(bars[operand], share)
    inputs = (*graph.inputs, *_renamed("{}_bar", graph.outputs))
    return _finish(builder, inputs, _renamed("{}_bar", graph.inputs), results)


def guards(graph: Graph) -> list[frozenset[Literal]]:
    """Return for each node the conditions under which alone its value matters.

    They are those that every way from the node to a result meets: a branch of a conditional
    matters where its condition says so.
    """
    conditions: list[frozenset[Literal] | None] = [None] * len(graph.nodes)

    def meet(number: int, literals: frozenset[Literal]) -> None:
        known = conditions[number]
        conditions[number] = literals if known is None else known & literals

    for elements in graph.results:
        for element in elements:
            if element != ZERO:
                meet(element, frozenset())
    for number in range(len(graph.nodes) - 1, -1, -1):
        node, literals = graph.nodes[number], conditions[number] or frozenset()
        for position, operand in enumerate(operands(node)):
            more = literals
            if node[0] == "select" and position > 0:
                more = literals | {_literal(graph, node[1], position == 1)}
            meet(operand, more)
    return [literals or frozenset() for literals in conditions]


def _literal(graph: Graph, condition: int, holds: bool) -> Literal:
    while graph.nodes[condition][0] == "not":
        condition, holds = graph.nodes[condition][1], not holds
    return condition, holds


def _copy(graph: Graph) -> tuple[Builder, list[Term]]:
    builder = Builder()
    terms: list[Term] = []
    for node in graph.nodes:
        if operands(node):
            node = (node[0], *[terms[operand].number for operand in node[1:]])
        terms.append(Term(builder, builder.add(*node)))
    return builder, terms


def _partials(graph: Graph, terms: list[Term], number: int):
    """Give each operand by which a node has a derivative, and a function that builds it."""
    node = graph.nodes[number]
    arguments = [terms[number], *[terms[operand] for operand in operands(node)]]
    for operand, rule in zip(operands(node), PARTIALS.get(node[0], ()), strict=False):
        if rule is not None and graph.nodes[operand][0] != "const":
            yield operand, lambda rule=rule: rule(*arguments)


def _scaled(slope: Term | Where, change: Term) -> Term:
    if not isinstance(slope, Where):
        return slope * change
    share = change if slope.size == 1.0 else slope.size * change
    return share.where(slope.condition)


def _sum(a: Term | None, b: Term) -> Term:
    return b if a is None else a + b


def _number(terms: list[Term | None], element: int) -> int:
    term = None if element == ZERO else terms[element]
    return ZERO if term is None else term.number


def _renamed(pattern: str, ports: tuple[Port, ...]) -> tuple[Port, ...]:
    return tuple(Port(pattern.format(port.name), port.shape) for port in ports)


def _finish(builder: Builder, inputs, outputs, results: list[list[int]]) -> Graph:
    return clean(Graph(inputs, outputs, tuple(builder.nodes), tuple(map(tuple, results))))
