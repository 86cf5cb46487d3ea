"""A graph as a JAX function.

XLA compiles straight-line scalar code badly: it fuses by repeating shared work, so that a few
thousand operations take minutes, and their gradients do not end. So the graph runs as a loop over
`steps`, which compiles in about a second whatever its size and works on many states at once; and
derivatives are graphs too (see `derivative`), run by the same loop, not derivatives of the loop.

This module needs JAX and is imported only when it is used.
"""

import functools
from collections.abc import Callable, Sequence

from framefree.errors import FramefreeError
from framefree.kernel import derivative
from framefree.kernel.errors import ArgumentError
from framefree.kernel.graph import Graph, Port
from framefree.kernel.optimise import optimise
from framefree.kernel.steps import Steps, schedule

try:
    import jax
    import jax.numpy as jnp
    from jax import lax
    from jax.extend.core import Primitive
    from jax.interpreters import ad, batching, mlir
except ImportError as error:
    raise FramefreeError(
        'this needs JAX, which is not installed; install it with: pip install "framefree[learn]"'
    ) from error

# States that share a workspace; more are done one part after the other. A processor has a small
# cache, an accelerator wants much work at once.
CPU_COLUMNS, COLUMNS = 1024, 2**16


def jax_function(graph: Graph, name: str) -> Callable:
    """Return a graph as a JAX function.

    The function takes an array of the single shape of each input, by position or by name, and
    returns an array for one output, a tuple for several. It can be compiled (`jax.jit`), mapped
    (`jax.vmap`) and differentiated, forwards and backwards, any number of times. Where a
    conditional does not take a branch, nothing of that branch enters a derivative.

    It computes in the floating-point type that JAX finds for its arguments together: float64 only
    where ``jax.config.update("jax_enable_x64", True)`` was called, else float32, with some 6 digits
    where the kernel has 15. XLA may take numbers below the smallest normal one for zero.

    Parameters
    ----------
    graph : Graph
        Before `optimise`.
    name : str
        Name of the function.
    """
    program = JaxProgram(graph)

    def function(*arguments, **named):
        values = list(map(jnp.asarray, _bind(name, graph.inputs, arguments, named)))
        kind = jnp.result_type(1.0, *values)
        if not jnp.issubdtype(kind, jnp.floating):
            raise ArgumentError(f"`{name}` takes real numbers, not values of type `{kind}`")
        flat = [_flat(port, value, kind) for port, value in zip(graph.inputs, values, strict=True)]
        column = jnp.concatenate([*flat, jnp.zeros(0, kind)])[:, None]
        result = evaluate_p.bind(column, program=program)[:, 0]
        pieces, first = [], 0
        for port in graph.outputs:
            pieces.append(result[first : first + port.size].reshape(port.shape))
            first += port.size
        return pieces[0] if len(pieces) == 1 else tuple(pieces)

    function.__name__ = function.__qualname__ = name
    return function


class JaxProgram:
    """A graph ready to run, and its derivatives, each made when it is first needed."""

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self.size = sum(port.size for port in graph.outputs)

    @functools.cached_property
    def steps(self) -> Steps:
        """The graph as steps."""
        return schedule(optimise(self.graph, fma=True))

    @functools.cached_property
    def tangent(self) -> "JaxProgram":
        """From (x, dx) to J(x) dx."""
        return JaxProgram(derivative.tangent(self.graph))

    @functools.cached_property
    def adjoint(self) -> "JaxProgram":
        """From (x, y_bar) to J(x)^T y_bar."""
        return JaxProgram(derivative.adjoint(self.graph))


def _bind(name: str, ports: Sequence[Port], arguments: tuple, named: dict) -> list:
    wanted = [port.name for port in ports]
    rest = wanted[len(arguments) :]
    if len(arguments) > len(wanted) or set(rest) != set(named):
        takes = ", ".join(f"`{one}`" for one in wanted) or "no argument"
        received = ", ".join([f"{len(arguments)} by position", *(f"`{one}`" for one in named)])
        raise ArgumentError(f"`{name}` takes {takes}, but got {received}")
    return [*arguments, *(named[one] for one in rest)]


def _flat(port: Port, value, kind):
    if value.shape != port.shape and not (value.ndim == 0 and port.shape == (1,)):
        raise ArgumentError(
            f"`{port.name}` must have shape {port.shape}, not {value.shape}; "
            "for a batch use `jax.vmap`"
        )
    return value.reshape(-1).astype(kind)


# What each kind of step does. Derivatives of these functions are never taken.


def _extremum(better: Callable) -> Callable:
    return lambda a, b, c: jnp.where(jnp.isnan(b) | better(a, b), a, b)


def _sign(a, b, c):
    return jnp.where(a > 0, 1, jnp.where(a < 0, -1, a + 0))


def _remainder(a, b, c):
    """IEEE 754 remainder, exactly: |a| less whole 2|b|, then less |b| where that is nearer."""
    divisor = jnp.abs(b)
    left = lax.rem(jnp.abs(a), 2 * divisor)
    beyond = 2 * left > divisor
    left = jnp.where(beyond, left - divisor, left)
    left = jnp.where(beyond & (2 * left >= divisor), left - divisor, left)
    return jnp.where(jnp.signbit(a), -left, left)


def _truth(condition: Callable) -> Callable:
    return lambda a, b, c: condition(a, b).astype(a.dtype)


def _unary(operation: Callable) -> Callable:
    return lambda a, b, c: operation(a)


def _binary(operation: Callable) -> Callable:
    return lambda a, b, c: operation(a, b)


OPERATIONS: dict[str, Callable] = {
    "div": _binary(lax.div),
    "pow": _binary(lax.pow),
    "atan2": _binary(lax.atan2),
    "hypot": _binary(jnp.hypot),
    "copysign": _binary(jnp.copysign),
    "fmod": _binary(lax.rem),
    "remainder": _remainder,
    "min": _extremum(lax.lt),
    "max": _extremum(lax.gt),
    "sign": _sign,
    "erfinv": _unary(lax.erf_inv),
    "select": lambda a, b, c: jnp.where(a != 0, b, c),
    "lt": _truth(lax.lt),
    "le": _truth(lax.le),
    "eq": _truth(lax.eq),
    "ne": _truth(lax.ne),
    "not": _truth(lambda a, b: a == 0),
    "and": _truth(lambda a, b: (a != 0) & (b != 0)),
    "or": _truth(lambda a, b: (a != 0) | (b != 0)),
} | {
    name: _unary(getattr(lax, name))
    for name in (
        *("sqrt", "exp", "expm1", "log", "log1p", "sin", "cos", "tan", "asin", "acos", "atan"),
        *("sinh", "cosh", "tanh", "asinh", "acosh", "atanh", "erf", "abs", "floor", "ceil"),
    )
}


def _run(x, *, program: JaxProgram, columns: int = COLUMNS):
    """Evaluate a program on columns: (inputs, n) gives (outputs, n)."""
    count = x.shape[1]
    if count <= columns:
        return _run_part(program.steps, x)
    parts = -(-count // columns)
    x = jnp.pad(x, ((0, 0), (0, parts * columns - count)))
    x = x.reshape(len(x), parts, columns).swapaxes(0, 1)
    y = lax.map(functools.partial(_run_part, program.steps), x)
    return y.swapaxes(0, 1).reshape(program.size, parts * columns)[:, :count]


def _run_part(steps: Steps, x):
    count = x.shape[1]
    constants = jnp.asarray(steps.constants, x.dtype)[:, None]
    blocks = jnp.zeros((steps.rows - len(x) - len(constants), count), x.dtype)
    work = jnp.concatenate([x, jnp.broadcast_to(constants, (len(constants), count)), blocks])
    branches = [functools.partial(_do, kind) for kind in steps.kinds]

    def body(work, step):
        kind, rows, signs, target = step
        gathered = [work.at[rows[k]].get(mode="promise_in_bounds") for k in range(3)]
        values = lax.switch(kind, branches, *gathered, signs[:, :, None])
        return lax.dynamic_update_slice_in_dim(work, values, target, 0), None

    if len(steps.kind):
        signs = jnp.asarray(steps.signs, x.dtype)
        work, _ = lax.scan(body, work, (steps.kind, steps.operands, signs, steps.target))
    return work[steps.results]


def _do(kind: str, a, b, c, signs):
    return signs[0] * (a * b) + signs[1] * c if kind == "linear" else OPERATIONS[kind](a, b, c)


# Two primitives. `evaluate_p(x)` runs a program on columns x. `linear_p(x, dx)` is J(x) dx, which
# JAX may transpose; everything else follows from programs being closed under differentiation.

evaluate_p = Primitive("framefree_evaluate")
linear_p = Primitive("framefree_linear")


def _run_linear(x, dx, *, program: JaxProgram, columns: int = COLUMNS):
    return _run(jnp.concatenate([x, dx]), program=program.tangent, columns=columns)


def _evaluate_jvp(primals, tangents, *, program: JaxProgram):
    (x,), (dx,) = primals, tangents
    y = evaluate_p.bind(x, program=program)
    return y, linear_p.bind(x, ad.instantiate_zeros(dx), program=program)


def _linear_jvp(primals, tangents, *, program: JaxProgram):
    x, dx = primals
    x_dot, dx_dot = map(ad.instantiate_zeros, tangents)
    y = linear_p.bind(x, dx, program=program)
    if isinstance(tangents[0], ad.Zero):
        return y, linear_p.bind(x, dx_dot, program=program)
    both, both_dot = jnp.concatenate([x, dx]), jnp.concatenate([x_dot, dx_dot])
    return y, linear_p.bind(both, both_dot, program=program.tangent)


def _linear_transpose(y_bar, x, dx, *, program: JaxProgram):
    if isinstance(y_bar, ad.Zero):
        return None, None
    return None, evaluate_p.bind(jnp.concatenate([x, y_bar]), program=program.adjoint)


def _batched(primitive: Primitive) -> Callable:
    """Make a mapped axis part of the columns."""

    def rule(arrays, axes, *, program: JaxProgram):
        length = next(a.shape[k] for a, k in zip(arrays, axes, strict=True) if k is not None)
        columns = [
            jnp.broadcast_to(a[:, :, None], (*a.shape, length))
            if k is None
            else jnp.moveaxis(a, k, 2)
            for a, k in zip(arrays, axes, strict=True)
        ]
        wide = [a.reshape(len(a), a.shape[1] * length) for a in columns]
        y = primitive.bind(*wide, program=program)
        return y.reshape(program.size, columns[0].shape[1], length), 2

    return rule


def _register(primitive: Primitive, function: Callable) -> None:
    def shape(x, *rest, program: JaxProgram):
        return x.update(shape=(program.size, x.shape[1]))

    on_cpu = functools.partial(function, columns=CPU_COLUMNS)
    primitive.def_impl(jax.jit(primitive.bind, static_argnames="program"))
    primitive.def_abstract_eval(shape)
    mlir.register_lowering(primitive, mlir.lower_fun(function, multiple_results=False))
    mlir.register_lowering(
        primitive, mlir.lower_fun(on_cpu, multiple_results=False), platform="cpu"
    )
    batching.primitive_batchers[primitive] = _batched(primitive)


_register(evaluate_p, _run)
_register(linear_p, _run_linear)
ad.primitive_jvps[evaluate_p] = _evaluate_jvp
ad.primitive_jvps[linear_p] = _linear_jvp
ad.primitive_transposes[linear_p] = _linear_transpose
