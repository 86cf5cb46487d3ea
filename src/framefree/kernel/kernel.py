"""`compile`: a CasADi function as native code that takes and returns NumPy arrays."""

import math
import os
from collections.abc import Callable, Iterable, Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Literal, TypeAlias

import casadi as ca
import numpy as np
from numpy.typing import ArrayLike

from framefree.kernel import cache as kept
from framefree.kernel import interpreter
from framefree.kernel.build import build, known_key, store_pointer, stored_code
from framefree.kernel.call import Caller
from framefree.kernel.graph import CompileError, Graph, Port
from framefree.kernel.native import load_object
from framefree.kernel.rollout import Rollout, RolloutOptions, roll
from framefree.kernel.target import host

if TYPE_CHECKING:
    from framefree.kernel.c_source import CSource

Precision: TypeAlias = Literal["double", "single"]


class Kernel:
    """A compiled function.

    ``kernel(a, b, ...)`` takes one array for each input, by position or by name: of the input's
    single shape, or a batch of it along a new first axis; single and batched arguments mix. It
    returns one array for one output and a tuple for several, in the same convention.

    Keyword arguments
    -----------------
    out : array or tuple of arrays, optional
        Where to put the results.
    threads : int
        Number of threads among which a batch is split.
    """

    name: str
    inputs: tuple[Port, ...]
    outputs: tuple[Port, ...]
    function: ca.Function
    precision: Precision = "double"
    _caller: Caller

    def __call__(self, *arguments, out=None, threads: int = 1, **named):
        """Evaluate. Every kernel has its own native version of this method."""
        raise NotImplementedError

    def __repr__(self) -> str:
        def listed(ports):
            return ", ".join(f"{port.name}{list(port.shape)}" for port in ports)

        return f"<kernel {self.name}: ({listed(self.inputs)}) -> ({listed(self.outputs)})>"

    def rollout(
        self,
        *arguments,
        steps: int,
        every: int = 1,
        dt: float | None = None,
        t0: float = 0.0,
        sequences: Mapping[str, ArrayLike] | None = None,
        threads: int = 1,
        progress: Callable[[int], object] | None = None,
        out: Rollout | Mapping[str, np.ndarray] | None = None,
        **named,
    ) -> Rollout:
        """Apply the kernel again and again: a native loop in time, over many trajectories at once.

        An output named ``<input>_next`` becomes ``<input>`` of the following step. An input named
        ``t`` receives the time t0 + k*dt of step k, one named ``dt`` the step. Inputs in
        `sequences` have a value for each step; all others keep theirs. Remaining outputs are
        recorded as signals. The result is bit for bit that of calling the kernel step by step.

        Parameters
        ----------
        arguments, named
            Initial states and parameters, single or batched, in the order of the inputs (without
            ``t``, ``dt`` and those in `sequences`) or by name.
        steps : int
            Number of steps.
        every : int
            States are recorded after every so many steps, and at the start.
        dt, t0 : float
            Length of a step and time of the first, in seconds.
        sequences : mapping of str to array, optional
            Values of shape (steps, ...) or (batch, steps, ...).
        threads : int
            Number of threads among which the trajectories are split.
        progress : callable, optional
            Called now and then with the number of steps done.
        out : Rollout or mapping of str to array, optional
            Where to record: an earlier roll-out of the same size, whose arrays are written over, or
            arrays of float64 by the names of states and signals, contiguous and of the shapes that
            `Rollout` states. What is not named is new.
        """
        sequences = dict(sequences or {})
        options = RolloutOptions(steps, every, dt, t0, sequences, threads, progress, out)
        return roll(self._caller, arguments, named, options)

    def __reduce__(self):
        """Pickle as what it was compiled from."""
        shapes = {port.name: port.shape for port in (*self.inputs, *self.outputs)}
        return _restore, (self.function.serialize(), shapes, self.precision)

    def c_source(self, name: str | None = None) -> "CSource":
        """Return the kernel as C99 with a header, without allocation, for any board with libm."""
        from framefree.kernel.c_source import c_source

        return c_source(self.graph, name or self.name)

    def jax(self) -> Callable:
        """Return the kernel as a JAX function: differentiable, and for `jax.jit` and `jax.vmap`.

        It takes and returns arrays of the single shapes. Needs the extra `learn`.
        """
        # JAX takes a second to import, and is an extra.
        from framefree.kernel.jax_target import jax_function

        return jax_function(self.graph, self.name)

    @property
    def graph(self) -> Graph:
        """The expression graph, as read from CasADi."""
        from framefree.kernel.reading import read

        return read(self.function, self.inputs, self.outputs)


def compile(
    function: ca.Function,
    *,
    shapes: Mapping[str, tuple[int, ...]] | None = None,
    cache: bool | str | os.PathLike = True,
    lanes: int | None = None,
    precision: Precision = "double",
) -> Kernel:
    """Compile a CasADi function to native code.

    Parameters
    ----------
    function : casadi.Function
        Any function that expands to scalar operations.
    shapes : mapping of str to tuple of int, optional
        NumPy shapes for inputs and outputs by name. By default n x 1 is ``(n,)`` and r x c is
        ``(r, c)``.
    cache : bool or path
        Whether to keep the compiled code on disk for the next start (see `framefree.kernel.cache`),
        or the folder where.
    lanes : int, optional
        Vector width, by default the widest of this processor. Results do not depend on it.
    precision : "double" or "single"
        Numbers that the kernel computes with. Arguments and results are arrays of doubles either
        way; in single precision twice as many states run side by side, to about seven digits.

    Examples
    --------
    >>> import casadi as ca
    >>> import framefree as ff
    >>> x = ca.SX.sym("x", 2)
    >>> kernel = ff.compile(ca.Function("f", [x], [x[0] * ca.sin(x[1])], ["x"], ["y"]))
    >>> kernel([2.0, 0.0])
    array([0.])
    >>> kernel([[2.0, 0.0], [3.0, 0.0]]).shape  # many at once
    (2, 1)
    """
    if precision not in ("double", "single"):
        raise CompileError(f'`precision` must be "double" or "single", not {precision!r}')
    if not isinstance(function, ca.Function):
        raise CompileError(f"`function` must be a casadi.Function, not {type(function)}")
    inputs, outputs = _ports(function, dict(shapes or {}))
    target = host(lanes, single=precision == "single")
    binary, layout = build(function, inputs, outputs, target, cache)
    caller = Caller(function.name(), inputs, outputs, load_object(binary, target), layout)
    return make_kernel(caller, lambda: function, precision=precision)


def compile_known(
    identity: bytes | None,
    trace: Callable[[], tuple[ca.Function, Mapping[str, tuple[int, ...]]]],
) -> Kernel:
    """Compile a function that is known before it is traced: a second start need not trace it.

    Parameters
    ----------
    identity : bytes or None
        All that the function depends on, but for this package's kernels; None if that is unknown.
    trace : callable
        Gives the function and the shapes of its inputs and outputs, as for `compile`.
    """
    target = host(None)
    key = known_key(identity, target) if identity is not None and kept.enabled() else None
    if key is not None and (known := stored_code(key)) is not None:
        name, inputs, outputs, binary, layout = known
        caller = Caller(name, inputs, outputs, load_object(binary, target), layout)
        return make_kernel(caller, lambda: trace()[0])
    function, shapes = trace()
    kernel = compile(function, shapes=shapes)
    if key is not None:
        store_pointer(key, function, kernel.inputs, kernel.outputs, target)
    return kernel


def function_graph(function: ca.Function, scalars: Iterable[str] = ()) -> Graph:
    """Return the expression graph of a function; `scalars` are ports of NumPy shape ()."""
    from framefree.kernel.reading import read

    inputs, outputs = _ports(function, dict.fromkeys(scalars, ()))
    return read(function, inputs, outputs)


def function_c_source(
    function: ca.Function, scalars: Iterable[str] = (), name: str | None = None
) -> "CSource":
    """Return a function as C99, without compiling it here."""
    from framefree.kernel.c_source import c_source

    return c_source(function_graph(function, scalars), name or function.name())


def function_jax(function: ca.Function, scalars: Iterable[str] = ()) -> Callable:
    """Return a function for JAX; see `Kernel.jax`."""
    # JAX takes a second to import, and is an extra.
    from framefree.kernel.jax_target import jax_function

    return jax_function(function_graph(function, scalars), function.name())


def _restore(
    serial: str, shapes: dict[str, tuple[int, ...]], precision: Precision = "double"
) -> Kernel:
    return compile(ca.Function.deserialize(serial), shapes=shapes, precision=precision)


def make_kernel(caller: Caller, function: Callable[[], ca.Function], **members: object) -> Kernel:
    """Return the kernel that calls compiled code; `function` gives what it was compiled from."""
    call, name = caller, caller.name
    if interpreter.available():
        call = interpreter.builtin(caller.native.entry, name, f"Compiled {name}.", caller)
    members |= {"__call__": call, "__doc__": Kernel.__doc__}
    members["function"] = cached_property(lambda _: function())
    # A class of its own: the interpreter looks `__call__` up on the class, and a builtin found
    # there is called as it is, without a detour through Python.
    kernel = type("Kernel", (Kernel,), members)()
    kernel.name, kernel._caller = name, caller
    kernel.inputs, kernel.outputs = caller.inputs, caller.outputs
    return kernel


def _ports(
    function: ca.Function, shapes: dict[str, tuple[int, ...]]
) -> tuple[tuple[Port, ...], tuple[Port, ...]]:
    """Name the inputs and outputs and give them NumPy shapes."""
    if function.n_out() == 0:
        raise CompileError(f"`{function.name()}` has no outputs")
    names_in, names_out = function.name_in(), function.name_out()
    if unknown := set(shapes) - {*names_in, *names_out}:
        raise CompileError(f"`{function.name()}` has no input or output {sorted(unknown)}")

    def port(name: str, rows: int, columns: int) -> Port:
        shape = tuple(shapes.get(name, (rows,) if columns == 1 else (rows, columns)))
        if any(length < 0 for length in shape) or math.prod(shape) != rows * columns:
            raise CompileError(
                f"`{name}` of `{function.name()}` is {rows} x {columns} and cannot have "
                f"shape {shape}"
            )
        return Port(name, shape)

    inputs = [port(name, *function.size_in(k)) for k, name in enumerate(names_in)]
    outputs = [port(name, *function.size_out(k)) for k, name in enumerate(names_out)]
    return tuple(inputs), tuple(outputs)
