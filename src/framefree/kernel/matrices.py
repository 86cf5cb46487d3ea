"""Functions of matrices that native code runs as loops: layers of a network, and what is like them.

A function that is written with CasADi's `MX` and marked `never_inline` stays a call in the graph of
its caller. If it is made of products of a matrix with a column and of operations element by
element, it becomes a `MatrixProgram`: a few steps on whole arrays, each of which is a loop in
native code (`framefree.kernel.arraycode`). Its code does not grow with the matrices, and they are
read from memory as they are, one double an element, by all states that run together.

    y <- y + A x        product: rows x 1, A constant or given
    y <- f(x), f(x, z)  element by element; an operand of one element goes with all

What does more than this (sparse or sliced arrays, products of two matrices, comparisons) is not
refused but expanded to scalar operations by the reader.
"""

from dataclasses import dataclass, field

import casadi as ca
import numpy as np

from framefree.kernel.graph import BINARY, TRUTHS, UNARY

COSTS = {"tanh": 27, "exp": 25, "log": 30, "sin": 25, "cos": 25}  # of an element; others 1
PLAIN_UNARY = {ca.OP_SQ: "mul", ca.OP_TWICE: "add"}  # of the operand with itself


@dataclass(frozen=True)
class Array:
    """An array of doubles: elements of a matrix, column after column.

    Attributes
    ----------
    kind : "input", "output", "buffer" or "constant"
    index : int
        Which of these.
    rows, columns : int
    """

    kind: str
    index: int
    rows: int
    columns: int

    @property
    def size(self) -> int:
        """Number of elements."""
        return self.rows * self.columns


@dataclass(frozen=True)
class ArrayStep:
    """One loop: "product" of (y, A, x), "copy", or an operation on elements of its operands."""

    operation: str
    operands: tuple[Array, ...]
    target: Array

    @property
    def weight(self) -> int:
        """About how many instructions it costs."""
        if self.operation == "product":
            return self.operands[1].size
        return self.target.size * COSTS.get(self.operation, 1)


@dataclass(frozen=True, eq=False)
class MatrixProgram:
    """A function of matrices as steps on arrays; equal only to itself.

    Attributes
    ----------
    name : str
    inputs, outputs : tuple of int
        Sizes of what it takes and gives; an input that is structurally zero has size 0.
    buffers : tuple of int
        Sizes of what one step hands to another.
    constants : tuple of tuple of float
    steps : tuple of ArrayStep
    """

    name: str
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    buffers: tuple[int, ...]
    constants: tuple[tuple[float, ...], ...] = field(repr=False)
    steps: tuple[ArrayStep, ...] = field(repr=False)

    @property
    def weight(self) -> int:
        """About how many instructions one group of lanes costs."""
        return sum(step.weight for step in self.steps)


class _Unfit(Exception):
    """The function does what no step can."""


def read_matrices(function: ca.Function) -> MatrixProgram | None:
    """Return a function as steps on arrays, or None if it is not made of them."""
    if not function.is_a("MXFunction"):
        return None
    try:
        return _Tracer(function).program()
    except _Unfit:
        return None


class _Tracer:
    """Follows the instructions of a function, and what each place of its work holds."""

    def __init__(self, function: ca.Function) -> None:
        self.function = function
        self.held: dict[int, Array] = {}
        self.sizes: dict[int, int] = {}
        self.constants: list[tuple[float, ...]] = []
        self.steps: list[ArrayStep] = []

    def program(self) -> MatrixProgram:
        f = self.function
        for k in range(f.n_instructions()):
            self._follow(k, f.instruction_id(k), f.instruction_input(k), f.instruction_output(k))
        inputs = tuple(f.nnz_in(k) for k in range(f.n_in()))
        outputs = tuple(f.nnz_out(k) for k in range(f.n_out()))
        written = {step.target.index for step in self.steps if step.target.kind == "output"}
        if any(size and k not in written for k, size in enumerate(outputs)):
            raise _Unfit
        buffers = tuple(self.sizes.get(k, 0) for k in range(1 + max(self.sizes, default=-1)))
        constants, steps = tuple(self.constants), tuple(self.steps)
        return MatrixProgram(f.name(), inputs, outputs, buffers, constants, steps)

    def _follow(self, k: int, operation: int, sources: list[int], targets: list[int]) -> None:
        f = self.function
        if operation == ca.OP_OUTPUT:
            value = self.held[sources[0]]
            target = Array("output", targets[0], *f.size_out(targets[0]))
            if target.size != value.size or not f.sparsity_out(targets[0]).is_dense():
                raise _Unfit
            self.steps.append(ArrayStep("copy", (value,), target))
            return
        expression = f.instruction_MX(k)
        if len(targets) != 1 or not expression.is_dense():
            raise _Unfit
        shape = expression.shape
        if operation == ca.OP_INPUT:
            if shape != f.size_in(sources[0]):
                raise _Unfit
            self.held[targets[0]] = Array("input", sources[0], *shape)
        elif operation == ca.OP_CONST:
            self._hold_constant(targets[0], expression.to_DM().full())
        else:
            operands = tuple(self.held[one] for one in sources)
            self._compute(operation, operands, targets[0], shape)

    def _hold_constant(self, place: int, value: np.ndarray) -> None:
        self.held[place] = Array("constant", len(self.constants), *value.shape)
        self.constants.append(tuple(value.ravel(order="F").tolist()))

    def _compute(
        self, operation: int, operands: tuple[Array, ...], place: int, shape: tuple[int, int]
    ) -> None:
        first = operands[0]
        if operation in (ca.OP_TRANSPOSE, ca.OP_RESHAPE) and first.kind == "constant":
            value = np.reshape(self.constants[first.index], (first.rows, first.columns), order="F")
            value = value.T if operation == ca.OP_TRANSPOSE else value.reshape(shape, order="F")
            return self._hold_constant(place, value)
        if operation == ca.OP_RESHAPE and first.kind == "input":
            self.held[place] = Array("input", first.index, *shape)
            return None
        if operation == ca.OP_INV:
            self._hold_constant(place, np.ones((1, 1)))
            operation, operands = ca.OP_DIV, (self.held[place], first)
        target = Array("buffer", place, *shape)
        self.steps.append(_step(operation, operands, target))
        self.sizes[place] = max(self.sizes.get(place, 0), target.size)
        self.held[place] = target
        return None


def _step(operation: int, operands: tuple[Array, ...], target: Array) -> ArrayStep:
    """Return the step of one instruction."""
    if operation == ca.OP_MTIMES:
        if target.columns != 1 or operands[1].columns == 0 or operands[0].size != target.size:
            raise _Unfit
        if target in operands[1:]:
            raise _Unfit
        return ArrayStep("product", operands, target)
    if operation in PLAIN_UNARY:
        return ArrayStep(PLAIN_UNARY[operation], operands * 2, target)
    name = UNARY.get(operation) or BINARY.get(operation)
    if name is None or name in TRUTHS or name in ("not", "pow"):
        raise _Unfit
    if any(one.size not in (1, target.size) for one in operands):
        raise _Unfit
    if any(one.size == 1 < target.size and one == target for one in operands):
        raise _Unfit
    return ArrayStep(name, operands, target)
