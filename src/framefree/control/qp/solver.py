"""The same method as a kernel of its own: its code is that of one iteration, called again."""

import casadi as ca

from framefree.control.qp.iteration import (
    Interior,
    QpShape,
    QpTerms,
    interior_step,
    polish_step,
)
from framefree.control.qp.program import ITERATIONS, POLISHES, first_guess, scale, start
from framefree.kernel import Kernel
from framefree.kernel.loops import Block, Calls

FAR = 1e20
"""What stands for a bound that is infinite."""


def qp_kernel(n: int, equations: int, rows: int, *, iterations: int = ITERATIONS) -> Kernel:
    """Return a compiled solver of quadratic programs of one size, see `solve_qp`.

    ``kernel(H, g, A, b, C, lower, upper)`` gives z, multipliers of the equations and of the bounds,
    residual and error, for one program or a batch; arguments that are not batched are the same for
    all. Bounds may be infinite.

    Parameters
    ----------
    n, equations, rows : int
        Numbers of variables, of rows of A, and of rows of C.
    iterations : int
    """
    m = equations + rows
    places = (
        tuple(i for _ in range(n) for i in range(m)),
        tuple(j for j in range(n) for _ in range(m)),
    )
    every = tuple(range(m))
    shape = QpShape(n, m, places, every, every)
    calls = Calls(f"qp_{n}_{equations}_{rows}")
    sizes = {"H": (n, n), "g": (n,), "A": (equations, n), "b": (equations,)}
    sizes |= {"C": (rows, n), "lower": (rows,), "upper": (rows,)}
    inputs = [calls.input(name, size) for name, size in sizes.items()]

    def call(function: ca.Function, arguments: list[Block]) -> list[Block]:
        outputs = [calls.block(function.numel_out(k)) for k in range(function.n_out())]
        calls.call(function, arguments, outputs)
        return outputs

    prepared = call(_prepare(shape, equations), inputs)
    program, size, point = prepared[:5], prepared[5], prepared[6:]
    for _ in range(iterations):
        following = call(interior_step(shape), [*program, *point, size])
        for block in point:
            calls.release(block)
        point = following
    point = call(_guess(shape), [*program, *point])
    for _ in range(POLISHES):
        point = call(polish_step(shape), [*program, *point])
    results = {"z": (n,), "equality": (equations,), "bounds": (rows,), "residual": (), "error": ()}
    outputs = [calls.output(name, size) for name, size in results.items()]
    calls.call(_finish(shape, equations), [*inputs, *point[:3]], outputs)
    return calls.compile()


def _prepare(shape: QpShape, equations: int) -> ca.Function:
    """Return the function from the program as it comes to the scaled one and its first point."""
    program, inputs = _symbols(shape, equations)
    scaled, _, _ = scale(shape, program)
    point, size = start(shape, scaled)
    return ca.Function("prepare", inputs, [*scaled, size, *point])


def _guess(shape: QpShape) -> ca.Function:
    program, m = QpTerms.symbols(shape), shape.m
    point = Interior(ca.SX.sym("z", shape.n), *(ca.SX.sym(f"p{k}", m) for k in range(4)))
    return ca.Function("guess", [*program, *point], first_guess(shape, program, point))


def _finish(shape: QpShape, equations: int) -> ca.Function:
    """Return the function that undoes the scaling and measures the residual."""
    program, inputs = _symbols(shape, equations)
    z, y, error = ca.SX.sym("z", shape.n), ca.SX.sym("y", shape.m), ca.SX.sym("error")
    _, by_variable, by_row = scale(shape, program)
    unscaled, multipliers = by_variable * z, by_row * y
    below, above = program.violations(shape, unscaled)
    residual = ca.fmax(0, ca.mmax(ca.vertcat(below, above)))
    outputs = [unscaled, multipliers[:equations], multipliers[equations:], residual, error]
    return ca.Function("finish", [*inputs, z, y, error], outputs)


def _symbols(shape: QpShape, equations: int) -> tuple[QpTerms, list[ca.SX]]:
    """Return a program of symbols and the inputs that it is made of.

    Matrices come row by row, as NumPy has them, and so transposed for CasADi.
    """
    n, rows = shape.n, shape.m - equations
    H, g = ca.SX.sym("H", n, n), ca.SX.sym("g", n)
    A, b = ca.SX.sym("A", n, equations), ca.SX.sym("b", equations)
    C, lower, upper = ca.SX.sym("C", n, rows), ca.SX.sym("lower", rows), ca.SX.sym("upper", rows)
    low, high = ca.fmax(lower, -FAR), ca.fmin(upper, FAR)
    program = QpTerms(
        ca.tril(H.T), g, ca.vertcat(A.T, C.T), ca.vertcat(b, low), ca.vertcat(b, high)
    )
    return program, [H, g, A, b, C, lower, upper]
