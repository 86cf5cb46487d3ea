"""A program of calls as one graph: the same operations, one call after another.

Each function keeps the products and sums that were fused in it, and nothing is fused across calls,
so that straight-line code has the bits of the loop over calls.
"""

from collections.abc import Iterable, Sequence

from framefree.kernel.graph import ZERO, Builder, Graph, Port, clean

Places = Sequence[tuple[Port, int]]
"""Ports with the first of their slots."""


def written_out(
    inputs: Places,
    outputs: Places,
    calls: Iterable[tuple[Graph, Sequence[int | tuple[float, ...]], Sequence[int]]],
) -> Graph:
    """Return the graph of a list of calls.

    Parameters
    ----------
    inputs, outputs
        Ports of the program.
    calls
        Of each call the graph of its function, products and sums fused; the first slots of what it
        reads, or the numbers themselves; and the first slots of what it writes.
    """
    builder, held = Builder(), {}
    for number, (port, start) in enumerate(inputs):
        for k in range(port.size):
            held[start + k] = builder.add("input", number, k)
    zero = builder.add("const", 0.0)
    for graph, sources, targets in calls:
        results = _appended(builder, graph, sources, held, zero)
        for elements, start in zip(results, targets, strict=True):
            held.update(enumerate(elements, start))
    results = tuple(tuple(held[start + k] for k in range(port.size)) for port, start in outputs)
    ports = tuple(port for port, _ in inputs), tuple(port for port, _ in outputs)
    return clean(Graph(*ports, tuple(builder.nodes), results))


def _appended(
    builder: Builder,
    graph: Graph,
    sources: Sequence[int | tuple[float, ...]],
    held: dict[int, int],
    zero: int,
) -> list[list[int]]:
    """Add the nodes of one call and return those that it gives; what was never written is zero."""
    numbers: list[int] = []
    for node in graph.nodes:
        if node[0] == "const":
            numbers.append(builder.add(*node))
        elif node[0] == "input":
            source = sources[node[1]]
            if isinstance(source, int):
                numbers.append(held.get(source + node[2], zero))
            else:
                numbers.append(builder.add("const", source[node[2]]))
        else:
            numbers.append(builder.add(node[0], *(numbers[one] for one in node[1:])))
    return [
        [zero if one == ZERO else numbers[one] for one in elements] for elements in graph.results
    ]
