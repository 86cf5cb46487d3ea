"""Rewrites of the expression graph that make it cheaper, in an order that fits the machine.

Each takes and returns a `Graph`. None depends on the lanes or the layout, so neither do the bits
of any result.
"""

from collections import Counter

from framefree.kernel.graph import ZERO, Builder, Graph, Node, clean, operands, uses


def optimise(graph: Graph, *, fma: bool) -> Graph:
    """Apply all rewrites; `fma` says whether the machine multiplies and adds with one rounding."""
    graph = share_reciprocals(graph)
    if fma:
        graph = fuse(graph)
    return pair_sin_cos(by_results(graph))


def share_reciprocals(graph: Graph) -> Graph:
    """Write x/d and y/d as x*r and y*r with one r = 1/d.

    CasADi turns ``x * (1/d)`` into ``x/d``, which undoes the saving of a shared 1/d:
    a division takes the time of about ten multiplications.
    """
    divisors = Counter(node[2] for node in graph.nodes if node[0] == "div")

    def rewrite(builder: Builder, number: int, node: Node) -> int:
        if node[0] == "div" and divisors[graph.nodes[number][2]] > 1:
            reciprocal = builder.add("div", builder.add("const", 1.0), node[2])
            return builder.add("mul", node[1], reciprocal)
        return builder.add(*node)

    return _rebuild(graph, rewrite)


def fuse(graph: Graph) -> Graph:
    """Fuse each product that only one sum or difference reads into that sum: a*b + c, one rounding.

    Done here and not by the compiler, so that the bits do not depend on the compiler's choices.
    """
    count = uses(graph.nodes, graph.results)
    nodes = list(graph.nodes)

    def lone_product(number: int) -> tuple[int, int] | None:
        node = graph.nodes[number]
        return node[1:] if node[0] == "mul" and count[number] == 1 else None

    for number, node in enumerate(graph.nodes):
        if node[0] not in ("add", "sub"):
            continue
        a, b = node[1:]
        if (product := lone_product(b)) is not None:
            nodes[number] = ("fma" if node[0] == "add" else "fnma", *product, a)
        elif (product := lone_product(a)) is not None:
            nodes[number] = ("fma" if node[0] == "add" else "fms", *product, b)
    return clean(Graph(graph.inputs, graph.outputs, tuple(nodes), graph.results))


def by_results(graph: Graph) -> Graph:
    """Put every node just before its first user, results in the order of NumPy's arrays.

    Fewer values are then handed from stage to stage than in CasADi's order, column by column.
    """
    order: list[int] = []
    placed = [False] * len(graph.nodes)
    for elements in graph.results:
        for element in elements:
            waiting = [] if element == ZERO else [element]
            while waiting:
                number = waiting[-1]
                missing = [one for one in operands(graph.nodes[number]) if not placed[one]]
                if missing and not placed[number]:
                    waiting.extend(reversed(missing))
                    continue
                waiting.pop()
                if not placed[number]:
                    placed[number] = True
                    order.append(number)
    return _reordered(graph, order)


def pair_sin_cos(graph: Graph) -> Graph:
    """Put the sine and the cosine of one argument next to each other: they share most of the work.

    Every node moves to where it is first possible only if it is such a partner; all others keep
    CasADi's order, which is depth first and keeps few values alive.
    """
    known = {node: number for number, node in enumerate(graph.nodes) if node[0] in ("sin", "cos")}
    order: list[int] = []
    placed = [False] * len(graph.nodes)
    for number, node in enumerate(graph.nodes):
        if placed[number]:
            continue
        partner = None
        if node[0] in ("sin", "cos"):
            partner = known.get(("cos" if node[0] == "sin" else "sin", node[1]))
        for one in (number, partner):
            if one is not None:
                placed[one] = True
                order.append(one)
    return _reordered(graph, order)


def _reordered(graph: Graph, order: list[int]) -> Graph:
    renumber = [ZERO] * (len(graph.nodes) + 1)
    nodes: list[Node] = []
    for number in order:
        node = graph.nodes[number]
        renumber[number] = len(nodes)
        if operands(node):
            node = (node[0], *[renumber[operand] for operand in node[1:]])
        nodes.append(node)
    results = tuple(tuple(renumber[one] for one in elements) for elements in graph.results)
    return Graph(graph.inputs, graph.outputs, tuple(nodes), results)


def _rebuild(graph: Graph, rewrite) -> Graph:
    """Build the graph anew, passing each node, its operands renumbered, through `rewrite`."""
    builder = Builder()
    renumber = [ZERO] * (len(graph.nodes) + 1)
    for number, node in enumerate(graph.nodes):
        if operands(node):
            node = (node[0], *[renumber[operand] for operand in node[1:]])
        renumber[number] = rewrite(builder, number, node)
    results = tuple(tuple(renumber[one] for one in elements) for elements in graph.results)
    return clean(Graph(graph.inputs, graph.outputs, tuple(builder.nodes), results))
