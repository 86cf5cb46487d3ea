"""From a `casadi.Function` to a `Graph`.

A function that is marked with CasADi's option `never_inline` stays a call inside the graph of its
caller, also where the caller is differentiated. Such a call is read in one of two ways: as a call,
which the native code makes on whole matrices (`framefree.kernel.matrices`), or, where the target
has no calls or the function does other things, as its scalar operations.
"""

from collections.abc import Callable, Sequence

import casadi as ca

from framefree.kernel.graph import (
    BINARY,
    UNARY,
    ZERO,
    Builder,
    CallElement,
    CompileError,
    Graph,
    Port,
    clean,
)
from framefree.kernel.matrices import MatrixProgram, read_matrices

NAMES = {v: k for k, v in vars(ca).items() if k.startswith("OP_")}


def read(
    function: ca.Function, inputs: Sequence[Port], outputs: Sequence[Port], *, calls: bool = False
) -> Graph:
    """Read a `casadi.Function` into a `Graph`.

    Parameters
    ----------
    function : casadi.Function
        Any function that CasADi can expand to scalar operations.
    inputs, outputs : sequence of Port
        Names and NumPy shapes, of the function's own sizes.
    calls : bool
        Whether calls of functions of matrices stay calls.
    """
    function = expand(function)
    reader = _Reader(calls)
    places = [_c_order(function.sparsity_in(i)) for i in range(function.n_in())]
    leaves = [_c_order(function.sparsity_out(i)) for i in range(function.n_out())]
    results = [[ZERO] * port.size for port in outputs]

    def enter(port: int, nonzero: int) -> int:
        return reader.builder.add("input", port, places[port][nonzero])

    def leave(port: int, nonzero: int, number: int) -> None:
        results[port][leaves[port][nonzero]] = number

    reader.walk(function, enter, leave)
    nodes = tuple(reader.builder.nodes)
    return clean(Graph(tuple(inputs), tuple(outputs), nodes, tuple(map(tuple, results))))


class _Reader:
    """Adds the operations of functions to one graph."""

    def __init__(self, calls: bool) -> None:
        self.builder = Builder()
        self.calls = calls
        # By hash, which tells where the function is: two of one function do not compare as equal.
        self._programs: dict[int, MatrixProgram | None] = {}
        self._expanded: dict[int, ca.Function] = {}

    def walk(
        self,
        function: ca.Function,
        enter: Callable[[int, int], int],
        leave: Callable[[int, int, int], None],
    ) -> None:
        """Add what a function of scalar operations does.

        `enter(port, nonzero)` gives the node of an input, `leave(port, nonzero, node)` takes one
        of an output.
        """
        work: list[int] = [0] * function.sz_w()
        identity, sources = function.instruction_id, function.instruction_input
        target, constant = function.instruction_output, function.instruction_constant
        expressions = None
        for k in range(function.n_instructions()):
            operation = identity(k)
            if operation == ca.OP_OUTPUT:
                port, nonzero = target(k)
                leave(port, nonzero, work[sources(k)[0]])
            elif operation == ca.OP_INPUT:
                work[target(k)[0]] = enter(*sources(k))
            elif operation == ca.OP_CONST:
                work[target(k)[0]] = self.builder.add("const", constant(k))
            elif operation == ca.OP_CALL:
                expressions = function.instructions_sx() if expressions is None else expressions
                called, numbers = expressions[k].which_function(), [work[i] for i in sources(k)]
                results = self._call(function, called, numbers)
                for place, number in zip(target(k), results, strict=True):
                    if place >= 0:
                        work[place] = number
            else:
                numbers = [work[i] for i in sources(k)]
                work[target(k)[0]] = _translate(function, self.builder, operation, numbers)

    def _call(
        self, caller: ca.Function, function: ca.Function, numbers: Sequence[int]
    ) -> list[int]:
        """Return the nodes of all that a function gives for these nonzeros of its inputs."""
        if self.calls:
            if hash(function) not in self._programs:
                self._programs[hash(function)] = read_matrices(function)
            program = self._programs[hash(function)]
            if program is not None:
                call = self.builder.add(program, *numbers)
                return [self.builder.add(CallElement(k), call) for k in range(sum(program.outputs))]
        if hash(function) not in self._expanded:
            self._expanded[hash(function)] = _inlined(caller, function)
        inner = self._expanded[hash(function)]
        firsts_in = _firsts([inner.nnz_in(k) for k in range(inner.n_in())])
        firsts_out = _firsts([inner.nnz_out(k) for k in range(inner.n_out())])
        results = [self.builder.add("const", 0.0)] * firsts_out[-1]

        def leave(port: int, nonzero: int, number: int) -> None:
            results[firsts_out[port] + nonzero] = number

        self.walk(inner, lambda port, nonzero: numbers[firsts_in[port] + nonzero], leave)
        return results


def _firsts(sizes: Sequence[int]) -> list[int]:
    firsts = [0]
    for size in sizes:
        firsts.append(firsts[-1] + size)
    return firsts


def _inlined(caller: ca.Function, function: ca.Function) -> ca.Function:
    """Return a function that is marked `never_inline` as scalar operations."""
    if function.is_a("SXFunction"):
        return expand(function)
    if not function.is_a("MXFunction"):
        raise CompileError(
            f"`{caller.name()}` calls `{function.name()}`, a {function.class_name()}: only "
            "functions made of expressions (SX or MX) can be compiled"
        )
    inputs = [
        one if one.is_valid_input() and one.nnz() else ca.MX.sym("none", function.sparsity_in(k))
        for k, one in enumerate(function.mx_in())
    ]
    pieces: list[list[ca.MX]] = [[] for _ in range(function.n_out())]
    for k in range(function.n_instructions()):
        if function.instruction_id(k) == ca.OP_OUTPUT:
            pieces[function.instruction_output(k)[0]].append(function.instruction_MX(k).dep(0))
    outputs = [_joined(parts, function.sparsity_out(k)) for k, parts in enumerate(pieces)]
    return expand(ca.Function(function.name(), inputs, outputs))  # without the mark


def _joined(parts: list[ca.MX], pattern: ca.Sparsity) -> ca.MX:
    """Return an output of which CasADi has the parts: a column of columns, or columns in a row."""
    if not parts:
        return ca.MX(pattern)
    return (
        parts[0] if len(parts) == 1 else (ca.horzcat if pattern.size2() > 1 else ca.vertcat)(*parts)
    )


def expand(function: ca.Function) -> ca.Function:
    """Return the function as scalar operations, or say why that is impossible."""
    if not function.is_a("SXFunction"):
        try:
            function = function.expand()
        except RuntimeError as error:
            raise CompileError(
                f"`{function.name()}` cannot be compiled: CasADi cannot expand it to scalar "
                f"operations ({str(error).strip().splitlines()[-1]})"
            ) from error
    if function.has_free():
        names = ", ".join(f"`{name}`" for name in function.get_free())
        raise CompileError(f"`{function.name()}` has free variables: {names}")
    return function


def _translate(function: ca.Function, builder: Builder, operation: int, numbers: list[int]) -> int:
    if operation in BINARY:
        return builder.add(BINARY[operation], *numbers)
    if operation in UNARY:
        return builder.add(UNARY[operation], *numbers)
    if operation == ca.OP_SQ:
        return builder.add("mul", numbers[0], numbers[0])
    if operation == ca.OP_TWICE:
        return builder.add("add", numbers[0], numbers[0])
    if operation == ca.OP_INV:
        return builder.add("div", builder.add("const", 1.0), numbers[0])
    if operation == ca.OP_IF_ELSE_ZERO:
        return builder.add("select", *numbers, builder.add("const", 0.0))
    if operation in (ca.OP_ASSIGN, ca.OP_LIFT, ca.OP_PRINTME):
        return numbers[0]
    name = NAMES.get(operation, str(operation))
    raise CompileError(f"`{function.name()}` uses the operation `{name}`, which is not supported")


def _c_order(pattern: ca.Sparsity) -> list[int]:
    """Give for each structural nonzero its index among all elements in C order."""
    rows, columns = pattern.get_triplet()
    width = pattern.size2()
    return [row * width + column for row, column in zip(rows, columns, strict=True)]
