"""Roll-outs: what goes into the native time loop, and the record that comes out."""

import ctypes
import math
import numbers
import operator
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from framefree.kernel.agreed import SUFFIX, Feedback, find_feedback
from framefree.kernel.call import (
    Caller,
    address,
    as_argument,
    check_target,
    common_batch,
    pack_records,
)
from framefree.kernel.errors import ArgumentError
from framefree.kernel.graph import Port
from framefree.kernel.native import Plan
from framefree.kernel.room import empty

STEP = "dt"
CHUNK = 100_000_000  # about how many instructions a thread runs before Python has its turn again


@dataclass(frozen=True)
class Rollout:
    """The record of a roll-out of N steps, every k-th recorded; m = N // k.

    Attributes
    ----------
    t : array (m + 1,)
        Times of the recorded states; step numbers without `dt`.
    states : dict of arrays (batch, m + 1, ...)
        The states at those times, the initial ones first.
    signals : dict of arrays (batch, m, ...)
        The other outputs: entry j was computed by the step that starts from ``states[...][:, j]``.
    final : dict of arrays (batch, ...)
        The states after all N steps.

    A single trajectory has no batch axis.
    """

    t: np.ndarray
    states: dict[str, np.ndarray] = field(repr=False)
    signals: dict[str, np.ndarray] = field(repr=False)
    final: dict[str, np.ndarray] = field(repr=False)

    def __getitem__(self, name: str) -> np.ndarray:
        """Return a state or a signal by name."""
        return self.states[name] if name in self.states else self.signals[name]


MOST_STEPS = 2**62
"""Number of steps that a native counter still holds."""


@dataclass(frozen=True)
class RolloutOptions:
    """The options of a roll-out; `Kernel.rollout` documents them."""

    steps: int
    every: int
    dt: float | None
    t0: float
    sequences: dict
    threads: int
    progress: Callable[[int], object] | None
    out: "Rollout | Mapping[str, np.ndarray] | None" = None

    def __post_init__(self) -> None:
        for name, least in (("steps", 0), ("every", 1)):
            value = getattr(self, name)
            try:
                value = operator.index(value)
            except TypeError:
                value = None
            if value is None or value < least:
                wrong = getattr(self, name)
                raise ArgumentError(
                    f"`{name}` must be a whole number from {least} on, not {wrong!r}"
                )
        if operator.index(self.steps) > MOST_STEPS:
            raise ArgumentError(f"`steps` must be at most {MOST_STEPS}, not {self.steps}")
        for name in ("dt", "t0"):
            value = getattr(self, name)
            if value is None and name == "dt":
                continue
            if not isinstance(value, numbers.Real) or not math.isfinite(value):
                raise ArgumentError(f"`{name}` must be a finite number, not {value!r}")

    @property
    def records(self) -> int:
        """Number of recorded states without the initial one."""
        return self.steps // self.every


def roll(caller: Caller, arguments: Sequence, named: Mapping, options: RolloutOptions) -> Rollout:
    """Run a roll-out."""
    if caller.native.rollout is None:
        raise ArgumentError(
            f"`{caller.name}` has no output named like an input with `{SUFFIX}` added, and of its "
            "shape: there is nothing to feed back"
        )
    feedback = find_feedback(caller.inputs, caller.outputs)
    arrays, batch = _arguments(caller, feedback, arguments, named, options)
    rows = 1 if batch is None else batch
    work = {}
    for index in feedback.states:
        whole = np.broadcast_to(arrays[index], (rows, *caller.inputs[index].shape))
        work[index] = np.array(whole, order="C")
    given = _given_records(caller, feedback, arrays, batch, options)
    states, signals = _make_records(caller.outputs, feedback, work, given, options)
    records = _port_records(caller, feedback, arrays | work, states | signals, options)
    used = [*arrays.values(), *work.values(), *states.values(), *signals.values()]
    _run(caller, pack_records(records), used, rows, options)
    pick = slice(None) if batch is not None else 0
    names = {output: caller.inputs[index].name for index, output in feedback.states.items()}
    count = np.arange(options.records + 1) * min(options.every, options.steps + 1)
    return Rollout(
        count.astype(float) if options.dt is None else options.t0 + count * options.dt,
        {names[output]: array[pick] for output, array in states.items()},
        {caller.outputs[output].name: array[pick] for output, array in signals.items()},
        {caller.inputs[index].name: array[pick] for index, array in work.items()},
    )


def _arguments(
    caller: Caller, feedback: Feedback, arguments: Sequence, named: Mapping, options: RolloutOptions
) -> tuple[dict[int, np.ndarray], int | None]:
    """Convert and check all inputs; return them by index, and the batch size."""
    inputs: dict[int, tuple[Port, np.ndarray]] = {}
    free: list[int] = []
    sequences = dict(options.sequences)
    for index, port in enumerate(caller.inputs):
        is_step = port.name == STEP and index not in feedback.states and port.size == 1
        if index == feedback.time or is_step:
            if options.dt is None:
                raise ArgumentError(f"`dt` is needed: `{caller.name}` has an input `{port.name}`")
            if is_step:
                inputs[index] = port, np.full(port.shape, float(options.dt))
        elif port.name in sequences:
            if index in feedback.states:
                raise ArgumentError(f"`{port.name}` is a state and cannot be a sequence")
            longer = Port(port.name, (options.steps, *port.shape))
            inputs[index] = longer, as_argument(longer, sequences.pop(port.name))
        else:
            free.append(index)
    if sequences:
        raise ArgumentError(f"`{caller.name}` has no input {sorted(sequences)} for a sequence")
    ports = [caller.inputs[index] for index in free]
    values = Caller(caller.name, ports, (), caller.native, caller.layout).bind(arguments, named)
    for index, port, value in zip(free, ports, values, strict=True):
        inputs[index] = port, as_argument(port, value)
    arrays = [array for _, array in inputs.values()]
    batch = common_batch([port for port, _ in inputs.values()], arrays)
    return dict(zip(inputs, arrays, strict=True)), batch


def _make_records(
    outputs: Sequence[Port],
    feedback: Feedback,
    work: dict[int, np.ndarray],
    given: dict[int, np.ndarray],
    options: RolloutOptions,
) -> tuple[dict[int, np.ndarray], dict[int, np.ndarray]]:
    """Return the arrays to record in, by index of the output; the initial states are in them."""
    rows = len(next(iter(work.values())))

    def array(output: int, records: int) -> np.ndarray:
        shape = (rows, records, *outputs[output].shape)
        return given[output].reshape(shape) if output in given else empty(shape)

    states = {}
    for index, output in feedback.states.items():
        states[output] = array(output, options.records + 1)
        states[output][:, 0] = work[index]
    signals = {
        output: array(output, options.records)
        for output in range(len(outputs))
        if output not in states
    }
    return states, signals


def _given_records(
    caller: Caller,
    feedback: Feedback,
    arguments: dict[int, np.ndarray],
    batch: int | None,
    options: RolloutOptions,
) -> dict[int, np.ndarray]:
    """Return the arrays of `out` by index of the output; refuse what cannot take a record."""
    given = options.out or {}
    if isinstance(given, Rollout):
        given = given.states | given.signals
    if not isinstance(given, Mapping):
        raise ArgumentError(
            "`out` of a roll-out must be an earlier one or arrays by name, not "
            f"{type(given).__name__}"
        )
    states = {output: caller.inputs[index].name for index, output in feedback.states.items()}
    names = {states.get(k, port.name): k for k, port in enumerate(caller.outputs)}
    if unknown := [name for name in given if name not in names]:
        raise ArgumentError(
            f"`out` names {', '.join(f'`{name}`' for name in unknown)}, but the records of "
            f"`{caller.name}` are {', '.join(f'`{name}`' for name in names)}"
        )
    found: dict[int, np.ndarray] = {}
    for name, array in given.items():
        output = names[name]
        shape = (options.records + (output in states), *caller.outputs[output].shape)
        check_target(Port(name, ()), array, shape if batch is None else (batch, *shape))
        if not (array.flags.c_contiguous and array.flags.aligned and array.dtype.isnative):
            raise ArgumentError(f"`out` for `{name}` must be contiguous, in the order of C")
        if any(np.may_share_memory(array, one) for one in (*arguments.values(), *found.values())):
            raise ArgumentError(f"`out` for `{name}` shares memory with an argument or a record")
        found[output] = array
    return found


def _port_records(
    caller: Caller,
    feedback: Feedback,
    arrays: dict[int, np.ndarray],
    results: dict[int, np.ndarray],
    options: RolloutOptions,
) -> list[tuple[int, int, int]]:
    """Say for each port where its data is, and how far it is from row to row and step to step."""
    records = []
    for index, port in enumerate(caller.inputs):
        if index == feedback.time:
            records.append((0, 0, 0))
            continue
        array, varies = arrays[index], port.name in options.sequences
        step = array.strides[0] // 8 if array.ndim > len(port.shape) + varies else 0
        records.append((address(array), step, port.size if varies else 0))
    for output, port in enumerate(caller.outputs):
        array = results[output]
        records.append((address(array), array.strides[0] // 8, port.size))
    return records


def _run(
    caller: Caller,
    records: ctypes.Array,
    arrays: Sequence[np.ndarray],
    rows: int,
    options: RolloutOptions,
) -> None:
    """Run the native loop in chunks, so that Python can show progress or be interrupted."""
    native = (caller.single if rows == 1 and caller.single else caller.native).rollout
    if native is None or rows == 0:
        return
    plan = Plan(every=min(options.every, options.steps + 1), records=options.records)
    plan.t0, plan.dt = options.t0, options.dt or 0.0
    cost = max(caller.layout.weight, 1) * -(-rows * 8 // caller.layout.rows)
    chunk = max(CHUNK * max(options.threads, 1) // cost, 1)
    for begin in range(0, options.steps, chunk):
        plan.begin, plan.end = begin, min(begin + chunk, options.steps)
        caller.launch(native, rows, options.threads, (records, plan), arrays)
        if options.progress is not None:
            options.progress(plan.end)
