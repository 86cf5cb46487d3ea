"""The layout of a graph in memory and in time: slots and stages.

A program runs on a group of lanes at once. Its values live in a workspace, an array of slots, each
one vector wide: first the inputs, then the outputs, then what one stage hands to a later one. A
stage is a piece of straight-line code small enough for the instruction cache; each stage loops over
several groups before the next one starts, so that its code is fetched once for all of them.

Large outputs have no slots in a row: a table tells where each element lies. Equal elements, as a
symmetric matrix has them and the zeros of a tree, then take one slot between them, and inputs that
are handed on none at all. Such an output leaves the workspace after the stage that completes it,
and the next one takes its slots. The workspace of a matrix stays in the near caches.
"""

import itertools
from collections import deque
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
NEAR = 256 * 1024  # bytes of the workspaces of these groups that should stay in the caches


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
        First slot of each port; its elements follow one another in C order. `TABLED` for an output
        whose elements lie where a table tells.
    fixed : dict of int to float
        Output slots whose value never changes.
    slots : int
        Number of slots.
    weight : int
        About how many instructions one group costs.
    tables : dict of int to tuple of int
        The slots of the elements of outputs that have a table, by the number of the output.
    finished : dict of int to int
        The stage after which such an output must be taken from the workspace.
    """

    graph: Graph
    input_slots: tuple[int, ...]
    output_slots: tuple[int, ...]
    fixed: dict[int, float] = field(repr=False)
    stages: tuple[Stage, ...] = field(repr=False)
    slots: int
    weight: int
    tables: dict[int, tuple[int, ...]] = field(default_factory=dict, repr=False)
    finished: dict[int, int] = field(default_factory=dict, repr=False)

    def groups(self, width: int) -> int:
        """Return how many groups run together where a slot has so many bytes."""
        return max(1, min(GROUPS, NEAR // (self.slots * width)))


TABLED = -1  # in `KernelProgram.output_slots`: an output whose elements lie where a table tells


def lay_out(graph: Graph, large: int | None = None) -> KernelProgram:
    """Choose stages and slots for a graph.

    With `large`, outputs of at least so many elements have a table of slots.
    """
    weights = [_weight(node) for node in graph.nodes]
    cuts = _cuts(graph, weights)
    tabled = [large is not None and port.size >= large for port in graph.outputs]
    input_slots, free = _consecutive(0, [port.size for port in graph.inputs])
    kept = [0 if table else port.size for table, port in zip(tabled, graph.outputs, strict=True)]
    output_slots, free = _consecutive(free, kept)
    slots = _Slots(graph, cuts, input_slots, free)
    finished = {k: slots.complete(graph.results[k]) for k, table in enumerate(tabled) if table}
    for k, (first, elements) in enumerate(zip(output_slots, graph.results, strict=True)):
        if k in finished:
            slots.keep_once(elements, finished[k])
        else:
            slots.keep(first, elements)
    stages = tuple(slots.stage(index) for index in range(len(cuts) - 1))
    return KernelProgram(
        graph,
        input_slots,
        tuple(TABLED if t else slot for t, slot in zip(tabled, output_slots, strict=True)),
        slots.fixed,
        stages,
        max(slots.free, 1),
        sum(weights),
        {k: slots.table(graph.results[k]) for k in finished},
        finished,
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


class _Slots:
    """Gives slots to values while it goes from stage to stage."""

    def __init__(
        self, graph: Graph, cuts: Sequence[int], input_slots: Sequence[int], free: int
    ) -> None:
        self.graph, self.cuts, self.input_slots, self.free = graph, cuts, input_slots, free
        self.fixed: dict[int, float] = {}
        self._stage_of = [0] * len(graph.nodes)
        for index, (start, stop) in enumerate(itertools.pairwise(cuts)):
            self._stage_of[start:stop] = [index] * (stop - start)
        self._last_stage = [self._stage_of[last] for last in _last_uses(graph)]
        self._kept: dict[int, list[int]] = {}  # slots of outputs until the end
        self._once: dict[int, int] = {}  # elements of outputs with a table: kept until a stage
        self._constants: dict[str, int] = {}  # slots of constants, by how they are written
        self._places: dict[int, int] = {}  # slots of the values that later stages read
        self._given: dict[int, int] = {}  # first slots of what calls give
        self._released: list[list[int]] = [[] for _ in cuts]  # slots that are free after a stage
        self._pool: list[int] = []
        self._result_released: list[list[int]] = [[] for _ in cuts]
        self._result_pool: deque[int] = deque()  # apart and in order, as rows are written

    # ------------------------------------------------------------------ outputs

    def keep(self, first: int, elements: Sequence[int]) -> None:
        """Give an output the slots from `first` on, until the end."""
        for slot, number in enumerate(elements, first):
            value = self._constant(number)
            if value is None:
                self._kept.setdefault(number, []).append(slot)
            else:
                self.fixed[slot] = value

    def complete(self, elements: Sequence[int]) -> int:
        """Return the stage after which all elements of an output are known."""
        return max((self._stage_of[number] for number in elements if number != ZERO), default=0)

    def keep_once(self, elements: Sequence[int], until: int) -> None:
        """Let every different value of an output have one slot until the end of a stage."""
        for number in elements:
            value = self._constant(number)
            if value is not None:
                if repr(value) not in self._constants:
                    self._constants[repr(value)] = self.free
                    self.fixed[self.free] = value
                    self.free += 1
            elif number not in self._kept and not is_leaf(self.graph.nodes[number]):
                until = max(until, self._last_stage[number])
                self._once[number] = max(until, self._once.get(number, 0))

    def table(self, elements: Sequence[int]) -> tuple[int, ...]:
        """Return where the elements of an output lie, after all stages have their slots."""
        return tuple(self._slot(number) for number in elements)

    def _slot(self, number: int) -> int:
        value = self._constant(number)
        if value is not None:
            return self._constants[repr(value)]
        if number in self._kept:
            return self._kept[number][0]
        return _slot_of(self.graph.nodes[number], self.input_slots, self._given)

    def _constant(self, number: int) -> float | None:
        if number == ZERO:
            return 0.0
        node = self.graph.nodes[number]
        return node[1] if node[0] == "const" else None

    # ------------------------------------------------------------------ stages

    def stage(self, index: int) -> Stage:
        """Return the next stage."""
        start, stop = self.cuts[index : index + 2]
        loads: dict[int, int] = {}
        stores: dict[int, tuple[int, ...]] = {}
        for number in range(start, stop):
            node = self.graph.nodes[number]
            if node[0] == "const":
                continue
            if is_leaf(node):
                self._places[number] = _slot_of(node, self.input_slots, self._given)
            for operand in () if is_leaf(node) else operands(node):
                if operand in self._places:
                    loads[operand] = self._places[operand]
            if _is_call(node):
                self._given[number], size = self.free, sum(node[0].outputs)
                self.free += size
                stores[number] = tuple(range(self._given[number], self.free))
                continue
            if targets := self._targets(number, index):
                stores[number] = targets
                if is_leaf(node):
                    loads[number] = self._places[number]
        for number in range(start, stop):  # within this stage they are still in registers
            if not is_leaf(self.graph.nodes[number]):
                loads.pop(number, None)
        self._pool.extend(self._released[index])
        self._result_pool.extend(sorted(self._result_released[index]))
        return Stage(start, stop, loads, stores)

    def _targets(self, number: int, index: int) -> tuple[int, ...]:
        """Return all slots to which a value goes."""
        if number in self._once and number not in self._kept:
            self._kept[number] = [self._take_for_result(self._once[number])]
        targets = tuple(self._kept.get(number, ()))
        if is_leaf(self.graph.nodes[number]) or self._last_stage[number] <= index:
            return targets
        if not targets:
            targets = (self._take(until=self._last_stage[number]),)
        self._places[number] = targets[0]
        return targets

    def _take(self, until: int) -> int:
        """Return a slot, which is free again after a stage."""
        if not self._pool:
            self._pool.append(self.free)
            self.free += 1
        slot = self._pool.pop()
        self._released[until].append(slot)
        return slot

    def _take_for_result(self, until: int) -> int:
        """Return a slot for an element of an output, which is free again after a stage."""
        if not self._result_pool:
            self._result_pool.append(self.free)
            self.free += 1
        slot = self._result_pool.popleft()
        self._result_released[until].append(slot)
        return slot


def _slot_of(node: Node, input_slots: Sequence[int], given: dict[int, int]) -> int:
    """Return the slot of an input or of an element of what a call gives."""
    if isinstance(node[0], CallElement):
        return given[node[1]] + node[0].index
    return input_slots[node[1]] + node[2]
