"""A list of calls as data: blocks of a workspace, the functions, and who calls what on which."""

from collections.abc import Sequence
from dataclasses import dataclass

import casadi as ca

from framefree.kernel.graph import CompileError, Port
from framefree.kernel.routines.procedure import Procedure


@dataclass(frozen=True)
class Block:
    """Consecutive slots of the workspace."""

    start: int
    size: int

    def __getitem__(self, part: slice) -> "Block":
        first, last, step = part.indices(self.size)
        if step != 1:
            raise CompileError("a block can only be cut in consecutive pieces")
        return Block(self.start + first, max(last - first, 0))

    def overlaps(self, other: "Block") -> bool:
        """Tell whether two blocks share slots."""
        return max(self.start, other.start) < min(self.start + self.size, other.start + other.size)


@dataclass(frozen=True)
class Constant:
    """Numbers that a call reads besides its blocks, the same in every state."""

    values: tuple[float, ...]

    @property
    def size(self) -> int:
        """Number of values."""
        return len(self.values)


@dataclass(frozen=True)
class Call:
    """One call of a function."""

    variant: int
    inputs: tuple[Block | Constant, ...]
    outputs: tuple[Block, ...]
    unless: tuple[Block, ...] = ()

    @property
    def operands(self) -> tuple[Block | Constant, ...]:
        """All that a row of the table points to."""
        return (*self.inputs, *self.outputs, *self.unless)


@dataclass
class Variant:
    """A function, which of its inputs are constants, and whether a flag can make it idle."""

    function: ca.Function | Procedure
    constant: tuple[bool, ...]
    flagged: bool
    original: ca.Function | Procedure  # kept, for its identity is the key


@dataclass(frozen=True)
class CallList:
    """A program of calls that is complete.

    Attributes
    ----------
    name : str
    inputs, outputs : sequence of (Port, Block)
    calls : sequence of Call
    variants : sequence of Variant
    zeros : sequence of Block
        Slots that hold zeros.
    slots : int
        Size of the workspace, without what functions need for themselves.
    """

    name: str
    inputs: Sequence[tuple[Port, Block]]
    outputs: Sequence[tuple[Port, Block]]
    calls: Sequence[Call]
    variants: Sequence[Variant]
    zeros: Sequence[Block]
    slots: int

    @property
    def ports(self) -> tuple[tuple[Port, ...], tuple[Port, ...]]:
        """Inputs and outputs without their blocks."""
        return tuple(port for port, _ in self.inputs), tuple(port for port, _ in self.outputs)


def places(operands: Sequence[Block | Constant]) -> list[int | tuple[float, ...]]:
    """Return the first slot of every operand, or its values."""
    return [one.start if isinstance(one, Block) else one.values for one in operands]
