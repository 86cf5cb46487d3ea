"""Two ways to run the steps of a sweep: at once, or as native loops over many bodies.

A sweep calls steps by ``tape.call(step, i, *values)``: the function `step(body, *values)` for body
i. What it gives may be matrices, or tuples of them, and goes into further calls as it is; None
stays None. See `framefree.kernel.loops` for what a list of calls becomes.
"""

from collections.abc import Callable, Iterator, Sequence
from copy import copy
from dataclasses import dataclass
from functools import cache, partial, wraps
from typing import Any, Protocol

import casadi as ca

from framefree.kernel.loops import Block, Calls, Constant
from framefree.motion.loops.bodies import BodyMath, likeness
from framefree.motion.loops.packing import LiftedNumbers, PackedValues
from framefree.motion.spatial import Matrix
from framefree.motion.tree import Tree

StepFunction = Callable[..., Any]


class Tape(Protocol):
    """What sweeps ask of a tape."""

    model: Tree

    def call(self, step: StepFunction, i: int, *values: Any) -> Any:
        """Return what a step gives for body i."""

    def shared(self, key: Any, function: StepFunction, *values: Any) -> Any:
        """Return what a function of no particular body gives; `key` tells functions apart."""

    def forget(self, *values: Any) -> None:
        """Take note that values are not needed any more."""


class DirectTape:
    """Runs steps at once. `own` is a matrix of every body, see `BodyMath`."""

    def __init__(self, model: Tree, own: Sequence[Any]) -> None:
        self.model = model
        self.bodies = [BodyMath.of(model, i, own[i]) for i in range(len(model.links))]

    def call(self, step: StepFunction, i: int, *values: Any) -> Any:
        """Return what the step gives for body i."""
        return step(self.bodies[i], *values)

    def shared(self, key: Any, function: StepFunction, *values: Any) -> Any:
        """Return what the function gives."""
        return function(*values)

    def forget(self, *values: Any) -> None:
        """Do nothing."""


@dataclass(frozen=True)
class StoredValue:
    """What a call gave: a block of the workspace, and how to read it.

    The block of an input or output is not `owned`: it cannot be used for anything else.
    """

    block: Block
    packed: PackedValues
    owned: bool = True


class LoopTape:
    """Writes down steps, to be compiled as loops.

    Parameters
    ----------
    name : str
    model : Tree
        Of a machine without tunable numbers.
    own : sequence, optional
        A constant matrix for every body, see `BodyMath`.
    keys : sequence, optional
        For every body what it must have in common with others to share their code, beside its
        structure: whatever steps depend on that no number of `BodyMath` tells.
    """

    def __init__(
        self,
        name: str,
        model: Tree,
        own: Sequence[Any] | None = None,
        keys: Sequence[Any] | None = None,
    ) -> None:
        self.calls, self.model = Calls(name), model
        count = len(model.links)
        own = [0.0] * count if own is None else own
        groups: dict[Any, list[int]] = {}
        for i in range(count):
            key = (likeness(model, i), None if keys is None else keys[i])
            groups.setdefault(key, []).append(i)
        self._classes: dict[int, tuple[BodyMath, LiftedNumbers, int]] = {}
        for members in groups.values():
            lift = LiftedNumbers()
            body = BodyMath.for_all(model, members, own, lift)
            self._classes |= {i: (body, lift, place) for place, i in enumerate(members)}
        self._functions: dict[Any, tuple[ca.Function, list[PackedValues | None], Any]] = {}

    def onto(self, calls: Calls) -> "LoopTape":
        """Return a tape that appends to another program and shares the functions of this one."""
        tape = copy(self)
        tape.calls = calls
        return tape

    def body(self, i: int) -> BodyMath:
        """Return what stands for body i and those alike."""
        return self._classes[i][0]

    # ------------------------------------------------------------------ inputs and outputs

    def input(self, name: str, shape: tuple[int, ...]) -> Block:
        """Return the block of a new input."""
        return self.calls.input(name, shape)

    def output(self, name: str, shape: tuple[int, ...], values: Sequence[Any] = ()) -> Block:
        """Return the block of a new output: parts of it are for `call_into`.

        Or, with values, copy these into it, one after the other.
        """
        block = self.calls.output(name, shape)
        self.write_into(block, values)
        return block

    def write_into(self, block: Block, values: Sequence[Any]) -> None:
        """Copy matrices into a block, one after the other, each by columns."""
        start = 0
        for value in values:
            size = value.packed.shape[0] * value.packed.shape[1]
            into = block[start : start + size]
            self._write(("shared", "copy"), _copy, (value,), None, (), (into,))
            start += size

    def value(self, block: Block, *shape: int) -> StoredValue:
        """Return a block of an input or output as a matrix of a shape, by columns."""
        return StoredValue(block, _matrix_of(shape or (block.size, 1)), False)

    # ------------------------------------------------------------------ calls

    def call(self, step: StepFunction, i: int, *values: Any) -> Any:
        """Write down a step of body i, and return what stands for its results."""
        return self._call(step, i, values, ())

    def call_into(
        self, block: Block | Sequence[Block], step: StepFunction, i: int, *values: Any
    ) -> Any:
        """Write down the same, the last results (matrices) being written to blocks, by columns."""
        return self._call(step, i, values, _listed(block))

    def shared(self, key: Any, function: StepFunction, *values: Any) -> Any:
        """Write down a function of no particular body; `key` tells functions apart."""
        return self._write(("shared", key), function, values, None, (), ())

    def shared_into(
        self, block: Block | Sequence[Block], key: Any, function: StepFunction, *values: Any
    ) -> Any:
        """Write down the same, the last results (matrices) being written to blocks, by columns."""
        return self._write(("shared", key), function, values, None, (), _listed(block))

    def forget(self, *values: Any) -> None:
        """Let the workspace of values be used again."""
        for value in _leaves(values):
            if value.owned and value.block.size:
                self.calls.release(value.block)

    def _call(self, step: StepFunction, i: int, values: Any, into: Sequence[Block]) -> Any:
        body, lift, place = self._classes[i]
        key = (id(body), getattr(step, "__func__", step), id(getattr(step, "__self__", None)))
        numbers = lift.numbers(place)
        return self._write(key, wraps(step)(partial(step, body)), values, lift, numbers, into)

    def _write(
        self,
        key: Any,
        function: StepFunction,
        values: Any,
        lift: LiftedNumbers | None,
        numbers: tuple[float, ...],
        into: Sequence[Block],
    ) -> Any:
        key = (key, len(into), _signature(values))
        if key not in self._functions:
            traced, packs = _traced(function, values, lift, len(into))
            self._functions[key] = traced, packs, function  # kept, for its identity is in the key
        traced, packs, _ = self._functions[key]
        inputs: list[Any] = [value.block for value in _leaves(values)]
        if numbers:
            inputs.append(Constant(numbers))
        results = [
            None if pack is None else StoredValue(self.calls.block(pack.size), pack)
            for pack in packs[: len(packs) - len(into)]
        ]
        results += [self.value(block) for block in into]
        outputs = [value.block for value in results if value is not None]
        self.calls.call(traced, inputs, outputs)
        return results[0] if len(results) == 1 else tuple(results)


def inwards(tape: Tape, visit: Callable[..., Sequence[Any]], channels: int = 1) -> None:
    """Call ``visit(i, *carried)`` for every body, tips first.

    What it gives, one value for each channel, is added up over children and `carried` to their
    parent; None stands for zero.
    """
    links = tape.model.links
    carried: list[list[Any]] = [[None] * channels for _ in links]
    for i in reversed(range(len(links))):
        passed, parent = visit(i, *carried[i]), links[i].parent
        tape.forget(*carried[i])
        if parent < 0:
            tape.forget(*passed)
        else:
            pairs = zip(carried[parent], passed, strict=True)
            carried[parent] = [summed(tape, a, b) for a, b in pairs]


def summed(tape: Tape, a: Any, b: Any) -> Any:
    """Return a sum of two matrices where None stands for zero; its parts are forgotten."""
    if a is None or b is None:
        return b if a is None else a
    total = tape.shared("sum", _sum, a, b)
    tape.forget(a, b)
    return total


def _listed(blocks: Block | Sequence[Block]) -> Sequence[Block]:
    return (blocks,) if isinstance(blocks, Block) else tuple(blocks)


def _copy(a: Matrix) -> Matrix:
    return a + 0


def _sum(a: Matrix, b: Matrix) -> Matrix:
    return a + b


@cache
def _matrix_of(shape: tuple[int, ...]) -> PackedValues:
    return PackedValues(ca.SX.sym("entries", *shape))


def _leaves(values: Any) -> Iterator[StoredValue]:
    for value in values:
        if isinstance(value, StoredValue):
            yield value
        elif isinstance(value, tuple):
            yield from _leaves(value)
        elif value is not None:
            raise TypeError(f"a step takes what steps gave, not {type(value).__name__}")


def _signature(values: Any) -> Any:
    return tuple(
        value.packed.key
        if isinstance(value, StoredValue)
        else None
        if value is None
        else (type(value), _signature(value))
        for value in values
    )


def _traced(
    function: StepFunction, values: Any, lift: LiftedNumbers | None, plain: int
) -> tuple[ca.Function, list[PackedValues | None]]:
    """Return a function of blocks, and how to read each result; the last `plain` are dense."""
    symbols: list[Matrix] = []

    def restored(value: Any) -> Any:
        if value is None:
            return None
        if not isinstance(value, StoredValue):
            parts = [restored(part) for part in value]
            return tuple(parts) if type(value) is tuple else type(value)(*parts)
        symbols.append(ca.SX.sym(f"i{len(symbols)}", value.block.size))
        return value.packed.restore(symbols[-1])

    results = function(*(restored(value) for value in values))
    results = results if type(results) is tuple else (results,)
    packs = [None if one is None else PackedValues(one) for one in results]
    kept = packs[: len(packs) - plain]
    columns = [ca.densify(pack.vector) for pack in kept if pack is not None]
    columns += [ca.vec(ca.densify(ca.SX(one))) for one in results[len(kept) :]]
    if lift is not None and lift.symbols.shape[0]:
        symbols.append(lift.symbols)
    return ca.Function(function.__name__.strip("_"), symbols, columns), packs
