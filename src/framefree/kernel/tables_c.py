"""A long function in C: loops over tables of operations instead of one statement an operation.

The operations are those of the straight-line code, in the same order and with the same bits. A
value has a place in one array while it is needed. The table is a row of numbers:

    operation, count, then for each of `count` operations: target, operands
    sum of products, count, target, first addend, then for each product: its two factors

A product that is added to what the target holds has its two factors as operands. Places beyond the
array are constants. Compilers take a second where they take minutes for the statements of 50,000
operations, and a processor keeps 4 to 8 bytes of an operation instead of 10 to 40 bytes of code.
"""

from collections.abc import Iterator, Sequence

from framefree.kernel.graph import TRUTHS, ZERO, Graph, operands, uses
from framefree.kernel.operations_c import FUSED, literal, operation_text

LONG = 16_000
"""Operations above which a function is written so: of statements they would be a megabyte."""
MOST = 65_535
"""Operations that are counted together, and places that a short number tells apart."""
WIDTH = 20
"""Numbers in a line."""
SUMS = ("fma", "fnma")
"""Operations whose chains become sums of products."""
SUM_OF, IN_PLACE = "sum of ", " in place"
"""Kinds of loops beside the operations: a chain, and operations that write over their addend."""

TEXT = """
static const {kind} {name}_code[{length}] = {{
{code}
}};
static const double {name}_numbers[{many}] = {{
{numbers}
}};

static double {name}_value(const double *work, long place)
{{
    return place < {slots} ? work[place] : {name}_numbers[place - {slots}];
}}

static void {name}_run(double *work)
{{
    const {kind} *row = {name}_code, *const end = {name}_code + {length};
    while (row < end) {{
        const long operation = row[0], count = row[1];
        long k;
        row += 2;
        switch (operation) {{
{cases}
        default:
            return;
        }}
    }}
}}
"""
SUM = """\
        case {number}: {{
            const long target = row[0];
            double sum = {name}_value(work, row[1]);
            row += 2;
            for (k = 0; k < count; ++k, row += 2) {{
                const double a = {name}_value(work, row[0]), b = {name}_value(work, row[1]);
                sum = {expression};
            }}
            work[target] = sum;
            break;
        }}"""
CASE = """\
        case {number}:
            for (k = 0; k < count; ++k, row += {width}) {{
                work[row[0]] = {expression};
            }}
            break;"""


class OperationTable:
    """The operations of a graph as a table.

    Parameters
    ----------
    graph : Graph
        After `framefree.kernel.optimise`.
    """

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self.kinds: list[str] = []
        self.rows: list[list[int]] = []
        groups = _chains(graph)
        places, self.slots = _places(graph, groups)
        numbers = [k for k, node in enumerate(graph.nodes) if node[0] == "const"]
        self.numbers = [graph.nodes[k][1] for k in numbers] + [0.0]
        self.places = places | {k: self.slots + j for j, k in enumerate(numbers)}
        self.places[ZERO] = self.slots + len(numbers)
        for kind, run in self._runs(groups):
            self._add(kind, run)

    def _kind(self, group: Sequence[int]) -> str:
        """Return by what loop a group is done."""
        node = self.graph.nodes[group[-1]]
        if len(group) > 1:
            return f"{SUM_OF}{node[0]}"
        over = node[0] in FUSED and self.places[node[3]] == self.places[group[-1]]
        return f"{node[0]}{IN_PLACE}" if over else node[0]

    def _runs(self, groups: list[list[int]]) -> Iterator[tuple[str, list[list[int]]]]:
        """Return groups that are one loop, and by what loop: a sum alone, others together."""
        run: list[list[int]] = []
        for group in groups:
            kind = self._kind(group)
            alone = kind.startswith(SUM_OF) or len(run) == MOST
            if run and (alone or kind != self._kind(run[0])):
                yield self._kind(run[0]), run
                run = []
            run.append(group)
        if run:
            yield self._kind(run[0]), run

    def _add(self, kind: str, run: Sequence[Sequence[int]]) -> None:
        """Append operations of one kind, or one sum."""
        if kind not in self.kinds:
            self.kinds.append(kind)
        nodes, place = self.graph.nodes, self.places
        if kind.startswith(SUM_OF):
            (chain,) = run
            products = [place[one] for k in chain for one in nodes[k][1:3]]
            row = [len(chain), place[chain[-1]], place[nodes[chain[0]][3]], *products]
        else:
            row = [len(run)]
            for (k,) in run:
                read = nodes[k][1:3] if kind.endswith(IN_PLACE) else operands(nodes[k])
                row += [place[k], *(place[one] for one in read)]
        self.rows.append([self.kinds.index(kind), *row])

    def text(self, name: str) -> str:
        """Return tables and the function `name`_run that works on an array of all places."""
        row = [number for row in self.rows for number in row]
        short = self.slots + len(self.numbers) <= MOST
        lines = [",".join(map(str, row[k : k + WIDTH])) for k in range(0, len(row), WIDTH)]
        return TEXT.format(
            name=name,
            kind="unsigned short" if short else "unsigned int",
            length=len(row),
            code="\n".join(f"    {line}," for line in lines),
            many=len(self.numbers),
            numbers="\n".join(f"    {literal(value)}," for value in self.numbers),
            slots=self.slots,
            cases="\n".join(self._case(k, kind, name) for k, kind in enumerate(self.kinds)),
        )

    def _case(self, number: int, kind: str, name: str) -> str:
        if kind.startswith(SUM_OF):
            expression = operation_text(kind.removeprefix(SUM_OF), ("a", "b", "sum"), ())
            return SUM.format(number=number, name=name, expression=expression)
        operation = kind.removesuffix(IN_PLACE)
        count = next(len(n) - 1 for n in self.graph.nodes if n[0] == operation)
        values = [f"{name}_value(work, row[{j + 1}])" for j in range(count)]
        if operation != kind:
            values[2], count = "work[row[0]]", 2
        truths = [f"({value} != 0.0)" for value in values]
        expression = operation_text(operation, values, truths)
        if operation in TRUTHS:
            expression = f"{expression} ? 1.0 : 0.0"
        return CASE.format(number=number, width=count + 1, expression=expression)

    def results(self, port: int, name: str) -> Iterator[str]:
        """Return statements that copy an output of this name from the array."""
        slots, numbers = self.slots, self.numbers
        for k, number in enumerate(self.graph.results[port]):
            place = self.places[number]
            value = f"work[{place}]" if place < slots else literal(numbers[place - slots])
            yield f"{name}[{k}] = {value};"


def _chains(graph: Graph) -> list[list[int]]:
    """Return the operations in order, such together as add up products one after another.

    A sum is made where its last product is added: its factors are all there by then, and nothing
    else reads what it was before.
    """
    count, chains = uses(graph.nodes, graph.results), {}
    for number, node in enumerate(graph.nodes):
        if node[0] in ("const", "input"):
            continue
        chain: list[int] = []
        if node[0] in SUMS:
            _, a, b, addend = node
            adds = graph.nodes[addend][0] == node[0] and count[addend] == 1
            if adds and addend not in (a, b) and len(chains[addend]) < MOST:
                chain = chains.pop(addend)
        chains[number] = [*chain, number]
    return list(chains.values())


def _places(graph: Graph, groups: list[list[int]]) -> tuple[dict[int, int], int]:
    """Return where values live, and how many places there are; inputs come first, in order.

    A place is free again after the last use of its value. Links of a chain but the last have none.
    """
    firsts, free = [], 0
    for port in graph.inputs:
        firsts.append(free)
        free += port.size
    places = {
        k: firsts[node[1]] + node[2] for k, node in enumerate(graph.nodes) if node[0] == "input"
    }
    last: dict[int, int] = {}
    for when, group in enumerate(groups):
        for number in group:
            last |= dict.fromkeys(operands(graph.nodes[number]), when)
    last |= {number: len(groups) for elements in graph.results for number in elements}
    pool: list[int] = []
    for when, group in enumerate(groups):
        read = {one for number in group for one in operands(graph.nodes[number])}
        pool += [places[one] for one in read if one in places and last[one] == when]
        if not pool:
            pool.append(free)
            free += 1
        node = graph.nodes[group[-1]]
        over = places.get(node[3]) if node[0] in FUSED else None
        if over in pool and over is not None:
            pool.remove(over)
            places[group[-1]] = over
        else:
            places[group[-1]] = pool.pop()
    return places, max(free, 1)
