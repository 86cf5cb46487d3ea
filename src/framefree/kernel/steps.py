"""A graph as a list of equal steps, for machines that like few kinds of work on many values.

The values lie in rows of a workspace: the inputs, the constants, then blocks of `WIDTH` rows. A
step gathers three rows for each of `WIDTH` results, does one kind of operation, and writes a
block. All of +, -, * and their fusions are one kind, ``s (a b) + t c`` with signs s and t: the
operands 1, -1 and -0 make it exact for each.
"""

import heapq
from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np

from framefree.kernel.graph import ZERO, Graph, operands

WIDTH = 16
LINEAR = frozenset({"add", "sub", "mul", "neg", "fma", "fms", "fnma"})


@dataclass(frozen=True, eq=False)
class Steps:
    """The tables of a program of steps.

    Attributes
    ----------
    kinds : tuple of str
        The kinds that occur: "linear" or an operation.
    kind : (steps,) array
        Index into `kinds`.
    operands : (steps, 3, WIDTH) array
        Rows to gather.
    signs : (steps, 2, WIDTH) array
        The signs s and t of the kind "linear".
    target : (steps,) array
        First row of the block to write.
    constants : (n,) array
        Values of the rows after the inputs.
    rows : int
        Number of rows.
    results : (outputs,) array
        Rows of the results.
    """

    kinds: tuple[str, ...]
    kind: np.ndarray = field(repr=False)
    operands: np.ndarray = field(repr=False)
    signs: np.ndarray = field(repr=False)
    target: np.ndarray = field(repr=False)
    constants: np.ndarray = field(repr=False)
    rows: int
    results: np.ndarray = field(repr=False)


def schedule(graph: Graph) -> Steps:
    """Arrange a graph in steps."""
    groups = list(_groups(graph))
    kinds = tuple(sorted({_kind(graph, group[0]) for group in groups}))
    rows, constants, one, minus, zero = _fixed_rows(graph)
    targets, end = _blocks(graph, groups, sum(port.size for port in graph.inputs) + len(constants))
    gathered = np.zeros((len(groups), 3, WIDTH), np.int32)
    signs = np.ones((len(groups), 2, WIDTH))
    for step, group in enumerate(groups):
        for lane in range(WIDTH):
            node = graph.nodes[group[lane if lane < len(group) else 0]]  # spare lanes repeat
            a, b, c = ([rows[operand] for operand in node[1:]] * 3)[:3]
            match node[0]:
                case "add":
                    a, b, c = a, one, b
                case "sub":
                    a, b, c = b, minus, a
                case "mul":
                    c = zero
                case "neg":
                    b, c = minus, zero
                case "fms":
                    signs[step, 1, lane] = -1
                case "fnma":
                    signs[step, 0, lane] = -1
            gathered[step, :, lane] = a, b, c
        rows.update({number: targets[step] + lane for lane, number in enumerate(group)})
    results = [rows[element] for elements in graph.results for element in elements]
    return Steps(
        kinds,
        np.array([kinds.index(_kind(graph, group[0])) for group in groups], np.int32),
        gathered,
        signs,
        np.array(targets, np.int32),
        np.array(constants),
        end,
        np.array(results, np.int32),
    )


def _kind(graph: Graph, number: int) -> str:
    operation = graph.nodes[number][0]
    return "linear" if operation in LINEAR else operation


def _groups(graph: Graph) -> Iterator[list[int]]:
    """Give groups of up to `WIDTH` nodes of one kind, those with the longest way to go first."""
    count = len(graph.nodes)
    users: list[list[int]] = [[] for _ in range(count)]
    missing = [0] * count
    for number, node in enumerate(graph.nodes):
        for operand in set(operands(node)):
            if operands(graph.nodes[operand]):
                users[operand].append(number)
                missing[number] += 1
    height = [0] * count
    for number in range(count - 1, -1, -1):
        height[number] = 1 + max((height[user] for user in users[number]), default=0)
    ready: dict[str, list[tuple[int, int]]] = {}

    def add(number: int) -> None:
        heap = ready.setdefault(_kind(graph, number), [])
        heapq.heappush(heap, (-height[number], number))

    for number, node in enumerate(graph.nodes):
        if operands(node) and not missing[number]:
            add(number)
    while any(ready.values()):
        heap = min(
            (heap for heap in ready.values() if heap), key=lambda heap: (heap[0][0], -len(heap))
        )
        group = [heapq.heappop(heap)[1] for _ in range(min(WIDTH, len(heap)))]
        yield group
        for number in group:
            for user in users[number]:
                missing[user] -= 1
                if not missing[user]:
                    add(user)


def _fixed_rows(graph: Graph) -> tuple[dict[int, int], list[float], int, int, int]:
    """Give the rows of inputs and constants, and those of 1, -1 and -0."""
    firsts = np.cumsum([0, *(port.size for port in graph.inputs)])
    end = int(firsts[-1])
    constants = [1.0, -1.0, -0.0, 0.0]
    rows = {ZERO: end + 3}
    for number, node in enumerate(graph.nodes):
        if node[0] == "input":
            rows[number] = int(firsts[node[1]]) + node[2]
        elif node[0] == "const":
            rows[number] = end + len(constants)
            constants.append(node[1])
    return rows, constants, end, end + 1, end + 2


def _blocks(graph: Graph, groups: list[list[int]], first: int) -> tuple[list[int], int]:
    """Choose the rows that each group writes; a block none of whose values is needed is free."""
    step_of = {number: step for step, group in enumerate(groups) for number in group}
    last = [0] * len(graph.nodes)
    for number, step in step_of.items():
        for operand in operands(graph.nodes[number]):
            last[operand] = max(last[operand], step)
    for elements in graph.results:
        for element in elements:
            if element != ZERO:
                last[element] = len(groups)
    released: list[list[int]] = [[] for _ in range(len(groups) + 1)]
    pool: list[int] = []
    targets, end = [], first
    for step, group in enumerate(groups):
        if not pool:
            pool.append(end)
            end += WIDTH
        targets.append(pool.pop())
        released[max(last[number] for number in group)].append(targets[-1])
        pool.extend(released[step])
    return targets, end
