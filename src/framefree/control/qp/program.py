"""Quadratic programs of fixed size as expressions.

    min  1/2 z . H z + g . z    subject to    A z = b,    lower <= C z <= upper

The method is that of `framefree.control.qp.iteration`: a fixed number of interior-point iterations
on a scaled program, whose last point tells which bounds are active; then two solves with that
active set, which give the last digits and keep them where bounds are only just active. As many
operations at every call, no memory, and no branch: it compiles into any kernel and runs in batches.
"""

from typing import Any, NamedTuple

import casadi as ca
import numpy as np

from framefree.control.law import ControlError
from framefree.control.qp.factor import SymmetricFactor
from framefree.control.qp.iteration import (
    Interior,
    QpShape,
    QpTerms,
    guess,
    interior_step,
    largest,
    polish_step,
    weighted,
)

Matrix = Any

ITERATIONS = 16
"""Interior-point iterations: enough for 20 variables and 40 rows, tight or degenerate."""
POLISHES = 2
TOLERANT = 10
"""How much larger the error after a polish may be: multipliers of rows that depend on each other
may then leave their sign by a little, while z gains all its digits."""
FIRST_SHARE = 0.1
"""First size of slacks and multipliers, relative to the unconstrained solution."""


class QpSolution(NamedTuple):
    """A minimiser, with what certifies it.

    Attributes
    ----------
    z : (n)
    equality : (rows of A)
        Multipliers: H z + g + A^T equality + C^T bounds = 0.
    bounds : (rows of C)
        Multipliers, positive at upper bounds, negative at lower ones.
    residual : scalar
        Largest violation of A z = b and of the bounds, in their own units. Where it is not small,
        no z fulfils all rows: they are then met in the sense of least squares, roughly.
    error : scalar
        Largest violation of the conditions of optimality, of the scaled program; an upper bound.
    """

    z: Matrix
    equality: Matrix
    bounds: Matrix
    residual: Matrix
    error: Matrix


def solve_qp(
    H: Any,
    g: Any,
    A: Any = None,
    b: Any = None,
    C: Any = None,
    lower: Any = None,
    upper: Any = None,
    *,
    iterations: int = ITERATIONS,
) -> QpSolution:
    """Return the minimiser of a quadratic program, as an expression.

    Parameters
    ----------
    H : (n x n)
        Symmetric, positive semidefinite; the lower half is read.
    g : (n)
    A, b : (rows x n), (rows), optional
    C : (rows x n), optional
        Default the identity: bounds of z itself.
    lower, upper : (rows), optional
        Numbers that are infinite stand for no bound. Symbols must take finite values.
    iterations : int

    Notes
    -----
    Structural zeros of C, and numbers in it, cost nothing. With a diagonal H and bounds of z alone
    the solution is exact and a few operations.
    """
    H, g = ca.SX(H), ca.densify(ca.SX(g))
    n = g.shape[0]
    if H.shape != (n, n):
        raise ControlError(f"`H` must be {n} x {n} as `g` has {n} entries, got {H.shape}")
    equations, sides = _rows("A", "b", A, b, n)
    C, low, high = _bounded(C, lower, upper, n)
    if not equations.shape[0] and _is_identity(C) and H.sparsity().is_diag():
        return _clipped(H, g, low, high)
    shape, program = _assembled(H, g, equations, sides, C, low, high)
    if not shape.bounds:
        z = SymmetricFactor(weighted(program, ca.SX(shape.m, 1), 0)).solve(-g)
        none = ca.SX(0, 1)
        return QpSolution(
            z, none, ca.SX(C.shape[0], 1), ca.SX(0), largest([program.slope(z, none)])
        )
    return _solved(shape, program, equations.shape[0], iterations)


def _solved(shape: QpShape, program: QpTerms, equations: int, iterations: int) -> QpSolution:
    scaled, by_variable, by_row = scale(shape, program)
    point, size = start(shape, scaled)
    step = interior_step(shape)
    for _ in range(iterations):
        point = Interior(*step(*scaled, *point, size))
    z, y, error, at = first_guess(shape, scaled, point)
    polish = polish_step(shape)
    for _ in range(POLISHES):
        z, y, error, at = polish(*scaled, z, y, error, at)
    z, y = by_variable * z, by_row * y
    below, above = program.violations(shape, z)
    residual = ca.fmax(0, ca.mmax(ca.vertcat(below, above)))
    return QpSolution(z, y[:equations], y[equations:], residual, error)


def scale(shape: QpShape, program: QpTerms) -> tuple[QpTerms, Matrix, Matrix]:
    """Return the program with unit diagonal of H and unit rows, and the factors of z and rows."""
    diagonal = ca.diag(program.H)
    top = ca.mmax(diagonal)
    top = ca.if_else(top > 0, top, 1)
    by_variable = 1 / ca.sqrt(ca.if_else(diagonal > 1e-18 * top, diagonal, top))
    H = ca.diag(by_variable) @ program.H @ ca.diag(by_variable)
    C = program.C @ ca.diag(by_variable)
    squares = ca.sum2(C * C)
    by_row = 1 / ca.sqrt(ca.if_else(squares > 0, squares, 1))
    scaled = QpTerms(
        H,
        by_variable * program.g,
        ca.diag(by_row) @ C,
        by_row[list(shape.lower)] * program.lower,
        by_row[list(shape.upper)] * program.upper,
    )
    return scaled, by_variable, by_row


def start(shape: QpShape, program: QpTerms) -> tuple[Interior, Matrix]:
    """Return the first point, and the size of its slacks and multipliers.

    They are of the size by which the unconstrained solution, damped a little, violates the bounds.
    """
    z = SymmetricFactor(weighted(program, ca.SX(shape.m, 1), 1e-2)).solve(-program.g)
    below, above = program.violations(shape, z)
    worst = ca.mmax(ca.vertcat(below, above))
    size = ca.fmax(worst, FIRST_SHARE * largest([z]) + 1e-8)
    s_l, s_u = ca.fmax(-below, size), ca.fmax(-above, size)
    return Interior(z, s_l, s_u, size**2 / s_l, size**2 / s_u), size


def first_guess(shape: QpShape, program: QpTerms, point: Interior) -> tuple[Matrix, ...]:
    """Return z, net multipliers, an error to better, and which bounds are active: where y > s."""
    y = shape.net(point.y_l, point.y_u)
    at = guess(shape, point.y_l > point.s_l, point.y_u > point.s_u)
    return point.z, y, TOLERANT * program.error(shape, point.z, y), at


def _assembled(
    H: Matrix, g: Matrix, A: Matrix, b: Matrix, C: Matrix, lower: Matrix, upper: Matrix
) -> tuple[QpShape, QpTerms]:
    """Return equations and bounds as one set of rows, without the bounds that are infinite."""
    rows = ca.sparsify(ca.vertcat(A, C))
    low, high = ca.vertcat(b, lower), ca.vertcat(b, upper)
    has_low = tuple(i for i in range(rows.shape[0]) if not _infinite(low[i]))
    has_high = tuple(i for i in range(rows.shape[0]) if not _infinite(high[i]))
    entries = tuple(tuple(part) for part in rows.sparsity().get_triplet())
    shape = QpShape(g.shape[0], rows.shape[0], entries, has_low, has_high)  # type: ignore[arg-type]
    program = QpTerms(ca.tril(ca.densify(H)), g, rows, low[list(has_low)], high[list(has_high)])
    return shape, program


def _clipped(H: Matrix, g: Matrix, lower: Matrix, upper: Matrix) -> QpSolution:
    """Return the solution where every variable is on its own."""
    slopes = ca.densify(ca.diag(H))
    free = -g / slopes
    z = ca.fmin(ca.fmax(free, lower), upper)
    return QpSolution(z, ca.SX(0, 1), slopes * (free - z), ca.fmax(0, ca.mmax(lower - z)), ca.SX(0))


def _rows(name: str, side: str, rows: Any, sides: Any, n: int) -> tuple[Matrix, Matrix]:
    if (rows is None) != (sides is None):
        raise ControlError(f"give both `{name}` and `{side}`, or neither")
    if rows is None:
        return ca.SX(0, n), ca.SX(0, 1)
    rows, sides = ca.SX(rows), ca.densify(ca.SX(sides))
    if rows.shape[1] != n or sides.shape != (rows.shape[0], 1):
        raise ControlError(
            f"`{name}` must have {n} columns and `{side}` an entry for each of its rows, got "
            f"{rows.shape} and {sides.shape}"
        )
    return rows, sides


def _bounded(C: Any, lower: Any, upper: Any, n: int) -> tuple[Matrix, Matrix, Matrix]:
    if lower is None and upper is None:
        if C is not None:
            raise ControlError("`C` without `lower` and `upper` bounds nothing")
        return ca.SX(0, n), ca.SX(0, 1), ca.SX(0, 1)
    C = ca.SX.eye(n) if C is None else ca.SX(C)
    m = C.shape[0]
    both = [-np.inf if lower is None else lower, np.inf if upper is None else upper]
    low, high = (ca.densify(ca.SX(side)) for side in both)
    low, high = (ca.repmat(s, m, 1) if s.is_scalar() and m != 1 else s for s in (low, high))
    for name, side in (("lower", low), ("upper", high)):
        if C.shape[1] != n or side.shape != (m, 1):
            raise ControlError(
                f"`C` must have {n} columns and `{name}` an entry for each of its rows, got "
                f"{C.shape} and {side.shape}"
            )
    return C, low, high


def _is_identity(C: Matrix) -> bool:
    C = ca.sparsify(C)
    same = C.shape[0] == C.shape[1] and C.sparsity().is_diag() and C.is_constant()
    return same and bool(np.array_equal(ca.DM(C).full(), np.eye(C.shape[0])))


def _infinite(value: Matrix) -> bool:
    return value.is_constant() and not np.isfinite(float(value))
