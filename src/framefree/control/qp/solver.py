"""The same method as a kernel of its own: loops whose code does not grow with the program."""

from framefree.control.qp.interior import interior_procedure
from framefree.control.qp.program import ITERATIONS
from framefree.kernel import Kernel
from framefree.kernel.loops import Calls


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
    calls = Calls(f"qp_{n}_{equations}_{rows}")
    sizes = {"H": (n, n), "g": (n,), "A": (equations, n), "b": (equations,)}
    sizes |= {"C": (rows, n), "lower": (rows,), "upper": (rows,)}
    results = {"z": (n,), "equality": (equations,), "bounds": (rows,), "residual": (), "error": ()}
    inputs = [calls.input(name, size) for name, size in sizes.items()]
    outputs = [calls.output(name, size) for name, size in results.items()]
    calls.call(interior_procedure(n, equations, rows, iterations), inputs, outputs)
    return calls.compile()
