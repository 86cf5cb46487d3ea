"""Two ways to run the steps of `bodies.py`: at once, or as native loops over many bodies.

A sweep calls steps by ``tape.call(step, i, *values)``: the function `step(body, *values)` for body
i. What it gives may be matrices, or tuples of them, and goes into further calls as it is; None
stays None. `Inline` runs a step where it stands, so that a law becomes one expression. `Looped`
writes down that it is to be run, on blocks of a workspace (`framefree.kernel.loops`): alike bodies
then share the code, which does not grow with the machine.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import casadi as ca
import numpy as np

from framefree.control.port.bodies import BodyMath
from framefree.kernel.loops import Block, Calls, Constant
from framefree.machine import Machine
from framefree.machine.part import plain
from framefree.machine.values import constant
from framefree.motion.maximal.packing import Lift, Pack
from framefree.motion.spatial import Inertia, Matrix, Step
from framefree.motion.tree import Tree


class Inline:
    """Runs steps at once.

    Parameters
    ----------
    machine : Machine
    dampings : sequence of 6x6
        Kd of every body, in body axes.
    """

    def __init__(self, machine: Machine, dampings: Sequence[Any]) -> None:
        self.model = model = Tree(machine)
        self.bodies = [body_math(model, i, dampings[i]) for i in range(len(model.links))]

    def call(self, step: Callable[..., Any], i: int, *values: Any) -> Any:
        """Return what the step gives for body i."""
        return step(self.bodies[i], *values)

    def shared(self, key: Any, function: Callable[..., Any], *values: Any) -> Any:
        """Return what a function of no particular body gives."""
        return function(*values)

    def forget(self, *values: Any) -> None:
        """Take note that values are not needed any more."""


def body_math(model: Tree, i: int, damping: Any) -> BodyMath:
    """Return the constants of body i."""
    link = model.links[i]
    kind = link.kind
    own = replace(link, x=slice(0, kind.nx), v=slice(0, kind.nv))
    step = Step(link.to_body[:3, :3], link.to_body[:3, 3])
    Kd = step.inertia_out(Inertia.of(ca.SX(constant(damping)))).matrix
    joint = model.machine.joints[i]
    return BodyMath(own, joint, model.inertias[i], Kd, model.gravity_vector)


class Layout(Pack):
    """How a nested tuple of matrices lies in a block; `key` is equal for equal layouts."""

    def __init__(self, value: Any) -> None:
        super().__init__(value)
        self.key = _plan_key(self._plan)


@dataclass(frozen=True)
class Value:
    """What a call gave: a block of the workspace, and how to read it."""

    block: Block
    pack: Layout


class Looped:
    """Writes down steps, to be compiled as loops.

    Parameters
    ----------
    machine : Machine
        Without tunable numbers.
    dampings : sequence of 6x6
    keys : sequence
        For every body what it must have in common with others to share their code, beside joint
        kind and structure: whatever else steps depend on.
    """

    def __init__(
        self, name: str, machine: Machine, dampings: Sequence[Any], keys: Sequence[Any]
    ) -> None:
        self.calls = Calls(name)
        self.model = model = Tree(machine)
        groups: dict[Any, list[int]] = {}
        for i in range(len(model.links)):
            key = (_structure(model, i), _plain(dampings[i]), keys[i])
            groups.setdefault(key, []).append(i)
        self._classes: dict[int, _Class] = {}
        for members in groups.values():
            shared = _Class(model, dampings[members[0]], members)
            self._classes.update(dict.fromkeys(members, shared))
        self._functions: dict[Any, tuple[ca.Function, Any]] = {}

    def input(self, name: str, shape: tuple[int, ...]) -> Block:
        """Return the block of a new input."""
        return self.calls.input(name, shape)

    def value(self, block: Block, *shape: int) -> Value:
        """Return a block as a matrix of a shape, by columns."""
        return Value(block, Layout(ca.reshape(ca.SX.sym("given", block.size), *shape)))

    def call(self, step: Callable[..., Any], i: int, *values: Any) -> Any:
        """Write down a step of body i, and return what stands for its results."""
        kind = self._classes[i]
        numbers = kind.numbers(i)
        key = (id(kind), step.__qualname__)
        return self._write(key, lambda *args: step(kind.math, *args), values, kind.lift, numbers)

    def shared(self, key: Any, function: Callable[..., Any], *values: Any) -> Any:
        """Write down a function of no particular body; `key` tells functions apart."""
        return self._write(("shared", key), function, values, None, ())

    def output(self, name: str, shape: tuple[int, ...], values: Sequence[Any]) -> None:
        """Copy values, one after the other, into a new output."""
        block, start = self.calls.output(name, shape), 0
        for value in values:
            size = value.block.size
            self.calls.call(_copy(size), [value.block], [block[start : start + size]])
            start += size

    def forget(self, *values: Any) -> None:
        """Let the workspace of values be used again."""
        for value in values:
            if isinstance(value, Value) and value.block.size:
                self.calls.release(value.block)

    def _write(
        self, key: Any, function: Callable[..., Any], values: Any, lift: Any, numbers: Any
    ) -> Any:
        key = (key, _signature(values))
        if key not in self._functions:
            self._functions[key] = _traced(function, values, lift)
        traced, packs = self._functions[key]
        inputs: list[Any] = [value.block for value in _leaves(values)]
        if numbers:
            inputs.append(Constant(numbers))
        found = [
            None if pack is None else Value(self.calls.block(pack.size), pack) for pack in packs
        ]
        outputs = [value.block for value in found if value is not None]
        self.calls.call(traced, inputs, outputs)
        return found[0] if len(found) == 1 else tuple(found)


class _Class:
    """Alike bodies, and one that stands for all; numbers that differ are symbols."""

    def __init__(self, model: Tree, damping: Any, members: Sequence[int]) -> None:
        self.lift = Lift()
        self._places = {body: place for place, body in enumerate(members)}
        links = [model.links[i] for i in members]
        of = self.lift.matrix
        link = replace(
            links[0],
            start=of([one.start for one in links]),
            to_body=of([one.to_body for one in links]),
            inertia=Inertia.of(of([one.inertia.matrix for one in links])),
            armature=of([one.armature for one in links]),
        )
        total = of([model.inertias[i].matrix for i in members])
        one = body_math(model, members[0], damping)
        kind = link.kind
        link = replace(link, x=slice(0, kind.nx), v=slice(0, kind.nv))
        step = Step(link.to_body[:3, :3], link.to_body[:3, 3])
        Kd = step.inertia_out(Inertia.of(ca.SX(constant(damping)))).matrix
        self.math = replace(one, link=link, inertia=Inertia.of(total), damping=Kd)

    def numbers(self, body: int) -> tuple[float, ...]:
        """Return the values of the symbols for one member."""
        return self.lift.numbers(self._places[body])


def _structure(model: Tree, i: int) -> Any:
    link, joint = model.links[i], model.machine.joints[i]
    kind = type(link.kind).__name__ if link.turned_to_z else plain(link.kind)
    numbers = (joint.damping, joint.friction, joint.friction_width, joint.stiffness, joint.rest)
    turned = tuple(np.asarray(joint.armature) > 0)
    shapes = (link.start.sparsity().hash(), link.to_body.sparsity().hash())
    return (kind, link.parent < 0, turned, tuple(map(_plain, numbers)), shapes)


def _plain(value: Any) -> Any:
    return tuple(np.asarray(value, float).ravel().tolist())


def _leaves(values: Any) -> list[Value]:
    found: list[Value] = []
    for value in values:
        if isinstance(value, Value):
            found.append(value)
        elif isinstance(value, tuple):
            found += _leaves(value)
        elif value is not None:
            raise TypeError(f"a step takes what steps gave, not {type(value).__name__}")
    return found


def _signature(values: Any) -> Any:
    return tuple(
        None if value is None else value.pack.key if isinstance(value, Value) else _signature(value)
        for value in values
    )


def _traced(function: Callable[..., Any], values: Any, lift: Lift | None) -> Any:
    """Return a function of blocks, and how to read each of its results."""
    symbols: list[Matrix] = []

    def restored(value: Any) -> Any:
        if value is None:
            return None
        if not isinstance(value, Value):
            parts = [restored(part) for part in value]
            return tuple(parts) if type(value) is tuple else type(value)(*parts)
        symbols.append(ca.SX.sym(f"i{len(symbols)}", value.block.size))
        return value.pack.restore(symbols[-1])

    results = function(*(restored(value) for value in values))
    several = type(results) is tuple
    packs = [None if one is None else Layout(one) for one in (results if several else (results,))]
    if lift is not None and lift.symbols.shape[0]:
        symbols.append(lift.symbols)
    columns = [ca.densify(ca.SX(pack.vector)) for pack in packs if pack is not None]
    name = getattr(function, "__name__", "step").strip("<>")
    return ca.Function(name, symbols, columns), packs


def _plan_key(plan: Any) -> Any:
    if plan is None or isinstance(plan, bool):
        return plan
    kind, parts = plan
    if isinstance(kind, type):
        return (kind, tuple(_plan_key(part) for part in parts))
    marks = tuple(float(constant) if place < 0 else (place,) for place, constant in parts)
    return (kind.shape, tuple(kind.row()), tuple(kind.colind()), marks)


_COPIES: dict[int, ca.Function] = {}


def _copy(size: int) -> ca.Function:
    if size not in _COPIES:
        given = ca.SX.sym("given", size)
        _COPIES[size] = ca.Function("copy", [given], [given + 0])
    return _COPIES[size]
