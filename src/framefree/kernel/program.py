"""The layout of a graph in memory and in time: slots and stages.

A program runs on a group of lanes at once. Its values live in a workspace, an array of slots, each
one vector wide: first the inputs, then the outputs, then what one stage hands to a later one. A
stage is a piece of straight-line code small enough for the instruction cache; each stage loops over
several groups before the next one starts, so that its code is fetched once for all of them.
"""

import itertools
from collections.abc import Sequence
from dataclasses import dataclass, field

from framefree.kernel.graph import ZERO, CallElement, Graph, Node, is_leaf, operands
from framefree.kernel.matrices import MatrixProgram

# Weights in units of one arithmetic instruction, for choosing where to cut.
WEIGHTS = {"const": 0, "input": 0, "sin": 25, "cos": 25, "div": 2, "sqrt": 2}
WEIGHTS |= dict.fromkeys(("exp", "log", "tanh", "atan", "atan2", "asin", "acos"), 40)
WEIGHTS |= dict.fromkeys(("tan", "sinh", "cosh", "asinh", "acosh", "atanh", "log1p"), 100)
WEIGHTS |= dict.fromkeys(("expm1", "erf", "pow", "hypot", "fmod", "remainder"), 100)
WEIGHTS |= {"erfinv": 1000}
WHOLE = 1800  # a graph up to this weight is one stage: it fits the instruction cache
PIECE = 1000  # else stages of about this weight
GROUPS = 8  # groups that a stage loops over; also hides latency, as one group overlaps the next


@dataclass(frozen=True)
class Stage:
    """A run of nodes ``graph.nodes[start:stop]`` compiled as one straight-line function.

    Attributes
    ----------
    loads : dict of int to int
        The slot of every value that comes from an input or from an earlier stage.
    stores : dict of int to tuple of int
        The slots to which a value goes: outputs, and one for later stages. Of a call, which is a
        stage for itself: the slots of all that it gives, one after another.
    """

    start: int
    stop: int
    loads: dict[int, int] = field(repr=False)
    stores: dict[int, tuple[int, ...]] = field(repr=False)

    def is_call(self, graph: Graph) -> bool:
        """Tell whether the stage is a call of a function of matrices."""
        return self.stop == self.start + 1 and _is_call(graph.nodes[self.start])


@dataclass(frozen=True)
class KernelProgram:
    """A graph, its stages and the slots of its workspace.

    Attributes
    ----------
    input_slots, output_slots : tuple of int
        First slot of each port; its elements follow one another in C order.
    fixed : dict of int to float
        Output slots whose value never changes.
    slots : int
        Number of slots.
    weight : int
        About how many instructions one group costs.
    """

    graph: Graph
    input_slots: tuple[int, ...]
    output_slots: tuple[int, ...]
    fixed: dict[int, float] = field(repr=False)
    stages: tuple[Stage, ...] = field(repr=False)
    slots: int
    weight: int


def lay_out(graph: Graph) -> KernelProgram:
    """Choose stages and slots for a graph."""
    input_slots, outputs_at = _consecutive(0, [port.size for port in graph.inputs])
    output_slots, free = _consecutive(outputs_at, [port.size for port in graph.outputs])
    fixed: dict[int, float] = {}
    targets: dict[int, list[int]] = {}
    for first, elements in zip(output_slots, graph.results, strict=True):
        for slot, number in enumerate(elements, first):
            if number == ZERO:
                fixed[slot] = 0.0
            elif graph.nodes[number][0] == "const":
                fixed[slot] = graph.nodes[number][1]
            else:
                targets.setdefault(number, []).append(slot)
    weights = [_weight(node) for node in graph.nodes]
    cuts = _cuts(graph, weights)
    stages, slots = _stages(graph, cuts, input_slots, targets, free)
    return KernelProgram(
        graph, input_slots, output_slots, fixed, stages, max(slots, 1), sum(weights)
    )


def _is_call(node: Node) -> bool:
    return isinstance(node[0], MatrixProgram)


def _weight(node: Node) -> int:
    if isinstance(node[0], MatrixProgram):
        return node[0].weight
    return 0 if isinstance(node[0], CallElement) else WEIGHTS.get(node[0], 1)


def _consecutive(start: int, sizes: Sequence[int]) -> tuple[tuple[int, ...], int]:
    places = []
    for size in sizes:
        places.append(start)
        start += size
    return tuple(places), start


def _last_uses(graph: Graph) -> list[int]:
    last = list(range(len(graph.nodes)))
    for number, node in enumerate(graph.nodes):
        for operand in operands(node):
            last[operand] = number
    return last


def _cuts(graph: Graph, weights: Sequence[int]) -> list[int]:
    """Choose where stages begin and end: before and after calls, and between these by weight."""
    calls = [number for number, node in enumerate(graph.nodes) if _is_call(node)]
    edges = {0, len(graph.nodes), *calls, *(number + 1 for number in calls)}
    alive, cuts = None, [0]
    for start, stop in itertools.pairwise(sorted(edges)):
        if sum(weights[start:stop]) > WHOLE and not _is_call(graph.nodes[start]):
            alive = _alive(graph) if alive is None else alive
            cuts += _pieces(weights, alive, start, stop)
        cuts.append(stop)
    return cuts if len(cuts) > 1 else [0, 0]


def _alive(graph: Graph) -> list[int]:
    """Count for every place between nodes the values that are needed later."""
    count = len(graph.nodes)
    alive = [0] * (count + 2)
    for number, last in enumerate(_last_uses(graph)):
        if not is_leaf(graph.nodes[number]):
            alive[number + 1] += 1
            alive[last + 1] -= 1
    for number in range(1, count + 1):
        alive[number] += alive[number - 1]
        if number < count and _pair(graph, number):
            alive[number] += count  # sine and cosine of one argument stay together
    return alive


def _pieces(weights: Sequence[int], alive: Sequence[int], start: int, stop: int) -> list[int]:
    """Choose cuts between two places: near equal weight, where few values are alive."""
    cuts, weight, best = [], 0, None
    for number in range(start, stop):
        weight += weights[number]
        if weight >= 0.75 * PIECE and (best is None or alive[number + 1] <= alive[best]):
            best = number + 1
        if weight >= 1.25 * PIECE and best is not None:
            cuts.append(best)
            weight, best = sum(weights[best : number + 1]), None
    if weight < 0.25 * PIECE and cuts:
        cuts.pop()
    return cuts


def _pair(graph: Graph, number: int) -> bool:
    a, b = graph.nodes[number - 1], graph.nodes[number]
    return {a[0], b[0]} == {"sin", "cos"} and a[1] == b[1]


def _stages(
    graph: Graph,
    cuts: Sequence[int],
    input_slots: Sequence[int],
    targets: dict[int, list[int]],
    free: int,
) -> tuple[tuple[Stage, ...], int]:
    stage_of = [0] * len(graph.nodes)
    for index, (start, stop) in enumerate(itertools.pairwise(cuts)):
        stage_of[start:stop] = [index] * (stop - start)
    last_stage = [stage_of[last] for last in _last_uses(graph)]
    stages: list[Stage] = []
    places: dict[int, int] = {}  # slots of the values that later stages read
    given: dict[int, int] = {}  # first slots of what calls give
    released: list[list[int]] = [[] for _ in cuts]  # temporary slots free after a stage
    pool: list[int] = []
    for index, (start, stop) in enumerate(itertools.pairwise(cuts)):
        loads: dict[int, int] = {}
        stores: dict[int, tuple[int, ...]] = {}
        for number in range(start, stop):
            node = graph.nodes[number]
            if node[0] == "const":
                continue
            if is_leaf(node):
                places[number] = _slot_of(node, input_slots, given)
            else:
                for operand in operands(node):
                    if operand in places:
                        loads[operand] = places[operand]
            if _is_call(node):
                given[number] = free
                free += sum(node[0].outputs)
                stores[number] = tuple(range(given[number], free))
                continue
            if number in targets:
                stores[number] = tuple(targets[number])
                if is_leaf(node):
                    loads[number] = places[number]
            if not is_leaf(node) and last_stage[number] > index:
                if number not in targets:
                    if not pool:
                        pool.append(free)
                        free += 1
                    stores[number] = (pool.pop(),)
                    released[last_stage[number]].append(stores[number][0])
                places[number] = stores[number][0]
        for number in range(start, stop):  # within this stage they are still in registers
            if not is_leaf(graph.nodes[number]):
                loads.pop(number, None)
        pool.extend(released[index])
        stages.append(Stage(start, stop, loads, stores))
    return tuple(stages), free


def _slot_of(node: Node, input_slots: Sequence[int], given: dict[int, int]) -> int:
    """Return the slot of an input or of an element of what a call gives."""
    if isinstance(node[0], CallElement):
        return given[node[1]] + node[0].index
    return input_slots[node[1]] + node[2]
