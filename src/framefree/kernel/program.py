"""The layout of a graph in memory and in time: slots and stages.

A program runs on a group of lanes at once. Its values live in a workspace, an array of slots, each
one vector wide: first the inputs, then the outputs, then what one stage hands to a later one. A
stage is a piece of straight-line code small enough for the instruction cache; each stage loops over
several groups before the next one starts, so that its code is fetched once for all of them.

Large outputs have no slots of their own: as soon as a few elements that follow one another are all
known they leave for the rows of the result, and their slots serve others. The workspace of a
matrix then stays in the near caches.
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
NEAR = 256 * 1024  # bytes of the workspaces of these groups that should stay in the caches


@dataclass(frozen=True)
class OutputPiece:
    """Consecutive elements of an output, beginning with `element`, and the first of their slots."""

    port: int
    element: int
    slot: int


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
    fills : dict of int to float
        Slots that receive a constant at the end of the stage.
    leaving : tuple of OutputPiece
        What goes to the rows of outputs after the stage.
    """

    start: int
    stop: int
    loads: dict[int, int] = field(repr=False)
    stores: dict[int, tuple[int, ...]] = field(repr=False)
    fills: dict[int, float] = field(default_factory=dict, repr=False)
    leaving: tuple[OutputPiece, ...] = field(default=(), repr=False)

    def is_call(self, graph: Graph) -> bool:
        """Tell whether the stage is a call of a function of matrices."""
        return self.stop == self.start + 1 and _is_call(graph.nodes[self.start])


@dataclass(frozen=True)
class KernelProgram:
    """A graph, its stages and the slots of its workspace.

    Attributes
    ----------
    input_slots, output_slots : tuple of int
        First slot of each port; its elements follow one another in C order. `EARLY` for an output
        whose pieces leave between the stages.
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

    def groups(self, width: int) -> int:
        """Return how many groups run together where a slot has so many bytes."""
        return max(1, min(GROUPS, NEAR // (self.slots * width)))


EARLY = -1  # in `KernelProgram.output_slots`: an output without slots of its own


def lay_out(graph: Graph, side: int | None = None) -> KernelProgram:
    """Choose stages and slots for a graph.

    With `side`, outputs of at least so many elements leave early, in pieces of this size.
    """
    weights = [_weight(node) for node in graph.nodes]
    cuts = _cuts(graph, weights)
    early = [len(cuts) > 2 and side is not None and port.size >= side for port in graph.outputs]
    input_slots, free = _consecutive(0, [port.size for port in graph.inputs])
    kept = [0 if leaves else port.size for leaves, port in zip(early, graph.outputs, strict=True)]
    output_slots, free = _consecutive(free, kept)
    slots = _Slots(graph, cuts, input_slots, free)
    for port, (first, elements) in enumerate(zip(output_slots, graph.results, strict=True)):
        if early[port]:
            slots.cut_up(port, elements, side or 1)
        else:
            slots.keep(first, elements)
    stages = tuple(slots.stage(index) for index in range(len(cuts) - 1))
    output_slots = tuple(
        EARLY if leaves else slot for leaves, slot in zip(early, output_slots, strict=True)
    )
    return KernelProgram(
        graph, input_slots, output_slots, slots.fixed, stages, max(slots.free, 1), sum(weights)
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
        self._leaving: dict[int, list[int]] = {}  # slots of outputs that leave
        self._pieces: list[list[_Piece]] = [[] for _ in cuts]  # by the stage that begins them
        self._complete: list[list[OutputPiece]] = [[] for _ in cuts]
        self._fills: list[dict[int, float]] = [{} for _ in cuts]
        self._alike: dict[tuple[float, ...], int] = {}  # slots of constant pieces
        self._places: dict[int, int] = {}  # slots of the values that later stages read
        self._given: dict[int, int] = {}  # first slots of what calls give
        self._released: list[dict[int, list[int]]] = [{} for _ in cuts]  # after a stage, by size
        self._pool: dict[int, list[int]] = {}

    # ------------------------------------------------------------------ outputs

    def keep(self, first: int, elements: Sequence[int]) -> None:
        """Give an output the slots from `first` on, until the end."""
        for slot, number in enumerate(elements, first):
            value = self._constant(number)
            if value is None:
                self._kept.setdefault(number, []).append(slot)
            else:
                self.fixed[slot] = value

    def cut_up(self, port: int, elements: Sequence[int], side: int) -> None:
        """Let an output leave in pieces, the last of which may overlap another.

        Constant ones leave with those before them: near places of memory are written together.
        """
        complete = 0
        for first in range(0, len(elements), side):
            first = min(first, len(elements) - side)
            numbers = tuple(elements[first : first + side])
            values = [self._constant(number) for number in numbers]
            known = [self._stage_of[n] for n, v in zip(numbers, values, strict=True) if v is None]
            if known:
                complete = max(known)
                self._pieces[min(known)].append(_Piece(port, first, numbers, complete))
                continue
            constants = tuple(value for value in values if value is not None)
            if constants not in self._alike:
                self._alike[constants] = self.free
                self.fixed.update(enumerate(constants, self.free))
                self.free += side
            self._complete[complete].append(OutputPiece(port, first, self._alike[constants]))

    def _constant(self, number: int) -> float | None:
        if number == ZERO:
            return 0.0
        node = self.graph.nodes[number]
        return node[1] if node[0] == "const" else None

    def _begin_pieces(self, index: int) -> None:
        for piece in self._pieces[index]:
            first = self._take(len(piece.numbers), until=piece.complete)
            for slot, number in enumerate(piece.numbers, first):
                value = self._constant(number)
                if value is None:
                    self._leaving.setdefault(number, []).append(slot)
                else:
                    self._fills[piece.complete][slot] = value
            self._complete[piece.complete].append(OutputPiece(piece.port, piece.element, first))

    # ------------------------------------------------------------------ stages

    def stage(self, index: int) -> Stage:
        """Return the next stage."""
        start, stop = self.cuts[index : index + 2]
        self._begin_pieces(index)
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
        for size, slots in self._released[index].items():
            self._pool.setdefault(size, []).extend(slots)
        leaving = sorted(self._complete[index], key=lambda piece: (piece.port, piece.element))
        return Stage(start, stop, loads, stores, self._fills[index], tuple(leaving))

    def _targets(self, number: int, index: int) -> tuple[int, ...]:
        """Return all slots to which a value goes."""
        kept = self._kept.get(number, [])
        targets = (*kept, *self._leaving.get(number, ()))
        if is_leaf(self.graph.nodes[number]) or self._last_stage[number] <= index:
            return targets
        if not kept:
            targets = (*targets, self._take(1, until=self._last_stage[number]))
        self._places[number] = kept[0] if kept else targets[-1]
        return targets

    def _take(self, size: int, until: int) -> int:
        """Return the first of so many slots, which are free again after a stage."""
        pool = self._pool.setdefault(size, [])
        if not pool:
            pool.append(self.free)
            self.free += size
        slot = pool.pop()
        self._released[until].setdefault(size, []).append(slot)
        return slot


@dataclass(frozen=True)
class _Piece:
    """Elements of an output that leave together, and the stage after which all are known."""

    port: int
    element: int
    numbers: tuple[int, ...]
    complete: int


def _slot_of(node: Node, input_slots: Sequence[int], given: dict[int, int]) -> int:
    """Return the slot of an input or of an element of what a call gives."""
    if isinstance(node[0], CallElement):
        return given[node[1]] + node[0].index
    return input_slots[node[1]] + node[2]
